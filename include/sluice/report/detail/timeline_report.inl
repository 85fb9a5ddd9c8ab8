// Body of report_of, of timeline_report.hpp.
#pragma once

#include <algorithm>

#include <sluice/report/detail/counter_steps.hpp>

namespace sluice {

namespace detail::timeline_report {

/// A span with what the sweeps add to it.
struct Mark {
    double begin;
    double end;
    double batch_end; ///< Of work: when the row is done with the batch.
    std::size_t row;
    std::size_t batch;
    SpanKind kind;

    bool is_work() const noexcept { return kind != SpanKind::wait; }
};

/// The union of intervals that come in the order of their begins.
class Union {
public:
    void add(double begin, double end) noexcept {
        if (!any_ || begin > reach_) {
            length_ += end - begin;
            reach_ = end;
            any_ = true;
        } else if (end > reach_) {
            length_ += end - reach_;
            reach_ = end;
        }
    }
    double length() const noexcept { return length_; }
    double reach() const noexcept { return reach_; } ///< The last end so far.
    bool any() const noexcept { return any_; }

private:
    double length_ = 0;
    double reach_ = 0;
    bool any_ = false;
};

/// The time in which at least two tracks are busy. Spans of all tracks come in the order of their begins.
class Together {
public:
    void add(std::size_t track, double begin, double end) noexcept {
        // A moment is found with the span that makes it one of two tracks: until then the track that reaches farthest was
        // another one, or the span's own track would have been busy then already.
        if (any_ && track != track_ && begin < reach_)
            time_.add(begin, reach_ < end ? reach_ : end);
        if (!any_ || end > reach_) {
            any_ = true;
            track_ = track;
            reach_ = end;
        }
    }
    double length() const noexcept { return time_.length(); }

private:
    Union time_;
    std::size_t track_ = 0; // the one that reaches farthest
    double reach_ = 0;
    bool any_ = false;
};

inline std::vector<Mark> marks_of(const Timeline& timeline) {
    std::vector<Mark> marks;
    marks.reserve(timeline.spans().size());
    for (const TimelineSpan& span : timeline.spans())
        marks.push_back({span.begin, span.end, span.end, span.row, span.batch, span.kind});
    return marks;
}

/// Counts batches, says when they are done, and how long each row is with each.
inline void look_at_batches(std::vector<Mark>& marks, TimelineReport& report) {
    std::sort(marks.data(), marks.data() + marks.size(), [](const Mark& a, const Mark& b) {
        if (a.is_work() != b.is_work())
            return a.is_work();
        return a.batch != b.batch ? a.batch < b.batch : a.row < b.row;
    });
    std::size_t at = 0;
    while (at < marks.size() && marks[at].is_work()) {
        const std::size_t batch = marks[at].batch;
        double done = marks[at].end;
        while (at < marks.size() && marks[at].is_work() && marks[at].batch == batch) {
            const std::size_t begin = at;
            double row_done = marks[at].end;
            for (; at < marks.size() && marks[at].is_work() && marks[at].batch == batch &&
                   marks[at].row == marks[begin].row;
                 ++at)
                row_done = marks[at].end > row_done ? marks[at].end : row_done;
            for (std::size_t i = begin; i < at; ++i)
                marks[i].batch_end = row_done;
            done = row_done > done ? row_done : done;
        }
        if (report.batches == 0 || done < report.steady_begin)
            report.steady_begin = done;
        if (report.batches == 0 || done > report.steady_end)
            report.steady_end = done;
        ++report.batches;
    }
    const double steady = report.steady_end - report.steady_begin;
    if (steady > 0)
        report.batches_per_second = static_cast<double>(report.batches - 1) / (steady * 1e-6);
}

/// A row while the spans are swept in the order of their begins.
struct RowSweep {
    Union busy;
    Union computed; // or copied
    Union waited;
    Union with_batches;
    bool on_device = false;
};

inline void add_to_row(const Mark& mark, RowSweep& sweep, RowReport& row) {
    if (!mark.is_work()) {
        ++row.waits;
        sweep.waited.add(mark.begin, mark.end);
        return;
    }
    ++row.spans;
    sweep.busy.add(mark.begin, mark.end);
    if (mark.kind != SpanKind::source)
        sweep.computed.add(mark.begin, mark.end);
    if (sweep.with_batches.any() && mark.begin > sweep.with_batches.reach()) {
        const double gap = mark.begin - sweep.with_batches.reach();
        ++row.gaps;
        row.gap_time += gap;
        row.longest_gap = gap > row.longest_gap ? gap : row.longest_gap;
    }
    sweep.with_batches.add(mark.begin, mark.batch_end);
}

/// A time as a share of the wall time. Sums of many lengths may be a rounding error too long.
inline double share_of(double time, double wall) {
    const double share = wall > 0 ? time / wall : 0;
    return share < 1 ? share : 1;
}

/// Rows' times, what overlapped, and what the device did.
inline void sweep_times(std::vector<Mark>& marks, TimelineReport& report) {
    std::sort(marks.data(), marks.data() + marks.size(),
              [](const Mark& a, const Mark& b) { return a.begin < b.begin; });
    std::vector<RowSweep> sweeps(report.rows.size());
    for (std::size_t i = 0; i < sweeps.size(); ++i)
        sweeps[i].on_device = report.rows[i].unit != "CPU";
    Union busy;
    Together computing;
    Union device_compute;
    Union device_copy;
    Together device_both;
    for (const Mark& mark : marks) {
        add_to_row(mark, sweeps[mark.row], report.rows[mark.row]);
        if (mark.is_work())
            busy.add(mark.begin, mark.end);
        if (mark.kind == SpanKind::compute)
            computing.add(mark.row, mark.begin, mark.end);
        if (sweeps[mark.row].on_device && (mark.kind == SpanKind::compute || mark.kind == SpanKind::copy)) {
            (mark.kind == SpanKind::copy ? device_copy : device_compute).add(mark.begin, mark.end);
            device_both.add(static_cast<std::size_t>(mark.kind), mark.begin, mark.end);
        }
    }
    for (std::size_t i = 0; i < sweeps.size(); ++i) {
        RowReport& row = report.rows[i];
        row.busy = sweeps[i].busy.length();
        row.share = share_of(row.busy, report.wall);
        row.waited = sweeps[i].waited.length();
        report.serial_sum += share_of(sweeps[i].computed.length(), report.wall);
    }
    report.busy_share = share_of(busy.length(), report.wall);
    report.overlap = share_of(computing.length(), report.wall);
    DeviceShares& device = report.device;
    const auto without_negative = [](double value) { return value > 0 ? value : 0; };
    device.both = share_of(device_both.length(), report.wall);
    device.compute_only = without_negative(share_of(device_compute.length(), report.wall) - device.both);
    device.copy_only = without_negative(share_of(device_copy.length(), report.wall) - device.both);
    device.neither = without_negative(1 - (device.compute_only + device.copy_only + device.both));
}

/// Medians and the like of `count` durations, one at least, which it leaves in another order.
class Ranks {
public:
    Ranks(double* durations, std::size_t count) : durations_(durations), count_(count) {}
    /// The shortest one that all but one in `one_in`, or more, do not exceed.
    double all_but(std::size_t one_in) { return at(count_ - count_ / one_in - 1); }
    double median() {
        const double upper = at(count_ / 2);
        return count_ % 2 == 0 ? upper / 2 + at(count_ / 2 - 1) / 2 : upper;
    }

private:
    double at(std::size_t rank) { // from 0
        std::nth_element(durations_, durations_ + rank, durations_ + count_);
        return durations_[rank];
    }
    double* durations_;
    std::size_t count_;
};

inline LatencyReport report_of_latencies(std::vector<double> latencies) {
    LatencyReport report;
    report.batches = latencies.size();
    if (latencies.empty())
        return report;
    Ranks ranks(latencies.data(), latencies.size());
    report.median = ranks.median();
    report.p99 = ranks.all_but(100);
    report.p99_9 = ranks.all_but(1000);
    report.longest =
        latencies.front(); // which may be negative, as where a batch says that it comes into being later
    for (const double latency : latencies)
        report.longest = latency > report.longest ? latency : report.longest;
    return report;
}

/// Statistics of `count` durations, one at least, which are left in another order.
inline void look_at_durations(double* durations, std::size_t count, RowReport& row) {
    double sum = 0;
    row.shortest = row.longest = durations[0];
    for (std::size_t i = 0; i < count; ++i) {
        sum += durations[i];
        row.shortest = durations[i] < row.shortest ? durations[i] : row.shortest;
        row.longest = durations[i] > row.longest ? durations[i] : row.longest;
    }
    row.mean = sum / static_cast<double>(count);
    Ranks ranks(durations, count);
    row.p99 = ranks.all_but(100);
    row.median = ranks.median();
}

/// Durations of all rows' work.
inline void look_at_durations(const std::vector<Mark>& marks, TimelineReport& report) {
    std::vector<std::size_t> next(report.rows.size(), 0); // where a row's next duration goes
    for (std::size_t i = 1; i < next.size(); ++i)
        next[i] = next[i - 1] + report.rows[i - 1].spans;
    std::vector<double> durations(marks.size());
    for (const Mark& mark : marks) {
        if (mark.is_work())
            durations[next[mark.row]++] = mark.end - mark.begin;
    }
    for (std::size_t i = 0; i < next.size(); ++i) {
        RowReport& row = report.rows[i];
        if (row.spans > 0)
            look_at_durations(durations.data() + (next[i] - row.spans), row.spans, row);
    }
}

/// The row with the highest share above 0, without looking at row `but`.
inline std::size_t busiest_row(const TimelineReport& report, std::size_t but) {
    std::size_t busiest = TimelineReport::no_row;
    for (std::size_t i = 0; i < report.rows.size(); ++i) {
        const double least = busiest == TimelineReport::no_row ? 0 : report.rows[busiest].share;
        if (i != but && report.rows[i].share > least)
            busiest = i;
    }
    return busiest;
}

/// A counter's numbers; `end` is the timeline's.
inline CounterReport report_of_counter(const TimelineCounter& counter,
                                       const std::vector<counters::Step>& steps, double end) {
    CounterReport report;
    report.name = counter.name;
    report.unit = counter.unit;
    report.values = steps.size();
    if (steps.empty())
        return report;
    const double last = steps.back().time > end ? steps.back().time : end;
    const double length = last - steps.front().time;
    report.lowest = report.peak = steps.front().value;
    for (std::size_t i = 0; i < steps.size(); ++i) {
        const double value = steps[i].value;
        report.lowest = value < report.lowest ? value : report.lowest;
        report.peak = value > report.peak ? value : report.peak;
        // Shares of the time, so that no product is larger than a value.
        if (length > 0)
            report.mean +=
                value * (((i + 1 < steps.size() ? steps[i + 1].time : last) - steps[i].time) / length);
    }
    if (!(length > 0))
        report.mean = steps.front().value;
    return report;
}

} // namespace detail::timeline_report

inline TimelineReport report_of(const Timeline& timeline) {
    namespace parts = detail::timeline_report;
    TimelineReport report;
    report.title = timeline.title();
    report.sentence = timeline.sentence();
    report.begin = timeline.begin();
    report.end = timeline.end();
    report.wall = report.end - report.begin;
    if (!(report.wall - report.wall == 0)) { // infinite, or of infinite ends
        throw Error("report_of: the timeline goes from " + detail::numbers::shortest(report.begin) +
                    " us to " + detail::numbers::shortest(report.end) +
                    " us; expected a finite time between them");
    }
    report.rows.resize(timeline.rows().size());
    for (std::size_t i = 0; i < report.rows.size(); ++i) {
        report.rows[i].name = timeline.rows()[i].name;
        report.rows[i].unit = timeline.rows()[i].unit;
    }
    std::vector<parts::Mark> marks = parts::marks_of(timeline);
    parts::look_at_batches(marks, report);
    parts::sweep_times(marks, report);
    parts::look_at_durations(marks, report);
    report.latency = parts::report_of_latencies(timeline.latencies());
    report.pace_row = parts::busiest_row(report, TimelineReport::no_row);
    report.next_row = parts::busiest_row(report, report.pace_row);
    const std::vector<std::vector<detail::counters::Step>> steps = detail::counters::steps_of(timeline);
    for (std::size_t i = 0; i < steps.size(); ++i)
        report.counters.push_back(parts::report_of_counter(timeline.counters()[i], steps[i], report.end));
    return report;
}

} // namespace sluice
