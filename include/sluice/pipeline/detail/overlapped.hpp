/// \file
/// Schedule::overlapped: each stage on streams of its own, in order by the marks of those that it waits for.
#pragma once

#include <cstddef>

#include <sluice/pipeline/detail/executor.hpp>
#include <sluice/pipeline/detail/stage_core.hpp>
#include <sluice/pipeline/detail/stage_stress.hpp>
#include <sluice/pipeline/source.hpp>

namespace sluice::detail {

/// The type of a batch is known, so that the compiler sees through to the stage: between two calls of the driver little of a
/// step's code stays in the nearest cache, and each line of it that has to come anew is felt.
template <class Core>
class OverlappedExecutor : public EagerExecutor {
public:
    static constexpr bool takes_types = true;

    template <class Batch>
    static void submit(Core& core, std::size_t number, const Batch& batch,
                       const SourceHold<typename Core::backend>& hold) {
        for_each_stage_to_enqueue(core, [&](auto stage) {
            call_in_order<typename Core::backend>(core, stage, number, [&](typename Core::Ref stream) {
                core.template run<stage>(stream, number, batch);
            });
            core.template release<stage>(number, hold);
        });
    }

    /// Waits on the calling thread until stage `stage` is through batch `number`.
    static void await_stage(Core& core, std::size_t stage, std::size_t number) {
        if (!core.plan.stages[stage].needs_event)
            core.await_on_thread(stage, number);
        else
            core.order->event(stage, number).sync();
    }
};

} // namespace sluice::detail
