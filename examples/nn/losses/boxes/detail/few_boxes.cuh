/// \file
/// The ragged mean of few boxes. It is bound by latency, of memory and of waiting for other blocks. So one cluster of
/// blocks computes it, whose warps store their sums directly in the first block's shared memory; a larger grid would need
/// global memory and a ticket, and more time. Needs compute capability 9.0.
#pragma once

#include <cstdint>

#include <nn/core/clusters.cuh>
#include <nn/losses/boxes/detail/per_box.hpp>
#include <sluice/backend/stream.hpp>

namespace nn::detail {

inline constexpr unsigned few_blocks = 8; ///< of the cluster; more are not portable, and gain 0.1 us at best
inline constexpr unsigned few_threads = 512;
inline constexpr unsigned few_warps = few_blocks * few_threads / 32;
inline constexpr int rows_a_warp = 8;
/// Rows that there is room for, and values for each of them, up to which a cluster is faster than a grid.
inline constexpr std::int64_t few_rows_at_most = 2048;
inline constexpr std::int64_t few_values_a_row = 3;

/// The sum over a warp, in every lane: two products with a matrix of ones, in place of five steps of shuffling.
__device__ inline double warp_sum_by_products(double value) {
    const auto columns = [](double& first, double& second, double of) {
        asm volatile("mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64 {%0, %1}, {%2}, {%3}, {%4, %4};"
                     : "=d"(first), "=d"(second)
                     : "d"(1.0), "d"(of), "d"(0.0));
    };
    double first = 0.0;
    double second = 0.0;
    columns(first, second, value); // each lane has two of the sums of four lanes
    columns(first, second, first + second);
    return first;
}

/// Adds up `rows_a_warp` rows from `row` on. A warp's first look at memory is at counts and offsets together, the second
/// at boxes and their predictions.
template <class Formula, class P, class U, class G>
__device__ double few_rows_of_warp(const RowArguments<P, U, G>& all, std::int64_t row) {
    constexpr unsigned everyone = 0xFFFFFFFFu;
    const int lane = static_cast<int>(threadIdx.x % 32);
    const std::int64_t capacity = all.targets.row_capacity();
    const std::int64_t wanted = row + (lane < rows_a_warp ? lane : rows_a_warp);
    // Read before it is known whether it is there, and dropped if it is not.
    std::int64_t begin = all.targets.offset(wanted < capacity ? wanted : capacity);
    begin = wanted < all.targets.rows() ? begin : all.targets.size();
    const std::int64_t base = __shfl_sync(everyone, begin, 0);
    const int from_base = static_cast<int>(begin - base);
    const int values = __shfl_sync(everyone, from_base, rows_a_warp);
    double sum = 0.0;
    for (int first = 0; first < values; first += 32) {
        const int value = first + lane;
        int within = 0; // the last of the rows that begins at or before the value
#pragma unroll
        for (int step = rows_a_warp / 2; step > 0; step /= 2)
            within += __shfl_sync(everyone, from_base, within + step) <= value ? step : 0;
        const int place = value - __shfl_sync(everyone, from_base, within);
        if (value >= values)
            continue;
        if (place >= all.width) { // has no prediction
            sum += NAN;
            continue;
        }
        sum += worked_value<Formula>(all.predictions[(row + within) * all.width + place],
                                     all.targets[base + value], 1);
    }
    return sum;
}

/// One cluster of `few_blocks` blocks is all of the grid.
template <class Formula, class P, class U, class G>
__global__ void __launch_bounds__(few_threads) few_boxes_kernel(const RowArguments<P, U, G> all) {
#if __CUDA_ARCH__ >= 900
    __shared__ alignas(16) double sums[few_warps]; // those of the first block are in use
    __shared__ alignas(8) std::uint64_t arrived;
    const unsigned warp = (blockIdx.x * few_threads + threadIdx.x) / 32;
    const auto barrier = static_cast<std::uint32_t>(__cvta_generic_to_shared(&arrived));
    if (blockIdx.x == 0 && threadIdx.x == 0) {
        asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;\n"
                     "fence.mbarrier_init.release.cluster;\n"
                     "mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;"
                     :
                     : "r"(barrier), "n"(few_warps * sizeof(double))
                     : "memory");
    }
    asm volatile("barrier.cluster.arrive.relaxed.aligned;" ::: "memory");
    double sum = 0.0;
    for (std::int64_t row = std::int64_t{warp} * rows_a_warp; row < all.targets.row_capacity();
         row += std::int64_t{few_warps} * rows_a_warp)
        sum += few_rows_of_warp<Formula>(all, row);
    sum = warp_sum_by_products(sum);
    asm volatile("barrier.cluster.wait.acquire.aligned;" ::: "memory"); // the first block is there by now
    if (threadIdx.x % 32 == 0) {
        asm volatile("{\n"
                     ".reg .b32 place, barrier;\n"
                     "mapa.shared::cluster.u32 place, %0, 0;\n"
                     "mapa.shared::cluster.u32 barrier, %1, 0;\n"
                     "st.async.shared::cluster.mbarrier::complete_tx::bytes.b64 [place], %2, [barrier];\n"
                     "}"
                     :
                     : "r"(static_cast<std::uint32_t>(__cvta_generic_to_shared(sums + warp))), "r"(barrier),
                       "l"(__double_as_longlong(sum))
                     : "memory");
    }
    if (warp != 0)
        return;
    const double share = 1.0 / divisor_of(all.targets.size()); // while the sums are under way
    std::uint32_t there = 0;
    while (there == 0) {
        asm volatile("{\n"
                     ".reg .pred all;\n"
                     "mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 all, [%1], 0;\n"
                     "selp.u32 %0, 1, 0, all;\n"
                     "}"
                     : "=r"(there)
                     : "r"(barrier)
                     : "memory");
    }
    sum = 0.0;
#pragma unroll
    for (unsigned k = threadIdx.x; k < few_warps; k += 32)
        sum += sums[k];
    sum = warp_sum_by_products(sum);
    if (threadIdx.x == 0)
        *all.mean = static_cast<float>(sum * share);
#endif
}

template <class Formula, class P, class U, class G>
void launch_few_boxes(sluice::CudaStreamRef stream, const RowArguments<P, U, G>& arguments) {
    launch_clusters(stream, 1, few_blocks, few_threads, &few_boxes_kernel<Formula, P, U, G>, arguments);
}

} // namespace nn::detail
