// Copies as values: of rows that do not lie one behind the other, and to a destination that is found when the copy runs.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

namespace sluice::detail {

/// Copies `rows` rows of `bytes` bytes, of which each begins `to_pitch` bytes behind the one before, or `from_pitch`.
///
/// A backend that has it: `copy_rows(rows_copy, kind, stream)`.
struct RowsCopy {
    std::byte* to;
    std::size_t to_pitch;
    const std::byte* from;
    std::size_t from_pitch;
    std::size_t bytes;
    std::size_t rows;

    /// On the host.
    void operator()() const noexcept {
        for (std::size_t row = 0; row < rows; ++row)
            std::memcpy(to + row * to_pitch, from + row * from_pitch, bytes);
    }
};

/// Copies `bytes` from `from`, and the number at `length` unless that is null, to the next of `depth` places, a power of two, in
/// turns. `row` is pinned memory: a counter of copies, and from `header` on the places, `stride` bytes each: first the number, and
/// from `header` on the values. So a graph may be launched again before the results of its last launches have been taken.
///
/// A backend that has it: `bool has_ring_copies(bool load)`, of the current device; within a capture `load` must be false. And
/// `copy_to_ring(stream, ring_copy)`, where it has them. One whose own copies of a few bytes take long also has
/// `bool copy_to_place(stream, ring_copy)`, for work that is not captured: `row` is the only place then, without a counter, and
/// `depth` 0. It gives false where an ordinary copy has to do it.
struct RingCopy {
    static constexpr std::size_t header = 64;

    std::byte* row;
    const void* from;
    const std::int64_t* length;
    std::uint32_t depth;
    std::uint32_t stride;
    std::uint32_t bytes;
    std::uint32_t none = 0; // No padding: the Host backend compares captured callables.

    std::byte* place(std::uint32_t count) const noexcept {
        return row + header + std::size_t{count % depth} * stride;
    }
    /// On the host.
    void operator()() const noexcept {
        auto* const counter = reinterpret_cast<std::uint32_t*>(row);
        std::byte* const to = place(*counter);
        std::memcpy(to + header, from, bytes);
        if (length != nullptr)
            std::memcpy(to, length, sizeof(*length));
        ++*counter;
    }
};

} // namespace sluice::detail
