/// \file
/// The kernels of segmentation_head.hpp.
///
/// A block has two teams of warps, which compute one tile after another: the first computes maps and slopes, and the
/// second, one tile behind, all that follows from them. Grids, in the order of their borders:
///
/// | grid | pixels | origin | what |
/// | --- | --- | --- | --- |
/// | in | 10 × 17 | (y / 2 - 1, x / 2 - 1) | the map of 32 channels |
/// | map | 20 × 34 | (y - 2, x - 2) | 16 channels after the transposed convolution and ReLU |
/// | slope | 18 × 32 | (y - 1, x - 1) | the gradient of the logits, `head_slope_scale` times that of one pixel's loss |
/// | core | 16 × 30 | (y, x) | the gradient of the map, masked; two more columns are 0 |
///
/// The sides are such that logits are two tiles of 16 pixels wide, so that the Tensor Cores waste nothing on
/// borders. A convolution walks down its rows: a row of pixels is loaded once for each of three taps and multiplied
/// into the three rows of results that it is a part of.
#pragma once

#include <cstddef>
#include <cstdint>

#include <nn/core/tensor_cores.cuh>

namespace nn::detail {

inline constexpr int head_threads = 384; // of a team
inline constexpr int head_core_x = 30;
inline constexpr int head_core_y = 16;

// Shared memory is counted in cells of eight channels of a pixel, as float16. A grid has one plane of cells for each
// eight of its channels, so that neighbours are neighbours, and in different banks.
inline constexpr int head_in_width = 17;
inline constexpr int head_in_pixels = 10 * head_in_width;
inline constexpr int head_map_width = 34 + 1;               // one column is 0
inline constexpr int head_map_plane = 20 * head_map_width + // the last tile of `in` has six pixels too many
                                      head_map_width + 13;
inline constexpr int head_slope_width = 32 + 1;                    // one column is 0
inline constexpr int head_slope_plane = 18 * head_slope_width + 1; // a last tile reads a pixel beyond
inline constexpr int head_core_odd = 20;                           // the place of the odd columns in a row
inline constexpr int head_core_width = head_core_odd + 16;
inline constexpr int head_core_plane = 16 * head_core_width;
inline constexpr int head_up_factors = 32 * 64;
inline constexpr int head_last_factors = 9 * 16 * 16;

/// What a block's sums are, one after another.
inline constexpr int head_up_sums = head_last_factors;
inline constexpr int head_last_bias_sums = head_up_sums + head_up_factors;
inline constexpr int head_up_bias_sums = head_last_bias_sums + 16;
inline constexpr int head_loss_sum = head_up_bias_sums + 16;
inline constexpr int head_sums = head_loss_sum + 1;
inline constexpr int head_sums_stride = (head_sums + 31) / 32 * 32;

struct HeadMemory {
    // Factors in the order in which the Tensor Cores take them: eight numbers for a lane.
    uint4 up[head_up_factors / 8];
    uint4 up_transposed[head_up_factors / 8];
    uint4 last[head_last_factors / 8];
    uint4 last_transposed[head_last_factors / 8];
    float up_bias[16];
    float last_bias[16];
    // What the second team reads while the first is at the next tile, and at the one after that.
    uint4 in[4][4 * head_in_pixels];
    // What is on its way from `in` as float32: past the first level cache, which is too small for as much if other kernels'
    // blocks have left most of its memory as shared.
    uint4 coming[4][2 * head_in_pixels];
    uint4 map[2][2 * head_map_plane];
    uint4 slope[2][2 * head_slope_plane];
    uint4 core[2 * head_core_plane];
    std::uint8_t labels[18 * 32];
    float losses[head_threads / 32][4];
};

/// Gradients are on chip this many times what they are for a loss that is one pixel's, and not the mean: logits' reach
/// from -64 to 64, and what is smaller than float16's least normal number is beyond float32's precision there.
inline constexpr float head_slope_scale = 64.0f;

/// A label as the tiles keep it is a class below 16, and more than that beyond the core, where losses are other tiles'.
inline constexpr unsigned head_border = 16;
/// What makes no gradient: pixels beyond the image, and labels that are no class.
inline constexpr unsigned head_no_label = 32;
inline constexpr int head_beyond = 256; // the image, where there is no label at all

struct HeadPlan {
    const float* in;
    const float* up;
    const float* up_bias;
    const float* last;
    const float* last_bias;
    const std::uint8_t* labels;
    std::uint8_t* predictions;
    float* in_gradient;
    float* sums;
    float scale; // of a pixel's loss, and of what is on chip
    int height;
    int width;
    int classes;
    int tile_levels; // of the order of the pixels of `in`
    unsigned tiles_x;
    unsigned tiles_of_image;
    unsigned tiles;
    // Their inverses, as parts of 2^32.
    unsigned tiles_x_inverse;
    unsigned tiles_of_image_inverse;
};

/// Every second bit of the result is a bit of `value`, which has 16.
__device__ inline unsigned spread_bits(unsigned value) {
    value = (value | value << 8) & 0x00FF00FFu;
    value = (value | value << 4) & 0x0F0F0F0Fu;
    value = (value | value << 2) & 0x33333333u;
    return (value | value << 1) & 0x55555555u;
}

/// The part of the work that a team does at a time.
struct HeadTile {
    unsigned image;
    int y; // of the first core pixel
    int x;

