/// \file
/// Threads that work on a row together: a few lanes of a warp, or a block.
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

} // namespace sluice::ragged::detail
