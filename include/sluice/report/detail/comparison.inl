// Bodies of comparison.hpp.
#pragma once

#include <sluice/report/detail/counter_steps.hpp>
#include <sluice/report/detail/timeline_text.hpp>

namespace sluice {

namespace detail::comparison {

inline double per(double value, double by) { return by > 0 ? value / by : 0; }

inline void relate(RowComparison& row) {
    row.speedup = row.time_before > 0 ? per(row.time_before, row.time_after) : 0;
    row.rate_before = per(1e6, row.time_before);
    row.rate_after = per(1e6, row.time_after);
}

inline double time_of_batch(const TimelineReport& report) {
    return report.batches_per_second > 0 ? 1e6 / report.batches_per_second
                                         : per(report.wall, static_cast<double>(report.batches));
}

/// Pairs rows that have none yet: by name, and by unit too where `units` says so.
inline void pair(const TimelineReport& before, const TimelineReport& after, bool units,
                 std::vector<std::size_t>& before_of, std::vector<std::size_t>& after_of) {
    constexpr std::size_t none = TimelineReport::no_row;
    for (std::size_t i = 0; i < before.rows.size(); ++i) {
        for (std::size_t k = 0; k < after.rows.size() && after_of[i] == none; ++k) {
            if (before_of[k] == none && before.rows[i].name == after.rows[k].name &&
                (!units || before.rows[i].unit == after.rows[k].unit)) {
                after_of[i] = k;
                before_of[k] = i;
            }
        }
    }
}

inline RowComparison row_of(const TimelineReport& before, std::size_t i, const TimelineReport& after,
                            std::size_t k) {
    RowComparison row;
    row.before = i;
    row.after = k;
    if (i != TimelineReport::no_row) {
        row.name = before.rows[i].name;
        row.unit = before.rows[i].unit;
        row.time_before = per(before.rows[i].busy, static_cast<double>(before.batches));
        row.share_before = before.rows[i].share;
    }
    if (k != TimelineReport::no_row) {
        row.name = after.rows[k].name;
        row.unit = after.rows[k].unit;
        row.time_after = per(after.rows[k].busy, static_cast<double>(after.batches));
        row.share_after = after.rows[k].share;
    }
    relate(row);
    return row;
}

} // namespace detail::comparison

inline Comparison compare(const TimelineReport& before, const TimelineReport& after) {
    namespace parts = detail::comparison;
    Comparison result;
    result.title_before = before.title.empty() ? "before" : before.title;
    result.title_after = after.title.empty() ? "after" : after.title;
    result.whole.name = "whole run";
    result.whole.time_before = parts::time_of_batch(before);
    result.whole.time_after = parts::time_of_batch(after);
    result.whole.share_before = before.busy_share;
    result.whole.share_after = after.busy_share;
    parts::relate(result.whole);

    std::vector<std::size_t> after_of(before.rows.size(), TimelineReport::no_row);
    std::vector<std::size_t> before_of(after.rows.size(), TimelineReport::no_row);
    parts::pair(before, after, true, before_of, after_of);
    parts::pair(before, after, false, before_of, after_of);
    for (std::size_t i = 0; i < before.rows.size(); ++i)
        result.rows.push_back(parts::row_of(before, i, after, after_of[i]));
    for (std::size_t k = 0; k < after.rows.size(); ++k) {
        if (before_of[k] == TimelineReport::no_row)
            result.rows.push_back(parts::row_of(before, TimelineReport::no_row, after, k));
    }
    return result;
}

inline std::string comparison_sentence(const Comparison& comparison) {
    using detail::numbers::number_text;
    const RowComparison& whole = comparison.whole;
    const auto name = [](const std::string& title) { return detail::timeline_text::shortened(title, 32); };
    const bool same = comparison.title_before == comparison.title_after;
    const std::string before = same ? "the first run" : name(comparison.title_before);
    const std::string after = same ? "the second run" : name(comparison.title_after);
    if (!(whole.speedup > 0)) {
        return "nothing to compare: " + (whole.time_before > 0 ? after : before) +
               " has no batch that took any time.";
    }
    return after + " is " + number_text(whole.speedup) + " x as fast as " + before + ": " +
           number_text(whole.rate_after) + " batches/s instead of " + number_text(whole.rate_before) + ".";
}

} // namespace sluice
