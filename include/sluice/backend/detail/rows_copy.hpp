// A copy of rows that do not lie one behind the other.
#pragma once

#include <cstddef>
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

} // namespace sluice::detail
