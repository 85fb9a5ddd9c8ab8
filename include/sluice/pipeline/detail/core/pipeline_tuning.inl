// Bodies of pipeline_core.hpp: graphs, and Schedule::automatic.
#pragma once

#include <utility>

namespace sluice::detail {

/// Whether a captured graph can be compared with another one down to the arguments of its work, so that a trial is safe.
/// The Host backend's cannot, since a function's arguments are out of sight; nor do its graphs save any launches.
template <Backend B>
inline constexpr bool can_compare_graphs = GraphBackend<B>&& requires {
    requires B::compares_captures;
};

// Where all stages can be captured and the caller does not wish a graph for each. Graphs of one step follow each other on one
// stream, so that a stage's lanes would not work side by side.
template <Backend B>
bool PipelineCore<B>::may_graph_whole_steps(bool each_stage) const {
    bool all = !each_stage && core_.plan.all_capturable;
    for (std::size_t stage = 0; stage < core_.stages(); ++stage)
        all = all && core_.wants_graphs(stage) && (core_.lanes(stage) == 1 || options_.steps_per_graph > 0);
    if (core_.rates.any()) {
        // Graphs of steps are told apart by what all stages are handed.
        const std::size_t ways = core_.slots.later_rows() * most_lanes(core_);
        const std::size_t steps = larger(1, static_cast<std::size_t>(options_.steps_per_graph));
        std::size_t common = ways; // their greatest common divisor
        for (std::size_t rest = steps; rest != 0;)
            common = std::exchange(rest, common % rest);
        all = all && ways / common <= 64;
    }
    return all;
}

template <Backend B>
GraphOptions PipelineCore<B>::graph_options() const {
    GraphOptions options = options_.graphs;
    if (parts_->tuner) {
        if (!parts_->tuner->choice().decided)
            options.on_refusal = nullptr;
        options.comparisons = 2;
    } else {
        options.check = options.check.value_or(false) || core_.checks.on();
    }
    return options;
}

// One graph for all stages, or else one for each that can be captured.
template <Backend B>
void PipelineCore<B>::use_graphs(bool each_stage) {
    if constexpr (GraphBackend<B>) {
        bool whole = may_graph_whole_steps(each_stage);
        if (whole) {
            parts_->graphs = make_owned<GraphedSteps<B>>(core_, graph_options(),
                                                         static_cast<std::size_t>(options_.steps_per_graph),
                                                         parts_->in_flight.limit());
            // Where nothing is known of waits to come, no launch is marked for them.
            if (results_ahead_ != (std::numeric_limits<std::size_t>::max)())
                whole = parts_->graphs->hold_at_most(results_ahead_);
        }
        if (!whole)
            parts_->graphs = make_owned<GraphedStages<B>>(core_, graph_options());
        executor_ = parts_->graphs.get();
    } else {
        throw Error(std::string("the backend '") + B::name +
                    "' has no graphs, which Schedule::graphed needs");
    }
}

// The loop waits for a batch before more are submitted than there are slots. Where no step would be whole by then, each stage has graphs
// of its own.
template <Backend B>
void PipelineCore<B>::begin_results() {
    const Call call(*this, "run");
    require_sound("run");
    results_ahead_ = (static_cast<std::size_t>(options_.slots) - 1) * batches_a_result() + 1;
    or_fail([&] {
        if (executor_->hold_at_most(results_ahead_))
            return;
        come_to_rest();
        options_.graph_each_stage = true;
        use({.schedule = Schedule::graphed, .graph_each_stage = true});
    });
}

// What is worth trying. Of one stage nothing overlaps with another.
template <Backend B>
std::vector<ScheduleTrial> PipelineCore<B>::trials() const {
    std::vector<ScheduleTrial> trials;
    trials.push_back({.schedule = Schedule::overlapped});
    if (options_.launch_blocking)
        return trials;
    if constexpr (can_compare_graphs<B>) {
        trials.push_back({.schedule = Schedule::graphed, .graph_each_stage = true});
        if (may_graph_whole_steps(options_.graph_each_stage))
            trials.push_back({.schedule = Schedule::graphed});
    }
    // Serially no stage would have what it has asked for.
    if (core_.stages() > 1 && core_.streams.shares().devices().empty())
        trials.push_back({.schedule = Schedule::serial});
    return trials;
}

// The batch before `submitted_` has been submitted; the call began then.
template <Backend B>
void PipelineCore<B>::look_at_submit(const SubmitBegin& begin, const GivenBatch<B>& batch) {
    if (core_.times) {
        core_.times->note_submit(submitted_ - 1, begin.time, waited() - begin.waited,
                                 std::exchange(reading_, 0), std::exchange(results_, 0), batch);
        core_.times->comes(submitted_);
    }
    const bool trying = std::exchange(trying_, false);
    if (tuning_ && parts_->tuner->count(begin.time)) {
        // What is under way may wait for what the caller does later.
        if (trying || (options_.in_flight == 0 && core_.streams.lack_signals()))
            parts_->tuner->interrupted();
        else
            end_trial();
    }
    watched_ = tuning_ || core_.times;
}

// All that was submitted is through.
template <Backend B>
void PipelineCore<B>::come_to_rest() {
    leave();
    sync();
    throw_known_fault();
}

// The pipeline is to come to rest, and may go on in another way.
template <Backend B>
void PipelineCore<B>::end_trial() {
    tuning_ = false; // This rest is the trial's own.
    try {
        come_to_rest();
    } catch (...) {
        tuning_ = true;
        throw;
    }
    const ScheduleTrial before = parts_->tuner->current();
    parts_->tuner->at_rest(StageTimes<B>::now(), graph_counters(), executor_->first_refusal());
    tuning_ = !parts_->tuner->choice().decided;
    const ScheduleTrial& now = parts_->tuner->current();
    if (before.schedule != now.schedule || before.graph_each_stage != now.graph_each_stage)
        use(now);
}

// Nothing is under way.
template <Backend B>
void PipelineCore<B>::use(const ScheduleTrial& trial) {
    const DeviceGuard<B> device(core_.streams.device());
    executor_ = &parts_->overlapped;
    parts_->graphs.reset();
    core_.streams.use_one_a_device(trial.schedule == Schedule::serial);
    core_.order->catch_up(submitted_);
    if (trial.schedule == Schedule::serial)
        executor_ = &parts_->serial.emplace(core_);
    if (trial.schedule == Schedule::graphed) {
        use_graphs(trial.graph_each_stage);
        executor_->start_at(submitted_);
    } else {
        executor_->begin(core_);
    }
}

} // namespace sluice::detail
