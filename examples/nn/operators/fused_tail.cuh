/// \file
/// The kernels of fused_tail.hpp.
///
/// A block computes one tile after another, each in five steps with a barrier where others' results are read. Grids,
/// in the order of their borders:
///
/// | grid | pixels | origin | what |
/// | --- | --- | --- | --- |
/// | in | 10 × 17 | (y / 2 - 1, x / 2 - 1) | the map of 32 channels |
/// | map | 20 × 34 | (y - 2, x - 2) | 16 channels after the transposed convolution and ReLU |
/// | slope | 18 × 32 | (y - 1, x - 1) | the gradient of the logits |
/// | core | 16 × 30 | (y, x) | the gradient of the map, masked; two more columns are 0 |
///
/// The sides are such that logits are two tiles of 16 pixels wide, so that the matrix units waste nothing on
/// borders. A convolution walks down its rows: a row of pixels is loaded once for each of three taps and multiplied
/// into the three rows of results that it is a part of.
#pragma once

#include <cstddef>
#include <cstdint>

#include <nn/operators/matrix_units.cuh>

namespace nn::detail {

inline constexpr int tail_threads = 384;
inline constexpr int tail_core_x = 30;
inline constexpr int tail_core_y = 16;

// Shared memory, in words. Pixels of 16 channels take 16 words, whose four chunks of 16 bytes change places from pixel
// to pixel, so that neighbours lie in different banks; widths are multiples of 8, so that the place does not depend on
// the row.
inline constexpr int tail_in_width = 24;
inline constexpr int tail_map_width = 40;
inline constexpr int tail_slope_width = 32;
inline constexpr int tail_core_width = 32;
inline constexpr int tail_in_words = 10 * tail_in_width * 32;
inline constexpr int tail_map_words = 20 * tail_map_width * 16;
inline constexpr int tail_slope_words =
    (18 * tail_slope_width + 2) * 16; // a last tile reads two pixels beyond
inline constexpr int tail_core_words = 16 * tail_core_width * 16;
inline constexpr int tail_up_words = 32 * 64;
inline constexpr int tail_last_words = 9 * 16 * 16;

/// What a block's sums are, one after another.
inline constexpr int tail_up_sums = tail_last_words;
inline constexpr int tail_last_bias_sums = tail_up_sums + tail_up_words;
inline constexpr int tail_up_bias_sums = tail_last_bias_sums + 16;
inline constexpr int tail_loss_sum = tail_up_bias_sums + 16;
inline constexpr int tail_sums = tail_loss_sum + 1;
inline constexpr int tail_sums_stride = (tail_sums + 31) / 32 * 32;

struct TailMemory {
    // Factors in the order in which the matrix units take them: four words for a lane.
    uint4 up[tail_up_words / 4];
    uint4 up_turned[tail_up_words / 4];
    uint4 last[tail_last_words / 4];
    uint4 last_turned[tail_last_words / 4];
    float in[2][tail_in_words];
    float map[tail_map_words];
    float slope[tail_slope_words];
    float core[tail_core_words];
    float bias_sums[tail_threads / 32][36];
    std::uint8_t labels[18 * 32];
};

/// A label as the tiles keep it: a class below 16, and one or several of these.
inline constexpr int tail_wrong_label = 16;
inline constexpr int tail_no_pixel = 32; // but beyond the image
inline constexpr int tail_core = 64;     // of the tile's own pixels, whose losses it adds up

struct TailPlan {
    const float* in;
    const float* up;
    const float* up_bias;
    const float* last;
    const float* last_bias;
    const std::uint8_t* labels;
    std::uint8_t* predictions;
    float* in_gradient;
    float* sums;
    float scale;
    int height;
    int width;
    int classes;
    int tile_levels; // of the order of the pixels of `in`
    unsigned tiles_x;
    unsigned tiles_of_image;
    unsigned tiles;
};

/// Where the four chunks of a pixel begin: a chunk's number is combined with this by exclusive or.
__device__ inline int chunk_turn(int x) { return (x & 2) | (x >> 2 & 1); }
/// The same for eight chunks.
__device__ inline int wide_turn(int x) { return (x << 1 & 6) | (x >> 2 & 1); }

/// The matrix units cut a number's bits beyond TF32's off, which makes it smaller by half of the last bit kept, on
/// average over all mantissas. What is multiplied by this beforehand is as often too great as too small, and nothing is
/// spent on rounding where there is a product already.
inline constexpr float tail_centre = 1.0f + 0.00034f;

/// Every second bit of the result is a bit of `value`, which has 16.
__device__ inline unsigned spread_bits(unsigned value) {
    value = (value | value << 8) & 0x00FF00FFu;
    value = (value | value << 4) & 0x0F0F0F0Fu;
    value = (value | value << 2) & 0x33333333u;
    return (value | value << 1) & 0x55555555u;
}

/// The part of the work that a block does at a time.
struct TailTile {
    std::size_t image;
    int y; // of the first core pixel
    int x;

