// The timelines of a page: the rows of a picture, of which the page's script draws what moves with the time that is shown.
#pragma once

#include <cstddef>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include <sluice/report/detail/json_writer.hpp>
#include <sluice/report/detail/svg_rows.hpp>
#include <sluice/report/detail/svg_style.hpp>

namespace sluice::detail::drawing {

/// Makes groups without paths, each with the numbers from which the script draws them, as JSON in an attribute.
class PagePlot {
public:
    /// `{"name":…,"unit":…,"top":…,"height":…,"lane":…,"lanes":…,"crowded":…,"spans":[lane,batch,kind,begin,duration, …]}`
    void draw(const RowPlace& place) {
        const auto& [row, lanes, shape, top, striped] = place;
        if (striped)
            stripes_ += "<rect width=\"100%\"" + attribute("y", top) + attribute("height", shape.height()) +
                        " class=\"stripe\"/>\n";
        JsonWriter json;
        json.open('{');
        json.members({{"name", clean_text(row.name)},
                      {"unit", clean_text(row.unit)},
                      {"top", top},
                      {"height", shape.height()},
                      {"lane", shape.lane_height},
                      {"lanes", shape.lanes},
                      {"crowded", shape.crowded}});
        json.open('[', "spans");
        for (const Placed& placed : lanes.spans) {
            const TimelineSpan& span = placed.span;
            styles_.note(span);
            json.items({shape.shown(placed.lane), span.batch, SpanStyles::number_of(span.kind),
                        JsonWriter::Value::rounded(span.begin, 3),
                        JsonWriter::Value::rounded(span.end - span.begin, 3)});
        }
        json.close(']');
        json.close('}');
        add_group("spans", row.name + ": " + detail::counted(lanes.spans.size(), "span"), std::move(json),
                  "");
        crowded_ = crowded_ || shape.crowded;
        spans_ += lanes.spans.size();
    }

    /// `{"name":…,"top":…,"height":…,"base":…,"end":…,"steps":[time,y,value as text, …]}`; the last value holds until `end`.
    void draw(const CounterPlace& place) {
        const auto& [counter, view, top] = place;
        const double base = top + CounterView::base;
        JsonWriter json;
        json.open('{');
        json.members({{"name", clean_text(counter.name)},
                      {"top", top},
                      {"height", CounterView::height},
                      {"base", base},
                      {"end", view.end}});
        json.open('[', "steps");
        for (const counters::Step& step : view.steps) {
            json.items({JsonWriter::Value::rounded(step.time, 3),
                        JsonWriter::Value::rounded(top + view.y_of(step.value), 2),
                        clean_text(counters::value_text(step.value, counter.unit))});
        }
        json.close(']');
        json.close('}');
        add_group("counter", counter.name + ": " + scale_text(view, counter.unit), std::move(json),
                  "<path class=\"area\"/><path class=\"line\"/>");
        body_ += "<line x2=\"100%\"" + attribute("y1", base) + attribute("y2", base) + " class=\"grid\"/>\n";
    }

    void draw(const PlacedEdge& edge, double y_from, double y_to) {
        JsonWriter json;
        json.open('[');
        json.items({edge.from.time, y_from, edge.to.time, y_to});
        json.close(']');
        arrows_ += edge_group(edge.edge->text, "", "", attribute("data-of", std::move(json).text()));
    }

    /// What is drawn of them without times.
    std::string body() const {
        return "<rect class=\"hit\" width=\"100%\" height=\"100%\"/>\n" + stripes_ +
               "<path id=\"grid\" class=\"grid\"/>\n" + body_ + arrows_;
    }
    std::vector<SpanStyles::LegendItem> legend() const {
        return styles_.legend(spans_ > 0, !arrows_.empty());
    }
    bool crowded() const { return crowded_; }
    std::string style() const { return styles_.text(); }

private:
    void add_group(const std::string& css, const std::string& label, JsonWriter&& json,
                   const std::string& inside) {
        body_ += "<g" + attribute("class", css) + " role=\"img\"" + attribute("aria-label", label) +
                 attribute("data-of", std::move(json).text()) + '>' + inside + "</g>\n";
    }

    std::string stripes_;
    std::string body_;
    std::string arrows_;
    SpanStyles styles_;
    std::size_t spans_ = 0;
    bool crowded_ = false;
};

inline std::string chart_svg(const std::string& id, double height, const std::string& names,
                             const std::string& plot) {
    return "<svg" + attribute("id", id) + " width=\"100%\"" + attribute("height", height) + ">\n" + names +
           "<svg class=\"plot\">\n" + plot + "</svg>\n</svg>\n";
}

/// The timelines as HTML. The title of one that is alone and has the page's is left out.
inline std::string html_chart(const std::vector<const Timeline*>& timelines, const std::string& heading) {
    const TimeRange range = range_of(timelines);
    PagePlot plot;
    // The script shortens names when it knows how wide the window is.
    constexpr double any = std::numeric_limits<double>::infinity();
    TimelineRows<PagePlot> rows(plot, range, any, any);
    for (const Timeline* timeline : timelines)
        rows.add(*timeline, lanes_of(*timeline, -largest_time, largest_time),
                 timelines.size() > 1 || timeline->title() != heading);
    JsonWriter json;
    json.object({{"first", range.begin}, {"last", range.end}, {"left", names_width(timelines)}});
    std::string html = "<div id=\"view\"" + attribute("data-of", std::move(json).text()) +
                       " tabindex=\"0\" role=\"group\" aria-label=\"Timelines; plus and minus zoom, the "
                       "arrows to the left and right pan, 0 shows all\">\n" +
                       chart_svg("chart", rows.height() + 2, plot.style() + rows.names(), plot.body()) +
                       chart_svg("axis", 24, "<text class=\"muted\" x=\"12\" y=\"16\"></text>\n",
                                 "<line x2=\"100%\" class=\"axis\"/><g></g>") +
                       "</div>\n<div class=\"bar\" id=\"legend\">";
    for (const auto& [words, css] : plot.legend()) {
        html += "<span class=\"item\">";
        if (!css.empty())
            html += "<svg width=\"22\" height=\"12\">" + svg_rect(0.5, 0.5, 21, 11, css) + "</svg>";
        html += words + "</span>";
    }
    if (plot.crowded())
        html += "</div>\n<div class=\"bar\">More than " + std::to_string(RowShape::most_lanes) +
                " spans of a row overlap; in its last lane spans may cover each other.";
    return html + "</div>\n";
}

} // namespace sluice::detail::drawing
