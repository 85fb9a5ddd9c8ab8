/// \file
/// The kernels behind conv_backward.hpp's `conv_wgrad` whose products are Tensor Cores'.
///
/// A weight's gradient is a sum over pixels of a map's element times a gradient before the pool. A step of the matrix
/// units, 16 deep, takes 8×2 pixels: four pools, of each of which a thread holds all four places, so that it makes its
/// factors of one pooled gradient. The other factors, rows of 8 pixels, are loaded transposed; going down the map, a row
/// serves all three rows of taps.
#pragma once

#include <cstddef>
#include <cstdint>

#include <nn/conv/detail/conv_fprop.cuh>
#include <nn/conv/detail/pool_routes.cuh>

namespace nn::detail {

/// What a block sums over: for a group of outputs, the tiles of all images from `first` up to `last`.
struct WgradPart {
    int group;
    unsigned part;
    std::size_t first;
    std::size_t last;

    __device__ WgradPart(std::size_t tiles, unsigned groups)
        : group(static_cast<int>(blockIdx.x % groups)), part(blockIdx.x / groups),
          first(tiles * part / (gridDim.x / groups)), last(tiles * (part + 1) / (gridDim.x / groups)) {}
};

/// Adds to three rows of taps what two rows of pools contribute: `above` and `below` are the rows of pixels that they begin and
/// end with, `factors` those of the tiles of outputs from `first` on.
template <std::size_t Tiles, std::size_t Count>
__device__ __forceinline__ void
add_rows_of_taps(float (&sums)[3][Tiles][4], int first, const std::uint32_t (&above)[4],
                 const std::uint32_t (&below)[4], const std::uint32_t (&factors)[Count][2]) {
    const std::uint32_t between[4] = {above[2], above[3], below[0], below[1]};
    const auto add = [&](float(&row)[Tiles][4], const std::uint32_t(&pixels)[4]) {
#pragma unroll
        for (std::size_t i = 0; i < Count; ++i)
            multiply_add(row[first + i], pixels, factors[i][0], factors[i][1]);
    };
    add(sums[0], above);
    add(sums[1], between);
    add(sums[2], below);
}

/// A tile's place in its image.
__device__ inline ConvTile conv_tile(const ConvShape& shape, std::size_t tile) {
    ConvTile place(shape, 0, 1);
    const unsigned in_image = static_cast<unsigned>(tile % shape.tiles);
    place.tile_x = static_cast<int>(in_image % shape.tiles_x);
    place.tile_y = static_cast<int>(in_image / shape.tiles_x);
    place.image = tile / shape.tiles;
    return place;
}

/// How a block that sums over tiles of 32×8 pixels, for 64 outputs, uses shared memory: twice pixels with a border of
/// one, then the factors that are made of gradients.
template <int Inputs>
struct WgradTile {
    static constexpr int threads = 384;
    static constexpr int width = 32;
    static constexpr int height = 8;
    static constexpr int row = width + 2;
    static constexpr int pixels = row * (height + 2);
    static constexpr int chunks = Inputs / 8; // of 16 bytes, in a pixel
    static constexpr int pixel_bytes = 2 * Inputs;
    static constexpr int strips = width / 8;
    static constexpr int down = height / 2;
    static constexpr int steps = strips * down;
    static constexpr int spreading = 256; // threads, two pools' chunks each
    static constexpr int stage_bytes = pixels * pixel_bytes + steps * 2048;
    static constexpr int bytes = 2 * stage_bytes;
    static constexpr int quarters = Inputs / 16; // of 16 inputs: so many warps share a strip
    static constexpr int sharers = 4 / quarters; // warps that have each their own strips, and sums

