/// \file
/// Steps of which nothing is wanted but calls of the stages, waits and marks, laid out as one table.
#pragma once

#include <cstddef>
#include <cstdint>

#include <sluice/backend/config.hpp>
#include <sluice/backend/detail/list.hpp>
#include <sluice/pipeline/detail/core/range.hpp>
#include <sluice/pipeline/detail/core/stage_core.hpp>

namespace sluice::detail {

/// What all stages do for the batches of each slot. The driver leaves little in the caches between two of its calls, so that
/// each line of memory and of code on the way counts: a stage's call is one line of memory here.
template <Backend B>
class PlainSteps {
    using Core = StageCore<B>;

public:
    /// Lays the steps out where every stage is plain: with waits and marks, or, on one stream, without.
    void lay_out(Core& core, bool in_order) {
        stages_ = 0;
        works_.clear();
        waits_.clear();
        for (std::size_t stage = 0; stage < core.stages(); ++stage) {
            if (!core.is_plain(stage))
                return;
        }
        slots_ = core.order->slots();
        mask_ = core.order->slot_mask();
        for (std::size_t slot = 0; slot < slots_; ++slot) {
            for (std::size_t stage = 0; stage < core.stages(); ++stage)
                add(core, stage, slot, in_order);
        }
        const Event* waits = waits_.data();
        for (Work& work : works_) {
            work.waits = waits;
            waits += work.all;
        }
        stages_ = core.stages();
    }

    /// Whether they are laid out, and there is no listener to ranges.
    bool ready() const noexcept { return stages_ != 0 && !ranges_are_heard(); }

    SLUICE_ALWAYS_INLINE void run(Core& core, std::size_t number, const GivenBatch<B>& batch) const {
        const bool first_lap = number < slots_; // when the slots are unused
        const Work* work = works_.data() + (mask_ != 0 ? number & mask_ : number % slots_) * stages_;
        for (std::size_t stage = 0; stage < stages_; ++stage, ++work) {
            const Event* const end = work->waits + (first_lap ? work->same : work->all);
            for (const Event* wait = work->waits; wait != end; ++wait)
                B::wait(work->stream, *wait);
            core.enter_stage(stage, number);
            batch.calls[stage].on_stream(work->callable, work->stream, work->slots, batch.value);
            B::check_launches();
            core.leave_stage();
            if (work->mark != Event{})
                B::record(work->mark, work->stream);
        }
    }

private:
    using Event = typename B::NativeEvent;
    struct Work {
        typename B::NativeStream stream;
        void* callable;
        void* const* slots;
        const Event* waits = nullptr; // those for the same batch first
        std::uint32_t same = 0;
        std::uint32_t all = 0;
        Event mark{}; // or none
    };

    void add(Core& core, std::size_t stage, std::size_t slot, bool in_order) {
        Work& work = works_.emplace_back(Work{.stream = core.streams.of(stage, slot).get(),
                                              .callable = core.callable(stage),
                                              .slots = core.slots.of(slot)});
        if (!in_order)
            return;
        for (const PlanWait& wait : core.plan.waits_of(stage)) {
            // A slot's own last reader on the same stream comes first by itself.
            if (wait.former && wait.stage == stage)
                continue;
            waits_.push_back(core.order->event(wait.stage, slot).get());
            ++work.all;
            work.same += wait.former ? 0u : 1u;
        }
        if (core.plan.stages[stage].needs_event)
            work.mark = core.order->event(stage, slot).get();
    }

    std::size_t stages_ = 0;
    std::size_t slots_ = 0;
    std::size_t mask_ = 0; // as `StageOrder` has it
    List<Work> works_;     // a slot's stages side by side
    List<Event> waits_;
};

} // namespace sluice::detail
