// Sums before each row, of lengths that only the device knows: offsets, and places of what is kept.
#pragma once

#include <cstdint>

#include <cub/block/block_load.cuh>
#include <cub/block/block_reduce.cuh>
#include <cub/block/block_scan.cuh>
#include <cub/block/block_store.cuh>

#include <sluice/ragged/detail/launch.cuh>
#include <sluice/ragged/detail/load_balancing_search.cuh>
#include <sluice/ragged/detail/reshaping.hpp>

namespace sluice::ragged::detail {

struct Larger {
    __device__ std::int64_t operator()(std::int64_t a, std::int64_t b) const { return larger(a, b); }
};

/// Rows one by one,
template <class Lengths>
struct RowItems {
    Lengths lengths;
    std::int64_t most;

    __device__ std::int64_t count() const { return smaller(lengths.rows(), most); }
    __device__ Running at(std::int64_t row) const {
        const std::int64_t length = lengths.length(row);
        return {length, length};
    }
};
/// or tiles of rows.
struct TileItems {
    const Running* tiles;
    std::int64_t number;

    __device__ std::int64_t count() const { return number; }
    __device__ Running at(std::int64_t tile) const { return tiles[tile]; }
};

/// `starts[i]` = the sum of the items before i, for `places` of them; items from `items.count()` on are 0.
/// Then `settle(sum of all, longest)`: where it says that there is no result, all places become 0. `items`
/// may read `starts` itself, for an item is read before its place is written, by one thread.
template <class Items, class Finish>
__global__ void __launch_bounds__(scan_threads)
    scan_in_one_block_kernel(Items items, std::int64_t* starts, std::int64_t places, Finish settle) {
    using Scan = cub::BlockScan<std::int64_t, scan_threads, cub::BLOCK_SCAN_WARP_SCANS>;
    using Reduce = cub::BlockReduce<std::int64_t, scan_threads>;
    __shared__ union {
        typename Scan::TempStorage scan;
        typename Reduce::TempStorage reduce;
    } shared;
    __shared__ bool kept;

    const std::int64_t count = items.count();
    std::int64_t before = 0;
    std::int64_t longest = 0;
    for (std::int64_t first = 0; first < places; first += scan_threads * scan_items) {
        const std::int64_t mine = first + threadIdx.x * scan_items;
        std::int64_t sums[scan_items];
#pragma unroll
        for (int k = 0; k < scan_items; ++k) {
            const Running item = mine + k < count ? items.at(mine + k) : Running{0, 0};
            sums[k] = item.sum;
            longest = larger(longest, item.longest);
        }
        std::int64_t all = 0;
        Scan(shared.scan).ExclusiveSum(sums, sums, all);
#pragma unroll
        for (int k = 0; k < scan_items; ++k) {
            if (mine + k < places)
                starts[mine + k] = before + sums[k];
        }
        before += all;
        __syncthreads(); // the next round, and the reduction, use the same memory
    }
    longest = Reduce(shared.reduce).Reduce(longest, Larger{});
    if (threadIdx.x == 0)
        kept = settle(before, longest);
    __syncthreads();
    if (!kept) {
        for (std::int64_t i = threadIdx.x; i < places; i += scan_threads)
            starts[i] = 0;
    }
}

/// The first of three launches: writes each item into its place, and sums up each tile.
template <class Items>
__global__ void __launch_bounds__(tile_threads)
    sum_tiles_kernel(Items items, std::int64_t* starts, std::int64_t places, Running* tiles) {
    using Reduce = cub::BlockReduce<std::int64_t, tile_threads>;
    __shared__ typename Reduce::TempStorage for_sum;
    __shared__ typename Reduce::TempStorage for_longest;

    const std::int64_t count = items.count();
    const std::int64_t first = blockIdx.x * tile_places + threadIdx.x;
    Running mine{0, 0};
#pragma unroll
    for (int k = 0; k < tile_items; ++k) {
        const std::int64_t i = first + k * tile_threads;
        if (i >= places)
            break;
        const Running item = i < count ? items.at(i) : Running{0, 0};
        starts[i] = item.sum;
        mine.sum += item.sum;
        mine.longest = larger(mine.longest, item.longest);
    }
    const std::int64_t sum = Reduce(for_sum).Sum(mine.sum);
    const std::int64_t longest = Reduce(for_longest).Reduce(mine.longest, Larger{});
    if (threadIdx.x == 0)
        tiles[blockIdx.x] = {sum, longest};
}

/// The last of three: from the items in their places, and the sums before each tile, to the sums before each
/// item.
template <class Finish>
__global__ void __launch_bounds__(tile_threads)
    scan_tiles_kernel(std::int64_t* starts, std::int64_t places, const std::int64_t* before_tile,
                      Finish settle) {
    using Load = cub::BlockLoad<std::int64_t, tile_threads, tile_items, cub::BLOCK_LOAD_WARP_TRANSPOSE>;
    using Scan = cub::BlockScan<std::int64_t, tile_threads, cub::BLOCK_SCAN_WARP_SCANS>;
    using Store = cub::BlockStore<std::int64_t, tile_threads, tile_items, cub::BLOCK_STORE_WARP_TRANSPOSE>;
    __shared__ union {
        typename Load::TempStorage load;
        typename Scan::TempStorage scan;
        typename Store::TempStorage store;
    } shared;

    const bool kept = settle.kept();
    std::int64_t* const mine = starts + blockIdx.x * tile_places;
    const int valid = static_cast<int>(smaller(places - blockIdx.x * tile_places, tile_places));
    std::int64_t sums[tile_items];
    Load(shared.load).Load(mine, sums, valid, std::int64_t{0});
    __syncthreads();
    Scan(shared.scan).ExclusiveSum(sums, sums);
    __syncthreads();
    const std::int64_t before = before_tile[blockIdx.x];
#pragma unroll
    for (std::int64_t& sum : sums)
        sum = kept ? before + sum : 0;
    Store(shared.store).Store(mine, sums, valid);
}

/// Enqueues the scan of `most` rows into `most` + 1 places.
template <Backend B, class Lengths, class Finish>
void scan(BasicStreamRef<B> stream, std::int64_t* starts, std::int64_t most, const Lengths& lengths,
          const Finish& settle, RaggedScratch<B>& scratch) {
    const RowItems<Lengths> rows{lengths, most};
    const std::int64_t places = most + 1;
    if (places <= one_block_places) {
        detail::launch(scan_in_one_block_kernel<RowItems<Lengths>, Finish>, 1, scan_threads, stream.get(),
                       rows, starts, places, settle);
        return;
    }
    const auto [number, tiles, before_tile] = ScanMemory::take(scratch, places);
    const auto blocks = static_cast<unsigned>(number);
    detail::launch(sum_tiles_kernel<RowItems<Lengths>>, blocks, tile_threads, stream.get(), rows, starts,
                   places, tiles);
    detail::launch(scan_in_one_block_kernel<TileItems, Finish>, 1, scan_threads, stream.get(),
                   TileItems{tiles, number}, before_tile, number, settle);
    detail::launch(scan_tiles_kernel<Finish>, blocks, tile_threads, stream.get(), starts, places, before_tile,
                   settle);
}

/// Which values are kept, 32 to a group.
template <class Shape>
struct KeptGroups {
    Shape shape;
    const std::uint8_t* keep;
    std::int64_t number; // of groups that there is room for
    bool aligned;        // `keep`, to 16 bytes

