/// \file
/// What the first team of fused_tail.cuh computes: maps, logits, and their slopes or the prediction.
#pragma once

#include <cmath>

#include <nn/operators/fused_tail.cuh>

namespace nn::detail {

// Weights -------------------------------------------------------------------------------------------------------

/// Fills the factors, of all threads of the block. `up` is [32, 64], `last` [144, classes].
__device__ inline void load_tail_weights(TailMemory& memory, const TailPlan& plan) {
    const auto up = reinterpret_cast<std::uint32_t*>(memory.up);
    const auto up_turned = reinterpret_cast<std::uint32_t*>(memory.up_turned);
    const auto last = reinterpret_cast<std::uint32_t*>(memory.last);
    const auto last_turned = reinterpret_cast<std::uint32_t*>(memory.last_turned);
    const int thread = static_cast<int>(threadIdx.y * tail_threads + threadIdx.x);
#pragma unroll
    for (int i = thread; i < tail_up_factors / 2; i += 2 * tail_threads) {
        // [..][lane][tile of a pair][half]: of a step of 16 rows and two tiles of 8 columns.
        const int row = i / 4 % 4 * 2 + i % 2 * 8;
        const int column = i / 16 % 8 + i / 2 % 2 * 8;
        const int group = i / 128;
        // [ky][step][kx]
        const float* const from =
            plan.up + (group / 2 % 2 * 16 + row) * 64 + (group / 4 * 2 + group % 2) * 16 + column;
        up[i] = two_float16(from[0], from[64]);
        // [child][pair]
        const float* const turned = plan.up + (group % 2 * 16 + column) * 64 + group / 2 * 16 + row;
        up_turned[i] = two_float16(turned[0], turned[1]);
    }
#pragma unroll
    for (int i = thread; i < tail_last_factors / 2; i += 2 * tail_threads) {
        const int row = i / 4 % 4 * 2 + i % 2 * 8;
        const int column = i / 16 % 8 + i / 2 % 2 * 8;
        const int tap = i / 128;
        const float* const from = plan.last + (tap * 16 + row) * plan.classes + column;
        last[i] = column < plan.classes ? two_float16(from[0], from[plan.classes]) : 0;
        const float* const turned = plan.last + ((8 - tap) * 16 + column) * plan.classes + row;
        last_turned[i] =
            two_float16(row < plan.classes ? turned[0] : 0.0f, row + 1 < plan.classes ? turned[1] : 0.0f);
    }
    if (thread < 16) {
        memory.up_bias[thread] = plan.up_bias[thread];
        // Nothing is as unlikely as what is no class.
        memory.last_bias[thread] = thread < plan.classes ? plan.last_bias[thread] : -INFINITY;
    }
}

/// Sums of 16 pixels by 16 channels that begin with the bias.
__device__ inline void begin_with_bias(float (&sums)[2][4], const float* bias) {
    const Lane lane;
#pragma unroll
    for (int n = 0; n < 2; ++n) {
        const float2 both = *reinterpret_cast<const float2*>(bias + 8 * n + 2 * lane.t);
        sums[n][0] = sums[n][2] = both.x;
        sums[n][1] = sums[n][3] = both.y;
    }
}

// The map -------------------------------------------------------------------------------------------------------

/// A thread's share of a tile's part of `in`: every second four channels of a pixel.
struct TailShare {
    float4 four[4] = {};

