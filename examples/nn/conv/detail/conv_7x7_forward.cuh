/// \file
/// The forward pass of conv_7x7.hpp.
#pragma once

#include <nn/conv/detail/conv_7x7_strips.cuh>

namespace nn::detail::conv_7x7 {

constexpr int forward_rows = 8; // of output: a pair for each of four warps, each for half of the channels

/// Bytes of one of the two stages.
constexpr int forward_stage(int width) { return (2 * forward_rows + 5) * (width + 3) * 16; }

/// A warp's weights, 32 channels, as the Tensor Cores take them. Product j's column 2 t + e is channel 8 t + 2 j + e of
/// them, so that a lane's results of the four products are eight channels in a row.
struct ForwardWeights {
    std::uint32_t words[14][4][2];

    __device__ __forceinline__ void load(const std::uint16_t* weights, int lane) {
        const int group = lane / 4, t = lane % 4;
#pragma unroll
        for (int j = 0; j < 4; ++j) {
            const int channel = 8 * (group / 2) + 2 * j + group % 2;
            const auto* const own =
                reinterpret_cast<const std::uint32_t*>(weights + channel * 7 * row_weights);
#pragma unroll
            for (int step = 0; step < 14; ++step) {
#pragma unroll
                for (int half = 0; half < 2; ++half) {
                    const int number = step % 2 * 16 + half * 8 + 2 * t; // of the row's 32
                    words[step][j][half] = number < 4 ? 0u : own[(step / 2 * row_weights + number - 4) / 2];
                }
            }
        }
    }
};

/// What a lane adds up for its eight channels.
struct ForwardSums {
    float sums[8] = {};
    float squares[8] = {};

    __device__ __forceinline__ void add(const uint4& eight) {
        const std::uint32_t words[4] = {eight.x, eight.y, eight.z, eight.w};
#pragma unroll
        for (int i = 0; i < 4; ++i) {
            __half2 two;
            memcpy(&two, &words[i], sizeof(two));
            const float2 numbers = __half22float2(two);
            sums[2 * i] += numbers.x;
            sums[2 * i + 1] += numbers.y;
            squares[2 * i] += numbers.x * numbers.x;
            squares[2 * i + 1] += numbers.y * numbers.y;
        }
    }

