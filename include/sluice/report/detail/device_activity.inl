// Bodies of assign_to_stages, add_rows and report_of, of device_activity.hpp.
#pragma once

#include <algorithm>
#include <map>
#include <tuple>
#include <utility>

namespace sluice {

namespace detail::device_activity {

inline void require_clock(const Timeline& timeline, const char* function) {
    if (timeline.clock_zero() == 0) {
        throw Error(std::string(function) + ": the timeline '" + timeline.title() +
                    "' does not say where its zero is on the steady clock; take it from timeline_of, or call "
                    "Timeline::set_clock_zero");
    }
}

inline std::string unit_of(int device) { return "GPU " + std::to_string(device); }

/// The spans of a row in the order of their begins.
class RowSpans {
public:
    void add(const TimelineSpan& span) {
        longest_ = std::max(longest_, span.end - span.begin);
        spans_.push_back(span);
    }
    void sort() {
        std::sort(spans_.begin(), spans_.end(),
                  [](const TimelineSpan& a, const TimelineSpan& b) { return a.begin < b.begin; });
    }
    /// The one that `time` lies in, or that is at most `tolerance` away; of several the one whose end is nearest, which is
    /// the last that began as a rule. Null: none.
    const TimelineSpan* at(double time, double tolerance) const {
        const TimelineSpan* found = nullptr;
        double least = 0;
        auto span = std::upper_bound(spans_.begin(), spans_.end(), time + tolerance,
                                     [](double value, const TimelineSpan& s) { return value < s.begin; });
        while (span != spans_.begin()) {
            --span;
            if (span->begin + longest_ + tolerance < time)
                break;
            const double away = std::max({0.0, span->begin - time, time - span->end});
            if (away <= tolerance && (found == nullptr || away < least)) {
                found = &*span;
                least = away;
            }
        }
        return found;
    }

private:
    std::vector<TimelineSpan> spans_;
    double longest_ = 0;
};

inline std::vector<RowSpans> spans_by_row(const Timeline& timeline) {
    std::vector<RowSpans> rows(timeline.rows().size());
    for (const TimelineSpan& span : timeline.spans()) {
        if (span.kind == SpanKind::compute || span.kind == SpanKind::copy)
            rows[span.row].add(span);
    }
    for (RowSpans& row : rows)
        row.sort();
    return rows;
}

/// What activities are matched against.
struct StageRows {
    const Timeline& timeline;
    std::vector<RowSpans> spans;
    double tolerance;

