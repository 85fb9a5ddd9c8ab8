// Reductions of rows on CUDA devices.
#pragma once

#include <cstddef>
#include <cstdint>

#include <sluice/ragged/detail/launch.cuh>
#include <sluice/ragged/detail/long_rows.cuh>
#include <sluice/ragged/detail/row_tiles.cuh>
#include <sluice/ragged/reductions.hpp>

namespace sluice::ragged::detail {

/// Rows of more values than this are a whole block's.
inline constexpr int longest_of_warp = 1024;
/// Blocks of these kernels that a multiprocessor runs at a time: with one more, registers are spilled.
inline constexpr int reducing_blocks = 4;

/// Values as they are read from memory: 16 bytes at a multiple of 16 bytes, where the type allows.
template <class T>
struct alignas(16) Pack {
    static constexpr std::size_t size = 16 / sizeof(T);
    T values[size];
};
template <class T>
inline constexpr bool is_packed = sizeof(T) <= 8 && 16 % sizeof(T) == 0 && alignof(T) == sizeof(T);

/// One thread reduces `length` values, one after the other, from value `begin` on of `capacity`.
template <class Op, class T>
__device__ typename Op::Accumulator reduce_alone(const Op& op, const T* values, std::int64_t capacity,
                                                 std::int64_t begin, int length) {
    typename Op::Accumulator accumulator = op.init();
    if constexpr (is_packed<T>) {
        constexpr int size = static_cast<int>(Pack<T>::size);
        constexpr int batch = size >= 16 ? 2 : 20 / size; // packs on their way at once
        constexpr int each = batch * size;
        static_assert(each <= 32, "a mask has a bit for each value");
        const T* const row = values + begin;
        const int before = static_cast<int>(reinterpret_cast<std::uintptr_t>(row) / sizeof(T) % size);
        const int end = before + length;
        // All packs lie within the values, but for those at the very beginning and end.
        if (begin >= before && begin - before + (end + size - 1) / size * size <= capacity) {
            const auto* const packs = reinterpret_cast<const Pack<T>*>(row - before);
            for (int first = 0; first < end; first += each) {
                Pack<T> held[batch];
#pragma unroll
                for (int k = 0; k < batch; ++k) {
                    if (first + k * size < end)
                        held[k] = packs[first / size + k];
                }
                const int left = end - first;
                unsigned mine = left >= 32 ? ~0u : (1u << left) - 1u;
                if (first == 0)
                    mine &= ~0u << before;
#pragma unroll
                for (int k = 0; k < each; ++k) {
                    if ((mine >> k & 1u) != 0)
                        accumulator =
                            op.take(accumulator, held[k / size].values[k % size], first + k - before);
                }
            }
            return accumulator;
        }
    }
    for (int i = 0; i < length; ++i)
        accumulator = op.take(accumulator, values[begin + i], i);
    return accumulator;
}

/// `Lanes` lanes of a warp reduce `length` values; the result is every lane's.
template <int Lanes, class Op, class T>
__device__ typename Op::Accumulator reduce_by_lanes(const Op& op, const T* values, int length) {
    constexpr int batch = 8;
    typename Op::Accumulator accumulator = op.init();
    for (int base = static_cast<int>(threadIdx.x) % Lanes; base < length; base += batch * Lanes) {
        T held[batch];
#pragma unroll
        for (int k = 0; k < batch; ++k) {
            if (base + k * Lanes < length)
                held[k] = values[base + k * Lanes];
        }
#pragma unroll
        for (int k = 0; k < batch; ++k) {
            if (base + k * Lanes < length)
                accumulator = op.take(accumulator, held[k], base + k * Lanes);
        }
    }
    return merge_lanes<Lanes>(op, accumulator);
}

struct ReduceMemory {
    RowRange range;
    int waiting;             ///< long rows, which the block does after all others
    int rows[block_threads]; ///< as distances from the first that was looked at
    unsigned long long place;
};

template <class Op, class T>
struct ReduceRows {
    const Op& op;
    typename Op::Result* out;
    const RaggedView<const T>& rows;
    ReduceMemory& memory;
    typename Op::Accumulator* partials;
    const LongParts<typename Op::Accumulator>& list;

    // Those of a warp's 32 rows from `first` on that are `chosen`, by groups of lanes. All lanes call it, with `begin` and
    // `length` of a row each.
    template <int Lanes>
    __device__ void by_lanes(unsigned chosen, std::int64_t first, std::int64_t begin, int length) const {
        constexpr int groups = 32 / Lanes;
        const int group = static_cast<int>(threadIdx.x) % 32 / Lanes;
        while (chosen != 0) {
            unsigned own = chosen; // from this group's row on
#pragma unroll
            for (int skipped = 0; skipped < groups; ++skipped) {
                own = skipped < group ? own & (own - 1) : own;
                chosen &= chosen - 1;
            }
            const int lane = own != 0 ? __ffs(static_cast<int>(own)) - 1 : 0;
            const std::int64_t begin_of_row = from_lane<32>(begin, lane);
            const int length_of_row = from_lane<32>(length, lane);
            const auto reduced =
                reduce_by_lanes<Lanes>(op, rows.values() + begin_of_row, own != 0 ? length_of_row : 0);
            if (own != 0 && threadIdx.x % Lanes == 0)
                out[first + lane] = op.finish(reduced, length_of_row);
        }
    }

