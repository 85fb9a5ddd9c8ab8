// Sorts rows that fit into shared memory; see sort.cuh.
#pragma once

#include <cstddef>
#include <cstring>
#include <cub/block/block_merge_sort.cuh>
#include <cub/warp/warp_merge_sort.cuh>
#include <type_traits>

#include <sluice/ragged/detail/long_rows.cuh>
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

/// The parts of rows that do not fit, a chunk of `sort_capacity` each, and memory to merge them in: `list.values` holds as
/// many values as the rows. Null where no row can be that long.
template <class T>
struct LongRows {
    LongParts<T> list;
    std::int64_t* positions = nullptr;
};

/// A key and where its value was, compared in this order.
struct KeyAndPosition {
    std::uint64_t key;
    unsigned position;
    friend __device__ bool operator<(const KeyAndPosition& a, const KeyAndPosition& b) {
        return a.key < b.key || (a.key == b.key && a.position < b.position);
    }
};
template <class T>
using Exchanged = std::conditional_t<sizeof(T) <= 4, std::uint64_t, KeyAndPosition>;

template <class T>
__device__ Exchanged<T> exchanged(typename SortKey<T>::Key key, unsigned position) {
    if constexpr (sizeof(T) <= 4) {
        return static_cast<std::uint64_t>(key) << 32 | position;
    } else {
        return {key, position};
    }
}
__device__ inline unsigned position_of(std::uint64_t value) { return static_cast<unsigned>(value); }
__device__ inline unsigned position_of(const KeyAndPosition& value) { return value.position; }

/// One element a lane, in order afterwards.
template <int Lanes, class E>
__device__ E sort_lanes(E mine) {
    const int lane = static_cast<int>(threadIdx.x) % Lanes;
#pragma unroll
    for (int size = 2; size <= Lanes; size *= 2) {
#pragma unroll
        for (int distance = size / 2; distance > 0; distance /= 2) {
            const E other = from_lane_xor<Lanes>(mine, distance);
            const bool ascending = (lane & size) == 0;
            const bool lower = (lane & distance) == 0;
            const bool take = lower == ascending ? other < mine : mine < other;
            if (take)
                mine = other;
        }
    }
    return mine;
}

template <class T>
struct SortLess {
    SortKey<T> key;
    __device__ bool operator()(T a, T b) const { return key(a) < key(b); }
};
using Within = std::uint16_t; ///< a position within what a block sorts

template <class T, int Items>
using BlockSort = cub::BlockMergeSort<T, block_threads, Items, Within>;
template <class T>
using WarpSort = cub::WarpMergeSort<T, 8, 32, Within>;

template <class T>
union SortMemory {
    typename BlockSort<T, sort_capacity<T> / block_threads>::TempStorage many;
    typename BlockSort<T, 4>::TempStorage few;
    typename WarpSort<T>::TempStorage warp[block_warps];
};

/// Sorts `length` values of shared memory, value i of which is at `spread(begin + i)`, by a block or a warp whose
/// `thread`s have `Items` each, and hands `(i, position before)` of each to `note`.
template <int Items, class T, class Sort, class Note>
__device__ void sort_staged(const Sort& sort, T* staged, int begin, int length, int thread,
                            const Note& note) {
    T values[Items];
    Within positions[Items];
#pragma unroll
    for (int k = 0; k < Items; ++k) {
        const int i = thread * Items + k;
        values[k] = i < length ? staged[spread(begin + i)] : sort.less.key.last();
        positions[k] = static_cast<Within>(i);
    }
    sort.barrier();
    sort(values, positions, length);
#pragma unroll
    for (int k = 0; k < Items; ++k) {
        const int i = thread * Items + k;
        if (i < length) {
            staged[spread(begin + i)] = values[k];
            note(i, static_cast<int>(positions[k]));
        }
    }
    sort.barrier();
}

template <class T, int Items>
struct SortByBlock {
    typename BlockSort<T, Items>::TempStorage& memory;
    SortLess<T> less;
    __device__ void barrier() const { __syncthreads(); }
    template <class Values, class Positions>
    __device__ void operator()(Values& values, Positions& positions, int length) const {
        BlockSort<T, Items>(memory).StableSort(values, positions, less, length, less.key.last());
    }
};
template <class T>
struct SortByWarp {
    typename WarpSort<T>::TempStorage& memory;
    SortLess<T> less;
    __device__ void barrier() const { __syncwarp(); }
    template <class Values, class Positions>
    __device__ void operator()(Values& values, Positions& positions, int length) const {
        WarpSort<T>(memory).StableSort(values, positions, less, length, less.key.last());
    }
};

template <bool Positions, class T>
struct SortRows {
    const SortArguments<T>& sort;
    const LongRows<T>& more;
    const TileMemory& memory;
    T* staged;
    SortMemory<T>& sorting;
    unsigned long long& place;

    // Rows of at most `Lanes` values, each in lanes of its own, side by side.
    template <int Lanes>
    __device__ void sort_short(int count, int shortest, std::int64_t begin_of_tile) const {
        const unsigned lane = threadIdx.x % Lanes;
        for_rows_of_tile<Lanes>(memory, count, shortest, Lanes, [&](int, int begin, int length) {
            const bool mine = static_cast<int>(lane) < length;
            const T value = staged[spread(begin + (mine ? static_cast<int>(lane) : 0))];
            const auto key = mine ? sort.key(value) : static_cast<typename SortKey<T>::Key>(~0ull);
            const unsigned from = position_of(sort_lanes<Lanes>(exchanged<T>(key, lane)));
            const T sorted = from_lane<Lanes>(value, static_cast<int>(from));
            __syncwarp(group_mask<Lanes>()); // all have read
            if (mine) {
                staged[spread(begin + static_cast<int>(lane))] = sorted;
                if constexpr (Positions)
                    sort.positions[begin_of_tile + begin + lane] = from;
            }
        });
    }

