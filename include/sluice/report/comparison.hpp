/// \file
/// Two timelines in numbers beside each other, such as before and after a change.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include <sluice/report/timeline_report.hpp>

namespace sluice {

/// A row of two reports, or two whole runs. Numbers of a report that has no such row are 0.
struct RowComparison {
    std::string name; ///< The row's.
    std::string unit; ///< The row's; where it differs, that of the run after the change.

    std::size_t before = TimelineReport::no_row; ///< The row's number before the change, if there is one.
    std::size_t after = TimelineReport::no_row;  ///< Likewise after it.

    /// Microseconds: the row's `busy` by the report's `batches`. Of a whole run it is the time from one batch to the next in
    /// the steady part, or `wall` by `batches` where there is no steady part.
    double time_before = 0;
    double time_after = 0; ///< Likewise after the change.
    /// `time_before` by `time_after`, so that 2 is twice as fast; 0 where one of them is 0.
    double speedup = 0;

    double share_before = 0; ///< The row's `share`; of a whole run its `busy_share`.
    double share_after = 0;  ///< Likewise after the change.

    /// Batches per second, of a row while it is busy; 0 where it took no time.
    double rate_before = 0;
    double rate_after = 0; ///< Likewise after the change.
};

/// Two reports, as `compare` puts them beside each other.
struct Comparison {
    std::string title_before; ///< The report's title, or "before" where it has none.
    std::string title_after;  ///< Likewise, or "after".
    RowComparison whole;      ///< The whole runs, as "whole run".
    /// In the order before the change, then those that are new.
    std::vector<RowComparison> rows;
};

/// Puts two reports beside each other. Rows belong together where name and unit are the same, and then where the name is; of
/// several such rows the first belongs to the first.
Comparison compare(const TimelineReport& before, const TimelineReport& after);

/// One sentence: "overlapped is 1.39 x as fast as serial: 278 batches/s instead of 200."
std::string comparison_sentence(const Comparison& comparison);

} // namespace sluice

#include <sluice/report/detail/comparison.inl>
