// Bodies of layout.hpp.
#pragma once

#include <limits>
#include <string>

#include <sluice/backend/error.hpp>
#include <sluice/ragged/view.hpp>

namespace sluice {

namespace detail {

inline std::string ragged_amount(RaggedCapacity amount) {
    return counted(amount.rows, "row") + " and " + counted(amount.values, "value");
}

} // namespace detail

inline RaggedLayout RaggedLayout::of(RaggedCapacity capacity, std::size_t value_bytes) {
    if (capacity.rows < 0 || capacity.values < 0) {
        throw Error("a ragged batch cannot have room for " + detail::ragged_amount(capacity) +
                    "; expected 0 or more of each");
    }
    constexpr std::size_t most = (std::numeric_limits<std::size_t>::max)() / 4; // sums of two stay exact
    const auto rows = static_cast<std::size_t>(capacity.rows);
    const auto values = static_cast<std::size_t>(capacity.values);
    if (rows >= most / sizeof(std::int64_t) || (value_bytes > 0 && values > most / value_bytes)) {
        throw Error("a ragged batch of " + detail::ragged_amount(capacity) + " of " +
                    detail::counted(value_bytes, "byte") + " each is larger than any memory");
    }
    const auto aligned = [](std::size_t end) { return (end + alignment - 1) / alignment * alignment; };
    RaggedLayout layout;
    layout.offsets_at = aligned(sizeof(RaggedCounts));
    layout.values_at = aligned(layout.offsets_at + (rows + 1) * sizeof(std::int64_t));
    layout.bytes = layout.values_at + values * value_bytes;
    return layout;
}

} // namespace sluice
