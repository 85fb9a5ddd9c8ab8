// How operations that make rows of other rows run on CUDA devices.
#pragma once

#include <concepts>
#include <cstdint>

#include <sluice/ragged/detail/launch.cuh>
#include <sluice/ragged/detail/load_balancing_search.cuh>
#include <sluice/ragged/detail/reshaping_scan.cuh>

namespace sluice::ragged::detail {

/// `call(i)` for i = 0 … count - 1.
template <class F>
__global__ void __launch_bounds__(walk_threads) call_for_each_kernel(std::int64_t count, F call) {
    const std::int64_t step = static_cast<std::int64_t>(gridDim.x) * walk_threads;
    for (std::int64_t i = static_cast<std::int64_t>(blockIdx.x) * walk_threads + threadIdx.x; i < count;
         i += step)
        call(i);
}

/// On CUDA devices; see the one for host tasks.
template <Backend B>
requires std::same_as<typename B::NativeStream, cudaStream_t>
struct Engine<B> {
    using Ref = BasicStreamRef<B>;

    template <class F>
    static void for_each(Ref stream, std::int64_t count, const F& call) {
        if (count == 0)
            return;
        constexpr std::int64_t most_blocks = 1 << 20;
        const std::int64_t blocks = smaller((count + walk_threads - 1) / walk_threads, most_blocks);
        detail::launch(call_for_each_kernel<F>, static_cast<unsigned>(blocks), walk_threads, stream.get(),
                       count, call);
    }

    template <class F>
    static void for_each_value(Ref stream, const NumberedRows& rows, const F& call) {
        detail::launch(visit_values_kernel<F>, walk_blocks(rows.value_capacity), walk_threads, stream.get(),
                       rows, call);
    }

    template <class Lengths>
    static void sum_before(Ref stream, std::int64_t* starts, std::int64_t most, const Lengths& lengths,
                           RaggedScratch<B>& scratch) {
        scan(stream, starts, most, lengths, SettleNothing{}, scratch);
    }

    template <class T, class Plan>
    static void make(Ref stream, const RaggedTarget<T>& out, const Plan& plan, RaggedScratch<B>& scratch) {
        scan(stream, out.offsets, out.row_capacity, plan, Settle<T, Plan>{out, plan}, scratch);
        if (out.value_capacity == 0)
            return;
        const unsigned blocks = walk_blocks(out.value_capacity);
        if constexpr (may_be_wide<T>) {
            if (lies_at(out.values, sizeof(T)) && plan.aligned(sizeof(T))) {
                detail::launch(fill_planned_rows_kernel<true, T, Plan>, blocks, walk_threads, stream.get(),
                               out, plan);
                return;
            }
        }
        detail::launch(fill_planned_rows_kernel<false, T, Plan>, blocks, walk_threads, stream.get(), out,
                       plan);
    }

    template <class T, class Shape>
    static void compact(Ref stream, const RaggedTarget<T>& out, const T* values, const Shape& shape,
                        const std::uint8_t* keep, std::int64_t value_capacity, RaggedScratch<B>& scratch) {
        static_assert(kept_together == warp_size);
        const auto [number, starts] = KeptMemory::take(scratch, value_capacity);
        const KeptGroups<Shape> groups{shape, keep, number, lies_at(keep, sizeof(uint4))};
        scan(stream, starts, number, groups, SettleNothing{}, scratch);
        const KeptRows<Shape> rows{groups, starts};
        scan(stream, out.offsets, out.row_capacity, rows, Settle<T, KeptRows<Shape>>{out, rows}, scratch);
        if (out.value_capacity == 0 || value_capacity == 0)
            return;
        const unsigned blocks = walk_blocks(value_capacity);
        if constexpr (may_be_wide<T>) {
            if (lies_at(out.values, sizeof(T)) && lies_at(values, sizeof(T))) {
                detail::launch(fill_kept_kernel<true, T, Shape>, blocks, walk_threads, stream.get(), out,
                               values, shape, keep, starts);
                return;
            }
        }
        detail::launch(fill_kept_kernel<false, T, Shape>, blocks, walk_threads, stream.get(), out, values,
                       shape, keep, starts);
    }
};

} // namespace sluice::ragged::detail
