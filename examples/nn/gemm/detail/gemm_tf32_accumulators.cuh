/// \file
/// The epilogue of gemm_tf32.cuh: sums are added up over warps, blocks and clusters, and written with bias, ReLU or
/// update.
#pragma once

#include <cooperative_groups.h>

#include <nn/gemm/detail/gemm_tf32_operands.cuh>

namespace nn::detail::tf32 {

struct Arguments {
    Tf32Gemm gemm;
    unsigned column_tiles;
    unsigned tiles;
    float* partial_sums;
    float* column_sums;
    unsigned* tickets;
};

__device__ inline float4 operator+(float4 a, float4 b) {
    return {a.x + b.x, a.y + b.y, a.z + b.z, a.w + b.w};
}

__device__ inline float4 load_four(const float* from) { return *reinterpret_cast<const float4*>(from); }
__device__ inline void store_four(float* to, float4 value) { *reinterpret_cast<float4*>(to) = value; }

/// Where four sums of a row, or of `out`, lie in a warp's memory, counted in floats.
__device__ inline unsigned sums_offset(unsigned row, unsigned column) {
    const unsigned turn = 2 * (((row >> 1) ^ (row >> 3)) & 3);
    return row * columns + 4 * ((column / 4) ^ turn);
}

/// The epilogue of four neighbouring sums.
template <GemmForm form>
struct TileEpilogue {
    const Tf32Gemm& gemm;
    float alpha;
    float beta;

    __device__ explicit TileEpilogue(const Tf32Gemm& of)
        : gemm(of), alpha(of.device_factors != nullptr ? of.device_factors[0] : of.alpha),
          beta(of.device_factors != nullptr ? of.device_factors[1] : of.beta) {}

    __device__ bool inside(unsigned row, unsigned column) const { return row < gemm.m && column < gemm.n; }
    __device__ std::size_t index(unsigned row, unsigned column) const {
        return static_cast<std::size_t>(row) * gemm.n + column;
    }

    /// The epilogue's other operand: the bias, the output of the ReLU, or the old `out`, if it may matter. Does not wait
    /// for factors in device memory.
    __device__ float4 auxiliary(unsigned row, unsigned column) const {
        if (!inside(row, column))
            return {0.0f, 0.0f, 0.0f, 0.0f};
        if constexpr (form == GemmForm::forward) {
            if (gemm.bias != nullptr)
                return load_four(gemm.bias + column);
        } else if constexpr (form == GemmForm::data_gradient) {
            if (gemm.relu_output != nullptr)
                return load_four(gemm.relu_output + index(row, column));
        } else if (gemm.device_factors != nullptr || gemm.beta != 0.0f) {
            return load_four(gemm.out + index(row, column));
        }
        return {0.0f, 0.0f, 0.0f, 0.0f};
    }

    __device__ void store(unsigned row, unsigned column, float4 sum, float4 auxiliary) const {
        if (!inside(row, column))
            return;
        sum = {alpha * sum.x, alpha * sum.y, alpha * sum.z, alpha * sum.w};
        if constexpr (form == GemmForm::forward) {
            sum = sum + auxiliary;
            if (gemm.relu)
                sum = {positive(sum.x), positive(sum.y), positive(sum.z), positive(sum.w)};
        } else if constexpr (form == GemmForm::data_gradient) {
            if (gemm.relu_output != nullptr) {
                sum = {auxiliary.x > 0.0f ? sum.x : 0.0f, auxiliary.y > 0.0f ? sum.y : 0.0f,
                       auxiliary.z > 0.0f ? sum.z : 0.0f, auxiliary.w > 0.0f ? sum.w : 0.0f};
            }
        } else if (beta != 0.0f) {
            sum =
                sum + float4{beta * auxiliary.x, beta * auxiliary.y, beta * auxiliary.z, beta * auxiliary.w};
        }
        store_four(gemm.out + index(row, column), sum);
    }

