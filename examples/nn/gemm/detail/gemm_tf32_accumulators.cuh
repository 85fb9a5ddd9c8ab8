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

/// Writes the sums of a warp that shares them with no other. Auxiliaries are read many at a time before any sum is
/// written: the compiler cannot know that they do not overlap.
template <class V, class Auxiliaries>
__device__ void store_warp_tile(const Arguments& arguments, const TileEpilogue<V::form>& epilogue,
                                const Accumulators<V>& sums, const Auxiliaries& auxiliaries, unsigned row0,
                                unsigned column0, bool with_column_sums) {
    const unsigned unit = threadIdx.x % 32 / 4;
    const unsigned pair = 2 * (threadIdx.x % 4);
    constexpr unsigned at_once = 4;
    static_assert(V::rows / 8 % at_once == 0 || V::shared_sum);
#pragma unroll
    for (unsigned q0 = 0; q0 < V::rows / 8; q0 += at_once) {
        float4 read[at_once][2][Accumulators<V>::groups];
        const auto for_all = [&](const auto& use) {
#pragma unroll
            for (unsigned q = 0; q < at_once; ++q)
#pragma unroll
                for (unsigned odd = 0; odd < 2; ++odd)
#pragma unroll
                    for (unsigned group = 0; group < Accumulators<V>::groups; ++group)
                        use(q, odd, group, row0 + row_of<V>(q0 + q, pair + odd),
                            column0 + 32 * group + 4 * unit);
        };
        for_all([&](unsigned q, unsigned odd, unsigned group, unsigned row, unsigned column) {
            if constexpr (V::reads_early)
                read[q][odd][group] = auxiliaries[q0 + q][odd][group];
            else if (V::form == GemmForm::forward && q + odd > 0) // a bias, the same for all rows
                read[q][odd][group] = read[0][0][group];
            else
                read[q][odd][group] = epilogue.auxiliary(row, column);
        });
        for_all([&](unsigned q, unsigned odd, unsigned group, unsigned row, unsigned column) {
            epilogue.store(row, column, sums.four(group, q0 + q, odd), read[q][odd][group]);
        });
    }
    if (with_column_sums) {
#pragma unroll
        for (unsigned group = 0; group < Accumulators<V>::groups; ++group) {
            const float* const four = sums.of_columns[group];
            const unsigned column = column0 + 32 * group + 4 * unit;
            if (threadIdx.x < 32 && pair == 0 && column < arguments.gemm.n)
                store_four(arguments.column_sums + column, {four[0], four[1], four[2], four[3]});
        }
        if (last_of(arguments.tickets, arguments.column_tiles))
            step_bias(arguments);
    }
}

