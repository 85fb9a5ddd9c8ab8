/// \file
/// What the second team of segmentation_head.cuh computes: gradients, and what adds them up.
#pragma once

#include <nn/heads/detail/segmentation_head_forward.cuh>

namespace nn::detail {

/// What a thread of the second team adds up over all tiles: its share of the gradients of weights, as the Tensor Cores
/// give them, and of the biases'.
struct HeadSums {
    float last[3][4] = {}; // for each ky
    float up[2][2][4] = {};
    float bias[4] = {}; // of which layer, the warp says
};

/// 1 and 1 in float16.
inline constexpr std::uint32_t head_ones = 0x3C003C00u;

// Gradients -----------------------------------------------------------------------------------------------------

/// The gradient of the 3×3 convolution's weights: a warp takes 16 columns of the core, one column of taps and eight
/// columns of logits. A row of the map's pixels is loaded once, and meets the three rows of slopes that it is a
/// neighbour of.
__device__ inline void add_last_gradient(const uint4* map_grid, const uint4* slope_grid, HeadSums& total) {
    const Lane lane{};
    const int kx = lane.warp / 4;
    const int half = lane.warp / 2 % 2;
    const int first_column = lane.warp % 2 * 16 + 1;
    const int column = first_column + lane.row;
    // Two rows at a time. Columns beyond the core belong to other tiles.
    const std::uint32_t slope =
        cells_address(slope_grid, half * head_slope_plane + (1 + lane.plane) * head_slope_width +
                                      (column <= head_core_x ? column : head_slope_width - 1));
    const std::uint32_t map =
        cells_address(map_grid, transposed_plane(lane) * head_map_plane + head_map_width + first_column +
                                    transposed_row(lane) + kx);
    std::uint32_t slopes[head_core_y / 2][4];
#pragma unroll
    for (int line = 0; line < head_core_y + 2; ++line) {
        if (line < head_core_y && line % 2 == 0) {
            load_matrices_transposed(slopes[line / 2], slope + line * head_slope_width * 16);
            // As a left factor, these are the same eight columns of logits of other pixels in each quarter.
            if (kx == 0)
                multiply_add_f16(total.bias, slopes[line / 2], head_ones, head_ones);
        }
        std::uint32_t fragment[4];
        load_matrices_transposed(fragment, map + line * head_map_width * 16);
#pragma unroll
        for (int ky = 0; ky < 3; ++ky) {
            const int r = line - ky;
            if (r >= 0 && r < head_core_y) {
                multiply_add_f16(total.last[ky], fragment, slopes[r / 2][r % 2 * 2],
                                 slopes[r / 2][r % 2 * 2 + 1]);
            }
        }
    }
}

/// A row of the gradient of the map, masked by its ReLU. `mask` is where this lane's cell of the map is, and `to` that
/// of the core.
__device__ inline void store_tail_core(std::uint32_t mask, std::uint32_t to, const float (&sums)[2][4]) {
    std::uint32_t out[4];
    std::uint32_t words[4];
    load_matrices(out, mask);
#pragma unroll
    for (int i = 0; i < 4; ++i) {
        words[i] = two_float16(sums[i / 2][i % 2 * 2], sums[i / 2][i % 2 * 2 + 1]) & positive_float16(out[i]);
    }
    store_matrices(to, words);
}

/// The gradient of the map.
__device__ inline void compute_tail_core(HeadMemory& memory, const uint4* map_grid, const uint4* slope_grid) {
    const Lane lane{};
    // 16 rows for six pairs of warps: 3, 3, 3, 3, 2 and 2.
    const int group = lane.warp / 2;
    const int row = group * 3 - max(group - 4, 0);
    const int column = lane.warp % 2 * 16 + lane.row;
    const std::uint32_t from =
        cells_address(slope_grid, lane.plane * head_slope_plane + row * head_slope_width + column);
    // What is beyond the core meets a map of 0.
    const std::uint32_t mask =
        cells_address(map_grid, lane.plane * head_map_plane + (row + 2) * head_map_width +
                                    (column < head_core_x ? column + 2 : head_map_width - 1));
    // Even columns first, so that those of one child in each block are neighbours.
    const std::uint32_t to = cells_address(memory.core, lane.plane * head_core_plane + row * head_core_width +
                                                            column % 2 * head_core_odd + column / 2);
    float sums[3][2][4] = {};
    convolve_tail_rows<head_slope_width>(
        from, memory.last_transposed, group < 4 ? 3 : 2, sums, [&](int r, const float(&of_row)[2][4]) {
            store_tail_core(mask + r * head_map_width * 16, to + r * head_core_width * 16, of_row);
        });
}

/// A row of the gradient of `in`, 15 pixels, masked by its ReLU.
__device__ inline void store_in_gradient(const HeadMemory& memory, const HeadPlan& plan, const HeadTile& tile,
                                         const uint4* in, int row) {
    const Lane lane{};
    const std::uint32_t from =
        cells_address(memory.core, lane.plane * head_core_plane + 2 * row * head_core_width + lane.row);
    float sums[4][4] = {};
#pragma unroll
    for (int child = 0; child < 4; ++child) {
        std::uint32_t fragment[4];
        load_matrices(fragment, from + (child / 2 * head_core_width + child % 2 * head_core_odd) * 16);
#pragma unroll
        for (int pair = 0; pair < 2; ++pair) {
            const uint4 factors = memory.up_transposed[(child * 2 + pair) * 32 + lane.index];
            multiply_add_f16(sums[2 * pair], fragment, factors.x, factors.y);
            multiply_add_f16(sums[2 * pair + 1], fragment, factors.z, factors.w);
        }
    }
    const std::uint32_t mask =
        cells_address(in, lane.plane * head_in_pixels + (row + 1) * head_in_width + 1 + lane.row);
    std::uint32_t out[2][4];
    load_matrices(out[0], mask);
    load_matrices(out[1], mask + 2 * head_in_pixels * 16);
#pragma unroll
    for (int part = 0; part < 2; ++part) {
        const int column = lane.g + 8 * part;
        const int y = tile.y / 2 + row;
        const int x = tile.x / 2 + column;
        if (column >= head_core_x / 2 || y >= plan.height / 2 || x >= plan.width / 2)
            continue;
        float* const to = plan.in_gradient + tile.in_row(plan, y, x) * 32 + 2 * lane.t;
#pragma unroll
        for (int n = 0; n < 4; ++n) {
            const std::uint32_t mine = positive_float16(out[n / 2][n % 2 * 2 + part]);
            const float low = (mine & 0xFFFFu) != 0 ? sums[n][2 * part] * plan.scale : 0.0f;
            const float high = (mine >> 16) != 0 ? sums[n][2 * part + 1] * plan.scale : 0.0f;
            __stcg(reinterpret_cast<float2*>(to + 8 * n), make_float2(low, high));
        }
    }
}

/// The gradient of the transposed convolution's weights: each of the last four warps computes the 32 inputs by the 16
/// channels of one child.
__device__ inline void add_up_gradient(const HeadMemory& memory, HeadSums& total, const uint4* in) {
    const Lane lane{};
    const int child = lane.warp - 8;
    const std::uint32_t pixels =
        cells_address(in, transposed_plane(lane) * head_in_pixels + head_in_width + 1 + transposed_row(lane));
    const std::uint32_t core =
        cells_address(memory.core, lane.plane * head_core_plane + child / 2 * head_core_width +
                                       child % 2 * head_core_odd + lane.row);
    // As a left factor, these are the first eight channels before the other eight, where there should be pixels: even
    // columns get the sums of the former, and odd ones of the latter.
    const std::uint32_t first = lane.g % 2 == 0 ? head_ones : 0;
#pragma unroll
    for (int row = 0; row < head_core_y / 2; ++row) {
        std::uint32_t of_core[4];
        load_matrices_transposed(of_core, core + row * 2 * head_core_width * 16);
#pragma unroll
        for (int half = 0; half < 2; ++half) {
            std::uint32_t of_in[4];
            load_matrices_transposed(of_in, pixels + (half * 2 * head_in_pixels + row * head_in_width) * 16);
            multiply_add_f16(total.up[half][0], of_in, of_core[0], of_core[1]);
            multiply_add_f16(total.up[half][1], of_in, of_core[2], of_core[3]);
        }
        multiply_add_f16(total.bias, of_core, first, head_ones - first);
    }
}

/// What the second team leaves for the block's sums, in place of `in`.
struct HeadTeamSums {
    float last[2][head_last_factors]; // of two warps
    float up[head_up_factors];
    float bias[12][16];
};
static_assert(sizeof(HeadTeamSums) <= sizeof(HeadMemory::in));

__device__ inline HeadTeamSums& head_team_sums(HeadMemory& memory) {
    return *reinterpret_cast<HeadTeamSums*>(memory.in);
}

__device__ inline void leave_gradients(HeadMemory& memory, const HeadSums& total) {
    const Lane lane{};
    HeadTeamSums& sums = head_team_sums(memory);
    const auto keep = [&](float* to, int stride, const float(&four)[4]) {
        float* const mine = to + lane.g * stride + 2 * lane.t;
        *reinterpret_cast<float2*>(mine) = make_float2(four[0], four[1]);
        *reinterpret_cast<float2*>(mine + 8 * stride) = make_float2(four[2], four[3]);
    };
#pragma unroll
    for (int ky = 0; ky < 3; ++ky) {
        keep(sums.last[lane.warp % 2] + (ky * 3 + lane.warp / 4) * 256 + lane.warp / 2 % 2 * 8, 16,
             total.last[ky]);
    }
    if (lane.warp >= 8) {
#pragma unroll
        for (int i = 0; i < 4; ++i)
            keep(sums.up + i / 2 * 16 * 64 + (lane.warp - 8) * 16 + i % 2 * 8, 64, total.up[i / 2][i % 2]);
    }
    if (lane.t == 0) {
        sums.bias[lane.warp][lane.g] = total.bias[0] + total.bias[2];
        sums.bias[lane.warp][lane.g + 8] = total.bias[1] + total.bias[3];
    }
}

/// Adds up over the block's warps, in their order, and writes the block's sums.
__device__ inline void store_tail_sums(HeadMemory& memory, const HeadPlan& plan) {
    const HeadTeamSums& sums = head_team_sums(memory);
    float* const out = plan.sums + static_cast<std::size_t>(blockIdx.x) * head_sums_stride;
    const int thread = static_cast<int>(threadIdx.y * head_threads + threadIdx.x);
    for (int i = thread; i < head_loss_sum; i += 2 * head_threads) {
        float sum = 0.0f;
        if (i < head_up_sums) {
            const int from = i - i % 16 + head_column(i % 16);
            sum = sums.last[0][from] + sums.last[1][from];
        } else if (i < head_last_bias_sums) {
            sum = sums.up[i - head_up_sums];
        } else if (i < head_up_bias_sums) {
            // Warps 0 and 1 have the first eight columns, 2 and 3 the others.
            const int column = head_column(i - head_last_bias_sums);
            const float(*const two)[16] = sums.bias + column / 8 * 2;
            sum = two[0][column % 8] + two[1][column % 8];
        } else {
            // The last four have a child's each.
#pragma unroll
            for (int warp = 8; warp < 12; ++warp)
                sum += sums.bias[warp][i % 16];
        }
        out[i] = sum * plan.scale;
    }
    if (thread == 0) {
        float sum = 0.0f;
        for (const float(&of_warp)[4] : memory.losses)
            sum += (of_warp[0] + of_warp[1]) + (of_warp[2] + of_warp[3]);
        out[head_loss_sum] = sum * 0.693147181f;
    }
}

} // namespace nn::detail
