// How blocks share the rows of a ragged batch.
//
// Whatever the lengths, each block gets about the same number of rows and values together, and goes through them
// in tiles: consecutive rows whose values fit into shared memory, read side by side however short the rows are. A
// row that is longer than a tile is one block's, by itself. Counts and offsets are read where this runs. (That
// rows and values are weighed together follows D. Merrill and M. Garland, "Merge-based parallel sparse
// matrix-vector multiplication", SC 2016; unlike there, no row is cut.)
#pragma once

#include <cuda_runtime.h>

#include <cstddef>
#include <cstdint>
#include <type_traits>

#include <sluice/backend/stream.hpp>
#include <sluice/ragged/detail/lanes.cuh>
#include <sluice/ragged/detail/numbers.hpp>
#include <sluice/ragged/view.hpp>

namespace sluice::ragged::detail {

/// Rows of a tile, at most: with the end of the last one there are two offsets a thread.
inline constexpr int tile_rows = 511;
/// Rows and values that a block is started for, at least.
inline constexpr std::int64_t smallest_share = 512;
/// Blocks that a multiprocessor runs at a time (which the kernels' registers and shared memory allow), and how many
/// it is given one after the other, so that slow ones are made up for.
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ == 750
inline constexpr int blocks_at_a_time = 4; // its threads; the compiler refuses more
#else
inline constexpr int blocks_at_a_time = 6;
#endif
inline constexpr int laps = 4;

/// Values of a tile, at most, for `bytes` of shared memory for each.
template <std::size_t Bytes>
inline constexpr int tile_values = static_cast<int>(larger(smaller(20480 / Bytes / 32 * 32, 8192), 32));

// Rows up to the first length are a thread's, up to the second 8 lanes', and else a warp's. A row's sum depends on
// its own length and values alone, never on the rows beside it.
inline constexpr int longest_of_thread = 24;
inline constexpr int longest_of_group = 256;

/// Rows `first` up to, and without, `last`.
struct RowRange {
    std::int64_t first;
    std::int64_t last;
};

struct TileMemory {
    std::int64_t offsets[tile_rows + 1];
    RowRange range;
    int fitting[block_warps];      ///< rows that a warp found to fit
    unsigned lengths[block_warps]; ///< and bit by bit, which lengths they have
    /// Which rows a group's lanes are to work on, from 0 up, and which a warp, from the end down, in any order.
    std::uint16_t longer[tile_rows];
    int of_groups;
    int of_warps;

    /// Whether there may be a row of `shortest` to `longest` values among the tile's.
    __device__ bool has(int shortest, int longest) const {
        unsigned all = 0;
#pragma unroll
        for (int warp = 0; warp < block_warps; ++warp)
            all |= lengths[warp];
        return (all >> length_class(shortest) &
                ((2u << (length_class(longest) - length_class(shortest))) - 1u)) != 0;
    }
    /// 0 for lengths up to 1, and then one more for each doubling.
    __device__ static int length_class(int length) { return length <= 1 ? 0 : 32 - __clz(length - 1); }
};

/// The first of `first` … `last` for which `holds(i)`, which is false up to somewhere, and then true, for `last` at
/// the latest. All lanes of a warp call it; in each step they divide what is left among themselves.
template <class Holds>
__device__ std::int64_t first_that(std::int64_t first, std::int64_t last, Holds holds) {
    const int lane = static_cast<int>(threadIdx.x % 32);
    while (first < last) {
        const std::int64_t step = (last - first + 32) / 32;
        std::int64_t probe = first + (lane + 1) * step - 1;
        if (probe > last)
            probe = last;
        const unsigned reached = __ballot_sync(0xffffffffu, probe == last || holds(probe));
        const int found = __ffs(static_cast<int>(reached)) - 1; // there is one: the last lane probes `last`
        const std::int64_t upper = from_lane<32>(probe, found);
        const std::int64_t lower = from_lane<32>(probe, found > 0 ? found - 1 : 0);
        last = upper;
        if (found > 0)
            first = lower + 1;
    }
    return first;
}

/// The rows of the calling block into `range`, in shared memory.
template <class T>
__device__ void find_share(const RaggedView<T>& view, RowRange& range) {
    const int warp = static_cast<int>(threadIdx.x / 32);
    if (warp < 2) {
        const std::int64_t rows = view.rows();
        const std::int64_t total = rows + view.offset(rows);
        std::int64_t share = (total + gridDim.x - 1) / gridDim.x;
        if (share < smallest_share)
            share = smallest_share;
        std::int64_t target = (static_cast<std::int64_t>(blockIdx.x) + warp) * share;
        if (target > total)
            target = total;
        const std::int64_t row =
            first_that(0, rows, [&](std::int64_t r) { return r + view.offset(r) >= target; });
        if (threadIdx.x % 32 == 0)
            (warp == 0 ? range.first : range.last) = row;
    }
    __syncthreads();
}

/// A thread's share of the offsets of `count` rows from `first` on.
struct OffsetsAhead {
    static constexpr int each = (tile_rows + 1) / block_threads;
    std::int64_t held[each];

