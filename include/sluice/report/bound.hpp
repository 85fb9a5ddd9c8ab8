/// \file
/// What bounds a pipeline: its source, the calls that enqueue its work, a stage, or the loop around it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include <sluice/pipeline/schedule.hpp>
#include <sluice/pipeline/stage_time.hpp>
#include <sluice/report/timeline.hpp>

namespace sluice {

/// What was noted of a pipeline's last batches, and of its source's: what `times_of` collects. Times are microseconds of
/// `std::chrono::steady_clock`.
struct PipelineTimes {
    std::vector<std::string> stage_names;     ///< By number.
    std::vector<std::string> stage_units;     ///< "GPU 0" and the like, or "CPU".
    Schedule schedule = Schedule::overlapped; ///< What the batches ran under.
    std::vector<std::size_t> batches_a_run;   ///< For so many batches each stage runs once; empty: for one.
    std::vector<StageTime> stages;            ///< As `Pipeline::stage_times`.
    std::vector<StageTime> submits;           ///< As `Pipeline::submit_times`.
    std::vector<FillTime> fills;              ///< As `Source::fill_times`; empty without a source.
    int workers = 0;                          ///< The source's.
    bool drops = false;      ///< Whether the source drops batches: what it waits for sets its pace.
    double pace = 0;         ///< From batch to batch of a source that drops; 0: unknown.
    std::size_t sent = 0;    ///< Of so many batches that it has filled last
    std::size_t dropped = 0; ///< so many were dropped.
    /// What the race checker has found between two stages of these names; rows are the stages' numbers. Empty where the
    /// pipeline's backend is not checked.
    std::vector<MissingEdge> missing_edges;
    std::size_t submitted = 0; ///< As `Pipeline::submitted`; 0: up to the last of `submits`.
    std::string shares;        ///< As `Pipeline::shares`.
    int multiprocessors = 0;   ///< Of the first stage's device; 0 where stages cannot have shares.
    int share_unit = 0;        ///< It shares them out in groups of so many.
    std::string
        eager; ///< Under `Schedule::graphed` a sentence where most runs were no replays: how many, and why.
};

/// What kind of part sets a pipeline's pace.
enum class BoundPart : std::uint8_t {
    unknown, ///< Too little was noted.
    source,  ///< Filling batches: more workers, or a cheaper `fill`, are what helps.
    submit, ///< The calls that enqueue work: graphs, fewer launches, or stages that do not wait are what helps.
    loop,   ///< What the caller does between two calls of `submit`.
    stage,   ///< One stage, which is always at work.
    barrier, ///< Graphs of whole steps, each of which waits for all stages of the one before.
    waiting, ///< Stages that wait for one another: another schedule, or more slots, are what helps.
};

/// What bounds a pipeline, in numbers and in a sentence. Times are microseconds a batch.
struct Bound {
    BoundPart part = BoundPart::unknown; ///< What kind of part.
    std::size_t stage = 0;               ///< Which one, for `BoundPart::stage`.

    double period = 0; ///< From batch to batch.
    double fill = 0;   ///< Of one worker, for one batch; 0 without a source.
    double waited = 0; ///< That the caller waited for the source.
    double submit = 0; ///< In `submit`, without the waits there.
    double held = 0;   ///< In `submit`, that the caller waited for room or for results.
    double asleep =
        0; ///< That the caller slept besides, in `submit` or outside; 0 also where that is unknown.
    double reading = 0; ///< That the caller waited, outside of `submit`, for its newest batch to be read.
    double results =
        0; ///< That the caller waited, outside of `submit`, for results of `run`, or for older batches to be read.
    double longest = 0;  ///< Of the stage that takes longest.
    double together = 0; ///< Of all stages, one after another.

    double expected = 0; ///< The period when the sentence's advice is followed; 0 where there is none.
    int workers = 0;     ///< Of the source, then; 0 where they need not change.

    std::string sentence; ///< What bounds it and what helps, with numbers; ends with a full stop.
};

/// Works out what bounds a pipeline, from its last batches. The rules, in this order; the stages are *behind* where the
/// first one begins half a period or more after its batch was submitted, or graphs of whole steps fill 85 % of the time; they
/// *trail* where they are serial, and the last one ends a quarter of a period and 50 us or more after its submission:
///
/// | part | when |
/// | --- | --- |
/// | source | its workers fill 85 % of the time, no stage is busier, and the caller waits for it a tenth of the period or more, or half of it where the stages are behind |
/// | loop | the caller is outside of `submit`, of the source and of waits for results of `run` for 60 % of the period, no stage is at work 90 % of the time, and the stages are not behind |
/// | submit | the caller is in `submit` for 60 % of the period, and the stages are not behind and do not trail |
/// | stage | one stage is at work 80 % of the time or more, or graphs of whole steps are, and nothing is known of the stages within |
/// | barrier | graphs of whole steps are at work 80 % of the time or more, and no stage within |
/// | waiting | otherwise |
/// \throws Error for times that are not finite.
Bound bound_of(const PipelineTimes& times);

} // namespace sluice

#include <sluice/report/detail/bound.inl>
