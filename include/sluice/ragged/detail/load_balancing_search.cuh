// A warp's walk over values that lie one behind the other, and over the rows that they are in. The work is
// shared out by values, so that it is balanced however the rows are: a million short ones, or one with
// everything.
#pragma once

#include <cstdint>

#include <sluice/ragged/detail/reshaping.hpp>

namespace sluice::ragged::detail {

inline constexpr int warp_size = 32;
inline constexpr unsigned whole_warp = 0xffffffffu;

/// The row that value i is in, with all lanes looking at once: 32 places a step instead of one. `i` is the
/// same in all lanes, and from 0 to `offsets[rows]` - 1.
__device__ inline std::int64_t row_of_in_warp(const std::int64_t* offsets, std::int64_t rows,
                                              std::int64_t i) {
    const int lane = static_cast<int>(threadIdx.x) % warp_size;
    std::int64_t first = 0;   // begins at or before the value,
    std::int64_t last = rows; // ends after it
    while (last - first > 1) {
        const std::int64_t step = (last - first + warp_size - 1) / warp_size;
        const std::int64_t probe = first + (lane + 1) * step;
        const bool before = probe < last && offsets[probe] <= i;
        first += step * __popc(__ballot_sync(whole_warp, before));
        last = smaller(first + step, last);
    }
    return first;
}

/// Finds the rows of 32 neighbouring values at a time, forwards.
class LoadBalancingSearch {
public:
    struct Position {
        std::int64_t row;
        std::int64_t begin; // of the row
    };

    /// Begins at value `first`, the same in all lanes.
    __device__ LoadBalancingSearch(const std::int64_t* offsets, std::int64_t rows, std::int64_t first)
        : offsets_(offsets), rows_(rows), lane_(static_cast<int>(threadIdx.x) % warp_size) {
        look_at(row_of_in_warp(offsets, rows, first));
    }

    /// The row of value `first` + lane, in the lanes where that is below `last`. `first` is the same in all
    /// lanes, and not smaller than before; so is `last`.
    __device__ Position find(std::int64_t first, std::int64_t last) {
        Position place{0, 0};
        bool pending = first + lane_ < last;
        int misses = 0;
        for (;;) {
            // Ends relative to the first value, in 32 bits: how many of them are at or before the lane's
            // value?
            const int end = static_cast<int>(larger(smaller(end_ - first, 2 * warp_size), 0));
            int ended = 0;
#pragma unroll
            for (int step = warp_size / 2; step > 0; step /= 2) {
                if (__shfl_sync(whole_warp, end, ended + step - 1) <= lane_)
                    ended += step;
            }
            // Of 0 to 31 so far, and the last one's is still to be seen.
            const bool holds = __shfl_sync(whole_warp, end, ended) > lane_; // all lanes come here
            const bool found = pending && holds;
            const std::int64_t former_end =
                __shfl_sync(whole_warp, end_, (ended + warp_size - 1) % warp_size);
            if (found) {
                place = {base_ + ended, ended > 0 ? former_end : begin_};
                pending = false;
            }
            const unsigned left = __ballot_sync(whole_warp, pending);
            if (left == 0)
                return place;
            misses = __any_sync(whole_warp, found) ? 0 : misses + 1;
            if (misses < 2) {
                look_at(base_ + warp_size);
            } else {
                // Nothing but empty rows: there may be very many of them.
                look_at(row_of_in_warp(offsets_, rows_, first + __ffs(static_cast<int>(left)) - 1));
            }
        }
    }

private:
    /// Reads the beginning of row `base`, and the ends of 32 rows from there on.
    __device__ void look_at(std::int64_t base) {
        base_ = base;
        begin_ = offsets_[base];
        end_ = offsets_[smaller(base + 1 + lane_, rows_)];
    }

