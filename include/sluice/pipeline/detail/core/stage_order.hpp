// The marks by which the stages of a pipeline wait for each other.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <type_traits>

#include <sluice/backend/detail/list.hpp>
#include <sluice/backend/detail/owned.hpp>
#include <sluice/backend/detail/semaphore_waits.hpp>
#include <sluice/backend/detail/waiting_thread.hpp>
#include <sluice/backend/device.hpp>
#include <sluice/backend/event.hpp>
#include <sluice/backend/semaphore.hpp>
#include <sluice/backend/stream.hpp>
#include <sluice/pipeline/detail/boundary/plan_data.hpp>
#include <sluice/pipeline/detail/core/faults.hpp>
#include <sluice/pipeline/detail/core/stage_rates.hpp>
#include <sluice/pipeline/detail/core/stage_streams.hpp>

namespace sluice::detail {

/// One wait of a thread.
template <class Semaphore>
struct SemaphoreWait {
    Semaphore* semaphore = nullptr;
    std::uint32_t value = 0;
    std::size_t stage = 0;
};

/// Names a semaphore only where there is one.
template <class B>
struct SemaphoreType {
    using type = BasicSemaphore<B>;
};
struct NoSemaphore {
    using type = NoSemaphore;
};

/// The marks that stages set when they have been through a batch, made once: an event a stage and slot, and, where
/// threads take part, a semaphore that counts the laps.
template <Backend B>
class StageOrder {
public:
    using Ref = BasicStreamRef<B>;
    /// A backend without semaphores has no stages beside its streams.
    static constexpr bool has_semaphores = SemaphoreBackend<B>;
    using Semaphore = typename std::conditional_t<has_semaphores, SemaphoreType<B>, NoSemaphore>::type;
    using Wait = SemaphoreWait<Semaphore>;

    StageOrder(std::size_t slots, StageStreams<B>& streams, const PlanData& plan, const StageRates& rates)
        : stages_(plan.stages.size()), slots_(slots), slot_mask_(std::has_single_bit(slots) ? slots - 1 : 0),
          streams_(streams), plan_(plan), rates_(rates) {
        events_.reserve(slots * stages_);
        for (std::size_t i = 0; i < slots * stages_; ++i) {
            const DeviceGuard<B> device(streams.device_of(i % stages_));
            events_.emplace_back();
        }
        if constexpr (has_semaphores) {
            bool any_aside = false;
            for (const StagePlan& stage : plan.stages)
                any_aside = any_aside || stage.aside;
            if (!any_aside)
                return;
            semaphores_.reserve(slots * stages_);
            for (std::size_t i = 0; i < slots * stages_; ++i)
                semaphores_.push_back(make_owned<Semaphore>());
            for (std::size_t stage = 0; stage < stages_; ++stage) {
                if (!plan.stages[stage].aside && plan.stages[stage].needs_semaphore)
                    streams.add_sides(stage);
            }
        }
    }

    std::size_t slots() const noexcept { return slots_; }
    /// 0 where slots are no power of two, or one.
    std::size_t slot_mask() const noexcept { return slot_mask_; }
    std::size_t slot_of(std::size_t batch) const noexcept {
        if (slot_mask_ != 0) [[likely]]
            return batch & slot_mask_; // several times a step, where a division would be felt
        return batch % slots_;
    }

    /// Which of its events and semaphores a stage sets for its run on a batch.
    std::size_t mark_of(std::size_t stage, std::size_t batch) const noexcept {
        return slot_of(rates_.run_of(stage, batch));
    }
    BasicEvent<B>& event(std::size_t stage, std::size_t batch) noexcept {
        return events_[mark_of(stage, batch) * stages_ + stage];
    }
    Semaphore& semaphore(std::size_t stage, std::size_t batch) noexcept {
        return *semaphores_[mark_of(stage, batch) * stages_ + stage];
    }
    /// What a semaphore counts to when its stage has been through `batch`.
    std::uint32_t lap_of(std::size_t stage, std::size_t batch) const noexcept {
        return static_cast<std::uint32_t>(rates_.run_of(stage, batch) / slots_ + 1);
    }
    Wait wait_of(std::size_t stage, std::size_t batch) noexcept {
        return {&semaphore(stage, batch), lap_of(stage, batch), stage};
    }

