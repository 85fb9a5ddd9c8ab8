// What a pipeline of a checked backend tells of its stages, slots and batches.
#pragma once

#include <cstddef>
#include <cstdint>
#include <exception>
#include <optional>

#include <sluice/backend/detail/checked/interface.hpp>
#include <sluice/backend/detail/list.hpp>
#include <sluice/backend/device.hpp>
#include <sluice/pipeline/detail/checked/stress.hpp>
#include <sluice/pipeline/detail/core/checks.hpp>

namespace sluice::detail {

/// `Host`, as a name that depends.
template <Backend B>
struct HostBeside {
    using type = Host;
};

/// See the primary template.
template <Backend B>
class PipelineChecks<B, true> {
    using Core = StageCore<B>;
    using Ref = BasicStreamRef<B>;
    using Given = GivenBatch<B>;
    // What a CPU stage's callable says of its accesses is said of its thread. A checked `Host` sees to that itself.
    static constexpr bool tells_calls = !IsChecked<typename HostBeside<B>::type>::value;

public:
    static constexpr bool listens = true;
    using StageScope = checked::StageScope;
    using LibraryScope = checked::InternalScope;
    using CallScope = checked::CallScopeOn<tells_calls>;
    using Call = checked::TokenOn<tells_calls>;

    /// `steps`: of its graphs, as asked for.
    PipelineChecks(const std::optional<bool>& checked, int steps)
        : on_(checked.value_or(true)), steps_(steps > 1 ? static_cast<std::size_t>(steps) : 1) {}
    PipelineChecks& operator=(PipelineChecks&&) = delete;
    ~PipelineChecks() {
        for (const void* const object : objects_)
            checked::object_gone(object);
        if (lost_ != nullptr)
            checked::not_thrown(lost_);
    }

    bool on() const noexcept { return on_; }

    void stage_added(const StageSetup<B>& stage) {
        labels_.push_back(checked::stage_label(stage.name->c_str()));
        declared_.push_back(stage.declared);
    }
    void slots_begin() { listening_.emplace(); }
    void slot_begins() { listening_->begin_list(); }
    /// Tells what each slot of a stage owns.
    void slots_made(const Core& core, std::size_t stage, std::size_t maker) {
        for (std::size_t slot = 0; slot < core.slots.count(); ++slot) {
            const void* const object = core.slots.at(maker, slot);
            objects_.push_back(object);
            List<checked::Range> memory = listening_->list(slot + 1);
            const auto add = [&](const checked::Range& range, bool) { memory.push_back(range); };
            core.slots.ops(maker).show_memory(object, add);
            checked::object_made(object, memory.data(), memory.size(),
                                 ("stage '" + core.name(stage) + "'").c_str(), static_cast<int>(slot));
        }
        listening_.reset();
    }
    void made(Core& core) {
        for (std::size_t stage = 0; stage < core.stages(); ++stage) {
            const std::size_t lanes = core.plan.stages[stage].aside ? 0 : core.streams.lanes(stage);
            for (std::size_t lane = 0; lane < lanes; ++lane) {
                checked::name_stream(checked::key_of(core.streams.of(stage, lane).get()),
                                     core.name(stage).c_str(), lanes > 1 ? static_cast<int>(lane) : -1,
                                     core.plan.stages[stage].is_cpu);
            }
        }
        stress_.made(core);
    }

    StageScope scope(const Core&, std::size_t stage, Ref stream, std::size_t number) const {
        return {labels_[stage], number, checked::key_of(stream.get())};
    }
    void before_call(Core& core, std::size_t stage, Ref stream, std::size_t number) {
        stress_.poison_own_slot(core, stage, stream, number);
    }
    void after_call(Core& core, std::size_t stage, Ref stream, std::size_t number, const Given& batch) {
        tell(core, stage, stream, number, batch);
        stress_.poison_read_slots(core, stage, stream, number);
    }
    template <class Enqueue>
    bool enqueue_in_other_order(const Core& core, Enqueue&& enqueue) const {
        return stress_.enqueue_in_other_order(core, enqueue);
    }

