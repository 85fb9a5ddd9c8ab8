/// \file
/// A stage's slots, and the marks by which the stages of a pipeline wait for each other.
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <type_traits>
#include <vector>

#include <sluice/backend/device.hpp>
#include <sluice/backend/event.hpp>
#include <sluice/backend/semaphore.hpp>
#include <sluice/backend/stream.hpp>
#include <sluice/pipeline/detail/faults.hpp>
#include <sluice/pipeline/detail/stage_streams.hpp>

namespace sluice::detail {

/// The slots of one stage's output.
template <class T>
class SlotsOf {
public:
    using value_type = T;
    template <class Make>
    void make(Make& maker, int count, const std::string& stage) {
        slots_.reserve(static_cast<std::size_t>(count));
        for (int slot = 0; slot < count; ++slot) {
            try {
                slots_.push_back(std::unique_ptr<T>(new T(maker(slot))));
            } catch (...) {
                throw_maker_failure(stage, slot);
            }
        }
    }
    T& operator[](std::size_t slot) noexcept { return *slots_[slot]; }
    const T& operator[](std::size_t slot) const noexcept { return *slots_[slot]; }
    std::size_t size() const noexcept { return slots_.size(); }

private:
    // A slot may be immovable, so that each has a place of its own.
    std::vector<std::unique_ptr<T>> slots_;
};

/// Instead of semaphores where no stage needs one.
struct NoSemaphore {};

/// One wait of a thread.
template <class Semaphore>
struct SemaphoreWait {
    Semaphore* semaphore = nullptr;
    std::uint32_t value = 0;
    std::size_t stage = 0;
};

/// The marks that stages set when they have been through a batch, made once: an event a stage and slot, and, where
/// threads take part, a semaphore that counts the laps.
template <class Shape>
class StageOrder {
public:
    using backend = typename Shape::backend;
    using Ref = BasicStreamRef<backend>;
    static constexpr std::size_t stages = Shape::stages;
    using Semaphore =
        typename std::conditional_t<Shape::any_aside, std::type_identity<BasicSemaphore<backend>>,
                                    std::type_identity<NoSemaphore>>::type;
    using Wait = SemaphoreWait<Semaphore>;

    StageOrder(std::size_t slots, StageStreams<backend>& streams)
        : slots_(slots), slot_mask_(std::has_single_bit(slots) ? slots - 1 : 0), streams_(streams) {
        events_.reserve(slots * stages);
        for (std::size_t i = 0; i < slots * stages; ++i) {
            const DeviceGuard<backend> device(streams.device_of(i % stages));
            events_.emplace_back();
        }
        for (std::size_t stage = 0; stage < stages; ++stage) {
            if constexpr (Shape::any_aside) {
                for (std::size_t slot = 0; slot < slots; ++slot)
                    semaphores_[stage].push_back(std::make_unique<Semaphore>());
                if (!Shape::aside[stage] && Shape::needs_semaphore(stage))
                    streams.add_sides(stage);
            }
        }
    }

    std::size_t slots() const noexcept { return slots_; }
    std::size_t slot_of(std::size_t batch) const noexcept {
        if (slot_mask_ != 0) [[likely]]
            return batch & slot_mask_; // several times a step, where a division would be felt
        return batch % slots_;
    }

    BasicEvent<backend>& event(std::size_t stage, std::size_t batch) noexcept {
        return events_[slot_of(batch) * stages + stage];
    }
    Semaphore& semaphore(std::size_t stage, std::size_t batch) noexcept {
        return *semaphores_[stage][slot_of(batch)];
    }
    /// What a semaphore counts to when its stage has been through `batch`.
    std::uint32_t lap_of(std::size_t batch) const noexcept {
        return static_cast<std::uint32_t>(batch / slots_ + 1);
    }
    Wait wait_of(std::size_t stage, std::size_t batch) noexcept {
        return {&semaphore(stage, batch), lap_of(batch), stage};
    }

    /// Later work of `stream` comes after stage `stage` is through `batch`.
    void wait(Ref stream, std::size_t stage, std::size_t batch) {
        if (Shape::aside[stage]) {
            if constexpr (Shape::any_aside)
                semaphore(stage, batch).wait(stream, lap_of(batch));
        } else {
            stream.wait(event(stage, batch));
        }
    }
    /// Whether a thread has signalled that stage `stage` is through `batch`.
    bool reached(std::size_t stage, std::size_t batch) noexcept {
        if constexpr (Shape::any_aside)
            return semaphore(stage, batch).reached(lap_of(batch));
        else
            return false;
    }
    /// Stage `stage`, a GPU stage, is through `batch` when `stream` gets here. Its semaphore is signalled on `signals`:
    /// the same stream, or another one.
    void mark(Ref stream, Ref signals, std::size_t stage, std::size_t batch, bool with_event,
              bool with_semaphore) {
        const bool elsewhere = with_semaphore && !(signals == stream);
        if (with_event || elsewhere)
            event(stage, batch).record(stream);
        if constexpr (Shape::any_aside) {
            if (elsewhere)
                signals.wait(event(stage, batch));
            if (with_semaphore)
                semaphore(stage, batch).signal(signals, lap_of(batch));
        }
    }

    /// Has the events stand for nothing that has failed: streams that wait for one get its fault.
    void record_anew() {
        for (std::size_t i = 0; i < events_.size(); ++i) {
            if (!Shape::aside[i % stages])
                events_[i].record(streams_.of(i % stages, 0));
        }
    }

    /// All stages are through all batches before `next`, whoever has told so. Nothing is under way.
    void catch_up(std::size_t next) {
        if constexpr (Shape::any_aside) {
            for (auto& of_stage : semaphores_) {
                for (std::size_t slot = 0; slot < slots_ && slot < next; ++slot) {
                    const std::uint32_t lap = lap_of((next - 1 - slot) / slots_ * slots_ + slot);
                    if (!of_stage[slot]->reached(lap))
                        of_stage[slot]->signal(lap);
                }
            }
        } else {
            (void)next;
        }
    }

    /// All laps are over, and batches count from 0 again. Nobody waits.
    void reset() {
        if constexpr (Shape::any_aside) {
            for (auto& of_stage : semaphores_) {
                for (auto& semaphore : of_stage)
                    semaphore->reset();
            }
        }
    }

private:
    std::size_t slots_;
    std::size_t slot_mask_; // 0: slots are no power of two, or one
    StageStreams<backend>& streams_;
    std::vector<BasicEvent<backend>> events_; // a slot's side by side
    std::array<std::vector<std::unique_ptr<Semaphore>>, stages> semaphores_;
};

} // namespace sluice::detail
