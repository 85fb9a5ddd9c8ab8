/// \file
/// What the composers of canvases share: checks of a canvas, and the noise behind the digits.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include <common/idx.hpp>
#include <sluice/random/philox.hpp>

namespace examples::canvas {

/// What a sample draws random numbers for; each has a run of its own.
enum Operation : std::uint16_t {
    noise_operation = 1,
    layout_operation,
    order_operation,
    detection_operation,
};

/// Uniform among 0 … bound-1.
inline std::uint32_t below(sluice::CountedRandom& random, std::size_t bound) {
    return random.below(static_cast<std::uint32_t>(bound));
}

/// Throws std::invalid_argument, which names the canvas.
[[noreturn]] void reject(const std::string& what);

/// Throws unless `found` is `expected`.
void require_bytes(std::size_t found, std::size_t expected, const char* what);

/// Throws unless the sides are 1 to `largest_canvas_side`, a digit of side `digit` fits, and `split` holds as
/// many labels as images, at least one.
void require_usable(const IdxSplit& split, std::size_t height, std::size_t width, std::size_t digit);

/// Fills `image` with dark noise.
void draw_noise(sluice::CountedRandom random, std::span<std::uint8_t> image);

/// Number `sample` of an order in which each of `count` things comes once a lap: k ↦ (offset + stride·k) mod count, with
/// an offset and a stride of the lap's own, which has no divisor in common with the count.
std::size_t shuffled(std::uint64_t seed, std::uint32_t epoch, std::uint64_t sample, std::size_t count);

} // namespace examples::canvas
