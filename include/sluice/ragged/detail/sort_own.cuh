/// \file
/// What one thread sorts in its registers; see sort.cuh.
#pragma once

#include <cstddef>
#include <cstring>
#include <type_traits>

#include <sluice/ragged/sort.hpp>

namespace sluice::ragged::detail {

/// Numbers that compare as the values are to be ordered, one for each value: -0 comes before +0.
template <class T>
struct ExactKey {
    using Key = typename SortKey<T>::Key;
    static constexpr Key sign = static_cast<Key>(Key(1) << (8 * sizeof(T) - 1));
    static constexpr bool is_signed = static_cast<T>(-1) < T(0);

    Key flip; ///< all bits of descending ones

    __device__ Key operator()(T value) const {
        Key bits;
        memcpy(&bits, &value, sizeof(T));
        if constexpr (std::is_floating_point_v<T>) {
            bits = static_cast<Key>((bits & sign) != 0 ? ~bits : bits ^ sign);
        } else if constexpr (is_signed) {
            bits = static_cast<Key>(bits ^ sign);
        }
        return static_cast<Key>(bits ^ flip);
    }
    __device__ T value(Key key) const {
        Key bits = static_cast<Key>(key ^ flip);
        if constexpr (std::is_floating_point_v<T>) {
            bits = static_cast<Key>((bits & sign) != 0 ? bits ^ sign : ~bits);
        } else if constexpr (is_signed) {
            bits = static_cast<Key>(bits ^ sign);
        }
        T value;
        memcpy(&value, &bits, sizeof(T));
        return value;
    }
    __device__ static bool is_negative_zero(T value) {
        if constexpr (std::is_floating_point_v<T>) {
            Key bits;
            memcpy(&bits, &value, sizeof(T));
            return bits == sign;
        } else {
            return false;
        }
    }
};

/// A thread's own keys in order: K. Batcher's network that merges odd and even ones.
template <std::size_t Size, class Key>
__device__ void sort_own(Key (&keys)[Size]) {
    constexpr int size = static_cast<int>(Size);
#pragma unroll
    for (int run = 1; run < size; run *= 2) {
#pragma unroll
        for (int distance = run; distance > 0; distance /= 2) {
#pragma unroll
            for (int i = 0; i < size; ++i) {
                const int from = distance % run; // 0 in a run's first step
                const int j = i + distance;
                const bool lower = i >= from && (i - from) / distance % 2 == 0;
                if (lower && j < size && i / (2 * run) == j / (2 * run)) {
                    const Key a = keys[i];
                    const Key b = keys[j];
                    keys[i] = a < b ? a : b;
                    keys[j] = a < b ? b : a;
                }
            }
        }
    }
}

} // namespace sluice::ragged::detail
