// Bodies of pace_sentence and to_table, of timeline_report.hpp.
#pragma once

#include <algorithm>

#include <sluice/report/detail/counter_steps.hpp>
#include <sluice/report/detail/numbers.hpp>
#include <sluice/report/detail/timeline_text.hpp>

namespace sluice {

namespace detail::timeline_table {

inline constexpr std::size_t line_columns = 80;
inline constexpr double busy_enough = 0.75; // as a share, for what sets the pace

using numbers::count;
using numbers::fixed;
using numbers::four_digits;
using numbers::percent;
using numbers::TimeUnit;
using numbers::unit_for;

// The sentence
// -----------------------------------------------------------------------------------------------------

/// That `row`, of the report's `member`, is one of its rows, or none.
inline void require_row(const char* member, std::size_t row, const TimelineReport& report) {
    if (row < report.rows.size() || row == TimelineReport::no_row)
        return;
    throw Error(std::string("TimelineReport::") + member + " is row " + std::to_string(row) +
                ", and the report has " + detail::counted(report.rows.size(), "row") +
                "; expected one of them, or TimelineReport::no_row");
}

/// A row as a reader knows it, where `other` is named too.
inline std::string name_of(const TimelineReport& report, std::size_t row, std::size_t other) {
    const RowReport& named = report.rows[row];
    std::string number = "row " + std::to_string(row);
    if (named.name.empty())
        return number;
    std::string name = timeline_text::shortened(named.name, 24);
    if (other == TimelineReport::no_row || name != timeline_text::shortened(report.rows[other].name, 24))
        return name;
    const bool same_unit = named.unit.empty() || named.unit == report.rows[other].unit;
    return name + " (" + (same_unit ? number : timeline_text::shortened(named.unit, 12)) + ")";
}

/// Percent that `share` is not more than.
inline std::string percent_above(double share) {
    const double rounded = 100 * share - 1e-9; // a share of 0.4 is 40 %, whatever the last bit of it
    if (!(rounded > 0 && rounded < 1e9))
        return percent(share, 0) + " %";
    const auto whole = static_cast<int>(rounded);
    return std::to_string(whole + (rounded > whole ? 1 : 0)) + " %";
}

/// `text` in lines.
inline std::string wrapped(const std::string& text) {
    std::string result;
    for (const std::string& line : timeline_text::lines_of<timeline_text::Columns>(text, line_columns))
        result += (result.empty() ? "" : "\n") + line;
    return result;
}

// The head
// -----------------------------------------------------------------------------------------------------

/// Of at least one batch.
inline std::string latency_text(const LatencyReport& latency) {
    const TimeUnit of = unit_for(latency.median);
    const auto time = [&](double value) { return four_digits(value / of.microseconds); };
    return std::string("latency in ") + of.name + ": median " + time(latency.median) + ", p99 " +
           time(latency.p99) + ", p99.9 " + time(latency.p99_9) + ", max " + time(latency.longest) + ", of " +
           counted(count(latency.batches), "batch");
}
/// Empty where none were set.
inline std::string latency_text(const Timeline& timeline) {
    if (timeline.latencies().empty())
        return {};
    return latency_text(timeline_report::report_of_latencies(timeline.latencies()));
}

inline std::string head_of(const TimelineReport& report) {
    std::string head;
    if (!report.title.empty())
        head += timeline_text::shortened(report.title, line_columns) + '\n';
    const TimeUnit unit = unit_for(report.wall);
    head += four_digits(report.wall / unit.microseconds) + ' ' + unit.name + ", " +
            counted(count(report.batches), "batch");
    if (report.batches_per_second > 0)
        head += ", " + four_digits(report.batches_per_second) + " batches/s";
    head += '\n';
    bool has_device = false;
    for (const RowReport& row : report.rows)
        has_device = has_device || row.unit != "CPU";
    if (has_device && report.wall > 0) {
        const auto share = [](double value) { return percent(value) + " % "; };
        head += "device: " + share(report.device.compute_only) + "compute only, " +
                share(report.device.copy_only) + "copy only, " + share(report.device.both) + "both, " +
                share(report.device.neither) + "neither\n";
    }
    if (report.rows.size() > 1 && report.wall > 0) {
        head += "rows: " + percent(report.overlap) + " % two or more computing, busy times sum to " +
                four_digits(report.serial_sum) + " x the wall time\n";
    }
    if (report.latency.batches > 0)
        head += latency_text(report.latency) + '\n';
    return head;
}

// The table
// -----------------------------------------------------------------------------------------------------

/// A column of numbers, to the right of the names: two lines of head, then a cell a row.
struct Column {
    std::vector<std::string> cells;
    std::size_t width = 0;

