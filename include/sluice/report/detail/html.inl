// Bodies of html.hpp.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include <sluice/report/comparison.hpp>
#include <sluice/report/detail/drawing_text.hpp>
#include <sluice/report/detail/html_chart.hpp>
#include <sluice/report/detail/html_script.hpp>
#include <sluice/report/detail/html_tables.hpp>
#include <sluice/report/detail/write_file.hpp>
#include <sluice/report/timeline_report.hpp>

namespace sluice::detail::drawing {

/// The page's looks.
inline constexpr const char* html_style = R"css(
:root{color-scheme:light dark;--bg:#fff;--fg:#24292f;--muted:#57606a;--grid:#d8dee4;--stripe:#f4f6f8;
--axis:#8c959f;--tip:#24292f;--tipfg:#fff}
@media(prefers-color-scheme:dark){:root{--bg:#0d1117;--fg:#e6edf3;--muted:#9198a1;--grid:#30363d;
--stripe:#171d25;--axis:#6e7681;--tip:#e6edf3;--tipfg:#0d1117}}
*{box-sizing:border-box}
body{margin:0;padding:16px;background:var(--bg);color:var(--fg);
font:13px/1.4 system-ui,-apple-system,'Segoe UI',Roboto,'Helvetica Neue',Arial,sans-serif}
h1{font-size:20px;margin:0 0 8px;overflow-wrap:anywhere}
h2{font-size:15px;margin:18px 0 4px;overflow-wrap:anywhere}
h3{font-size:13px;margin:10px 0 2px;overflow-wrap:anywhere}
p{margin:2px 0;overflow-wrap:anywhere}
.pace{font-size:14px;margin:4px 0}
.fact{color:var(--muted)}
.reports{display:grid;grid-template-columns:repeat(auto-fit,minmax(min(100%,540px),1fr));gap:4px 20px}
.report{min-width:0}
.scroll{overflow-x:auto;margin:6px 0}
.scroll:focus-visible,button:focus-visible{outline:2px solid var(--axis);outline-offset:1px}
table{border-collapse:collapse;font-variant-numeric:tabular-nums}
th,td{padding:2px 7px;text-align:left;vertical-align:top;border-bottom:1px solid var(--grid)}
th{color:var(--muted);font-weight:600;vertical-align:bottom}
th small{display:block;font-weight:400}
th.group{text-align:center}
td{overflow-wrap:anywhere;min-width:4ch}
td:first-child{min-width:16ch;max-width:60ch}
.report td:nth-child(2),.compared td:nth-child(2){white-space:nowrap}
.reports table{font-size:12px}
.reports td:first-child{min-width:10ch}
.reports th,.reports td{padding:2px 5px}
.n{text-align:right;white-space:nowrap}
.compared tbody tr:first-child td{font-weight:600}
th button{font:inherit;color:inherit;background:none;border:0;padding:0;cursor:pointer;text-align:inherit}
th[aria-sort=ascending] button::after{content:" \25B2"}
th[aria-sort=descending] button::after{content:" \25BC"}
.bar{display:flex;flex-wrap:wrap;gap:6px 14px;align-items:center;color:var(--muted);margin:4px 0}
.bar button{font:inherit;color:var(--fg);background:var(--stripe);border:1px solid var(--grid);
border-radius:4px;min-width:30px;padding:2px 8px;cursor:pointer}
.bar .keys{display:flex;gap:4px}
.item{display:inline-flex;align-items:center;gap:6px}
#view{margin:0 -12px;touch-action:pan-y}
#view:focus-visible{outline:2px solid var(--axis);outline-offset:4px}
#chart,#axis{display:block}
#axis{position:sticky;bottom:0;background:var(--bg)}
#axis .plot{overflow:visible}
.plot{cursor:grab}
#view:active .plot{cursor:grabbing}
.wide{pointer-events:stroke}
#tip{position:fixed;left:0;top:0;z-index:2;max-width:min(320px,90vw);padding:5px 8px;border-radius:4px;
background:var(--tip);color:var(--tipfg);white-space:pre-line;overflow-wrap:anywhere;pointer-events:none}
pre{overflow-x:auto;background:var(--stripe);border-radius:6px;padding:10px;margin:4px 0;
font:12px/1.4 ui-monospace,SFMono-Regular,Menlo,Consolas,'DejaVu Sans Mono',monospace}
)css";

/// What stands before the timelines.
inline constexpr const char* html_bar =
    "<div class=\"bar\"><span class=\"keys\"><button id=\"in\" title=\"Zoom in (+)\">+</button>"
    "<button id=\"out\" title=\"Zoom out (-)\">&#8722;</button>"
    "<button id=\"all\" title=\"Show all (0, double click)\">all</button></span>"
    "<span id=\"range\"></span></div>\n";

/// What stands behind the timelines.
inline constexpr const char* html_tip =
    "<div id=\"tip\" hidden></div>\n"
    "<noscript><p>The timeline on this page is drawn by JavaScript, which is switched off.</p></noscript>\n";

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
