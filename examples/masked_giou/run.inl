// The body of run.hpp, for the files that make it for one backend each.
#pragma once

#include <ostream>

#include <common/timelines.hpp>
#include <masked_giou/forward.hpp>
#include <masked_giou/losses.hpp>
#include <masked_giou/run.hpp>
#include <masked_giou/run_train.hpp>
#include <masked_giou/work.hpp>

template <sluice::Backend B>
examples::Report masked_giou::run(const Options& options, std::ostream& out) {
    examples::Report report;
    report.experiment = "masked_giou";
    report.backend = B::name;
    report.device = B::device_name(B::current_device());
    report.data = options.data;
    out << "masked_giou on " << report.backend << ": " << report.device << std::endl;
    examples::Timelines timelines(options.timelines);
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
