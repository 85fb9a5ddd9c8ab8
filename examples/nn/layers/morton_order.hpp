/// \file
/// The order in which a picture's pixels become the rows of a matrix.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace nn {

/// Numbers the pixels of an image so that the four pixels of each 2×2 block follow one another, at every one of
/// `levels` halvings of the image.
///
/// The image is cut into tiles of 2^levels × 2^levels pixels. Tiles follow in raster order, and a tile's pixels in
/// Z order (G. M. Morton, 1966): the two lowest bits of the number are `2 * (y & 1) + (x & 1)`, the next two the same
/// for y / 2 and x / 2, and so on. A matrix [pixels, C] of one level is then, without moving anything, the matrix
/// [pixels / 4, 4 C] of merged blocks, so that a 2×2 convolution of stride 2 is one matrix product whose result
/// has its rows in this order again; a transposed convolution is the inverse.
class MortonOrder {
public:
    /// Throws `sluice::Error` unless both sides are positive multiples of 2^levels.
    MortonOrder(std::size_t height, std::size_t width, std::size_t levels);

    std::size_t height() const noexcept { return height_; }
    std::size_t width() const noexcept { return width_; }
    std::size_t levels() const noexcept { return levels_; }
    std::size_t pixels() const noexcept { return height_ * width_; }

    /// For each row of the matrix, its pixel: `y * width + x`.
    const std::vector<std::int32_t>& raster_of_row() const noexcept { return raster_of_row_; }

    /// For each row, the rows of its 3×3 neighbourhood at `9 * row + 3 * (dy + 1) + (dx + 1)`; -1 beyond the border.
    std::vector<std::int32_t> neighbours() const;

private:
    std::size_t height_;
    std::size_t width_;
    std::size_t levels_;
    std::vector<std::int32_t> raster_of_row_;
    std::vector<std::int32_t> row_of_raster_; // for each pixel, its row
};

} // namespace nn
