/// \file
/// The temporary memory of operations that make rows out of other rows. Both backends take it, though the Host one has
/// no use for it, so that a workspace which is too small is refused by both.
#pragma once

#include <cstdint>

#include <sluice/ragged/workspace.hpp>

namespace sluice::ragged::detail {

/// What one pass over some rows finds.
struct Running {
    std::int64_t sum;
    std::int64_t longest;
};

inline constexpr int scan_threads = 1024; // of the one block
inline constexpr int scan_items = 4;      // a thread's, at a time
/// Up to so many places one block is quicker than three launches.
inline constexpr std::int64_t one_block_places = 4 * scan_threads * scan_items;

inline constexpr int tile_threads = 256;
inline constexpr int tile_items = 8;
inline constexpr std::int64_t tile_places = tile_threads * tile_items;

/// For the three launches of a scan over `places` places; none where one block does it.
struct ScanMemory {
    std::int64_t number = 0; // of tiles
    Running* tiles = nullptr;
    std::int64_t* before_tile = nullptr;

    template <Backend B>
    static ScanMemory take(RaggedScratch<B>& scratch, std::int64_t places) {
        ScanMemory memory;
        if (places <= one_block_places)
            return memory;
        memory.number = (places + tile_places - 1) / tile_places;
        memory.tiles = scratch.template take<Running>(memory.number);
        memory.before_tile = scratch.template take<std::int64_t>(memory.number);
        return memory;
    }
};

/// Values whose places are found together when some are kept.
inline constexpr std::int64_t kept_together = 32;

/// The sums before each group of `kept_together` values, and their end.
struct KeptMemory {
    std::int64_t number; // of groups
    std::int64_t* starts;

    template <Backend B>
    static KeptMemory take(RaggedScratch<B>& scratch, std::int64_t value_capacity) {
        const std::int64_t number = (value_capacity + kept_together - 1) / kept_together;
        return {number, scratch.template take<std::int64_t>(number + 1)};
    }
};

/// Keys and numbers of rows, before and after they are sorted.
struct OrderMemory {
    std::uint64_t* unsorted;
    std::uint64_t* sorted;
    std::int64_t* rows;

    template <Backend B>
    static OrderMemory take(RaggedScratch<B>& scratch, std::int64_t most) {
        OrderMemory memory;
        memory.unsorted = scratch.template take<std::uint64_t>(most);
        memory.sorted = scratch.template take<std::uint64_t>(most);
        memory.rows = scratch.template take<std::int64_t>(most);
        return memory;
    }
};

} // namespace sluice::ragged::detail
