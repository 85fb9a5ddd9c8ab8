/// \file
/// What the first team of segmentation_head.cuh begins with: factors, maps and labels; and the convolution of both teams.
#pragma once

#include <cmath>

#include <nn/heads/detail/segmentation_head.cuh>

namespace nn::detail {

// Weights -------------------------------------------------------------------------------------------------------

/// Where the two numbers of a word of the factors are in a step of 16 rows and two tiles of 8 columns, whose words are
/// [lane][tile][half of the rows]: at (row, column) and (row + 1, column).
struct HeadFactor {
    int thread = static_cast<int>(thread_of_head());
    int row = thread / 4 % 4 * 2 + thread % 2 * 8;
    int column = thread / 16 % 8 + thread / 2 % 2 * 8;
    int word = thread % 128;
    int first_group = thread / 128; // of steps, of which a team fills three at a time
};
inline constexpr int head_groups = head_threads / 128;

/// Fills the factors of the transposed convolution [32, 64], and both biases. By the first team.
__device__ inline void load_tail_up(HeadMemory& memory, const HeadPlan& plan) {
    const HeadFactor factor{};
    const auto up = reinterpret_cast<std::uint32_t*>(memory.up);
#pragma unroll
    for (int group = factor.first_group; group < 8; group += head_groups) {
        // [ky][step][kx]
        const float* const from = plan.up + (group / 2 % 2 * 16 + factor.row) * 64 +
                                  (group / 4 * 2 + group % 2) * 16 + factor.column;
        up[group * 128 + factor.word] = two_float16(from[0], from[64]);
    }
    if (factor.thread < 16) {
        memory.up_bias[factor.thread] = plan.up_bias[factor.thread];
        // A channel that stands for no class gets probability 0.
        const int label = head_class(factor.thread);
        memory.last_bias[factor.thread] = label < plan.classes ? plan.last_bias[label] : -INFINITY;
    }
}

/// Fills those of the 3×3 convolution [144, classes], and what gradients take. By the second team.
__device__ inline void load_tail_last(HeadMemory& memory, const HeadPlan& plan) {
    const HeadFactor factor{};
    const int classes = plan.classes;
    const int of_column = head_class(factor.column);
    const int of_row = head_class(factor.row);
    const int of_next_row = head_class(factor.row + 1);
    const auto last = reinterpret_cast<std::uint32_t*>(memory.last);
    const auto last_transposed = reinterpret_cast<std::uint32_t*>(memory.last_transposed);
    const auto up_transposed = reinterpret_cast<std::uint32_t*>(memory.up_transposed);
#pragma unroll
    for (int tap = factor.first_group; tap < 9; tap += head_groups) {
        const float* const from = plan.last + (tap * 16 + factor.row) * classes + of_column;
        last[tap * 128 + factor.word] = of_column < classes ? two_float16(from[0], from[classes]) : 0;
        const float* const transposed = plan.last + ((8 - tap) * 16 + factor.column) * classes;
        last_transposed[tap * 128 + factor.word] =
            two_float16(of_row < classes ? transposed[of_row] : 0.0f,
                        of_next_row < classes ? transposed[of_next_row] : 0.0f);
    }
#pragma unroll
    for (int group = factor.first_group; group < 8; group += head_groups) {
        // [child][pair]
        const float* const from =
            plan.up + (group % 2 * 16 + factor.column) * 64 + group / 2 * 16 + factor.row;
        up_transposed[group * 128 + factor.word] = two_float16(from[0], from[1]);
    }
}

/// Sums of 16 pixels by 16 channels that begin with the bias.
__device__ inline void begin_with_bias(float (&sums)[2][4], const float* bias) {
    const Lane lane{};
#pragma unroll
    for (int n = 0; n < 2; ++n) {
        const float2 both = *reinterpret_cast<const float2*>(bias + 8 * n + 2 * lane.t);
        sums[n][0] = sums[n][2] = both.x;
        sums[n][1] = sums[n][3] = both.y;
    }
}

// The map -------------------------------------------------------------------------------------------------------

/// A thread's share of a tile's part of `in` is every second four channels of a pixel. Asks for it; zeros beyond the image.
__device__ inline void fetch_share(HeadMemory& memory, const HeadPlan& plan, const HeadTile& tile) {
    const unsigned thread = thread_of_head();
    if (thread >= 2 * head_in_pixels)
        return;
    const int y = tile.y / 2 - 1 + static_cast<int>(thread / (2 * head_in_width));
    const int x = tile.x / 2 - 1 + static_cast<int>(thread / 2 % head_in_width);
    const bool inside = y >= 0 && y < plan.height / 2 && x >= 0 && x < plan.width / 2;
    const auto from =
        reinterpret_cast<const float4*>(plan.in) + (inside ? tile.in_row(plan, y, x) * 8 + thread % 2 : 0);
#pragma unroll
    for (int plane = 0; plane < 4; ++plane)
        copy_16_bytes(shared_address(&memory.coming[plane][thread]), from + 2 * plane, inside);
    commit_copies();
}

/// Rounds it to float16, once it is there.
__device__ inline void keep_share(HeadMemory& memory, uint4* in) {
    const unsigned thread = thread_of_head();
    if (thread >= 2 * head_in_pixels)
        return;
    wait_for_copies<0>(); // which no other thread has asked for, nor reads
#pragma unroll
    for (int plane = 0; plane < 4; ++plane) {
        const float4 four = reinterpret_cast<const float4&>(memory.coming[plane][thread]);
        reinterpret_cast<uint2*>(in)[plane * 2 * head_in_pixels + static_cast<int>(thread)] =
            make_uint2(two_float16(four.x, four.y), two_float16(four.z, four.w));
    }
}

/// The transposed convolution with its ReLU: a warp computes one row of each child block, for two times 16 pixels.
__device__ inline void compute_tail_map(const HeadMemory& memory, const HeadPlan& plan, const HeadTile& tile,
                                        const uint4* in, uint4* map) {
    const Lane lane{};
    const int ky = lane.warp % 2;
    uint4 factors[2][2];
#pragma unroll
    for (int i = 0; i < 4; ++i)
        factors[i / 2][i % 2] = memory.up[(ky * 4 + i) * 32 + lane.index];
    const bool border = tile.y < 2 || tile.y + head_core_y + 2 > plan.height || tile.x < 2 ||
                        tile.x + head_core_x + 2 > plan.width;
#pragma unroll
    for (int round = 0; round < 2; ++round) {
        const int first = lane.warp / 2 * 16 + round * 96;
        if (first >= head_in_pixels)
            break;
        const int pixel = first + lane.row;
        const std::uint32_t from =
            cells_address(in, lane.plane * head_in_pixels + min(pixel, head_in_pixels - 1));
        float sums[2][2][4];
        begin_with_bias(sums[0], memory.up_bias);
        begin_with_bias(sums[1], memory.up_bias);
#pragma unroll
        for (int step = 0; step < 2; ++step) {
            std::uint32_t fragment[4];
            load_matrices(fragment, from + step * 2 * head_in_pixels * 16);
#pragma unroll
            for (int kx = 0; kx < 2; ++kx) {
                multiply_add_f16(sums[kx][0], fragment, factors[step][kx].x, factors[step][kx].y);
                multiply_add_f16(sums[kx][1], fragment, factors[step][kx].z, factors[step][kx].w);
            }
        }
        const int row = static_cast<int>(static_cast<unsigned>(pixel) / head_in_width);
        const int column = pixel - row * head_in_width;
        uint4* const to = map + lane.plane * head_map_plane + (2 * row + ky) * head_map_width + 2 * column;
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

/// The labels of the grid of slopes: first they are asked for, and kept when they are there.
struct HeadLabels {
    int labels[2] = {head_beyond, head_beyond};

    __device__ void fetch(const HeadPlan& plan, const HeadTile& tile) {
        const Lane lane{};
#pragma unroll
        for (int i = 0; i < 2; ++i) {
            const int row = 12 * i + lane.warp;
            const int y = tile.y - 1 + row;
            const int x = tile.x - 1 + lane.index;
            if (row < 18 && y >= 0 && y < plan.height && x >= 0 && x < plan.width) {
                labels[i] =
                    plan.labels[(static_cast<std::size_t>(tile.image) * plan.height + y) * plan.width + x];
            }
        }
    }
    /// NaN, to be added to the loss, if one of them is no class; otherwise 0.
    __device__ float keep(std::uint8_t* to, const HeadPlan& plan) const {
        const Lane lane{};
        float wrong = 0.0f;
#pragma unroll
        for (int i = 0; i < 2; ++i) {
            const int row = 12 * i + lane.warp;
            if (row >= 18)
                continue;
            const bool core = row >= 1 && row <= head_core_y && lane.index >= 1 && lane.index <= head_core_x;
            unsigned label = static_cast<unsigned>(labels[i]) + (core ? 0 : head_border);
            if (labels[i] >= plan.classes) {
                label = head_no_label;
                wrong = labels[i] == head_beyond ? wrong : NAN;
            }
            to[row * 32 + lane.index] = static_cast<std::uint8_t>(label);
        }
        return wrong;
    }
};

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
            factors[ky] = factors_memory[(ky * 3 + kx) * 32 + thread_of_head() % 32];
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

} // namespace nn::detail
