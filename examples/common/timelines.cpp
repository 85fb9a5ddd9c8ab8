#include <common/timelines.hpp>

#include <cstddef>
#include <ostream>
#include <string_view>

#include <sluice/report/html.hpp>
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

} // namespace

void Timelines::show(std::ostream& out, Report& report) const {
    if (options_.report) {
        for (const sluice::Timeline& timeline : timelines_) {
            const sluice::TimelineReport numbers = sluice::report_of(timeline);
            out << '\n' << sluice::to_table(numbers);
            report.timelines.push_back(sluice::to_json(numbers));
        }
    }
    if (options_.file.empty())
        return;
    std::vector<const sluice::Timeline*> all;
    for (const auto* const timelines : {&timelines_, &drawings_}) {
        for (const sluice::Timeline& timeline : *timelines)
            all.push_back(&timeline);
    }
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