    __device__ static float positive(float value) { return value < 0.0f ? 0.0f : value; }
};

/// Counts one of `count` parties; true, for all threads of the block, for the last of them, which then sees what the
/// others wrote before.
__device__ inline bool last_of(unsigned* ticket, unsigned count) {
    __shared__ unsigned last;
    __threadfence();
    __syncthreads();
    if (threadIdx.x == 0) {
        last = atomicAdd(ticket, 1u) + 1 == count ? 1u : 0u;
        if (last != 0)
            *ticket = 0;
    }
    __syncthreads();
    __threadfence();
    return last != 0;
}

/// The step of the bias, once the sums of all columns are there.
__device__ inline void step_bias(const Arguments& arguments) {
    const Tf32Gemm& gemm = arguments.gemm;
    const double alpha = static_cast<double>(gemm.device_factors[0]);
    for (unsigned i = threadIdx.x; i < gemm.step_outputs; i += threads) {
        double sum = 0.0;
        for (unsigned column = i; column < gemm.n; column += gemm.step_outputs)
            sum += static_cast<double>(__ldcg(arguments.column_sums + column));
        const float moved = static_cast<float>(static_cast<double>(gemm.step_bias[i]) + alpha * sum);
        for (unsigned copy = i; copy < gemm.step_size; copy += gemm.step_outputs)
            gemm.step_bias[copy] = moved;
    }
}

/// Calls `use(q, odd, group, row, column)` for each of a thread's fours of `count` tiles of units, from `first` on, which lie in its
/// warp's tile at `row` and `column`. q counts from 0.
template <class V, unsigned count = V::rows / 8, class Use>
__device__ __forceinline__ void for_all_fours(const Use& use, unsigned first = 0) {
    const unsigned unit = threadIdx.x % 32 / 4;
    const unsigned pair = 2 * (threadIdx.x % 4);
#pragma unroll
    for (unsigned q = 0; q < count; ++q)
#pragma unroll
        for (unsigned odd = 0; odd < 2; ++odd)
#pragma unroll
            for (unsigned group = 0; group < columns / 32; ++group)
                use(q, odd, group, row_of<V>(first + q, pair + odd), 32 * group + 4 * unit);
}

/// Writes the sums of a warp that shares them with no other. Auxiliaries are read many at a time before any sum is
/// written: the compiler cannot know that they do not overlap.
template <class V, class Auxiliaries>
__device__ void store_warp_tile(const Arguments& arguments, const TileEpilogue<V::form>& epilogue,
                                const Accumulators<V>& sums, const Auxiliaries& auxiliaries, unsigned row0,
                                unsigned column0, bool with_column_sums) {
    constexpr unsigned at_once = 4;
    static_assert(V::rows / 8 % at_once == 0 || V::shared_sum);
#pragma unroll
    for (unsigned q0 = 0; q0 < V::rows / 8; q0 += at_once) {
        float4 read[at_once][2][Accumulators<V>::groups];
        const auto read_one = [&](unsigned q, unsigned odd, unsigned group, unsigned row, unsigned column) {
            if constexpr (V::reads_early)
                read[q][odd][group] = auxiliaries[q0 + q][odd][group];
            else if (V::form == GemmForm::forward && q + odd > 0) // a bias, the same for all rows
                read[q][odd][group] = read[0][0][group];
            else
                read[q][odd][group] = epilogue.auxiliary(row0 + row, column0 + column);
        };
        for_all_fours<V, at_once>(read_one, q0);
        const auto store = [&](unsigned q, unsigned odd, unsigned group, unsigned row, unsigned column) {
            epilogue.store(row0 + row, column0 + column, sums.four(group, q0 + q, odd), read[q][odd][group]);
        };
        for_all_fours<V, at_once>(store, q0);
    }
    if (with_column_sums) {
#pragma unroll
        for (unsigned group = 0; group < Accumulators<V>::groups; ++group) {
            const float* const four = sums.of_columns[group];
            const unsigned column = column0 + 32 * group + threadIdx.x;
            if (threadIdx.x < 32 && threadIdx.x % 4 == 0 && column < arguments.gemm.n)
                store_four(arguments.column_sums + column, {four[0], four[1], four[2], four[3]});
        }
        if (last_of(arguments.tickets, arguments.column_tiles))
            step_bias(arguments);
    }
}

/// Puts a warp's sums in its part of the block's shared memory, those of columns behind the others.
template <class V>
__device__ __forceinline__ void share_sums(float* mine, const Accumulators<V>& sums, bool with_column_sums) {
    for_all_fours<V>([&](unsigned q, unsigned odd, unsigned group, unsigned row, unsigned column) {
        store_four(mine + sums_offset(row, column), sums.four(group, q, odd));
    });
    if (with_column_sums && threadIdx.x % 4 == 0) {
        const unsigned unit = threadIdx.x % 32 / 4;
#pragma unroll
        for (unsigned group = 0; group < Accumulators<V>::groups; ++group) {
            const float* const four = sums.of_columns[group];
            store_four(mine + sums_offset(V::rows, 32 * group + 4 * unit),
                       {four[0], four[1], four[2], four[3]});
        }
    }
}

/// The fours of a tile: a thread takes number `begin` and each `stride` after it, up to `all`. The last are the sums of
/// columns.
template <class V>
struct TileFours {
    static constexpr unsigned fours = V::rows * columns / 4;
    static constexpr unsigned column_fours = columns / 4;
    static constexpr unsigned turns = fours / threads + (V::form == GemmForm::weight_gradient ? 1 : 0);
    static constexpr unsigned at_once = turns < 4 ? turns : 4;

