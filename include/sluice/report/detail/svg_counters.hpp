// A counter in a picture: a step line with a filled area below it.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include <sluice/report/detail/counter_steps.hpp>
#include <sluice/report/detail/drawing_text.hpp>
#include <sluice/report/detail/timeline_axis.hpp>

namespace sluice::detail::drawing {

/// The steps that are seen, the first and the last cut to the range. Each holds until the next, the last until `end`.
struct CounterView {
    static constexpr double height = 44; ///< Pixels of its row.
    static constexpr double base = 40;   ///< Where the lowest of the scale is; the highest is at 5.

    std::vector<counters::Step> steps;
    double end = 0;
    double low = 0;  ///< The scale's: 0, or less where values are.
    double high = 0; ///< Likewise: the highest value that is seen, or 0.

    /// Pixels below the row's top.
    double y_of(double value) const {
        // Divided before they are subtracted: the scale may be as long as all doubles.
        const double unit = high / 2 - low / 2 > 0 ? high / 2 - low / 2 : 1;
        return base - (value / 2 - low / 2) / unit * (base - 5);
    }
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
/// and the last. `x_of` gives a time's place.
template <class XOf>
std::string step_path(const CounterView& view, double top, const XOf& x_of) {
    const auto y = [&](double value) { return trimmed(top + view.y_of(value)); };
    std::string path = "M" + trimmed(x_of(view.steps[0].time)) + ' ' + y(view.steps[0].value);
    for (std::size_t i = 0; i < view.steps.size();) {
        const double x = x_of(view.steps[i].time);
        double low = view.steps[i].value;
        double high = low;
        double last = low;
        std::size_t next = i + 1;
        for (; next < view.steps.size() && x_of(view.steps[next].time) < x + 0.5; ++next) {
            last = view.steps[next].value;
            low = last < low ? last : low;
            high = last > high ? last : high;
        }
        if (i > 0)
            path += "H" + trimmed(x) + "V" + y(view.steps[i].value);
        if (next - i > 2)
            path += "V" + y(high) + "V" + y(low);
        if (next - i > 1)
            path += "V" + y(last);
        i = next;
    }
    return path + "H" + trimmed(x_of(view.end));
}

/// A counter's line and area, and what is shown beside the pointer: the value of each step, where they are not too many.
template <class XOf>
std::string draw_counter(const TimelineCounter& counter, const CounterView& view, double top,
                         const XOf& x_of) {
    if (view.steps.empty())
        return {};
    const std::string line = step_path(view, top, x_of);
    std::string drawn = "<path class=\"area\" d=\"" + line + "V" + trimmed(top + CounterView::base) + "H" +
                        trimmed(x_of(view.steps.front().time)) + "Z\"/>\n<path class=\"line\" d=\"" + line +
                        "\"/>\n";
    constexpr std::size_t most_titles = 400;
    const bool each = view.steps.size() <= most_titles;
    for (std::size_t i = 0; i < (each ? view.steps.size() : 1); ++i) {
        const bool last = !each || i + 1 == view.steps.size();
        const double x = x_of(view.steps[i].time);
        drawn +=
            svg_rect(x, top, x_of(last ? view.end : view.steps[i + 1].time) - x, CounterView::height, "hit",
                     counter.name + ": " +
                         (each ? counters::value_text(view.steps[i].value, counter.unit) + " from " +
                                     time_text(view.steps[i].time) + " on"
                               : scale_text(view, counter.unit)));
    }
    return drawn;
}

} // namespace sluice::detail::drawing
