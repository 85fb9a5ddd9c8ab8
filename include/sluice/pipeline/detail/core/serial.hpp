/// \file
/// Schedule::serial: one stage after another, one batch after another.
#pragma once

#include <cstddef>

#include <sluice/backend/detail/list.hpp>
#include <sluice/pipeline/detail/core/executor.hpp>
#include <sluice/pipeline/detail/core/plain_steps.hpp>
#include <sluice/pipeline/detail/core/stage_core.hpp>

namespace sluice::detail {

/// All stages of a device are on one stream, and need no marks. Where the work goes from one device to another, or to a
/// thread and back, each stage waits for the one before it.
template <Backend B>
class SerialExecutor final : public Executor<B> {
    using Core = StageCore<B>;

public:
    explicit SerialExecutor(const Core& core) : marks_(core.stages()) {
        const std::size_t stages = core.stages();
        for (std::size_t stage = 0; stage < stages; ++stage) {
            const std::size_t former = former_of(stage);
            const bool threads = core.plan.stages[stage].aside || core.plan.stages[former].aside;
            // Of one thread's batches, each comes after the one before by itself.
            marks_[stage].waits =
                former != stage && (threads || !(core.streams.of(stage, 0) == core.streams.of(former, 0)));
            if (marks_[stage].waits && !core.plan.stages[former].aside)
                (threads ? marks_[former].signals : marks_[former].records) = true;
        }
        // Any may come behind any other one where some run less often.
        bool any_waits = false, any_aside = false;
        for (std::size_t stage = 0; stage < stages; ++stage) {
            any_waits = any_waits || marks_[stage].waits;
            any_aside = any_aside || core.plan.stages[stage].aside;
        }
        for (std::size_t stage = 0; core.rates.any() && any_waits && stage < stages; ++stage) {
            marks_[stage].waits = true;
            marks_[stage].records = !core.plan.stages[stage].aside;
            marks_[stage].signals = any_aside && !core.plan.stages[stage].aside;
        }
    }

    void begin(Core& core) override {
        for (const Marks& marks : marks_) {
            if (marks.waits)
                return;
        }
        steps_.lay_out(core, false);
    }
    void reset() noexcept override { any_ran_ = false; }

    void submit(Core& core, std::size_t number, const GivenBatch<B>& batch,
                const SourceHold<B>& hold) override {
        if (steps_.ready() && !hold) [[likely]]
            steps_.run(core, number, batch);
        else
            submit_stage_by_stage(core, number, batch, hold);
    }

    void await_stage(Core& core, std::size_t stage, std::size_t number) override {
        if (core.plan.stages[stage].aside)
            core.await_mark(stage, number);
        else
            core.streams.await(stage, number);
    }
    bool is_through(Core& core, std::size_t stage, std::size_t number) override {
        return core.plan.stages[stage].aside ? core.mark_is_reached(stage, number)
                                             : core.streams.of(stage, number).is_done();
    }

private:
    void submit_stage_by_stage(Core& core, std::size_t number, const GivenBatch<B>& batch,
                               const SourceHold<B>& hold) {
        for (std::size_t stage = 0; stage < marks_.size(); ++stage) {
            if (!core.rates.runs(stage, number))
                continue;
            core.follows = stage > 0 && !marks_[stage].waits;
            run_behind_last(core, stage, number, batch);
            core.release_batch(stage, number, hold);
        }
        core.follows = false;
    }

public:
    /// Runs a stage behind all that ran before.
    void run_behind_last(Core& core, std::size_t stage, std::size_t number,
                         const GivenBatch<B>& batch) override {
        const auto stream = core.streams.of(stage, number);
        const bool aside = core.plan.stages[stage].aside;
        ThreadWaits thread_waits{.by_plan = false};
        if (marks_[stage].waits && any_ran_ && last_stage_ != stage) {
            if (aside)
                thread_waits = {.by_plan = false, .any = true, .stage = last_stage_, .batch = last_batch_};
            else
                core.order->wait(stream, last_stage_, last_batch_);
        }
        core.run(stage, stream, number, batch, thread_waits);
        if (!aside)
            core.order->mark(stream, stream, stage, number, marks_[stage].records, marks_[stage].signals);
        any_ran_ = true;
        last_stage_ = stage;
        last_batch_ = number;
    }

private:
    struct Marks {
        bool waits = false; // for the stage before it
        bool records = false;
        bool signals = false;
    };
    std::size_t former_of(std::size_t stage) const noexcept {
        return (stage == 0 ? marks_.size() : stage) - 1;
    }
    List<Marks> marks_;
    bool any_ran_ = false;       // Since it began,
    std::size_t last_stage_ = 0; // and what ran last.
    std::size_t last_batch_ = 0;
    PlainSteps<B> steps_; // where each is one call after another
};

} // namespace sluice::detail
