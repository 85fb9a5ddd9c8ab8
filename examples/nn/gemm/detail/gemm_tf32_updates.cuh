/// \file
/// The kernels of several weight updates at once: one multiplies, one adds up sums that were split.
///
/// The four warps of a block share factors, and compute 128 rows by 128 columns: half of what 64 by 64 each would bring
/// through the cache. Long sums are cut into pieces of k, and each piece's sums wait in memory for the second kernel.
#pragma once

#include <nn/core/ceil_div.hpp>
#include <nn/gemm/detail/gemm_tf32_accumulators.cuh>

namespace nn::detail::tf32 {

struct Updates {
    struct Part {
        Tf32Gemm gemm;
        unsigned column_tiles;
        unsigned tiles;
        unsigned splits;     ///< of k
        unsigned block_end;  ///< of the blocks that multiply, over all parts so far
        unsigned finish_end; ///< of those that finish
        unsigned summers;    ///< threads that add up the splits of a four, each some of them
        /// [splits, tiles, tile_fours] fours as `updates_kernel` has them; only for several splits.
        float* partial_sums;
        float* column_sums; ///< [splits, column_tiles * block_columns]
    };
    Part parts[tf32_most_updates];
};

/// What the kernels are compiled for.
struct WideUpdate {
    static constexpr GemmForm form = GemmForm::weight_gradient;
    static constexpr unsigned rows = 64; ///< of a warp
    static constexpr unsigned depth = 16;
    static constexpr bool p_along_k = false;
    static constexpr bool q_along_k = false;
    static constexpr unsigned block_rows = 2 * rows;
    static constexpr unsigned block_columns = 2 * columns;
    static constexpr unsigned part_floats = 64 * depth; ///< of a stage, that each warp copies
    static constexpr unsigned stage_floats = warps * part_floats;
    static constexpr unsigned stages = 6; ///< that a block has in shared memory
    static constexpr std::size_t shared_bytes = sizeof(float) * stages * stage_floats;
    /// Fours of sums: of a thread, and of a block.
    static constexpr unsigned fours = rows / 8 * columns / 16;
    static constexpr unsigned tile_fours = fours * threads;
};
inline constexpr unsigned finish_threads = 256;
/// The blocks that finish a tile of a part whose fours have so many summers.
__host__ __device__ constexpr unsigned tile_finish_blocks(unsigned summers) {
    return WideUpdate::tile_fours / (finish_threads / summers);
}

/// The part that a block is for, by the ends of blocks in `end`, and which of its blocks it is.
__device__ inline const Updates::Part& part_of_block(const Updates& updates, unsigned Updates::Part::*end,
                                                     unsigned& index) {
    const Updates::Part* part = updates.parts;
    index = blockIdx.x;
    for (; blockIdx.x >= part->*end; ++part)
        index = blockIdx.x - part->*end;
    return *part;
}

/// Where a thread's sums belong in `out`. Its four `i` is of tile i / 4 of the units, of the odd row of a pair if bit 1
/// of i is set, and of the right half of a warp's columns if bit 0 is.
struct UpdateCoordinates {
    unsigned row0;    ///< its warp's first
    unsigned column0; ///< likewise
    unsigned lane;

    __device__ UpdateCoordinates(const Updates::Part& part, unsigned tile, unsigned thread)
        : row0(tile / part.column_tiles * WideUpdate::block_rows + thread / 64 * WideUpdate::rows),
          column0(tile % part.column_tiles * WideUpdate::block_columns + thread / 32 % 2 * columns),
          lane(thread % 32) {}

