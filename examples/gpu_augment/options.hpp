/// \file
/// What `gpu_augment` can be told.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <common/options.hpp>
#include <nn/gemm/gemm_options.hpp>

namespace gpu_augment {

/// The least batch of a sweep.
inline constexpr int smallest_of_sweep = 8;

/// Where images are augmented.
enum class Placement : std::uint8_t {
    none,   ///< nowhere: training alone
    cpu,    ///< on the CPU, in the source's workers
    device, ///< on the device: in the training's stream, or in one of its own
};

/// The common options, and those of this experiment.
struct Options : examples::CommonOptions {
    std::vector<Placement> placements; ///< what to run, in this order
    std::optional<std::size_t> side;   ///< pixels of a random image's side, a power of two
    std::optional<int> workers;        ///< threads that fill batches
    nn::GemmSettings gemm;
    examples::TimelineOptions timelines;
    bool sweep = false;        ///< over batch sizes, up to `batch`
    std::string contact_sheet; ///< where to write photographs before and after, as PNG; empty for nowhere
    std::string photographs;   ///< a folder of binary PPM files
};

/// Reads the command line into `options`. Returns an exit code when the program is to end at once.
std::optional<int> parse(int argc, char** argv, Options& options);

/// "none", "cpu" or "device".
std::string to_string(Placement placement);

} // namespace gpu_augment
