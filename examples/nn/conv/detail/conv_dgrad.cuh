/// \file
/// The kernel behind conv_backward.hpp's `conv_dgrad`: a 3×3 convolution with flipped weights of the gradients
/// before the pool, which are spread from pooled ones in shared memory only.
///
/// A warp's tile of the product has 16 pixels of a row, even ones first, as in conv_fprop.cuh.
#pragma once

#include <cstddef>
#include <cstdint>

#include <nn/conv/detail/conv_fprop.cuh>
#include <nn/conv/detail/pool_routes.cuh>
#include <nn/core/ceil_div.hpp>

namespace nn::detail {

/// How a block that computes 16×16 pixels of `Inputs` channels uses shared memory: the gradients of `depth`
/// outputs at a time, with a border of one, and maybe those of the next ones; then a ring of weights: in each
/// place those of 16 outputs and a column of three taps.
template <int Inputs>
struct DgradTile {
    static constexpr bool wide = Inputs == 64;
    static constexpr int depth = wide ? 64 : 32;
    using Pixels = FpropTile<depth>;
    static constexpr int steps = depth / 16;
    static constexpr int turns = 3 * steps;
    static constexpr int tiles = Inputs / 8;
    static constexpr int stage_bytes = 3 * tiles * 256;
    // Where sums are many, a multiprocessor has room for two blocks: then a block has to work ahead itself. Where they
    // are few, other blocks work while one waits.
    static constexpr int stages = wide ? 4 : turns;
    static_assert(turns % stages == 0); // so that each turn has its place, whatever the round
    static constexpr int buffers = wide ? 2 : 1;
    static constexpr int pixel_bytes = Pixels::pixels * Pixels::pixel_bytes;
    static constexpr int pools = Pixels::side / 2 + 2; // along a side, with those beyond the border
    static constexpr int chunks = pools * pools * Pixels::chunks;
    static constexpr int bytes = buffers * pixel_bytes + stages * stage_bytes;
};

/// Eight gradients of a pool, and where they go.
struct PooledChunk {
    uint4 gradients;
    std::uint32_t routes;
};

/// Loads chunk `i` of a tile, of the outputs from `first` on.
template <int Inputs>
__device__ inline PooledChunk load_chunk(int i, const std::uint16_t* pooled_gradient,
                                         const std::uint32_t* routes, const ConvShape& shape,
                                         const ConvTile& place, int first) {
    using Tile = DgradTile<Inputs>;
    constexpr int chunks = Tile::Pixels::chunks;
    const int height = shape.height / 2;
    const int width = shape.width / 2;
    const int y = place.tile_y * (Tile::Pixels::side / 2) + i / chunks / Tile::pools - 1;
    const int x = place.tile_x * (Tile::Pixels::side / 2) + i / chunks % Tile::pools - 1;
    PooledChunk chunk{make_uint4(0, 0, 0, 0), 0};
    if (y >= 0 && y < height && x >= 0 && x < width) {
        const std::size_t pixel = (place.image * height + y) * width + x;
        const std::size_t element = pixel * shape.outputs + first + i % chunks * 8;
        chunk.gradients = *reinterpret_cast<const uint4*>(pooled_gradient + element);
        chunk.routes = routes[element / 8];
    }
    return chunk;
}

/// Spreads it over its four pixels, as far as they are in the tile.
template <int Inputs>
__device__ inline void spread_chunk(uint4* memory, int i, const PooledChunk& chunk) {
    using Tile = DgradTile<Inputs>;
    using Pixels = typename Tile::Pixels;
    const int pool_y = i / Pixels::chunks / Tile::pools;
    const int pool_x = i / Pixels::chunks % Tile::pools;
    std::uint32_t pairs[4];
#pragma unroll
    for (int w = 0; w < 4; ++w)
        pairs[w] = routes_of_pair(chunk.routes, w);
#pragma unroll
    for (int at = 0; at < 4; ++at) {
        const int y = 2 * pool_y - 1 + at / 2;
        const int x = 2 * pool_x - 1 + at % 2;
        if (y >= 0 && y < Pixels::row && x >= 0 && x < Pixels::row) {
            memory[Pixels::offset(Pixels::pixel(y, x), i % Pixels::chunks) / 16] =
                make_uint4(routed(chunk.gradients.x, pairs[0], at), routed(chunk.gradients.y, pairs[1], at),
                           routed(chunk.gradients.z, pairs[2], at), routed(chunk.gradients.w, pairs[3], at));
        }
    }
}

/// Loads and spreads all chunks of a tile, of the outputs from `first` on.
template <int Inputs>
__device__ __forceinline__ void spread_tile(uint4* memory, const std::uint16_t* pooled_gradient,
                                            const std::uint32_t* routes, const ConvShape& shape,
                                            const ConvTile& place, int first) {
    using Tile = DgradTile<Inputs>;
    const int thread = static_cast<int>(threadIdx.x);
    constexpr int each = ceil_div(Tile::chunks, conv_threads);
    PooledChunk chunks[each];
#pragma unroll
    for (int i = 0; i < each; ++i) {
        if (thread + i * conv_threads < Tile::chunks)
            chunks[i] =
                load_chunk<Inputs>(thread + i * conv_threads, pooled_gradient, routes, shape, place, first);
    }
#pragma unroll
    for (int i = 0; i < each; ++i) {
        if (thread + i * conv_threads < Tile::chunks)
            spread_chunk<Inputs>(memory, thread + i * conv_threads, chunks[i]);
    }
}

/// Stores a thread's two pixels of a row.
template <int Inputs>
__device__ inline void store_gradients(const float (&sums)[DgradTile<Inputs>::tiles][4], int side,
                                       std::uint16_t* to, int quad) {
    if constexpr (Inputs == 16) {
        *reinterpret_cast<uint2*>(to + 4 * quad) =
            make_uint2(two_bfloat16(sums[0][2 * side], sums[0][2 * side + 1]),
                       two_bfloat16(sums[1][2 * side], sums[1][2 * side + 1]));
    } else {
#pragma unroll
        for (int part = 0; part < 2; ++part) {
            std::uint32_t words[4];
#pragma unroll
            for (int n = 0; n < 4; ++n)
                words[n] = two_bfloat16(sums[4 * part + n][2 * side], sums[4 * part + n][2 * side + 1]);
            *reinterpret_cast<uint4*>(to + 32 * part + 8 * quad) =
                make_uint4(words[0], words[1], words[2], words[3]);
        }
    }
}

/// Stores a warp's 4×16 pixels, as far as they are in the image.
template <int Inputs>
__device__ __forceinline__ void store_tile(const float (&sums)[4][DgradTile<Inputs>::tiles][4],
                                           const ConvShape& shape, const ConvTile& place,
                                           std::uint16_t* gradient) {
    using Pixels = typename DgradTile<Inputs>::Pixels;
    const int lane = static_cast<int>(threadIdx.x) % 32;
    const int warp = static_cast<int>(threadIdx.x) / 32;
#pragma unroll
    for (int line = 0; line < 4; ++line) {
        const int y = place.tile_y * Pixels::side + 4 * warp + line;
#pragma unroll
        for (int side = 0; side < 2; ++side) {
            const int x = place.tile_x * Pixels::side + 2 * (lane / 4) + side;
            if (y >= shape.height || x >= shape.width)
                continue;
            const std::size_t pixel = (place.image * shape.height + y) * shape.width + x;
            store_gradients<Inputs>(sums[line], side, gradient + pixel * Inputs, lane % 4);
        }
    }
}

/// Begins to copy a turn's weights to their place in the ring: those of turn `turn` of a round, counted on into the next
/// round, if there is one.
template <int Inputs>
__device__ __forceinline__ void fetch_weights(std::uint32_t ring, const uint4* weights, int rounds, int round,
                                              int turn) {
    using Tile = DgradTile<Inputs>;
    if (turn < Tile::turns || round + 1 < rounds) {
        const std::uint32_t to = ring + (turn % Tile::stages) * Tile::stage_bytes;
        const uint4* const from = weights + (round * Tile::turns + turn) * (Tile::stage_bytes / 16);
#pragma unroll
        for (int i = static_cast<int>(threadIdx.x); i < Tile::stage_bytes / 16; i += conv_threads)
            copy_16_bytes(to + i * 16, from + i);
    }
    commit_copies(); // maybe an empty group, so that the count stays right
}

/// Each of four warps computes 4×16 pixels of all channels.
template <int Inputs>
__global__ void __launch_bounds__(conv_threads, DgradTile<Inputs>::wide ? 2 : 4)
    conv_dgrad_kernel(const std::uint16_t* pooled_gradient, const std::uint32_t* routes, ConvShape shape,
                      const std::uint32_t* packed, std::uint16_t* gradient) {
    using Tile = DgradTile<Inputs>;
    using Pixels = typename Tile::Pixels;
    extern __shared__ uint4 conv_memory[];
    const ConvTile place(shape, blockIdx.x, 1);
    const int thread = static_cast<int>(threadIdx.x);
    const int lane = thread % 32;
    const int warp = thread / 32;
    const std::uint32_t pixels = shared_address(conv_memory);
    const std::uint32_t ring = pixels + Tile::buffers * Tile::pixel_bytes;
    const int rounds = shape.outputs / Tile::depth;

    const auto fetch = [&](int round, int turn) {
        fetch_weights<Inputs>(ring, reinterpret_cast<const uint4*>(packed), rounds, round, turn);
    };
    const auto load = [&](int i, int round) {
        return load_chunk<Inputs>(i, pooled_gradient, routes, shape, place, round * Tile::depth);
    };
    const int matrix_x = 2 * (lane % 8) + lane / 8 % 2;
    const int half = lane / 16;
    float sums[4][Tile::tiles][4] = {};
    const auto add = [&](int buffer, int kx, int step) {
        const int turn = kx * Tile::steps + step;
        add_taps<Pixels>(
            sums, pixels + buffer * Tile::pixel_bytes, 4 * warp, matrix_x + kx, 2 * step + half,
            conv_memory + (Tile::buffers * Tile::pixel_bytes + turn % Tile::stages * Tile::stage_bytes) / 16,
            lane);
    };

    if constexpr (Tile::wide) {
#pragma unroll
        for (int turn = 0; turn < Tile::stages - 1; ++turn)
            fetch(0, turn);
        spread_tile<Inputs>(conv_memory, pooled_gradient, routes, shape, place, 0);
        for (int round = 0; round < rounds; ++round) {
            uint4* const next = conv_memory + (round + 1) % 2 * (Tile::pixel_bytes / 16);
            int ahead = round + 1 < rounds ? thread : Tile::chunks; // the chunk that is spread next
#pragma unroll
            for (int kx = 0; kx < 3; ++kx) {
                for (int step = 0; step < Tile::steps; ++step, ahead += conv_threads) {
                    wait_for_copies<Tile::stages - 2>();
                    // What others copied and spread is there; and all are done with what is filled next.
                    __syncthreads();
                    fetch(round, kx * Tile::steps + step + Tile::stages - 1);
                    PooledChunk chunk;
                    if (ahead < Tile::chunks)
                        chunk = load(ahead, round + 1);
                    add(round % 2, kx, step);
                    if (ahead < Tile::chunks)
                        spread_chunk<Inputs>(next, ahead, chunk);
                }
            }
        }
        static_assert(Tile::turns * conv_threads >= Tile::chunks);
    } else {
        for (int round = 0; round < rounds; ++round) {
            __syncthreads(); // all are done with the round before
#pragma unroll
            for (int turn = 0; turn < Tile::turns; ++turn)
                fetch(round, turn);
            spread_tile<Inputs>(conv_memory, pooled_gradient, routes, shape, place, round * Tile::depth);
            wait_for_copies<0>();
            __syncthreads();
#pragma unroll
            for (int kx = 0; kx < 3; ++kx) {
#pragma unroll 1 // more would not fit into registers
                for (int step = 0; step < Tile::steps; ++step)
                    add(0, kx, step);
            }
        }
    }

    store_tile<Inputs>(sums, shape, place, gradient);
}

// Weights -------------------------------------------------------------------------------------------------------

/// Fills one word of weights: two neighbouring outputs of one input, where `weights` is [9 C, Co].
template <int Inputs>
struct PackFlippedWeights {
    const float* weights;
    std::uint32_t* packed;
    int outputs;
    int unused = 0; // in place of padding, which captures would take for changes

