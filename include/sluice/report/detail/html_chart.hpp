// The timelines of a page: the rows of a picture, of which the page's script draws what moves with the time that is shown.
#pragma once

#include <cstddef>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include <sluice/report/detail/json_writer.hpp>
#include <sluice/report/detail/svg_edges.hpp>
#include <sluice/report/detail/svg_rows.hpp>
#include <sluice/report/detail/svg_style.hpp>

namespace sluice::detail::drawing {

/// Makes groups without paths, and notes for the script what belongs into each, in the order of the groups.
class PagePlot {
public:
    PagePlot() {
        rows_.open('[');
        counters_.open('[');
        edges_.open('[');
    }

    /// `{"name":…,"unit":…,"top":…,"height":…,"lane":…,"lanes":…,"crowded":…,"spans":[lane,batch,kind,begin,duration, …]}`
    void draw(const RowPlace& place) {
        const auto& [row, lanes, shape, top, striped] = place;
        if (striped)
            stripes_ += "<rect width=\"100%\"" + attribute("y", top) + attribute("height", shape.height()) +
                        " class=\"stripe\"/>\n";
        add_group("spans", row.name + ": " + std::to_string(lanes.spans.size()) + " spans", "");
        crowded = crowded || shape.crowded;
        spans += lanes.spans.size();
        rows_.open('{');
        rows_.members({{"name", clean_text(row.name)},
                       {"unit", clean_text(row.unit)},
                       {"top", top},
                       {"height", shape.height()},
                       {"lane", shape.lane_height},
                       {"lanes", shape.lanes},
                       {"crowded", shape.crowded}});
        rows_.open('[', "spans");
        for (const Placed& placed : lanes.spans) {
            const TimelineSpan& span = placed.span;
            styles.note(span);
            rows_.items({shape.shown(placed.lane), span.batch, SpanStyles::number_of(span.kind),
                         JsonWriter::Value::rounded(span.begin, 3),
                         JsonWriter::Value::rounded(span.end - span.begin, 3)});
        }
        rows_.close(']');
        rows_.close('}');
    }

    /// `{"name":…,"top":…,"height":…,"base":…,"end":…,"steps":[time,y,value as text, …]}`; the last value holds until `end`.
    void draw(const CounterPlace& place) {
        const auto& [counter, view, top] = place;
        const double base = top + CounterView::base;
        add_group("counter", counter.name + ": " + scale_text(view, counter.unit),
                  "<path class=\"area\"/><path class=\"line\"/>");
        body_ += "<line x2=\"100%\"" + attribute("y1", base) + attribute("y2", base) + " class=\"grid\"/>\n";
        counters_.open('{');
        counters_.members({{"name", clean_text(counter.name)},
                           {"top", top},
                           {"height", CounterView::height},
                           {"base", base},
                           {"end", view.end}});
        counters_.open('[', "steps");
        for (const counters::Step& step : view.steps) {
            counters_.items({JsonWriter::Value::rounded(step.time, 3),
                             JsonWriter::Value::rounded(top + view.y_of(step.value), 2),
                             clean_text(counters::value_text(step.value, counter.unit))});
        }
        counters_.close(']');
        counters_.close('}');
    }

    /// `[time,y,time,y]`
    void draw(const PlacedEdge& edge, double y_from, double y_to) {
        arrows_ += edge_group(edge.edge->text, "", "");
        edges_.open('[');
        edges_.items({edge.from.time, y_from, edge.to.time, y_to});
        edges_.close(']');
        any_edges = true;
    }

    /// What is drawn of them without times.
    std::string body() const {
        return "<rect class=\"hit\" width=\"100%\" height=\"100%\"/>\n" + stripes_ +
               "<path id=\"grid\" class=\"grid\"/>\n" + body_ + arrows_;
    }
    /// What the script draws.
    std::string data(TimeRange range, double left) && {
        rows_.close(']');
        counters_.close(']');
        edges_.close(']');
        JsonWriter range_and_left(true);
        range_and_left.open('{');
        range_and_left.members({{"first", range.begin}, {"last", range.end}, {"left", left}});
        return std::move(range_and_left).text() + ",\n\"rows\":" + std::move(rows_).text() +
               ",\n\"counters\":" + std::move(counters_).text() + ",\n\"edges\":" + std::move(edges_).text() +
               '}';
    }

    bool crowded = false;
    bool any_edges = false;
    std::size_t spans = 0;
    SpanStyles styles;

private:
    void add_group(const std::string& css, const std::string& label, const std::string& inside) {
        body_ += "<g" + attribute("class", css) + " role=\"img\"" + attribute("aria-label", label) + '>' +
                 inside + "</g>\n";
    }

    std::string stripes_;
    std::string body_;
    std::string arrows_;
    JsonWriter rows_{true};
    JsonWriter counters_{true};
    JsonWriter edges_{true};
};

/// What of a page is its timelines: HTML for its body, and the script's data.
struct Chart {
    std::string html;
    std::string data;
};

inline std::string chart_svg(const std::string& id, double height, const std::string& names,
                             const std::string& plot) {
    return "<svg" + attribute("id", id) + " width=\"100%\"" + attribute("height", height) + ">\n" + names +
           "<svg class=\"plot\">\n" + plot + "</svg>\n</svg>\n";
}

/// The title of a timeline that is alone and has the page's is left out.
inline Chart chart_of(const std::vector<const Timeline*>& timelines, const std::string& heading) {
    const TimeRange range = range_of(timelines);
    PagePlot plot;
    // The script shortens names when it knows how wide the window is.
    constexpr double any = std::numeric_limits<double>::infinity();
    TimelineRows<PagePlot> rows(plot, range, any, any);
    for (const Timeline* timeline : timelines)
        rows.add(*timeline, lanes_of(*timeline, -largest_time, largest_time),
                 timelines.size() > 1 || timeline->title() != heading);
    Chart chart;
    chart.html = chart_svg("chart", rows.height() + 2, plot.styles.text() + rows.names(), plot.body()) +
                 chart_svg("axis", 24, "<text class=\"muted\" x=\"12\" y=\"16\"></text>\n",
                           "<line x2=\"100%\" class=\"axis\"/><g></g>") +
                 "</div>\n<div class=\"bar\" id=\"legend\">";
    for (const auto& [words, css] : plot.styles.legend(plot.spans > 0, plot.any_edges)) {
        const std::string box =
            css.empty() ? ""
                        : "<svg width=\"22\" height=\"12\">" + svg_rect(0.5, 0.5, 21, 11, css) + "</svg>";
        chart.html += "<span class=\"item\">" + box + words + "</span>";
    }
    chart.html += "</div>\n";
    if (plot.crowded)
        chart.html += "<p class=\"note\">More than 100 spans of a row overlap; in its last lane spans may "
                      "cover each other.</p>\n";
    chart.data = std::move(plot).data(range, names_width(timelines));
    return chart;
}

} // namespace sluice::detail::drawing
