/// \file
/// How a block brings values to shared memory and back.
#pragma once

#include <sluice/ragged/detail/lanes.cuh>

namespace sluice::ragged::detail {

/// Where value `i` of a tile lies in shared memory: a gap after every 32, so that threads which read rows of 8, 16 or
/// 32 values side by side do not all meet in the same banks.
__device__ inline int spread(int i) { return i + (i >> 5); }
template <int Values>
inline constexpr int spread_size = Values + Values / 32 + 1;

/// How far apart values of a thread are in shared memory that are a block's threads apart in the tile.
inline constexpr int spread_stride = block_threads + block_threads / 32;
static_assert(block_threads % 32 == 0);
inline constexpr int staged_at_once = 8;

/// Calls `move(k, i, place)` for a thread's share of `count` values, where value `i` is at `place` of shared memory, and
/// then `settle(k, i, place)`: `staged_at_once` of the former first, numbered by `k`, so that as many loads are under way.
template <class Move, class Settle>
__device__ void for_staged(int count, const Move& move, const Settle& settle) {
    constexpr int batch = staged_at_once;
    for (int base = static_cast<int>(threadIdx.x); base < count; base += batch * block_threads) {
        const int place = spread(base);
        if (base + (batch - 1) * block_threads < count) { // nearly always, and with less to compute
#pragma unroll
            for (int k = 0; k < batch; ++k)
                move(k, base + k * block_threads, place + k * spread_stride);
#pragma unroll
            for (int k = 0; k < batch; ++k)
                settle(k, base + k * block_threads, place + k * spread_stride);
        } else {
#pragma unroll
            for (int k = 0; k < batch; ++k) {
                if (base + k * block_threads < count)
                    move(k, base + k * block_threads, place + k * spread_stride);
            }
#pragma unroll
            for (int k = 0; k < batch; ++k) {
                if (base + k * block_threads < count)
                    settle(k, base + k * block_threads, place + k * spread_stride);
            }
        }
    }
}

/// Brings `count` values to shared memory, where value i is at `spread(i)`.
template <class Stored, class T>
__device__ void stage(Stored* to, const T* from, int count) {
    Stored held[staged_at_once];
    for_staged(
        count, [&](int k, int i, int) { held[k] = static_cast<Stored>(from[i]); },
        [&](int k, int, int place) { to[place] = held[k]; });
}
/// Brings them back.
template <class Stored>
__device__ void unstage(Stored* to, const Stored* from, int count) {
    Stored held[staged_at_once];
    for_staged(
        count, [&](int k, int, int place) { held[k] = from[place]; },
        [&](int k, int i, int) { to[i] = held[k]; });
}

} // namespace sluice::ragged::detail
