// Counters of a timeline as step lines, and their values as text.
#pragma once

#include <algorithm>
#include <cstddef>
#include <string>
#include <vector>

#include <sluice/report/detail/numbers.hpp>
#include <sluice/report/timeline.hpp>

namespace sluice::detail::counters {

/// From `time` on a counter has `value`.
struct Step {
    double time;
    double value;
};

/// By counter: its values by time, one for each time.
inline std::vector<std::vector<Step>> steps_of(const Timeline& timeline) {
    std::vector<std::vector<Step>> all(timeline.counters().size());
    for (const TimelineValue& value : timeline.values())
        all[value.counter].push_back({value.time, value.value});
    for (std::vector<Step>& steps : all) {
        std::stable_sort(steps.begin(), steps.end(),
                         [](const Step& a, const Step& b) { return a.time < b.time; });
        std::size_t kept = 0;
        for (std::size_t i = 0; i < steps.size(); ++i) {
            if (kept > 0 && steps[kept - 1].time == steps[i].time)
                --kept; // the last that was added holds
            steps[kept++] = steps[i];
        }
        steps.resize(kept);
    }
    return all;
}

/// A value with its unit: "1.5 GiB" for bytes, "3 W" for others.
inline std::string value_text(double value, const std::string& unit) {
    if (unit != "B")
        return numbers::number_text(value) + (unit.empty() ? "" : " " + unit);
    constexpr const char* names[] = {"B", "KiB", "MiB", "GiB", "TiB"};
    std::size_t name = 0;
    for (; name < 4 && (value >= 1024 || value <= -1024); ++name)
        value /= 1024;
    return numbers::number_text(value) + ' ' + names[name];
}

} // namespace sluice::detail::counters
