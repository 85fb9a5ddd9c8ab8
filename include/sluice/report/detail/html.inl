// Bodies of html.hpp. The page is a shell with the spans as JSON; detail/html_script.hpp draws them.
#pragma once

#include <charconv>
#include <cstddef>
#include <string>
#include <vector>

#include <sluice/report/comparison.hpp>
#include <sluice/report/detail/counter_steps.hpp>
#include <sluice/report/detail/drawing_text.hpp>
#include <sluice/report/detail/html_counters.hpp>
#include <sluice/report/detail/html_edges.hpp>
#include <sluice/report/detail/html_script.hpp>
#include <sluice/report/detail/html_style.hpp>
#include <sluice/report/detail/html_tables.hpp>
#include <sluice/report/detail/timeline_edges.hpp>
#include <sluice/report/detail/timeline_lanes.hpp>
#include <sluice/report/detail/write_file.hpp>
#include <sluice/report/timeline_report.hpp>

namespace sluice::detail::drawing {

/// The lanes of a row on a page; what would need more stands in the last.
inline constexpr std::size_t most_page_lanes = 100;

/// A row: `{"name":…,"lanes":…,"spans":[lane,batch,kind,begin,duration, …]}`, spans by begin.
inline void add_row_json(std::string& out, const std::string& name, const Lanes& row) {
    const std::size_t count = row.count < most_page_lanes ? row.count : most_page_lanes;
    out += "{\"name\":" + json_string(name) + ",\"lanes\":" + std::to_string(count) +
           ",\"crowded\":" + (row.count > count ? "true" : "false") + ",\"spans\":[";
    bool first = true;
    for (const Placed& placed : row.spans) {
        const TimelineSpan& span = placed.span;
        out += first ? "" : ",";
        out += std::to_string(placed.lane < count ? placed.lane : count - 1) + ',' +
               std::to_string(span.batch) + ',' + std::to_string(static_cast<unsigned>(span.kind) & 3u) +
               ',' + fixed(span.begin, 3) + ',' + fixed(span.end - span.begin, 3);
        first = false;
    }
    out += "]}";
}

/// A counter: `{"name":…,"unit":…,"end":…,"steps":[time,value, …]}`; its last value holds until `end`.
inline void add_counter_json(std::string& out, const Timeline& timeline, std::size_t counter,
                             const std::vector<counters::Step>& steps) {
    const auto number = [](double value) {
        char digits[32]; // a double's shortest form takes 24
        return std::string(digits, std::to_chars(digits, digits + sizeof digits, value).ptr);
    };
    const double last = steps.empty() ? 0 : steps.back().time;
    out += "{\"name\":" + json_string(timeline.counters()[counter].name) +
           ",\"unit\":" + json_string(timeline.counters()[counter].unit) +
           ",\"end\":" + number(!timeline.spans().empty() && timeline.end() > last ? timeline.end() : last) +
           ",\"steps\":[";
    for (std::size_t i = 0; i < steps.size(); ++i) {
        if (i > 0)
            out += ',';
        out += fixed(steps[i].time, 3) + ',' + number(steps[i].value);
    }
    out += "]}";
}

/// Missing edges: `{"from":[row,lane,time],"to":[row,lane,time],"text":…}`, rows as they stand on the page.
inline void add_edges_json(std::string& out, const Timeline& timeline, const std::vector<Lanes>& lanes,
                           const std::vector<Unit>& units) {
    std::vector<std::size_t> place(lanes.size());
    std::size_t next = 0;
    for (const Unit& unit : units) {
        for (const std::size_t row : unit.rows)
            place[row] = next++;
    }
    const auto end_json = [&](const EdgeEnd& end) {
        const std::size_t lane = end.lane < most_page_lanes ? end.lane : most_page_lanes - 1;
        return '[' + std::to_string(place[end.row]) + ',' + std::to_string(lane) + ',' + fixed(end.time, 3) +
               ']';
    };
    bool first = true;
    for (const PlacedEdge& edge : edges_of(timeline, lanes)) {
        out += std::string(first ? "" : ",") + "{\"from\":" + end_json(edge.from) +
               ",\"to\":" + end_json(edge.to) + ",\"text\":" + json_string(edge.edge->text) + '}';
        first = false;
    }
}

/// A timeline: `{"title":…,"units":[{"name":…,"rows":[…]}, …],"edges":[…],"counters":[…]}`.
inline void add_timeline_json(std::string& out, const Timeline& timeline) {
    const std::vector<Lanes> lanes = lanes_of(timeline, -largest_time, largest_time);
    out += "{\"title\":" + json_string(timeline.title()) + ",\"units\":[";
    const std::vector<Unit> units = units_of(timeline);
    for (std::size_t u = 0; u < units.size(); ++u) {
        out += (u > 0 ? ",{\"name\":" : "{\"name\":") + json_string(units[u].name) + ",\"rows\":[";
        for (std::size_t r = 0; r < units[u].rows.size(); ++r) {
            const std::size_t row = units[u].rows[r];
            out += r > 0 ? "," : "";
            add_row_json(out, timeline.rows()[row].name, lanes[row]);
        }
        out += "]}";
    }
    out += "],\"edges\":[";
    add_edges_json(out, timeline, lanes, units);
    out += "],\"counters\":[";
    const std::vector<std::vector<counters::Step>> steps = counters::steps_of(timeline);
    for (std::size_t i = 0; i < steps.size(); ++i) {
        out += i > 0 ? "," : "";
        add_counter_json(out, timeline, i, steps[i]);
    }
    out += "]}";
}

/// The tables above the timelines.
inline std::string html_reports(const std::vector<const Timeline*>& timelines) {
    std::vector<TimelineReport> reports;
    reports.reserve(timelines.size());
    for (const Timeline* timeline : timelines)
        reports.push_back(report_of(*timeline));
    std::string html;
    if (reports.size() == 2)
        html += html_comparison(compare(reports[0], reports[1]));
    if (!reports.empty())
        html +=
            reports.size() > 1 ? "<h2>Reports</h2>\n<div class=\"reports\">\n" : "<div class=\"reports\">\n";
    for (const TimelineReport& report : reports)
        html += html_report(report, reports.size() > 1);
    return html + (reports.empty() ? "" : "</div>\n<h2>Timeline</h2>\n");
}

inline std::string html_page(const char* who, const std::vector<const Timeline*>& timelines,
                             const HtmlOptions& options) {
    std::string data = "{\"palette\":[";
    for (std::size_t colour = 0; colour < palette_size; ++colour)
        data += (colour > 0 ? ",\"" : "\"") + std::string(palette[colour]) + '"';
    data += "],\"dark\":" + std::to_string(palette_dark) + ",\"timelines\":[";
    for (std::size_t i = 0; i < timelines.size(); ++i) {
        if (timelines[i] == nullptr)
            throw Error(std::string(who) + ": a timeline's pointer is null");
        check_times(who, *timelines[i]);
        data += i > 0 ? ",\n" : "\n";
        add_timeline_json(data, *timelines[i]);
    }
    data += "]}";

    std::string title = options.title;
    for (std::size_t i = 0; options.title.empty() && i < timelines.size(); ++i)
        title += (title.empty() || timelines[i]->title().empty() ? "" : ", ") + timelines[i]->title();
    const std::string heading = escape_xml(title.empty() ? "Timeline" : title);
    std::string page = "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
                       "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
                       "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; "
                       "style-src 'unsafe-inline'; script-src 'unsafe-inline'\">\n<title>" +
                       heading + "</title>\n<style>" + html_style + "</style>\n</head>\n<body>\n<h1>" +
                       heading + "</h1>\n" + html_reports(timelines) + html_body;
    for (const HtmlTable& table : options.tables)
        page += html_table(who, table);
    if (!options.text.empty())
        page += "<h2>Notes</h2>\n<pre id=\"report\">" + escape_xml(options.text) + "</pre>\n";
    page += "<script type=\"application/json\" id=\"data\">" + data + "</script>\n<script>" +
            html_script_view + html_script_edges + html_script_counters + html_script_input +
            html_script_tables + "</script>\n</body>\n</html>\n";
    return page;
}

} // namespace sluice::detail::drawing

namespace sluice {

inline std::string to_html(const std::vector<const Timeline*>& timelines, const HtmlOptions& options) {
    return detail::drawing::html_page("to_html", timelines, options);
}

inline std::string to_html(const Timeline& timeline, const HtmlOptions& options) {
    return to_html(std::vector<const Timeline*>{&timeline}, options);
}

inline void write_html(const std::vector<const Timeline*>& timelines, const std::string& path,
                       const HtmlOptions& options) {
    detail::drawing::write_file("write_html", path,
                                detail::drawing::html_page("write_html", timelines, options));
}

inline void write_html(const Timeline& timeline, const std::string& path, const HtmlOptions& options) {
    write_html(std::vector<const Timeline*>{&timeline}, path, options);
}

} // namespace sluice