    template <class T>
    __device__ void load(const RaggedView<T>& view, std::int64_t first, int count) {
#pragma unroll
        for (int k = 0; k < each; ++k) {
            const int i = static_cast<int>(threadIdx.x) + k * block_threads;
            if (i <= count)
                held[k] = view.offset(first + i);
        }
    }
    __device__ void store(TileMemory& memory, int count) const {
#pragma unroll
        for (int k = 0; k < each; ++k) {
            const int i = static_cast<int>(threadIdx.x) + k * block_threads;
            if (i <= count)
                memory.offsets[i] = held[k];
        }
    }
};

/// How many of a tile's `candidates` fit together, the same for all threads; a barrier is in it.
template <int Capacity>
__device__ int count_fitting(TileMemory& memory, int candidates) {
    const std::int64_t begin = memory.offsets[0];
    int fitting = 0;
    unsigned lengths = 0;
#pragma unroll
    for (int base = 0; base < tile_rows; base += block_threads) {
        const int i = base + static_cast<int>(threadIdx.x);
        bool fits = false;
        if (i < candidates) {
            const std::int64_t end = memory.offsets[i + 1];
            fits = end - begin <= Capacity;
            if (fits) {
                const auto length = static_cast<int>(end - memory.offsets[i]);
                lengths |= 1u << TileMemory::length_class(length);
                if (length > longest_of_group) {
                    memory.longer[tile_rows - 1 - atomicAdd(&memory.of_warps, 1)] =
                        static_cast<std::uint16_t>(i);
                } else if (length > longest_of_thread) {
                    memory.longer[atomicAdd(&memory.of_groups, 1)] = static_cast<std::uint16_t>(i);
                }
            }
        }
        fitting += __popc(__ballot_sync(0xffffffffu, fits));
    }
#pragma unroll
    for (int distance = 1; distance < 32; distance *= 2)
        lengths |= from_lane_xor<32>(lengths, distance);
    if (threadIdx.x % 32 == 0) {
        memory.fitting[threadIdx.x / 32] = fitting;
        memory.lengths[threadIdx.x / 32] = lengths;
    }
    __syncthreads();
    int count = 0;
#pragma unroll
    for (int warp = 0; warp < block_warps; ++warp)
        count += memory.fitting[warp];
    return count;
}

/// Calls `work.tile(first, count, begin, size)` for tiles of `count` rows from `first` on, whose `size` values start
/// at `begin`, and `work.long_row(row, begin, length)` for rows longer than `Capacity`. All threads are called
/// together, and a barrier is between two calls. `memory.offsets` holds a tile's offsets; those of the next tile are
/// on their way during a call.
template <int Capacity, class T, class Work>
__device__ void for_row_tiles(const RaggedView<T>& view, TileMemory& memory, Work& work) {
    find_share(view, memory.range);
    std::int64_t first = memory.range.first;
    const std::int64_t last = memory.range.last;
    const auto candidates_from = [last](std::int64_t row) {
        return last - row < tile_rows ? static_cast<int>(last - row) : tile_rows;
    };
    OffsetsAhead ahead;
    if (first < last)
        ahead.load(view, first, candidates_from(first));
    while (first < last) {
        const int candidates = candidates_from(first);
        __syncthreads(); // all threads have read the tile before
        ahead.store(memory, candidates);
        if (threadIdx.x == 0)
            memory.of_groups = memory.of_warps = 0;
        __syncthreads();
        const int count = count_fitting<Capacity>(memory, candidates);
        const std::int64_t row = first;
        first += count > 0 ? count : 1;
        if (first < last)
            ahead.load(view, first, candidates_from(first));
        const std::int64_t begin = memory.offsets[0];
        if (count == 0) {
            work.long_row(row, begin, memory.offsets[1] - begin);
        } else {
            work.tile(row, count, begin, static_cast<int>(memory.offsets[count] - begin));
        }
    }
}

/// Calls `visit(row, begin, length)` in groups of `Lanes` for those of a tile's rows whose length is in
/// `shortest` … `longest`. `row` and `begin` are the tile's own.
template <int Lanes, class Visit>
__device__ void for_rows_of_tile(const TileMemory& memory, int count, int shortest, int longest,
                                 Visit visit) {
    const std::int64_t base = memory.offsets[0];
    for (int row = static_cast<int>(threadIdx.x) / Lanes; row < count; row += block_threads / Lanes) {
        const int begin = static_cast<int>(memory.offsets[row] - base);
        const int length = static_cast<int>(memory.offsets[row + 1] - base) - begin;
        if (length >= shortest && length <= longest)
            visit(row, begin, length);
    }
}

/// Calls `Visitor::visit<Lanes>(row, begin, length)` for all rows of a tile, with as many lanes as suit each. There is
/// a barrier before it.
template <class Visitor>
__device__ void for_rows_by_length(const TileMemory& memory, int count, Visitor visitor) {
    __syncthreads();
    for_rows_of_tile<1>(memory, count, 0, longest_of_thread, [&](int row, int begin, int length) {
        visitor.template visit<1>(row, begin, length);
    });
    const auto visit = [&](int row, auto lanes) {
        const auto begin = static_cast<int>(memory.offsets[row] - memory.offsets[0]);
        const auto length = static_cast<int>(memory.offsets[row + 1] - memory.offsets[row]);
        visitor.template visit<decltype(lanes)::value>(row, begin, length);
    };
    const int thread = static_cast<int>(threadIdx.x);
    for (int i = thread / 8; i < memory.of_groups; i += block_threads / 8)
        visit(memory.longer[i], std::integral_constant<int, 8>{});
    for (int i = thread / 32; i < memory.of_warps; i += block_warps)
        visit(memory.longer[tile_rows - 1 - i], std::integral_constant<int, 32>{});
}

/// One thread's share in the reduction of `length` values, the first of which is at position `first` of its row.
template <class Op, class T>
__device__ typename Op::Accumulator reduce_strided(const Op& op, const T* values, std::int64_t length,
                                                   std::int64_t first = 0) {
    constexpr int batch = 16;
    typename Op::Accumulator accumulator = op.init();
    std::int64_t base = threadIdx.x;
    for (; base + (batch - 1) * block_threads < length; base += batch * block_threads) {
        T held[batch];
#pragma unroll
        for (int k = 0; k < batch; ++k)
            held[k] = values[base + k * block_threads];
#pragma unroll
        for (int k = 0; k < batch; ++k)
            accumulator = op.take(accumulator, held[k], first + base + k * block_threads);
    }
    for (; base < length; base += block_threads)
        accumulator = op.take(accumulator, values[base], first + base);
    return accumulator;
}

/// Blocks for rows of that capacity: what the device runs in `laps`, or less where there cannot be so much.
template <class T>
unsigned blocks_for_rows(const RaggedView<T>& view) {
    int device = 0;
    int processors = 0;
    SLUICE_CUDA_CHECK(cudaGetDevice(&device));
    SLUICE_CUDA_CHECK(cudaDeviceGetAttribute(&processors, cudaDevAttrMultiProcessorCount, device));
    const std::int64_t shares = (view.row_capacity() + view.value_capacity()) / smallest_share + 1;
    return static_cast<unsigned>(smaller(shares, std::int64_t{processors} * blocks_at_a_time * laps));
}

} // namespace sluice::ragged::detail