    __device__ HeadTile(const HeadPlan& plan, unsigned tile) {
        unsigned place = tile;
        image = divide(place, plan.tiles_of_image, plan.tiles_of_image_inverse);
        y = static_cast<int>(divide(place, plan.tiles_x, plan.tiles_x_inverse)) * head_core_y;
        x = static_cast<int>(place) * head_core_x;
    }
    /// The row of `in` that belongs to a pixel of its own.
    __device__ std::size_t in_row(const HeadPlan& plan, int row, int column) const {
        const int levels = plan.tile_levels;
        const int mask = (1 << levels) - 1;
        const int tile = (row >> levels) * (plan.width / 2 >> levels) + (column >> levels);
        const unsigned within = spread_bits(static_cast<unsigned>(row & mask)) << 1 |
                                spread_bits(static_cast<unsigned>(column & mask));
        const std::size_t pixels = static_cast<std::size_t>(plan.height / 2) * (plan.width / 2);
        return image * pixels + (static_cast<std::size_t>(tile) << (2 * levels)) + within;
    }

private:
    /// Leaves what remains; `inverse` is 2^32 / divisor, rounded down, so that the estimate is one too few at most.
    __device__ static unsigned divide(unsigned& value, unsigned divisor, unsigned inverse) {
        unsigned quotient = __umulhi(value, inverse);
        value -= quotient * divisor;
        if (value >= divisor) {
            value -= divisor;
            ++quotient;
        }
        return quotient;
    }
};

/// The thread's number in its team, read anew each time: what follows from it is computed where it is used, since
/// registers are all taken, and memory for what does not fit is far away.
__device__ inline unsigned thread_of_head() {
    unsigned thread;
    asm volatile("mov.u32 %0, %%tid.x;" : "=r"(thread));
    return thread;
}

/// The named barriers of a block. `slopes_there` and `slopes_read` are two each: for even tiles and for odd tiles.
enum class HeadBarrier : unsigned {
    first_team = 1,
    second_team = 2,
    slopes_there = 3, // and the map that they are of
    slopes_read = 5,
};

/// Waits for the other threads of the team.
__device__ inline void wait_for_team(HeadBarrier barrier) {
    asm volatile("bar.sync %0, %1;" : : "r"(static_cast<unsigned>(barrier)), "n"(head_threads) : "memory");
}
/// Waits for the threads of the other team, and those of one's own.
__device__ inline void wait_for_other_team(HeadBarrier barrier, unsigned tile) {
    asm volatile("bar.sync %0, %1;"
                 :
                 : "r"(static_cast<unsigned>(barrier) + tile % 2), "n"(2 * head_threads)
                 : "memory");
}
/// Lets the other team go on, without waiting.
__device__ inline void release_other_team(HeadBarrier barrier, unsigned tile) {
    asm volatile("bar.arrive %0, %1;"
                 :
                 : "r"(static_cast<unsigned>(barrier) + tile % 2), "n"(2 * head_threads)
                 : "memory");
}

/// Which numbers of a fragment this lane has: rows `g` and `g + 8`, columns 2 t and the next, and those plus 8.
struct Lane {
    unsigned thread = thread_of_head();
    int index = static_cast<int>(thread % 32);
    int g = static_cast<int>(thread % 32 / 4);
    int t = static_cast<int>(thread % 4);
    int warp = static_cast<int>(thread / 32);
    // Of four matrices, which are 16 pixels of two planes: the pixel and the plane that this lane gives the address of.
    int row = static_cast<int>(thread % 16);
    int plane = static_cast<int>(thread % 32 / 16);
};

/// The pixel and the plane that this lane gives the address of where `load_matrices_transposed` loads the left factor of a
/// product over pixels; the right factor has them as above.
__device__ inline int transposed_row(const Lane& lane) { return lane.index % 8 + lane.plane * 8; }
__device__ inline int transposed_plane(const Lane& lane) { return lane.index / 8 % 2; }

/// The class that a column of the logits is. A lane has columns 2 t, 2 t + 1, 8 + 2 t and 9 + 2 t; of the last of
/// these no lane needs to know anything as long as there are no more than 12 classes.
__host__ __device__ constexpr int head_class(int column) {
    return column < 8 ? column : 8 + column % 2 * 4 + (column - 8) / 2;
}
/// The column of a class.
__host__ __device__ constexpr int head_column(int label) {
    return label < 8 ? label : 8 + label % 4 * 2 + (label - 8) / 4;
}

/// The address of the cell that this lane names of 16 pixels from `cell` on.
__device__ inline std::uint32_t cells_address(const uint4* grid, int cell) {
    return shared_address(grid) + static_cast<std::uint32_t>(cell) * 16;
}

} // namespace nn::detail
