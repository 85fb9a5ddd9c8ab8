// Softmax and exclusive sums on CUDA devices.
#pragma once

#include <cstdint>
#include <type_traits>

#include <sluice/ragged/detail/launch.cuh>
#include <sluice/ragged/detail/long_rows.cuh>
#include <sluice/ragged/detail/row_tiles.cuh>
#include <sluice/ragged/scans.hpp>

namespace sluice::ragged::detail {

/// What the threads of a block share beside a tile.
template <class Stored>
struct TransformMemory {
    Stored* staged;
    Stored* sums;                     ///< one a warp
    ExponentialSum<Stored>* partials; ///< one a warp
};

/// Rows of shared memory, in place; long rows from and to global memory.
template <class Op>
struct TransformTile;

template <class T>
struct TransformTile<SoftmaxOf<T>> {
    T* values;

    template <int Lanes>
    __device__ void visit(int, int begin, int length) const {
        const ExponentialSumOf<T> op;
        const int lane = static_cast<int>(threadIdx.x) % Lanes;
        ExponentialSum<T> of = op.init();
        for (int i = lane; i < length; i += Lanes)
            of = op.take(of, values[spread(begin + i)], i);
        of = merge_lanes<Lanes>(op, of);
        for (int i = lane; i < length; i += Lanes) {
            T& value = values[spread(begin + i)];
            value = SoftmaxOf<T>::share(of, value);
        }
    }

    __device__ static void long_row(T* out, const T* values, std::int64_t length,
                                    const TransformMemory<T>& memory) {
        const ExponentialSumOf<T> op;
        write(out, values, length, merge_block(op, reduce_strided(op, values, length), memory.partials));
    }
    // A part of a row, of which the first value of the list is known to be the sum.
    __device__ static void part(T* out, const T* values, std::int64_t count, const ExponentialSum<T>* list,
                                const LongPart& part, const TransformMemory<T>&) {
        write(out, values, count, list[-part.part]);
    }
    __device__ static void write(T* out, const T* values, std::int64_t length, const ExponentialSum<T>& of) {
        constexpr int batch = 8;
        for (std::int64_t base = threadIdx.x; base < length; base += batch * block_threads) {
            T held[batch];
#pragma unroll
            for (int k = 0; k < batch; ++k) {
                if (base + k * block_threads < length)
                    held[k] = values[base + k * block_threads];
            }
#pragma unroll
            for (int k = 0; k < batch; ++k) {
                if (base + k * block_threads < length)
                    out[base + k * block_threads] = SoftmaxOf<T>::share(of, held[k]);
            }
        }
    }
};

template <class T, class U>
struct TransformTile<ExclusiveSumOf<T, U>> {
    U* values;

    template <int Lanes>
    __device__ void visit(int, int begin, int length) const {
        U before = U(0);
        if constexpr (Lanes == 1) {
            for (int i = begin; i < begin + length; ++i) {
                const U value = values[spread(i)];
                values[spread(i)] = before;
                before = plus(before, value);
            }
            return;
        }
        // Each lane adds up neighbours.
        const int lane = static_cast<int>(threadIdx.x) % Lanes;
        const int each = (length + Lanes - 1) / Lanes;
        int i = begin + (lane * each < length ? lane * each : length);
        const int end = begin + ((lane + 1) * each < length ? (lane + 1) * each : length);
        U own = U(0);
#pragma unroll 8
        for (int k = i; k < end; ++k)
            own = plus(own, values[spread(k)]);
        const U sum = inclusive_sum_of_lanes<Lanes>(own);
        const U of_lanes_before = from_lane_before<Lanes>(sum, 1);
        if (lane > 0)
            before = of_lanes_before;
        constexpr int batch = 4; // reads at once
        for (; i < end; i += batch) {
            U held[batch];
#pragma unroll
            for (int k = 0; k < batch; ++k) {
                if (i + k < end)
                    held[k] = values[spread(i + k)];
            }
#pragma unroll
            for (int k = 0; k < batch; ++k) {
                if (i + k < end) {
                    values[spread(i + k)] = before;
                    before = plus(before, held[k]);
                }
            }
        }
    }

    // Chunk by chunk, as many values as a tile has; each thread adds up neighbours.
    template <class V>
    __device__ static void long_row(U* out, const V* values, std::int64_t length,
                                    const TransformMemory<U>& memory, U before_chunk = U(0)) {
        constexpr int capacity = tile_values<sizeof(U)>;
        constexpr int each = (capacity + block_threads - 1) / block_threads;
        const int thread = static_cast<int>(threadIdx.x);
        for (std::int64_t base = 0; base < length; base += capacity) {
            const int count = length - base < capacity ? static_cast<int>(length - base) : capacity;
            stage(memory.staged, values + base, count);
            __syncthreads();
            const int first = thread * each < count ? thread * each : count;
            const int last = first + each < count ? first + each : count;
            U own = U(0);
            for (int i = first; i < last; ++i)
                own = plus(own, memory.staged[spread(i)]);
            const U in_warp = inclusive_sum_of_lanes<32>(own);
            const U lane_before = from_lane_before<32>(in_warp, 1);
            if (thread % 32 == 31)
                memory.sums[thread / 32] = in_warp;
            __syncthreads();
            U before = before_chunk;
#pragma unroll
            for (int warp = 0; warp < block_warps; ++warp) {
                if (warp < thread / 32)
                    before = plus(before, memory.sums[warp]);
                before_chunk = plus(before_chunk, memory.sums[warp]);
            }
            if (thread % 32 > 0)
                before = plus(before, lane_before);
            for (int i = first; i < last; ++i) {
                const U value = memory.staged[spread(i)];
                memory.staged[spread(i)] = before;
                before = plus(before, value);
            }
            __syncthreads();
            unstage(out + base, memory.staged, count);
            __syncthreads();
        }
    }
    // A part of a row; in the list stands what comes before it.
    __device__ static void part(U* out, const T* values, std::int64_t count, const U* list, const LongPart&,
                                const TransformMemory<U>& memory) {
        long_row(out, values, count, memory, *list);
    }
};

template <class Op, class T>
struct TransformRows {
    using Stored = typename Op::Stored;
    Stored* out;
    const T* values;
    const TileMemory& memory;
    TransformMemory<Stored> more;
    const LongParts<PartValue<Op>>& list;
    unsigned long long& place;

