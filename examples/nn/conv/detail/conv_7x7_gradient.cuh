/// \file
/// The gradient of the weights of conv_7x7.hpp.
#pragma once

#include <nn/conv/detail/conv_7x7_strips.cuh>

namespace nn::detail::conv_7x7 {

constexpr int gradient_rows = 4;     // of output: two for each of two groups of four warps
constexpr int gradient_products = 7; // of 8 numbers: each of a group's warps has a quarter of the patch

/// Units of one of the two stages: image rows, then the gradient's pixels of 8 units.
__host__ __device__ constexpr int gradient_stage(int width) {
    return (2 * gradient_rows + 5) * (width + 3) + gradient_rows * width * 8;
}

/// Where unit `unit` of a pixel's gradient is: neighbouring pixels' in different banks.
__device__ __forceinline__ int gradient_unit(int pixel, int unit) { return pixel * 8 + (unit ^ (pixel % 8)); }

/// Begins to copy the gradient's pixels; zeros where the map has ended.
__device__ __forceinline__ void fetch_gradient_rows(const Strips& strips, const std::uint16_t* gradient,
                                                    int image, int first, std::uint32_t to) {
    const int pixels = gradient_rows * strips.width;
    const int left = (strips.height - first) * strips.width;
    const std::uint16_t* const from =
        gradient + (static_cast<std::size_t>(image) * strips.height + first) * strips.width * channels;
    for (int i = static_cast<int>(threadIdx.x); i < pixels * 8; i += threads) {
        const int pixel = i / 8;
        const bool inside = pixel < left;
        copy_16_bytes(to + 16u * static_cast<unsigned>(gradient_unit(pixel, i % 8)),
                      from + (inside ? static_cast<std::size_t>(i) * 8 : 0), inside);
    }
}

/// Bytes of what one group of warps hands to the other.
constexpr int gradient_exchange = channels * patch * 4;

using GradientSums = float[4][gradient_products][4]; // 16 channels each, 8 numbers of the patch each

/// Adds 16 output pixels: `gradient` is where pixel 0's are, `image` where row 0 of the taps is for it.
__device__ __forceinline__ void add_gradient(GradientSums& sums, std::uint32_t gradient, int pixel,
                                             std::uint32_t image, unsigned pitch, int quarter, int lane) {
    std::uint32_t slopes[4][4];
#pragma unroll
    for (int part = 0; part < 4; ++part) {
        // Channels 0-7 and 8-15 of pixels 0-7, then of 8-15, each turned over.
        const int at = pixel + lane % 8 + lane / 16 * 8;
        load_matrices_transposed(
            slopes[part], gradient + 16u * static_cast<unsigned>(gradient_unit(at, 2 * part + lane / 8 % 2)));
    }
#pragma unroll
    for (int product = 0; product < gradient_products; product += 2) {
        // Pixels 0-7 and 8-15 of one product's numbers, then of the next one's.
        const int last = gradient_products - 1;
        const int of_patch =
            quarter * gradient_products + (product + lane / 16 < last ? product + lane / 16 : last);
        std::uint32_t numbers[4];
        load_matrices_transposed(numbers, image + static_cast<unsigned>(of_patch / 4) * pitch +
                                              16u * static_cast<unsigned>(of_patch % 4 + lane % 16));
#pragma unroll
        for (int part = 0; part < 4; ++part) {
            multiply_add_f16(sums[part][product], slopes[part], numbers[0], numbers[1]);
            if (product + 1 < gradient_products)
                multiply_add_f16(sums[part][product + 1], slopes[part], numbers[2], numbers[3]);
        }
    }
}

/// Blocks take strips in turns. `partial` [blocks, 64, 224].
__global__ void __launch_bounds__(threads, 1)
    weight_gradient_kernel(Strips strips, const std::uint16_t* gradient, float* partial) {
    extern __shared__ uint4 memory[];
    const int lane = static_cast<int>(threadIdx.x) % 32;
    const int warp = static_cast<int>(threadIdx.x) / 32;
    const int quarter = warp % 4;
    const int group = warp / 4;
    const int image_units = (2 * gradient_rows + 5) * strips.units();
    const int stage_units = gradient_stage(strips.width);
    clear_borders<gradient_rows>(strips, memory);
    clear_borders<gradient_rows>(strips, memory + stage_units);
    const std::uint32_t stages = shared_address(memory);
    const unsigned pitch = 16u * static_cast<unsigned>(strips.units());
    const auto fetch = [&](int strip, int stage) {
        if (strip < strips.count) {
            const int image = strip / strips.strips_of_image;
            const int first = strip % strips.strips_of_image * gradient_rows;
            const std::uint32_t to = stages + 16u * static_cast<unsigned>(stage * stage_units);
            fetch_image_rows<gradient_rows>(strips, image, first, to);
            fetch_gradient_rows(strips, gradient, image, first,
                                to + 16u * static_cast<unsigned>(image_units));
        }
        commit_copies();
    };

    int strip = static_cast<int>(blockIdx.x);
    fetch(strip, 0);
    GradientSums sums = {};
    for (int turn = 0; strip < strips.count; strip += static_cast<int>(gridDim.x), turn ^= 1) {
        wait_for_copies<0>();
        __syncthreads();
        fetch(strip + static_cast<int>(gridDim.x), turn ^ 1);
        const std::uint32_t stage = stages + 16u * static_cast<unsigned>(turn * stage_units);
        const std::uint32_t slopes = stage + 16u * static_cast<unsigned>(image_units);
        for (int row = 2 * group; row < 2 * group + 2; ++row) {
            for (int x = 0; x < strips.width; x += 16) {
                add_gradient(sums, slopes, row * strips.width + x,
                             stage + static_cast<unsigned>(2 * row) * pitch + 16u * static_cast<unsigned>(x),
                             pitch, quarter, lane);
            }
        }
    }

    // The second group hands its sums to the first.
    __syncthreads();
    auto* const other = reinterpret_cast<float*>(memory) + (quarter * 32 + lane) * 4;
    constexpr int distance = 4 * 32 * 4;
#pragma unroll
    for (int part = 0; part < 4; ++part) {
#pragma unroll
        for (int product = 0; product < gradient_products; ++product) {
            float* const at = other + (part * gradient_products + product) * distance;
            if (group == 1)
                *reinterpret_cast<float4*>(at) = make_float4(sums[part][product][0], sums[part][product][1],
                                                             sums[part][product][2], sums[part][product][3]);
        }
    }
    __syncthreads();
    if (group == 1)
        return;
#pragma unroll
    for (int part = 0; part < 4; ++part) {
#pragma unroll
        for (int product = 0; product < gradient_products; ++product) {
            const float4 more =
                *reinterpret_cast<const float4*>(other + (part * gradient_products + product) * distance);
            float* const to =
                partial + (static_cast<std::size_t>(blockIdx.x) * channels + 16 * part + lane / 4) * patch +
                (quarter * gradient_products + product) * 8 + 2 * (lane % 4);
            *reinterpret_cast<float2*>(to) =
                make_float2(sums[part][product][0] + more.x, sums[part][product][1] + more.y);
            *reinterpret_cast<float2*>(to + 8 * patch) =
                make_float2(sums[part][product][2] + more.z, sums[part][product][3] + more.w);
        }
    }
}

/// A block for each row of taps of a channel, a warp's lanes for its numbers, its eight warps for blocks in turns.
__global__ void add_weight_gradients_kernel(const float* partial, unsigned blocks,
                                            std::uint16_t* weight_gradient) {
    __shared__ float of_warps[8][row_numbers];
    const int lane = static_cast<int>(threadIdx.x) % 32;
    const unsigned warp = threadIdx.x / 32;
    float sum = 0.0f;
    for (unsigned block = warp; block < blocks; block += 8)
        sum += partial[(static_cast<std::size_t>(block) * channels * 7 + blockIdx.x) * row_numbers + lane];
    of_warps[warp][lane] = sum;
    __syncthreads();
    if (warp != 0 || lane < 4)
        return;
#pragma unroll
    for (int i = 1; i < 8; ++i)
        sum += of_warps[i][lane];
    weight_gradient[blockIdx.x * row_weights + (lane - 4)] = __half_as_ushort(__float2half_rn(sum));
}

} // namespace nn::detail::conv_7x7
