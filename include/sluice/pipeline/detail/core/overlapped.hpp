/// \file
/// Schedule::overlapped: each stage on streams of its own, in order by the marks of those that it waits for.
#pragma once

#include <cstddef>

#include <sluice/pipeline/detail/core/executor.hpp>
#include <sluice/pipeline/detail/core/stage_core.hpp>

namespace sluice::detail {

template <Backend B>
class OverlappedExecutor final : public Executor<B> {
    using Core = StageCore<B>;

public:
    void submit(Core& core, std::size_t number, const GivenBatch<B>& batch,
                const SourceHold<B>& hold) override {
        const auto enqueue = [&](std::size_t stage) {
            core.run_in_order(stage, number, batch);
            core.release_batch(stage, number, hold);
        };
        if (core.checks.enqueue_in_other_order(core, enqueue))
            return;
        for (std::size_t stage = 0; stage < core.stages(); ++stage)
            enqueue(stage);
    }

    void await_stage(Core& core, std::size_t stage, std::size_t number) override {
        core.await_mark(stage, number);
    }
};

} // namespace sluice::detail
