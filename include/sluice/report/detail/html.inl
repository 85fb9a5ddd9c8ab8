// Bodies of html.hpp.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include <sluice/report/comparison.hpp>
#include <sluice/report/detail/drawing_text.hpp>
#include <sluice/report/detail/html_chart.hpp>
#include <sluice/report/detail/html_script.hpp>
#include <sluice/report/detail/html_style.hpp>
#include <sluice/report/detail/html_tables.hpp>
#include <sluice/report/detail/write_file.hpp>
#include <sluice/report/timeline_report.hpp>

namespace sluice::detail::drawing {

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
    check_timelines(who, timelines);
    std::string title = options.title;
    for (std::size_t i = 0; options.title.empty() && i < timelines.size(); ++i)
        title += (title.empty() || timelines[i]->title().empty() ? "" : ", ") + timelines[i]->title();
    title = title.empty() ? "Timeline" : title;
    const std::string heading = escape_xml(title);
    std::string page = "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
                       "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
                       "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; "
                       "style-src 'unsafe-inline'; script-src 'unsafe-inline'\">\n<title>" +
                       heading + "</title>\n<style>" + html_style + "</style>\n</head>\n<body>\n<h1>" +
                       heading + "</h1>\n" + html_reports(timelines) + html_bar +
                       html_chart(timelines, title) + html_tip;
    for (const HtmlTable& table : options.tables)
        page += html_table(who, table);
    if (!options.text.empty())
        page += "<h2>Notes</h2>\n<pre id=\"report\">" + escape_xml(options.text) + "</pre>\n";
    for (const char* part : {"<script>", html_script_view, html_script_input, html_script_tables})
        page += part;
    return page + "</script>\n</body>\n</html>\n";
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