    /// Chunks change places such that those of eight pixels of a row lie in different banks.
    static __device__ int offset(int pixel, int chunk) {
        const int turn = static_cast<int>(static_cast<unsigned>(pixel) / (8 / chunks) % chunks);
        return pixel * pixel_bytes + (chunk ^ turn) * 16;
    }
};

/// What a thread loads of the gradients of a tile: eight channels of two pools.
struct PooledChunks {
    uint4 gradients[2];
    std::uint32_t routes[2];
};

template <int Inputs>
__device__ inline PooledChunks load_pooled(const std::uint16_t* pooled_gradient, const std::uint32_t* routes,
                                           const ConvShape& shape, const ConvTile& place, int group) {
    using Tile = WgradTile<Inputs>;
    PooledChunks result;
    const int lane = static_cast<int>(threadIdx.x) % 32;
    const int height = shape.height / 2;
    const int width = shape.width / 2;
#pragma unroll
    for (int i = 0; i < 2; ++i) {
        const int step = static_cast<int>(threadIdx.x) / 32 + i * (Tile::spreading / 32);
        const int y = place.tile_y * (Tile::height / 2) + step % Tile::down;
        const int x = place.tile_x * (Tile::width / 2) + step / Tile::down * 4 + lane % 4;
        result.gradients[i] = make_uint4(0, 0, 0, 0);
        result.routes[i] = 0;
        if (y < height && x < width) {
            const std::size_t pixel = (place.image * height + y) * width + x;
            const std::size_t element = pixel * shape.outputs + group * 64 + lane / 4 * 8;
            result.gradients[i] = *reinterpret_cast<const uint4*>(pooled_gradient + element);
            result.routes[i] = routes[element / 8];
        }
    }
    return result;
}

/// Makes the factors of pool `i`'s gradients, [step][pair of tiles][lane], and adds each channel's to `sums`.
/// Column n of tile j is channel 8 n + j: a thread's eight channels are a column of each tile.
template <int Inputs>
__device__ inline void spread_factors(uint4* factors, const PooledChunks& chunks, int i, float (&sums)[8]) {
    const int lane = static_cast<int>(threadIdx.x) % 32;
    const int step = static_cast<int>(threadIdx.x) / 32 + i * (WgradTile<Inputs>::spreading / 32);
    const std::uint32_t words[4] = {chunks.gradients[i].x, chunks.gradients[i].y, chunks.gradients[i].z,
                                    chunks.gradients[i].w};
#pragma unroll
    for (int w = 0; w < 4; ++w) {
        const std::uint32_t low = words[w] & 0xFFFFu;
        const std::uint32_t high = words[w] >> 16;
        const std::uint32_t low_route = chunks.routes[i] >> (8 * w) & 0xFu;
        const std::uint32_t high_route = chunks.routes[i] >> (8 * w + 4) & 0xFu;
        sums[2 * w] += low_route != 0 ? __uint_as_float(low << 16) : 0.0f;
        sums[2 * w + 1] += high_route != 0 ? __uint_as_float(high << 16) : 0.0f;
        factors[(step * 4 + w) * 32 + lane] =
            make_uint4(routed_beside(low, low_route), routed_beside(low, low_route >> 2),
                       routed_beside(high, high_route), routed_beside(high, high_route >> 2));
    }
}

/// Begins to copy a tile's pixels, with their border, to a stage in shared memory.
template <int Inputs>
__device__ __forceinline__ void copy_pixels(const std::uint16_t* maps, const ConvShape& shape,
                                            const ConvTile& place, int stage) {
    using Tile = WgradTile<Inputs>;
    extern __shared__ uint4 conv_memory[];
    const int thread = static_cast<int>(threadIdx.x);
    const std::uint32_t to = shared_address(conv_memory) + stage * Tile::stage_bytes;
    const std::uint16_t* const image =
        maps + place.image * static_cast<std::size_t>(shape.height) * shape.width * Inputs;
    for (int i = thread; i < Tile::pixels * Tile::chunks; i += Tile::threads) {
        const int chunk = i % Tile::chunks;
        const int pixel = i / Tile::chunks;
        const int y = place.tile_y * Tile::height + pixel / Tile::row - 1;
        const int x = place.tile_x * Tile::width + pixel % Tile::row - 1;
        const bool inside = y >= 0 && y < shape.height && x >= 0 && x < shape.width;
        const std::size_t from =
            inside ? (static_cast<std::size_t>(y) * shape.width + x) * Inputs + chunk * 8 : 0;
        copy_16_bytes(to + Tile::offset(pixel, chunk), image + from, inside);
    }
    commit_copies();
}

/// Stores a warp's sums as its part of the weights' gradient.
template <int Inputs>
__device__ __forceinline__ void store_weight_sums(float* weight_parts, const float (&sums)[3][8][4],
                                                  const ConvShape& shape, unsigned part, int group) {
    using Tile = WgradTile<Inputs>;
    const int lane = static_cast<int>(threadIdx.x) % 32;
    const int warp = static_cast<int>(threadIdx.x) / 32;
    const int kx = warp % 3;
    const int quarter = warp / 3 % Tile::quarters;
    const int sharer = warp / 3 / Tile::quarters;
    float* const to =
        weight_parts + static_cast<std::size_t>(part * Tile::sharers + sharer) * 9 * Inputs * shape.outputs;
#pragma unroll
    for (int ky = 0; ky < 3; ++ky) {
#pragma unroll
        for (int e = 0; e < 4; ++e) {
            const int input = 16 * quarter + lane / 4 + e / 2 * 8;
            const int output = group * 64 + (lane % 4 * 2 + e % 2) * 8;
            const std::size_t row = static_cast<std::size_t>(3 * ky + kx) * Inputs + input;
            float4* const eight = reinterpret_cast<float4*>(to + row * shape.outputs + output);
            eight[0] = make_float4(sums[ky][0][e], sums[ky][1][e], sums[ky][2][e], sums[ky][3][e]);
            eight[1] = make_float4(sums[ky][4][e], sums[ky][5][e], sums[ky][6][e], sums[ky][7][e]);
        }
    }
}

/// Adds up the block's sums, and stores them as its part of the bias's gradient.
template <int Inputs>
__device__ __forceinline__ void store_bias_sums(float* bias_parts, float (&bias_sums)[8],
                                                const ConvShape& shape, unsigned part, int group) {
    using Tile = WgradTile<Inputs>;
    extern __shared__ uint4 conv_memory[];
    const int thread = static_cast<int>(threadIdx.x);
    const int lane = thread % 32;
    const int warp = thread / 32;
    // First the four threads of a warp that hold the same channels, then warp after warp.
    float* const by_warp = reinterpret_cast<float*>(conv_memory);
    __syncthreads();
    if (thread < Tile::spreading) {
#pragma unroll
        for (int i = 0; i < 8; ++i) {
            bias_sums[i] += __shfl_xor_sync(0xFFFFFFFFu, bias_sums[i], 1);
            bias_sums[i] += __shfl_xor_sync(0xFFFFFFFFu, bias_sums[i], 2);
            if (lane % 4 == 0)
                by_warp[warp * 64 + lane / 4 * 8 + i] = bias_sums[i];
        }
    }
    __syncthreads();
    if (thread < 64) {
        float sum = 0.0f;
        for (int i = 0; i < Tile::spreading / 32; ++i)
            sum += by_warp[i * 64 + thread];
        // One of the parts that share a block's tiles has it all.
        for (int i = 0; i < Tile::sharers; ++i) {
            bias_parts[(static_cast<std::size_t>(part) * Tile::sharers + i) * shape.outputs + group * 64 +
                       thread] = i == 0 ? sum : 0.0f;
        }
    }
}

/// Adds to a warp's sums what strip `strip`, of 8 pixels' width, contributes for a column of taps and 16 inputs. `load_rows`
/// loads two rows of the pixels that the taps see.
template <int Inputs, class LoadRows>
__device__ __forceinline__ void add_strip(float (&sums)[3][8][4], const LoadRows& load_rows,
                                          const uint4* factors, int strip, int lane) {
    using Tile = WgradTile<Inputs>;
    std::uint32_t rows[Tile::down + 1][4];
    load_rows(rows[0], 0);
#pragma unroll
    for (int y = 0; y < Tile::down; ++y) {
        load_rows(rows[y + 1], 2 * y + 2);
#pragma unroll
        for (int pair = 0; pair < 4; ++pair) {
            const uint4 factor = factors[((strip * Tile::down + y) * 4 + pair) * 32 + lane];
            add_rows_of_taps(sums, 2 * pair, rows[y], rows[y + 1],
                             {{factor.x, factor.y}, {factor.z, factor.w}});
        }
    }
}

/// `Inputs` channels, and a group of 64 outputs. Of 12 warps each sums for a column of taps and 16 inputs.
template <int Inputs>
__global__ void __launch_bounds__(WgradTile<Inputs>::threads, 1)
    conv_wgrad_kernel(const std::uint16_t* maps, ConvShape shape, std::size_t tiles,
                      const std::uint16_t* pooled_gradient, const std::uint32_t* routes, float* weight_parts,
                      float* bias_parts) {
    using Tile = WgradTile<Inputs>;
    extern __shared__ uint4 conv_memory[];
    const auto [group, part, first_tile, last_tile] =
        WgradPart(tiles, static_cast<unsigned>(shape.outputs) / 64);
    const int thread = static_cast<int>(threadIdx.x);
    const int lane = thread % 32;
    const int warp = thread / 32;
    const int kx = warp % 3;
    const int quarter = warp / 3 % Tile::quarters;
    const int sharer = warp / 3 / Tile::quarters;

    const auto factors_of = [&](int stage) {
        return conv_memory + (stage * Tile::stage_bytes + Tile::pixels * Tile::pixel_bytes) / 16;
    };

    float sums[3][8][4] = {};
    float bias_sums[8] = {};
    PooledChunks chunks;
    if (first_tile < last_tile) {
        const ConvTile place = conv_tile(shape, first_tile);
        copy_pixels<Inputs>(maps, shape, place, 0);
        if (thread < Tile::spreading) {
            chunks = load_pooled<Inputs>(pooled_gradient, routes, shape, place, group);
            spread_factors<Inputs>(factors_of(0), chunks, 0, bias_sums);
            spread_factors<Inputs>(factors_of(0), chunks, 1, bias_sums);
        }
    }
    int stage = 0;
    for (std::size_t tile = first_tile; tile < last_tile; ++tile, stage ^= 1) {
        wait_for_copies<0>();
        // What others copied and spread is there; and all are done with the other stage, which is filled next.
        __syncthreads();
        const bool more = tile + 1 < last_tile;
        if (more) {
            const ConvTile place = conv_tile(shape, tile + 1);
            copy_pixels<Inputs>(maps, shape, place, stage ^ 1);
            if (thread < Tile::spreading)
                chunks = load_pooled<Inputs>(pooled_gradient, routes, shape, place, group);
        }
        const std::uint32_t pixels = shared_address(conv_memory) + stage * Tile::stage_bytes;
        const uint4* const factors = factors_of(stage);
        // Which row of which of the four matrices of a fragment this lane gives the address of.
        const int matrix_y = lane / 16;
        const int chunk = 2 * quarter + lane / 8 % 2;
        constexpr int turns = Tile::strips / Tile::sharers;
#pragma unroll 1
        for (int turn = 0; turn < turns; ++turn) {
            const int strip = turn * Tile::sharers + sharer;
            const int column = 8 * strip + kx + lane % 8;
            const auto load_rows = [&](std::uint32_t(&rows)[4], int y) {
                load_matrices_transposed(rows,
                                         pixels + Tile::offset((y + matrix_y) * Tile::row + column, chunk));
            };
            add_strip<Inputs>(sums, load_rows, factors, strip, lane);
            // Not all in the end, when each warp would do the same and the Tensor Cores nothing.
            if (more && thread < Tile::spreading) {
                if (turn == turns / 2)
                    spread_factors<Inputs>(factors_of(stage ^ 1), chunks, 0, bias_sums);
                if (turn == turns - 1 - turns / 4)
                    spread_factors<Inputs>(factors_of(stage ^ 1), chunks, 1, bias_sums);
            }
        }
    }

    store_weight_sums<Inputs>(weight_parts, sums, shape, part, group);
    store_bias_sums<Inputs>(bias_parts, bias_sums, shape, part, group);
}

} // namespace nn::detail
