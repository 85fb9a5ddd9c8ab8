/// \file
/// Several timelines as one, such as those of ranks that train together.
#pragma once

#include <string>
#include <vector>

#include <sluice/report/timeline.hpp>

namespace sluice {

/// A timeline, and what stands before the names of its rows in a merged one.
struct NamedTimeline {
    std::string name;                   ///< Such as "rank 1"; UTF-8. Empty for nothing.
    const Timeline* timeline = nullptr; ///< Alive during the call.
};

/// All rows of `timelines` on one time axis, as a new timeline. Row "train" of "rank 1" becomes "rank 1: train". Units and the
/// numbers of batches stay, so batches of one number have one colour. Rows that are not of the unit "CPU" come first, and then
/// those that are, each in the order of `timelines`.
///
/// Its zero is the earliest `Timeline::clock_zero` of those with spans or values, or, where none has any, of those that say where
/// theirs is, and all times are moved to it. The clocks must be the same: that of one process, or of processes on one Linux host,
/// which share `std::chrono::steady_clock`. Where no timeline says where its zero is, all are taken to have the same one.
///
/// Counters and missing edges come along, counters renamed as rows are. Its sentence is those of all, each behind its name, and its
/// latencies are those of all, in the order of `timelines`. Their titles do not come along: its own is `title`.
/// \throws Error for a null pointer, and where some timelines say where their zero is and others do not.
Timeline merge_timelines(const std::vector<NamedTimeline>& timelines, std::string title = {});

} // namespace sluice

#include <sluice/report/detail/merge_timelines.inl>
