// Bodies of svg.hpp.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include <sluice/report/detail/drawing_text.hpp>
#include <sluice/report/detail/svg_rows.hpp>
#include <sluice/report/detail/svg_style.hpp>
#include <sluice/report/detail/write_file.hpp>
#include <sluice/report/timeline_report.hpp>

namespace sluice::detail::drawing {

/// Draws what stands at a time in a picture, which shows one range of it.
class PicturePlot {
public:
    PicturePlot(TimeRange range, const SvgOptions& options, double left)
        : range_(range), left_(left), right_(options.width - free_right) {
        pixels_per_us_ = (right_ - left_) / (range.end - range.begin);
        axis_ = axis_of(range, 70 / pixels_per_us_);
    }

    void draw(const RowPlace& place) {
        if (place.striped)
            body_ += svg_rect(left_, place.top, right_ - left_, place.shape.height(), "stripe");
        draw_grid(place.top, place.shape.height());
        const BlockRow row = blocks_of(place.lanes, place.shape, 0.25 / pixels_per_us_, merges);
        merged = merged || row.merged;
        crowded = crowded || place.shape.crowded;
        for (std::size_t lane = 0; lane < row.lanes.size(); ++lane) {
            for (const Block& block : row.lanes[lane])
                draw_block(place.row.name, block, place.top + place.shape.top_of(lane),
                           place.shape.lane_height);
        }
    }

    void draw(const CounterPlace& place) {
        draw_grid(place.top, CounterView::height);
        const double base = place.top + CounterView::base;
        body_ += svg_line(left_, base, right_, base, "grid") +
                 draw_counter(place.counter, place.view, place.top, [&](double time) { return x_of(time); });
    }

    void draw(const PlacedEdge& edge, double y_from, double y_to) {
        body_ += draw_edge(edge.edge->text, x_of(edge.from.time), y_from, x_of(edge.to.time), y_to);
        ++edges;
    }

    void draw_axis(double y) {
        body_ += svg_line(left_, y, right_, y, "axis");
        for (const Tick& tick : axis_.ticks) {
            const double x = x_of(tick.at);
            body_ += svg_line(x, y, x, y + 4, "axis") + svg_text(x, y + 16, "tick", tick.text, right_);
        }
        body_ += svg_text(12, y + 16, "muted", std::string("time, ") + axis_.unit, left_);
    }

    const std::string& body() const { return body_; }

    bool merges = false;  ///< Whether narrow spans become one block.
    bool merged = false;  ///< Whether some have.
    bool crowded = false; ///< Whether a row has not room for all of its lanes.
    std::size_t edges = 0;
    SpanStyles styles;

private:
    double x_of(double time) const { return left_ + (time - range_.begin) * pixels_per_us_; }

    void draw_grid(double top, double height) {
        for (const Tick& tick : axis_.ticks)
            body_ += svg_line(x_of(tick.at), top, x_of(tick.at), top + height, "grid");
    }

    void draw_block(const std::string& name, const Block& block, double top, double height) {
        const TimelineSpan& span = block.span;
        const double x = x_of(span.begin > range_.begin ? span.begin : range_.begin);
        double width = x_of(span.end < range_.end ? span.end : range_.end) - x;
        width = width < 0.5 ? 0.5 : width;
        if (block.spans > 1) {
            body_ += svg_rect(x, top, width, height, "merged",
                              name + ", " + detail::counted(block.spans, "span") + ": from " +
                                  time_text(span.begin) + " to " + time_text(span.end));
            return;
        }
        const bool narrow = width < 3;
        const double inset = span.kind == SpanKind::wait && !narrow ? 0.5 : 0; // of an outline
        styles.note(span);
        body_ += svg_rect(x + inset, top + inset, width - 2 * inset, height - 2 * inset,
                          SpanStyles::css(span.kind, span.batch, narrow),
                          name + ", batch " + std::to_string(span.batch) + ", " + kind_text(span.kind) +
                              ": begins at " + time_text(span.begin) + ", lasts " +
                              time_text(span.end - span.begin));
        const std::string number = std::to_string(span.batch);
        if (height >= 11 && width >= static_cast<double>(number.size()) * 6.5 + 2)
            body_ += svg_text(x + width / 2, top + height / 2 + 4,
                              SpanStyles::number_css(span.kind, span.batch), number, width);
    }

