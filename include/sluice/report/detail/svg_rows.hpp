// How timelines are laid out, in pictures and on pages: from the top to the bottom here, along the time by what draws them.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include <sluice/report/detail/svg_blocks.hpp>
#include <sluice/report/detail/svg_counters.hpp>
#include <sluice/report/detail/timeline_axis.hpp>
#include <sluice/report/detail/timeline_edges.hpp>
#include <sluice/report/detail/timeline_lanes.hpp>

namespace sluice::detail::drawing {

inline constexpr double free_right = 16; ///< Pixels free at the right, for half of the last tick's number.

/// The time that `timelines` are about: of their spans, or of their counters' values where there are none; or as it is said.
inline TimeRange range_of(const std::vector<const Timeline*>& timelines,
                          std::optional<double> begin = std::nullopt,
                          std::optional<double> end = std::nullopt) {
    TimeRange range;
    bool any = false;
    const auto hold = [&](double first, double last) {
        range.begin = any && range.begin < first ? range.begin : first;
        range.end = any && range.end > last ? range.end : last;
        any = true;
    };
    for (const Timeline* timeline : timelines) {
        if (!timeline->spans().empty())
            hold(timeline->begin(), timeline->end());
    }
    const bool counters_alone = !any;
    for (const Timeline* timeline : timelines) {
        for (std::size_t i = 0; counters_alone && i < timeline->values().size(); ++i)
            hold(timeline->values()[i].time, timeline->values()[i].time);
    }
    if (!any)
        range = {0, begin ? *begin + 1 : 1};
    range.begin = begin.value_or(range.begin);
    if (end) {
        range.end = *end;
    } else if (range.end >= range.begin) {
        // A range that an axis can divide: all spans may begin and end at one time.
        const double size = range.begin < 0 ? -range.begin : range.begin;
        const double least = size * 1e-11 > 1e-3 ? size * 1e-11 : 1e-3;
        range.end = range.end - range.begin < least ? range.begin + least : range.end;
    }
    return range;
}

/// How many pixels the longest name needs at the left.
inline double names_width(const std::vector<const Timeline*>& timelines) {
    double widest = 50; // for the axis' unit
    const auto hold = [&](double width) { widest = width > widest ? width : widest; };
    for (const Timeline* timeline : timelines) {
        for (const TimelineRow& row : timeline->rows())
            hold(text_width(row.name));
        for (const TimelineCounter& counter : timeline->counters())
            hold(text_width(counter.name) > 100 ? text_width(counter.name) : 100); // for its scale
    }
    return widest + 22;
}

/// A row of spans, and a counter, with the place of its top.
struct RowPlace {
    const TimelineRow& row;
    const Lanes& lanes;
    RowShape shape;
    double top;
    bool striped;
};
struct CounterPlace {
    const TimelineCounter& counter;
    CounterView view;
    double top;
};

/// Timelines below each other: titles, units, rows, counters, and edges. It writes what stands at the left, and has
/// `Plot` draw what stands at a time: `draw(RowPlace)`, `draw(CounterPlace)`, `draw(PlacedEdge, y, y)`.
template <class Plot>
class TimelineRows {
public:
    /// Names get `left` pixels of `width`.
    TimelineRows(Plot& plot, TimeRange range, double width, double left)
        : plot_(plot), range_(range), width_(width), left_(left) {}

    /// `lanes` are the timeline's.
    void add(const Timeline& timeline, const std::vector<Lanes>& lanes, bool titled = true) {
        y_ += 10;
        if (titled && !timeline.title().empty()) {
            names_ += svg_text(12, y_ + 14, "title", timeline.title(), (width_ - 24) / 1.2);
            y_ += 24;
        }
        bool striped = true;
        std::vector<double> tops(lanes.size());
        for (const Unit& unit : units_of(timeline)) {
            if (!unit.name.empty()) {
                names_ += svg_text(12, y_ + 12, "unit", unit.name, width_ - 24);
                y_ += 18;
            } else if (unit.rows.front() != 0) {
                y_ += 12; // apart from the unit above
            }
            for (const std::size_t row : unit.rows) {
                tops[row] = y_;
                add_row({timeline.rows()[row], lanes[row], RowShape(lanes[row]), y_, striped});
                striped = !striped;
            }
        }
        const auto middle = [&](const EdgeEnd& end) {
            const RowShape shape(lanes[end.row]);
            return tops[end.row] + shape.top_of(shape.shown(end.lane)) + shape.lane_height / 2;
        };
        for (const PlacedEdge& edge : edges_of(timeline, lanes))
            plot_.draw(edge, middle(edge.from), middle(edge.to));
        const std::vector<std::vector<counters::Step>> steps = counters::steps_of(timeline);
        const double end = timeline.spans().empty() ? range_.end : timeline.end();
        for (std::size_t i = 0; i < steps.size(); ++i)
            add_counter({timeline.counters()[i], view_of(steps[i], range_, end), y_ + 6});
    }

    double height() const { return y_; }
    const std::string& names() const { return names_; }

private:
    void add_row(const RowPlace& place) {
        names_ += svg_text(12, y_ + place.shape.height() / 2 + 4, "", place.row.name, left_ - 22);
        plot_.draw(place);
        y_ += place.shape.height();
    }
    void add_counter(const CounterPlace& place) {
        const std::string scale = scale_text(place.view, place.counter.unit);
        names_ += svg_text(12, place.top + 18, "", place.counter.name, left_ - 22) +
                  svg_text(12, place.top + 34, "muted", scale, left_ - 22);
        plot_.draw(place);
        y_ = place.top + CounterView::height;
    }

    Plot& plot_;
    TimeRange range_;
    double width_;
    double left_;
    double y_ = 4; ///< Where the next thing is drawn.
    std::string names_;
};

} // namespace sluice::detail::drawing
