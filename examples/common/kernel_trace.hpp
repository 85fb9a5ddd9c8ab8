/// \file
/// Recording a program's kernels, for `--kernels`. For the files that know the backend.
#pragma once

#include <iosfwd>
#include <optional>
#include <string>
#include <utility>

#include <common/bad_input.hpp>
#include <common/kernel_reports.hpp>
#include <common/timelines.hpp>
#include <sluice/backend/concept.hpp>
#include <sluice/report/cupti.hpp>
#include <sluice/report/cupti_counters.hpp>

namespace examples {

/// The runs that were recorded kernel by kernel. Each is a run of its own after the one that is measured, since recording
/// slows it down.
class KernelTraces {
public:
    explicit KernelTraces(const TimelineOptions& options) : options_(options) {}

    /// \throws BadInput where kernels are asked for, and cannot be recorded on B on this machine
    template <sluice::Backend B>
    void require() const {
        if (options_.counters && !options_.kernels)
            throw BadInput("--counters: expected --kernels with it");
        if (!options_.kernels)
            return;
        if (std::string(B::name) != "cuda")
            throw BadInput("--kernels: expected --backend cuda, since CUPTI records what CUDA devices do");
        if (!sluice::KernelTrace::available())
            throw BadInput("--kernels: " + sluice::KernelTrace::why_unavailable());
    }

    /// Where kernels are asked for, has `train(timelines)` run once more while they are recorded. It gives the seconds that
    /// a timed step took; `seconds` is what one took before. The kernels become rows of a timeline in `drawn`.
    template <class Train>
    void run(double seconds, Timelines& drawn, Train&& train) {
        if (!options_.kernels)
            return;
        Timelines timed(options_);
        std::optional<sluice::CounterSampler> sampler;
        if (options_.counters)
            try_to_sample(sampler);
        sluice::KernelTrace trace;
        const double slowed = train(timed);
        sluice::DeviceActivities activities = trace.stop();
        std::optional<sluice::DeviceCounters> counters;
        if (sampler)
            counters = sampler->stop();
        reports_.add(std::move(activities), counters, timed, slowed / seconds, drawn);
    }

    /// Prints a table for each run.
    void show(std::ostream& out) const { reports_.show(out); }

private:
    // Counters may be forbidden on a machine where kernels can be recorded.
    void try_to_sample(std::optional<sluice::CounterSampler>& sampler) {
        try {
            sampler.emplace();
        } catch (const sluice::Error& error) {
            reports_.say(error.what());
        }
    }

    TimelineOptions options_;
    KernelReports reports_;
};

} // namespace examples