    /// The row of a stage; a stage on another device than the activity has none of it.
    bool can_be(std::size_t row, const DeviceActivity& activity) const {
        const std::string& unit = timeline.rows()[row].unit;
        return unit != "CPU" && (!unit.starts_with("GPU ") || unit == unit_of(activity.device));
    }
    /// Whether the row stands for graphs of all stages, as `timeline_of` names them.
    bool is_graphs(std::size_t row) const { return timeline.rows()[row].name == "graphs"; }
    const TimelineSpan* span_of(std::size_t row, const DeviceActivity& activity) const {
        const double middle = activity.begin / 2 + activity.end / 2 - timeline.clock_zero();
        return spans[row].at(middle, tolerance);
    }
};

inline std::uint32_t stage_named(DeviceActivities& activities, const std::string& name) {
    const auto found = std::find(activities.stages.begin(), activities.stages.end(), name);
    const auto index = static_cast<std::uint32_t>(found - activities.stages.begin());
    if (found == activities.stages.end())
        activities.stages.push_back(name);
    return index;
}

/// The stage of each stream all of whose activities with a known stage have the same.
inline std::map<std::pair<int, std::uint32_t>, std::uint32_t>
stages_of_streams(const DeviceActivities& activities) {
    constexpr std::uint32_t several = DeviceActivity::unknown;
    std::map<std::pair<int, std::uint32_t>, std::uint32_t> stages;
    for (const DeviceActivity& activity : activities.activities) {
        if (activity.stage == DeviceActivity::unknown)
            continue;
        const auto [entry, added] = stages.try_emplace({activity.device, activity.stream}, activity.stage);
        if (!added && entry->second != activity.stage)
            entry->second = several;
    }
    return stages;
}

/// The batch of an activity whose stage is known, by the stage's row, or by that of the graphs.
inline void find_batch(DeviceActivity& activity, const std::string& stage, const StageRows& rows) {
    for (std::size_t row = 0; row < rows.spans.size(); ++row) {
        if (!rows.can_be(row, activity) || (rows.timeline.rows()[row].name != stage && !rows.is_graphs(row)))
            continue;
        if (const TimelineSpan* const span = rows.span_of(row, activity)) {
            activity.batch = static_cast<std::uint32_t>(span->batch);
            return;
        }
    }
}

} // namespace detail::device_activity

inline void assign_to_stages(DeviceActivities& activities, const Timeline& timeline, double tolerance) {
    namespace parts = detail::device_activity;
    if (timeline.spans().empty())
        return;
    parts::require_clock(timeline, "assign_to_stages");
    const parts::StageRows rows{timeline, parts::spans_by_row(timeline), tolerance};
    const auto of_streams = parts::stages_of_streams(activities);
    for (DeviceActivity& activity : activities.activities) {
        if (activity.stage == DeviceActivity::unknown) {
            std::size_t count = 0;
            std::size_t only = 0;
            bool stream_fits = false;
            const auto of_stream = of_streams.find({activity.device, activity.stream});
            const std::uint32_t by_stream =
                of_stream == of_streams.end() ? DeviceActivity::unknown : of_stream->second;
            for (std::size_t row = 0; row < rows.spans.size(); ++row) {
                if (!rows.can_be(row, activity) || rows.is_graphs(row) || !rows.span_of(row, activity))
                    continue;
                ++count;
                only = row;
                stream_fits = stream_fits || (by_stream != DeviceActivity::unknown &&
                                              activities.stages[by_stream] == timeline.rows()[row].name);
            }
            if (stream_fits)
                activity.stage = by_stream;
            else if (count == 1)
                activity.stage = parts::stage_named(activities, timeline.rows()[only].name);
        }
        if (activity.stage != DeviceActivity::unknown)
            parts::find_batch(activity, activities.stages[activity.stage], rows);
    }
}

inline void add_rows(Timeline& timeline, const DeviceActivities& activities) {
    namespace parts = detail::device_activity;
    double begin = -1e300;
    double end = 1e300;
    if (!timeline.spans().empty()) {
        parts::require_clock(timeline, "add_rows");
        begin = timeline.begin();
        end = timeline.end();
    } else if (!activities.activities.empty()) {
        double zero = activities.activities.front().begin;
        for (const DeviceActivity& activity : activities.activities)
            zero = std::min(zero, activity.begin);
        timeline.set_clock_zero(zero);
    }
    const auto is_copy = [](const DeviceActivity& activity) {
        return activity.kind == ActivityKind::copy || activity.kind == ActivityKind::set;
    };
    // Numbered by device and stream, whichever was first.
    std::map<std::tuple<int, std::uint32_t, bool>, std::size_t> rows;
    const auto seen = [&](const DeviceActivity& activity) {
        return activity.end - timeline.clock_zero() > begin && activity.begin - timeline.clock_zero() < end;
    };
    for (const DeviceActivity& activity : activities.activities) {
        if (seen(activity))
            rows.try_emplace({activity.device, activity.stream, is_copy(activity)}, 0);
    }
    for (auto& [key, row] : rows) {
        row = timeline.add_row((std::get<2>(key) ? "copies, stream " : "kernels, stream ") +
                                   std::to_string(std::get<1>(key)),
                               parts::unit_of(std::get<0>(key)));
    }
    for (const DeviceActivity& activity : activities.activities) {
        if (!seen(activity))
            continue;
        const bool copies = is_copy(activity);
        timeline.add({rows.at({activity.device, activity.stream, copies}),
                      activity.batch == DeviceActivity::unknown ? 0 : activity.batch,
                      activity.begin - timeline.clock_zero(), activity.end - timeline.clock_zero(),
                      copies ? SpanKind::copy : SpanKind::compute});
    }
}

// The report
// -----------------------------------------------------------------------------------------------------

namespace detail::device_activity {

/// The time that a report looks at.
struct Window {
    double begin = 0;
    double end = 0;

