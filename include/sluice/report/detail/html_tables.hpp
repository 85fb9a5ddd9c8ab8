// The tables of a timeline's page: reports, two reports beside each other, and tables of the user's.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include <sluice/report/comparison.hpp>
#include <sluice/report/detail/drawing_text.hpp>
#include <sluice/report/detail/numbers.hpp>
#include <sluice/report/timeline_report.hpp>

namespace sluice::detail::drawing {

/// A table while it is written. A wide one scrolls within its frame, also by the keyboard.
class HtmlTableText {
public:
    /// `label` is what screen readers call it.
    HtmlTableText(const std::string& label, const char* css) {
        text_ = "<div class=\"scroll\" tabindex=\"0\" role=\"region\" aria-label=\"" + escape_xml(label) +
                "\"><table class=\"" + css + "\">\n";
    }
    /// `more` are attributes; `inside` is HTML.
    void head(const std::string& inside, const std::string& more = {}) {
        row_ += "<th scope=\"col\"" + more + ">" + inside + "</th>";
    }
    /// Text at the left, or a number at the right.
    void cell(const std::string& text, bool number) {
        row_ += (number ? "<td class=\"n\">" : "<td>") + escape_xml(text) + "</td>";
    }
    void end_row() {
        text_ += "<tr>" + row_ + "</tr>\n";
        row_.clear();
    }
    void open(const char* part) { text_ += std::string("<") + part + ">\n"; }
    void close(const char* part) { text_ += std::string("</") + part + ">\n"; }
    std::string text() && { return std::move(text_) + "</table></div>\n"; }

private:
    std::string text_;
    std::string row_;
};

/// `lines`, each a paragraph of class `css`, from line `first` on.
inline std::string html_lines(const std::string& lines, const char* css, std::size_t first) {
    std::string html;
    std::size_t number = 0;
    for (std::size_t at = 0; at < lines.size(); ++number) {
        const std::size_t end =
            lines.find('\n', at) == std::string::npos ? lines.size() : lines.find('\n', at);
        if (number >= first && end > at)
            html +=
                std::string("<p class=\"") + css + "\">" + escape_xml(lines.substr(at, end - at)) + "</p>\n";
        at = end + 1;
    }
    return html;
}

/// A report: what set the pace, the head's lines, the table, and the counters' lines, as `to_table` has them.
inline std::string html_report(const TimelineReport& report, bool titled) {
    const std::string title = report.title.empty() ? "Report" : report.title;
    std::string html = "<section class=\"report\">\n";
    if (titled)
        html += "<h3>" + escape_xml(title) + "</h3>\n";
    html += "<p class=\"pace\">" + escape_xml(pace_sentence(report)) + "</p>\n";
    html += html_lines(timeline_table::head_of(report), "fact", report.title.empty() ? 0 : 1);
    if (!report.rows.empty()) {
        const std::vector<timeline_table::Column> columns = timeline_table::columns_of(report);
        HtmlTableText table(title, "rows");
        table.open("thead");
        table.head("row");
        table.head("unit");
        for (const timeline_table::Column& column : columns) {
            const std::string unit = column.cells[1].empty() ? "" : "<small>" + column.cells[1] + "</small>";
            table.head(column.cells[0] + unit, " class=\"n\"");
        }
        table.end_row();
        table.close("thead");
        table.open("tbody");
        for (std::size_t row = 0; row < report.rows.size(); ++row) {
            table.cell(report.rows[row].name, false);
            table.cell(report.rows[row].unit, false);
            for (const timeline_table::Column& column : columns)
                table.cell(column.cells[timeline_table::head_lines + row], true);
            table.end_row();
        }
        table.close("tbody");
        html += std::move(table).text();
    }
    return html + html_lines(timeline_table::counters_of(report), "fact", 0) + "</section>\n";
}

/// Rows of a comparison: three groups of columns.
inline void add_comparison_row(HtmlTableText& table, const RowComparison& row, bool whole) {
    const auto number = [](double value, bool there) {
        return there && value > 0 ? numbers::number_text(value) : std::string("-");
    };
    const auto percent = [](double share, bool there) {
        return there ? numbers::percent(share) : std::string("-");
    };
    const bool before = whole || row.before != TimelineReport::no_row;
    const bool after = whole || row.after != TimelineReport::no_row;
    table.cell(row.name, false);
    table.cell(row.unit, false);
    table.cell(before ? time_text(row.time_before) : "-", true);
    table.cell(after ? time_text(row.time_after) : "-", true);
    table.cell(row.speedup > 0 ? numbers::number_text(row.speedup) + " x" : "-", true);
    table.cell(percent(row.share_before, before), true);
    table.cell(percent(row.share_after, after), true);
    const double points = 100 * (row.share_after - row.share_before);
    const std::string sign = points > 0.05 ? "+" : "";
    table.cell(before && after ? sign + numbers::fixed(points > -0.05 && points < 0 ? 0 : points, 1) : "-",
               true);
    table.cell(number(row.rate_before, before), true);
    table.cell(number(row.rate_after, after), true);
    table.end_row();
}

/// Two reports beside each other.
inline std::string html_comparison(const Comparison& comparison) {
    std::string html = "<section id=\"comparison\">\n<h2>Comparison</h2>\n<p class=\"pace\">" +
                       escape_xml(comparison_sentence(comparison)) + "</p>\n";
    if (comparison.title_before != "before" || comparison.title_after != "after")
        html += "<p class=\"fact\">before: " + escape_xml(comparison.title_before) +
                "; after: " + escape_xml(comparison.title_after) + "</p>\n";
    HtmlTableText table("Comparison", "rows compared");
    table.open("thead");
    table.head("", " colspan=\"2\"");
    table.head("time per batch", " colspan=\"3\" class=\"group\"");
    table.head("busy<small>%</small>", " colspan=\"3\" class=\"group\"");
    table.head("batches/s <small>of a row: while it is busy</small>", " colspan=\"2\" class=\"group\"");
    table.end_row();
    table.head("row");
    table.head("unit");
    for (const char* head : {"before", "after", "as fast", "before", "after", "points", "before", "after"})
        table.head(head, " class=\"n\"");
    table.end_row();
    table.close("thead");
    table.open("tbody");
    add_comparison_row(table, comparison.whole, true);
    for (const RowComparison& row : comparison.rows)
        add_comparison_row(table, row, false);
    table.close("tbody");
    return html + std::move(table).text() + "</section>\n";
}

/// Whether a column holds numbers: all its cells begin with one, or are "-" or empty, and one is a number.
inline bool holds_numbers(const HtmlTable& table, std::size_t column) {
    bool any = false;
    for (const std::vector<std::string>& row : table.rows) {
        const std::string_view cell =
            column < row.size() ? std::string_view(row[column]) : std::string_view();
        if (cell.empty() || cell == "-")
            continue;
        const std::size_t first = cell.find_first_not_of("+-.");
        if (first == std::string_view::npos || first > 2 || cell[first] < '0' || cell[first] > '9')
            return false;
        any = true;
    }
    return any;
}

/// A table of the user's. Its script sorts it when a head is pressed.
inline std::string html_table(const char* who, const HtmlTable& table) {
    std::string html =
        "<section>\n<h2>" + escape_xml(table.title.empty() ? "Table" : table.title) + "</h2>\n";
    HtmlTableText text(table.title, "rows sortable");
    std::vector<bool> numbers;
    text.open("thead");
    for (std::size_t column = 0; column < table.heads.size(); ++column) {
        numbers.push_back(holds_numbers(table, column));
        text.head("<button type=\"button\">" + escape_xml(table.heads[column]) + "</button>",
                  numbers.back() ? " class=\"n\"" : "");
    }
    text.end_row();
    text.close("thead");
    text.open("tbody");
    for (std::size_t row = 0; row < table.rows.size(); ++row) {
        if (table.rows[row].size() > table.heads.size())
            throw Error(std::string(who) + ": row " + std::to_string(row) + " of the table '" + table.title +
                        "' has " + detail::counted(table.rows[row].size(), "cell") + ", and the table has " +
                        detail::counted(table.heads.size(), "column"));
        for (std::size_t column = 0; column < table.heads.size(); ++column)
            text.cell(column < table.rows[row].size() ? table.rows[row][column] : "", numbers[column]);
        text.end_row();
    }
    text.close("tbody");
    return html + std::move(text).text() + "</section>\n";
}

} // namespace sluice::detail::drawing
