/// \file
/// The rungs of the ladder: what each one changes of the one below it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include <images/batches.hpp>
#include <sluice/pipeline/schedule.hpp>

namespace resnet18 {

/// What is copied to the device for an image.
enum class Pixels : std::uint8_t {
    floats,      ///< enlarged and normalised by the loader: 602 KB
    bytes,       ///< enlarged by the loader, normalised on the device: 151 KB
    small_bytes, ///< enlarged and normalised on the device: 3 KB
};

/// What a network computes in.
enum class Precision : std::uint8_t {
    float32, ///< what the CPU knows
    tf32,    ///< float32 whose products are of TF32
    float16, ///< images, maps and gradients of float16, weights of float32
};

/// "float32", "tf32" or "float16".
std::string to_string(Precision precision);

/// One rung. What it does not change is as on the rung before.
struct Rung {
    int number;
    const char* change; ///< what is new, for people
    bool has_workers;   ///< threads that load; otherwise the training thread does
    images::HostMemory memory;
    Pixels pixels;
    std::size_t batch;        ///< images, of the full network
    std::size_t narrow_batch; ///< images, of the narrow one
    bool zeroes_gradients;
    Precision precision; ///< on a device
    bool is_compiled;    ///< statistics may be fused into convolutions
    sluice::Schedule schedule;
};

inline constexpr int last_rung = 8;

/// Rungs 0 to `last_rung`.
std::span<const Rung> all_rungs();

} // namespace resnet18
