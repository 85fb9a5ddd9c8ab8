/// \file
/// The kernel of gemm_tf32.hpp.
#pragma once

#include <nn/core/ceil_div.hpp>
#include <nn/gemm/detail/gemm_tf32_accumulators.cuh>

namespace nn::detail::tf32 {

/// The stages along k that a warp works on: `count` of them, from `first` on, each `sharers` after the one before.
struct WarpStages {
    unsigned first;
    unsigned count;
    unsigned sharers;
};

template <class V>
__device__ __forceinline__ WarpStages stages_of_warp(unsigned k, unsigned cluster_size, unsigned rank) {
    const unsigned sharers = V::shared_sum ? warps * cluster_size * gridDim.y : 1;
    const unsigned first = V::shared_sum ? (blockIdx.y * cluster_size + rank) * warps + threadIdx.x / 32 : 0;
    const unsigned stages = ceil_div(k, V::depth);
    return {first, first < stages ? (stages - first + sharers - 1) / sharers : 0, sharers};
}

/// What the epilogue reads, if it is read before the product.
template <class V>
using EarlyAuxiliaries = float4[V::reads_early ? V::rows / 8 : 1][2][columns / 32];

template <class V>
__device__ __forceinline__ void read_early(EarlyAuxiliaries<V>& early, const TileEpilogue<V::form>& epilogue,
                                           unsigned row0, unsigned column0) {
    for_all_fours<V>([&](unsigned q, unsigned odd, unsigned group, unsigned row, unsigned column) {
        early[q][odd][group] = epilogue.auxiliary(row0 + row, column0 + column);
    });
}

/// A product, or its part that a block computes.
template <class V>
__global__ void __launch_bounds__(threads) gemm_kernel(const __grid_constant__ Arguments arguments) {
#if __CUDA_ARCH__ >= 900
    extern __shared__ __align__(128) float shared[];
    const Tf32Gemm& gemm = arguments.gemm;
    const cooperative_groups::cluster_group cluster = cooperative_groups::this_cluster();
    const unsigned cluster_size = V::shared_sum ? cluster.num_blocks() : 1;
    const unsigned rank = V::shared_sum ? cluster.block_rank() : 0;
    const unsigned warp = threadIdx.x / 32;
    const unsigned lane = threadIdx.x % 32;
    const unsigned tile = blockIdx.x / cluster_size;
    const unsigned column0 = tile % arguments.column_tiles * columns;
    const unsigned tile_row0 = tile / arguments.column_tiles * V::block_rows;
    const unsigned row0 = tile_row0 + (V::shared_sum ? 0 : warp * V::rows);
    const bool with_column_sums = gemm.step_bias != nullptr && tile_row0 == 0;
    float* const mine = shared + warp * V::warp_floats;

    const auto [first, count, sharers] = stages_of_warp<V>(gemm.k, cluster_size, rank);
    const AsyncCopies<V::p_along_k, columns, V::depth> p_copies(gemm.b, lane, column0, gemm.n, gemm.k);
    const AsyncCopies<V::q_along_k, V::rows, V::depth> q_copies(gemm.a, lane, row0, gemm.m, gemm.k);
    const std::uint32_t mine_address = shared_address(mine);
    const bool any = row0 < gemm.m;
    const unsigned step = sharers * V::depth;
    const auto begin_p = [&](unsigned i, std::uint32_t to) {
        if (i < count && any)
            p_copies.begin(to, first * V::depth + i * step);
    };
    const auto begin_q = [&](unsigned i, std::uint32_t to) {
        if (i < count && any)
            q_copies.begin(to + 4 * columns * V::depth, first * V::depth + i * step);
        commit_copies();
    };
    constexpr unsigned stage_bytes = 4 * V::stage_floats;
    constexpr unsigned ahead = V::stages - 1;

    if (gemm.prefetch_b) {
#pragma unroll
        for (unsigned i = 0; i < ahead; ++i)
            begin_p(i, mine_address + i * stage_bytes);
    }
    cudaGridDependencySynchronize();
    const TileEpilogue<V::form> epilogue(gemm);
#pragma unroll
    for (unsigned i = 0; i < ahead; ++i) {
        if (!gemm.prefetch_b)
            begin_p(i, mine_address + i * stage_bytes);
        begin_q(i, mine_address + i * stage_bytes);
    }
    EarlyAuxiliaries<V> early = {};
    if constexpr (V::reads_early)
        read_early<V>(early, epilogue, row0, column0);
    Accumulators<V> sums;

    unsigned slot = 0;
    unsigned free_slot = ahead;
#pragma unroll 1
    for (unsigned i = 0; i < count; ++i) {
        wait_for_copies<static_cast<int>(V::stages) - 2>();
        __syncwarp();
        begin_p(i + ahead, mine_address + free_slot * stage_bytes);
        begin_q(i + ahead, mine_address + free_slot * stage_bytes);
        const float* const stage = mine + slot * V::stage_floats;
        if (any)
            sums.add(stage, stage + columns * V::depth, lane, with_column_sums);
        free_slot = slot;
        slot = slot + 1 == V::stages ? 0 : slot + 1;
    }
    wait_for_copies<0>();
    __syncwarp();
    // Not before: blocks that only wait would keep those of other streams from coming in.
    cudaTriggerProgrammaticLaunchCompletion();
    if (with_column_sums)
        sums.reduce_columns();

    if constexpr (V::shared_sum)
        store_block_tile(arguments, epilogue, sums, shared, row0, column0, with_column_sums);
    else
        store_warp_tile(arguments, epilogue, sums, early, row0, column0, with_column_sums);
#endif
}

} // namespace nn::detail::tf32