    __device__ TailTile(const TailPlan& plan, unsigned tile) : image(tile / plan.tiles_of_image) {
        const unsigned place = tile % plan.tiles_of_image;
        y = static_cast<int>(place / plan.tiles_x) * tail_core_y;
        x = static_cast<int>(place % plan.tiles_x) * tail_core_x;
    }
    /// The row of `in` that belongs to a pixel of its own.
    __device__ std::size_t in_row(const TailPlan& plan, int row, int column) const {
        const int levels = plan.tile_levels;
        const int mask = (1 << levels) - 1;
        const int tile = (row >> levels) * (plan.width / 2 >> levels) + (column >> levels);
        const unsigned within = spread_bits(static_cast<unsigned>(row & mask)) << 1 |
                                spread_bits(static_cast<unsigned>(column & mask));
        const std::size_t pixels = static_cast<std::size_t>(plan.height / 2) * (plan.width / 2);
        return image * pixels + (static_cast<std::size_t>(tile) << (2 * levels)) + within;
    }
};

/// The thread's number, read anew each time: what follows from it is computed where it is used, since registers are all
/// taken, and memory for what does not fit is far away.
__device__ inline int thread_of_tail() {
    int thread;
    asm volatile("mov.u32 %0, %%tid.x;" : "=r"(thread));
    return thread;
}

/// Which numbers of a fragment this lane has: rows `g` and `g + 8`, columns `t` and `t + 4`, of sums 2 t and 2 t + 1.
struct Lane {
    int thread = thread_of_tail();
    int index = thread % 32;
    int g = thread % 32 / 4;
    int t = thread % 4;
    int warp = thread / 32;
    // Of the four matrices that load_matrices loads: the row that this lane gives the address of, and the half of
    // eight columns.
    int row = thread % 16;
    int half = thread % 32 / 16;
};

// Weights -------------------------------------------------------------------------------------------------------

/// Fills the factors. `up` is [32, 64], `last` [144, classes].
__device__ inline void load_tail_weights(TailMemory& memory, const TailPlan& plan) {
    const auto up = reinterpret_cast<std::uint32_t*>(memory.up);
    const auto up_turned = reinterpret_cast<std::uint32_t*>(memory.up_turned);
    const auto last = reinterpret_cast<std::uint32_t*>(memory.last);
    const auto last_turned = reinterpret_cast<std::uint32_t*>(memory.last_turned);
#pragma unroll 4
    for (int i = static_cast<int>(threadIdx.x); i < tail_up_words; i += tail_threads) {
        // [..][lane][tile of a pair][half]: of a step of 8 rows and two tiles of 8 columns.
        const int row = i / 4 % 4 + i % 2 * 4;
        const int column = i / 16 % 8 + i / 2 % 2 * 8;
        const int group = i / 128;
        // [ky][step][kx]
        up[i] = to_tf32(plan.up[(group / 2 % 4 * 8 + row) * 64 + (group / 8 * 2 + group % 2) * 16 + column]);
        // [step][pair]
        up_turned[i] = to_tf32(plan.up[(group % 2 * 16 + column) * 64 + group / 2 * 8 + row]);
    }
#pragma unroll 3
    for (int i = static_cast<int>(threadIdx.x); i < tail_last_words; i += tail_threads) {
        const int row = i / 4 % 4 + i % 2 * 4;
        const int column = i / 16 % 8 + i / 2 % 2 * 8;
        const int tap = i / 256;
        const int depth = i / 128 % 2 * 8 + row; // [tap][step]
        last[i] = column < plan.classes ? to_tf32(plan.last[(tap * 16 + depth) * plan.classes + column]) : 0;
        last_turned[i] =
            depth < plan.classes ? to_tf32(plan.last[((8 - tap) * 16 + column) * plan.classes + depth]) : 0;
    }
}

// The map -------------------------------------------------------------------------------------------------------

/// Begins to copy the tile's part of `in`; zeros beyond the image.
__device__ inline void fetch_tail_in(const TailPlan& plan, const TailTile& tile, const float* to) {
    const std::uint32_t address = shared_address(to);
    for (int i = thread_of_tail(); i < 10 * 17 * 8; i += tail_threads) {
        const int pixel = i / 8;
        const int row = pixel / 17;
        const int column = pixel % 17;
        const int y = tile.y / 2 - 1 + row;
        const int x = tile.x / 2 - 1 + column;
        const bool inside = y >= 0 && y < plan.height / 2 && x >= 0 && x < plan.width / 2;
        const float* const from = plan.in + (inside ? tile.in_row(plan, y, x) * 32 + i % 8 * 4 : 0);
        copy_16_bytes(address + ((row * tail_in_width + column) * 8 + (i % 8 ^ wide_turn(column))) * 16, from,
                      inside);
    }
}

/// The transposed convolution with its ReLU: a warp computes one row of each child block, for two times 16 pixels.
__device__ inline void compute_tail_map(TailMemory& memory, const TailPlan& plan, const TailTile& tile,
                                        const float* in, const float (&bias)[4]) {
    const Lane lane;
    const int ky = lane.warp % 2;
    uint4 factors[4][2];
#pragma unroll
    for (int i = 0; i < 8; ++i)
        factors[i / 2][i % 2] = memory.up[(ky * 8 + i) * 32 + lane.index];
    const std::uint32_t address = shared_address(in);
    const bool border = tile.y < 2 || tile.y + tail_core_y + 2 > plan.height || tile.x < 2 ||
                        tile.x + tail_core_x + 2 > plan.width;
#pragma unroll
    for (int round = 0; round < 2; ++round) {
        const int first = lane.warp / 2 * 16 + round * 96;
        if (first >= 170)
            break;
        const int mine = min(first + lane.row, 169);
        const int column = mine % 17;
        const std::uint32_t pixel = address + (mine / 17 * tail_in_width + column) * 128;
        const int turn = wide_turn(column);
        float sums[2][2][4] = {};
#pragma unroll
        for (int step = 0; step < 4; ++step) {
            std::uint32_t fragment[4];
            load_matrices(fragment, pixel + ((2 * step + lane.half) ^ turn) * 16);
#pragma unroll
            for (int kx = 0; kx < 2; ++kx) {
                multiply_add_tf32(sums[kx][0], fragment, factors[step][kx].x, factors[step][kx].y);
                multiply_add_tf32(sums[kx][1], fragment, factors[step][kx].z, factors[step][kx].w);
            }
        }
#pragma unroll
        for (int part = 0; part < 2; ++part) {
            const int index = first + lane.g + 8 * part;
            if (index >= 170)
                continue;
            const int y = 2 * (index / 17) + ky;
#pragma unroll
            for (int kx = 0; kx < 2; ++kx) {
                const int x = 2 * (index % 17) + kx;
                float* const to = memory.map + (y * tail_map_width + x) * 16 + lane.t % 2 * 2;
                const int turned = (lane.t / 2) ^ chunk_turn(x);
                const bool inside = !border || (tile.y - 2 + y >= 0 && tile.y - 2 + y < plan.height &&
                                                tile.x - 2 + x >= 0 && tile.x - 2 + x < plan.width);
#pragma unroll
                for (int n = 0; n < 2; ++n) {
                    // The sign is decided before anything is rounded.
                    const float low = greater_of(sums[kx][n][2 * part] + bias[2 * n], 0.0f) * tail_centre;
                    const float high =
                        greater_of(sums[kx][n][2 * part + 1] + bias[2 * n + 1], 0.0f) * tail_centre;
                    *reinterpret_cast<float2*>(to + (turned ^ (2 * n)) * 4) =
                        inside ? make_float2(low, high) : make_float2(0.0f, 0.0f);
                }
            }
        }
    }
}

/// The labels of the grid of slopes: first they are asked for, and kept when they are there.
struct TailLabels {
    int labels[2] = {-1, -1};