    const unsigned cluster_size;
    const unsigned all;
    const unsigned begin;
    const unsigned stride;

    __device__ explicit TileFours(bool with_column_sums)
        : cluster_size(cooperative_groups::this_cluster().num_blocks()),
          all(fours + (with_column_sums ? column_fours : 0)),
          begin(cooperative_groups::this_cluster().block_rank() * threads + threadIdx.x),
          stride(cluster_size * threads) {}

    __device__ static unsigned place_of(unsigned four) {
        return sums_offset(four / column_fours, four % column_fours * 4);
    }

    /// The sum over the block's warps.
    __device__ static float4 of_block(const float* shared, unsigned four) {
        const float* const from = shared + place_of(four);
        float4 sum = load_four(from);
#pragma unroll
        for (unsigned w = 1; w < warps; ++w)
            sum = sum + load_four(from + w * V::warp_floats);
        return sum;
    }

    /// The sums of some fours over the cluster's warps, each `stride` after the one before. The code is kept short: it runs
    /// once, so its instructions come from memory.
    __device__ __forceinline__ void add_up(float4 (&sum)[at_once], float* shared, unsigned four) const {
        const auto for_all = [&](const auto& add) {
#pragma unroll
            for (unsigned i = 0; i < at_once; ++i) {
                if (four + i * stride < all)
                    add(i, four + i * stride);
            }
        };
        if (cluster_size == 1) {
            for_all([&](unsigned i, unsigned at) { sum[i] = of_block(shared, at); });
            return;
        }
        const cooperative_groups::cluster_group cluster = cooperative_groups::this_cluster();
        const float* from = cluster.map_shared_rank(shared, 0);
        for_all([&](unsigned i, unsigned at) { sum[i] = load_four(from + place_of(at)); });
#pragma unroll 1
        for (unsigned r = 1; r < cluster_size; ++r) {
            from = cluster.map_shared_rank(shared, r);
            for_all([&](unsigned i, unsigned at) { sum[i] = sum[i] + load_four(from + place_of(at)); });
        }
    }
};

/// Where the fours of a tile go.
template <class V>
struct TileOutput {
    using Fours = TileFours<V>;

    const Arguments& arguments;
    const TileEpilogue<V::form>& epilogue;
    const unsigned row0;
    const unsigned column0;

    __device__ float4 auxiliary(unsigned four) const {
        return four < Fours::fours ? epilogue.auxiliary(row0 + four / Fours::column_fours,
                                                        column0 + four % Fours::column_fours * 4)
                                   : float4{0.0f, 0.0f, 0.0f, 0.0f};
    }

