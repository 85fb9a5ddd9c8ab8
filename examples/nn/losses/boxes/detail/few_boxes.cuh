/// \file
/// The ragged mean of few boxes, and their gradient. It is bound by latency, of memory and of waiting for other blocks. So one
/// cluster of blocks computes it, whose warps store their sums directly in the first block's shared memory; a larger grid
/// would need global memory and a ticket, and more time. Further clusters meanwhile write the gradient's zeros. Needs compute
/// capability 9.0.
#pragma once

#include <cstdint>

#include <nn/core/clusters.cuh>
#include <nn/losses/boxes/detail/per_box.hpp>
#include <sluice/backend/stream.hpp>

namespace nn::detail {

inline constexpr unsigned few_blocks = 8; ///< of a cluster; more are not portable
/// Warps of a block that add up boxes. One more, of the first block, adds up their sums.
inline constexpr unsigned few_warps_a_block = 8;
inline constexpr unsigned few_warps = few_blocks * few_warps_a_block;
inline constexpr unsigned few_threads = 32 * (few_warps_a_block + 1);
/// With the first one, a block for nearly every multiprocessor.
inline constexpr unsigned few_clusters_of_zeros = 15;
inline constexpr int rows_a_warp = 16;
inline constexpr int few_rounds = 2; ///< of 32 values, at a time
/// Rows that there is room for, and values for each of them, up to which a cluster is faster than a grid.
inline constexpr std::int64_t few_rows_at_most = 2048;
inline constexpr std::int64_t few_values_a_row = 3;
inline constexpr std::int64_t few_width_at_most = 1 << 30;

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

/// What is loaded as a whole and taken apart later, which compilers would do at once, and wait for.
template <class T>
struct alignas(T) Words {
    std::uint32_t all[sizeof(T) / sizeof(std::uint32_t)];
};

/// Row and position of the values of a warp's next rounds: each row writes its own, which takes less time than a search.
struct FewPlaces {
    static constexpr int lanes_a_row = 32 / rows_a_warp;
    static constexpr int values = 32 * few_rounds;
    static constexpr std::uint32_t none = 0xFFFFFFFFu; ///< of a row that has no predictions for its end
    std::uint32_t all[values];

