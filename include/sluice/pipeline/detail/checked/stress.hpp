// What stress does to a checked pipeline: which slots are poisoned when, and in which order its stages are enqueued.
#pragma once

#include <cstddef>
#include <cstdint>

#include <sluice/backend/detail/checked/stress_state.hpp>
#include <sluice/backend/detail/list.hpp>
#include <sluice/backend/device.hpp>
#include <sluice/backend/stream.hpp>
#include <sluice/backend/stress.hpp>
#include <sluice/pipeline/detail/boundary/plan_data.hpp>
#include <sluice/pipeline/detail/checked/objects.hpp>

namespace sluice::detail {

template <Backend B>
class StageCore;

/// What stress does to one pipeline.
template <Backend B>
class StageStress {
    using Core = StageCore<B>;
    using Ref = BasicStreamRef<B>;

public:
    /// Poisons the slots, which have been made.
    void made(Core& core) {
        for (std::size_t stage = 0; stage < core.stages(); ++stage) {
            const bool kept = !has_own_slot(core, stage) ||
                              core.plan.windows[static_cast<std::size_t>(core.plan.stages[stage].maker)] > 1;
            last_readers_.push_back(kept ? -1 : last_reader(core.plan, stage)); // Later batches take it too.
            if (!has_poisoned_slot(core, stage))
                continue;
            const DeviceGuard<B> device(core.streams.device_of(stage));
            for (std::size_t slot = 0; slot < core.slots.count(); ++slot)
                poison_and_wait<B>(
                    core.slots.at(static_cast<std::size_t>(core.plan.stages[stage].maker), slot),
                    core.plan.stages[stage].is_cpu);
        }
    }
    /// Poisons a stage's slot before the stage's work on batch `number`.
    void poison_own_slot(Core& core, std::size_t stage, Ref stream, std::size_t number) const {
        if (!has_poisoned_slot(core, stage) || !core.rates.begins(stage, number))
            return;
        // What the host writes it may write at any time; a CPU stage does so in its turn.
        const DeviceGuard<B> device(core.streams.device_of(stage));
        poison(slot_of(core, stage, number), stream, core.plan.stages[stage].is_cpu);
    }
    /// The same where the stage runs on threads, by the thread.
    void poison_own_slot_on_thread(Core& core, std::size_t stage, std::size_t number) const {
        if (has_poisoned_slot(core, stage) && core.rates.begins(stage, number))
            (void)poison_on_host<B>(slot_of(core, stage, number));
    }
    /// Poisons the slots that no stage reads after a stage, whose work on batch `number` `stream` has been handed.
    void poison_read_slots(Core& core, std::size_t stage, Ref stream, std::size_t number) const {
        if (!checked::stress_poisons())
            return;
        for (std::size_t of = 0; of < core.stages(); ++of) {
            if (last_readers_[of] != static_cast<int>(stage) || !has_poisoned_slot(core, of) ||
                core.streams.device_of(of) != core.streams.device_of(stage))
                continue;
            const DeviceGuard<B> device(core.streams.device_of(stage));
            poison(slot_of(core, of, number), stream, core.plan.stages[of].is_cpu);
        }
    }
    /// Where stress wants it: calls `enqueue(stage)` for each stage, each at random after those whose outputs it reads, and
    /// those before it on its stream, and says so.
    template <class Enqueue>
    bool enqueue_in_other_order(const Core& core, Enqueue&& enqueue) const {
        const std::size_t stages = core.stages();
        checked::StressState& stress = checked::StressState::instance();
        if (stages <= 2 || !stress.permutes.load(std::memory_order_relaxed))
            return false;
        static const char stages_of_all = 0;
        std::uint64_t bits = checked::stress_bits(stress.settings().seed, stress.next_of(&stages_of_all));
        List<char> done(stages);
        bool other = false;
        for (std::size_t left = stages; left > 0; --left) {
            List<std::size_t> ready;
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
            enqueue(next);
        }
        if (other)
            stress.orders.fetch_add(1, std::memory_order_relaxed);
        return true;
    }

private:
    // Which stage's work on a batch comes after all others that read a stage's output: -1 where there is no such stage, or it
    // runs on threads.
    static int last_reader(const PlanData& plan, std::size_t of) {
        const std::size_t stages = plan.stages.size();
        List<List<bool>> after(stages, List<bool>(stages));
        for (std::size_t i = 0; i < stages; ++i) {
            for (std::size_t j = 0; j < i; ++j) {
                after[i][j] = plan.reads_output(i, j);
                for (std::size_t k = 0; k < i; ++k)
                    after[i][j] = after[i][j] || (plan.reads_output(i, k) && after[k][j]);
            }
        }
        for (std::size_t last = stages; last-- > of + 1;) {
            if (!plan.takes_slot_of(last, of))
                continue;
            for (std::size_t other = of + 1; other < last; ++other) {
                if (plan.takes_slot_of(other, of) && !after[last][other])
                    return -1;
            }
            return plan.stages[last].aside ? -1 : static_cast<int>(last);
        }
        return -1;
    }
    static bool has_own_slot(const Core& core, std::size_t stage) noexcept {
        return core.plan.stages[stage].maker >= 0 && !core.plan.stages[stage].hands_on;
    }
    static bool has_poisoned_slot(const Core& core, std::size_t stage) noexcept {
        return has_own_slot(core, stage) && checked::stress_poisons() && !core.keeps_slot(stage);
    }
    static const void* slot_of(const Core& core, std::size_t stage, std::size_t number) noexcept {
        return core.slot_at(static_cast<std::size_t>(core.plan.stages[stage].maker), number);
    }

    List<int> last_readers_; // of the stages' slots
};

} // namespace sluice::detail
