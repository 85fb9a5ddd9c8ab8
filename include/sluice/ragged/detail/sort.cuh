// Launches of the kernels that sort rows, and those that sort rows which do not fit into shared memory.
#pragma once

#include <cstdint>

#include <sluice/ragged/detail/launch.cuh>
#include <sluice/ragged/detail/numbers.hpp>
#include <sluice/ragged/detail/sort_tiles.cuh>
#include <sluice/ragged/sort.hpp>

namespace sluice::ragged::detail {

/// How often pairs of sorted runs are merged until a row of `length` values is one run.
template <class T>
SLUICE_HOST_DEVICE int merge_passes(std::int64_t length) {
    int passes = 0;
    for (std::int64_t run = sort_capacity<T>; run < length; run *= 2)
        ++passes;
    return passes;
}

/// Where a row's values are with so many passes to come: each pass changes places, and the last writes to the result.
template <class T>
struct RunPlace {
    T* values;
    std::int64_t* positions;

    __device__ RunPlace(const SortArguments<T>& sort, const LongRows<T>& more, int passes_to_come)
        : values(passes_to_come % 2 == 0 ? sort.out : more.list.values),
          positions(passes_to_come % 2 == 0 ? sort.positions : more.positions) {}
};

template <bool Positions, class T>
__global__ void __launch_bounds__(block_threads) sort_chunks_kernel(SortArguments<T> sort, LongRows<T> more) {
    constexpr int capacity = sort_capacity<T>;
    constexpr int items = capacity / block_threads;
    __shared__ T staged[spread_size<capacity>];
    __shared__ typename BlockSort<T, items>::TempStorage memory;
    const auto count = static_cast<std::int64_t>(*more.list.count);
    for (std::int64_t i = blockIdx.x; i < count; i += gridDim.x) {
        const LongPart chunk = more.list.parts[i];
        const RunPlace<T> to(sort, more, merge_passes<T>(chunk.length));
        const std::int64_t in_row = chunk.part * capacity;
        const std::int64_t begin = chunk.begin + in_row;
        const std::int64_t left = chunk.length - in_row;
        const int size = left < capacity ? static_cast<int>(left) : capacity;
        stage(staged, sort.rows.values() + begin, size);
        __syncthreads();
        sort_staged<items>(SortByBlock<T, items>{memory, {sort.key}}, staged, 0, size,
                           static_cast<int>(threadIdx.x), [&](int k, int position) {
                               if constexpr (Positions)
                                   to.positions[begin + k] = in_row + position;
                           });
        unstage(to.values + begin, staged, size);
        __syncthreads();
    }
}

/// How many of the first `diagonal` values of two merged runs are the first run's, whose values come first where they
/// are equal. All lanes of a warp call it.
template <class T>
__device__ std::int64_t split_runs(const SortLess<T>& less, const T* a, std::int64_t a_size, const T* b,
                                   std::int64_t b_size, std::int64_t diagonal) {
    const std::int64_t lowest = diagonal > b_size ? diagonal - b_size : 0;
    const std::int64_t highest = diagonal < a_size ? diagonal : a_size;
    return first_that(lowest, highest, [&](std::int64_t i) { return less(b[diagonal - 1 - i], a[i]); });
}

/// Merges run 2 k with run 2 k + 1 of each row that has still more than one, where a run is 2^`pass` chunks. A block
/// writes as many values as a chunk has.
template <bool Positions, class T>
__global__ void __launch_bounds__(block_threads)
    merge_chunks_kernel(SortArguments<T> sort, LongRows<T> more, int pass) {
    constexpr int capacity = sort_capacity<T>;
    constexpr int items = capacity / block_threads;
    __shared__ T staged[spread_size<capacity>];
    __shared__ Within source[spread_size<capacity>];
    __shared__ std::int64_t splits[2];
    const SortLess<T> less{sort.key};
    const int thread = static_cast<int>(threadIdx.x);
    const std::int64_t run = std::int64_t{capacity} << pass;
    const auto count = static_cast<std::int64_t>(*more.list.count);
    for (std::int64_t c = blockIdx.x; c < count; c += gridDim.x) {
        const LongPart chunk = more.list.parts[c];
        const int passes = merge_passes<T>(chunk.length);
        if (pass >= passes)
            continue; // for all threads
        const RunPlace<T> from(sort, more, passes - pass);
        const RunPlace<T> to(sort, more, passes - pass - 1);
        const std::int64_t in_row = chunk.part * capacity;
        const std::int64_t pair = in_row / (2 * run) * (2 * run);
        const std::int64_t left = chunk.length - pair;
        const std::int64_t a_size = left < run ? left : run;
        const std::int64_t b_size = left - a_size < run ? left - a_size : run;
        const T* const a = from.values + chunk.begin + pair;
        const T* const b = a + a_size;
        const std::int64_t first = in_row - pair;
        const std::int64_t last = first + capacity < a_size + b_size ? first + capacity : a_size + b_size;
        if (thread < 64) {
            const std::int64_t split = split_runs(less, a, a_size, b, b_size, thread < 32 ? first : last);
            if (thread % 32 == 0)
                splits[thread / 32] = split;
        }
        __syncthreads();
        const std::int64_t a_first = splits[0];
        const std::int64_t b_first = first - a_first;
        const int of_a = static_cast<int>(splits[1] - a_first);
        const int size = static_cast<int>(last - first);
        for (int i = thread; i < size; i += block_threads)
            staged[spread(i)] = i < of_a ? a[a_first + i] : b[b_first + (i - of_a)];
        __syncthreads();

        // Where this thread's values start, and then which comes next, as in the whole.
        const int diagonal = thread * items < size ? thread * items : size;
        int low = diagonal > size - of_a ? diagonal - (size - of_a) : 0;
        int high = diagonal < of_a ? diagonal : of_a;
        while (low < high) {
            const int middle = (low + high) / 2;
            if (less(staged[spread(of_a + diagonal - 1 - middle)], staged[spread(middle)])) {
                high = middle;
            } else {
                low = middle + 1;
            }
        }
        int next_a = low;
        int next_b = of_a + diagonal - low;
#pragma unroll
        for (int k = 0; k < items; ++k) {
            if (diagonal + k < size) {
                const bool take_b =
                    next_a >= of_a || (next_b < size && less(staged[spread(next_b)], staged[spread(next_a)]));
                source[spread(diagonal + k)] = static_cast<Within>(take_b ? next_b : next_a);
                next_a += take_b ? 0 : 1;
                next_b += take_b ? 1 : 0;
            }
        }
        __syncthreads();
        for (int i = thread; i < size; i += block_threads) {
            const int place = source[spread(i)];
            const std::int64_t at = chunk.begin + in_row + i;
            to.values[at] = staged[spread(place)];
            if constexpr (Positions) {
                const std::int64_t before =
                    place < of_a ? a_first + place : a_size + b_first + (place - of_a);
                to.positions[at] = from.positions[chunk.begin + pair + before];
            }
        }
        __syncthreads();
    }
}

template <bool Positions, class T>
void launch_sort(CudaStreamRef stream, const SortArguments<T>& sort, RaggedWorkspace<Cuda>& workspace) {
    constexpr std::int64_t chunk = sort_capacity<T>;
    const std::int64_t values = sort.rows.value_capacity();
    LongRows<T> more;
    if (values > chunk) {
        RaggedScratch<Cuda> scratch = workspace.scratch();
        more.list = long_parts<T>(stream, scratch, values, chunk, values);
        if constexpr (Positions)
            more.positions = scratch.template take<std::int64_t>(values);
    }
    const unsigned blocks = blocks_for_rows(sort.rows);
    detail::launch(sort_tiles_kernel<Positions, T>, blocks, block_threads, stream.get(), sort, more);
    if (values <= chunk)
        return;
    const auto long_blocks = static_cast<unsigned>(smaller(blocks, most_long_parts(values, chunk)));
    detail::launch(sort_chunks_kernel<Positions, T>, long_blocks, block_threads, stream.get(), sort, more);
    for (int pass = 0; pass < merge_passes<T>(values); ++pass) {
        detail::launch(merge_chunks_kernel<Positions, T>, long_blocks, block_threads, stream.get(), sort,
                       more, pass);
    }
}

template <class T>
void sort_rows(CudaStreamRef stream, const SortArguments<T>& sort, RaggedWorkspace<Cuda>& workspace) {
    if (sort.rows.row_capacity() == 0 || sort.rows.value_capacity() == 0)
        return;
    if (sort.positions != nullptr) {
        launch_sort<true>(stream, sort, workspace);
    } else {
        launch_sort<false>(stream, sort, workspace);
    }
}

} // namespace sluice::ragged::detail
