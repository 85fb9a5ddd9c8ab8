/// \file
/// How a ragged batch lies in its one block of memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>

#include <sluice/backend/error.hpp>
#include <sluice/ragged/view.hpp>

namespace sluice {

/// What a ragged batch has room for. Also the key of a `GraphCapture` whose work was captured for that room.
struct RaggedCapacity {
    std::int64_t rows = 0;
    std::int64_t values = 0;

    friend constexpr bool operator==(const RaggedCapacity&, const RaggedCapacity&) noexcept = default;
};

/// A ragged batch's block: counts, then `rows` + 1 offsets, then values, each at a multiple of `alignment`
/// bytes. The same on the host and on the device, so that one copy brings all of it over.
struct RaggedLayout {
    static constexpr std::size_t alignment = 256;

    std::size_t offsets_at = 0; ///< bytes before the offsets
    std::size_t values_at = 0;  ///< bytes before the values
    std::size_t bytes = 0;      ///< of the whole block

    /// For values of `value_bytes` bytes each. Throws `Error` for a capacity below 0, or one that no memory
    /// could hold.
    static RaggedLayout of(RaggedCapacity capacity, std::size_t value_bytes);
};

// ---------------------------------------------------------------------------------------------------------------

inline RaggedLayout RaggedLayout::of(RaggedCapacity capacity, std::size_t value_bytes) {
    if (capacity.rows < 0 || capacity.values < 0) {
        throw Error("a ragged batch cannot have room for " + std::to_string(capacity.rows) + " rows and " +
                    std::to_string(capacity.values) + " values; expected 0 or more of each");
    }
    constexpr std::size_t most = (std::numeric_limits<std::size_t>::max)() / 4; // sums of two stay exact
    const auto rows = static_cast<std::size_t>(capacity.rows);
    const auto values = static_cast<std::size_t>(capacity.values);
    if (rows >= most / sizeof(std::int64_t) || (value_bytes > 0 && values > most / value_bytes)) {
        throw Error("a ragged batch of " + std::to_string(rows) + " rows and " + std::to_string(values) +
                    " values of " + std::to_string(value_bytes) + " bytes each is larger than any memory");
    }
    const auto aligned = [](std::size_t end) { return (end + alignment - 1) / alignment * alignment; };
    RaggedLayout layout;
    layout.offsets_at = aligned(sizeof(RaggedCounts));
    layout.values_at = aligned(layout.offsets_at + (rows + 1) * sizeof(std::int64_t));
    layout.bytes = layout.values_at + values * value_bytes;
    return layout;
}

} // namespace sluice

/// For unordered containers.
template <>
struct std::hash<sluice::RaggedCapacity> {
    std::size_t operator()(const sluice::RaggedCapacity& capacity) const noexcept {
        const auto rows = static_cast<std::uint64_t>(capacity.rows);
        const auto values = static_cast<std::uint64_t>(capacity.values);
        std::uint64_t mixed = (rows * 0x9e3779b97f4a7c15u) ^ (values + (rows << 6) + (rows >> 2));
        mixed = (mixed ^ (mixed >> 31)) * 0xbf58476d1ce4e5b9u;
        return static_cast<std::size_t>(mixed ^ (mixed >> 29));
    }
};
