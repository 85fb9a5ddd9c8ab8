#include "round_table.hpp"

#include <algorithm>
#include <cstdio>
#include <numeric>

#include "statistics.hpp"

namespace bench {

namespace {

std::vector<RoundColumn>& columns() {
    static std::vector<RoundColumn> all;
    return all;
}

std::string group_of(const std::string& name) { return name.substr(0, name.find('/')); }

// What is wrong with a run; Google Benchmark 1.8 renamed it.
template <class Run>
std::string error_of(const Run& run) {
    if constexpr (requires { run.error_occurred; })
        return run.error_occurred ? run.error_message : "";
    else
        return run.skipped ? run.skip_message : "";
}

std::string cell(const RoundColumn& column, const std::vector<double>& values) {
    char text[64];
    const Spread spread = spread_of(values);
    if (column.kind == RoundColumn::Kind::time)
        std::snprintf(text, sizeof text, "%.2f", spread.median);
    else
        std::snprintf(text, sizeof text, "%.3f [%.3f, %.3f]", spread.median, spread.min, spread.max);
    return text;
}

} // namespace

void RoundTable::note_column(const std::string& name, RoundColumn::Kind kind) {
    auto& all = columns();
    const auto same = [&](const RoundColumn& column) { return column.name == name; };
    if (std::none_of(all.begin(), all.end(), same))
        all.push_back({name, kind});
}

bool RoundTable::ReportContext(const Context& context) {
    PrintBasicContext(&GetErrorStream(), context);
    return true;
}

void RoundTable::ReportRuns(const std::vector<Run>& runs) {
    for (const Run& run : runs) {
        if (run.run_type != Run::RT_Iteration)
            continue;
        Line& line = lines_[run.family_index];
        line.name = run.run_name.function_name;
        if (const std::string error = error_of(run); !error.empty()) {
            line.error = error;
            continue;
        }
        for (const auto& [name, counter] : run.counters)
            line.values[name].push_back(counter.value);
        std::fprintf(stderr, "%s: done\n", line.name.c_str());
    }
}

void RoundTable::Finalize() {
    std::vector<Line*> lines;
    for (auto& [index, line] : lines_) {
        failed_ = failed_ || !line.error.empty();
        if (!lines.empty() && group_of(lines.front()->name) != group_of(line.name)) {
            print_group(lines);
            lines.clear();
        }
        lines.push_back(&line);
    }
    if (!lines.empty())
        print_group(lines);
}

void RoundTable::print_group(const std::vector<Line*>& lines) const {
    // A row for the heads, and one for each case.
    std::vector<std::vector<std::string>> rows{{"us a step"}};
    for (const Line* line : lines)
        rows.push_back({line->name});
    const auto add_column = [&](const std::string& head, auto&& text) {
        const auto has_it = [&](const Line* line) { return line->values.count(head) > 0; };
        if (std::none_of(lines.begin(), lines.end(), has_it))
            return;
        rows[0].push_back(head);
        for (std::size_t i = 0; i < lines.size(); ++i) {
            const auto found = lines[i]->values.find(head);
            rows[i + 1].push_back(found == lines[i]->values.end() ? "-" : text(found->second));
        }
    };
    for (const RoundColumn& column : columns())
        add_column(column.name, [&](const std::vector<double>& values) { return cell(column, values); });
    for (const char* total : {"objects", "buffers", "heap"}) {
        add_column(total, [](const std::vector<double>& values) {
            return std::to_string(static_cast<long long>(std::accumulate(values.begin(), values.end(), 0.0)));
        });
    }
    std::vector<std::size_t> widths;
    for (const auto& row : rows) {
        widths.resize(std::max(widths.size(), row.size()));
        for (std::size_t i = 0; i < row.size(); ++i)
            widths[i] = std::max(widths[i], row[i].size());
    }
    std::printf("\n");
    for (std::size_t i = 0; i < rows.size(); ++i) {
        for (std::size_t column = 0; column < rows[i].size(); ++column)
            std::printf("%-*s  ", static_cast<int>(widths[column]), rows[i][column].c_str());
        if (i > 0 && !lines[i - 1]->error.empty())
            std::printf("FAILED: %s", lines[i - 1]->error.c_str());
        std::printf("\n");
    }
    (void)std::fflush(stdout);
}

} // namespace bench
