// Random rows of uneven length, and what a plain loop makes of them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include <sluice/ragged/layout.hpp>
#include <sluice/random/philox.hpp>

namespace sluice::test {

template <class T>
using Lists = std::vector<std::vector<T>>;

template <class T>
std::vector<T> joined(const Lists<T>& rows) {
    std::vector<T> values;
    for (const std::vector<T>& row : rows)
        values.insert(values.end(), row.begin(), row.end());
    return values;
}

template <class T>
std::vector<std::int64_t> lengths_of(const Lists<T>& rows) {
    std::vector<std::int64_t> lengths;
    for (const std::vector<T>& row : rows)
        lengths.push_back(static_cast<std::int64_t>(row.size()));
    return lengths;
}

template <class T>
std::vector<std::int64_t> offsets_of(const Lists<T>& rows) {
    std::vector<std::int64_t> offsets{0};
    for (const std::vector<T>& row : rows)
        offsets.push_back(offsets.back() + static_cast<std::int64_t>(row.size()));
    return offsets;
}

template <class T>
std::vector<std::int64_t> row_ids_of(const Lists<T>& rows) {
    std::vector<std::int64_t> ids;
    for (std::size_t row = 0; row < rows.size(); ++row)
        ids.insert(ids.end(), rows[row].size(), static_cast<std::int64_t>(row));
    return ids;
}

/// Rows that fit `capacity`, other ones for each `sample`. Every seventh batch or so is an end of the range: no rows, all
/// rows empty, one row with everything, one value a row, all the room taken.
inline Lists<std::uint32_t> random_rows(RaggedCapacity capacity, std::uint64_t sample,
                                        std::uint64_t seed = 4) {
    CountedRandom random(RandomKey{.seed = seed, .sample = sample});
    const auto most_rows = static_cast<std::uint32_t>(capacity.rows);
    const auto most_values = static_cast<std::uint32_t>(capacity.values);
    const auto filled = [&](std::size_t length) {
        std::vector<std::uint32_t> row(length);
        for (std::uint32_t& value : row)
            value = random.next_u32();
        return row;
    };
    Lists<std::uint32_t> rows;
    switch (random.below(35)) {
    case 0:
        return rows;
    case 1:
        rows.resize(1 + random.below(most_rows));
        return rows;
    case 2:
        rows.resize(most_rows);
        rows[random.below(most_rows)] = filled(most_values);
        return rows;
    case 3:
        rows.push_back(filled(most_values));
        return rows;
    case 4:
        for (std::uint32_t row = 0; row < most_rows && row < most_values; ++row)
            rows.push_back(filled(1));
        return rows;
    default:
        break;
    }
    const std::uint32_t count = random.below(most_rows + 1);
    // Batches of short rows, and of long ones.
    const std::uint32_t longest = 1 + random.below(1 + 3 * most_values / most_rows);
    std::uint32_t left = most_values;
    for (std::uint32_t row = 0; row < count; ++row) {
        const std::uint32_t wanted = random.below(3) == 0 ? 0 : random.below(longest + 1);
        const std::uint32_t length = wanted < left ? wanted : left;
        left -= length;
        rows.push_back(filled(length));
    }
    return rows;
}

} // namespace sluice::test
