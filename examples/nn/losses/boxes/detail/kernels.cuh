/// \file
/// The box losses' kernels. Each sum is made in a fixed order: a block adds up its tile, and the block that finishes last,
/// which a ticket finds, adds up the tiles. The kernel resets the ticket to 0, so a graph can be replayed.
#pragma once

#include <nn/core/ceil_div.hpp>
#include <nn/losses/boxes/detail/per_box.hpp>

namespace nn::detail {

inline constexpr unsigned loss_threads = values_at_once;
inline constexpr unsigned loss_warps = loss_threads / 32;

/// The sum over a warp, in every lane, as a tree.
__device__ inline double warp_sum(double value) {
#pragma unroll
    for (int distance = 16; distance > 0; distance /= 2)
        value += __shfl_xor_sync(0xFFFFFFFFu, value, distance);
    return value;
}

/// The sum over a block, in every thread of its first warp; `shared` has an element a warp.
__device__ inline double block_sum(double value, double* shared) {
    value = warp_sum(value);
    if (threadIdx.x % 32 == 0)
        shared[threadIdx.x / 32] = value;
    __syncthreads();
    static_assert(loss_warps == 8);
    return ((shared[0] + shared[1]) + (shared[2] + shared[3])) +
           ((shared[4] + shared[5]) + (shared[6] + shared[7]));
}

/// Tells the first warp of a block, when its first lane has written what others will read, whether its block is the last
/// of `blocks` to get here. Then it may read what they have written.
__device__ inline bool is_last_block(unsigned* ticket, unsigned blocks) {
    unsigned before = 0;
    if (blocks > 1 && threadIdx.x == 0) {
        // Publishes this block's writes and takes notice of the others' at once, which costs less than two fences.
        asm volatile("atom.acq_rel.gpu.global.inc.u32 %0, [%1], %2;"
                     : "=r"(before)
                     : "l"(__cvta_generic_to_global(ticket)), "r"(blocks - 1)
                     : "memory");
    }
    const bool last = __shfl_sync(0xFFFFFFFFu, before, 0) == blocks - 1;
    __syncwarp(); // hands the first lane's view of memory on to the others
    return last;
}

/// The sum of what the blocks have written, in every lane of a warp.
__device__ inline double sum_of_tiles(const double* partials, unsigned tiles) {
    constexpr unsigned loads = 8; // under way at a time
    double sum = 0.0;
    for (unsigned first = threadIdx.x; first < tiles; first += 32 * loads) {
        double loaded[loads];
#pragma unroll
        for (unsigned k = 0; k < loads; ++k) {
            // Past the L1 cache, which may hold an earlier launch's.
            const unsigned tile = first + 32 * k;
            const double value = __ldcg(partials + (tile < tiles ? tile : tiles - 1));
            loaded[k] = tile < tiles ? value : 0.0;
        }
#pragma unroll
        for (unsigned k = 0; k < loads; ++k)
            sum += loaded[k];
    }
    return warp_sum(sum);
}

/// The end of a kernel: only the first warp of a block comes here, with the block's sum.
__device__ inline void finish_mean(double sum, double* partials, unsigned* ticket, unsigned tiles,
                                   std::int64_t count, float* mean) {
    if (threadIdx.x == 0)
        partials[blockIdx.x] = sum;
    if (!is_last_block(ticket, tiles))
        return;
    const double total = sum_of_tiles(partials, tiles);
    if (threadIdx.x == 0)
        *mean = static_cast<float>(total / divisor_of(count));
}

/// Adds up `rows_at_once` rows from `row` on, all of them before `last_row`, and writes their gradient.
template <class Formula, bool with_gradient, class P, class U, class G>
__device__ double few_rows(const RowArguments<P, U, G>& all, std::int64_t row, std::int64_t last_row,
                           const std::int64_t* begins, std::int64_t size) {
    double sum = 0.0;
    const std::int64_t end = begins[rows_at_once];
    for (std::int64_t i = begins[0] + threadIdx.x; i < end; i += loss_threads) {
        int within = 0; // the last of the rows that begins at or before the value
#pragma unroll
        for (int r = 1; r < rows_at_once; ++r)
            within += begins[r] <= i ? 1 : 0;
        const std::int64_t begin = begins[within];
        if (begins[within + 1] - begin > all.width) { // has no predictions for its end
            sum += NAN;
            continue;
        }
        const std::int64_t place = (row + within) * all.width + (i - begin);
        double factor = 0.0;
        if constexpr (with_gradient) {
            std::int64_t count = size;
            asm volatile("" : "+l"(count)); // not before the loop, where it would hold up the loads
            factor = gradient_factor(all.scale, divisor_of(count));
        }
        sum += value_of_pair<Formula, with_gradient>(all, place, i, factor);
    }
    // The first warp has the sum to see to, which is what a launch with few boxes waits for.
    if (with_gradient && threadIdx.x >= 32) {
        for (std::int64_t p = threadIdx.x - 32; p < all.width; p += loss_threads - 32) {
#pragma unroll
            for (int r = 0; r < rows_at_once; ++r) {
                const std::int64_t length = begins[r + 1] - begins[r];
                if (row + r < last_row && (p >= length || length > all.width))
                    all.gradient[(row + r) * all.width + p] = zero_box<G>();
            }
        }
    }
    return sum;
}

/// The rows of a tile. A thread's first look at memory is at counts and offsets together, the second at a box and its
/// prediction: with few boxes, waiting for memory is nearly all there is.
template <class Formula, bool with_gradient, class P, class U, class G>
__device__ double tile_of_rows(const RowArguments<P, U, G>& all, std::int64_t first, double* shared) {
    __shared__ std::int64_t begins[rows_at_once + 1];
    const std::int64_t rows = all.targets.rows();
    const std::int64_t size = all.targets.size();
    const std::int64_t last_row = first + all.rows_per_tile < all.rows ? first + all.rows_per_tile : all.rows;
    double sum = 0.0;
    for (std::int64_t row = first; row < last_row; row += rows_at_once) {
        if (threadIdx.x <= rows_at_once) {
            const std::int64_t wanted = row + threadIdx.x < last_row ? row + threadIdx.x : last_row;
            const std::int64_t capacity = all.targets.row_capacity();
            // Read before it is known whether it is there, and dropped if it is not.
            const std::int64_t begin = all.targets.offset(wanted < capacity ? wanted : capacity);
            begins[threadIdx.x] = wanted < rows ? begin : size;
        }
        __syncthreads();
        sum += few_rows<Formula, with_gradient>(all, row, last_row, begins, size);
        __syncthreads();
    }
    return block_sum(sum, shared);
}

template <class Formula, bool with_gradient, class P, class U, class G>
__global__ void __launch_bounds__(loss_threads) rows_kernel(const RowArguments<P, U, G> all) {
    __shared__ double shared[loss_warps];
    const double sum = tile_of_rows<Formula, with_gradient>(
        all, static_cast<std::int64_t>(blockIdx.x) * all.rows_per_tile, shared);
    if (threadIdx.x < 32 && all.mean != nullptr)
        finish_mean(sum, all.partials, all.ticket, gridDim.x, all.targets.size(), all.mean);
}

/// One row of a loop.
template <class Formula, bool with_gradient, class P, class U, class G>
__global__ void __launch_bounds__(loss_threads)
    one_row_kernel(const RowArguments<P, U, G> all, std::int64_t row) {
    __shared__ double shared[loss_warps];
    const double sum = tile_of_rows<Formula, with_gradient>(all, row, shared);
    if (threadIdx.x == 0)
        all.partials[row] = sum;
}

/// The end of a loop.
template <class P, class U, class G>
__global__ void mean_of_rows_kernel(const RowArguments<P, U, G> all) {
    const double sum = sum_of_tiles(all.partials, static_cast<unsigned>(all.rows));
    if (threadIdx.x == 0)
        *all.mean = static_cast<float>(sum / divisor_of(all.targets.size()));
}

/// Values go to as many blocks as they need; the other blocks exit, and take no ticket.
template <class Formula, bool with_gradient, class P, class U, class G>
__global__ void __launch_bounds__(loss_threads) values_kernel(const ValueArguments<P, U, G> all) {
    __shared__ double shared[loss_warps];
    const std::int64_t capacity = all.predictions.value_capacity();
    const std::int64_t size = all.predictions.size() < capacity ? all.predictions.size() : capacity;
    const bool same = all.targets.size() == size;
    const std::int64_t rounds = ceil_div(size, values_at_once * most_tiles);
    const std::int64_t per_tile = values_at_once * (rounds > 1 ? rounds : 1);
    const std::int64_t needed = ceil_div(size, per_tile);
    const std::int64_t tiles = needed > 1 ? needed : 1;
    if (blockIdx.x >= tiles)
        return;
    const double factor = with_gradient ? gradient_factor(all.scale, divisor_of(size)) : 0.0;
    double sum = same ? 0.0 : NAN;
    const std::int64_t first = blockIdx.x * per_tile;
    const std::int64_t last = first + per_tile < size ? first + per_tile : size;
    for (std::int64_t i = first + threadIdx.x; i < last; i += loss_threads) {
        if (same) {
            sum += value_of_pair<Formula, with_gradient>(all, i, i, factor);
        } else if constexpr (with_gradient) {
            all.gradient[i] = zero_box<G>();
        }
    }
    sum = block_sum(sum, shared);
    if (threadIdx.x < 32 && all.mean != nullptr)
        finish_mean(sum, all.partials, all.ticket, static_cast<unsigned>(tiles), size, all.mean);
}

/// The mean of `term(i)` where the mask is not 0, and the count of those. Where the mask is 0 a kernel that `skips` looks
/// no further; one that does not computes the term too, and drops it.
template <bool skips, class Term>
__global__ void __launch_bounds__(loss_threads) masked_mean_kernel(const Term term, const MaskSums all) {
    __shared__ double shared[2 * loss_warps];
    double sum = 0.0;
    double count = 0.0;
    const std::int64_t step = static_cast<std::int64_t>(gridDim.x) * loss_threads;
    for (std::int64_t i = static_cast<std::int64_t>(blockIdx.x) * loss_threads + threadIdx.x; i < all.boxes;
         i += step) {
        const bool real = all.mask[i] != 0;
        if (skips && !real)
            continue;
        double value = term(i);
        asm volatile("" : "+d"(value)); // computed, whatever becomes of it
        sum += real ? value : 0.0;
        count += real ? 1.0 : 0.0;
    }
    sum = block_sum(sum, shared);
    count = block_sum(count, shared + loss_warps);
    if (threadIdx.x >= 32)
        return;
    double* const counts = all.partials + most_tiles;
    if (threadIdx.x == 0) {
        all.partials[blockIdx.x] = sum;
        counts[blockIdx.x] = count;
    }
    if (!is_last_block(all.ticket, gridDim.x))
        return;
    sum = sum_of_tiles(all.partials, gridDim.x);
    count = sum_of_tiles(counts, gridDim.x);
    if (threadIdx.x == 0) {
        *all.count = count;
        if (all.mean != nullptr)
            *all.mean = static_cast<float>(sum / (count > 1.0 ? count : 1.0));
    }
}

} // namespace nn::detail