    /// For the scan over groups.
    __device__ std::int64_t rows() const { return number; }
    __device__ std::int64_t length(std::int64_t group) const { return __popc(bits(group)); }

    /// Bit b says whether value 32 * group + b is kept.
    __device__ unsigned bits(std::int64_t group) const {
        const std::int64_t begin = group * warp_size;
        const std::int64_t left = shape.size() - begin;
        unsigned result = 0;
        if (aligned && left >= warp_size) {
            const auto* const quads = reinterpret_cast<const uint4*>(keep + begin);
            const uint4 low = quads[0];
            const uint4 high = quads[1];
            result = bits_of(low.x) | bits_of(low.y) << 4 | bits_of(low.z) << 8 | bits_of(low.w) << 12 |
                     bits_of(high.x) << 16 | bits_of(high.y) << 20 | bits_of(high.z) << 24 |
                     bits_of(high.w) << 28;
        } else {
            for (int b = 0; b < warp_size && b < left; ++b)
                result |= (keep[begin + b] != 0 ? 1u : 0u) << b;
        }
        return result;
    }

private:
    /// Of four bytes, which are not 0.
    __device__ static unsigned bits_of(unsigned bytes) {
        // The product brings bits 0, 8, 16 and 24 to 24 … 27; its other terms all meet different places
        // below.
        return (__vcmpne4(bytes, 0) & 0x01010101u) * 0x01020408u >> 24 & 0xfu;
    }
};

/// How many values each row keeps: the difference of two places.
template <class Shape>
struct KeptRows {
    KeptGroups<Shape> groups;
    const std::int64_t* starts; // of groups

    SLUICE_HOST_DEVICE std::int64_t limit() const { return unlimited; }
    SLUICE_HOST_DEVICE std::int64_t rows() const { return groups.shape.rows(); }
    SLUICE_HOST_DEVICE Refused refused() const { return groups.shape.refused(); }
    __device__ std::int64_t length(std::int64_t row) const {
        return place(groups.shape.offset(row + 1)) - place(groups.shape.offset(row));
    }

private:
    /// How many of the values before value i are kept; i may be the end.
    __device__ std::int64_t place(std::int64_t i) const {
        const std::int64_t group = i / warp_size;
        const int within = static_cast<int>(i % warp_size);
        if (within == 0)
            return starts[group];
        return starts[group] + __popc(groups.bits(group) & ((1u << within) - 1));
    }
};

/// Moves the values that are kept to their places.
template <bool Wide, class T, class Shape>
__global__ void __launch_bounds__(walk_threads)
    fill_kept_kernel(RaggedTarget<T> out, const T* values, Shape shape, const std::uint8_t* keep,
                     const std::int64_t* starts) {
    if (out.counts->refused != 0)
        return;
    const Share share = share_of_warp(shape.size());
    const int lane = static_cast<int>(threadIdx.x) % warp_size;
    for (std::int64_t first = share.first; first < share.last; first += warp_size * walk_groups) {
        std::int64_t to[walk_groups];
#pragma unroll
        for (int group = 0; group < walk_groups; ++group) {
            const std::int64_t i = first + group * warp_size + lane;
            const bool kept = i < share.last && keep[i] != 0;
            const unsigned bits = __ballot_sync(whole_warp, kept);
            to[group] = -1;
            if (kept)
                to[group] = starts[i / warp_size] + __popc(bits & ((1u << lane) - 1));
        }
        alignas(Wide ? sizeof(T) : alignof(T)) unsigned char moved[walk_groups][sizeof(T)];
#pragma unroll
        for (int group = 0; group < walk_groups; ++group) {
            if (to[group] >= 0)
                move_value<Wide>(reinterpret_cast<T*>(moved[group]),
                                 values + first + group * warp_size + lane);
        }
#pragma unroll
        for (int group = 0; group < walk_groups; ++group) {
            if (to[group] >= 0)
                move_value<Wide>(out.values + to[group], reinterpret_cast<const T*>(moved[group]));
        }
    }
}

} // namespace sluice::ragged::detail