    /// Over the lanes with the same channels; then each has all of it.
    __device__ __forceinline__ void add_up() {
#pragma unroll
        for (int i = 0; i < 8; ++i) {
#pragma unroll
            for (int distance = 4; distance < 32; distance *= 2) {
                sums[i] += __shfl_xor_sync(0xFFFFFFFFu, sums[i], distance);
                squares[i] += __shfl_xor_sync(0xFFFFFFFFu, squares[i], distance);
            }
        }
    }
};

/// One row of 16 output pixels from `accumulators`: rounds, stores and adds up.
__device__ __forceinline__ void store_row(const float (&accumulators)[4][4], std::uint16_t* to, int lane,
                                          ForwardSums& sums) {
    const int group = lane / 4, t = lane % 4;
#pragma unroll
    for (int half = 0; half < 2; ++half) {
        std::uint32_t words[4];
#pragma unroll
        for (int j = 0; j < 4; ++j)
            words[j] = two_float16(accumulators[j][2 * half], accumulators[j][2 * half + 1]);
        const uint4 eight = make_uint4(words[0], words[1], words[2], words[3]);
        *reinterpret_cast<uint4*>(to + (group + 8 * half) * channels + 8 * t) = eight;
        sums.add(eight);
    }
}

/// Two output rows of a warp: 16 pixels at a time, 32 channels.
__device__ __forceinline__ void forward_row_pair(const Strips& strips, const ForwardWeights& weights,
                                                 std::uint32_t stage, int first, std::uint16_t* to, int lane,
                                                 ForwardSums& sums) {
    const unsigned pitch = 16u * static_cast<unsigned>(strips.units());
    // Rows 0-7 and 8-15 of numbers 0-7, then of 8-15.
    const unsigned own = 16u * static_cast<unsigned>(lane % 16 + lane / 16);
    const std::size_t row_out = static_cast<std::size_t>(strips.width) * channels;
    for (int x = 0; x < strips.width; x += 16) {
        float accumulators[2][4][4] = {};
#pragma unroll
        for (int step = 0; step < 14; ++step) {
            std::uint32_t pixels[2][4];
            const std::uint32_t at = stage + own + 16u * static_cast<unsigned>(x + step % 2 * 2) +
                                     static_cast<unsigned>(step / 2) * pitch;
            load_matrices(pixels[0], at);
            load_matrices(pixels[1], at + 2 * pitch);
#pragma unroll
            for (int j = 0; j < 4; ++j) {
#pragma unroll
                for (int row = 0; row < 2; ++row)
                    multiply_add_f16(accumulators[row][j], pixels[row], weights.words[step][j][0],
                                     weights.words[step][j][1]);
            }
        }
        if (first < strips.height)
            store_row(accumulators[0], to + static_cast<std::size_t>(x) * channels, lane, sums);
        if (first + 1 < strips.height)
            store_row(accumulators[1], to + row_out + static_cast<std::size_t>(x) * channels, lane, sums);
    }
}

/// Blocks take strips in turns. `partial_sums` [blocks, 2, 64].
__global__ void __launch_bounds__(threads, 1)
    forward_kernel(Strips strips, const std::uint16_t* weights, std::uint16_t* out, float* partial_sums) {
    extern __shared__ uint4 memory[];
    const int lane = static_cast<int>(threadIdx.x) % 32;
    const int warp = static_cast<int>(threadIdx.x) / 32;
    const int half = warp % 2;
    const int pair = warp / 2;
    const int stage_units = (2 * forward_rows + 5) * strips.units();
    clear_borders<forward_rows>(strips, memory);
    clear_borders<forward_rows>(strips, memory + stage_units);
    const std::uint32_t stages = shared_address(memory);
    const auto fetch = [&](int strip, int stage) {
        if (strip < strips.count) {
            fetch_image_rows<forward_rows>(strips, strip / strips.strips_of_image,
                                           strip % strips.strips_of_image * forward_rows,
                                           stages + 16u * static_cast<unsigned>(stage * stage_units));
        }
        commit_copies();
    };

    int strip = static_cast<int>(blockIdx.x);
    fetch(strip, 0);
    ForwardWeights own;
    own.load(weights + half * 32 * 7 * row_weights, lane);
    ForwardSums sums;
    for (int turn = 0; strip < strips.count; strip += static_cast<int>(gridDim.x), turn ^= 1) {
        wait_for_copies<0>();
        __syncthreads(); // All have their copies, and are done with the other stage.
        fetch(strip + static_cast<int>(gridDim.x), turn ^ 1);
        const int first = strip % strips.strips_of_image * forward_rows + 2 * pair;
        std::uint16_t* const to =
            out +
            ((static_cast<std::size_t>(strip / strips.strips_of_image) * strips.height + first) *
             strips.width) *
                channels +
            half * 32;
        forward_row_pair(strips, own,
                         stages + 16u * static_cast<unsigned>(turn * stage_units + 4 * pair * strips.units()),
                         first, to, lane, sums);
    }

    sums.add_up();
    __syncthreads();
    auto* const of_warps = reinterpret_cast<float*>(memory); // [4 pairs][2][64]
    if (lane < 4) {
#pragma unroll
        for (int i = 0; i < 8; ++i) {
            of_warps[pair * 2 * channels + half * 32 + 8 * lane + i] = sums.sums[i];
            of_warps[pair * 2 * channels + channels + half * 32 + 8 * lane + i] = sums.squares[i];
        }
    }
    __syncthreads();
    if (threadIdx.x < 2 * channels) {
        float sum = 0.0f;
#pragma unroll
        for (int i = 0; i < 4; ++i)
            sum += of_warps[i * 2 * channels + static_cast<int>(threadIdx.x)];
        partial_sums[blockIdx.x * 2 * channels + threadIdx.x] = sum;
    }
}

/// `sums` [2, 64], a thread each.
__global__ void add_sums_kernel(const float* partial_sums, unsigned blocks, float* sums) {
    double sum = 0.0;
    for (unsigned block = 0; block < blocks; ++block)
        sum += static_cast<double>(partial_sums[block * 2 * channels + threadIdx.x]);
    sums[threadIdx.x] = static_cast<float>(sum);
}

} // namespace nn::detail::conv_7x7
