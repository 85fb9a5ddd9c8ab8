// Bodies of counters_of and to_table, of device_counters.hpp.
#pragma once

#include <algorithm>
#include <utility>

namespace sluice {

namespace detail::device_counters {

/// A stretch of time in which one stage alone ran.
struct Alone {
    double begin;
    double end;
    std::uint32_t stage;
};

/// In the order of time. Work of no known stage counts as another one's.
inline std::vector<Alone> stretches_alone(const DeviceActivities& activities, int device) {
    struct Edge {
        double time;
        std::size_t stage;
        int step;
    };
    const std::size_t unknown = activities.stages.size();
    std::vector<Edge> edges;
    for (const DeviceActivity& activity : activities.activities) {
        if (activity.device != device || !(activity.begin < activity.end))
            continue;
        const std::size_t stage = activity.stage < unknown ? activity.stage : unknown;
        edges.push_back({activity.begin, stage, 1});
        edges.push_back({activity.end, stage, -1});
    }
    std::sort(edges.begin(), edges.end(), [](const Edge& a, const Edge& b) { return a.time < b.time; });
    std::vector<int> running(unknown + 1, 0);
    std::size_t stages = 0;
    std::vector<Alone> result;
    double at = 0;
    for (const Edge& edge : edges) {
        if (stages == 1 && edge.time > at) {
            const auto stage =
                std::find_if(running.begin(), running.end(), [](int count) { return count > 0; });
            const auto index = static_cast<std::size_t>(stage - running.begin());
            if (index < unknown)
                result.push_back({at, edge.time, static_cast<std::uint32_t>(index)});
        }
        at = edge.time;
        int& count = running[edge.stage];
        const bool ran = count > 0; // below 0 for a moment, where an end and a begin have one time
        count += edge.step;
        stages += static_cast<std::size_t>(count > 0 ? 1 : 0) - static_cast<std::size_t>(ran ? 1 : 0);
    }
    return result;
}

inline void add(CounterMeans& to, const CounterSample& sample, double time) {
    to.time += time;
    to.sm_active += time * sample.sm_active;
    to.tensor_cores += time * sample.tensor_cores;
    to.memory += time * sample.memory;
}

inline void divide(CounterMeans& means) {
    if (means.time > 0) {
        means.sm_active /= means.time;
        means.tensor_cores /= means.time;
        means.memory /= means.time;
    }
}

} // namespace detail::device_counters

inline DeviceCounterReport counters_of(const DeviceCounters& counters, const DeviceActivities& activities,
                                       double begin, double end) {
    namespace parts = detail::device_counters;
    DeviceCounterReport report;
    report.overflowed = counters.overflowed;
    report.uncertainty = counters.uncertainty;
    std::vector<CounterMeans> stages(activities.stages.size());
    const std::vector<parts::Alone> alone = parts::stretches_alone(activities, counters.device);
    std::size_t first = 0; // the first stretch that may reach into the sample
    for (const CounterSample& sample : counters.samples) {
        const double from = end > begin ? std::max(sample.begin, begin) : sample.begin;
        const double to = end > begin ? std::min(sample.end, end) : sample.end;
        if (!(from < to))
            continue;
        parts::add(report.all, sample, to - from);
        while (first < alone.size() && alone[first].end <= from)
            ++first;
        for (std::size_t i = first; i < alone.size() && alone[i].begin < to; ++i)
            parts::add(stages[alone[i].stage], sample,
                       std::min(to, alone[i].end) - std::max(from, alone[i].begin));
    }
    parts::divide(report.all);
    for (std::size_t i = 0; i < stages.size(); ++i) {
        if (!(stages[i].time > 0))
            continue;
        parts::divide(stages[i]);
        stages[i].stage = activities.stages[i];
        report.stages.push_back(std::move(stages[i]));
    }
    return report;
}

inline std::string to_table(const DeviceCounterReport& report) {
    namespace table = detail::timeline_table;
    namespace text = detail::device_activity_text;
    const table::TimeUnit unit = table::unit_for(report.all.time);
    std::string result = "counters          ";
    text::add_right(result, unit.name, 10);
    result += "  SMs active %  Tensor Cores %  memory %\n";
    const auto add = [&](const std::string& name, const CounterMeans& means) {
        std::string line;
        table::add_left(line, name, 18);
        text::add_right(line, table::four_digits(means.time / unit.microseconds), 10);
        text::add_right(line, text::percent(means.sm_active), 14);
        text::add_right(line, text::percent(means.tensor_cores), 16);
        text::add_right(line, text::percent(means.memory), 10);
        result += line + '\n';
    };
    add("all of the time", report.all);
    for (const CounterMeans& stage : report.stages)
        add(stage.stage, stage);
    if (!report.stages.empty())
        result += "A stage's means are of the time in which it ran alone.\n";
    if (report.overflowed)
        result += "Samples were lost, because there was no room for them.\n";
    return result;
}

} // namespace sluice
