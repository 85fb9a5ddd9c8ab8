/// \file
/// What the first team of segmentation_head.cuh ends with: logits, and the loss and its slopes, or the prediction.
#pragma once

#include <cmath>

#include <nn/heads/detail/segmentation_head_forward.cuh>

namespace nn::detail {

/// 2^value; 0 where that is smaller than any normal number.
__device__ inline float power_of_two(float value) {
    float result;
    asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(result) : "f"(value));
    return result;
}

inline constexpr float head_log2_e = 1.44269504f;

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

/// Softmax cross-entropy of a row of 16 pixels, whose labels begin at `labels`. A pixel's classes are four lanes' sums,
/// of which the first `Sums` may be classes (see `head_class`); each lane has two pixels. `to` is where this lane's cell
/// of the slopes is.
template <int Sums>
__device__ inline void compute_tail_slope(const std::uint8_t* labels, std::uint32_t to, float& total_loss,
                                          const float (&sums)[2][4]) {
    const Lane lane{};
    std::uint32_t words[4];
#pragma unroll
    for (int part = 0; part < 2; ++part) {
        const unsigned label = labels[lane.g + 8 * part];
        const int chosen = static_cast<int>(label % head_border) - 2 * lane.t;
        const int chosen_far = static_cast<int>(label % head_border) - lane.t;
        float logits[Sums];
        float greatest = -INFINITY;
#pragma unroll
        for (int i = 0; i < Sums; ++i) {
            logits[i] = sums[i / 2][2 * part + i % 2];
            greatest = i == 0 ? logits[i] : greater_of(greatest, logits[i]);
        }
        greatest = greater_of(greatest, __shfl_xor_sync(0xFFFFFFFFu, greatest, 1));
        greatest = greater_of(greatest, __shfl_xor_sync(0xFFFFFFFFu, greatest, 2));
        // How this is rounded is the same for all classes, and so without effect.
        greatest *= head_log2_e;
        float powers[Sums];
        float exponents[Sums];
        float sum = 0.0f;
#pragma unroll
        for (int i = 0; i < Sums; ++i) {
            exponents[i] = fmaf(logits[i], head_log2_e, -greatest);
            powers[i] = power_of_two(exponents[i]);
            sum = i == 0 ? powers[i] : sum + powers[i];
        }
        sum += __shfl_xor_sync(0xFFFFFFFFu, sum, 1);
        sum += __shfl_xor_sync(0xFFFFFFFFu, sum, 2);

        const float scale = label < head_no_label ? head_slope_scale : 0.0f;
        const float share = inverse_of(sum) * scale;
        float slope[4] = {};
        float exponent = 0.0f;
#pragma unroll
        for (int i = 0; i < Sums; ++i) {
            const bool right = i < 2 ? chosen == i : chosen_far == (i == 2 ? 8 : 12);
            slope[i] = powers[i] * share - (right ? scale : 0.0f);
            exponent = right ? exponents[i] : exponent;
        }
        if (label < head_border)
            total_loss += 0.25f * log2_of(sum) - exponent; // a quarter in each of the four lanes
        words[part] = two_float16(slope[0], slope[1]);
        words[2 + part] = two_float16(slope[2], slope[3]);
    }
    store_matrices(to, words);
}

/// Adds up over the lanes of equal `t`.
__device__ inline float sum_over_rows(float value) {
    for (int distance = 4; distance < 32; distance *= 2)
        value += __shfl_xor_sync(0xFFFFFFFFu, value, distance);
    return value;
}

/// Keeps the sum of a warp's losses, in four parts.
__device__ inline void leave_loss(HeadMemory& memory, float loss) {
    const Lane lane{};
    loss = sum_over_rows(loss);
    if (lane.g == 0)
        memory.losses[lane.warp][lane.t] = loss;
}

// The prediction ------------------------------------------------------------------------------------------------

/// The first greatest class of a row of 16 pixels.
__device__ inline void predict_tail_row(const HeadPlan& plan, const HeadTile& tile, int row, int first_column,
                                        const float (&sums)[2][4]) {
    const Lane lane{};
#pragma unroll
    for (int part = 0; part < 2; ++part) {
        const int column = first_column + lane.g + 8 * part;
        float greatest = -INFINITY;
        int best = 0;
#pragma unroll
        for (int i = 0; i < 4; ++i) {
            const int j = head_class(i / 2 * 8 + 2 * lane.t + i % 2);
            const float logit = sums[i / 2][2 * part + i % 2];
            // The classes of a lane ascend.
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
        const bool core = row >= 1 && row <= head_core_y && column >= 1 && column <= head_core_x;
        if (lane.t == 0 && core && y < plan.height && x < plan.width) {
            plan.predictions[(static_cast<std::size_t>(tile.image) * plan.height + y) * plan.width + x] =
                static_cast<std::uint8_t>(best);
        }
    }
}

// Both ----------------------------------------------------------------------------------------------------------

/// The logits of a tile, and what becomes of them: `Sums` of a lane's may be classes; 0 for predictions.
template <int Sums>
__device__ inline void compute_tail_logits(HeadMemory& memory, const HeadPlan& plan, const HeadTile& tile,
                                           const uint4* map, uint4* slope, float& loss) {
    const Lane lane{};
    // 18 rows for six pairs of warps.
    const int row = lane.warp / 2 * 3;
    const int first_column = lane.warp % 2 * 16;
    const int column = first_column + lane.row;
    const std::uint32_t from =
        cells_address(map, lane.plane * head_map_plane + row * head_map_width + column);
    const std::uint32_t to =
        cells_address(slope, lane.plane * head_slope_plane + row * head_slope_width + column);
    float sums[3][2][4];
#pragma unroll
    for (int r = 0; r < 3; ++r)
        begin_with_bias(sums[r], memory.last_bias);
    convolve_tail_rows<head_map_width>(from, memory.last, 3, sums, [&](int r, const float(&of_row)[2][4]) {
        if constexpr (Sums > 0)
            compute_tail_slope<Sums>(memory.labels + (row + r) * 32 + first_column,
                                     to + r * head_slope_width * 16, loss, of_row);
        else
            predict_tail_row(plan, tile, row + r, first_column, of_row);
    });
}

} // namespace nn::detail