    __device__ unsigned row(unsigned i) const {
        return row0 + row_of<WideUpdate>(i / 4, 2 * (lane % 4) + i / 2 % 2);
    }
    __device__ unsigned column(unsigned i) const { return column0 + 32 * (i % 2) + lane / 4 * 4; }
    __device__ bool inside(const Tf32Gemm& gemm) const { return row0 < gemm.m && column0 < gemm.n; }
};

/// Asks for a warp's elements of `out`: they come while the sums are being made.
__device__ inline void fetch_out(const Tf32Gemm& gemm, const UpdateCoordinates& place) {
    const unsigned column = place.column0 + place.lane % 2 * 32;
    for (unsigned row = place.row0 + place.lane / 2; row < place.row0 + WideUpdate::rows; row += 16) {
        if (row < gemm.m && column < gemm.n) {
            const float* const from = gemm.out + static_cast<std::size_t>(row) * gemm.n + column;
            asm volatile("prefetch.global.L2 [%0];" : : "l"(__cvta_generic_to_global(from)));
        }
    }
}

/// Takes the step with sums that are complete. Fours of `out` are read many at a time before any is written: the
/// compiler cannot know that they are apart.
__device__ inline void take_step(const TileEpilogue<WideUpdate::form>& epilogue,
                                 const UpdateCoordinates& place, const Accumulators<WideUpdate>& sums) {
    constexpr unsigned at_once = 16;
#pragma unroll
    for (unsigned first = 0; first < WideUpdate::fours; first += at_once) {
        float4 before[at_once];
#pragma unroll
        for (unsigned i = 0; i < at_once; ++i)
            before[i] = epilogue.auxiliary(place.row(first + i), place.column(first + i));
#pragma unroll
        for (unsigned i = 0; i < at_once; ++i)
            epilogue.store(place.row(first + i), place.column(first + i),
                           sums.four(i % 2, (first + i) / 4, i / 2 % 2), before[i]);
    }
}

__device__ inline void store_column_sums(float* to, Accumulators<WideUpdate>& sums, unsigned lane) {
    sums.reduce_columns();
    if (lane % 4 != 0)
        return;
#pragma unroll
    for (unsigned group = 0; group < columns / 32; ++group) {
        const float* const four = sums.of_columns[group];
        store_four(to + 32 * group + lane / 4 * 4, {four[0], four[1], four[2], four[3]});
    }
}

/// Multiplies, and takes the step where a sum is complete.
__global__ void __launch_bounds__(threads, 2) updates_kernel(const __grid_constant__ Updates updates) {
#if __CUDA_ARCH__ >= 900
    using V = WideUpdate;
    extern __shared__ __align__(128) float shared[];
    unsigned index = 0;
    const Updates::Part& part = part_of_block(updates, &Updates::Part::block_end, index);
    const Tf32Gemm& gemm = part.gemm;
    const unsigned tile = index / part.splits;
    const unsigned split = index % part.splits;
    const unsigned warp = threadIdx.x / 32;
    const UpdateCoordinates place(part, tile, threadIdx.x);
    const bool inside = place.inside(gemm);
    const bool with_column_sums = gemm.step_bias != nullptr && place.row0 == 0;
    const unsigned k_stages = ceil_div(gemm.k, V::depth);
    const unsigned each = ceil_div(k_stages, part.splits);
    const unsigned first = min(split * each, k_stages);
    const unsigned count = min(each, k_stages - first);

    // Two warps copy the tile's columns, 64 each, and two its rows.
    const bool of_b = warp < 2;
    constexpr unsigned side = V::block_rows;
    static_assert(side == V::block_columns);
    const unsigned copied = (of_b ? place.column0 : place.row0) / side * side + warp % 2 * 64;
    const unsigned copied_end = of_b ? gemm.n : gemm.m;
    const AsyncCopies<false, 64, V::depth> copies(of_b ? gemm.b : gemm.a, place.lane, copied, copied_end,
                                                  gemm.k);
    const std::uint32_t address = shared_address(shared + warp * V::part_floats);
    const auto begin = [&](unsigned i, unsigned slot) {
        if (i < count && copied < copied_end)
            copies.begin(address + slot * (4 * V::stage_floats), (first + i) * V::depth);
        commit_copies();
    };
    constexpr unsigned ahead = V::stages - 1;
    cudaGridDependencySynchronize();
#pragma unroll 1
    for (unsigned i = 0; i < ahead; ++i)
        begin(i, i);
    const TileEpilogue<V::form> epilogue(gemm);
    if (part.splits == 1)
        fetch_out(gemm, place);
    Accumulators<V> sums;
    unsigned slot = 0;
    unsigned free_slot = ahead;
    for (unsigned i = 0; i < count; ++i) {
        wait_for_copies<static_cast<int>(V::stages) - 2>();
        // All copies of this stage have arrived, and no thread reads the stage before.
        __syncthreads();
        begin(i + ahead, free_slot);
        const float* const stage = shared + slot * V::stage_floats;
        if (inside)
            sums.add(stage + warp % 2 * V::part_floats, stage + (2 + warp / 2) * V::part_floats, place.lane,
                     with_column_sums);
        free_slot = slot;
        slot = slot + 1 == V::stages ? 0 : slot + 1;
    }
    wait_for_copies<0>();
    cudaTriggerProgrammaticLaunchCompletion();
    if (!inside)
        return;
    if (with_column_sums)
        store_column_sums(part.column_sums + split * part.column_tiles * V::block_columns + place.column0,
                          sums, place.lane);
    if (part.splits == 1) {
        take_step(epilogue, place, sums);
    } else {
        const std::size_t before = static_cast<std::size_t>(split) * part.tiles + tile;
        float* const to = part.partial_sums + 4 * (before * V::tile_fours + threadIdx.x);
#pragma unroll
        for (unsigned i = 0; i < V::fours; ++i)
            store_four(to + 4 * threads * i, sums.four(i % 2, i / 4, i / 2 % 2));
    }
#endif
}

/// The step of one bias, by a warp: the sum over all splits, and over all columns that are one output's.
__device__ inline void step_bias_of(const Updates::Part& part, unsigned output, unsigned lane) {
    const Tf32Gemm& gemm = part.gemm;
    const unsigned copies = gemm.n / gemm.step_outputs;
    const double before = static_cast<double>(gemm.step_bias[output]);
    const double alpha = static_cast<double>(gemm.device_factors[0]);
    const unsigned all = copies * part.splits;
    constexpr unsigned at_once = 8;
    double sum = 0.0;
    for (unsigned first = lane; first < all; first += 32 * at_once) {
        float values[at_once];
#pragma unroll
        for (unsigned j = 0; j < at_once; ++j) {
            const unsigned i = first + 32 * j;
            const unsigned place = i / copies * part.column_tiles * WideUpdate::block_columns +
                                   i % copies * gemm.step_outputs + output;
            values[j] = i < all ? __ldcg(part.column_sums + place) : 0.0f;
        }
#pragma unroll
        for (unsigned j = 0; j < at_once; ++j)
            sum += static_cast<double>(values[j]);
    }
#pragma unroll
    for (unsigned distance = 16; distance > 0; distance /= 2)
        sum += __shfl_xor_sync(0xffffffffu, sum, distance);
    const float moved = static_cast<float>(before + alpha * sum);
    for (unsigned i = output + lane * gemm.step_outputs; i < gemm.step_size; i += 32 * gemm.step_outputs)
        gemm.step_bias[i] = moved;
}

/// Adds up the splits of those that have several, in their order, and takes the step; and those of the biases.
__global__ void __launch_bounds__(finish_threads)
    finish_updates_kernel(const __grid_constant__ Updates updates) {
#if __CUDA_ARCH__ >= 900
    using V = WideUpdate;
    unsigned index = 0;
    const Updates::Part& part = part_of_block(updates, &Updates::Part::finish_end, index);
    const unsigned blocks_of_tile = tile_finish_blocks(part.summers);
    const unsigned summing = part.splits > 1 ? part.tiles * blocks_of_tile : 0;
    cudaGridDependencySynchronize();
    if (index >= summing) {
        const unsigned output = (index - summing) * (finish_threads / 32) + threadIdx.x / 32;
        if (part.gemm.step_bias != nullptr && output < part.gemm.step_outputs)
            step_bias_of(part, output, threadIdx.x % 32);
        return;
    }
    __shared__ float4 sums[finish_threads];
    const unsigned fours = finish_threads / part.summers; // of a block
    const unsigned tile = index / blocks_of_tile;
    const unsigned at = index % blocks_of_tile * fours + threadIdx.x % fours;
    const UpdateCoordinates place(part, tile, at % threads);
    const unsigned row = place.row(at / threads);
    const unsigned column = place.column(at / threads);
    const TileEpilogue<V::form> epilogue(part.gemm);
    const unsigned each = ceil_div(part.splits, part.summers);
    const unsigned first = threadIdx.x / fours * each;
    const unsigned end = epilogue.inside(row, column) ? min(first + each, part.splits) : 0;
    const float4* const from = reinterpret_cast<const float4*>(part.partial_sums) + tile * V::tile_fours + at;
    const std::size_t stride = static_cast<std::size_t>(part.tiles) * V::tile_fours;
    const float4 nothing = {0.0f, 0.0f, 0.0f, 0.0f};
    float4 sum = nothing;
    // Many are asked for at a time: each takes long to come.
    constexpr unsigned at_once = 16;
    for (unsigned split = first; split < end; split += at_once) {
        float4 values[at_once];
#pragma unroll
        for (unsigned i = 0; i < at_once; ++i)
            values[i] = split + i < end ? __ldcg(from + (split + i) * stride) : nothing;
#pragma unroll
        for (unsigned i = 0; i < at_once; ++i)
            sum = sum + values[i];
    }
    sums[threadIdx.x] = sum;
    __syncthreads();
    if (threadIdx.x >= fours || end == 0)
        return;
    const float4 before = epilogue.auxiliary(row, column);
    for (unsigned summer = 1; summer < part.summers; ++summer)
        sum = sum + sums[summer * fours + threadIdx.x];
    epilogue.store(row, column, sum, before);
#endif
}

} // namespace nn::detail::tf32