    /// What the thread will wait for and signal is known now, and streams may be handed what waits for it before it begins.
    template <class Waits>
    Call thread_is_handed(Core& core, std::size_t stage, BasicStreamRef<Host> thread, std::size_t number,
                          const Given& batch, const Waits& waits) {
        const checked::Key on = checked::key_of(thread.get());
        const std::size_t lanes = core.lanes(stage);
        checked::name_stream(on, core.name(stage).c_str(), lanes > 1 ? static_cast<int>(number % lanes) : -1,
                             true);
        core.for_each_thread_wait(stage, number, waits, [&](std::size_t of, std::size_t batch_waited_for) {
            const auto wait = core.order->wait_of(of, batch_waited_for);
            checked::semaphore_waited(checked::key_of(wait.semaphore->get()), wait.value, on);
        });
        tell(core, stage, thread, number, batch);
        if constexpr (tells_calls)
            return checked::enqueued(on);
        else
            return {};
    }
    void thread_was_handed(Core& core, std::size_t stage, BasicStreamRef<Host> thread, std::size_t number) {
        checked::semaphore_signalled(checked::key_of(core.order->semaphore(stage, number).get()),
                                     core.order->lap_of(stage, number), checked::key_of(thread.get()));
    }
    static CallScope call_scope(const Call& call) noexcept { return CallScope(call); }
    void before_thread_calls(Core& core, std::size_t stage, std::size_t number) {
        stress_.poison_own_slot_on_thread(core, stage, number);
    }
    /// The calling thread has seen the end of all that the thread was handed, also where it has failed and nothing waits for it.
    static void thread_waited_for([[maybe_unused]] BasicStreamRef<Host> thread) noexcept {
        if constexpr (tells_calls)
            checked::host_saw(checked::snapshot_of_stream(checked::key_of(thread.get())), true);
    }

    static void graph_begins_with(std::size_t batch) noexcept { checked::graph_batch(batch); }
    /// Batches may be filled on a stream of the caller's from here on, by work that the checker does not see.
    void other_work_noted() noexcept { others_fill_ = true; }
    /// Before anything is enqueued: throws what has changed. From here on the stages' own accesses tell.
    void let_go(bool may_throw) { held_reads_.let_go(may_throw); }
    static void throw_pending() { checked::throw_pending(); }
    void not_thrown() noexcept { lost_ = std::current_exception(); }
    /// No batch is held any more.
    void drop() noexcept {
        held_reads_.let_go(false);
        held_.clear();
        latest_.memory.clear();
    }
    /// `executor` has been given batch `number`, the caller's own. What it reads must stay as it is while no stage that takes it
    /// has been handed it yet.
    void batch_submitted(const Core& core, const Executor<B>& executor, std::size_t number,
                         const Given& batch) {
        const checked::BookkeepingScope own_memory;
        latest_.number = number;
        latest_.memory.clear();
        if (on_ && !checked::knows_object(batch.value)) {
            const bool alone = !others_fill_ && !core.streams.any_external();
            const auto add = [&](const checked::Range& range, bool constant) {
                if (!range.shared) // Others may write there by right.
                    latest_.memory.push_back(checked::BatchRange{range.begin, range.bytes, constant && alone,
                                                                 range.on_host, !constant});
            };
            batch.ops->show_memory(batch.value, add);
            if (executor.keeps_batches() && first_to_read(core, executor, number) < core.stages())
                held_.push_back(latest_);
        }
        executor_called(core, executor);
        // Pinned memory tells when the host gets at it.
        watched_.clear();
        for (const checked::BatchRange& range : latest_.memory) {
            if (range.ordinary)
                watched_.push_back(range);
        }
        if (!watched_.empty())
            checked::watch(watched_.data(), watched_.size());
    }
    /// The caller has promised that batch `number` stays as it is. Known of the latest one.
    void batch_stays(std::size_t number) {
        const checked::BookkeepingScope own_memory;
        if (latest_.number == number)
            checked::watch(latest_.memory.data(), latest_.memory.size());
    }
    /// `executor` has been called, and holds what it does.
    void executor_called(const Core& core, const Executor<B>& executor) {
        if (!executor.keeps_batches())
            return;
        while (!held_.empty() && first_to_read(core, executor, held_.front().number) == core.stages())
            held_.erase(held_.begin());
        for (const BatchMemory& held : held_) {
            const std::size_t stage = first_to_read(core, executor, held.number);
            held_reads_.hold(held.memory.data(), held.memory.size(), labels_[stage], held.number, steps_,
                             checked::key_of(core.streams.of(stage, held.number).get()));
        }
    }

private:
    struct BatchMemory {
        std::size_t number = 0;
        List<checked::BatchRange> memory;
    };

