/// \file
/// The kernel behind `conv_wgrad` for maps of four channels. The 16 rows of a product are four taps of a row, of which the
/// last is not used.
#pragma once

#include <cstddef>
#include <cstdint>

#include <nn/conv/detail/conv_wgrad.cuh>
#include <nn/conv/detail/pool_routes.cuh>
#include <nn/core/ceil_div.hpp>

namespace nn::detail {

/// How a block that sums over tiles of 64×8 pixels, for 16 outputs, uses shared memory: pixels with a border of one, 8
/// bytes each, and the same moved on by one pixel, so that from any pixel 16 bytes can be loaded.
struct NarrowWgradTile {
    static constexpr int threads = 256;
    static constexpr int width = 64;
    static constexpr int height = 8;
    static constexpr int row = width + 4;
    static constexpr int pixels = row * (height + 2);
    static constexpr int down = height / 2;
    // The two do not begin at the same bank.
    static constexpr int moved = pixels * 8 + 112;
    static constexpr int bytes = moved + pixels * 8;
};
static_assert(NarrowWgradTile::moved % 128 == 48);

/// What a thread loads of a tile, before it is needed: pixels for all, and two channels of its own pools.
struct NarrowLoads {
    static constexpr int count = ceil_div(NarrowWgradTile::pixels, NarrowWgradTile::threads);

