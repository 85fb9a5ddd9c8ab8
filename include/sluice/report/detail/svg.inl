// Bodies of svg.hpp.
#pragma once

#include <cstddef>
#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

#include <sluice/report/detail/drawing_text.hpp>
#include <sluice/report/detail/svg_blocks.hpp>
#include <sluice/report/detail/svg_counters.hpp>
#include <sluice/report/detail/svg_edges.hpp>
#include <sluice/report/detail/svg_style.hpp>
#include <sluice/report/detail/timeline_axis.hpp>
#include <sluice/report/detail/timeline_lanes.hpp>
#include <sluice/report/detail/write_file.hpp>

namespace sluice::detail::drawing {

/// One picture while it is drawn, from the top to the bottom.
class SvgPicture {
public:
    SvgPicture(const char* who, const std::vector<const Timeline*>& timelines, const SvgOptions& options)
        : timelines_(timelines), options_(options) {
        const auto refuse = [&](const std::string& what) { throw Error(std::string(who) + ": " + what); };
        if (!(options.width >= 240 && options.width <= 20'000))
            refuse("the width is " + std::to_string(options.width) + " pixels, and must be 240 to 20000");
        for (const Timeline* timeline : timelines) {
            if (timeline == nullptr)
                refuse("a timeline's pointer is null");
            check_times(who, *timeline);
        }
        find_range();
        if (!(range_.begin < range_.end && range_.begin >= -largest_time &&
              range_.end <= largest_time * 1.01))
            refuse("the axis would begin at " + std::to_string(range_.begin) + " us and end at " +
                   std::to_string(range_.end) + " us; it must end after its begin, within 1e15 us");
        find_left();
        pixels_per_us_ = (options.width - left_ - right) / (range_.end - range_.begin);
        axis_ = axis_of(range_, 70 / pixels_per_us_);
    }

    std::string draw() {
        std::vector<std::vector<Lanes>> lanes;
        std::size_t seen = 0;
        for (const Timeline* timeline : timelines_) {
            lanes.push_back(lanes_of(*timeline, range_.begin, range_.end));
            for (const Lanes& row : lanes.back())
                seen += row.spans.size();
        }
        for (std::size_t i = 0; i < timelines_.size(); ++i)
            draw_timeline(*timelines_[i], lanes[i], seen > options_.merge_above);
        draw_axis();
        draw_legend();
        draw_notes();
        return document();
    }

private:
    static constexpr double right = 16; ///< Pixels free at the right, for half of the last tick's number.

    void find_range() {
        bool any = false;
        const auto hold = [&](double begin, double end) {
            range_.begin = any && range_.begin < begin ? range_.begin : begin;
            range_.end = any && range_.end > end ? range_.end : end;
            any = true;
        };
        for (const Timeline* timeline : timelines_) {
            if (!timeline->spans().empty())
                hold(timeline->begin(), timeline->end());
        }
        const bool counters_alone = !any;
        for (const Timeline* timeline : timelines_) {
            for (const TimelineValue& value : timeline->values()) {
                if (counters_alone)
                    hold(value.time, value.time);
            }
        }
        if (!any)
            range_ = {0, options_.begin ? *options_.begin + 1 : 1};
        range_.begin = options_.begin.value_or(range_.begin);
        if (options_.end) {
            range_.end = *options_.end;
        } else if (range_.end >= range_.begin) {
            // A range that an axis can divide: all spans may begin and end at one time.
            const double size = range_.begin < 0 ? -range_.begin : range_.begin;
            const double least = size * 1e-11 > 1e-3 ? size * 1e-11 : 1e-3;
            range_.end = range_.end - range_.begin < least ? range_.begin + least : range_.end;
        }
    }

    /// How much the names take at the left: what the longest needs, at most 30 %.
    void find_left() {
        double widest = 50; // for the axis' unit
        for (const Timeline* timeline : timelines_) {
            for (const TimelineRow& row : timeline->rows()) {
                const double width = text_width(row.name);
                widest = width > widest ? width : widest;
            }
            for (const TimelineCounter& counter : timeline->counters()) {
                const double width = text_width(counter.name);
                widest = width > widest ? width : widest;
                widest = widest > 100 ? widest : 100; // for its scale
            }
        }
        const double most = options_.width * 0.3 - 22;
        left_ = (widest < most ? widest : most) + 22;
    }

    double x_of(double time) const { return left_ + (time - range_.begin) * pixels_per_us_; }

    static std::string attribute(const char* name, double value) {
        return std::string(" ") + name + "=\"" + fixed(value) + '"';
    }
    static std::string rect(double x, double y, double width, double height, const std::string& more) {
        return "<rect" + attribute("x", x) + attribute("y", y) + attribute("width", width) +
               attribute("height", height) + more;
    }
    void text(double x, double y, const char* css, const std::string& words) {
        body_ += "<text" + attribute("x", x) + attribute("y", y) + " class=\"" + css + "\">" +
                 escape_xml(words) + "</text>\n";
    }

    void draw_timeline(const Timeline& timeline, const std::vector<Lanes>& lanes, bool merge) {
        y_ += 10;
        if (!timeline.title().empty()) {
            text(12, y_ + 14, "title", shortened(timeline.title(), (options_.width - 24) / 1.2));
            y_ += 24;
        }
        bool stripe = true;
        std::vector<RowPlace> places(timeline.rows().size());
        for (const Unit& unit : units_of(timeline)) {
            if (!unit.name.empty()) {
                text(12, y_ + 12, "unit", shortened(unit.name, options_.width - 24));
                y_ += 18;
            } else if (unit.rows.front() != 0) {
                y_ += 12; // apart from the unit above
            }
            for (const std::size_t row : unit.rows) {
                const BlockRow drawn = blocks_of(lanes[row], 0.25 / pixels_per_us_, merge);
                merged_ = merged_ || drawn.merged;
                crowded_ = crowded_ || drawn.crowded;
                places[row] = {y_, drawn.lane_height, drawn.lanes.size()};
                draw_row(timeline.rows()[row].name, drawn, stripe);
                stripe = !stripe;
            }
        }
        draw_missing_edges(timeline, lanes, places);
        const std::vector<std::vector<counters::Step>> steps = counters::steps_of(timeline);
        for (std::size_t i = 0; i < steps.size(); ++i)
            draw_counter_row(
                timeline.counters()[i],
                view_of(steps[i], range_, timeline.spans().empty() ? range_.end : timeline.end()));
    }

    void draw_missing_edges(const Timeline& timeline, const std::vector<Lanes>& lanes,
                            const std::vector<RowPlace>& places) {
        const std::vector<PlacedEdge> edges = edges_of(timeline, lanes);
        unseen_edges_ += timeline.missing_edges().size() - edges.size();
        for (const PlacedEdge& edge : edges)
            body_ += draw_edge(edge, x_of(edge.from.time), middle_of(places[edge.from.row], edge.from.lane),
                               x_of(edge.to.time), middle_of(places[edge.to.row], edge.to.lane));
        any_edges_ = any_edges_ || !edges.empty();
    }

    void draw_counter_row(const TimelineCounter& counter, const CounterView& view) {
        y_ += 6;
        const CounterPlace place{range_, left_, y_, pixels_per_us_};
        for (const Tick& tick : axis_.ticks)
            line(x_of(tick.at), y_, x_of(tick.at), y_ + CounterPlace::height, "grid");
        line(left_, y_ + CounterPlace::base, options_.width - right, y_ + CounterPlace::base, "grid");
        text(12, y_ + 18, "name", shortened(counter.name, left_ - 22));
        text(12, y_ + 34, "muted", shortened(scale_text(view, counter.unit), left_ - 22));
        body_ += draw_counter(counter, view, place);
        y_ += CounterPlace::height;
    }

    void draw_row(const std::string& name, const BlockRow& row, bool stripe) {
        if (stripe)
            body_ += rect(left_, y_, options_.width - left_ - right, row.height(), " class=\"stripe\"/>\n");
        for (const Tick& tick : axis_.ticks)
            line(x_of(tick.at), y_, x_of(tick.at), y_ + row.height(), "grid");
        const std::string shown = shortened(name, left_ - 22);
        body_ += "<text x=\"12\"" + attribute("y", y_ + row.height() / 2 + 4) + ">" +
                 (shown == name ? "" : "<title>" + escape_xml(name) + "</title>") + escape_xml(shown) +
                 "</text>\n";
        for (std::size_t lane = 0; lane < row.lanes.size(); ++lane) {
            const double top = y_ + 3 + static_cast<double>(lane) * (row.lane_height + 1);
            for (const Block& block : row.lanes[lane])
                draw_block(name, block, top, row.lane_height);
        }
        y_ += row.height();
    }

    void draw_block(const std::string& name, const Block& block, double top, double height) {
        const TimelineSpan& span = block.span;
        const double x = x_of(span.begin > range_.begin ? span.begin : range_.begin);
        double width = x_of(span.end < range_.end ? span.end : range_.end) - x;
        width = width < 0.5 ? 0.5 : width;
        if (block.spans > 1) {
            body_ += rect(x, top, width, height, " class=\"merged\"") + "><title>" + escape_xml(name) + ", " +
                     std::to_string(block.spans) + " spans: from " + time_text(span.begin) + " to " +
                     time_text(span.end) + "</title></rect>\n";
            return;
        }
        const std::size_t colour = span.batch % palette_size;
        const auto kind = static_cast<std::size_t>(span.kind) & 3;
        // An outline is drawn half outside: it would cover the neighbour.
        const double inset = span.kind == SpanKind::wait && width >= 3 ? 0.5 : 0;
        used_[kind][colour] = true;
        body_ += rect(x + inset, top + inset, width - 2 * inset, height - 2 * inset,
                      " class=\"" + css_class(kind, colour) + (inset > 0 ? " dash" : "") + '"') +
                 "><title>" + escape_xml(name) + ", batch " + std::to_string(span.batch) + ", " +
                 kind_text(span.kind) + ": " + "begins at " + time_text(span.begin) + ", lasts " +
                 time_text(span.end - span.begin) + "</title></rect>\n";
        draw_number(span.batch, x + width / 2, width, top, height, kind);
    }

    void draw_number(std::size_t batch, double centre, double width, double top, double height,
                     std::size_t kind) {
        const std::string number = std::to_string(batch);
        if (height < 11 || width < static_cast<double>(number.size()) * 6.5 + 2)
            return;
        const std::size_t colour = batch % palette_size;
        const bool solid = kind <= static_cast<std::size_t>(SpanKind::copy);
        const char* const on = !solid ? "n" : colour == palette_dark ? "n on5" : "n on";
        // On a hatch, the number has a halo in the batch's colour.
        const bool hatch = kind == static_cast<std::size_t>(SpanKind::copy);
        body_ += "<text" + attribute("x", centre) + attribute("y", top + height / 2 + 4) + " class=\"" + on +
                 '"' + (hatch ? std::string(" stroke=\"") + palette[colour] + "\" stroke-width=\"4\"" : "") +
                 ">" + number + "</text>\n";
    }

    static std::string css_class(std::size_t kind, std::size_t colour) {
        return std::string(1, "cpsw"[kind]) + std::to_string(colour);
    }

    void line(double x1, double y1, double x2, double y2, const char* css) {
        body_ += "<line" + attribute("x1", x1) + attribute("y1", y1) + attribute("x2", x2) +
                 attribute("y2", y2) + " class=\"" + css + "\"/>\n";
    }

    void draw_axis() {
        y_ += timelines_.empty() ? 10 : 2;
        line(left_, y_, options_.width - right, y_, "axis");
        for (const Tick& tick : axis_.ticks) {
            line(x_of(tick.at), y_, x_of(tick.at), y_ + 4, "axis");
            text(x_of(tick.at), y_ + 16, "tick", tick.text);
        }
        text(12, y_ + 16, "muted", std::string("time, ") + axis_.unit);
        y_ += 22;
    }

    void draw_legend() {
        double x = 12;
        bool any = false;
        const auto item = [&](const std::string& words, const std::string& swatch) {
            const double width = text_width(words) + (swatch.empty() ? 16 : 44);
            if (x > 12 && x + width > options_.width - 12) {
                x = 12;
                y_ += 20;
            }
            if (!swatch.empty())
                body_ += rect(x + 0.5, y_ + 6.5, 21, 11, " class=\"" + swatch + "\"/>\n");
            text(swatch.empty() ? x : x + 28, y_ + 16, "muted", words);
            x += width;
            any = true;
        };
        for (std::size_t kind = 0; kind < 4; ++kind) {
            std::size_t colour = 0;
            while (colour < palette_size && !used_[kind][colour])
                ++colour;
            if (colour < palette_size)
                item(kind_text(static_cast<SpanKind>(kind)),
                     css_class(kind, colour) + (kind == 3 ? " dash" : ""));
        }
        if (merged_ || crowded_)
            item("several spans", "merged");
        if (any_edges_)
            item("nothing orders the two", "edge");
        if (any)
            item("number and colour: batch", "");
        y_ += any ? 24 : 0;
    }

    void draw_notes() {
        if (merged_)
            paragraph("Spans narrower than a quarter of a pixel are merged with their neighbours.");
        if (crowded_)
            paragraph("More than " + std::to_string(most_lanes) +
                      " spans of a row overlap; the last lane shows the others together.");
        if (unseen_edges_ > 0)
            paragraph("Missing edges of which a span is not in view: " + std::to_string(unseen_edges_) + ".");
        if (!options_.caption.empty())
            paragraph(options_.caption);
        y_ += 8;
    }

    void paragraph(const std::string& words) {
        for (const std::string& row : wrapped(words, options_.width - 24)) {
            if (!row.empty())
                text(12, y_ + 14, "muted", row);
            y_ += row.empty() ? 0 : 17;
        }
    }

    static void add(std::string& out, std::initializer_list<std::string_view> parts) {
        for (const std::string_view part : parts)
            out += part;
    }

    /// Rules for the classes that occur.
    std::string colours(std::string& patterns) const {
        std::string css;
        for (std::size_t colour = 0; colour < palette_size; ++colour) {
            const std::string number = std::to_string(colour);
            const std::string_view value = palette[colour];
            if (used_[0][colour])
                add(css, {".c", number, "{fill:", value, "}"});
            if (used_[1][colour]) {
                add(css, {".p", number, "{fill:url(#sluice-copy-", number, ")}"});
                constexpr const char* tile = "\" width=\"6\" height=\"6\" patternUnits=\"userSpaceOnUse\" "
                                             "patternTransform=\"rotate(45)\"><rect width=\"6\" "
                                             "height=\"6\" fill=\"";
                constexpr const char* hatch = "\"/><rect width=\"2.5\" height=\"6\" fill=\"#fff\" "
                                              "fill-opacity=\".6\"/></pattern>\n";
                add(patterns, {"<pattern id=\"sluice-copy-", number, tile, value, hatch});
            }
            if (used_[2][colour])
                add(css, {".s", number, "{fill:", value, ";fill-opacity:.4}"});
            if (used_[3][colour])
                add(css, {".w", number, "{fill:", value, ";fill-opacity:.3}.w", number,
                          ".dash{fill-opacity:.12;stroke:", value, ";stroke-dasharray:3 2}"});
        }
        return css;
    }

    std::string document() const {
        std::string label = "Timeline";
        for (const Timeline* timeline : timelines_)
            label += timeline->title().empty() ? "" : ": " + timeline->title();
        std::string patterns;
        const std::string css = colours(patterns);
        const std::string width = fixed(options_.width);
        const std::string height = fixed(y_);
        return "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"" + width + "\" height=\"" + height +
               "\" viewBox=\"0 0 " + width + " " + height + "\" role=\"img\" aria-label=\"" +
               escape_xml(label) + "\">\n<style>" + svg_style + css + "</style>\n" +
               (patterns.empty() ? "" : "<defs>\n" + patterns + "</defs>\n") +
               "<rect width=\"100%\" height=\"100%\" rx=\"6\" class=\"bg\"/>\n" + body_ + "</svg>\n";
    }

    const std::vector<const Timeline*>& timelines_;
    const SvgOptions& options_;
    TimeRange range_;
    double left_ = 0;
    double pixels_per_us_ = 1;
    Axis axis_;
    double y_ = 4; ///< Where the next thing is drawn.
    std::string body_;
    bool used_[4][palette_size] = {}; ///< By kind: the colours that occur.
    bool merged_ = false;
    bool crowded_ = false;
    bool any_edges_ = false;
    std::size_t unseen_edges_ = 0;
};

} // namespace sluice::detail::drawing

namespace sluice {

inline std::string to_svg(const std::vector<const Timeline*>& timelines, const SvgOptions& options) {
    return detail::drawing::SvgPicture("to_svg", timelines, options).draw();
}

inline std::string to_svg(const Timeline& timeline, const SvgOptions& options) {
    return to_svg(std::vector<const Timeline*>{&timeline}, options);
}

inline void write_svg(const std::vector<const Timeline*>& timelines, const std::string& path,
                      const SvgOptions& options) {
    detail::drawing::write_file("write_svg", path,
                                detail::drawing::SvgPicture("write_svg", timelines, options).draw());
}

inline void write_svg(const Timeline& timeline, const std::string& path, const SvgOptions& options) {
    write_svg(std::vector<const Timeline*>{&timeline}, path, options);
}

} // namespace sluice
