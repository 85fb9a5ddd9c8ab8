/// \file
/// How to run a pipeline: schedules, slots and workers, predicted, measured, and chosen.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include <sluice/pipeline/pipeline.hpp>
#include <sluice/report/bound.hpp>
#include <sluice/report/pipeline_report.hpp>

namespace sluice {

/// One way to run a pipeline and its source, and what is known of it.
struct AdviceTrial {
    Schedule schedule = Schedule::overlapped; ///< Not `automatic`.
    bool graph_each_stage = false;            ///< As `PipelineOptions::graph_each_stage`.
    int slots = 2;                            ///< As `PipelineOptions::slots`.
    int workers = 1;                          ///< As `SourceOptions::workers`.

    double predicted = 0; ///< Microseconds a batch, from what the stages took alone; 0: not predicted.
    double measured = 0;  ///< Likewise, as measured; 0: not measured.

    std::size_t batches = 0; ///< How many `measure` takes.
    int timed_batches = 0;   ///< For both sets of options, so that `measure` can see what the parts took.

    /// `PipelineOptions` of this way.
    PipelineOptions options() const {
        return {.schedule = schedule,
                .slots = slots,
                .graph_each_stage = graph_each_stage,
                .timed_batches = timed_batches};
    }
    /// Submits `batches` batches of `source` to `pipeline`, finishes, and notes what they took. The first quarter warms up.
    /// Throws what the calls throw, and `Error` where the source gives fewer.
    template <ReportedPipeline Pipe, class Source>
    void measure(Pipe& pipeline, Source& source);

    /// What was noted of the last batches that `measure` ran.
    PipelineTimes times = {};
};

/// What `advise` is to try.
struct AdviceOptions {
    std::size_t batches = 200; ///< Of each trial, at least 8.
    int workers = 1;           ///< Of the source, at first.
    int most_workers = 8;      ///< Not tried with more.
    bool graphs = true; ///< Whether `Schedule::graphed` is tried: stages must be fit for it, see `Stage`.
};

/// What `advise` found.
struct Advice {
    AdviceTrial best; ///< The one to use.
    std::vector<AdviceTrial>
        trials;  ///< All that were predicted, the fastest predicted first, those measured with what followed.
    Bound first; ///< What bounded the first trial: overlapped, two slots, the workers as given.
    Bound bound; ///< What bounds the best one.
    std::string sentence; ///< What to do, and why, with numbers.
    /// What a share of the device would be for a stage, see `StageOptions::multiprocessors`: for the one that waits longest behind
    /// the work of another one on its device, taking three times as long beside it as alone, and what that would cost the other
    /// one at least. Empty where there is no such stage, and where stages have shares already or cannot have any.
    std::string share;
};

/// Finds out how to run a pipeline. `run(AdviceTrial& trial)` makes the source and the pipeline, with `trial.options()` and
/// `trial.workers`, `SourceOptions::timed_batches` being `trial.timed_batches`, and calls `trial.measure(pipeline, source)`.
/// It is called once for each trial, and should begin from the same state each time.
///
/// First two slots are measured, overlapped and serially: what the stages take together and one after another. From that
/// `serial`, `overlapped` and `graphed`, in one graph and in one a stage, are predicted with two and three slots, and with
/// more workers where the source is what bounds. Of each schedule the best prediction is measured, with two slots and with
/// three, and the fastest is chosen, or a simpler one within 2 % of it.
///
/// \code
/// const sluice::Advice advice = sluice::advise([&](sluice::AdviceTrial& trial) {
///     sluice::Source source{make_batch, fill, {.workers = trial.workers, .timed_batches = trial.timed_batches}};
///     sluice::TwoStreamPipeline pipeline{encode, train, make_features, trial.options()};
///     trial.measure(pipeline, source);
/// });
/// std::puts(advice.sentence.c_str());
/// \endcode
/// \throws Error for options out of range, and what `run` throws.
template <class Run>
Advice advise(Run&& run, const AdviceOptions& options = {});

/// The advice's trials as a table for a terminal, predictions beside what followed, and its sentences. No line is wider than 80
/// columns.
std::string to_table(const Advice& advice);

/// What `Schedule::automatic` has found, in a sentence with numbers: "overlapped was chosen: 390 us a batch; serial 503 us,
/// graphed 386 us …".
std::string to_sentence(const ScheduleChoice& choice);

} // namespace sluice

#include <sluice/report/detail/advice.inl>
