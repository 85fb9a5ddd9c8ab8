// Bodies of pipeline.hpp: Schedule::automatic.
#pragma once

namespace sluice {

namespace detail {
/// Whether a captured graph can be compared with another one down to the arguments of its work, so that a trial is safe.
/// The Host backend's cannot, since a function's arguments are out of sight; nor do its graphs save any launches.
template <Backend B>
inline constexpr bool can_compare_graphs = GraphBackend<B>&& requires {
    requires B::compares_captures;
};
} // namespace detail

// What is worth trying. Of one stage nothing overlaps with another.
template <class... Ss, class... Makers>
std::vector<ScheduleTrial>
Pipeline<Stages<Ss...>, Slots<Makers...>>::trials_of(const PipelineOptions& options) {
    std::vector<ScheduleTrial> trials{{.schedule = Schedule::overlapped}};
    if (options.launch_blocking)
        return trials;
    if constexpr (detail::can_compare_graphs<backend>) {
        trials.push_back({.schedule = Schedule::graphed, .graph_each_stage = true});
        if (Shape::all_capturable && !options.graph_each_stage)
            trials.push_back({.schedule = Schedule::graphed});
    }
    if (stage_count > 1)
        trials.push_back({.schedule = Schedule::serial});
    return trials;
}

// The batch before `submitted_` has been submitted; the call began then.
template <class... Ss, class... Makers>
void Pipeline<Stages<Ss...>, Slots<Makers...>>::look_at_submit(const SubmitBegin& begin) {
    if (core_.times) {
        core_.times->note_thread(core_.times->submits(), submitted_ - 1, begin.time,
                                 waited_for_results() - begin.waited);
        core_.times->comes(submitted_);
    }
    if (tuning_ && tuner_->count(begin.time))
        end_trial();
    watched_ = tuning_ || core_.times;
}

// The pipeline is to come to rest, and may go on in another way.
template <class... Ss, class... Makers>
void Pipeline<Stages<Ss...>, Slots<Makers...>>::end_trial() {
    tuning_ = false; // This rest is the trial's own.
    try {
        leave();
        sync();
        throw_known_fault();
    } catch (...) {
        tuning_ = true;
        throw;
    }
    const ScheduleTrial before = tuner_->current();
    tuner_->at_rest(
        detail::StageTimes<backend>::now(), graph_counters(),
        with_executor(*this, [](const auto& executor) -> std::string { return executor.first_refusal(); }));
    tuning_ = !tuner_->choice().decided;
    const ScheduleTrial& now = tuner_->current();
    if (before.schedule != now.schedule || before.graph_each_stage != now.graph_each_stage)
        use(now);
}

// Nothing is under way.
template <class... Ss, class... Makers>
void Pipeline<Stages<Ss...>, Slots<Makers...>>::use(const ScheduleTrial& trial) {
    const DeviceGuard<backend> device(core_.streams.device());
    graphs_ = false;
    steps_.reset();
    stage_graphs_.reset();
    core_.streams.use_one_a_device(trial.schedule == Schedule::serial);
    core_.order->catch_up(submitted_);
    if (trial.schedule == Schedule::serial)
        serial_ = detail::SerialExecutor<Core>(core_);
    if constexpr (has_graphs) {
        if (trial.schedule == Schedule::graphed) {
            GraphOptions options = options_.graphs;
            if (!tuner_->choice().decided)
                options.on_refusal = nullptr;
            options.comparisons = 2;
            make_graphs(trial.graph_each_stage, options);
            if constexpr (Shape::all_capturable) {
                if (steps_)
                    steps_->start_at(submitted_);
            }
        }
    }
    runs_ = trial.schedule;
}

} // namespace sluice