    const std::int64_t* offsets_;
    std::int64_t rows_;
    int lane_;
    std::int64_t base_ = 0;
    std::int64_t begin_ = 0;
    std::int64_t end_ = 0; // of row base + lane
};

inline constexpr int walk_threads = 256;
/// Groups of 32 values that a warp has on the way at a time.
inline constexpr int walk_groups = 4;
/// A few times what a large device runs at a time: each takes an equal share, and the last ones to start
/// should not be late by much.
inline constexpr std::int64_t most_walk_blocks = 2640;

/// Blocks to share out up to `values` values.
inline unsigned walk_blocks(std::int64_t values) {
    constexpr std::int64_t values_a_block = walk_threads * walk_groups;
    return static_cast<unsigned>(
        larger(smaller((values + values_a_block - 1) / values_a_block, most_walk_blocks), 1));
}

/// The values of the calling warp's share.
struct Share {
    std::int64_t first;
    std::int64_t last;
};
__device__ inline Share share_of_warp(std::int64_t values) {
    constexpr std::int64_t at_once = warp_size * walk_groups;
    constexpr int warps_a_block = walk_threads / warp_size;
    const std::int64_t warps = static_cast<std::int64_t>(gridDim.x) * warps_a_block;
    const std::int64_t warp = static_cast<std::int64_t>(blockIdx.x) * warps_a_block + threadIdx.x / warp_size;
    const std::int64_t rounds = (values + at_once * warps - 1) / (at_once * warps);
    const std::int64_t first = warp * rounds * at_once;
    return {first, smaller(first + rounds * at_once, values)};
}

/// `call(row, i)` for every value.
template <class F>
__global__ void __launch_bounds__(walk_threads) visit_values_kernel(NumberedRows rows, F call) {
    const Share share = share_of_warp(rows.size());
    if (share.first >= share.last)
        return;
    const int lane = static_cast<int>(threadIdx.x) % warp_size;
    LoadBalancingSearch walk(rows.offsets, *rows.rows, share.first);
    for (std::int64_t first = share.first; first < share.last; first += warp_size) {
        const LoadBalancingSearch::Position place = walk.find(first, share.last);
        if (first + lane < share.last)
            call(place.row, first + lane);
    }
}

/// A value as it is moved: `Wide` says that it lies at a multiple of its size, though its type does not ask
/// for that.
template <bool Wide, class T>
__device__ void move_value(T* to, const T* from) {
    constexpr std::size_t alignment = Wide ? sizeof(T) : alignof(T);
    void* const there = to;
    const void* const here = from;
    std::memcpy(__builtin_assume_aligned(there, alignment), __builtin_assume_aligned(here, alignment),
                sizeof(T));
}

/// Whether `Wide` would make a difference.
template <class T>
inline constexpr bool may_be_wide = alignof(T) < sizeof(T) &&
                                    (sizeof(T) == 2 || sizeof(T) == 4 || sizeof(T) == 8 || sizeof(T) == 16);

/// The values of the rows whose offsets are made already.
template <bool Wide, class T, class Plan>
__global__ void __launch_bounds__(walk_threads) fill_planned_rows_kernel(RaggedTarget<T> out, Plan plan) {
    const Share share = share_of_warp(out.counts->values);
    if (share.first >= share.last)
        return;
    const int lane = static_cast<int>(threadIdx.x) % warp_size;
    LoadBalancingSearch walk(out.offsets, out.counts->rows, share.first);
    for (std::int64_t first = share.first; first < share.last; first += warp_size * walk_groups) {
        // All addresses, then all values, so that the reads are on the way together.
        const T* from[walk_groups];
#pragma unroll
        for (int group = 0; group < walk_groups; ++group) {
            const std::int64_t begin = first + group * warp_size;
            from[group] = nullptr;
            if (begin < share.last) { // the same in all lanes
                const LoadBalancingSearch::Position place = walk.find(begin, share.last);
                if (begin + lane < share.last)
                    from[group] = plan.source(place.row, begin + lane - place.begin);
            }
        }
        alignas(Wide ? sizeof(T) : alignof(T)) unsigned char values[walk_groups][sizeof(T)];
#pragma unroll
        for (int group = 0; group < walk_groups; ++group) {
            if (from[group] != nullptr)
                move_value<Wide>(reinterpret_cast<T*>(values[group]), from[group]);
        }
#pragma unroll
        for (int group = 0; group < walk_groups; ++group) {
            if (from[group] != nullptr)
                move_value<Wide>(out.values + first + group * warp_size + lane,
                                 reinterpret_cast<const T*>(values[group]));
        }
    }
}

} // namespace sluice::ragged::detail
