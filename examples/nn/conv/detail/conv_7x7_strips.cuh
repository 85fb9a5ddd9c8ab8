/// \file
/// What the kernels of conv_7x7.hpp have in common: strips of a batch of images in shared memory.
///
/// Seven taps of four channels in a row of the image are filled up to eight, the first with a weight of 0: 32 numbers, two
/// steps of the Tensor Cores. Output pixel x takes them from image pixel 2 x - 4 on, so that the operand of 16 output pixels
/// lies in shared memory as it comes: a unit of 16 bytes is two pixels, and output pixel x begins at unit x.
#pragma once

#include <cstdint>

#include <cuda_fp16.h>

#include <nn/core/tensor_cores.cuh>

namespace nn::detail::conv_7x7 {

constexpr int channels = 64;
constexpr int row_numbers = 32;        // of the operand, for one row of taps
constexpr int patch = 7 * row_numbers; // numbers of the operand for one output pixel
constexpr int row_weights = 7 * 4;     // as they are stored
constexpr int threads = 256;

/// A batch of images in strips of output rows.
struct Strips {
    const std::uint16_t* images;
    int height; // of the output, as `width`
    int width;
    int strips_of_image;
    int count;

    __host__ __device__ int units() const { return width + 3; } // in a row of shared memory
};

/// Begins to copy the rows of the image that `Rows` output rows from `first` on see: 2 Rows + 5 of them. Rows beyond the
/// image are zeros.
template <int Rows>
__device__ __forceinline__ void fetch_image_rows(const Strips& strips, int image, int first,
                                                 std::uint32_t to) {
    constexpr int rows = 2 * Rows + 5;
    const int lines = 2 * strips.height;
    const std::uint16_t* const from =
        strips.images + static_cast<std::size_t>(image) * lines * strips.width * 8;
    for (int i = static_cast<int>(threadIdx.x); i < rows * strips.width; i += threads) {
        const int row = i / strips.width;
        const int unit = i - row * strips.width;
        const int line = 2 * first - 3 + row;
        const bool inside = line >= 0 && line < lines;
        copy_16_bytes(to + 16u * static_cast<unsigned>(row * strips.units() + unit + 2),
                      from + (static_cast<std::size_t>(inside ? line : 0) * strips.width + unit) * 8, inside);
    }
}

/// The pixels left and right of the image, which stay zeros.
template <int Rows>
__device__ __forceinline__ void clear_borders(const Strips& strips, uint4* stage) {
    constexpr int rows = 2 * Rows + 5;
    for (int i = static_cast<int>(threadIdx.x); i < rows * 3; i += threads) {
        const int at = i % 3;
        stage[i / 3 * strips.units() + (at < 2 ? at : strips.width + 2)] = make_uint4(0, 0, 0, 0);
    }
}

} // namespace nn::detail::conv_7x7