    uint2 pixels[count];
    std::uint32_t gradients[NarrowWgradTile::down];
    std::uint32_t routes[NarrowWgradTile::down];
};

__device__ inline void load_narrow(NarrowLoads& loads, const std::uint16_t* maps, const ConvShape& shape,
                                   std::size_t index, const std::uint16_t* pooled_gradient,
                                   const std::uint32_t* routes, int group) {
    using Tile = NarrowWgradTile;
    const ConvTile place = conv_tile(shape, index);
    const int thread = static_cast<int>(threadIdx.x);
    const int lane = thread % 32;
    const uint2* const image = reinterpret_cast<const uint2*>(maps) +
                               place.image * static_cast<std::size_t>(shape.height) * shape.width;
#pragma unroll
    for (int slot = 0; slot < NarrowLoads::count; ++slot) {
        const int i = thread + slot * Tile::threads;
        const int y = place.tile_y * Tile::height + i / Tile::row - 1;
        const int x = place.tile_x * Tile::width + i % Tile::row - 1;
        const bool inside = i < Tile::pixels && y >= 0 && y < shape.height && x >= 0 && x < shape.width;
        loads.pixels[slot] = inside ? image[static_cast<std::size_t>(y) * shape.width + x] : make_uint2(0, 0);
    }
    const int height = shape.height / 2;
    const int width = shape.width / 2;
#pragma unroll
    for (int i = 0; i < Tile::down; ++i) {
        const int y = place.tile_y * Tile::down + i;
        const int x = place.tile_x * (Tile::width / 2) + 4 * (thread / 32) + lane % 4;
        loads.gradients[i] = 0;
        loads.routes[i] = 0;
        if (y < height && x < width) {
            const std::size_t pixel = (place.image * height + y) * width + x;
            const std::size_t element = pixel * shape.outputs + group * 16 + lane / 4 * 2;
            loads.gradients[i] = *reinterpret_cast<const std::uint32_t*>(pooled_gradient + element);
            loads.routes[i] = reinterpret_cast<const std::uint8_t*>(routes)[element / 2];
        }
    }
}

/// A warp's sums, as lanes hold them: three rows of taps, then the bias.
using NarrowWarpSums = float[26][32];

/// Adds up the sums of the warps, in shared memory, and stores them as the block's part of the gradients.
__device__ __forceinline__ void store_narrow_sums(NarrowWarpSums* warp_sums, const float (&sums)[3][2][4],
                                                  float (&bias_sums)[2], const ConvShape& shape,
                                                  unsigned part, int group, float* weight_parts,
                                                  float* bias_parts) {
    using Tile = NarrowWgradTile;
    constexpr int warps = Tile::threads / 32;
    const int thread = static_cast<int>(threadIdx.x);
    const int lane = thread % 32;
    const int warp = thread / 32;
    __syncthreads(); // all are done with the pixels
#pragma unroll
    for (int ky = 0; ky < 3; ++ky) {
#pragma unroll
        for (int i = 0; i < 8; ++i)
            warp_sums[warp][ky * 8 + i][lane] = sums[ky][i / 4][i % 4];
    }
#pragma unroll
    for (int j = 0; j < 2; ++j) {
        bias_sums[j] += __shfl_xor_sync(0xFFFFFFFFu, bias_sums[j], 1);
        bias_sums[j] += __shfl_xor_sync(0xFFFFFFFFu, bias_sums[j], 2);
        warp_sums[warp][24 + j][lane] = bias_sums[j];
    }
    __syncthreads();
    for (int i = thread; i < 26 * 32; i += Tile::threads) {
        const int which = i / 32;
        const int of = i % 32;
        float sum = 0.0f;
        for (int w = 0; w < warps; ++w)
            sum += warp_sums[w][which][of];
        if (which >= 24) {
            if (of % 4 == 0)
                bias_parts[static_cast<std::size_t>(part) * shape.outputs + group * 16 + of / 4 * 2 + which -
                           24] = sum;
            continue;
        }
        const int ky = which / 8;
        const int j = which / 4 % 2;
        const int e = which % 4;
        const int row = of / 4 + e / 2 * 8; // a tap and a channel
        const int kx = row / 4;
        const int output = group * 16 + (of % 4 * 2 + e % 2) * 2 + j;
        if (kx < 3) {
            const std::size_t weight = static_cast<std::size_t>((3 * ky + kx) * 4 + row % 4);
            weight_parts[(static_cast<std::size_t>(part) * 36 + weight) * shape.outputs + output] = sum;
        }
    }
}

/// Each of eight warps sums over a strip of 8 pixels' width.
static __global__ void __launch_bounds__(NarrowWgradTile::threads, 3)
    conv_wgrad_narrow_kernel(const std::uint16_t* maps, ConvShape shape, std::size_t tiles,
                             const std::uint16_t* pooled_gradient, const std::uint32_t* routes,
                             float* weight_parts, float* bias_parts) {
    using Tile = NarrowWgradTile;
    constexpr int warps = Tile::threads / 32;
    // The pixels of a tile, and in the end the sums of each warp.
    __shared__ uint4 memory[warps * sizeof(NarrowWarpSums) / sizeof(uint4)];
    static_assert(sizeof(memory) >= Tile::bytes);
    NarrowWarpSums* const warp_sums = reinterpret_cast<NarrowWarpSums*>(memory);
    const auto [group, part, first_tile, last_tile] =
        WgradPart(tiles, static_cast<unsigned>(shape.outputs) / 16);
    const int thread = static_cast<int>(threadIdx.x);
    const int lane = thread % 32;
    const int warp = thread / 32;

    // This lane's row of a matrix: a pixel, and two of the taps from it on.
    const int column = 8 * warp + lane % 8 + lane / 8 % 2 * 2;
    const std::uint32_t from =
        shared_address(memory) + (column % 2 == 0 ? column * 8 : Tile::moved + (column + 1) * 8);
    float sums[3][2][4] = {};
    float bias_sums[2] = {};
    NarrowLoads next;
    if (first_tile < last_tile)
        load_narrow(next, maps, shape, first_tile, pooled_gradient, routes, group);
    for (std::size_t tile = first_tile; tile < last_tile; ++tile) {
        const NarrowLoads loads = next;
        __syncthreads(); // all are done with the tile before
#pragma unroll
        for (int slot = 0; slot < NarrowLoads::count; ++slot) {
            const int i = thread + slot * Tile::threads;
            uint2* const pixel = reinterpret_cast<uint2*>(memory) + i;
            if (i < Tile::pixels)
                pixel[0] = loads.pixels[slot];
            if (i + 1 < Tile::pixels)
                pixel[Tile::moved / 8 + 1] = loads.pixels[slot];
        }
        if (tile + 1 < last_tile)
            load_narrow(next, maps, shape, tile + 1, pooled_gradient, routes, group);
        __syncthreads();
        std::uint32_t rows[Tile::down + 1][4];
        load_matrices_transposed(rows[0], from + lane / 16 * (Tile::row * 8));
#pragma unroll
        for (int y = 0; y < Tile::down; ++y) {
            load_matrices_transposed(rows[y + 1], from + (2 * y + 2 + lane / 16) * (Tile::row * 8));
#pragma unroll
            for (int j = 0; j < 2; ++j) {
                const std::uint32_t gradient =
                    j == 0 ? loads.gradients[y] & 0xFFFFu : loads.gradients[y] >> 16;
                const std::uint32_t way = loads.routes[y] >> (4 * j) & 0xFu;
                bias_sums[j] += way != 0 ? __uint_as_float(gradient << 16) : 0.0f;
                const std::uint32_t upper = routed_beside(gradient, way);
                const std::uint32_t lower = routed_beside(gradient, way >> 2);
                add_rows_of_taps(sums, j, rows[y], rows[y + 1], {{upper, lower}});
            }
        }
    }

    store_narrow_sums(warp_sums, sums, bias_sums, shape, part, group, weight_parts, bias_parts);
}

} // namespace nn::detail
