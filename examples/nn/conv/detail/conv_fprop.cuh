/// \file
/// The kernels behind conv_fprop.hpp whose products are Tensor Cores'. How they want the weights packed is in
/// conv_pack_weights.cuh.
///
/// A warp's tile of the product, 16 pixels by 8 channels, takes its 16 rows from eight pools: row r is the left pixel
/// of pool r, row r + 8 the right one, and a second tile holds the pixels below. A thread then has the four values
/// of a pool in its own registers, and pools without shuffles. Channels are assigned to the columns such
/// that a thread's results lie side by side in memory.
#pragma once

#include <cstddef>
#include <cstdint>

#include <nn/conv/detail/conv_shape.hpp>
#include <nn/conv/detail/pool_routes.cuh>
#include <nn/core/tensor_cores.cuh>

namespace nn::detail {

/// Which part of which image a block convolves, and to which group of channels.
struct ConvTile {
    int group;
    int tile_x;
    int tile_y;
    std::size_t image;

    // The groups of a tile are neighbours, so that all but the first find it in the cache.
    __device__ ConvTile(const ConvShape& shape, unsigned index, unsigned groups) {
        group = static_cast<int>(index % groups);
        index /= groups;
        const unsigned tile = index % shape.tiles;
        tile_x = static_cast<int>(tile % shape.tiles_x);
        tile_y = static_cast<int>(tile / shape.tiles_x);
        image = index / shape.tiles;
    }
};

/// Pool, bias and ReLU for a pair of neighbouring channels: columns 2 t and 2 t + 1 of the two tiles.
__device__ inline std::uint32_t pooled_pair(const float (&upper)[4], const float (&lower)[4], float bias0,
                                            float bias1) {
    const float first = greater_of(greater_of(upper[0], upper[2]), greater_of(lower[0], lower[2])) + bias0;
    const float second = greater_of(greater_of(upper[1], upper[3]), greater_of(lower[1], lower[3])) + bias1;
    return two_bfloat16(greater_of(first, 0.0f), greater_of(second, 0.0f));
}

/// The routes of the same pools, of which `pooled` is the result.
__device__ inline std::uint32_t routes_of_pools(const float (&upper)[4], const float (&lower)[4],
                                                std::uint32_t pooled) {
    return route_pair(two_bfloat16(upper[0], upper[1]), two_bfloat16(upper[2], upper[3]),
                      two_bfloat16(lower[0], lower[1]), two_bfloat16(lower[2], lower[3]), pooled);
}

// Four channels: a row of three taps is a step of the Tensor Cores. ---------------------------------------------

inline constexpr int narrow_tile_x = 64; // pixels of the convolution that a block computes
inline constexpr int narrow_tile_y = 16;
// With a border of one, and one more pixel, since a step covers four taps, of which the last has no weight.
inline constexpr int narrow_row = narrow_tile_x + 4;

/// 4 channels to a group of 16. A pixel is 8 bytes, so that the channels of taps kx … kx + 3 are neighbours, and a
/// fragment is a word of shared memory. `Routes`: writes those too, and pooled maps only if asked for.
template <bool Routes>
__global__ void __launch_bounds__(conv_threads)
    conv_fprop_narrow_kernel(const std::uint16_t* maps, ConvShape shape, const std::uint32_t* packed,
                             const float* bias, std::uint16_t* pooled, std::uint32_t* routes) {
    __shared__ uint2 tile[(narrow_tile_y + 2) * narrow_row];
    const ConvTile place(shape, blockIdx.x, static_cast<unsigned>(shape.outputs) / 16);
    const int thread = static_cast<int>(threadIdx.x);
    const uint2* const image = reinterpret_cast<const uint2*>(maps) +
                               place.image * static_cast<std::size_t>(shape.height) * shape.width;
    for (int i = thread; i < (narrow_tile_y + 2) * narrow_row; i += conv_threads) {
        const int y = place.tile_y * narrow_tile_y + i / narrow_row - 1;
        const int x = place.tile_x * narrow_tile_x + i % narrow_row - 1;
        const bool inside = y >= 0 && y < shape.height && x >= 0 && x < shape.width;
        tile[i] = inside ? image[static_cast<std::size_t>(y) * shape.width + x] : make_uint2(0, 0);
    }
    const int lane = thread % 32;
    const int quad = lane % 4;
    uint2 factors[3][2];
#pragma unroll
    for (int i = 0; i < 6; ++i)
        factors[i / 2][i % 2] = reinterpret_cast<const uint2*>(packed)[(place.group * 6 + i) * 32 + lane];
    const int channel = place.group * 16 + quad * 4;
    const float4 shift = *reinterpret_cast<const float4*>(bias + channel);
    __syncthreads();

    const std::uint32_t* const words = reinterpret_cast<const std::uint32_t*>(tile);
    const int pooled_width = shape.width / 2;
    const int pooled_height = shape.height / 2;
    // Eight pools side by side at a time.
    for (int i = thread / 32; i < narrow_tile_y / 2 * (narrow_tile_x / 16); i += conv_threads / 32) {
        const int row = i / (narrow_tile_x / 16);
        const int first = i % (narrow_tile_x / 16) * 8;
        std::uint32_t pixels[4][4];
#pragma unroll
        for (int r = 0; r < 4; ++r) {
            const int word = ((2 * row + r) * narrow_row + 2 * (first + lane / 4)) * 2 + quad;
#pragma unroll
            for (int f = 0; f < 4; ++f)
                pixels[r][f] = words[word + 2 * f];
        }
        float sums[2][2][4] = {};
#pragma unroll
        for (int ky = 0; ky < 3; ++ky) {
#pragma unroll
            for (int below = 0; below < 2; ++below) {
                multiply_add(sums[below][0], pixels[below + ky], factors[ky][0].x, factors[ky][0].y);
                multiply_add(sums[below][1], pixels[below + ky], factors[ky][1].x, factors[ky][1].y);
            }
        }
        const int px = place.tile_x * (narrow_tile_x / 2) + first + lane / 4;
        const int py = place.tile_y * (narrow_tile_y / 2) + row;
        if (px < pooled_width && py < pooled_height) {
            const std::size_t pixel = (place.image * pooled_height + py) * pooled_width + px;
            const std::size_t element = pixel * shape.outputs + channel;
            const std::uint32_t first_pair = pooled_pair(sums[0][0], sums[1][0], shift.x, shift.y);
            const std::uint32_t second_pair = pooled_pair(sums[0][1], sums[1][1], shift.z, shift.w);
            if constexpr (Routes) {
                reinterpret_cast<std::uint16_t*>(routes)[element / 4] =
                    static_cast<std::uint16_t>(routes_of_pools(sums[0][0], sums[1][0], first_pair) |
                                               routes_of_pools(sums[0][1], sums[1][1], second_pair) << 8);
            }
            if (!Routes || pooled != nullptr)
                *reinterpret_cast<uint2*>(pooled + element) = make_uint2(first_pair, second_pair);
        }
    }
}

// 16 channels and more: a tap's channels are one or several steps. ----------------------------------------------

/// How a block that convolves 16×16 pixels to 64 channels uses shared memory: the pixels with a border of one, then a
/// ring of weights: in each place those of 16 inputs and three taps, one below the other.
template <int Inputs>
struct FpropTile {
    static constexpr int side = 16;
    static constexpr int row = side + 2;
    static constexpr int chunks = Inputs / 8; // of 16 bytes, in a pixel
    static constexpr int pixel_bytes = 2 * Inputs;
    static constexpr int pixels = row * row;
    static constexpr int steps = Inputs / 16;
    static constexpr int turns = 3 * steps;
    static constexpr int stage_bytes = 3 * 2048;
    // Two blocks share a multiprocessor, whose registers their sums fill; where all weights fit, all are kept.
    static constexpr int stages = Inputs == 64 ? 4 : turns;
    static_assert(turns % stages == 0); // so that each turn has its place, whatever the group
    static constexpr int bytes = pixels * pixel_bytes + stages * stage_bytes;

