/// \file
/// All operations that make ragged batches out of others, on CUDA devices. They are declared, for both
/// backends, in convert.hpp (padded and back, row ids, lengths), select.hpp (slice, prefix, gather, mask,
/// remove empty rows, repeat), join.hpp (concatenate, stack) and order.hpp (by length). What holds for all of
/// them:
///
/// - They are enqueued on `stream`, wait for nothing and allocate nothing. The host reads no counts, so that
///   one captured graph serves any rows that fit; launches are laid out for the capacities.
/// - The result is another batch than the operands, and its former rows are gone. Values are moved as they
///   are, of any trivially copyable type.
/// - A result that does not fit leaves `out` without rows, and what it would have needed in
///   `RaggedCounts::refused`: the number of values or, where there are too many of those, of rows. Nothing is
///   cut. An operand that was refused itself hands its number on. `RaggedBatch::require_valid_and_wait` makes
///   an `Error` of it.
/// - Several values over the same rows go through one after the other: `RaggedColumn::view_over` is an
///   operand like any other.
/// - `workspace` is made for the capacity of the largest operand or result; padded rows count with all their
///   places. Too little of it, spans that are too short, and a batch that is operand and result at once are an
///   `Error`.
///
/// The sums before each row take one launch (up to 16,384 rows) or three, moving the values another.
///
/// A plain C++ compiler takes of it what is for Host streams.
#pragma once

#include <sluice/ragged/reshape.hpp>

#if defined(__CUDACC__) && SLUICE_HAS_CUDA

#include <bit>
#include <concepts>
#include <cstddef>
#include <cstdint>

#include <cub/device/device_radix_sort.cuh>

#include <sluice/ragged/detail/load_balancing_search.cuh>
#include <sluice/ragged/detail/reshaping_keep.cuh>
#include <sluice/ragged/detail/reshaping_scan.cuh>

// ---------------------------------------------------------------------------------------------------------------

namespace sluice::ragged::reshaping {

/// `call(i)` for i = 0 … count - 1.
template <class F>
__global__ void __launch_bounds__(walk_threads) call_for_each(std::int64_t count, F call) {
    const std::int64_t step = static_cast<std::int64_t>(gridDim.x) * walk_threads;
    for (std::int64_t i = static_cast<std::int64_t>(blockIdx.x) * walk_threads + threadIdx.x; i < count;
         i += step)
        call(i);
}

/// What the sort takes.
template <class Keys>
struct WriteKey {
    Keys keys;
    std::uint64_t* key;
    std::int64_t* row;

    __device__ void operator()(std::int64_t i) const {
        const bool there = i < keys.rows();
        key[i] = static_cast<std::uint64_t>(there ? keys.key(i) : keys.limit()); // to the end
        row[i] = there ? i : -1;
    }
};

/// Where the rows of each key begin.
struct FindStart {
    const std::uint64_t* sorted;
    std::int64_t size;
    std::int64_t* starts;

    __device__ void operator()(std::int64_t key) const {
        std::int64_t first = 0;
        std::int64_t last = size;
        while (first < last) {
            const std::int64_t middle = first + (last - first) / 2;
            if (sorted[middle] < static_cast<std::uint64_t>(key)) {
                first = middle + 1;
            } else {
                last = middle;
            }
        }
        starts[key] = first;
    }
};

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
        call_for_each<<<static_cast<unsigned>(blocks), walk_threads, 0, stream.get()>>>(count, call);
        SLUICE_CUDA_CHECK(cudaGetLastError());
    }

    template <class F>
    static void for_each_value(Ref stream, const NumberedRows& rows, const F& call) {
        visit_values<<<walk_blocks(rows.value_capacity), walk_threads, 0, stream.get()>>>(rows, call);
        SLUICE_CUDA_CHECK(cudaGetLastError());
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
                fill_rows<true><<<blocks, walk_threads, 0, stream.get()>>>(out, plan);
                SLUICE_CUDA_CHECK(cudaGetLastError());
                return;
            }
        }
        fill_rows<false><<<blocks, walk_threads, 0, stream.get()>>>(out, plan);
        SLUICE_CUDA_CHECK(cudaGetLastError());
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
                fill_kept<true><<<blocks, walk_threads, 0, stream.get()>>>(out, values, shape, keep, starts);
                SLUICE_CUDA_CHECK(cudaGetLastError());
                return;
            }
        }
        fill_kept<false><<<blocks, walk_threads, 0, stream.get()>>>(out, values, shape, keep, starts);
        SLUICE_CUDA_CHECK(cudaGetLastError());
    }

    template <class Keys>
    static void sort_rows(Ref stream, std::int64_t* order, std::int64_t most, const Keys& keys,
                          std::int64_t* starts, RaggedScratch<B>& scratch) {
        const auto [unsorted, sorted, rows] = SortMemory::take(scratch, most);
        if (most > 0) {
            // The return type of bit_width differs between standard libraries.
            const auto bits = static_cast<int>(std::bit_width(static_cast<std::uint64_t>(keys.limit())));
            std::size_t bytes = 0;
            SLUICE_CUDA_CHECK(cub::DeviceRadixSort::SortPairs(nullptr, bytes, unsorted, sorted, rows, order,
                                                              most, 0, bits, stream.get()));
            void* const memory = scratch.template take<std::byte>(bytes);
            for_each(stream, most, WriteKey<Keys>{keys, unsorted, rows});
            SLUICE_CUDA_CHECK(cub::DeviceRadixSort::SortPairs(memory, bytes, unsorted, sorted, rows, order,
                                                              most, 0, bits, stream.get()));
        }
        if (starts != nullptr)
            for_each(stream, keys.limit() + 1, FindStart{sorted, most, starts});
    }
};

} // namespace sluice::ragged::reshaping

#endif
