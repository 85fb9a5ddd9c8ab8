/// \file
/// A timeline in numbers: how busy its rows and the device were, what overlapped, and what set the pace.
///
/// All definitions here rest on two words. *Work* is a span of any kind but `SpanKind::wait`. The *time* of several
/// spans is the length of the union of their intervals: where they overlap, it is counted once. So a span without
/// length is counted and takes no time, and spans that touch leave nothing between them.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include <sluice/report/timeline.hpp>

namespace sluice {

/// A row of a timeline in numbers. Times are in microseconds, shares are parts of `TimelineReport::wall`, and everything
/// is 0 for a row without spans.
struct RowReport {
    std::string name; ///< As in `TimelineRow`.
    std::string unit; ///< As in `TimelineRow`.

    std::size_t spans = 0; ///< Spans of work.
    double busy = 0;       ///< Time of its work.
    double share = 0;      ///< `busy` as a share of the wall time; 0 where that is 0.

    double mean = 0;     ///< Mean duration of a span of its work; so are the next four.
    double median = 0;   ///< The middle one; the mean of the two in the middle where their number is even.
    double p99 = 0;      ///< The shortest one that 99 % of all, or more, do not exceed.
    double shortest = 0; ///< The shortest one.
    double longest = 0;  ///< The longest one.

    /// Times between batches. The row is with a batch from the first begin to the last end of this batch's work on it.
    /// A gap is a stretch of positive length between the row's first begin and its last end in which it is with no batch.
    std::size_t gaps = 0;
    double gap_time = 0;    ///< Sum of the gaps.
    double longest_gap = 0; ///< The longest gap.

    /// Spans of kind `wait`. They count in `waited` and the wall time, and nowhere else.
    std::size_t waits = 0;
    double waited = 0; ///< Time of its waits.
};

/// A counter of a timeline in numbers, in the counter's unit. A value holds until the next one, and the last one until the
/// timeline's end where that is later. All values count, also those before the first span and behind the last.
struct CounterReport {
    std::string name; ///< As in `TimelineCounter`.
    std::string unit; ///< As in `TimelineCounter`.

    std::size_t values = 0; ///< How many, at different times. Without any, the rest is 0.
    double lowest = 0;      ///< The lowest one.
    double peak = 0;        ///< The highest one.
    double mean = 0; ///< Over the time from the first value on; the value itself where that has no length.
};

/// What the devices did, as shares of the wall time that sum to 1. Spans of kind `compute` and `copy` count, on all rows
/// whose unit is not "CPU"; several devices count as one. Without wall time `neither` is 1.
struct DeviceShares {
    double compute_only = 0; ///< Something computed, nothing was copied.
    double copy_only = 0;    ///< Something was copied, nothing computed.
    double both = 0;         ///< Something computed while something was copied.
    double neither = 1;      ///< Nothing computed, and nothing was copied.
};

/// How long batches took, see `Timeline::set_latencies`. Times are in microseconds.
struct LatencyReport {
    std::size_t batches = 0; ///< Of so many. Without any, the rest is 0.
    double median = 0;  ///< The middle one; the mean of the two in the middle where their number is even.
    double p99 = 0;     ///< The shortest one that 99 % of all, or more, do not exceed.
    double p99_9 = 0;   ///< The same of 99.9 %.
    double longest = 0; ///< The longest one.
};

/// A timeline in numbers, as `report_of` works them out. Times are in microseconds.
struct TimelineReport {
    /// Stands for a row where there is none.
    static constexpr std::size_t no_row = static_cast<std::size_t>(-1);

    std::string title;    ///< The timeline's.
    std::string sentence; ///< Likewise.
    double begin = 0;     ///< The first begin of a span.
    double end = 0;       ///< The last end of a span.
    double wall = 0;      ///< `end - begin`.

    std::size_t batches = 0; ///< Different batch numbers of work.
    /// The steady part begins when the first batch is done. A batch is done when the last of its work ends, on whatever
    /// row; the first batch is the one that is done first.
    double steady_begin = 0;
    double steady_end = 0; ///< When the last batch is done.
    /// `batches - 1` by the length of the steady part in seconds; 0 where it has no length.
    double batches_per_second = 0;

    double busy_share = 0; ///< Share of the wall time in which there was work on any row.
    DeviceShares device;   ///< What the devices did.
    double overlap = 0;    ///< Share of the wall time in which at least two rows had spans of kind `compute`.
    /// What the rows computed and copied, one after another, would take so many times the wall time.
    double serial_sum = 0;

    /// The row with the highest share above 0; of equal ones the one with the lowest number.
    std::size_t pace_row = no_row;
    std::size_t next_row = no_row; ///< The same among the other rows.

    LatencyReport latency; ///< How long batches took.

    std::vector<RowReport> rows;         ///< By number.
    std::vector<CounterReport> counters; ///< By number.
};

/// Works out the numbers of `timeline`, in O(n log n) for n spans. It keeps nothing of it.
/// \throws Error where the time from the first begin to the last end is not a finite number.
TimelineReport report_of(const Timeline& timeline);

/// One sentence on what set the pace, with numbers: `TimelineReport::sentence`, or, where that is empty, what the rows tell.
/// Names are shortened to 24 columns.
/// - "encode set the pace: it was busy 97 % of the time, train 61 %." where a row was busy 75 % of the time or more;
/// - "no stage set the pace alone: …" where none was, but together they were: they waited for one another;
/// - "no stage was busy more than 40 % of the time: the host or the source set the pace." otherwise.
/// \throws Error where `pace_row` or `next_row` names no row of the report; so do the two functions below.
std::string pace_sentence(const TimelineReport& report);

/// The report as text in UTF-8, for a terminal: a head, a table with a line for each row, a line for each counter, and
/// `pace_sentence`. No line is
/// wider than 80 columns: names that do not fit are shortened with "…". What is not printable is shown as U+FFFD.
std::string to_table(const TimelineReport& report);

/// The report as a JSON object (RFC 8259) on one line. Its keys are the names of the members, times with `_us` behind them;
/// `pace_row` and `next_row` are null where there is no row; `sentence` is `pace_sentence`. Numbers read back as the same
/// doubles, what is not finite is null. Bytes of texts that are not UTF-8 become U+FFFD.
std::string to_json(const TimelineReport& report);

} // namespace sluice

#include <sluice/report/detail/timeline_json.inl>
#include <sluice/report/detail/timeline_report.inl>
#include <sluice/report/detail/timeline_table.inl>