    __device__ TailLabels(const TailPlan& plan, const TailTile& tile) {
        const Lane lane;
#pragma unroll
        for (int i = 0; i < 2; ++i) {
            const int row = 12 * i + lane.warp;
            const int y = tile.y - 1 + row;
            const int x = tile.x - 1 + lane.index;
            if (row < 18 && y >= 0 && y < plan.height && x >= 0 && x < plan.width) {
                const std::size_t pixel = (tile.image * plan.height + y) * plan.width + x;
                labels[i] = plan.labels == nullptr ? 0 : plan.labels[pixel];
            }
        }
    }
    __device__ void keep(TailMemory& memory, const TailPlan& plan) const {
        const Lane lane;
#pragma unroll
        for (int i = 0; i < 2; ++i) {
            const int row = 12 * i + lane.warp;
            if (row >= 18)
                continue;
            const bool core = row >= 1 && row <= tail_core_y && lane.index >= 1 && lane.index <= tail_core_x;
            const int label =
                (labels[i] < plan.classes ? labels[i] : tail_wrong_label) | (core ? tail_core : 0);
            memory.labels[row * 32 + lane.index] =
                static_cast<std::uint8_t>(labels[i] < 0 ? tail_no_pixel : label);
        }
    }
};

// 3×3 convolutions ----------------------------------------------------------------------------------------------

/// Convolves `Rows` rows of 16 pixels, whose neighbourhoods begin at (`row`, `column`) of a grid `Width` wide;
/// `finish(r, sums)` gets the sums of each, of which only the first `rows` are wanted.
template <int Rows, int Width, class Finish>
__device__ inline void convolve_tail_rows(const float* grid, int row, int column, int rows,
                                          const uint4* factors_memory, const Finish& finish) {
    const Lane lane;
    uint4 factors[18];
#pragma unroll
    for (int i = 0; i < 18; ++i)
        factors[i] = factors_memory[i * 32 + lane.index];
    std::uint32_t address[3];
#pragma unroll
    for (int kx = 0; kx < 3; ++kx) {
        const int x = column + lane.row + kx;
        address[kx] = shared_address(grid) + (row * Width + x) * 64 + (lane.half ^ chunk_turn(x)) * 16;
    }
    float sums[Rows][2][4] = {};
#pragma unroll
    for (int line = 0; line < Rows + 2; ++line) {
        // The last one is beyond what is wanted, and may be beyond the grid.
        if (line == Rows + 1 && rows < Rows)
            break;
#pragma unroll
        for (int kx = 0; kx < 3; ++kx) {
#pragma unroll
            for (int step = 0; step < 2; ++step) {
                std::uint32_t fragment[4];
                load_matrices(fragment, (address[kx] ^ (step * 32)) + line * Width * 64);
#pragma unroll
                for (int ky = 0; ky < 3; ++ky) {
                    const int r = line - ky;
                    if (r < 0 || r >= Rows)
                        continue;
                    const uint4& factor = factors[(ky * 3 + kx) * 2 + step];
                    multiply_add_tf32(sums[r][0], fragment, factor.x, factor.y);
                    multiply_add_tf32(sums[r][1], fragment, factor.z, factor.w);
                }
            }
        }
        if (line >= 2)
            finish(line - 2, sums[line - 2]);
    }
}

} // namespace nn::detail