    /// A tap of the gradient is the opposite one of the convolution.
    __device__ std::uint32_t word_of(int ky, int kx, int input, int output) const {
        const int row = (8 - (3 * ky + kx)) * Inputs + input;
        const float* const from = weights + static_cast<std::size_t>(row) * outputs + output;
        return two_bfloat16(from[0], from[1]);
    }

    /// [group of 16][kx][ky][lane][half]: columns from the fifth on have no input.
    __device__ void pack_narrow(std::size_t word) const {
        const int half = static_cast<int>(word % 2);
        const int lane = static_cast<int>(word / 2 % 32);
        const int ky = static_cast<int>(word / 64 % 3);
        const int kx = static_cast<int>(word / 192 % 3);
        const int group = static_cast<int>(word / 576);
        const int output = group * 16 + lane % 4 * 4 + 2 * half;
        packed[word] = lane / 4 < Inputs ? word_of(ky, kx, lane / 4, output) : 0;
    }

    /// [round][kx][step][ky][pair of tiles][lane][tile of the pair][half]. Inputs are dealt to columns such that a
    /// thread's results lie side by side.
    __device__ void pack_wide(std::size_t word) const {
        constexpr std::size_t pairs = Inputs / 16;
        constexpr int steps = DgradTile<Inputs>::steps;
        const int half = static_cast<int>(word % 2);
        const int lane = static_cast<int>(word / 4 % 32);
        const int tile = static_cast<int>(word / 128 % pairs * 2 + word / 2 % 2);
        const std::size_t rest = word / 128 / pairs;
        const int ky = static_cast<int>(rest % 3);
        const int step = static_cast<int>(rest / 3 % steps);
        const int kx = static_cast<int>(rest / 3 / steps % 3);
        const int output =
            static_cast<int>(rest / 9) / steps * (16 * steps) + 16 * step + 8 * half + lane % 4 * 2;
        const int column = lane / 4;
        const int input = Inputs == 16 ? column / 2 * 4 + tile * 2 + column % 2
                                       : tile / 4 * 32 + column / 2 * 8 + tile % 4 * 2 + column % 2;
        packed[word] = word_of(ky, kx, input, output);
    }

    __device__ void operator()(std::size_t word) const {
        if constexpr (Inputs == 4)
            pack_narrow(word);
        else
            pack_wide(word);
    }
};

} // namespace nn::detail
