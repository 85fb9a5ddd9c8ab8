/// \file
/// A digit of another size, as grey pixels.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

namespace examples {

/// The longest side that a digit is scaled to.
inline constexpr std::size_t largest_digit_side = 512;

/// A digit scaled from rows × columns to side × side: bilinear, half-pixel centres, and a wider triangle (antialiasing) along an
/// axis that shrinks; rounded to the nearest. On whole numbers, so that it is the same with every compiler. Allocates nothing.
class ScaledDigit {
public:
    /// Of `digit`, rows × columns pixels that outlive the object, for a side of 1 to `largest_digit_side`. Images are of
    /// `largest_image_side` columns at most, as read.
    ScaledDigit(std::span<const std::uint8_t> digit, std::size_t rows, std::size_t columns, std::size_t side);

    /// The pixels of row `y`, below the side. Valid until the next call.
    [[nodiscard]] std::span<const std::uint8_t> row(std::size_t y);

private:
    /// One pixel's place on an axis. Distances are in units of 1/(2·side) of a source pixel, which makes them whole.
    struct Place {
        std::int64_t first; ///< the first and the last source pixel that may have a weight
        std::int64_t last;
        std::int64_t centre;
        std::int64_t sum; ///< of all weights
    };

    [[nodiscard]] std::int64_t weight(std::int64_t support, std::int64_t centre, std::int64_t source) const;
    [[nodiscard]] Place place(std::size_t length, std::int64_t support, std::size_t at) const;

    std::span<const std::uint8_t> digit_;
    std::size_t rows_;
    std::size_t columns_;
    std::size_t side_;
    std::int64_t support_down_; ///< how far a source pixel's weight reaches
    std::int64_t support_across_;
    std::array<Place, largest_digit_side> across_;
    std::array<std::uint8_t, largest_digit_side> row_;
};

} // namespace examples
