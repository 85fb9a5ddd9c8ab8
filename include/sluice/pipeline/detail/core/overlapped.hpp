/// \file
/// Schedule::overlapped: each stage on streams of its own, in order by the marks of those that it waits for.
#pragma once

#include <cstddef>

#include <sluice/pipeline/detail/core/executor.hpp>
#include <sluice/pipeline/detail/core/plain_steps.hpp>
#include <sluice/pipeline/detail/core/stage_core.hpp>

namespace sluice::detail {

template <Backend B>
class OverlappedExecutor final : public Executor<B> {
    using Core = StageCore<B>;

public:
    void begin(Core& core) override { steps_.lay_out(core, true); }

    void submit(Core& core, std::size_t number, const GivenBatch<B>& batch,
                const SourceHold<B>& hold) override {
        if (steps_.ready() && !hold) [[likely]]
            steps_.run(core, number, batch);
        else
            submit_stage_by_stage(core, number, batch, hold);
    }

    void await_stage(Core& core, std::size_t stage, std::size_t number) override {
        core.await_mark(stage, number);
    }

private:
    void submit_stage_by_stage(Core& core, std::size_t number, const GivenBatch<B>& batch,
                               const SourceHold<B>& hold) {
        core.enqueue_each(number, [&](std::size_t stage) {
            core.run_in_order(stage, number, batch);
            if (hold)
                core.release_batch(stage, number, hold);
        });
    }

    PlainSteps<B> steps_;
};

} // namespace sluice::detail