    /// Asks for it; zeros beyond the image.
    __device__ void fetch(const TailPlan& plan, const TailTile& tile) {
        const unsigned thread = thread_of_tail();
        const int y = tile.y / 2 - 1 + static_cast<int>(thread / (2 * tail_in_width));
        const int x = tile.x / 2 - 1 + static_cast<int>(thread / 2 % tail_in_width);
        if (thread >= 2 * tail_in_pixels || y < 0 || y >= plan.height / 2 || x < 0 || x >= plan.width / 2)
            return;
        const auto from = reinterpret_cast<const float4*>(plan.in) + tile.in_row(plan, y, x) * 8 + thread % 2;
#pragma unroll
        for (int plane = 0; plane < 4; ++plane)
            four[plane] = __ldcg(from + 2 * plane);
    }
    /// Rounds it to float16.
    __device__ void keep(uint4* in) const {
        const unsigned thread = thread_of_tail();
        if (thread >= 2 * tail_in_pixels)
            return;
#pragma unroll
        for (int plane = 0; plane < 4; ++plane) {
            reinterpret_cast<uint2*>(in)[plane * 2 * tail_in_pixels + static_cast<int>(thread)] = make_uint2(
                two_float16(four[plane].x, four[plane].y), two_float16(four[plane].z, four[plane].w));
        }
    }
};

/// The transposed convolution with its ReLU: a warp computes one row of each child block, for two times 16 pixels.
__device__ inline void compute_tail_map(const TailMemory& memory, const TailPlan& plan, const TailTile& tile,
                                        const uint4* in, uint4* map) {
    const Lane lane;
    const int ky = lane.warp % 2;
    uint4 factors[2][2];
#pragma unroll
    for (int i = 0; i < 4; ++i)
        factors[i / 2][i % 2] = memory.up[(ky * 4 + i) * 32 + lane.index];
    const bool border = tile.y < 2 || tile.y + tail_core_y + 2 > plan.height || tile.x < 2 ||
                        tile.x + tail_core_x + 2 > plan.width;
#pragma unroll
    for (int round = 0; round < 2; ++round) {
        const int first = lane.warp / 2 * 16 + round * 96;
        if (first >= tail_in_pixels)
            break;
        const int pixel = first + lane.row;
        const std::uint32_t from =
            cells_address(in, lane.plane * tail_in_pixels + min(pixel, tail_in_pixels - 1));
        float sums[2][2][4];
        begin_with_bias(sums[0], memory.up_bias);
        begin_with_bias(sums[1], memory.up_bias);
#pragma unroll
        for (int step = 0; step < 2; ++step) {
            std::uint32_t fragment[4];
            load_matrices(fragment, from + step * 2 * tail_in_pixels * 16);
#pragma unroll
            for (int kx = 0; kx < 2; ++kx) {
                multiply_add_f16(sums[kx][0], fragment, factors[step][kx].x, factors[step][kx].y);
                multiply_add_f16(sums[kx][1], fragment, factors[step][kx].z, factors[step][kx].w);
            }
        }
        const int row = static_cast<int>(static_cast<unsigned>(pixel) / tail_in_width);
        const int column = pixel - row * tail_in_width;
        uint4* const to = map + lane.plane * tail_map_plane + (2 * row + ky) * tail_map_width + 2 * column;
#pragma unroll
        for (int kx = 0; kx < 2; ++kx) {
            std::uint32_t words[4];
#pragma unroll
            for (int i = 0; i < 4; ++i)
                words[i] = two_float16_relu(sums[kx][i / 2][i % 2 * 2], sums[kx][i / 2][i % 2 * 2 + 1]);
            store_matrices(shared_address(to + kx), words);
        }
        if (border) {
            const int y = tile.y / 2 - 1 + row;
            const int x = tile.x / 2 - 1 + column;
            __syncwarp();
            if (y < 0 || y >= plan.height / 2 || x < 0 || x >= plan.width / 2)
                to[0] = to[1] = make_uint4(0, 0, 0, 0);
        }
    }
}

// 3×3 convolutions ----------------------------------------------------------------------------------------------

/// Convolves three rows of 16 pixels of a grid `Width` wide, adding to `sums`; `from` is where this lane's cell of the
/// first neighbourhood is. `finish(r, sums)` gets each row's sums, of which only the first `rows` are wanted.
template <int Width, class Finish>
__device__ inline void convolve_tail_rows(std::uint32_t from, const uint4* factors_memory, int rows,
                                          float (&sums)[3][2][4], const Finish& finish) {
#pragma unroll
    for (int kx = 0; kx < 3; ++kx) {
        uint4 factors[3];
#pragma unroll
        for (int ky = 0; ky < 3; ++ky)
            factors[ky] = factors_memory[(ky * 3 + kx) * 32 + thread_of_tail() % 32];
#pragma unroll
        for (int line = 0; line < 5; ++line) {
            // The last one is beyond what is wanted, and may be beyond the grid.
            if (line == 4 && rows < 3)
                break;
            std::uint32_t fragment[4];
            load_matrices(fragment, from + (line * Width + kx) * 16);
#pragma unroll
            for (int ky = 0; ky < 3; ++ky) {
                const int r = line - ky;
                if (r < 0 || r >= 3)
                    continue;
                multiply_add_f16(sums[r][0], fragment, factors[ky].x, factors[ky].y);
                multiply_add_f16(sums[r][1], fragment, factors[ky].z, factors[ky].w);
            }
            if (kx == 2 && line >= 2)
                finish(line - 2, sums[line - 2]);
        }
    }
}

/// 2^value; 0 where that is smaller than any normal number.
__device__ inline float power_of_two(float value) {
    float result;
    asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(result) : "f"(value));
    return result;
}

inline constexpr float tail_log2_e = 1.44269504f;

/// Of normal numbers.
__device__ inline float inverse_of(float value) {
    float result;
    asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(result) : "f"(value));
    return result;
}
__device__ inline float log2_of(float value) {
    float result;
    asm("lg2.approx.ftz.f32 %0, %1;" : "=f"(result) : "f"(value));
    return result;
}

// The loss ------------------------------------------------------------------------------------------------------

