// Threads that work on a row together, a few lanes of a warp or a block, and how a block brings values to shared memory and back.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>
#include <cstring>

namespace sluice::ragged::detail {

inline constexpr int block_threads = 256;
inline constexpr int block_warps = block_threads / 32;

/// Which lanes of the calling thread's warp are its group of `Lanes`.
template <int Lanes>
__device__ unsigned group_mask() {
    static_assert(Lanes > 0 && Lanes <= 32 && (Lanes & (Lanes - 1)) == 0);
    if constexpr (Lanes == 32) {
        return 0xffffffffu;
    } else {
        return ((1u << Lanes) - 1u) << (threadIdx.x % 32u / Lanes * Lanes);
    }
}

/// A value of any trivially copyable type, word by word through `shuffle(word)`.
template <class T, class Shuffle>
__device__ T shuffle_words(const T& value, Shuffle shuffle) {
    constexpr int count = static_cast<int>((sizeof(T) + 3) / 4);
    unsigned words[count] = {};
    memcpy(words, &value, sizeof(T));
#pragma unroll
    for (int i = 0; i < count; ++i)
        words[i] = shuffle(words[i]);
    T shuffled;
    memcpy(&shuffled, words, sizeof(T));
    return shuffled;
}
template <int Lanes, class T>
__device__ T from_lane_xor(const T& value, int distance) {
    return shuffle_words(value, [distance](unsigned word) {
        return __shfl_xor_sync(group_mask<Lanes>(), word, distance, Lanes);
    });
}
/// Of the lane `distance` before this one; of this one itself where there is none.
template <int Lanes, class T>
__device__ T from_lane_before(const T& value, int distance) {
    return shuffle_words(value, [distance](unsigned word) {
        return __shfl_up_sync(group_mask<Lanes>(), word, static_cast<unsigned>(distance), Lanes);
    });
}
template <int Lanes, class T>
__device__ T from_lane(const T& value, int lane) {
    return shuffle_words(
        value, [lane](unsigned word) { return __shfl_sync(group_mask<Lanes>(), word, lane, Lanes); });
}

/// The accumulators of a group's lanes as one, in every lane; the tree is always the same.
template <int Lanes, class Op>
__device__ typename Op::Accumulator merge_lanes(const Op& op, typename Op::Accumulator accumulator) {
#pragma unroll
    for (int distance = 1; distance < Lanes; distance *= 2) {
        const auto other = from_lane_xor<Lanes>(accumulator, distance);
        accumulator = (threadIdx.x & static_cast<unsigned>(distance)) != 0 ? op.merge(other, accumulator)
                                                                           : op.merge(accumulator, other);
    }
    return accumulator;
}

/// The accumulators of a block's threads as one, in every thread. All threads call it; `partials` is theirs until
/// the next barrier after it.
template <class Op>
__device__ typename Op::Accumulator merge_block(const Op& op, typename Op::Accumulator accumulator,
                                                typename Op::Accumulator* partials) {
    accumulator = merge_lanes<32>(op, accumulator);
    if (threadIdx.x % 32 == 0)
        partials[threadIdx.x / 32] = accumulator;
    __syncthreads();
    accumulator = partials[0];
#pragma unroll
    for (int warp = 1; warp < block_warps; ++warp)
        accumulator = op.merge(accumulator, partials[warp]);
    return accumulator;
}

/// Sums of the group's lanes before the calling one, and with it.
template <int Lanes, class T>
__device__ T inclusive_sum_of_lanes(T value) {
    const int lane = static_cast<int>(threadIdx.x) % Lanes;
#pragma unroll
    for (int distance = 1; distance < Lanes; distance *= 2) {
        const T before = from_lane_before<Lanes>(value, distance);
        if (lane >= distance)
            value = static_cast<T>(before + value);
    }
    return value;
}

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