    /// Tells what a stage's work on batch `number` reads and writes, which `stream`, or a thread's, has been handed.
    template <class Stream>
    void tell(Core& core, std::size_t stage, Stream stream, std::size_t number, const Given& batch) {
        if (!on_)
            return;
        handed_.clear();
        const StagePlan& own = core.plan.stages[stage];
        for (std::size_t parameter = 0; parameter < own.takes.size(); ++parameter) {
            const int from = own.takes[parameter];
            if (from == from_batch)
                add_batch(batch);
            if (from < 0)
                continue;
            const auto of = static_cast<std::size_t>(from);
            const int maker = core.plan.stages[of].maker;
            const std::size_t content = core.rates.content_of(static_cast<std::size_t>(maker), number);
            for (std::size_t back = 0; back <= content && (back == 0 || back < own.windows[parameter]);
                 ++back) {
                const void* const slot =
                    core.slots.at(static_cast<std::size_t>(maker), core.order->slot_of(content - back));
                handed_.push_back(checked::Handed{slot, checked::Range{}, checked::Op::slot,
                                                  of == stage || (own.hands_on && maker == own.maker)});
            }
        }
        if (declared_[stage] != nullptr) {
            for (const checked::Range& range : declared_[stage]->all())
                handed_.push_back(checked::Handed{nullptr, range, checked::Op::declared, range.writes});
        }
        checked::stage_called(checked::key_of(stream.get()), handed_.data(), handed_.size(),
                              !SeesWrites<B>::value);
    }
    void add_batch(const Given& batch) {
        if (checked::knows_object(batch.value)) {
            handed_.push_back(checked::Handed{batch.value, checked::Range{}, checked::Op::batch, false});
            return;
        }
        const auto add = [&](checked::Range range, bool constant) {
            range.output = !constant;
            if (!range.shared)
                handed_.push_back(checked::Handed{nullptr, range, checked::Op::batch, false});
        };
        batch.ops->show_memory(batch.value, add);
    }
    // The first stage that takes the batch and has not been handed it; as many as there are, where all have.
    static std::size_t first_to_read(const Core& core, const Executor<B>& executor, std::size_t number) {
        std::size_t stage = 0;
        while (stage < core.stages() &&
               !(core.plan.stages[stage].reads_batch && executor.next_of(stage) <= number))
            ++stage;
        return stage;
    }

    bool on_;
    std::size_t steps_;
    List<std::uint32_t> labels_; // of the stages
    List<const DeclaredRanges*> declared_;
    std::optional<checked::Listening> listening_; // while slots are made
    List<const void*> objects_;
    List<checked::Handed> handed_; // Kept for its memory.
    bool others_fill_ = false;
    BatchMemory latest_;                // of the caller's own
    List<checked::BatchRange> watched_; // Kept for its memory.
    List<BatchMemory> held_;
    checked::HeldReads held_reads_;
    std::exception_ptr lost_; // what the pipeline's destructor has caught
    StageStress<B> stress_;
};

} // namespace sluice::detail
