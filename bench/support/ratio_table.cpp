#include "ratio_table.hpp"

#include <algorithm>
#include <cstdarg>
#include <cstdio>
#include <numeric>

#include "statistics.hpp"

namespace bench {

namespace {

[[gnu::format(printf, 1, 2)]] std::string text(const char* format, ...) {
    char buffer[96];
    std::va_list arguments;
    va_start(arguments, format);
    std::vsnprintf(buffer, sizeof buffer, format, arguments);
    va_end(arguments);
    return buffer;
}

std::string nanoseconds(const Spread& spread) {
    return text("%.0f [%.0f, %.0f]", spread.median, spread.min, spread.max);
}

} // namespace

bool RatioTable::ReportContext(const Context& context) {
    PrintBasicContext(&GetErrorStream(), context);
    return true;
}

void RatioTable::ReportRuns(const std::vector<Run>& runs) {
    for (const Run& run : runs) {
        if (run.run_type != Run::RT_Iteration)
            continue;
        Line& line = lines_[run.family_index];
        line.name = run.run_name.function_name;
        for (const auto& [name, counter] : run.counters)
            line.values[name].push_back(counter.value);
    }
}

void RatioTable::Finalize() {
    std::size_t width = 0;
    for (const auto& [index, line] : lines_)
        width = std::max(width, line.name.size());
    const auto name_width = static_cast<int>(width);

    std::printf(
        "Host time of one step in ns: median [min, max] of the repetitions. ratio: sluice / baseline of\n"
        "the medians; paired ratio: of bursts side by side. The last three: in all measured steps.\n");
    std::printf("%-*s  %-24s %-24s %9s  %6s  %-20s %7s %7s %5s\n", name_width, "", "baseline", "sluice",
                "per stage", "ratio", "paired ratio", "objects", "buffers", "heap");
    for (auto& [index, line] : lines_) {
        auto& values = line.values;
        const Spread step = spread_of(values["step_ns"]);
        std::string baseline = "-";
        std::string ratio = "-";
        std::string paired = "-";
        if (!values["baseline_ns"].empty()) {
            const Spread baseline_step = spread_of(values["baseline_ns"]);
            const Spread pairs = spread_of(values["ratio"]);
            baseline = nanoseconds(baseline_step);
            ratio = text("%.3f", step.median / baseline_step.median);
            paired = text("%.3f [%.3f, %.3f]", pairs.median, pairs.min, pairs.max);
        }
        const auto total = [&](const char* name) {
            return std::accumulate(values[name].begin(), values[name].end(), 0.0);
        };
        const double objects = total("objects");
        const double buffers = total("buffers");
        const double heap = total("heap");
        steady_ = steady_ && objects + buffers + heap == 0;
        std::printf("%-*s  %-24s %-24s %9.0f  %6s  %-20s %7.0f %7.0f %5.0f\n", name_width, line.name.c_str(),
                    baseline.c_str(), nanoseconds(step).c_str(),
                    step.median / spread_of(values["stages"]).median, ratio.c_str(), paired.c_str(), objects,
                    buffers, heap);
    }
}

} // namespace bench
