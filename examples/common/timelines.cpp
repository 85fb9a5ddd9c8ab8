#include <common/timelines.hpp>

#include <array>
#include <cstddef>
#include <cstdio>
#include <ostream>
#include <string_view>
#include <utility>

#include <sluice/report/html.hpp>
#include <sluice/report/merge_timelines.hpp>
#include <sluice/report/perfetto.hpp>
#include <sluice/report/svg.hpp>
#include <sluice/report/timeline_report.hpp>

namespace examples {
namespace {

// All of them in one, for a file that holds one.
sluice::Timeline joined(const std::vector<const sluice::Timeline*>& timelines) {
    sluice::Timeline all;
    for (const sluice::Timeline* const timeline : timelines) {
        const std::size_t first = all.rows().size();
        for (const sluice::TimelineRow& row : timeline->rows())
            all.add_row(row.name, timeline->title() + ", " + row.unit);
        const std::size_t first_counter = all.counters().size();
        for (const sluice::TimelineCounter& counter : timeline->counters())
            all.add_counter(timeline->title() + ", " + counter.name, counter.unit);
        for (const sluice::TimelineValue& value : timeline->values())
            all.add_value(first_counter + value.counter, value.time, value.value);
        for (sluice::TimelineSpan span : timeline->spans()) {
            span.row += first;
            all.add(span);
        }
    }
    return all;
}

std::vector<std::string> cells_of(const RankCost& cost) {
    std::vector<std::string> cells{std::to_string(cost.rank)};
    for (const double time : {cost.step, cost.stage, cost.ahead}) {
        std::array<char, 64> text{};
        std::snprintf(text.data(), text.size(), "%.1f", time);
        cells.emplace_back(text.data());
    }
    return cells;
}

// A table of costs for a page, of a stage with a short name.
sluice::HtmlTable table_of(const std::vector<RankCost>& costs, const std::string& stage) {
    sluice::HtmlTable table;
    table.heads = {"rank", "step us", stage + " us", "ahead us"};
    for (const RankCost& cost : costs)
        table.rows.push_back(cells_of(cost));
    return table;
}

// The same for a terminal, and what it means.
std::string to_text(const sluice::HtmlTable& table, const std::string& stage) {
    if (table.rows.empty())
        return {};
    std::string text;
    const auto add_line = [&](const std::vector<std::string>& cells) {
        for (const std::string& cell : cells)
            text += std::string(cell.size() < 11 ? 11 - cell.size() : 1, ' ') + cell;
        text += '\n';
    };
    add_line(table.heads);
    for (const std::vector<std::string>& row : table.rows)
        add_line(row);
    return text + "ahead: how long before the last rank it began " + stage +
           ", whose collectives wait for that one\n";
}

} // namespace

std::vector<RankCost> Timelines::add_ranks(const std::vector<RankTimeline>& ranks, const std::string& stage) {
    std::vector<RankTimeline> here;
    std::vector<sluice::NamedTimeline> named;
    left_out_.clear();
    for (const RankTimeline& rank : ranks) {
        const std::string name = "rank " + std::to_string(rank.rank);
        if (rank.host == ranks[0].host) {
            here.push_back(rank);
            named.push_back({name, &rank.timeline});
        } else {
            left_out_ += (left_out_.empty() ? "" : ", ") + name + " on " + rank.host;
        }
    }
    const std::vector<RankCost> costs = costs_of(here, stage);
    sluice::HtmlTable table = table_of(costs, stage);
    timelines_.push_back(ranks[0].timeline);
    rank_runs_.push_back({sluice::merge_timelines(named, ranks[0].timeline.title()), to_text(table, stage)});
    table.title = ranks[0].timeline.title() + ", ranks";
    if (!costs.empty())
        add_table(std::move(table));
    return costs;
}

void Timelines::show(std::ostream& out, Report& report) const {
    if (options_.report) {
        for (std::size_t i = 0; i < timelines_.size(); ++i) {
            const sluice::TimelineReport numbers = sluice::report_of(timelines_[i]);
            out << '\n' << sluice::to_table(numbers);
            report.timelines.push_back(sluice::to_json(numbers));
            if (!rank_runs_.empty() && !rank_runs_[i].costs.empty())
                out << '\n' << rank_runs_[i].costs;
        }
    }
    if (!left_out_.empty())
        out << "left out of what ran when, since their hosts' clocks are others: " << left_out_ << std::endl;
    if (options_.file.empty())
        return;
    std::vector<const sluice::Timeline*> all;
    for (const RankRun& run : rank_runs_)
        all.push_back(&run.merged);
    if (rank_runs_.empty()) {
        for (const sluice::Timeline& timeline : timelines_)
            all.push_back(&timeline);
    }
    for (const sluice::Timeline& drawing : drawings_)
        all.push_back(&drawing);
    const std::string_view file = options_.file;
    if (file.ends_with(".svg"))
        sluice::write_svg(all, options_.file);
    else if (file.ends_with(".html"))
        sluice::write_html(all, options_.file,
                           {.title = report.experiment,
                            .text = "device: " + report.device + "\ndata: " + report.data,
                            .tables = tables_});
    else
        sluice::write_perfetto(joined(all), options_.file);
    out << "what ran when: " << options_.file << std::endl;
}

} // namespace examples
