// Writes a timeline as a Perfetto trace and as plain JSON, for perfetto_read_back.py, which compares the two.
#include <cstddef>
#include <cstdio>
#include <fstream>
#include <iomanip>
#include <random>
#include <string>

#include <sluice/report/perfetto.hpp>

namespace {

/// Rows in and without units. Those of the last two overlap, as kernels of one stream do, and some spans last no time.
sluice::Timeline make() {
    std::mt19937 random(17);
    sluice::Timeline timeline("read back");
    const char* const units[] = {"CPU", "GPU 0", "GPU 0", ""};
    const char* const names[] = {"source", "encode", "kernels", "loose"};
    for (std::size_t row = 0; row < 4; ++row)
        timeline.add_row(names[row], units[row]);
    double at = -12.5;
    for (std::size_t i = 0; i < 3000; ++i) {
        const std::size_t row = i % 4;
        const double duration = static_cast<double>(random() % 20'000) / 997;
        const double begin = row < 2 ? at : static_cast<double>(random() % 60'000) / 7;
        timeline.add({row, i / 4, begin, begin + (i % 97 == 0 ? 0 : duration),
                      static_cast<sluice::SpanKind>(random() % 4)});
        at += row < 2 ? duration : 0;
    }
    const std::size_t memory = timeline.add_counter("device memory", "B");
    const std::size_t power = timeline.add_counter("power", "W");
    for (int i = 0; i < 200; ++i) {
        timeline.add_value(memory, i * 40.25, static_cast<double>(random()));
        timeline.add_value(power, i * 31.5 - 20, static_cast<double>(random()) / 1e7 - 100);
    }
    return timeline;
}

void write_json(const sluice::Timeline& timeline, const std::string& path) {
    const char* const kinds[] = {"compute", "copy", "source", "wait"};
    std::ofstream out(path);
    out << std::setprecision(17) << "{\"title\":\"" << timeline.title() << "\",\"spans\":[";
    const char* comma = "";
    for (const sluice::TimelineSpan& span : timeline.spans()) {
        const sluice::TimelineRow& row = timeline.rows()[span.row];
        out << comma << "\n{\"row\":\"" << row.name << "\",\"unit\":\"" << row.unit
            << "\",\"batch\":" << span.batch << ",\"kind\":\"" << kinds[static_cast<std::size_t>(span.kind)]
            << "\",\"begin\":" << span.begin << ",\"end\":" << span.end << '}';
        comma = ",";
    }
    out << "],\"values\":[";
    comma = "";
    for (const sluice::TimelineValue& value : timeline.values()) {
        const sluice::TimelineCounter& counter = timeline.counters()[value.counter];
        out << comma << "\n{\"counter\":\"" << counter.name << "\",\"unit\":\"" << counter.unit
            << "\",\"time\":" << value.time << ",\"value\":" << value.value << '}';
        comma = ",";
    }
    out << "]}\n";
}

} // namespace

int main(int count, char** arguments) {
    if (count != 3) {
        std::fprintf(stderr, "usage: write_trace TRACE JSON\n");
        return 2;
    }
    const sluice::Timeline timeline = make();
    sluice::write_perfetto(timeline, arguments[1]);
    write_json(timeline, arguments[2]);
    return 0;
}
