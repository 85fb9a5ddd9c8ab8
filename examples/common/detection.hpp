/// \file
/// Digits to be found: a varying number of them on one canvas, with a box each. A batch of canvases is a
/// ragged batch of boxes. Drawn from counted random numbers and in whole numbers, as everything in
/// digits.hpp.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include <common/digits.hpp>
#include <common/idx.hpp>

namespace examples {

/// The pixels that a digit's ink lies in: columns x1 … x2-1 of rows y1 … y2-1.
struct PixelBox {
    std::uint8_t x1 = 0;
    std::uint8_t y1 = 0;
    std::uint8_t x2 = 0;
    std::uint8_t y2 = 0;

    friend bool operator==(const PixelBox&, const PixelBox&) = default;
};

/// How digits are scattered over a canvas. Sides are at most 255, so that a box fits into bytes.
struct DetectionSpec {
    std::size_t height = 64;   ///< pixels
    std::size_t width = 64;    ///< pixels
    std::size_t most = 4;      ///< digits on a canvas, at most; there may be none
    std::size_t smallest = 14; ///< the least side that a digit is scaled to
    std::size_t largest = 24;  ///< the greatest, at most the canvas's shorter side
};

/// Bytes of such a canvas: one grey plane.
constexpr std::size_t image_bytes(const DetectionSpec& spec) { return spec.height * spec.width; }

/// Composes sample `sample` of (seed, epoch) for detection: 0 to `spec.most` random digits of `split`, each
/// number as likely as another, scaled to a random side, with a random gain (0.75 to 1), over dark noise, at
/// random places where their squares do not overlap. A digit for which no free place comes up in 64 tries is
/// left out. Allocates nothing; safe from several threads.
///
/// \param image receives height × width greys
/// \param boxes receives the box of each digit's ink (greys of at least `ink_threshold` before the gain; the
/// whole square of a digit that has none), ordered by x1, then y1: from left to right. At least `spec.most`
/// elements
/// \return the number of digits
/// \throws std::invalid_argument when the spec contradicts itself, the split is empty, or a span is of
/// another size
std::size_t compose_detection(const IdxSplit& split, const DetectionSpec& spec, std::uint64_t seed,
                              std::uint32_t epoch, std::uint64_t sample, std::span<std::uint8_t> image,
                              std::span<PixelBox> boxes);

} // namespace examples