    TimeRange range_;
    double left_;
    double right_;
    double pixels_per_us_ = 1;
    Axis axis_;
    std::string body_;
};

inline TimeRange checked_range(const char* who, const std::vector<const Timeline*>& timelines,
                               const SvgOptions& options) {
    const auto refuse = [&](const std::string& what) { throw Error(std::string(who) + ": " + what); };
    if (!(options.width >= 240 && options.width <= 20'000))
        refuse("the width is " + numbers::shortest(options.width) + " pixels, and must be 240 to 20000");
    check_timelines(who, timelines);
    const TimeRange range = range_of(timelines, options.begin, options.end);
    if (!(range.begin < range.end && range.begin >= -largest_time && range.end <= largest_time * 1.01))
        refuse("the axis would begin at " + numbers::shortest(range.begin) + " us and end at " +
               numbers::shortest(range.end) + " us; it must end after its begin, within 1e15 us");
    return range;
}

/// Items in lines of `width` pixels. `y` is moved below them.
inline std::string draw_legend(const std::vector<SpanStyles::LegendItem>& items, double width, double& y) {
    std::string drawn;
    double x = 12;
    for (const auto& [words, css] : items) {
        const double room = text_width(words) + (css.empty() ? 16 : 44);
        if (x > 12 && x + room > width - 12) {
            x = 12;
            y += 20;
        }
        if (!css.empty())
            drawn += svg_rect(x + 0.5, y + 6.5, 21, 11, css);
        drawn += svg_text(css.empty() ? x : x + 28, y + 16, "muted", words, width);
        x += room;
    }
    y += items.empty() ? 0 : 24;
    return drawn;
}

/// What is to be said below a picture.
inline std::vector<std::string> notes_of(const PicturePlot& plot,
                                         const std::vector<const Timeline*>& timelines, std::size_t edges,
                                         const std::string& caption) {
    std::vector<std::string> notes;
    for (const Timeline* timeline : timelines) {
        const std::string latency = timeline_table::latency_text(*timeline);
        const bool is_named = timelines.size() > 1 && !timeline->title().empty();
        if (!latency.empty())
            notes.push_back((is_named ? timeline->title() + ": " : "") + latency + '.');
    }
    if (plot.merged)
        notes.emplace_back("Spans narrower than a quarter of a pixel are merged with their neighbours.");
    if (plot.crowded)
        notes.push_back("More than " + std::to_string(RowShape::most_lanes) +
                        " spans of a row overlap; the last lane shows the others together.");
    if (edges > plot.edges)
        notes.push_back(
            "Missing edges of which a span is not in view: " + std::to_string(edges - plot.edges) + ".");
    if (!caption.empty())
        notes.push_back(caption);
    return notes;
}

inline std::string svg_picture(const char* who, const std::vector<const Timeline*>& timelines,
                               const SvgOptions& options) {
    const TimeRange range = checked_range(who, timelines, options);
    const double names = names_width(timelines);
    const double left = names < options.width * 0.3 ? names : options.width * 0.3;
    PicturePlot plot(range, options, left);
    TimelineRows<PicturePlot> rows(plot, range, options.width, left);
    std::vector<std::vector<Lanes>> lanes;
    std::size_t seen = 0;
    std::size_t edges = 0;
    std::string label = "Timeline";
    for (const Timeline* timeline : timelines) {
        lanes.push_back(lanes_of(*timeline, range.begin, range.end));
        for (const Lanes& row : lanes.back())
            seen += row.spans.size();
        edges += timeline->missing_edges().size();
        label += timeline->title().empty() ? "" : ": " + timeline->title();
    }
    plot.merges = seen > options.merge_above;
    for (std::size_t i = 0; i < timelines.size(); ++i)
        rows.add(*timelines[i], lanes[i]);
    double y = rows.height() + (timelines.empty() ? 10 : 2);
    plot.draw_axis(y);
    y += 22;
    std::string below =
        draw_legend(plot.styles.legend(plot.merged || plot.crowded, plot.edges > 0), options.width, y);
    for (const std::string& note : notes_of(plot, timelines, edges, options.caption)) {
        for (const std::string& line : timeline_text::lines_of<Pixels>(note, options.width - 24)) {
            if (!line.empty())
                below += svg_text(12, y + 14, "muted", line, options.width);
            y += line.empty() ? 0 : 17;
        }
    }
    const std::string width = trimmed(options.width);
    const std::string height = trimmed(y + 8);
    return "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"" + width + "\" height=\"" + height +
           "\" viewBox=\"0 0 " + width + ' ' + height + "\" role=\"img\"" + attribute("aria-label", label) +
           ">\n" + plot.styles.text() + "<rect width=\"100%\" height=\"100%\" rx=\"6\" class=\"bg\"/>\n" +
           rows.names() + plot.body() + below + "</svg>\n";
}

} // namespace sluice::detail::drawing

namespace sluice {

inline std::string to_svg(const std::vector<const Timeline*>& timelines, const SvgOptions& options) {
    return detail::drawing::svg_picture("to_svg", timelines, options);
}

inline std::string to_svg(const Timeline& timeline, const SvgOptions& options) {
    return to_svg(std::vector<const Timeline*>{&timeline}, options);
}

inline void write_svg(const std::vector<const Timeline*>& timelines, const std::string& path,
                      const SvgOptions& options) {
    detail::drawing::write_file("write_svg", path,
                                detail::drawing::svg_picture("write_svg", timelines, options));
}

inline void write_svg(const Timeline& timeline, const std::string& path, const SvgOptions& options) {
    write_svg(std::vector<const Timeline*>{&timeline}, path, options);
}

} // namespace sluice