    /// Later work of `stream` comes after stage `stage` is through `batch`.
    void wait(Ref stream, std::size_t stage, std::size_t batch) {
        if constexpr (has_semaphores) {
            if (plan_.stages[stage].aside) {
                wait_for_thread(stream, stage, batch);
                return;
            }
        }
        stream.wait(event(stage, batch));
    }
    /// Whether stage `stage`, which has semaphores, has signalled that it is through `batch`.
    bool reached(std::size_t stage, std::size_t batch) noexcept {
        if constexpr (has_semaphores)
            return semaphore(stage, batch).reached(lap_of(stage, batch));
        else
            return false;
    }
    /// The same, of which a checker learns nothing.
    bool is_signalled(std::size_t stage, std::size_t batch) noexcept {
        if constexpr (SemaphoreCalls<B>::there)
            return at_least(SemaphoreCalls<B>::calls.value(semaphore(stage, batch).get()),
                            lap_of(stage, batch));
        else
            return reached(stage, batch);
    }
    /// Stage `stage`, a GPU stage, is through `batch` when `stream` gets here. Its semaphore is signalled on `signals`:
    /// the same stream, or another one.
    void mark(Ref stream, Ref signals, std::size_t stage, std::size_t batch, bool with_event,
              bool with_semaphore) {
        const bool elsewhere = with_semaphore && !(signals == stream);
        if (with_event || elsewhere)
            event(stage, batch).record(stream);
        if constexpr (has_semaphores) {
            if (elsewhere)
                signals.wait(event(stage, batch));
            if (with_semaphore)
                B::signal_semaphore(signals.get(), semaphore(stage, batch).get(), lap_of(stage, batch));
        }
    }

    /// Has the events stand for nothing that has failed: streams that wait for one get its fault.
    void record_anew() {
        for (std::size_t i = 0; i < events_.size(); ++i) {
            if (!plan_.stages[i % stages_].aside)
                events_[i].record(streams_.of(i % stages_, 0));
        }
    }

    /// All stages are through all batches before `next`, whichever executor ran them. Nothing is in flight.
    void catch_up([[maybe_unused]] std::size_t next) {
        if constexpr (has_semaphores) {
            for (std::size_t i = 0; i < semaphores_.size(); ++i) {
                const std::size_t slot = i / stages_, runs = rates_.run_of(i % stages_, next);
                if (slot >= runs)
                    continue;
                const auto lap = static_cast<std::uint32_t>((runs - 1 - slot) / slots_ + 1);
                if (!semaphores_[i]->reached(lap))
                    semaphores_[i]->signal(lap);
            }
        }
    }

    /// All laps are over, and batches count from 0 again. No stream or thread waits.
    void reset() {
        if constexpr (has_semaphores) {
            for (auto& semaphore : semaphores_)
                semaphore->reset();
        }
    }

private:
    // CUDA loads a kernel when it is first used, and waits for all streams then. Neither what a CPU stage enqueues for its first batch
    // nor the first call of a stage behind it must meet a stream that waits for the CPU stage: the caller waits instead, but not for
    // long, since the CPU stage may wait for the caller.
    void wait_for_thread(Ref stream, std::size_t stage, std::size_t batch) requires has_semaphores {
        for (WaitingThread thread(SemaphoreWaits::patience);
             is_patient_ && rates_.run_of(stage, batch) == 0;) {
            if (is_signalled(stage, batch))
                break; // The stream waits all the same, for the checker: that the caller has seen it is luck.
            is_patient_ = thread.goes_on();
        }
        const auto semaphore_of_stage = semaphore(stage, batch).get();
        const std::uint32_t lap = lap_of(stage, batch);
        if constexpr (SemaphoreCalls<B>::there)
            SemaphoreWaits::instance().add(
                {semaphore_of_stage, lap, stream.get(), true, &SemaphoreCalls<B>::calls, true});
        B::wait_semaphore(stream.get(), semaphore_of_stage, lap);
    }

    std::size_t stages_;
    std::size_t slots_;
    std::size_t slot_mask_;
    StageStreams<B>& streams_;
    const PlanData& plan_;
    const StageRates& rates_;
    List<BasicEvent<B>> events_; // a slot's side by side
    List<Owned<Semaphore>> semaphores_;
    bool is_patient_ = true; // The first batch of a CPU stage has not taken too long.
};

} // namespace sluice::detail
