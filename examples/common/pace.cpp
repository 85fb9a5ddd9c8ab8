#include <common/pace.hpp>

#include <array>
#include <cmath>
#include <cstdio>

namespace examples {
namespace {

std::string whole(double number) {
    std::array<char, 32> text{};
    (void)std::snprintf(text.data(), text.size(), "%.0f", number);
    return text.data();
}

} // namespace

std::string bound_line(const Pace& pace, const std::vector<sluice::FillTime>& fills, int workers,
                       bool graphs) {
    if (pace.steps == 0 || !(pace.seconds > 0))
        return {};
    const double step = 1e6 * pace.seconds / static_cast<double>(pace.steps);
    const double waiting = 1e6 * pace.waiting_seconds / static_cast<double>(pace.steps);
    const double submitting = 1e6 * pace.submitting_seconds / static_cast<double>(pace.steps);
    double fill = 0;
    for (const sluice::FillTime& time : fills)
        fill += (time.end - time.begin) / static_cast<double>(fills.size());
    const bool fills_always =
        workers == 0 ? fill >= 0.5 * step : fill >= 0.85 * step * static_cast<double>(workers);
    if (!fills.empty() && fills_always && waiting >= 0.1 * step) {
        const double others = step - waiting;
        const double all = std::ceil(fill / (others > 1 ? others : 1));
        std::string line = "the source bounds this: ";
        line += workers == 0   ? "the thread that submits fills"
                : workers == 1 ? "one worker fills"
                               : "each of " + std::to_string(workers) + " workers fills";
        line += " a batch in " + whole(fill) + " us, and a step takes " + whole(step);
        if (all > workers && all < 64)
            line += "; up to " + whole(all) + " workers help, see --workers";
        return line;
    }
    if (submitting >= 0.75 * step) {
        return "launches bound this: " + whole(submitting) + " of a step's " + whole(step) +
               " us are spent in submit" + (graphs ? "" : "; graphs spare most of them");
    }
    return {};
}

} // namespace examples
