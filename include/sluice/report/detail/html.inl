// Bodies of html.hpp. The page is a shell with the spans as JSON; detail/html_script.hpp draws them.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include <sluice/report/detail/drawing_text.hpp>
#include <sluice/report/detail/html_script.hpp>
#include <sluice/report/detail/html_style.hpp>
#include <sluice/report/detail/timeline_lanes.hpp>
#include <sluice/report/detail/write_file.hpp>

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

/// A timeline: `{"title":…,"units":[{"name":…,"rows":[…]}, …]}`.
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
    out += "]}";
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
    if (title.empty() && !timelines.empty())
        title = timelines.front()->title();
    const std::string heading = escape_xml(title.empty() ? "Timeline" : title);
    std::string page = "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
                       "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
                       "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; "
                       "style-src 'unsafe-inline'; script-src 'unsafe-inline'\">\n<title>" +
                       heading + "</title>\n<style>" + html_style + "</style>\n</head>\n<body>\n<h1>" +
                       heading + "</h1>\n" + html_body;
    if (!options.text.empty())
        page += "<h2>Report</h2>\n<pre id=\"report\">" + escape_xml(options.text) + "</pre>\n";
    page += "<script type=\"application/json\" id=\"data\">" + data + "</script>\n<script>" +
            html_script_view + html_script_input + "</script>\n</body>\n</html>\n";
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
