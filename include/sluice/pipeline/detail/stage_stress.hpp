/// \file
/// What stress does to the slots of a checked pipeline, and to the order in which its stages are enqueued.
#pragma once

#include <array>
#include <cstddef>
#include <cstring>
#include <vector>

#include <sluice/backend/detail/checked/interface.hpp>
#include <sluice/backend/detail/checked/stress_state.hpp>
#include <sluice/backend/device.hpp>
#include <sluice/backend/stream.hpp>
#include <sluice/pipeline/detail/core_base.hpp>

namespace sluice::detail {

/// All bytes: NaN in floating point, -1 in integers.
inline constexpr int poison_byte = 0xFF;

inline bool poisons() noexcept {
    return checked::StressState::instance().poisons.load(std::memory_order_relaxed);
}

/// Poisons what `object` owns in the order of `stream`: device memory, and with `pinned` that too.
template <Backend B>
void poison(const void* object, BasicStreamRef<B> stream, bool pinned) {
    const checked::BlindScope blind;
    for (const checked::Range& range : checked::memory_of(object)) {
        if (pinned || !range.on_host)
            B::fill_bytes(const_cast<void*>(range.begin), poison_byte, range.bytes, stream.get());
    }
    checked::StressState::instance().poisonings.fetch_add(1, std::memory_order_relaxed);
}
/// Poisons the pinned memory that `object` owns, now, and says whether there is other memory.
template <Backend B>
bool poison_on_host(const void* object) requires IsChecked<B>::value {
    bool others = false;
    for (const checked::Range& range : checked::memory_of(object)) {
        others = others || !range.on_host;
        if (range.on_host)
            std::memset(const_cast<void*>(range.begin), poison_byte, range.bytes);
    }
    checked::StressState::instance().poisonings.fetch_add(1, std::memory_order_relaxed);
    return others;
}
/// Poisons all that `object` owns, and waits for it.
template <Backend B>
void poison_and_wait(const void* object, bool pinned = true) {
    if (pinned && !poison_on_host<B>(object))
        return;
    const BasicStream<B> stream;
    poison(object, stream.ref(), false);
    stream.sync();
}

/// Which stage's work on a batch comes after all others that read stage I's output: -1 where there is no such stage, or it
/// runs on threads.
template <class Shape>
constexpr int last_reader(std::size_t of) {
    constexpr std::size_t stages = Shape::stages;
    const auto& reads = Shape::bindings.reads;
    std::array<std::array<bool, stages>, stages> after{};
    for (std::size_t i = 0; i < stages; ++i) {
        for (std::size_t j = 0; j < i; ++j) {
            after[i][j] = reads[i][j];
            for (std::size_t k = 0; k < i; ++k)
                after[i][j] = after[i][j] || (reads[i][k] && after[k][j]);
        }
    }
    for (std::size_t last = stages; last-- > of + 1;) {
        if (!reads[last][of])
            continue;
        for (std::size_t other = of + 1; other < last; ++other) {
            if (reads[other][of] && !after[last][other])
                return -1;
        }
        return Shape::aside[last] ? -1 : static_cast<int>(last);
    }
    return -1;
}

/// Poisons stage I's slots when they have been made.
template <std::size_t Index, class Core>
void poison_new_slots(Core& core) {
    using Shape = typename Core::Shape;
    if constexpr (Shape::bindings.stages[Index].maker >= 0 && Shape::sound) {
        if (!poisons() || core.template stage<Index>().options().keeps_slot)
            return;
        const DeviceGuard<typename Core::backend> device(core.streams.device_of(Index));
        for (std::size_t slot = 0; slot < core.order->slots(); ++slot)
            poison_and_wait<typename Core::backend>(&core.template slot<Index>(slot),
                                                    Shape::template is_cpu<Index>);
    }
}
/// Poisons stage I's slot before the stage's work on batch `number`.
template <std::size_t Index, class Core>
void poison_own_slot(Core& core, typename Core::Ref stream, std::size_t number) {
    using Shape = typename Core::Shape;
    if constexpr (Shape::bindings.stages[Index].maker >= 0 && Shape::sound) {
        if (!poisons() || core.template stage<Index>().options().keeps_slot)
            return;
        // What the host writes it may write at any time; a CPU stage does so in its turn.
        const DeviceGuard<typename Core::backend> device(core.streams.device_of(Index));
        poison(&core.template slot<Index>(number), stream, Shape::template is_cpu<Index>);
    }
}
/// The same where stage I runs on threads, by the thread.
template <std::size_t Index, class Core>
void poison_own_slot_on_thread(Core& core, std::size_t number) {
    using Shape = typename Core::Shape;
    if constexpr (Shape::bindings.stages[Index].maker >= 0 && Shape::sound) {
        if (poisons() && !core.template stage<Index>().options().keeps_slot)
            (void)poison_on_host<typename Core::backend>(&core.template slot<Index>(number));
    }
}
/// Poisons the slots that nobody reads after stage I, whose work on batch `number` `stream` has been handed.
template <std::size_t Index, class Core>
void poison_read_slots(Core& core, typename Core::Ref stream, std::size_t number) {
    using Shape = typename Core::Shape;
    if (!poisons())
        return;
    Core::for_each_stage([&](auto of) {
        if constexpr (Shape::bindings.stages[of].maker >= 0 && Shape::sound &&
                      last_reader<Shape>(of) == static_cast<int>(Index)) {
            if (core.template stage<of>().options().keeps_slot ||
                core.streams.device_of(of) != core.streams.device_of(Index))
                return;
            const DeviceGuard<typename Core::backend> device(core.streams.device_of(Index));
            poison(&core.template slot<of>(number), stream, Shape::template is_cpu<of>);
        }
    });
}

/// Where the backend is checked and stress wants it: calls `visit(stage)` for each stage, each at random after those whose
/// outputs it reads, and those before it on its stream, and says so.
template <Backend B, class Visit>
bool enqueue_in_other_order([[maybe_unused]] const CoreBase<B>& core, [[maybe_unused]] Visit&& visit) {
    if constexpr (IsChecked<B>::value) {
        const std::size_t stages = core.stages();
        checked::StressState& stress = checked::StressState::instance();
        if (stages <= 2 || !stress.permutes.load(std::memory_order_relaxed))
            return false;
        static const char stages_of_all = 0;
        std::uint64_t bits = checked::stress_bits(stress.settings().seed, stress.next_of(&stages_of_all));
        std::vector<bool> done(stages);
        bool other = false;
        for (std::size_t left = stages; left > 0; --left) {
            std::vector<std::size_t> ready;
            for (std::size_t i = 0; i < stages; ++i) {
                bool can = !done[i];
                for (std::size_t j = 0; j < i; ++j)
                    can = can && (done[j] || !(core.plan.reads_output(i, j) || core.streams.share(i, j)));
                if (can)
                    ready.push_back(i);
            }
            const std::size_t next = ready[bits % ready.size()];
            bits = (bits >> 3) + (bits << 61);
            done[next] = true;
            other = other || next != stages - left;
            visit(next);
        }
        if (other)
            stress.orders.fetch_add(1, std::memory_order_relaxed);
        return true;
    } else {
        return false;
    }
}

/// Calls `visit(stage)` for each stage, with its number as a constant: in their order, or as `enqueue_in_other_order` does.
template <class Core, class Visit>
void for_each_stage_to_enqueue([[maybe_unused]] const Core& core, Visit&& visit) {
    if constexpr (Core::is_checked) {
        if (enqueue_in_other_order<typename Core::backend>(core, [&](std::size_t next) {
                Core::for_each_stage([&](auto stage) {
                    if (stage == next)
                        visit(stage);
                });
            }))
            return;
    }
    Core::for_each_stage(visit);
}

} // namespace sluice::detail
