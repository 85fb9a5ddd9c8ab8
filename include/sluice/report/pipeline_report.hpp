/// \file
/// What a pipeline did, as a timeline and in numbers.
#pragma once

#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include <sluice/backend/device.hpp>
#include <sluice/pipeline/any_pipeline.hpp>
#include <sluice/pipeline/pipeline.hpp>
#include <sluice/report/bound.hpp>
#include <sluice/report/detail/checked/missing_edges.hpp>
#include <sluice/report/timeline.hpp>
#include <sluice/report/timeline_report.hpp>

namespace sluice {

namespace detail {
/// For reports.
struct PipelineAccess {
    template <class StageList, class SlotList>
    static const auto& core(const Pipeline<StageList, SlotList>& pipeline) noexcept {
        return pipeline.core_;
    }
    template <class Batch, Backend B>
    static const auto& core(const AnyPipeline<Batch, B>& pipeline) {
        return pipeline.core();
    }
};
template <Backend B>
std::string device_unit(int device) {
    const std::string backend = B::name;
    return (backend == "cuda" ? "GPU" : backend) + " " + std::to_string(device);
}
template <class StageList, class SlotList>
constexpr std::size_t stages_of(const Pipeline<StageList, SlotList>&) noexcept {
    return Pipeline<StageList, SlotList>::stage_count;
}
template <class Batch, Backend B>
std::size_t stages_of(const AnyPipeline<Batch, B>& pipeline) {
    return pipeline.stages();
}

namespace pipeline_report {
/// How fast a source that drops sends, and how many it has dropped.
void note_pace(PipelineTimes& times);
/// Why most runs of a graphed pipeline launched no graph; empty where most did, of few runs, and of stages that are not to have any.
std::string why_eager(const GraphCounters& counters);
/// Keeps the fills of batches that the pipeline has noted, too, if there are any.
void keep_noted_fills(PipelineTimes& times);
/// What stages could have of a device.
template <Backend B>
void note_device(PipelineTimes& times, int device) {
    if constexpr (ShareBackend<B>) {
        const DeviceGuard<B> current(device);
        try {
            times.share_unit = B::share_unit();
            times.multiprocessors = B::multiprocessors();
        } catch (const Error&) {
            // A driver that has no shares: nothing.
        }
    }
}
} // namespace pipeline_report
} // namespace detail

/// A `Pipeline` or an `AnyPipeline`.
template <class Pipe>
concept ReportedPipeline = requires(Pipe& pipeline) {
    detail::stages_of(pipeline);
};

/// What was noted of the last batches of a pipeline that was made with `PipelineOptions::timed_batches`. Call it after
/// `finish`. \throws Error as `Pipeline::stage_times` does.
template <ReportedPipeline Pipe>
PipelineTimes times_of(Pipe& pipeline) {
    PipelineTimes times;
    for (std::size_t stage = 0; stage < detail::stages_of(pipeline); ++stage) {
        times.stage_names.push_back(pipeline.stage_name(stage));
        times.stage_units.push_back(
            pipeline.is_cpu_stage(stage)
                ? "CPU"
                : detail::device_unit<typename Pipe::backend>(pipeline.device_of(stage)));
        times.batches_a_run.push_back(detail::PipelineAccess::core(pipeline).place_of(stage).batches_a_run);
    }
    times.schedule = pipeline.options().schedule == Schedule::automatic ? pipeline.choice().schedule
                                                                        : pipeline.options().schedule;
    times.stages = pipeline.stage_times();
    times.submits = pipeline.submit_times();
    detail::pipeline_report::add_missing_edges<typename Pipe::backend>(times);
    times.submitted = pipeline.submitted();
    times.shares = pipeline.shares();
    if (pipeline.options().schedule == Schedule::graphed)
        times.eager = detail::pipeline_report::why_eager(pipeline.graph_counters());
    detail::pipeline_report::note_device<typename Pipe::backend>(times, pipeline.device_of(0));
    return times;
}

/// The same, with what was noted of the source that filled its batches, which was made with
/// `SourceOptions::timed_batches`. \throws Error as above, and as `Source::fill_times` does.
template <ReportedPipeline Pipe, class Source>
PipelineTimes times_of(Pipe& pipeline, const Source& source) {
    PipelineTimes times = times_of(pipeline);
    times.fills = source.fill_times();
    times.workers = source.workers();
    if constexpr (requires { source.drops(); }) {
        times.drops = source.drops();
        if (times.drops)
            detail::pipeline_report::note_pace(times);
    }
    detail::pipeline_report::keep_noted_fills(times);
    return times;
}

/// The same as a timeline: a row for each stage, of the unit "GPU 0" or "host 0", or "CPU" for a CPU stage; a row "graphs"
/// where whole steps were replayed and the backend cannot tell when stages worked within; a row "submit" for the calls of `submit` and the waits for the source; a row for each
/// of the source's workers. Its zero is when the first stage began; what came before is cut off.
///
/// On a checked backend (backend/checked.hpp), the races that were found between stages are its missing edges, those of other
/// pipelines with stages of these names too. To have them and the whole run, call `checked::throw_mistakes(false)` before.
///
/// Spans of stages are of kind `compute`: what a stage enqueues, kernels or copies, is not known. Those of the host are of
/// kind `source`, or `wait`.
/// \throws Error for times that are not finite or of no stage, and for tables without an entry for each stage.
Timeline timeline_of(const PipelineTimes& times, std::string title = {});

/// The same in numbers, with `bound_of` as its sentence.
TimelineReport report_of(const PipelineTimes& times, std::string title = {});

/// `timeline_of(times_of(pipeline), title)`, and likewise with a source.
template <ReportedPipeline Pipe>
Timeline timeline_of(Pipe& pipeline, std::string title = {}) {
    return timeline_of(times_of(pipeline), std::move(title));
}
/// The same.
template <ReportedPipeline Pipe, class Source>
requires requires(const Source& source) { source.fill_times(); }
Timeline timeline_of(Pipe& pipeline, const Source& source, std::string title = {}) {
    return timeline_of(times_of(pipeline, source), std::move(title));
}

/// `report_of(times_of(pipeline), title)`, and likewise with a source.
template <ReportedPipeline Pipe>
TimelineReport report_of(Pipe& pipeline, std::string title = {}) {
    return report_of(times_of(pipeline), std::move(title));
}
/// The same.
template <ReportedPipeline Pipe, class Source>
requires requires(const Source& source) { source.fill_times(); }
TimelineReport report_of(Pipe& pipeline, const Source& source, std::string title = {}) {
    return report_of(times_of(pipeline, source), std::move(title));
}

} // namespace sluice

#include <sluice/report/detail/pipeline_report.inl>
