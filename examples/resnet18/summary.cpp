#include <resnet18/summary.hpp>

#include <array>
#include <cstdint>
#include <cstdio>
#include <ostream>
#include <utility>
#include <vector>

#include <common/checkpoint.hpp>
#include <common/text.hpp>

namespace resnet18 {
namespace {

template <class... Numbers>
std::string formatted(const char* format, Numbers... numbers) {
    std::array<char, 160> text{};
    (void)std::snprintf(text.data(), text.size(), format, numbers...);
    return text.data();
}

std::string percent(double share) { return formatted("%.1f %%", 100 * share); }

/// Shares of a step's time by what they went into, which sum to 1. Kernels and copies are known where CUPTI recorded them;
/// otherwise only what the training's thread did.
std::vector<std::pair<const char*, double>> causes_of(const Summary& summary) {
    if (summary.kernels && summary.kernels->wall > 0) {
        const sluice::TimeByCause& causes = summary.kernels->causes;
        const double wall = summary.kernels->wall;
        return {{"kernels", causes.kernel / wall}, {"copies", causes.copy / wall},
                {"fills", causes.set / wall},      {"calls of CUDA", causes.runtime / wall},
                {"loading", causes.source / wall}, {"other", (causes.communication + causes.other) / wall}};
    }
    const double waiting = summary.pace.waiting_seconds / summary.pace.seconds;
    const double submitting = summary.pace.submitting_seconds / summary.pace.seconds;
    return {{"loading", waiting}, {"enqueuing", submitting}, {"other", 1 - waiting - submitting}};
}

/// How busy the device was, and how much of its kernels' time went to those that use Tensor Cores.
std::string device_of(const sluice::ActivityReport& kernels) {
    std::string text = "device busy " + percent(kernels.busy_share) + " of the time, ";
    if (kernels.tensor_core_unknown < 1)
        text += "Tensor Core kernels " + percent(kernels.tensor_core_share) + " of the kernels' time, ";
    if (kernels.tensor_core_unknown > 0 && kernels.tensor_core_unknown < 1)
        text += "of " + percent(kernels.tensor_core_unknown) + " it is not known, ";
    return text;
}

} // namespace

void print(const Summary& summary, std::ostream& out) {
    const double step = 1e3 * summary.pace.seconds / static_cast<double>(summary.pace.steps);
    out << "  " << summary.schedule << ": "
        << examples::with_commas(static_cast<std::uint64_t>(summary.samples_per_second + 0.5))
        << " samples/s, " << formatted(step < 10 ? "%.3f" : "%.1f", step) << " ms a step, "
        << (summary.kernels ? device_of(*summary.kernels) : "") << "stages at work "
        << percent(summary.at_work_share) << ", peak device memory "
        << formatted("%.0f", static_cast<double>(summary.peak_bytes) / 1e6) << " MB\n    time by cause"
        << (summary.kernels ? "" : " of the training's thread") << ':';
    const char* separator = " ";
    for (const auto& [cause, share] : causes_of(summary)) {
        out << separator << cause << ' ' << percent(share);
        separator = ", ";
    }
    out << '\n';
    if (summary.alone) {
        out << "    the step alone, on images that are there: "
            << examples::with_commas(static_cast<std::uint64_t>(*summary.alone + 0.5))
            << " samples/s, of which " << percent(summary.samples_per_second / *summary.alone)
            << " are reached with input\n";
    }
    out << "    " << examples::weights_line(summary.weights, summary.steps_done) << '\n';
    if (summary.held_out_accuracy)
        out << "    names " << percent(*summary.held_out_accuracy) << " of the held-out digits\n";
    if (summary.same_bits)
        out << "    the same bits as serial: " << (*summary.same_bits ? "yes" : "no") << '\n';
    if (!summary.bound.sentence.empty())
        out << "    " << summary.bound.sentence << '\n';
    out.flush();
}

void add_to(examples::RunResult& run, const Summary& summary) {
    const auto whole = [](auto value) { return static_cast<std::int64_t>(value); };
    run.extra.emplace_back("rung", whole(summary.rung));
    run.extra.emplace_back("batch", whole(summary.batch));
    run.extra.emplace_back("precision", summary.precision);
    run.extra.emplace_back("workers", whole(summary.workers));
    run.extra.emplace_back("weights", summary.weights);
    run.extra.emplace_back("samples_per_second", summary.samples_per_second);
    run.extra.emplace_back("at_work_share", summary.at_work_share);
    run.extra.emplace_back("device_bytes", whole(summary.peak_bytes));
    for (const auto& [cause, share] : causes_of(summary))
        run.extra.emplace_back(std::string("share of ") + cause, share);
    if (summary.kernels) {
        run.extra.emplace_back("busy_share", summary.kernels->busy_share);
        run.extra.emplace_back("tensor_core_share", summary.kernels->tensor_core_share);
        run.extra.emplace_back("tensor_core_unknown", summary.kernels->tensor_core_unknown);
    }
    if (summary.alone)
        run.extra.emplace_back("samples_per_second_alone", *summary.alone);
    if (summary.held_out_accuracy)
        run.extra.emplace_back("held_out_accuracy", *summary.held_out_accuracy);
    run.extra.emplace_back("bound", summary.bound.sentence);
}

} // namespace resnet18
