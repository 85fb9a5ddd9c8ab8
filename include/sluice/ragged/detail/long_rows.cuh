// Rows that are too long for one block, cut into parts that all blocks share.
//
// One launch notes the parts in a list, later ones work on them. The order of rows in the list is by chance, but the
// parts of one row are neighbours in it, so that no result depends on it.
#pragma once

#include <sluice/memory/copy.hpp>
#include <sluice/ragged/detail/long_parts.hpp>
#include <sluice/ragged/detail/row_tiles.cuh>
#include <sluice/ragged/workspace.hpp>

namespace sluice::ragged::detail {

__device__ inline std::int64_t parts_of(std::int64_t length, std::int64_t each) {
    return (length + each - 1) / each;
}

/// Adds a row's parts of `each` values. All threads of a block call it; `place` is theirs until the next barrier but
/// one.
template <class Value>
__device__ void note_long_row(const LongParts<Value>& list, std::int64_t row, std::int64_t begin,
                              std::int64_t length, std::int64_t each, unsigned long long& place) {
    const std::int64_t parts = parts_of(length, each);
    if (threadIdx.x == 0)
        place = atomicAdd(list.count, static_cast<unsigned long long>(parts));
    __syncthreads();
    LongPart* const to = list.parts + place;
    for (std::int64_t part = threadIdx.x; part < parts; part += block_threads)
        to[part] = {row, begin, length, part};
}

/// An empty list in `scratch`, for rows with room for so many values.
template <class Value>
LongParts<Value> long_parts(CudaStreamRef stream, RaggedScratch<Cuda>& scratch, std::int64_t values,
                            std::int64_t each, std::int64_t values_of_list) {
    const auto list = take_long_parts<Value>(scratch, values, each, values_of_list);
    fill_bytes(stream, DeviceSpan<unsigned long long, Cuda>{list.count, 1}, 0);
    return list;
}

/// Calls `work(i, part, first, count)` for the parts that are the calling block's: values `first` and on of the row,
/// `count` of them. All threads are called together, and a barrier is between two calls.
template <class Value, class Work>
__device__ void for_long_parts(const LongParts<Value>& list, Work work) {
    const auto count = static_cast<std::int64_t>(*list.count);
    for (std::int64_t i = blockIdx.x; i < count; i += gridDim.x) {
        const LongPart part = list.parts[i];
        const std::int64_t first = part.part * part_values;
        const std::int64_t left = part.length - first;
        work(i, part, first, left < part_values ? left : part_values);
        __syncthreads();
    }
}

/// Reduces each part to its value of the list.
template <class Op, class T>
__global__ void __launch_bounds__(block_threads)
    reduce_parts_kernel(Op op, const T* values, LongParts<typename Op::Accumulator> list) {
    __shared__ typename Op::Accumulator partials[block_warps];
    for_long_parts(list, [&](std::int64_t i, const LongPart& part, std::int64_t first, std::int64_t count) {
        const auto own = reduce_strided(op, values + part.begin + first, count, first);
        const auto reduced = merge_block(op, own, partials);
        if (threadIdx.x == 0)
            list.values[i] = reduced;
    });
}

/// Reduces each row's values of the list to one: the first of them, and, where there is an `out`, the row's result.
template <class Op>
__global__ void __launch_bounds__(block_threads)
    merge_parts_kernel(Op op, typename Op::Result* out, LongParts<typename Op::Accumulator> list) {
    __shared__ typename Op::Accumulator partials[block_warps];
    for_long_parts(list, [&](std::int64_t i, const LongPart& part, std::int64_t, std::int64_t) {
        if (part.part != 0)
            return;
        const std::int64_t parts = parts_of(part.length, part_values);
        typename Op::Accumulator own = op.init();
        for (std::int64_t p = threadIdx.x; p < parts; p += block_threads)
            own = op.merge(own, list.values[i + p]);
        const auto reduced = merge_block(op, own, partials);
        if (threadIdx.x == 0) {
            list.values[i] = reduced;
            if (out != nullptr)
                out[part.row] = op.finish(reduced, part.length);
        }
    });
}

/// Blocks for a list, of which rows have `blocks`.
inline unsigned blocks_for_parts(unsigned blocks, std::int64_t values) {
    return static_cast<unsigned>(smaller(blocks, most_long_parts(values, part_values)));
}

} // namespace sluice::ragged::detail