    __device__ void tile(std::int64_t, int count, std::int64_t begin, int size) const {
        stage(more.staged, values + begin, size);
        for_rows_by_length(memory, count, TransformTile<Op>{more.staged});
        __syncthreads();
        unstage(out + begin, more.staged, size);
    }
    __device__ void long_row(std::int64_t row, std::int64_t begin, std::int64_t length) const {
        if (list.count != nullptr && length > part_values) {
            note_long_row(list, row, begin, length, part_values, place);
            return;
        }
        TransformTile<Op>::long_row(out + begin, values + begin, length, more);
    }
};

template <class Op, class T>
__global__ void __launch_bounds__(block_threads, blocks_at_a_time)
    transform_rows_kernel(typename Op::Stored* out, RaggedView<const T> rows, LongParts<PartValue<Op>> list) {
    using Stored = typename Op::Stored;
    constexpr int capacity = tile_values<sizeof(Stored)>;
    __shared__ TileMemory memory;
    __shared__ Stored staged[spread_size<capacity>];
    __shared__ Stored sums[block_warps];
    __shared__ ExponentialSum<Stored> partials[block_warps];
    __shared__ unsigned long long place;
    TransformRows<Op, T> work{out, rows.values(), memory, {staged, sums, partials}, list, place};
    for_row_tiles<capacity>(rows, memory, work);
}

/// Sums of parts become the sums of the parts before them in their row.
template <class U>
__global__ void __launch_bounds__(block_threads) add_parts_kernel(LongParts<U> list) {
    __shared__ U staged[spread_size<tile_values<sizeof(U)>>];
    __shared__ U sums[block_warps];
    const TransformMemory<U> memory{staged, sums, nullptr};
    for_long_parts(list, [&](std::int64_t i, const LongPart& part, std::int64_t, std::int64_t) {
        if (part.part == 0) {
            U* const values = list.values + i;
            TransformTile<ExclusiveSumOf<U, U>>::long_row(values, values, parts_of(part.length, part_values),
                                                          memory);
        }
    });
}

template <class Op, class T>
__global__ void __launch_bounds__(block_threads)
    transform_parts_kernel(typename Op::Stored* out, const T* values, LongParts<PartValue<Op>> list) {
    using Stored = typename Op::Stored;
    __shared__ Stored staged[spread_size<tile_values<sizeof(Stored)>>];
    __shared__ Stored sums[block_warps];
    const TransformMemory<Stored> memory{staged, sums, nullptr};
    for_long_parts(list, [&](std::int64_t i, const LongPart& part, std::int64_t first, std::int64_t count) {
        const std::int64_t at = part.begin + first;
        TransformTile<Op>::part(out + at, values + at, count, list.values + i, part, memory);
    });
}

template <class T>
void merge_parts(CudaStreamRef stream, unsigned blocks, const SoftmaxOf<T>&,
                 const LongParts<ExponentialSum<T>>& list) {
    using Op = ExponentialSumOf<T>;
    ExponentialSum<T>* const none = nullptr;
    detail::launch(merge_parts_kernel<Op>, blocks, block_threads, stream.get(), Op{}, none, list);
}
template <class T, class U>
void merge_parts(CudaStreamRef stream, unsigned blocks, const ExclusiveSumOf<T, U>&,
                 const LongParts<U>& list) {
    detail::launch(add_parts_kernel<U>, blocks, block_threads, stream.get(), list);
}

template <class Op, class T>
void transform_rows(CudaStreamRef stream, const Op& op, typename Op::Stored* out, RaggedView<const T> rows,
                    RaggedWorkspace<Cuda>* workspace) {
    using Reduction = typename PartsOf<Op>::Reduction;
    if (rows.row_capacity() == 0)
        return;
    const std::int64_t values = rows.value_capacity();
    LongParts<PartValue<Op>> list;
    if (workspace != nullptr && values > part_values) {
        RaggedScratch<Cuda> scratch = workspace->scratch();
        list = long_parts<PartValue<Op>>(stream, scratch, values, part_values,
                                         most_long_parts(values, part_values));
    }
    const unsigned blocks = blocks_for_rows(rows);
    detail::launch(transform_rows_kernel<Op, T>, blocks, block_threads, stream.get(), out, rows, list);
    if (list.count == nullptr)
        return;
    const unsigned more = blocks_for_parts(blocks, values);
    detail::launch(reduce_parts_kernel<Reduction, T>, more, block_threads, stream.get(), Reduction{},
                   rows.values(), list);
    merge_parts(stream, more, op, list);
    detail::launch(transform_parts_kernel<Op, T>, more, block_threads, stream.get(), out, rows.values(),
                   list);
}

} // namespace sluice::ragged::detail