    /// Of the row that a lane has with its neighbours: `length` values from number `from` on, as far as they are among the
    /// `values` from `first` on. `fits`: all have predictions.
    __device__ void write(int first, int from, int length, bool fits) {
        constexpr int unrolled = 8 / lanes_a_row;
        const int lane = static_cast<int>(threadIdx.x % 32);
        const int begin = from < first ? first - from : 0;
        const int end = length < first + values - from ? length : first + values - from;
        const auto place = [&](int position) {
            return fits ? static_cast<std::uint32_t>(lane / lanes_a_row << 16 | position) : none;
        };
        int position = begin + lane % lanes_a_row;
#pragma unroll
        for (int k = 0; k < unrolled; ++k, position += lanes_a_row) {
            if (position < end)
                all[from - first + position] = place(position);
        }
#pragma unroll 1
        for (; position < end; position += lanes_a_row)
            all[from - first + position] = place(position);
        __syncwarp();
    }
};

/// Adds up `rows_a_warp` rows from `row` on, and writes their gradient. A warp's first look at memory is at counts and offsets
/// together, the second at boxes and their predictions. `meanwhile()` is called after the first.
template <class Formula, bool with_gradient, class P, class U, class G, class Meanwhile>
__device__ double few_rows_of_warp(const RowArguments<P, U, G>& all, int row, FewPlaces& places,
                                   const Meanwhile& meanwhile) {
    const int lane = static_cast<int>(threadIdx.x % 32);
    const int capacity = static_cast<int>(all.targets.row_capacity());
    const auto offset = [&](int of) {
        return static_cast<int>(all.targets.offset(of < capacity ? of : capacity));
    };
    const int mine = row + lane / FewPlaces::lanes_a_row;
    int rows = static_cast<int>(all.targets.rows());
    int size = static_cast<int>(all.targets.size());
    int base = offset(row);
    int begin = offset(mine);
    int end = offset(mine + 1);
    int last = offset(row + rows_a_warp);
    meanwhile();
    // So that none is loaded only where another one says that it is needed.
    asm volatile("" : "+r"(rows), "+r"(size), "+r"(base), "+r"(begin), "+r"(end), "+r"(last));
    const int count = row < rows ? (row + rows_a_warp <= rows ? last : size) - base : 0;
    const int length = mine < rows ? end - begin : 0;
    const auto width = static_cast<std::uint32_t>(all.width);
    const bool fits = static_cast<std::uint32_t>(length) <= width;
    double sum = __all_sync(0xFFFFFFFFu, fits) ? 0.0 : NAN;
    const double factor = with_gradient ? gradient_factor(all.scale, divisor_of(size)) : 0.0;
    const auto* const words = reinterpret_cast<const Words<Box<U>>*>(all.targets.values()) + base;
    for (int first = 0; first < count; first += FewPlaces::values) {
        Words<Box<U>> word[few_rounds];
        Box<P> prediction[few_rounds];
        std::uint64_t at[few_rounds];
        bool there[few_rounds];
#pragma unroll
        for (int k = 0; k < few_rounds; ++k) {
            const int value = first + 32 * k + lane;
            there[k] = value < count;
            word[k] = words[there[k] ? value : 0];
        }
        places.write(first, begin - base, length, fits);
        std::uint32_t place[few_rounds];
#pragma unroll
        for (int k = 0; k < few_rounds; ++k)
            place[k] = places.all[32 * k + lane];
#pragma unroll
        for (int k = 0; k < few_rounds; ++k) {
            there[k] = there[k] && place[k] != FewPlaces::none;
            at[k] = std::uint64_t{static_cast<std::uint32_t>(row) + (place[k] >> 16)} * width +
                    (place[k] & 0xFFFFu);
            at[k] = there[k] ? at[k] : 0;
            prediction[k] = all.predictions[at[k]];
        }
#pragma unroll
        for (int k = 0; k < few_rounds; ++k) {
            Box<U> target;
            memcpy(&target, &word[k], sizeof(Box<U>));
            double value = 0.0;
            if constexpr (with_gradient) {
                Box<G> gradient;
                value = value_and_gradient<Formula>(prediction[k], target, factor, gradient);
                if (there[k])
                    all.gradient[at[k]] = gradient;
            } else {
                value = worked_value<Formula>(prediction[k], target, 1);
            }
            sum += there[k] ? value : 0.0;
        }
        __syncwarp(); // the next places are written to the same memory
    }
    return sum;
}

/// The zeros of the gradient, by all blocks but the first cluster's.
template <class P, class U, class G>
__device__ void few_zeros(const RowArguments<P, U, G>& all) {
    const unsigned blocks = gridDim.x - few_blocks;
    const std::int64_t rows = all.targets.rows();
    for (std::int64_t row = threadIdx.x / 32 * blocks + blockIdx.x - few_blocks; row < all.rows;
         row += (few_warps_a_block + 1) * blocks) {
        const bool room = row < all.targets.row_capacity();
        std::int64_t length = room ? all.targets.length(row) : 0;
        asm volatile("" : "+l"(length)); // not only when it is known that the row is there
        const std::int64_t known = row < rows && length <= all.width ? length : 0;
        Box<G>* const gradient = all.gradient + row * all.width;
#pragma unroll 8
        for (std::int64_t p = threadIdx.x % 32; p < all.width; p += 32) {
            if (p >= known)
                gradient[p] = zero_box<G>();
        }
    }
}

/// Adds up the warps' sums when all are there, and divides by `count`.
__device__ inline void finish_few(const double* sums, std::uint32_t barrier, std::int64_t count,
                                  float* mean) {
    __shared__ double share; // in memory, so that compilers do not put it off until the sums are there
    if (threadIdx.x % 32 == 0)
        share = reciprocal(divisor_of(count));
    std::uint32_t there = 0;
    while (there == 0) {
        asm volatile("{\n"
                     ".reg .pred all;\n"
                     "mbarrier.try_wait.parity.shared::cta.b64 all, [%1], 0;\n"
                     "selp.u32 %0, 1, 0, all;\n"
                     "}"
                     : "=r"(there)
                     : "r"(barrier)
                     : "memory");
    }
    __syncwarp();
    static_assert(few_warps == 64);
    const double2 two = reinterpret_cast<const double2*>(sums)[threadIdx.x % 32];
    const double sum = warp_sum_by_products(share * (two.x + two.y));
    if (threadIdx.x % 32 == 0 && mean != nullptr)
        *mean = static_cast<float>(sum);
}

/// The first cluster of `few_blocks` blocks has the boxes; the others, where there are any, the gradient's zeros.
template <class Formula, bool with_gradient, class P, class U, class G>
__global__ void __launch_bounds__(few_threads) few_boxes_kernel(const RowArguments<P, U, G> all) {
#if __CUDA_ARCH__ >= 900
    __shared__ alignas(16) double sums[few_warps]; // those of the first block are in use
    __shared__ alignas(8) std::uint64_t arrived;
    __shared__ FewPlaces places[few_warps_a_block];
    const unsigned in_block = threadIdx.x / 32;
    const unsigned warp = blockIdx.x * few_warps_a_block + in_block;
    const auto barrier = static_cast<std::uint32_t>(__cvta_generic_to_shared(&arrived));
    const auto arrive = [] { asm volatile("barrier.cluster.arrive.relaxed.aligned;" ::: "memory"); };
    const auto wait = [] { asm volatile("barrier.cluster.wait.acquire.aligned;" ::: "memory"); };
    if (with_gradient && blockIdx.x >= few_blocks) {
        few_zeros(all);
        return;
    }
    if (in_block == few_warps_a_block) {
        if (blockIdx.x == 0 && threadIdx.x % 32 == 0) {
            asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;\n"
                         "fence.mbarrier_init.release.cluster;\n"
                         "mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;"
                         :
                         : "r"(barrier), "n"(few_warps * sizeof(double))
                         : "memory");
        }
        __syncwarp();
        arrive();
        if (blockIdx.x == 0)
            finish_few(sums, barrier, all.targets.size(), all.mean);
        return;
    }
    // In the first block. By a shuffle, so that they are not computed anew when all wait for the sum.
    std::uint32_t first_sum = 0;
    std::uint32_t first_barrier = 0;
    bool begun = false;
    const auto meanwhile = [&] {
        if (begun)
            return;
        arrive();
        asm("mapa.shared::cluster.u32 %0, %1, 0;"
            : "=r"(first_sum)
            : "r"(static_cast<std::uint32_t>(__cvta_generic_to_shared(sums + warp))));
        asm("mapa.shared::cluster.u32 %0, %1, 0;" : "=r"(first_barrier) : "r"(barrier));
        first_sum = __shfl_sync(0xFFFFFFFFu, first_sum, 0);
        first_barrier = __shfl_sync(0xFFFFFFFFu, first_barrier, 0);
        begun = true;
    };
    double sum = 0.0;
    int row = static_cast<int>(warp) * rows_a_warp;
    do {
        sum += few_rows_of_warp<Formula, with_gradient>(all, row, places[in_block], meanwhile);
        row += static_cast<int>(few_warps) * rows_a_warp;
    } while (row < all.targets.row_capacity());
    sum = warp_sum_by_products(sum);
    wait(); // the first block is there by now
    if (threadIdx.x % 32 == 0) {
        asm volatile("st.async.shared::cluster.mbarrier::complete_tx::bytes.b64 [%0], %1, [%2];"
                     :
                     : "r"(first_sum), "l"(__double_as_longlong(sum)), "r"(first_barrier)
                     : "memory");
    }
#endif
}

template <class Formula, bool with_gradient, class P, class U, class G>
void launch_few_boxes(sluice::CudaStreamRef stream, const RowArguments<P, U, G>& arguments) {
    launch_clusters(stream, with_gradient ? 1 + few_clusters_of_zeros : 1, few_blocks, few_threads,
                    &few_boxes_kernel<Formula, with_gradient, P, U, G>, arguments);
}

} // namespace nn::detail
