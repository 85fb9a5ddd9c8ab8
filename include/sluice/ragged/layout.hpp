/// \file
/// How a ragged batch lies in its one block of memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string> // for std::hash

namespace sluice {

/// What a ragged batch has room for. Also the key of a `GraphCapture` whose work was captured for that room.
struct RaggedCapacity {
    std::int64_t rows = 0;   ///< Rows that there is room for.
    std::int64_t values = 0; ///< Values of all rows together that there is room for.

    /// Whether both have room for as much.
    friend constexpr bool operator==(const RaggedCapacity&, const RaggedCapacity&) noexcept = default;
};

/// A ragged batch's block: counts, then `rows` + 1 offsets, then values, each at a multiple of `alignment`
/// bytes. The same on the host and on the device, so that one copy brings all of it over.
struct RaggedLayout {
    static constexpr std::size_t alignment = 256; ///< Bytes.

    std::size_t offsets_at = 0; ///< Bytes before the offsets.
    std::size_t values_at = 0;  ///< Bytes before the values.
    std::size_t bytes = 0;      ///< Bytes of the whole block.

    /// For values of `value_bytes` bytes each. Throws `Error` for a capacity below 0, or one that no memory
    /// could hold.
    static RaggedLayout of(RaggedCapacity capacity, std::size_t value_bytes);
};

} // namespace sluice

/// \cond
// For unordered containers.
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
/// \endcond

#include <sluice/ragged/detail/layout.inl>