/// Adds up the sums of a block, of a cluster, and of all splits, each time in the same order, and writes them.
template <class V>
__device__ void store_block_tile(const Arguments& arguments, const TileEpilogue<V::form>& epilogue,
                                 const Accumulators<V>& sums, float* shared, unsigned row0, unsigned column0,
                                 bool with_column_sums) {
    const cooperative_groups::cluster_group cluster = cooperative_groups::this_cluster();
    const unsigned cluster_size = cluster.num_blocks();
    const unsigned unit = threadIdx.x % 32 / 4;
    const unsigned pair = 2 * (threadIdx.x % 4);
    float* const mine = shared + threadIdx.x / 32 * V::warp_floats;
#pragma unroll
    for (unsigned q = 0; q < V::rows / 8; ++q)
#pragma unroll
        for (unsigned odd = 0; odd < 2; ++odd)
#pragma unroll
            for (unsigned group = 0; group < Accumulators<V>::groups; ++group)
                store_four(mine + sums_offset(row_of<V>(q, pair + odd), 32 * group + 4 * unit),
                           sums.four(group, q, odd));
    if (with_column_sums && pair == 0) {
#pragma unroll
        for (unsigned group = 0; group < Accumulators<V>::groups; ++group) {
            const float* const four = sums.of_columns[group];
            store_four(mine + sums_offset(V::rows, 32 * group + 4 * unit),
                       {four[0], four[1], four[2], four[3]});
        }
    }

    // Each thread takes some fours of the tile, the last of which are the sums of columns.
    constexpr unsigned fours = V::rows * columns / 4;
    constexpr unsigned column_fours = columns / 4;
    constexpr unsigned turns = fours / threads + (V::form == GemmForm::weight_gradient ? 1 : 0);
    const unsigned all = fours + (with_column_sums ? column_fours : 0);
    const unsigned begin = cluster.block_rank() * threads + threadIdx.x;
    const unsigned stride = cluster_size * threads;
    const auto auxiliary_of = [&](unsigned four) {
        return four < fours
                   ? epilogue.auxiliary(row0 + four / column_fours, column0 + four % column_fours * 4)
                   : float4{0.0f, 0.0f, 0.0f, 0.0f};
    };
    float4 auxiliaries[turns];
    if (gridDim.y == 1) {
#pragma unroll
        for (unsigned turn = 0; turn < turns; ++turn)
            auxiliaries[turn] = auxiliary_of(begin + turn * stride);
    }
    __syncthreads();

    const auto place_of = [](unsigned four) {
        return sums_offset(four / column_fours, four % column_fours * 4);
    };
    const auto of_block = [&](unsigned four) {
        const float* const from = shared + place_of(four);
        float4 sum = load_four(from);
#pragma unroll
        for (unsigned w = 1; w < warps; ++w)
            sum = sum + load_four(from + w * V::warp_floats);
        return sum;
    };
    if (cluster_size > 1) {
#pragma unroll 2
        for (unsigned four = threadIdx.x; four < all; four += threads)
            store_four(shared + place_of(four), of_block(four));
        cluster.sync();
    }
    // The sums of some fours, each `stride` after the one before. The code is kept short: it runs once, so its
    // instructions come from memory.
    constexpr unsigned at_once = turns < 4 ? turns : 4;
    const auto add_up = [&](float4(&sum)[at_once], unsigned four) {
        const auto for_all = [&](const auto& add) {
#pragma unroll
            for (unsigned i = 0; i < at_once; ++i) {
                if (four + i * stride < all)
                    add(i, four + i * stride);
            }
        };
        if (cluster_size == 1) {
            for_all([&](unsigned i, unsigned at) { sum[i] = of_block(at); });
            return;
        }
        const float* from = cluster.map_shared_rank(shared, 0);
        for_all([&](unsigned i, unsigned at) { sum[i] = load_four(from + place_of(at)); });
#pragma unroll 1
        for (unsigned r = 1; r < cluster_size; ++r) {
            from = cluster.map_shared_rank(shared, r);
            for_all([&](unsigned i, unsigned at) { sum[i] = sum[i] + load_four(from + place_of(at)); });
        }
    };
    const auto use = [&](unsigned four, float4 sum, float4 auxiliary) {
        const unsigned row = four / column_fours;
        const unsigned column = column0 + four % column_fours * 4;
        if (row < V::rows)
            epilogue.store(row0 + row, column, sum, auxiliary);
        else if (column < arguments.gemm.n)
            store_four(arguments.column_sums + column, sum);
    };
    bool done = true;
    if (gridDim.y == 1) {
#pragma unroll
        for (unsigned turn = 0; turn < turns; turn += at_once) {
            const unsigned four = begin + turn * stride;
            if (four >= all)
                break;
            float4 sum[at_once];
            add_up(sum, four);
#pragma unroll
            for (unsigned i = 0; i < at_once && turn + i < turns; ++i) {
                if (four + i * stride < all)
                    use(four + i * stride, sum[i], auxiliaries[turn + i]);
            }
        }
    } else {
        const unsigned tile = blockIdx.x / cluster_size;
        const auto partial = [&](unsigned split, unsigned four) {
            const std::size_t before = (static_cast<std::size_t>(split) * arguments.tiles + tile);
            return arguments.partial_sums + 4 * (before * (fours + column_fours) + four);
        };
#pragma unroll 1
        for (unsigned four = begin; four < all; four += at_once * stride) {
            float4 sum[at_once];
            add_up(sum, four);
#pragma unroll
            for (unsigned i = 0; i < at_once; ++i) {
                if (four + i * stride < all)
                    store_four(partial(blockIdx.y, four + i * stride), sum[i]);
            }
        }
        done = last_of(arguments.tickets + 1 + blockIdx.x, gridDim.y);
#pragma unroll 1
        for (unsigned four = begin; done && four < all; four += stride) {
            const float4 auxiliary = auxiliary_of(four);
            float4 sum = __ldcg(reinterpret_cast<const float4*>(partial(0, four)));
#pragma unroll 8
            for (unsigned split = 1; split < gridDim.y; ++split)
                sum = sum + __ldcg(reinterpret_cast<const float4*>(partial(split, four)));
            use(four, sum, auxiliary);
        }
    }
    // No block exits while others read its shared memory.
    if (cluster_size > 1)
        cluster.sync();
    if (with_column_sums && done && last_of(arguments.tickets, arguments.column_tiles * cluster_size))
        step_bias(arguments);
}

} // namespace nn::detail::tf32
