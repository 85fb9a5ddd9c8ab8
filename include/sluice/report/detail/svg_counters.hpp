// A counter in a picture: a step line with a filled area below it.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include <sluice/report/detail/counter_steps.hpp>
#include <sluice/report/detail/drawing_text.hpp>
#include <sluice/report/detail/timeline_axis.hpp>

namespace sluice::detail::drawing {

/// Where a counter is drawn, in pixels, and what part of time is seen there.
struct CounterPlace {
    TimeRange range;
    double left;
    double top;
    double pixels_per_us;

    static constexpr double height = 44;
    static constexpr double base =
        40; ///< Where the lowest of the scale is, below `top`; the highest is at 5.
    double x_of(double time) const { return left + (time - range.begin) * pixels_per_us; }
};

/// The steps that are seen, the first and the last cut to the range. Each holds until the next, the last until `end`.
struct CounterView {
    std::vector<counters::Step> steps;
    double end = 0;
    double low = 0;  ///< The scale's: 0, or less where values are.
    double high = 0; ///< Likewise: the highest value that is seen, or 0.
};

inline CounterView view_of(const std::vector<counters::Step>& steps, TimeRange range, double timeline_end) {
    CounterView view;
    view.end = !steps.empty() && steps.back().time > timeline_end ? steps.back().time : timeline_end;
    if (view.end < range.begin)
        return view;
    view.end = view.end < range.end ? view.end : range.end;
    for (std::size_t i = 0; i < steps.size(); ++i) {
        if (steps[i].time > range.end || (i + 1 < steps.size() && steps[i + 1].time <= range.begin))
            continue;
        counters::Step step = steps[i];
        step.time = step.time < range.begin ? range.begin : step.time;
        view.low = step.value < view.low ? step.value : view.low;
        view.high = step.value > view.high ? step.value : view.high;
        view.steps.push_back(step);
    }
    return view;
}

/// The scale of a counter, for the place beside it.
inline std::string scale_text(const CounterView& view, const std::string& unit) {
    if (view.steps.empty())
        return "no values";
    return (view.low < 0 ? counters::value_text(view.low, unit) : "0") + " to " +
           counters::value_text(view.high, unit);
}

/// The line as a path: across to each step, then up or down. Of several steps in half a pixel it has the highest, the lowest
/// and the last.
inline std::string step_path(const CounterView& view, const CounterPlace& place) {
    // Divided before they are subtracted: the scale may be as long as all doubles.
    const double unit = view.high / 2 - view.low / 2 > 0 ? view.high / 2 - view.low / 2 : 1;
    const auto y_of = [&](double value) {
        return place.top + CounterPlace::base - (value / 2 - view.low / 2) / unit * (CounterPlace::base - 5);
    };
    std::string path = "M" + fixed(place.x_of(view.steps[0].time)) + ' ' + fixed(y_of(view.steps[0].value));
    const auto to = [&](double value) { path += "V" + fixed(y_of(value)); };
    for (std::size_t i = 0; i < view.steps.size();) {
        const double x = place.x_of(view.steps[i].time);
        double low = view.steps[i].value;
        double high = low;
        double last = low;
        std::size_t next = i + 1;
        for (; next < view.steps.size() && place.x_of(view.steps[next].time) < x + 0.5; ++next) {
            last = view.steps[next].value;
            low = last < low ? last : low;
            high = last > high ? last : high;
        }
        if (i > 0) {
            path += "H" + fixed(x);
            to(view.steps[i].value);
        }
        if (next - i > 2) {
            to(high);
            to(low);
        }
        if (next - i > 1)
            to(last);
        i = next;
    }
    return path + "H" + fixed(place.x_of(view.end));
}

/// A counter's line and area, and what is shown beside the pointer: the value of each step, where they are not too many.
inline std::string draw_counter(const TimelineCounter& counter, const CounterView& view,
                                const CounterPlace& place) {
    if (view.steps.empty())
        return {};
    const std::string line = step_path(view, place);
    const double first = place.x_of(view.steps.front().time);
    std::string drawn = "<path class=\"area\" d=\"" + line + "V" + fixed(place.top + CounterPlace::base) +
                        "H" + fixed(first) + "Z\"/>\n<path class=\"line\" d=\"" + line + "\"/>\n";
    constexpr std::size_t most_titles = 400;
    const bool each = view.steps.size() <= most_titles;
    for (std::size_t i = 0; i < (each ? view.steps.size() : 1); ++i) {
        const bool last = !each || i + 1 == view.steps.size();
        const double x = place.x_of(view.steps[i].time);
        const double width = place.x_of(last ? view.end : view.steps[i + 1].time) - x;
        drawn += "<rect x=\"" + fixed(x) + "\" y=\"" + fixed(place.top) + "\" width=\"" + fixed(width) +
                 "\" height=\"" + fixed(CounterPlace::height) + "\" class=\"hit\"><title>" +
                 escape_xml(counter.name) + ": " +
                 (each ? counters::value_text(view.steps[i].value, counter.unit) + " from " +
                             time_text(view.steps[i].time) + " on"
                       : scale_text(view, counter.unit)) +
                 "</title></rect>\n";
    }
    return drawn;
}

} // namespace sluice::detail::drawing
