// Bodies of stage_core.hpp: how stages and their slots are made.
#pragma once

namespace sluice::detail {

template <Backend B>
StageCore<B>::StageCore(const PlanData& plan_of_stages, const PipelineSetup<B>& setups,
                        const PipelineOptions& options)
    : rates(plan_of_stages, setups.stages), plan(rates.plan()),
      checks(options.checked, options.steps_per_graph), streams(options.schedule, plan.stages.size()),
      slots(plan.makers, static_cast<std::size_t>(options.slots) + plan.most_window - 1),
      launch_blocking_(options.launch_blocking) {
    streams.share_out(plan, setups.stages);
    entries_.reserve(plan.stages.size());
    if constexpr (has_threads)
        threads_.resize(plan.stages.size());
    for (std::size_t stage = 0; stage < plan.stages.size(); ++stage)
        add_stage(setups.stages[stage], options.schedule);
    for (std::size_t stage = 0; stage < plan.stages.size(); ++stage) {
        if (plan.stages[stage].maker >= 0 && !plan.stages[stage].hands_on)
            make_slots(stage, setups.slots[plan.stages[stage].maker]);
    }
    slots.lay_out_rows(plan, rates);
    streams.all_added();
    find_host_readers();
    order.emplace(slots.count(), streams, plan, rates);
    slots_number_.emplace(plan, slots);
    checks.made(*this);
    if (streams.several_devices()) {
        connect_devices();
        watch_calls();
    }
}

template <Backend B>
void StageCore<B>::find_host_readers() {
    for (std::size_t reader = 0; reader < stages(); ++reader) {
        bool reads = false;
        for (std::size_t stage = 0; plan.stages[reader].is_cpu && stage < stages(); ++stage) {
            const StagePlan& own = plan.stages[stage];
            if (own.is_cpu || own.maker < 0 || !plan.reads_output(reader, stage) ||
                !slots.ops(static_cast<std::size_t>(own.maker)).has_host_part)
                continue;
            reads = true;
            entries_[stage].wants_graphs = false; // A replay sets nothing on the host.
        }
        if (reads)
            host_readers_.push_back(reader);
    }
}

// From here on a call of a stage is more than that.
template <Backend B>
void StageCore<B>::watch_calls() {
    plain_ = false;
    for (Entry& entry : entries_)
        entry.is_plain = false;
}

template <Backend B>
void StageCore<B>::add_stage(const StageSetup<B>& stage, Schedule schedule) {
    const std::size_t index = entries_.size();
    const StageOptions<B>& options = stage.options;
    const StagePlan& own = plan.stages[index];
    if (stage.callable == nullptr) {
        throw Error("stage '" + *stage.name +
                    "': its callable is empty, or was moved from; expected a function to call");
    }
    bool with_threads = own.aside || own.as_task || own.needs_semaphore;
    for (const PlanWait& wait : plan.waits_of(index))
        with_threads = with_threads || plan.stages[wait.stage].aside;
    entries_.push_back({.callable = stage.callable,
                        .name = stage.name,
                        .is_plain = !Checks::listens && !launch_blocking_ && options.lanes == 1 &&
                                    !with_threads && plan.most_window == 1 && !rates.any() &&
                                    !own.takes_turn && !own.takes_lane,
                        .wants_graphs = options.graphed,
                        .keeps_slot = options.keeps_slot});
    slots.add_lanes(own.takes_lane ? options.lanes : 0);
    checks.stage_added(stage);
    if (own.window > 1 && options.lanes > 1) {
        throw Error("stage '" + *stage.name + "': it takes what was made of " + std::to_string(own.window) +
                    " batches, and cannot have lanes, got " + std::to_string(options.lanes));
    }
    if ((own.is_cpu || own.aside) && (options.stream || stage.has_foreign_stream)) {
        throw Error("stage '" + *stage.name +
                    "': a CPU stage has threads of its own, and was given a stream");
    }
    if constexpr (has_threads) {
        if (own.aside) {
            require_lanes(*stage.name, options.lanes);
            threads_[index].start(schedule == Schedule::serial ? 1 : options.lanes);
            streams.add_without_stream();
            return;
        }
    }
    streams.add(*stage.name, options);
}

template <Backend B>
void StageCore<B>::make_slots(std::size_t stage, const SlotSetup& setup) {
    const DeviceGuard<B> device(streams.device_of(stage));
    const auto maker = static_cast<std::size_t>(plan.stages[stage].maker);
    checks.slots_begin();
    for (std::size_t slot = 0; slot < slots.count(); ++slot) {
        checks.slot_begins();
        slots.make(maker, slot, *setup.ops, setup.maker, name(stage));
    }
    checks.slots_made(*this, stage, maker);
}

// Stages may read what lies on another device, and the next write there.
template <Backend B>
void StageCore<B>::connect_devices() {
    if constexpr (requires { B::enable_peer_access(0, 0); }) {
        for (std::size_t i = 0; i < stages(); ++i) {
            for (std::size_t j = 0; j < i; ++j) {
                const int to = streams.device_of(i), from = streams.device_of(j);
                if (!plan.reads_output(i, j) || to == from)
                    continue;
                B::enable_peer_access(to, from);
                B::enable_peer_access(from, to);
            }
        }
    }
}

} // namespace sluice::detail
