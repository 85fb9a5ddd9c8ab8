// Counters of a timeline as step lines, and their values as text.
#pragma once

#include <algorithm>
#include <charconv>
#include <cstddef>
#include <string>
#include <vector>

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

/// Four digits of `value`, without zeros at the end: "0.5", "12.25", "123456", "1.235e+09".
inline std::string number_text(double value) {
    const double size = value < 0 ? -value : value;
    char digits[32]; // 7 digits before the point, 4 behind it, or a mantissa and an exponent
    const bool plain = size < 999999.5;
    const int decimals = !plain || size < 9.9995 ? 3 : size < 99.995 ? 2 : size < 999.95 ? 1 : 0;
    const std::to_chars_result result =
        std::to_chars(digits, digits + sizeof digits, value,
                      plain ? std::chars_format::fixed : std::chars_format::scientific, decimals);
    std::string text(digits, result.ptr);
    if (plain && decimals > 0) {
        text.resize(text.find_last_not_of('0') + 1);
        text.resize(text.back() == '.' ? text.size() - 1 : text.size());
    }
    return text == "-0" ? "0" : text;
}

/// A value with its unit: "1.5 GiB" for bytes, "3 W" for others.
inline std::string value_text(double value, const std::string& unit) {
    if (unit != "B")
        return number_text(value) + (unit.empty() ? "" : " " + unit);
    constexpr const char* names[] = {"B", "KiB", "MiB", "GiB", "TiB"};
    std::size_t name = 0;
    for (; name < 4 && (value >= 1024 || value <= -1024); ++name)
        value /= 1024;
    return number_text(value) + ' ' + names[name];
}

} // namespace sluice::detail::counters
