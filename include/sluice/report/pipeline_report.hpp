/// \file
/// What a pipeline did, as a timeline and in numbers.
#pragma once

#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include <sluice/pipeline/pipeline.hpp>
#include <sluice/report/timeline.hpp>
#include <sluice/report/timeline_report.hpp>

namespace sluice {

namespace detail {
template <Backend B>
std::string device_unit(int device) {
    const std::string backend = B::name;
    return (backend == "cuda" ? "GPU" : backend) + " " + std::to_string(device);
}
} // namespace detail

/// The last batches of a pipeline that was made with `PipelineOptions::timed_batches`, as a timeline: a row for each stage,
/// of the unit "GPU 0" or "host 0", or "CPU" for a CPU stage, and a row "graphs" where whole steps were replayed. Waits for
/// nothing: call it after `finish`. Its zero is when the first of them began, so that one run's can be drawn below another's.
/// All spans are of kind `compute`: what a stage enqueues, kernels or copies, is not known.
/// \throws Error as `Pipeline::stage_times` does.
template <class StageList, class SlotList>
Timeline timeline_of(Pipeline<StageList, SlotList>& pipeline, std::string title = {}) {
    using Pipe = Pipeline<StageList, SlotList>;
    const std::vector<StageTime> times = pipeline.stage_times();
    Timeline timeline(std::move(title));
    for (std::size_t stage = 0; stage < Pipe::stage_count; ++stage) {
        timeline.add_row(pipeline.stage_name(stage),
                         pipeline.is_cpu_stage(stage)
                             ? "CPU"
                             : detail::device_unit<typename Pipe::backend>(pipeline.device_of(stage)));
    }
    double zero = times.empty() ? 0 : times.front().begin;
    for (const StageTime& time : times)
        zero = time.begin < zero ? time.begin : zero;
    timeline.set_clock_zero(zero);
    for (const StageTime& time : times) {
        if (time.stage == Pipe::stage_count && timeline.rows().size() == Pipe::stage_count)
            timeline.add_row("graphs", detail::device_unit<typename Pipe::backend>(pipeline.device_of(0)));
        timeline.add({time.stage, time.batch, time.begin - zero, time.end - zero, SpanKind::compute});
    }
    return timeline;
}

/// The same in numbers.
template <class StageList, class SlotList>
TimelineReport report_of(Pipeline<StageList, SlotList>& pipeline, std::string title = {}) {
    return report_of(timeline_of(pipeline, std::move(title)));
}

} // namespace sluice