    // Rows of at most `Most` values, each by one thread, without positions.
    template <int Most>
    __device__ void sort_by_threads(int count, int shortest) const {
        using Key = typename ExactKey<T>::Key;
        const ExactKey<T> exact{static_cast<Key>(sort.key.descending ? ~Key(0) : Key(0))};
        for_rows_of_tile<1>(memory, count, shortest, Most, [&](int, int begin, int length) {
            Key keys[Most];
            bool negative_zero = false;
#pragma unroll
            for (int k = 0; k < Most; ++k) {
                keys[k] = static_cast<Key>(~Key(0)); // last, whatever the values
                if (k < length) {
                    const T value = staged[spread(begin + k)];
                    keys[k] = exact(value);
                    negative_zero = negative_zero || ExactKey<T>::is_negative_zero(value);
                }
            }
            sort_own(keys);
            // Zeros of both signs are equal: theirs are in the order that they came in.
            unsigned signs = 0;
            if (negative_zero) {
                unsigned zeros = 0;
                for (int k = 0; k < length; ++k) {
                    const T value = staged[spread(begin + k)];
                    if (value == T(0))
                        signs |= (ExactKey<T>::is_negative_zero(value) ? 1u : 0u) << zeros++;
                }
            }
#pragma unroll
            for (int k = 0; k < Most; ++k) {
                if (k < length) {
                    T value = exact.value(keys[k]);
                    if constexpr (std::is_floating_point_v<T>) {
                        if (negative_zero && value == T(0)) {
                            value = (signs & 1u) != 0 ? -T(0) : T(0);
                            signs >>= 1;
                        }
                    }
                    staged[spread(begin + k)] = value;
                }
            }
        });
    }

    template <int Items>
    __device__ void sort_long(typename BlockSort<T, Items>::TempStorage& by_block, int count, int shortest,
                              int longest, std::int64_t begin_of_tile) const {
        for (int row = 0; row < count; ++row) {
            const int begin = static_cast<int>(memory.offsets[row] - memory.offsets[0]);
            const int length = static_cast<int>(memory.offsets[row + 1] - memory.offsets[0]) - begin;
            if (length >= shortest && length <= longest) {
                sort_staged<Items>(SortByBlock<T, Items>{by_block, {sort.key}}, staged, begin, length,
                                   static_cast<int>(threadIdx.x), note(begin_of_tile + begin));
            }
        }
    }

    __device__ auto note(std::int64_t begin) const {
        return [this, begin](int i, int position) {
            if constexpr (Positions)
                sort.positions[begin + i] = position;
        };
    }

    __device__ void tile(std::int64_t, int count, std::int64_t begin_of_tile, int size) const {
        constexpr int items = sort_capacity<T> / block_threads;
        stage(staged, sort.rows.values() + begin_of_tile, size);
        __syncthreads();
        if constexpr (Positions) {
            sort_short<8>(count, 1, begin_of_tile);
            if (memory.has(9, 16))
                sort_short<16>(count, 9, begin_of_tile);
            if (memory.has(17, 32))
                sort_short<32>(count, 17, begin_of_tile);
        } else {
            if (memory.has(9, 16)) {
                sort_by_threads<16>(count, 2);
            } else {
                sort_by_threads<8>(count, 2);
            }
            if (memory.has(17, 32)) {
                if constexpr (sizeof(T) <= 4) {
                    sort_by_threads<32>(count, 17);
                } else { // a thread has not so many registers
                    sort_short<32>(count, 17, begin_of_tile);
                }
            }
        }
        if (memory.has(33, 256)) {
            const int warp = static_cast<int>(threadIdx.x) / 32;
            for_rows_of_tile<32>(memory, count, 33, 256, [&](int, int begin, int length) {
                sort_staged<8>(SortByWarp<T>{sorting.warp[warp], {sort.key}}, staged, begin, length,
                               static_cast<int>(threadIdx.x % 32), note(begin_of_tile + begin));
            });
        }
        if (memory.has(257, 1024))
            sort_long<4>(sorting.few, count, 257, 1024, begin_of_tile);
        if (memory.has(1025, sort_capacity<T>))
            sort_long<items>(sorting.many, count, 1025, sort_capacity<T>, begin_of_tile);
        __syncthreads();
        unstage(sort.out + begin_of_tile, staged, size);
    }

    // Left to the launches that follow.
    __device__ void long_row(std::int64_t row, std::int64_t begin, std::int64_t length) const {
        note_long_row(more.list, row, begin, length, sort_capacity<T>, place);
    }
};

template <bool Positions, class T>
__global__ void __launch_bounds__(block_threads, 4)
    sort_tiles_kernel(SortArguments<T> sort, LongRows<T> more) {
    __shared__ TileMemory memory;
    __shared__ T staged[spread_size<sort_capacity<T>>];
    __shared__ SortMemory<T> sorting;
    __shared__ unsigned long long place;
    SortRows<Positions, T> work{sort, more, memory, staged, sorting, place};
    for_row_tiles<sort_capacity<T>>(sort.rows, memory, work);
}

} // namespace sluice::ragged::detail
