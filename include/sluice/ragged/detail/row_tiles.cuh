/// \file
/// How blocks share the rows of a ragged batch.
///
/// Whatever the lengths, each block gets about the same number of rows and values together, and goes through them
/// in tiles: consecutive rows whose values fit into shared memory, read side by side however short the rows are. A
/// row that is longer than a tile is one block's, by itself. Counts and offsets are read where this runs. (That
/// rows and values are weighed together follows D. Merrill and M. Garland, "Merge-based parallel sparse
/// matrix-vector multiplication", SC 2016; unlike there, no row is cut.)
#pragma once

#include <cuda_runtime.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include <sluice/backend/stream.hpp>
#include <sluice/ragged/detail/lanes.cuh>
#include <sluice/ragged/view.hpp>

namespace sluice::ragged::detail {

/// Rows of a tile, at most.
inline constexpr int tile_rows = 512;
/// Rows and values that a block is started for, at least.
inline constexpr std::int64_t smallest_share = 512;
/// Blocks that a multiprocessor runs at a time (which the kernels' registers and shared memory allow), and how many
/// it is given one after the other, so that slow ones are made up for.
inline constexpr int blocks_at_a_time = 6;
inline constexpr int laps = 4;

/// Values of a tile, at most, for `bytes` of shared memory for each.
template <std::size_t Bytes>
inline constexpr int tile_values = static_cast<int>(std::clamp<std::size_t>(20480 / Bytes / 32 * 32, 32,
                                                                            8192));

/// Where value `i` of a tile lies in shared memory: a gap after every 32, so that threads which read rows of 8, 16 or
/// 32 values side by side do not all meet in the same banks.
__device__ inline int spread(int i) { return i + (i >> 5); }
template <int Values>
inline constexpr int spread_size = Values + Values / 32 + 1;

// Rows up to the first length are a thread's, up to the second 8 lanes', and else a warp's. A row's sum depends on
// its own length and values alone, never on the rows beside it.
inline constexpr int longest_of_thread = 24;
inline constexpr int longest_of_group = 256;

struct TileMemory {
    std::int64_t offsets[tile_rows + 1];
    std::int64_t range[2];
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

/// The rows of the calling block into `memory.range`.
template <class T>
__device__ void find_share(const RaggedView<T>& view, TileMemory& memory) {
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
            memory.range[warp] = row;
    }
    __syncthreads();
}

/// Calls `work.tile(first, count, begin, size)` for tiles of `count` rows from `first` on, whose `size` values start
/// at `begin`, and `work.long_row(row, begin, length)` for rows longer than `Capacity`. All threads are called
/// together, and a barrier is between two calls. `memory.offsets` holds a tile's offsets.
template <int Capacity, class T, class Work>
__device__ void for_row_tiles(const RaggedView<T>& view, TileMemory& memory, Work& work) {
    find_share(view, memory);
    std::int64_t first = memory.range[0];
    const std::int64_t last = memory.range[1];
    while (first < last) {
        const int candidates = last - first < tile_rows ? static_cast<int>(last - first) : tile_rows;
        __syncthreads(); // nobody reads the tile before any more
        for (int i = static_cast<int>(threadIdx.x); i <= candidates; i += block_threads)
            memory.offsets[i] = view.offset(first + i);
        __syncthreads();
        const std::int64_t begin = memory.offsets[0];
        int count = 0; // of rows that fit together
#pragma unroll
        for (int base = 0; base < tile_rows; base += block_threads) {
            const int i = base + static_cast<int>(threadIdx.x);
            count += __syncthreads_count(i < candidates && memory.offsets[i + 1] - begin <= Capacity);
        }
        if (count == 0) {
            work.long_row(first, begin, memory.offsets[1] - begin);
            first += 1;
        } else {
            work.tile(first, count, begin, static_cast<int>(memory.offsets[count] - begin));
            first += count;
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
    const std::int64_t base = memory.offsets[0];
    bool medium = false;
    bool large = false;
    for (int row = static_cast<int>(threadIdx.x); row < count; row += block_threads) {
        const auto length = static_cast<int>(memory.offsets[row + 1] - base - (memory.offsets[row] - base));
        medium = medium || (length > longest_of_thread && length <= longest_of_group);
        large = large || length > longest_of_group;
    }
    const bool any_medium = __syncthreads_or(medium) != 0;
    const bool any_large = __syncthreads_or(large) != 0;
    for_rows_of_tile<1>(memory, count, 0, longest_of_thread, [&](int row, int begin, int length) {
        visitor.template visit<1>(row, begin, length);
    });
    if (any_medium) {
        for_rows_of_tile<8>(
            memory, count, longest_of_thread + 1, longest_of_group,
            [&](int row, int begin, int length) { visitor.template visit<8>(row, begin, length); });
    }
    if (any_large) {
        for_rows_of_tile<32>(
            memory, count, longest_of_group + 1, 1 << 30,
            [&](int row, int begin, int length) { visitor.template visit<32>(row, begin, length); });
    }
}

/// Brings `count` values to shared memory, where value i is at `spread(i)`.
template <class Stored, class T>
__device__ void stage(Stored* to, const T* from, int count) {
    constexpr int batch = 8; // loads under way at once
    for (int base = static_cast<int>(threadIdx.x); base < count; base += batch * block_threads) {
        Stored held[batch];
#pragma unroll
        for (int k = 0; k < batch; ++k) {
            const int i = base + k * block_threads;
            if (i < count)
                held[k] = static_cast<Stored>(from[i]);
        }
#pragma unroll
        for (int k = 0; k < batch; ++k) {
            const int i = base + k * block_threads;
            if (i < count)
                to[spread(i)] = held[k];
        }
    }
}
/// Brings them back.
template <class Stored>
__device__ void unstage(Stored* to, const Stored* from, int count) {
    for (int i = static_cast<int>(threadIdx.x); i < count; i += block_threads)
        to[i] = from[spread(i)];
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
    return static_cast<unsigned>(
        std::min<std::int64_t>(shares, std::int64_t{processors} * blocks_at_a_time * laps));
}

} // namespace sluice::ragged::detail
