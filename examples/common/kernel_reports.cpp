#include <common/kernel_reports.hpp>

#include <ostream>
#include <utility>

#include <sluice/report/kernel_tables.hpp>

namespace examples {

std::optional<sluice::ActivityReport> KernelReports::add(sluice::DeviceActivities activities,
                                                         const Timelines& timed, double slowdown,
                                                         Timelines& drawn) {
    std::optional<sluice::ActivityReport> last;
    // A run has one pipeline.
    for (const sluice::Timeline& timeline : timed.all()) {
        assign_to_stages(activities, timeline);
        const sluice::ActivityReport& report = last.emplace(sluice::report_of(
            activities,
            {.title = timeline.title() + ", kernels", .timeline = &timeline, .slowdown = slowdown}));
        tables_.push_back(sluice::to_table(report));
        for (sluice::HtmlTable& page_table : sluice::tables_of(report))
            drawn.add_table(std::move(page_table));
        sluice::Timeline with_kernels(timeline.title() + ", kernels");
        with_kernels.set_clock_zero(timeline.clock_zero());
        for (const sluice::TimelineRow& row : timeline.rows())
            with_kernels.add_row(row.name, row.unit);
        for (const sluice::TimelineSpan& span : timeline.spans())
            with_kernels.add(span);
        for (const sluice::TimelineCounter& counter : timeline.counters())
            with_kernels.add_counter(counter.name, counter.unit);
        for (const sluice::TimelineValue& value : timeline.values())
            with_kernels.add_value(value.counter, value.time, value.value);
        add_rows(with_kernels, activities);
        drawn.add_drawing(std::move(with_kernels));
    }
    return last;
}

void KernelReports::show(std::ostream& out) const {
    for (const std::string& table : tables_)
        out << '\n' << table;
}

} // namespace examples
