// How timelines are laid out, in pictures and on pages: from the top to the bottom here, along the time by what draws them.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include <sluice/report/detail/counter_steps.hpp>
#include <sluice/report/detail/drawing_text.hpp>
#include <sluice/report/detail/timeline_axis.hpp>
#include <sluice/report/detail/timeline_lanes.hpp>

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

/// An edge's end, or its begin.
struct EdgeEnd {
    std::size_t row = 0;
    std::size_t lane = 0;
    double time = 0;
};
struct PlacedEdge {
    EdgeEnd from, to;
    const MissingEdge* edge = nullptr;
};

/// A row's work on a batch: where it ends last, or begins first. Null where there is none.
inline const Placed* work_on(const Lanes& row, std::size_t batch, bool last) {
    const Placed* found = nullptr;
    for (const Placed& placed : row.spans) {
        if (placed.span.batch != batch || placed.span.kind == SpanKind::wait)
            continue;
        if (found == nullptr || (last && placed.span.end > found->span.end))
            found = &placed;
    }
    return found;
}

/// Those missing edges of which both spans are among `lanes`.
inline std::vector<PlacedEdge> edges_of(const Timeline& timeline, const std::vector<Lanes>& lanes) {
    std::vector<PlacedEdge> edges;
    for (const MissingEdge& edge : timeline.missing_edges()) {
        const Placed* const from = work_on(lanes[edge.from_row], edge.from_batch, true);
        const Placed* const to = work_on(lanes[edge.to_row], edge.to_batch, false);
        if (from != nullptr && to != nullptr) {
            edges.push_back({{edge.from_row, from->lane, from->span.end},
                             {edge.to_row, to->lane, to->span.begin},
                             &edge});
        }
    }
    return edges;
}

/// How high a row and its lanes are drawn, in pixels.
struct RowShape {
    static constexpr std::size_t most_lanes = 100; ///< More would be no picture.

    std::size_t lanes = 1;
    double lane_height = 18;
    bool crowded = false; ///< Whether the last lane holds spans that more lanes would be needed for.

    RowShape() = default;
    explicit RowShape(const Lanes& row) : lanes(row.count), crowded(row.count > most_lanes) {
        lanes = crowded ? most_lanes : lanes;
        const double even = 56 / static_cast<double>(lanes);
        if (lanes > 1)
            lane_height = even > 14 ? 14 : even < 4 ? 4 : even;
    }
    /// The lane in which a span of `lane` is drawn.
    std::size_t shown(std::size_t lane) const { return lane < lanes ? lane : lanes - 1; }
    double top_of(std::size_t lane) const { return 3 + static_cast<double>(lane) * (lane_height + 1); }
    double height() const { return top_of(lanes) + 2; }
};

/// One rectangle.
struct Block {
    TimelineSpan span;     ///< For several spans: from the first begin to the last end.
    std::size_t spans = 1; ///< How many it stands for.
    bool narrow = false;   ///< Whether all of them are narrower than a quarter of a pixel.
};

/// A row's blocks by lane.
struct BlockRow {
    std::vector<std::vector<Block>> lanes;
    bool merged = false; ///< Whether a block stands for several narrow spans.
};

/// Joins narrow neighbours of one lane that are less than `quarter` microseconds apart.
inline bool merge_narrow(std::vector<Block>& lane, double quarter) {
    std::size_t kept = 0;
    for (std::size_t i = 0; i < lane.size(); ++i) {
        const Block block = lane[i];
        if (kept > 0 && block.narrow && lane[kept - 1].narrow &&
            block.span.begin - lane[kept - 1].span.end < quarter) {
            lane[kept - 1].span.end = block.span.end;
            lane[kept - 1].spans += block.spans;
        } else {
            lane[kept++] = block;
        }
    }
    const bool merged = kept < lane.size();
    lane.resize(kept);
    return merged;
}

/// The blocks of one row. `quarter` is a quarter of a pixel in microseconds.
inline BlockRow blocks_of(const Lanes& row, const RowShape& shape, double quarter, bool merge) {
    BlockRow drawn;
    drawn.lanes.resize(shape.lanes);
    for (const Placed& placed : row.spans) {
        const Block block{placed.span, 1, placed.span.end - placed.span.begin < quarter};
        std::vector<Block>& lane = drawn.lanes[shape.shown(placed.lane)];
        if (!lane.empty() && block.span.begin < lane.back().span.end) { // in the last of a crowded row alone
            Block& crowd = lane.back();
            crowd.span.end = crowd.span.end > block.span.end ? crowd.span.end : block.span.end;
            crowd.spans += 1;
            crowd.narrow = crowd.narrow && block.narrow;
        } else {
            lane.push_back(block);
        }
    }
    if (merge) {
        for (std::vector<Block>& lane : drawn.lanes)
            drawn.merged = merge_narrow(lane, quarter) || drawn.merged;
    }
    return drawn;
}

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

/// An arrow with a text for the pointer, and more attributes. Of a page its script makes the same paths.
inline std::string edge_group(const std::string& text, const std::string& curve, const std::string& head,
                              const std::string& more = {}) {
    return "<g class=\"order\"" + more + "><title>" + escape_xml(text) + "</title><path class=\"wide\" d=\"" +
           curve + "\"/><path class=\"edge\" d=\"" + curve + "\"/><path class=\"head\" d=\"" + head +
           "\"/></g>\n";
}

/// A curve that leaves to the right and comes from the left, with a head.
inline std::string draw_edge(const std::string& text, double x1, double y1, double x2, double y2) {
    const double apart = x2 > x1 ? x2 - x1 : x1 - x2;
    const double reach = apart / 2 > 24 ? apart / 2 : 24;
    const double sag = y1 == y2 ? 12 : 0; // or the arrow would lie on its row
    const auto at = [](double x, double y) { return trimmed(x) + ' ' + trimmed(y); };
    return edge_group(text,
                      'M' + at(x1, y1) + 'C' + at(x1 + reach, y1 + sag) + ' ' + at(x2 - reach, y2 + sag) +
                          ' ' + at(x2 - 6, y2),
                      'M' + at(x2, y2) + "l-8 -4v8z");
}

} // namespace sluice::detail::drawing
