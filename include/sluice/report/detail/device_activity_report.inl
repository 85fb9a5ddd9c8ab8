// Body of report_of, of device_activity.hpp.
#pragma once

#include <algorithm>
#include <limits>
#include <map>
#include <tuple>
#include <utility>

#include <sluice/report/detail/device_activity.inl>

namespace sluice {

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
        window.begin = any ? (std::min)(window.begin, activity.begin) : activity.begin;
        window.end = any ? (std::max)(window.end, activity.end) : activity.end;
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
    constexpr Cause all[] = {kernel, copy, set, communication, kernel}; // of a graph, too
    return kind <= ActivityKind::graph ? all[static_cast<std::size_t>(kind)] : kernel;
}

/// Which spans say that a batch was waited for. In a pipeline's timeline that is what the thread that submits waits, or fills
/// itself; that workers fill batches ahead, or wait for slots, delays no other thread.
class SourceRows {
public:
    explicit SourceRows(const Timeline& timeline) {
        for (std::size_t row = 0; row < timeline.rows().size(); ++row) {
            const TimelineRow& at = timeline.rows()[row];
            if (at.unit == "CPU" && at.name == "submit")
                submit_ = row;
            workers_ = workers_ || (at.unit == "CPU" && at.name.starts_with("source "));
        }
    }
    bool waits_for_source(const TimelineSpan& span) const {
        if (span.kind == SpanKind::wait)
            return submit_ == TimelineReport::no_row || span.row == submit_;
        // With workers, what is on the row of `submit` is calls of it.
        return span.kind == SpanKind::source &&
               (submit_ == TimelineReport::no_row || (span.row == submit_ && !workers_));
    }

private:
    std::size_t submit_ = TimelineReport::no_row;
    bool workers_ = false;
};

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
        const SourceRows rows(*timeline);
        for (const TimelineSpan& span : timeline->spans()) {
            if (rows.waits_for_source(span))
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
            entry->second.begin = (std::min)(entry->second.begin, span.begin);
            entry->second.end = (std::max)(entry->second.end, span.end);
        }
    }
    std::vector<StageSpan> at_work;
    at_work.reserve(batches.size());
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

/// What was noted of the stages by events, to be compared with what ran.
inline void look_at_events(const Timeline& timeline, ActivityReport& report) {
    const TimelineReport noted = report_of(timeline);
    report.noted_overlap = noted.overlap;
    for (StageActivity& stage : report.stages) {
        for (const RowReport& row : noted.rows) {
            if (row.name == stage.name && row.unit != "CPU")
                stage.noted_share = row.share;
        }
    }
}

inline void look_at_tensor_cores(ActivityReport& report) {
    double all = 0;
    double present = 0;
    double unknown = 0;
    for (const KernelTotal& kernel : report.kernels) {
        if (kernel.kind == ActivityKind::copy || kernel.kind == ActivityKind::set)
            continue;
        all += kernel.total;
        present += kernel.tensor_cores == TensorCores::present ? kernel.total : 0;
        unknown += kernel.tensor_cores == TensorCores::unknown ? kernel.total : 0;
    }
    report.tensor_core_share = all > 0 ? present / all : 0;
    report.tensor_core_unknown = all > 0 ? unknown / all : 1;
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
        if (name < activities.tensor_cores.size())
            total.tensor_cores = activities.tensor_cores[name];
        sorted.emplace_back(stage, std::move(total));
    }
    std::stable_sort(sorted.begin(), sorted.end(), [](const auto& a, const auto& b) {
        return a.first != b.first ? a.first < b.first : a.second.total > b.second.total;
    });
    for (auto& [stage, total] : sorted)
        report.kernels.push_back(std::move(total));
    look_at_tensor_cores(report);
}

} // namespace detail::device_activity

inline ActivityReport report_of(const DeviceActivities& activities, const ActivityReportOptions& options) {
    namespace parts = detail::device_activity;
    if (!(options.slowdown >= 0 && options.slowdown <= (std::numeric_limits<double>::max)())) {
        throw Error("ActivityReportOptions::slowdown is " + detail::numbers::shortest(options.slowdown) +
                    "; expected how many times as long a step took, or 0 where that is not known");
    }
    parts::require_finite(activities, "report_of");
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
    if (options.timeline != nullptr)
        parts::look_at_events(*options.timeline, report);
    return report;
}

} // namespace sluice