    bool has(double from, double to) const noexcept { return to >= begin && from <= end; }
    double cut(double time) const noexcept { return time < begin ? begin : time > end ? end : time; }
};

inline Window window_of(const DeviceActivities& activities, const Timeline* timeline) {
    if (timeline != nullptr && !timeline->spans().empty()) {
        require_clock(*timeline, "report_of");
        return {timeline->clock_zero() + timeline->begin(), timeline->clock_zero() + timeline->end()};
    }
    Window window;
    bool any = false;
    for (const DeviceActivity& activity : activities.activities) {
        window.begin = any ? std::min(window.begin, activity.begin) : activity.begin;
        window.end = any ? std::max(window.end, activity.end) : activity.end;
        any = true;
    }
    return window;
}

/// What time goes into, in the order in which causes count.
enum Cause : std::size_t { kernel, copy, set, communication, runtime, source, causes };

/// Where an interval begins or ends.
struct Edge {
    double time;
    Cause cause;
    int step; ///< 1: begins, -1: ends.
};

inline Cause cause_of(ActivityKind kind) {
    switch (kind) {
    case ActivityKind::copy:
        return copy;
    case ActivityKind::set:
        return set;
    case ActivityKind::communication:
        return communication;
    case ActivityKind::kernel:
    case ActivityKind::graph:
        break;
    }
    return kernel;
}

inline std::vector<Edge> edges_of(const DeviceActivities& activities, const Timeline* timeline,
                                  const Window& window) {
    std::vector<Edge> edges;
    edges.reserve(2 * (activities.activities.size() + activities.calls.size()));
    const auto add = [&](double begin, double end, Cause cause) {
        if (window.has(begin, end) && begin < end) {
            edges.push_back({window.cut(begin), cause, 1});
            edges.push_back({window.cut(end), cause, -1});
        }
    };
    for (const DeviceActivity& activity : activities.activities)
        add(activity.begin, activity.end, cause_of(activity.kind));
    for (const HostCall& call : activities.calls)
        add(call.begin, call.end, runtime);
    if (timeline != nullptr) {
        for (const TimelineSpan& span : timeline->spans()) {
            if (span.kind == SpanKind::source || span.kind == SpanKind::wait)
                add(timeline->clock_zero() + span.begin, timeline->clock_zero() + span.end, source);
        }
    }
    std::sort(edges.begin(), edges.end(), [](const Edge& a, const Edge& b) { return a.time < b.time; });
    return edges;
}

/// Looks at each stretch between two edges: what went on there.
inline void sweep(const std::vector<Edge>& edges, const Window& window, ActivityReport& report) {
    std::size_t active[causes] = {};
    double times[causes] = {};
    double both = 0;
    double compute_only = 0;
    double copy_only = 0;
    double at = window.begin;
    for (const Edge& edge : edges) {
        const double length = edge.time - at;
        at = edge.time;
        for (std::size_t cause = 0; cause < causes; ++cause) {
            if (active[cause] > 0) {
                times[cause] += length;
                break;
            }
        }
        const bool computes = active[kernel] + active[communication] > 0;
        const bool copies = active[copy] + active[set] > 0;
        (computes && copies ? both : computes ? compute_only : copy_only) += computes || copies ? length : 0;
        active[edge.cause] += edge.step > 0 ? std::size_t{1} : static_cast<std::size_t>(-1);
    }
    report.causes = {times[kernel],  times[copy],   times[set], times[communication],
                     times[runtime], times[source], 0};
    double rest = report.wall;
    for (const double time : times)
        rest -= time;
    report.causes.other = rest > 0 ? rest : 0; // less than 0 by rounding alone
    if (report.wall > 0) {
        const double busy = compute_only + copy_only + both;
        report.device = {compute_only / report.wall, copy_only / report.wall, both / report.wall,
                         busy < report.wall ? (report.wall - busy) / report.wall : 0};
        report.busy_share = busy / report.wall;
    }
}

/// An interval of a stage.
struct StageSpan {
    double begin;
    double end;
    std::uint32_t stage;
};

/// Share of the wall time in which two stages had spans; adds each stage's time to `time` of its entry.
inline double sweep_stages(std::vector<StageSpan> spans, double StageActivity::*time,
                           std::vector<StageActivity>& stages, double wall) {
    std::sort(spans.begin(), spans.end(),
              [](const StageSpan& a, const StageSpan& b) { return a.begin < b.begin; });
    std::vector<timeline_report::Union> unions(stages.size());
    timeline_report::Together together;
    for (const StageSpan& span : spans) {
        unions[span.stage].add(span.begin, span.end);
        together.add(span.stage, span.begin, span.end);
    }
    for (std::size_t i = 0; i < stages.size(); ++i)
        stages[i].*time = unions[i].length();
    return wall > 0 ? together.length() / wall : 0;
}

inline void look_at_stages(const DeviceActivities& activities, const Window& window, ActivityReport& report) {
    std::vector<StageActivity> stages(activities.stages.size());
    std::vector<StageSpan> busy;
    std::map<std::pair<std::uint32_t, std::uint32_t>, StageSpan> batches;
    for (const DeviceActivity& activity : activities.activities) {
        if (activity.stage >= stages.size() || !window.has(activity.begin, activity.end))
            continue;
        const StageSpan span{window.cut(activity.begin), window.cut(activity.end), activity.stage};
        busy.push_back(span);
        ++stages[activity.stage].activities;
        if (activity.batch == DeviceActivity::unknown)
            continue;
        const auto [entry, added] = batches.try_emplace({activity.stage, activity.batch}, span);
        if (!added) {
            entry->second.begin = std::min(entry->second.begin, span.begin);
            entry->second.end = std::max(entry->second.end, span.end);
        }
    }
    std::vector<StageSpan> at_work;
    for (const auto& [key, span] : batches)
        at_work.push_back(span);
    report.overlap = sweep_stages(std::move(busy), &StageActivity::busy, stages, report.wall);
    report.at_work_overlap = sweep_stages(std::move(at_work), &StageActivity::at_work, stages, report.wall);
    for (std::size_t i = 0; i < stages.size(); ++i) {
        StageActivity& stage = stages[i];
        stage.name = activities.stages[i];
        stage.share = report.wall > 0 ? stage.busy / report.wall : 0;
        stage.at_work_share = report.wall > 0 ? stage.at_work / report.wall : 0;
        if (stage.activities > 0)
            report.stages.push_back(std::move(stage));
    }
}

inline void look_at_kernels(const DeviceActivities& activities, const Window& window,
                            ActivityReport& report) {
    using Key = std::tuple<std::uint32_t, ActivityKind, std::uint32_t>;
    std::map<Key, KernelTotal> totals; // a stage that is not known has the highest number
    for (const DeviceActivity& activity : activities.activities) {
        if (!window.has(activity.begin, activity.end))
            continue;
        ++report.count;
        KernelTotal& total = totals[{activity.stage, activity.kind, activity.name}];
        ++total.count;
        total.total += window.cut(activity.end) - window.cut(activity.begin);
        total.bytes += activity.bytes;
    }
    std::vector<std::pair<std::uint32_t, KernelTotal>> sorted;
    for (auto& [key, total] : totals) {
        const auto [stage, kind, name] = key;
        total.kind = kind;
        total.name = name < activities.names.size() ? activities.names[name] : std::string();
        total.stage = stage < activities.stages.size() ? activities.stages[stage] : std::string();
        total.mean = total.total / static_cast<double>(total.count);
        total.share = report.wall > 0 ? total.total / report.wall : 0;
        sorted.emplace_back(stage, std::move(total));
    }
    std::stable_sort(sorted.begin(), sorted.end(), [](const auto& a, const auto& b) {
        return a.first != b.first ? a.first < b.first : a.second.total > b.second.total;
    });
    for (auto& [stage, total] : sorted)
        report.kernels.push_back(std::move(total));
}

} // namespace detail::device_activity

inline ActivityReport report_of(const DeviceActivities& activities, const ActivityReportOptions& options) {
    namespace parts = detail::device_activity;
    const parts::Window window = parts::window_of(activities, options.timeline);
    ActivityReport report;
    report.title = options.title;
    report.slowdown = options.slowdown;
    report.begin = window.begin;
    report.end = window.end;
    report.wall = window.end - window.begin;
    report.dropped = activities.dropped;
    report.silent_graphs = activities.silent_graphs;
    parts::sweep(parts::edges_of(activities, options.timeline, window), window, report);
    parts::look_at_stages(activities, window, report);
    parts::look_at_kernels(activities, window, report);
    return report;
}

} // namespace sluice
