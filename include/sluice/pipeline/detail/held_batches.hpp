/// \file
/// What a checked pipeline tells of the batches that it holds for graphs to come.
#pragma once

#include <cstddef>
#include <deque>
#include <vector>

#include <sluice/backend/detail/checked/interface.hpp>
#include <sluice/pipeline/detail/core_base.hpp>
#include <sluice/pipeline/detail/stage_checks.hpp>

namespace sluice::detail {

/// Of a pipeline that is not checked.
template <Backend B, bool = IsChecked<B>::value>
class HeldBatches {
public:
    explicit HeldBatches(int) noexcept {}
    void note_other_work() noexcept {}
    void let_go(bool) noexcept {}
    void drop() noexcept {}
    template <class Core, class Executor>
    void hold(const Core&, const Executor&) noexcept {}
    template <class Core, class Executor, class Batch>
    void submitted(const Core&, const Executor&, std::size_t, const Batch&) noexcept {}
};

/// What a batch of the caller's own reads must stay as it is while no stage that takes it has been handed it yet.
template <Backend B>
class HeldBatches<B, true> {
public:
    /// For graphs of so many steps, as asked for.
    explicit HeldBatches(int steps) noexcept : steps_(steps > 1 ? static_cast<std::size_t>(steps) : 1) {}
    /// Batches may be filled on a stream of the caller's from here on, by work that nobody sees.
    void note_other_work() noexcept { others_fill_ = true; }
    /// Before anything is enqueued: throws what has changed. From here on the stages' own accesses tell.
    void let_go(bool may_throw) { reads_.let_go(may_throw); }
    /// No batch is held any more.
    void drop() noexcept {
        reads_.let_go(false);
        batches_.clear();
    }
    /// `executor` has been given batch `number`, the caller's own.
    template <class Core, class Executor, class Batch>
    void submitted(const Core& core, const Executor& executor, std::size_t number, const Batch& batch) {
        const checked::BookkeepingScope own_memory;
        if constexpr (requires { executor.next_of(number); }) {
            if (core.checks.on && first_to_read(core, executor, number) < core.plan.stages.size() &&
                !checked::knows_object(&batch)) {
                Held& held = batches_.emplace_back();
                held.number = number;
                const bool alone = !others_fill_ && !core.streams.any_external();
                const auto add = [&](const checked::Range& range, bool constant) {
                    held.memory.push_back({range.begin, range.bytes, constant && alone});
                };
                visit_memory<false>(batch, add);
            }
        }
        hold(core, executor);
    }
    /// `executor` has been called, and holds what it does.
    template <class Core, class Executor>
    void hold(const Core& core, const Executor& executor) {
        if constexpr (requires { executor.next_of(steps_); }) {
            while (!batches_.empty() &&
                   first_to_read(core, executor, batches_.front().number) == core.plan.stages.size())
                batches_.pop_front();
            for (const Held& held : batches_) {
                const std::size_t stage = first_to_read(core, executor, held.number);
                reads_.hold(held.memory.data(), held.memory.size(), core.checks.labels[stage], held.number,
                            steps_, checked::key_of(core.streams.of(stage, held.number).get()));
            }
        }
    }

private:
    struct Held {
        std::size_t number = 0;
        std::vector<checked::HeldRange> memory;
    };
    // The first stage that takes the batch and has not been handed it; as many as there are, where all have.
    template <class Executor>
    static std::size_t first_to_read(const CoreBase<B>& core, const Executor& executor, std::size_t number) {
        std::size_t stage = 0;
        while (stage < core.plan.stages.size() &&
               !(core.plan.stages[stage].reads_batch && executor.next_of(stage) <= number))
            ++stage;
        return stage;
    }

    std::size_t steps_;
    bool others_fill_ = false;
    std::deque<Held> batches_;
    checked::HeldReads reads_;
};

} // namespace sluice::detail
