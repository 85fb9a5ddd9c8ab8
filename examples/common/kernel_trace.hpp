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

namespace examples {

/// The runs that were recorded kernel by kernel. Each is a run of its own after the one that is measured, since recording
/// slows it down.
class KernelTraces {
public:
    explicit KernelTraces(const TimelineOptions& options) : options_(options) {}

    /// Call it before the program's first kernel. \throws BadInput where kernels are asked for, and cannot be recorded on B on this machine
    template <sluice::Backend B>
    void require() const {
        if (!options_.kernels)
            return;
        if (std::string(B::name) != "cuda")
            throw BadInput("--kernels: expected --backend cuda, since CUPTI records what CUDA devices do");
        if (!sluice::KernelTrace::available())
            throw BadInput("--kernels: " + sluice::KernelTrace::why_unavailable());
        sluice::KernelTrace::note_tensor_cores(); // before any kernel is loaded
    }

    /// Where kernels are asked for, has `train(timelines)` run once more while they are recorded. It gives the seconds that
    /// a timed step took; `seconds` is what one took before. The kernels become rows of a timeline in `drawn`. Returns
    /// what they were; empty where nothing is asked for.
    template <class Train>
    std::optional<sluice::ActivityReport> run(double seconds, Timelines& drawn, Train&& train) {
        if (!options_.kernels)
            return std::nullopt;
        Timelines timed(options_);
        sluice::KernelTrace trace;
        const double slowed = train(timed);
        return reports_.add(trace.stop(), timed, slowed / seconds, drawn);
    }

    /// Prints a table for each run.
    void show(std::ostream& out) const { reports_.show(out); }

private:
    TimelineOptions options_;
    KernelReports reports_;
};

} // namespace examples