    /// Even columns first, then odd ones: the eight pixels that a matrix's rows are then follow one another.
    static __device__ int pixel(int y, int x) { return y * row + (x & 1) * (row / 2) + (x >> 1); }
    /// Chunks change places from pixel to pixel, such that eight that follow one another lie in different banks.
    static __device__ int offset(int pixel, int chunk) {
        const int turn = static_cast<int>(static_cast<unsigned>(pixel) / (8 / chunks) % chunks);
        return pixel * pixel_bytes + (chunk ^ turn) * 16;
    }
};

/// Adds to a warp's 4×16 pixels what three taps, one below the other, and 16 inputs contribute, from column `x`
/// and line `line` of the pixels on. Six rows of them are loaded, each of which serves up to three rows of
/// results.
template <class Pixels, std::size_t Tiles>
__device__ inline void add_taps(float (&sums)[4][Tiles][4], std::uint32_t pixels, int line, int x, int chunk,
                                const uint4* factors, int lane) {
    constexpr int pairs = static_cast<int>(Tiles / 2);
    std::uint32_t fragments[6][4];
#pragma unroll
    for (int i = 0; i < 6; ++i)
        load_matrices(fragments[i], pixels + Pixels::offset(Pixels::pixel(line + i, x), chunk));
#pragma unroll
    for (int ky = 0; ky < 3; ++ky) {
#pragma unroll
        for (int pair = 0; pair < pairs; ++pair) {
            const uint4 factor = factors[(ky * pairs + pair) * 32 + lane];
#pragma unroll
            for (int i = 0; i < 4; ++i) {
                multiply_add(sums[i][2 * pair], fragments[i + ky], factor.x, factor.y);
                multiply_add(sums[i][2 * pair + 1], fragments[i + ky], factor.z, factor.w);
            }
        }
    }
}

/// Begins to copy a block's pixels, with their border, to shared memory at `pixels`.
template <int Inputs>
__device__ __forceinline__ void copy_tile(std::uint32_t pixels, const std::uint16_t* maps,
                                          const ConvShape& shape, const ConvTile& place) {
    using Tile = FpropTile<Inputs>;
    const int thread = static_cast<int>(threadIdx.x);
    const std::uint16_t* const image =
        maps + place.image * static_cast<std::size_t>(shape.height) * shape.width * Inputs;
    for (int i = thread; i < Tile::pixels * Tile::chunks; i += conv_threads) {
        const int chunk = i % Tile::chunks;
        const int tile_y = i / Tile::chunks / Tile::row;
        const int tile_x = i / Tile::chunks % Tile::row;
        const int y = place.tile_y * Tile::side + tile_y - 1;
        const int x = place.tile_x * Tile::side + tile_x - 1;
        const bool inside = y >= 0 && y < shape.height && x >= 0 && x < shape.width;
        const std::size_t from =
            inside ? (static_cast<std::size_t>(y) * shape.width + x) * Inputs + chunk * 8 : 0;
        copy_16_bytes(pixels + Tile::offset(Tile::pixel(tile_y, tile_x), chunk), image + from, inside);
    }
}

/// Pools two rows of pixels, eight of a thread's channels from `channel` on, and stores them at `element`.
template <bool Routes>
__device__ __forceinline__ void store_pools(const float (&upper)[8][4], const float (&lower)[8][4], int part,
                                            const float* bias, int channel, std::size_t element,
                                            std::uint16_t* pooled, std::uint32_t* routes) {
    std::uint32_t words[4];
    std::uint32_t route = 0;
#pragma unroll
    for (int n = 0; n < 4; ++n) {
        const auto& above = upper[4 * part + n];
        const auto& below = lower[4 * part + n];
        const float bias0 = bias[channel + 2 * n];
        const float bias1 = bias[channel + 2 * n + 1];
        words[n] = pooled_pair(above, below, bias0, bias1);
        if constexpr (Routes)
            route |= routes_of_pools(above, below, words[n]) << (8 * n);
    }
    if constexpr (Routes)
        routes[element / 8] = route;
    if (!Routes || pooled != nullptr)
        *reinterpret_cast<uint4*>(pooled + element) = make_uint4(words[0], words[1], words[2], words[3]);
}

/// `Inputs` channels to `groups` groups of 64, one after another; one, unless it is 64 inputs. Each of four
/// warps computes 4×16 pixels. `Routes`: writes those too, and pooled maps only if asked for.
template <int Inputs, bool Routes>
__global__ void __launch_bounds__(conv_threads, 2)
    conv_fprop_kernel(const std::uint16_t* maps, ConvShape shape, int groups, const std::uint32_t* packed,
                      const float* bias, std::uint16_t* pooled, std::uint32_t* routes) {
    using Tile = FpropTile<Inputs>;
    extern __shared__ uint4 conv_memory[];
    if constexpr (Inputs != 64)
        groups = 1; // known to the compiler
    const ConvTile place(shape, blockIdx.x, static_cast<unsigned>(shape.outputs / 64 / groups));
    const int thread = static_cast<int>(threadIdx.x);
    const int lane = thread % 32;
    const int warp = thread / 32;
    const std::uint32_t pixels = shared_address(conv_memory);
    const std::uint32_t ring = pixels + Tile::pixels * Tile::pixel_bytes;
    const uint4* const weights = reinterpret_cast<const uint4*>(packed) +
                                 static_cast<std::size_t>(place.group * groups) * 9 * Tile::steps * 128;

    const auto fetch = [&](int group, int turn) {
        const std::uint32_t to = ring + (turn % Tile::stages) * Tile::stage_bytes;
        const uint4* const from = weights + (group * Tile::turns + turn) * (Tile::stage_bytes / 16);
#pragma unroll
        for (int i = 0; i < Tile::stage_bytes / 16 / conv_threads; ++i) {
            const int chunk = i * conv_threads + thread;
            copy_16_bytes(to + chunk * 16, from + chunk);
        }
    };
    copy_tile<Inputs>(pixels, maps, shape, place);
    // The first group of copies is the pixels and the first weights, each further one a turn's weights.
#pragma unroll
    for (int turn = 0; turn < Tile::stages - 1; ++turn) {
        fetch(0, turn);
        commit_copies();
    }

    // Which row of which of the four matrices of a fragment this lane gives the address of.
    const int matrix_x = 2 * (lane % 8) + lane / 8 % 2;
    const int half = lane / 16;
    const int pooled_width = shape.width / 2;
    const int pooled_height = shape.height / 2;
    const int px = place.tile_x * (Tile::side / 2) + lane / 4;
    for (int group = 0; group < groups; ++group) {
        float sums[4][8][4] = {};
#pragma unroll
        for (int kx = 0; kx < 3; ++kx) {
            for (int step = 0; step < Tile::steps; ++step) {
                const int turn = kx * Tile::steps + step;
                const int ahead = turn + Tile::stages - 1;
                wait_for_copies<Tile::stages - 2>();
                // What others copied is there; and all are done with the turn before, whose place is filled next.
                __syncthreads();
                if (ahead < Tile::turns || group + 1 < groups)
                    fetch(group, ahead);
                commit_copies(); // maybe an empty group, so that the count stays right
                add_taps<Tile>(
                    sums, pixels, 4 * warp, matrix_x + kx, 2 * step + half,
                    conv_memory +
                        (Tile::pixels * Tile::pixel_bytes + turn % Tile::stages * Tile::stage_bytes) / 16,
                    lane);
            }
        }

#pragma unroll
        for (int row = 0; row < 2; ++row) {
            const int py = place.tile_y * (Tile::side / 2) + 2 * warp + row;
            if (px >= pooled_width || py >= pooled_height)
                continue;
            const std::size_t at = (place.image * pooled_height + py) * pooled_width + px;
#pragma unroll
            for (int part = 0; part < 2; ++part) {
                const int channel = (place.group * groups + group) * 64 + part * 32 + lane % 4 * 8;
                store_pools<Routes>(sums[2 * row], sums[2 * row + 1], part, bias, channel,
                                    at * shape.outputs + channel, pooled, routes);
            }
        }
    }
}

} // namespace nn::detail