    __device__ void store(unsigned four, float4 sum, float4 auxiliary) const {
        const unsigned row = four / Fours::column_fours;
        const unsigned column = column0 + four % Fours::column_fours * 4;
        if (row < V::rows)
            epilogue.store(row0 + row, column, sum, auxiliary);
        else if (column < arguments.gemm.n)
            store_four(arguments.column_sums + column, sum);
    }
};

/// Writes the sums of a tile that one cluster computes alone.
template <class V>
__device__ __forceinline__ void store_whole(const TileFours<V>& tile, const TileOutput<V>& output,
                                            float* shared, const float4 (&auxiliaries)[TileFours<V>::turns]) {
    constexpr unsigned at_once = TileFours<V>::at_once;
#pragma unroll
    for (unsigned turn = 0; turn < TileFours<V>::turns; turn += at_once) {
        const unsigned four = tile.begin + turn * tile.stride;
        if (four >= tile.all)
            break;
        float4 sum[at_once];
        tile.add_up(sum, shared, four);
#pragma unroll
        for (unsigned i = 0; i < at_once && turn + i < TileFours<V>::turns; ++i) {
            if (four + i * tile.stride < tile.all)
                output.store(four + i * tile.stride, sum[i], auxiliaries[turn + i]);
        }
    }
}

/// Stores the partial sums of a split; the last of a tile's splits adds them up and writes the result. Whether it is this one.
template <class V>
__device__ __forceinline__ bool store_split(const TileFours<V>& fours, const TileOutput<V>& output,
                                            float* shared) {
    constexpr unsigned at_once = TileFours<V>::at_once;
    const Arguments& arguments = output.arguments;
    const unsigned tile = blockIdx.x / fours.cluster_size;
    const auto partial = [&](unsigned split, unsigned four) {
        const std::size_t before = (static_cast<std::size_t>(split) * arguments.tiles + tile);
        return arguments.partial_sums +
               4 * (before * (TileFours<V>::fours + TileFours<V>::column_fours) + four);
    };
#pragma unroll 1
    for (unsigned four = fours.begin; four < fours.all; four += at_once * fours.stride) {
        float4 sum[at_once];
        fours.add_up(sum, shared, four);
#pragma unroll
        for (unsigned i = 0; i < at_once; ++i) {
            if (four + i * fours.stride < fours.all)
                store_four(partial(blockIdx.y, four + i * fours.stride), sum[i]);
        }
    }
    const bool done = last_of(arguments.tickets + 1 + blockIdx.x, gridDim.y);
#pragma unroll 1
    for (unsigned four = fours.begin; done && four < fours.all; four += fours.stride) {
        const float4 auxiliary = output.auxiliary(four);
        float4 sum = __ldcg(reinterpret_cast<const float4*>(partial(0, four)));
#pragma unroll 8
        for (unsigned split = 1; split < gridDim.y; ++split)
            sum = sum + __ldcg(reinterpret_cast<const float4*>(partial(split, four)));
        output.store(four, sum, auxiliary);
    }
    return done;
}

/// Adds up the sums of a block, of a cluster, and of all splits, each time in the same order, and writes them.
template <class V>
__device__ void store_block_tile(const Arguments& arguments, const TileEpilogue<V::form>& epilogue,
                                 const Accumulators<V>& sums, float* shared, unsigned row0, unsigned column0,
                                 bool with_column_sums) {
    share_sums(shared + threadIdx.x / 32 * V::warp_floats, sums, with_column_sums);
    const TileFours<V> fours(with_column_sums);
    const TileOutput<V> output{arguments, epilogue, row0, column0};
    float4 auxiliaries[TileFours<V>::turns];
    if (gridDim.y == 1) {
#pragma unroll
        for (unsigned turn = 0; turn < TileFours<V>::turns; ++turn)
            auxiliaries[turn] = output.auxiliary(fours.begin + turn * fours.stride);
    }
    __syncthreads();

    if (fours.cluster_size > 1) {
#pragma unroll 2
        for (unsigned four = threadIdx.x; four < fours.all; four += threads)
            store_four(shared + fours.place_of(four), fours.of_block(shared, four));
        cooperative_groups::this_cluster().sync();
    }
    bool done = true;
    if (gridDim.y == 1)
        store_whole(fours, output, shared, auxiliaries);
    else
        done = store_split(fours, output, shared);
    // No block exits while others read its shared memory.
    if (fours.cluster_size > 1)
        cooperative_groups::this_cluster().sync();
    if (with_column_sums && done && last_of(arguments.tickets, arguments.column_tiles * fours.cluster_size))
        step_bias(arguments);
}

} // namespace nn::detail::tf32
