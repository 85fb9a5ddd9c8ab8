/// \file
/// The experiment from beginning to end.
#pragma once

#include <ostream>

#include <common/report.hpp>
#include <common/timelines.hpp>
#include <masked_giou/forward.hpp>
#include <masked_giou/losses.hpp>
#include <masked_giou/options.hpp>
#include <masked_giou/run_train.hpp>
#include <masked_giou/work.hpp>
#include <sluice/backend/default.hpp>

namespace masked_giou {

/// Runs the parts that were asked for. Tells the story on `out`, and returns what the JSON file holds: a run
/// for each thing measured, named by its members `part`, `variant` and `pass`.
///
/// Throws `examples::BadInput` for data that cannot be read, `sluice::Error` for a backend's failure.
template <sluice::Backend B>
examples::Report run(const Options& options, std::ostream& out) {
    examples::Report report;
    report.experiment = "masked_giou";
    report.backend = B::name;
    report.device = B::device_name(B::current_device());
    report.data = options.data;
    out << "masked_giou on " << report.backend << ": " << report.device << std::endl;
    examples::Timelines timelines(options.timelines);
    timelines.sample_memory<B>();
    if (options.wants("losses"))
        run_losses<B>(options, report, timelines, out);
    if (options.wants("work"))
        run_work<B>(options, report, out);
    if (options.wants("forward"))
        run_forward<B>(options, report, timelines, out);
    if (options.wants("train"))
        run_train<B>(options, report, timelines, out);
    timelines.show(out, report);
    return report;
}

// run_host.cpp and run_cuda.cpp instantiate it, beside each other.
extern template examples::Report run<sluice::Host>(const Options&, std::ostream&);
#if SLUICE_HAS_CUDA
extern template examples::Report run<sluice::Cuda>(const Options&, std::ostream&);
#endif

} // namespace masked_giou
