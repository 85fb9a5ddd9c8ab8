/// \file
/// Schedule::overlapped: each stage on streams of its own, in order by the marks of those that it waits for.
#pragma once

#include <cstddef>

#include <sluice/pipeline/detail/executor.hpp>
#include <sluice/pipeline/detail/stage_core.hpp>
#include <sluice/pipeline/detail/stage_stress.hpp>
#include <sluice/pipeline/source.hpp>

namespace sluice::detail {

/// Enqueues stage I's work on batch `number`, which `call(stream)` does, after all that it must come after.
template <std::size_t Index, class Core, class Call>
void call_in_order(Core& core, std::size_t number, Call&& call) {
    using Shape = typename Core::Shape;
    const auto stream = core.streams.of(Index, number);
    bool waits_aside = false;
    const auto after = [&](auto other, std::size_t of_batch) {
        if constexpr (Shape::aside[Index]) {
            core.add_wait(other, of_batch);
        } else if constexpr (Shape::aside[other] && Shape::needs_semaphore(Index)) {
            if (core.order->reached(other, of_batch))
                return;
            // While the stage has other work, its stream need not spend time on the wait.
            if (number == 0 || core.order->reached(Index, number - 1)) {
                core.order->wait(stream, other, of_batch);
            } else {
                core.order->wait(core.streams.waits_of(Index, number), other, of_batch);
                waits_aside = true;
            }
        } else {
            core.order->wait(stream, other, of_batch);
        }
    };
    Core::for_each_stage([&](auto other) {
        if constexpr (Shape::edges.same[Index][other])
            after(other, number);
    });
    // In the first lap nobody has been in the slot.
    const std::size_t slots = core.order->slots();
    if (number >= slots) [[likely]] {
        Core::for_each_stage([&](auto other) {
            if constexpr (Shape::edges.former[Index][other]) {
                // Its own work in the same slot comes first by itself where it is on the same stream.
                if (other != Index || slots % core.lanes(Index) != 0)
                    after(other, number - slots);
            }
        });
    }
    if (waits_aside)
        core.streams.join_waits(Index, number);
    call(stream);
    if constexpr (!Shape::aside[Index]) {
        constexpr bool signals = Shape::needs_semaphore(Index);
        core.order->mark(stream, signals ? core.streams.signals_of(Index, number) : stream, Index, number,
                         Shape::needs_event(Index), signals);
    }
}
/// The same with a call of the stage, for a batch of whatever type.
template <std::size_t Index, class Core>
void run_in_order(Core& core, std::size_t number, const GivenBatch<Core>& batch) {
    call_in_order<Index>(core, number,
                         [&](typename Core::Ref stream) { batch.template run<Index>(core, stream, number); });
}

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
            call_in_order<stage>(core, number, [&](typename Core::Ref stream) {
                core.template run<stage>(stream, number, batch);
            });
            core.template release_batch<stage>(number, hold);
        });
    }

    /// Waits on the calling thread until stage I is through batch `number`.
    template <std::size_t Index>
    static void await_stage(Core& core, std::size_t number) {
        if constexpr (!Core::Shape::needs_event(Index))
            core.await_on_thread(Index, number);
        else
            core.order->event(Index, number).sync();
    }
};

} // namespace sluice::detail
