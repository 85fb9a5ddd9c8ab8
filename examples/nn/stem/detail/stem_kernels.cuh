/// \file
/// What the kernels behind stem.hpp share: products in TF32, and how their operands are assigned to threads.
///
/// A warp's product is 16 rows by 8 columns. A thread, lane 4 g + t, ends up with columns 2 t and 2 t + 1 of rows g and
/// g + 8, and takes the elements t and t + 4 of those rows for each step of 8 of the sum. Sums may be taken in any
/// order, so element t of a step is what the thread holds as column 2 t of the layer before, and t + 4 as 2 t + 1: what
/// comes out of one product goes into the next without leaving the registers. The four rows that a 2×2 convolution merges
/// are rows of four products, whose row r is row 4 r + j of the map.
#pragma once

#include <cstdint>

#include <nn/core/tensor_cores.cuh>
#include <sluice/memory/span.hpp>

namespace nn::detail {

/// An operand of the Tensor Cores as it is: they leave its last bits out. To round it first takes three instructions, as
/// many as all else that is done for it.
__device__ inline std::uint32_t truncated(float value) { return __float_as_uint(value); }

/// What that takes away on average, for mantissas as they are commonly distributed, 2^-11 / (2 ln 2) of a number, the
/// other factor is given in advance.
inline constexpr float truncation_gain = 1.000352f;

/// `sums [16, 8] += a [16, 4] * b [4, 8]`.
__device__ inline void multiply_add_tf32(float (&sums)[4], std::uint32_t a0, std::uint32_t a1,
                                         std::uint32_t b) {
    asm("mma.sync.aligned.m16n8k4.row.col.f32.tf32.tf32.f32 {%0, %1, %2, %3}, {%4, %5}, {%6}, "
        "{%0, %1, %2, %3};"
        : "+f"(sums[0]), "+f"(sums[1]), "+f"(sums[2]), "+f"(sums[3])
        : "r"(a0), "r"(a1), "r"(b));
}

/// Begins to copy 4 bytes to shared memory.
__device__ inline void copy_4_bytes(std::uint32_t to, const void* from) {
    asm volatile("cp.async.ca.shared.global [%0], [%1], 4;"
                 :
                 : "r"(to), "l"(__cvta_generic_to_global(from))
                 : "memory");
}

/// The channel of column `column` of product `tile`, such that a thread's columns of two neighbouring products are four
/// channels that lie side by side in memory.
__device__ constexpr int channel_of(int tile, int column) {
    return 16 * (tile / 2) + 4 * (column / 2) + 2 * (tile % 2) + column % 2;
}

/// Weights [4 Inputs, Outputs] of a 2×2 convolution in the order in which a warp takes them: for each step of 8 and
/// each pair of products, each lane's two elements of either. They make up for a truncated other factor.
template <int Inputs, int Outputs>
struct PackedWeights {
    static constexpr int steps = 4 * Inputs / 8;
    static constexpr int pairs = Outputs / 16;
    static constexpr int size = steps * pairs * 32; // in uint4

    static __device__ int index(int step, int pair, int lane) { return (step * pairs + pair) * 32 + lane; }

    /// Fills `packed` with a block of `threads` threads.
    static __device__ void pack(uint4* packed, const float* weights, int thread, int threads) {
        for (int i = thread; i < size; i += threads) {
            const int g = i % 32 / 4;
            const int t = i % 4;
            const int pair = i / 32 % pairs;
            const int step = i / 32 / pairs;
            const int row = step / (Inputs / 8) * Inputs + channel_of(step % (Inputs / 8), 2 * t);
            // Rows of columns 2 t and 2 t + 1 are neighbours.
            const float* const from = weights + row * Outputs + channel_of(2 * pair, g);
            packed[i] =
                make_uint4(to_tf32(truncation_gain * from[0]), to_tf32(truncation_gain * from[Outputs]),
                           to_tf32(truncation_gain * from[2]), to_tf32(truncation_gain * from[Outputs + 2]));
        }
    }
};

/// What a 1×1 convolution from three channels to 16 multiplies channel `input` with; the fourth, which is 1, is the
/// bias's.
__device__ inline std::uint32_t first_weight(const float* weights, const float* bias, float scale, int input,
                                             int output) {
    return to_tf32(input < 3 ? scale * weights[input * 16 + output] : bias[output]);
}

/// The images, as the kernels take them. Bytes are exact in TF32.
template <class Pixel>
struct StemImages {
    const Pixel* pixels;
    const std::int32_t* raster_of_row;
    unsigned width;
    unsigned size;       // pixels of an image
    bool aligned;        // whether four pixels of a line can be read at once
    bool unused[7] = {}; // in place of padding, which captures would take for changes

    StemImages(const Pixel* pixels_, sluice::DeviceSpan<const std::int32_t, sluice::Cuda> raster_of_row_,
               std::size_t width_)
        : pixels(pixels_), raster_of_row(raster_of_row_.data()), width(static_cast<unsigned>(width_)),
          size(static_cast<unsigned>(raster_of_row_.size())),
          aligned(reinterpret_cast<std::uintptr_t>(pixels_) % (4 * sizeof(Pixel)) == 0) {}

    /// Where channel `channel` of the pixel begins that is number `number` of all the images'.
    __device__ const Pixel* at(unsigned number, unsigned channel) const {
        const unsigned image = number / size;
        const int place = raster_of_row[number - image * size];
        return pixels + (static_cast<std::size_t>(image) * 3 + channel) * size + place;
    }

    /// Begins to copy four pixels of a line to shared memory.
    __device__ void copy_four(Pixel* to, const Pixel* from) const {
        if (!aligned) {
#pragma unroll
            for (int i = 0; i < 4; ++i)
                to[i] = from[i];
        } else if constexpr (sizeof(Pixel) == 1) {
            copy_4_bytes(shared_address(to), from);
        } else {
            copy_16_bytes(shared_address(to), from);
        }
    }
};

} // namespace nn::detail