    void add(const std::string& cell) {
        cells.push_back(cell);
        width = cell.size() > width ? cell.size() : width;
    }
};
inline constexpr std::size_t head_lines = 2;

inline std::vector<Column> columns_of(const TimelineReport& report) {
    double median = 0;
    double gap = 0;
    for (const RowReport& row : report.rows) {
        median = row.median > median ? row.median : median;
        gap = row.longest_gap > gap ? row.longest_gap : gap;
    }
    const TimeUnit unit = unit_for(median);
    const TimeUnit gap_unit = unit_for(gap);
    std::vector<Column> columns(8);
    const auto add_line = [&columns](const std::string(&cells)[8]) {
        for (std::size_t i = 0; i < columns.size(); ++i)
            columns[i].add(cells[i]);
    };
    add_line({"spans", "busy", "mean", "median", "p99", "max", "gaps", "max gap"});
    add_line({"", "%", unit.name, unit.name, unit.name, unit.name, "%", gap_unit.name});
    for (const RowReport& row : report.rows) {
        const auto time = [&](double value, const TimeUnit& in, bool any) {
            return any ? four_digits(value / in.microseconds) : std::string("-");
        };
        const bool any = row.spans > 0;
        const double gaps = report.wall > 0 ? row.gap_time / report.wall : 0;
        add_line({count(row.spans), percent(row.share), time(row.mean, unit, any),
                  time(row.median, unit, any), time(row.p99, unit, any), time(row.longest, unit, any),
                  percent(gaps < 1 ? gaps : 1), time(row.longest_gap, gap_unit, row.gaps > 0)});
    }
    return columns;
}

/// The widest of rows' names or units, or `limit` where that is less.
inline std::size_t widest(const TimelineReport& report, std::string RowReport::*text, std::size_t limit) {
    std::size_t result = 0;
    for (const RowReport& row : report.rows) {
        const std::size_t width = timeline_text::width_of(timeline_text::printable(row.*text));
        result = width > result ? width : result;
    }
    return result < limit ? result : limit;
}

/// How wide the table's columns are.
struct Widths {
    std::size_t name;
    std::size_t unit;  ///< 0 where no row has one.
    std::size_t space; ///< Between columns.
};

inline Widths widths_of(const TimelineReport& report, const std::vector<Column>& columns) {
    std::size_t numbers = 0;
    for (const Column& column : columns)
        numbers += column.width;
    Widths widths{};
    // Numbers take 8 columns of 8 at most, so that one space before each leaves 15 for names and units.
    widths.space = numbers + 2 * columns.size() + 18 <= line_columns ? 2 : 1;
    const std::size_t left = line_columns - (std::min)(numbers + widths.space * columns.size(), line_columns);
    widths.unit = widest(report, &RowReport::unit, left >= 16 ? 6 : 2);
    const std::size_t for_unit = widths.unit > 0 ? widths.unit + 1 : 0;
    widths.name = widest(report, &RowReport::name, left - (std::min)(for_unit, left));
    widths.name = widths.name < 3 ? 3 : widths.name; // "row"
    return widths;
}

inline std::string rows_of(const TimelineReport& report) {
    const std::vector<Column> columns = columns_of(report);
    const Widths widths = widths_of(report, columns);
    std::vector<std::size_t> names{widths.name};
    if (widths.unit > 0)
        names.push_back(widths.unit);
    std::vector<std::size_t> numbers;
    numbers.reserve(columns.size());
    for (const Column& column : columns)
        numbers.push_back(widths.space + column.width);
    TextTable table(names, numbers);
    const auto add_line = [&](const std::string& name, const std::string& unit, std::size_t line) {
        std::vector<std::string> cells{name};
        if (widths.unit > 0)
            cells.push_back(unit);
        for (const Column& column : columns)
            cells.push_back(column.cells[line]);
        table.add(cells);
    };
    add_line("row", widths.unit >= 4 ? "unit" : "", 0);
    add_line("", "", 1);
    for (std::size_t i = 0; i < report.rows.size(); ++i)
        add_line(report.rows[i].name, report.rows[i].unit, head_lines + i);
    return table.text();
}

/// A line for each counter.
inline std::string counters_of(const TimelineReport& report) {
    std::string text;
    for (const CounterReport& counter : report.counters) {
        text += timeline_text::shortened(counter.name.empty() ? "counter" : counter.name, 28) + ": ";
        if (counter.values == 0) {
            text += "no values\n";
            continue;
        }
        const std::string unit = timeline_text::shortened(counter.unit, 6);
        text += "peak " + counters::value_text(counter.peak, unit) + ", mean " +
                counters::value_text(counter.mean, unit) + '\n';
    }
    return text;
}

} // namespace detail::timeline_table

inline std::string pace_sentence(const TimelineReport& report) {
    namespace parts = detail::timeline_table;
    if (!report.sentence.empty())
        return report.sentence;
    parts::require_row("pace_row", report.pace_row, report);
    parts::require_row("next_row", report.next_row, report);
    if (report.pace_row == TimelineReport::no_row)
        return report.batches == 0 ? "nothing ran." : "nothing that ran took any time.";
    const RowReport& pace = report.rows[report.pace_row];
    const bool alone = report.next_row == TimelineReport::no_row;
    const std::string name = parts::name_of(report, report.pace_row, report.next_row);
    const std::string next = alone ? "" : parts::name_of(report, report.next_row, report.pace_row);
    const auto percent = [](double share) { return parts::percent(share, 0) + " %"; };
    const std::string next_share = alone ? "" : percent(report.rows[report.next_row].share);
    if (pace.share >= parts::busy_enough) {
        return name + " set the pace: it was busy " + percent(pace.share) + " of the time" +
               (alone ? "." : ", " + next + ' ' + next_share + '.');
    }
    if (report.busy_share >= parts::busy_enough && !alone) {
        return "no stage set the pace alone: something ran " + percent(report.busy_share) +
               " of the time, but " + name + " only " + percent(pace.share) + " and " + next + ' ' +
               next_share + ", so they waited for one another.";
    }
    return "no stage was busy more than " + parts::percent_above(pace.share) +
           " of the time: the host or the source set the pace.";
}

inline std::string to_table(const TimelineReport& report) {
    namespace parts = detail::timeline_table;
    std::string table = parts::head_of(report) + '\n';
    if (!report.rows.empty())
        table += parts::rows_of(report) + '\n';
    if (!report.counters.empty())
        table += parts::counters_of(report) + '\n';
    return table + parts::wrapped(pace_sentence(report)) + '\n';
}

} // namespace sluice