/// Softmax cross-entropy of a row of 16 pixels, whose labels begin at `labels`. A pixel's classes are four lanes' sums;
/// each lane has two pixels. `to` is where this lane's cell of the slopes is.
__device__ inline void compute_tail_slope(const std::uint8_t* labels, std::uint32_t to, float& total_loss,
                                          const float (&sums)[2][4]) {
    const Lane lane;
    std::uint32_t words[4];
#pragma unroll
    for (int part = 0; part < 2; ++part) {
        const unsigned label = labels[lane.g + 8 * part];
        const float logits[4] = {sums[0][2 * part], sums[0][2 * part + 1], sums[1][2 * part],
                                 sums[1][2 * part + 1]};
        float greatest = greater_of(greater_of(logits[0], logits[1]), greater_of(logits[2], logits[3]));
        greatest = greater_of(greatest, __shfl_xor_sync(0xFFFFFFFFu, greatest, 1));
        greatest = greater_of(greatest, __shfl_xor_sync(0xFFFFFFFFu, greatest, 2));
        // How this is rounded is the same for all classes, and so without effect.
        greatest *= tail_log2_e;
        float powers[4];
        float exponents[4];
#pragma unroll
        for (int i = 0; i < 4; ++i) {
            exponents[i] = fmaf(logits[i], tail_log2_e, -greatest);
            powers[i] = power_of_two(exponents[i]);
        }
        float sum = (powers[0] + powers[1]) + (powers[2] + powers[3]);
        sum += __shfl_xor_sync(0xFFFFFFFFu, sum, 1);
        sum += __shfl_xor_sync(0xFFFFFFFFu, sum, 2);

        const float scale = label < tail_no_label ? tail_slope_scale : 0.0f;
        const float share = inverse_of(sum) * scale;
        float slope[4];
        float exponent = 0.0f;
#pragma unroll
        for (int i = 0; i < 4; ++i) {
            const bool chosen = static_cast<int>(label % tail_border) - 2 * lane.t == i / 2 * 8 + i % 2;
            slope[i] = powers[i] * share - (chosen ? scale : 0.0f);
            exponent = chosen ? exponents[i] : exponent;
        }
        if (label < tail_border)
            total_loss += 0.25f * log2_of(sum) - exponent; // a quarter in each of the four lanes
        words[part] = two_float16(slope[0], slope[1]);
        words[2 + part] = two_float16(slope[2], slope[3]);
    }
    store_matrices(to, words);
}

/// The first greatest class of a row of 16 pixels.
__device__ inline void predict_tail_row(const TailPlan& plan, const TailTile& tile, int row, int first_column,
                                        const float (&sums)[2][4]) {
    const Lane lane;
#pragma unroll
    for (int part = 0; part < 2; ++part) {
        const int column = first_column + lane.g + 8 * part;
        float greatest = -INFINITY;
        int best = 0;
#pragma unroll
        for (int i = 0; i < 4; ++i) {
            const int j = i / 2 * 8 + 2 * lane.t + i % 2;
            const float logit = sums[i / 2][2 * part + i % 2];
            if (logit > greatest) {
                greatest = logit;
                best = j;
            }
        }
#pragma unroll
        for (int distance = 1; distance < 4; distance *= 2) {
            const float other = __shfl_xor_sync(0xFFFFFFFFu, greatest, distance);
            const int other_best = __shfl_xor_sync(0xFFFFFFFFu, best, distance);
            if (other > greatest || (other == greatest && other_best < best)) {
                greatest = other;
                best = other_best;
            }
        }
        const int y = tile.y - 1 + row;
        const int x = tile.x - 1 + column;
        const bool core = row >= 1 && row <= tail_core_y && column >= 1 && column <= tail_core_x;
        if (lane.t == 0 && core && y < plan.height && x < plan.width) {
            plan.predictions[(static_cast<std::size_t>(tile.image) * plan.height + y) * plan.width + x] =
                static_cast<std::uint8_t>(best);
        }
    }
}

/// The logits of a tile, and what becomes of them.
template <bool Train>
__device__ inline void compute_tail_logits(TailMemory& memory, const TailPlan& plan, const TailTile& tile,
                                           const uint4* map, uint4* slope, const std::uint8_t* labels,
                                           float& loss) {
    const Lane lane;
    // 18 rows for six pairs of warps.
    const int row = lane.warp / 2 * 3;
    const int first_column = lane.warp % 2 * 16;
    const int column = first_column + lane.row;
    const std::uint32_t from =
        cells_address(map, lane.plane * tail_map_plane + row * tail_map_width + column);
    const std::uint32_t to =
        cells_address(slope, lane.plane * tail_slope_plane + row * tail_slope_width + column);
    float sums[3][2][4];
#pragma unroll
    for (int r = 0; r < 3; ++r)
        begin_with_bias(sums[r], memory.last_bias);
    convolve_tail_rows<tail_map_width>(from, memory.last, 3, sums, [&](int r, const float(&of_row)[2][4]) {
        if constexpr (Train)
            compute_tail_slope(labels + (row + r) * 32 + first_column, to + r * tail_slope_width * 16, loss,
                               of_row);
        else
            predict_tail_row(plan, tile, row + r, first_column, of_row);
    });
}

} // namespace nn::detail
