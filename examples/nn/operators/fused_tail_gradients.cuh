/// \file
/// The gradients that fused_tail.cuh's tiles make, and what adds them up.
#pragma once

#include <nn/operators/fused_tail.cuh>

namespace nn::detail {

/// What a thread adds up over all tiles of its block: its share of the gradients of weights, as the matrix units give
/// them, and of the biases' and the loss.
struct TailSums {
    float last[3][2][4] = {}; // for each ky
    float up[2][4] = {};
    float last_bias[2] = {}; // of class g and g + 8
    float up_bias[4] = {};
    float loss = 0.0f;
};

/// Adds up over the lanes of equal `t`.
__device__ inline float sum_over_rows(float value) {
    for (int distance = 4; distance < 32; distance *= 2)
        value += __shfl_xor_sync(0xFFFFFFFFu, value, distance);
    return value;
}

// Gradients -----------------------------------------------------------------------------------------------------

/// The gradient of the 3×3 convolution's weights: a warp takes 8 columns of the core, and one column of taps. A row of
/// the map's pixels is loaded once, and meets the three rows of slopes that it is a neighbour of.
__device__ inline void add_last_gradient(const TailMemory& memory, TailSums& total) {
    const Lane lane;
    const int column = lane.warp % 4 * 8;
    const int kx = lane.warp / 4;
    // An offset by four pixels, or by two chunks, only flips a bit of the place of the chunk.
    const auto word = [&](int x) { return x * 16 + ((lane.g / 4) ^ chunk_turn(x)) * 4 + lane.g % 4; };
    const int map_word = tail_map_width * 16 + word(column + 1 + kx + lane.t);
    const int slope_word = tail_slope_width * 16 + word(column + 1 + lane.t);
    // Columns beyond the core belong to other tiles.
    const bool far = column + lane.t + 4 < tail_core_x;
    const auto map = reinterpret_cast<const std::uint32_t*>(memory.map);
    const auto slope = reinterpret_cast<const std::uint32_t*>(memory.slope);

    std::uint32_t factors[tail_core_y][4];
#pragma unroll
    for (int line = 0; line < tail_core_y + 2; ++line) {
        if (line < tail_core_y) {
            const int from = line * tail_slope_width * 16;
            factors[line][0] = slope[from + slope_word];
            factors[line][1] = far ? slope[from + 64 + (slope_word ^ 4)] : 0;
            factors[line][2] = slope[from + (slope_word ^ 8)];
            factors[line][3] = far ? slope[from + 64 + (slope_word ^ 12)] : 0;
            total.last_bias[0] += __uint_as_float(factors[line][0]) + __uint_as_float(factors[line][1]);
            total.last_bias[1] += __uint_as_float(factors[line][2]) + __uint_as_float(factors[line][3]);
        }
        const int from = line * tail_map_width * 16;
        const std::uint32_t fragment[4] = {map[from + map_word], map[from + (map_word ^ 8)],
                                           map[from + 64 + (map_word ^ 4)], map[from + 64 + (map_word ^ 12)]};
#pragma unroll
        for (int ky = 0; ky < 3; ++ky) {
            const int r = line - ky;
            if (r < 0 || r >= tail_core_y)
                continue;
            multiply_add_tf32(total.last[ky][0], fragment, factors[r][0], factors[r][1]);
            multiply_add_tf32(total.last[ky][1], fragment, factors[r][2], factors[r][3]);
        }
    }
}

/// A row of the gradient of the map, masked by its ReLU.
__device__ inline void store_tail_core(TailMemory& memory, TailSums& total, int row, int first_column,
                                       const float (&sums)[2][4]) {
    const Lane lane;
#pragma unroll
    for (int part = 0; part < 2; ++part) {
        const int column = first_column + lane.g + 8 * part;
        // Even columns first, so that those of one child in each block are neighbours.
        const int place = row * tail_core_width + column % 2 * 16 + column / 2;
        const int x = column + 2;
#pragma unroll
        for (int n = 0; n < 2; ++n) {
            const int chunk = 2 * n + lane.t / 2;
            const float2 out =
                *reinterpret_cast<const float2*>(memory.map + ((row + 2) * tail_map_width + x) * 16 +
                                                 (chunk ^ chunk_turn(x)) * 4 + lane.t % 2 * 2);
            const bool core = column < tail_core_x;
            const float low = out.x > 0.0f && core ? sums[n][2 * part] * tail_centre : 0.0f;
            const float high = out.y > 0.0f && core ? sums[n][2 * part + 1] * tail_centre : 0.0f;
            total.up_bias[2 * n] += low;
            total.up_bias[2 * n + 1] += high;
            *reinterpret_cast<float2*>(memory.core + place * 16 + (chunk ^ chunk_turn(place)) * 4 +
                                       lane.t % 2 * 2) = make_float2(low, high);
        }
    }
}

/// The gradient of `in`, masked by its ReLU: each of four warps writes two rows of 15 pixels.
__device__ inline void store_in_gradient(const TailMemory& memory, const TailPlan& plan, const TailTile& tile,
                                         const float* in, int first_row) {
    const Lane lane;
    const std::uint32_t address = shared_address(memory.core) +
                                  (2 * first_row * tail_core_width + lane.row) * 64 +
                                  (lane.half ^ chunk_turn(lane.row)) * 16;
    float sums[2][4][4] = {};
#pragma unroll
    for (int step = 0; step < 8; ++step) {
        const int child = step / 2;
        std::uint32_t fragments[2][4];
#pragma unroll
        for (int r = 0; r < 2; ++r) {
            load_matrices(fragments[r], (address ^ (step % 2 * 32)) +
                                            ((child / 2 + 2 * r) * tail_core_width + child % 2 * 16) * 64);
        }
#pragma unroll
        for (int pair = 0; pair < 2; ++pair) {
            const uint4 factors = memory.up_turned[(step * 2 + pair) * 32 + lane.index];
#pragma unroll
            for (int r = 0; r < 2; ++r) {
                multiply_add_tf32(sums[r][2 * pair], fragments[r], factors.x, factors.y);
                multiply_add_tf32(sums[r][2 * pair + 1], fragments[r], factors.z, factors.w);
            }
        }
    }
#pragma unroll
    for (int i = 0; i < 4; ++i) {
        const int row = first_row + i / 2;
        const int part = i % 2;
        const int column = lane.g + 8 * part;
        const int y = tile.y / 2 + row;
        const int x = tile.x / 2 + column;
        if (column >= tail_core_x / 2 || y >= plan.height / 2 || x >= plan.width / 2)
            continue;
        float* const to = plan.in_gradient + tile.in_row(plan, y, x) * 32 + 2 * lane.t;
        const float* const values = in + ((row + 1) * tail_in_width + column + 1) * 32 + lane.t % 2 * 2;
#pragma unroll
        for (int n = 0; n < 4; ++n) {
            const float2 out =
                *reinterpret_cast<const float2*>(values + ((2 * n + lane.t / 2) ^ wide_turn(column + 1)) * 4);
            *reinterpret_cast<float2*>(to + 8 * n) =
                make_float2(out.x > 0.0f ? sums[i / 2][n][2 * part] : 0.0f,
                            out.y > 0.0f ? sums[i / 2][n][2 * part + 1] : 0.0f);
        }
    }
}

/// The gradient of the transposed convolution's weights: each of eight warps computes 16 inputs
/// by the 16 channels of one child.
__device__ inline void add_up_gradient(const TailMemory& memory, TailSums& total, const float* in) {
    const Lane lane;
    const int child = lane.warp / 2;
    const int x = lane.t + 1;
    const int in_word =
        tail_in_width * 32 + x * 32 + ((lane.warp % 2 * 4 + lane.g / 4) ^ wide_turn(x)) * 4 + lane.g % 4;
    const int core_word = (child / 2 * tail_core_width + child % 2 * 16 + lane.t) * 16 +
                          ((lane.g / 4) ^ chunk_turn(lane.t)) * 4 + lane.g % 4;
    const auto core = reinterpret_cast<const std::uint32_t*>(memory.core);
#pragma unroll
    for (int i = 0; i < 16; ++i) {
        const float* const pixels = in + i / 2 * tail_in_width * 32 + i % 2 * 8 * 32;
        const std::uint32_t* const slopes = core + i / 2 * 2 * tail_core_width * 16 + i % 2 * 8 * 16;
        const std::uint32_t fragment[4] = {
            __float_as_uint(pixels[in_word]), __float_as_uint(pixels[in_word ^ 8]),
            __float_as_uint(pixels[128 + (in_word ^ 4)]), __float_as_uint(pixels[128 + (in_word ^ 12)])};
        multiply_add_tf32(total.up[0], fragment, slopes[core_word], slopes[64 + (core_word ^ 4)]);
        multiply_add_tf32(total.up[1], fragment, slopes[core_word ^ 8], slopes[64 + (core_word ^ 12)]);
    }
}

/// Adds up over the block's warps, in their order, and writes the block's sums.
__device__ inline void store_tail_sums(TailMemory& memory, const TailPlan& plan, const TailSums& total) {
    const Lane lane;
    float* const out = plan.sums + static_cast<std::size_t>(blockIdx.x) * tail_sums_stride;
    const int column = 2 * lane.t;
    if (lane.warp < 8) {
#pragma unroll
        for (int n = 0; n < 2; ++n) {
            const int row = lane.warp % 2 * 16 + lane.g;
            float* const to = out + tail_up_sums + row * 64 + lane.warp / 2 * 16 + n * 8 + column;
            *reinterpret_cast<float2*>(to) =
                make_float2(total.up[n][0] * tail_centre, total.up[n][1] * tail_centre);
            *reinterpret_cast<float2*>(to + 8 * 64) =
                make_float2(total.up[n][2] * tail_centre, total.up[n][3] * tail_centre);
        }
    }
    __syncthreads(); // the grids are done with: they make room for what four warps have of the same weights
    float* const mine = memory.map + lane.warp % 4 * tail_last_words;
    static_assert(4 * tail_last_words <= tail_map_words);
#pragma unroll
    for (int ky = 0; ky < 3; ++ky) {
#pragma unroll
        for (int n = 0; n < 2; ++n) {
            float* const to = mine + ((ky * 3 + lane.warp / 4) * 16 + lane.g) * 16 + n * 8 + column;
            *reinterpret_cast<float2*>(to) = make_float2(total.last[ky][n][0], total.last[ky][n][1]);
            *reinterpret_cast<float2*>(to + 8 * 16) = make_float2(total.last[ky][n][2], total.last[ky][n][3]);
        }
    }
    float* const biases = memory.bias_sums[lane.warp];
#pragma unroll
    for (int i = 0; i < 4; ++i) {
        const float up_bias = sum_over_rows(total.up_bias[i]);
        if (lane.g == 0) {
            biases[16 + i / 2 * 8 + column + i % 2] = up_bias / tail_centre;
        }
    }
#pragma unroll
    for (int n = 0; n < 2; ++n) {
        float sum = total.last_bias[n];
        sum += __shfl_xor_sync(0xFFFFFFFFu, sum, 1);
        sum += __shfl_xor_sync(0xFFFFFFFFu, sum, 2);
        if (lane.t == 0)
            biases[8 * n + lane.g] = lane.warp < 4 ? sum / tail_centre : 0.0f; // other taps add up the same
    }
    const float loss = sum_over_rows(total.loss);
    if (lane.g == 0)
        biases[32 + lane.t] = loss;
    __syncthreads();
    for (int i = static_cast<int>(threadIdx.x); i < tail_last_words; i += tail_threads) {
        float sum = 0.0f;
#pragma unroll
        for (int warp = 0; warp < 4; ++warp)
            sum += memory.map[warp * tail_last_words + i];
        out[i] = sum;
    }
    if (threadIdx.x < 36) {
        float sum = 0.0f;
#pragma unroll
        for (int warp = 0; warp < tail_threads / 32; ++warp)
            sum += memory.bias_sums[warp][threadIdx.x];
        if (threadIdx.x < 32) {
            out[tail_last_bias_sums + threadIdx.x] = sum;
        } else {
            // Four lanes have a part of the loss each; the first adds them up.
            const unsigned lanes = 0xFu;
            float loss_sum = sum;
            loss_sum += __shfl_down_sync(lanes, loss_sum, 1);
            loss_sum += __shfl_down_sync(lanes, loss_sum, 2);
            if (threadIdx.x == 32)
                out[tail_loss_sum] = loss_sum;
        }
    }
}

} // namespace nn::detail
