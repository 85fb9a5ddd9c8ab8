// Bodies of assign_to_stages and add_rows, of device_activity.hpp.
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

/// That times of activities and calls are finite: others have no order.
inline void require_finite(const DeviceActivities& activities, const char* function) {
    const auto require = [function](const char* what, double begin, double end) {
        if (begin - begin != 0 || end - end != 0)
            throw Error(std::string(function) + ": " + what + " lasts from " + numbers::shortest(begin) +
                        " us to " + numbers::shortest(end) + " us; expected finite times");
    };
    for (const DeviceActivity& activity : activities.activities)
        require("an activity", activity.begin, activity.end);
    for (const HostCall& call : activities.calls)
        require("a call of the host's", call.begin, call.end);
}

inline std::string unit_of(int device) { return "GPU " + std::to_string(device); }

/// The spans of a row in the order of their begins.
class RowSpans {
public:
    void add(const TimelineSpan& span) {
        longest_ = (std::max)(longest_, span.end - span.begin);
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
            const double away = (std::max)({0.0, span->begin - time, time - span->end});
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

    /// The row of a stage; a stage on another device than the activity has none of it.
    bool can_be(std::size_t row, const DeviceActivity& activity) const {
        const std::string& unit = timeline.rows()[row].unit;
        return unit != "CPU" && (!unit.starts_with("GPU ") || unit == unit_of(activity.device));
    }
    /// Whether the row stands for graphs of all stages, as `timeline_of` names them.
    bool is_graphs(std::size_t row) const { return timeline.rows()[row].name == "graphs"; }
    const TimelineSpan* span_of(std::size_t row, const DeviceActivity& activity, double tolerance) const {
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

/// The stage that the activity can be of by its time: the only one, or `by_stream`. Unknown: none, or several.
inline std::uint32_t stage_by_time(DeviceActivities& activities, const DeviceActivity& activity,
                                   std::uint32_t by_stream, const StageRows& rows, double tolerance) {
    std::size_t count = 0;
    std::size_t only = 0;
    for (std::size_t row = 0; row < rows.spans.size(); ++row) {
        if (!rows.can_be(row, activity) || rows.is_graphs(row) || !rows.span_of(row, activity, tolerance))
            continue;
        if (by_stream != DeviceActivity::unknown &&
            activities.stages[by_stream] == rows.timeline.rows()[row].name)
            return by_stream;
        ++count;
        only = row;
    }
    return count == 1 ? stage_named(activities, rows.timeline.rows()[only].name) : DeviceActivity::unknown;
}

/// The batch of an activity whose stage is known, by the stage's row, or by that of the graphs.
inline std::uint32_t batch_by_time(const DeviceActivity& activity, const std::string& stage,
                                   const StageRows& rows, double tolerance) {
    for (std::size_t row = 0; row < rows.spans.size(); ++row) {
        if (!rows.can_be(row, activity) || (rows.timeline.rows()[row].name != stage && !rows.is_graphs(row)))
            continue;
        if (const TimelineSpan* const span = rows.span_of(row, activity, tolerance))
            return static_cast<std::uint32_t>(span->batch);
    }
    return DeviceActivity::unknown;
}

} // namespace detail::device_activity

inline void assign_to_stages(DeviceActivities& activities, const Timeline& timeline, double tolerance) {
    namespace parts = detail::device_activity;
    if (!(tolerance >= 0 && tolerance - tolerance == 0))
        throw Error("assign_to_stages: the tolerance is " + detail::numbers::shortest(tolerance) +
                    " us; expected a finite time of 0 or more");
    if (timeline.spans().empty())
        return;
    parts::require_clock(timeline, "assign_to_stages");
    parts::require_finite(activities, "assign_to_stages");
    for (const DeviceActivity& activity : activities.activities) {
        if (activity.stage >= activities.stages.size() && activity.stage != DeviceActivity::unknown)
            throw Error("assign_to_stages: an activity is of stage " + std::to_string(activity.stage) +
                        ", and DeviceActivities::stages has " +
                        detail::counted(activities.stages.size(), "name") +
                        "; expected one of them, or DeviceActivity::unknown");
    }
    const parts::StageRows rows{timeline, parts::spans_by_row(timeline)};
    const auto of_streams = parts::stages_of_streams(activities);
    for (DeviceActivity& activity : activities.activities) {
        const auto of_stream = of_streams.find({activity.device, activity.stream});
        const std::uint32_t by_stream =
            of_stream == of_streams.end() ? DeviceActivity::unknown : of_stream->second;
        // What lies inside of a span needs no tolerance, which neighbours would have as well.
        for (const double within : {0.0, tolerance}) {
            if (activity.stage == DeviceActivity::unknown)
                activity.stage = parts::stage_by_time(activities, activity, by_stream, rows, within);
        }
        if (activity.stage == DeviceActivity::unknown)
            continue;
        for (const double within : {0.0, tolerance}) {
            if (activity.batch == DeviceActivity::unknown)
                activity.batch =
                    parts::batch_by_time(activity, activities.stages[activity.stage], rows, within);
        }
    }
}

inline void add_rows(Timeline& timeline, const DeviceActivities& activities) {
    namespace parts = detail::device_activity;
    parts::require_finite(activities, "add_rows");
    double begin = -1e300;
    double end = 1e300;
    if (!timeline.spans().empty()) {
        parts::require_clock(timeline, "add_rows");
        begin = timeline.begin();
        end = timeline.end();
    } else if (!timeline.values().empty()) {
        parts::require_clock(timeline, "add_rows");
    } else if (!activities.activities.empty()) {
        double zero = activities.activities.front().begin;
        for (const DeviceActivity& activity : activities.activities)
            zero = (std::min)(zero, activity.begin);
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

} // namespace sluice
