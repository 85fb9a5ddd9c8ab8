/// \file
/// Operations on the values of ragged rows: what is handed to the devices, and those operations that write each value of a
/// row by itself.
#pragma once

#include <cstdint>

#include <sluice/ragged/view.hpp>

#include "giou.hpp"

namespace sluice_torch {

/// Values and where rows begin, in the memory of a tensor.
template <class T>
struct RowsIn {
    const T* values = nullptr;
    const std::int64_t* offsets = nullptr;
    std::int64_t rows = 0;
    std::int64_t size = 0; ///< values that there is room for; those from the last offset on are in no row

    sluice::RaggedView<const T> view(const sluice::RaggedCounts* counts) const {
        return {values, offsets, counts, rows, size};
    }
    /// A row as it can be read safely, whatever the offsets are.
    SLUICE_HOST_DEVICE RowRange range(std::int64_t row) const {
        return range_of(BoxRows{rows, 0, size, offsets, nullptr, false}, row);
    }
};

/// `out[i]` = `of_rows[r]` for each value i of row r.
template <class T>
struct ExpandRows {
    const T* of_rows;
    T* out;

    SLUICE_HOST_DEVICE void operator()(std::int64_t row, const RowRange&, std::int64_t at,
                                       std::int64_t) const {
        out[at] = of_rows[row];
    }
};

/// `out` = what was sorted, back where `positions` says that it came from.
template <class T>
struct UnsortRows {
    const T* sorted;
    const std::int64_t* positions;
    T* out;

    SLUICE_HOST_DEVICE void operator()(std::int64_t, const RowRange& range, std::int64_t at,
                                       std::int64_t) const {
        const std::int64_t place = positions[at];
        if (place >= 0 && place < range.length)
            out[range.begin + place] = sorted[at];
    }
};

/// `out` = `of_rows[r]` at the position that is row r's, 0 elsewhere.
template <class T>
struct PlaceInRows {
    const T* of_rows;
    const std::int64_t* positions;
    T* out;

    SLUICE_HOST_DEVICE void operator()(std::int64_t row, const RowRange&, std::int64_t at,
                                       std::int64_t place) const {
        out[at] = place == positions[row] ? of_rows[row] : T(0);
    }
};

/// Calls `body` for the values `lane`, `lane + lanes`, … of a row. Row `rows` is what no row holds, which becomes 0.
template <class Body, class T>
SLUICE_HOST_DEVICE void map_row(const Body& body, const RowsIn<T>& rows, std::int64_t row, int lane,
                                int lanes) {
    if (row == rows.rows) {
        const std::int64_t end = rows.offsets[rows.rows] < 0 ? 0 : rows.offsets[rows.rows];
        for (std::int64_t i = end + lane; i < rows.size; i += lanes)
            body.out[i] = T(0);
        return;
    }
    const RowRange range = rows.range(row);
    for (std::int64_t j = lane; j < range.length; j += lanes)
        body(row, range, range.begin + j, j);
}

} // namespace sluice_torch
