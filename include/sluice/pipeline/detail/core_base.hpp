/// \file
/// What the executors see of a pipeline, whatever the types of its stages and batches: streams, marks, the plan as data, and
/// calls by number.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

#include <sluice/pipeline/detail/batch_ops.hpp>
#include <sluice/pipeline/detail/plan_data.hpp>
#include <sluice/pipeline/detail/stage_order.hpp>
#include <sluice/pipeline/detail/stage_streams.hpp>
#include <sluice/pipeline/detail/stage_times.hpp>
#include <sluice/pipeline/source.hpp>

namespace sluice::detail {

/// The part of a pipeline's core that is the same code for all pipelines of a backend.
template <Backend B>
class CoreBase {
public:
    using backend = B;
    using Ref = BasicStreamRef<B>;
    static constexpr bool is_checked = IsChecked<B>::value;

    CoreBase(const CoreBase&) = delete;
    CoreBase& operator=(const CoreBase&) = delete;

    /// Tells the batch's source that stage `stage` reads it.
    virtual void release_batch(std::size_t stage, std::size_t number, const SourceHold<B>& hold) = 0;
    /// What the next CPU stage that is called waits for first.
    virtual void add_wait(std::size_t stage, std::size_t batch) = 0;
    /// A number for the state of the slots on the host.
    virtual std::uint64_t slots_number() = 0;
    /// Whether stage `stage` may be captured, as far as its options say.
    virtual bool wants_graphs(std::size_t stage) const noexcept = 0;

    std::size_t stages() const noexcept { return plan.stages.size(); }
    /// Batches that stage `stage` works on at the same time.
    std::size_t lanes(std::size_t stage) const noexcept {
        return plan.stages[stage].aside ? lanes_of_threads(stage) : streams.lanes(stage);
    }
    /// The stage that is being called, or -1, and for which batch.
    int current_stage() const noexcept { return current_stage_; }
    std::size_t current_batch() const noexcept { return current_batch_; }
    bool launch_blocking() const noexcept { return launch_blocking_; }
    void enter_stage(std::size_t stage, std::size_t batch) noexcept {
        current_stage_ = static_cast<int>(stage);
        current_batch_ = batch;
    }
    void leave_stage() noexcept { current_stage_ = -1; }

    const PlanData& plan;
    StageStreams<B> streams;
    std::optional<StageTimes<B>> times; // where they are noted
    std::optional<StageOrder<B>> order;

protected:
    CoreBase(const PlanData& plan_of_stages, Schedule schedule, bool launch_blocking)
        : plan(plan_of_stages), streams(schedule, plan_of_stages.stages.size()),
          launch_blocking_(launch_blocking) {}
    ~CoreBase() = default;

    bool launch_blocking_;
    int current_stage_ = -1;
    std::size_t current_batch_ = 0;

private:
    virtual std::size_t lanes_of_threads(std::size_t stage) const noexcept = 0;
};

/// Lets `stream`, of stage `stage` and batch `number`, wait for all that this work must come after.
template <Backend B>
void await_inputs(CoreBase<B>& core, std::size_t stage, std::size_t number, BasicStreamRef<B> stream) {
    const StagePlan& own = core.plan.stages[stage];
    StageOrder<B>& order = *core.order;
    const std::size_t slots = order.slots();
    bool waits_aside = false;
    for (const PlanWait& wait : core.plan.waits_of(stage)) {
        std::size_t of_batch = number;
        if (wait.former) {
            // In the first lap nobody has been in the slot.
            if (number < slots) [[unlikely]]
                break;
            // Its own work in the same slot comes first by itself where it is on the same stream.
            if (wait.stage == stage && slots % core.lanes(stage) == 0)
                continue;
            of_batch = number - slots;
        }
        if (own.aside) {
            core.add_wait(wait.stage, of_batch);
        } else if (core.plan.stages[wait.stage].aside && own.needs_semaphore) {
            if (order.reached(wait.stage, of_batch))
                continue;
            // While the stage has other work, its stream need not spend time on the wait.
            if (number == 0 || order.reached(stage, number - 1)) {
                order.wait(stream, wait.stage, of_batch);
            } else {
                order.wait(core.streams.waits_of(stage, number), wait.stage, of_batch);
                waits_aside = true;
            }
        } else {
            order.wait(stream, wait.stage, of_batch);
        }
    }
    if (waits_aside)
        core.streams.join_waits(stage, number);
}

/// Enqueues stage `stage`'s work on batch `number`, which `call(stream)` does, after all that it must come after.
template <Backend B, class Call>
void call_in_order(CoreBase<B>& core, std::size_t stage, std::size_t number, Call&& call) {
    const auto stream = core.streams.of(stage, number);
    await_inputs(core, stage, number, stream);
    call(stream);
    const StagePlan& own = core.plan.stages[stage];
    if (!own.aside) {
        core.order->mark(stream, own.needs_semaphore ? core.streams.signals_of(stage, number) : stream, stage,
                         number, own.needs_event, own.needs_semaphore);
    }
}
/// The same with a call of the stage, for a batch of whatever type.
template <Backend B>
void run_in_order(CoreBase<B>& core, std::size_t stage, std::size_t number, const GivenBatch<B>& batch) {
    call_in_order(core, stage, number,
                  [&](BasicStreamRef<B> stream) { batch.run(core, stage, stream, number); });
}

} // namespace sluice::detail