    // All of the block's rows, each thread one, but for long ones: whether there are any.
    __device__ bool short_rows() const {
        const std::int64_t last = memory.range.last;
        const int lane = static_cast<int>(threadIdx.x) % 32;
        std::int64_t first = memory.range.first + static_cast<int>(threadIdx.x) / 32 * 32; // of the warp
        bool any_long = false;
        // The offsets of the next rows are on their way while these are reduced.
        std::int64_t begin = 0, end = 0;
        const auto load = [&] {
            if (first + lane < last) {
                begin = rows.offset(first + lane);
                end = rows.offset(first + lane + 1);
            }
        };
        load();
        while (first < last) {
            const std::int64_t row = first + lane;
            const std::int64_t begin_of_row = begin;
            const std::int64_t whole_length = row < last ? end - begin : 0;
            const int length = whole_length <= longest_of_warp ? static_cast<int>(whole_length) : 0;
            const std::int64_t first_row = first;
            first += block_threads;
            load();
            if (row < last && whole_length <= longest_of_thread) {
                const auto reduced =
                    reduce_alone(op, rows.values(), rows.value_capacity(), begin_of_row, length);
                out[row] = op.finish(reduced, length);
            }
            any_long = any_long || whole_length > longest_of_warp;
            if (__any_sync(0xffffffffu, whole_length > longest_of_thread)) {
                by_lanes<8>(
                    __ballot_sync(0xffffffffu, length > longest_of_thread && length <= longest_of_group),
                    first_row, begin_of_row, length);
                by_lanes<32>(__ballot_sync(0xffffffffu, length > longest_of_group), first_row, begin_of_row,
                             length);
            }
        }
        return any_long;
    }

    // The others, one after the other.
    __device__ void long_rows() const {
        const std::int64_t last = memory.range.last;
        for (std::int64_t first = memory.range.first; first < last; first += block_threads) {
            __syncthreads(); // all threads have read the list before
            if (threadIdx.x == 0)
                memory.waiting = 0;
            __syncthreads();
            const std::int64_t row = first + threadIdx.x;
            if (row < last && rows.length(row) > longest_of_warp)
                memory.rows[atomicAdd(&memory.waiting, 1)] = static_cast<int>(threadIdx.x);
            __syncthreads();
            for (int i = 0; i < memory.waiting; ++i) {
                const std::int64_t next = first + memory.rows[i];
                long_row(next, rows.offset(next), rows.length(next));
                __syncthreads();
            }
        }
    }
    __device__ void long_row(std::int64_t row, std::int64_t begin, std::int64_t length) const {
        if (list.count != nullptr && length > part_values) {
            note_long_row(list, row, begin, length, part_values, memory.place);
            return;
        }
        const auto reduced = merge_block(op, reduce_strided(op, rows.values() + begin, length), partials);
        if (threadIdx.x == 0)
            out[row] = op.finish(reduced, length);
    }
};

template <class Op, class T>
__global__ void __launch_bounds__(block_threads, reducing_blocks)
    reduce_rows_kernel(Op op, typename Op::Result* out, RaggedView<const T> rows,
                       LongParts<typename Op::Accumulator> list) {
    __shared__ ReduceMemory memory;
    __shared__ typename Op::Accumulator partials[block_warps];
    find_share(rows, memory.range);
    const ReduceRows<Op, T> work{op, out, rows, memory, partials, list};
    if (__syncthreads_or(work.short_rows()) != 0)
        work.long_rows();
}

template <class Op, class T>
void reduce_rows(CudaStreamRef stream, const Op& op, typename Op::Result* out, RaggedView<const T> rows,
                 RaggedWorkspace<Cuda>* workspace) {
    using Accumulator = typename Op::Accumulator;
    if (rows.row_capacity() == 0)
        return;
    const std::int64_t values = rows.value_capacity();
    LongParts<Accumulator> list;
    if (workspace != nullptr && values > part_values) {
        RaggedScratch<Cuda> scratch = workspace->scratch();
        list = long_parts<Accumulator>(stream, scratch, values, part_values,
                                       most_long_parts(values, part_values));
    }
    const unsigned blocks = blocks_for_rows(rows);
    detail::launch(reduce_rows_kernel<Op, T>, blocks, block_threads, stream.get(), op, out, rows, list);
    if (list.count == nullptr)
        return;
    const unsigned more = blocks_for_parts(blocks, values);
    detail::launch(reduce_parts_kernel<Op, T>, more, block_threads, stream.get(), op, rows.values(), list);
    detail::launch(merge_parts_kernel<Op>, more, block_threads, stream.get(), op, out, list);
}

} // namespace sluice::ragged::detail
