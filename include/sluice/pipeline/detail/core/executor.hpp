// What a pipeline asks of what runs its schedule, and the two schedules that hold nothing back: overlapped and serial.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>

#include <sluice/backend/config.hpp>
#include <sluice/backend/detail/list.hpp>
#include <sluice/backend/stream.hpp>
#include <sluice/graph/detail/call_ref.hpp>
#include <sluice/graph/graph_capture.hpp>
#include <sluice/pipeline/batch_read.hpp>
#include <sluice/pipeline/detail/boundary/stage_call.hpp>
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
        works_.resize(slots_ * core.stages());
        Work* next = works_.data();
        for (std::size_t slot = 0; slot < slots_; ++slot) {
            for (std::size_t stage = 0; stage < core.stages(); ++stage)
                fill(*next++, core, stage, slot, in_order);
        }
        const Event* waits = waits_.data();
        for (Work& work : works_) {
            work.waits = waits;
            if (work.all <= Work::most_near) {
                for (std::size_t i = 0; i < work.all; ++i)
                    work.near[i] = waits[i];
                work.waits = work.near;
            }
            waits += work.all;
        }
        stages_ = core.stages();
    }

    /// Whether they are laid out, and there is no listener to ranges.
    bool ready() const noexcept {
        return stages_ != 0 && range_listener.load(std::memory_order_relaxed) == nullptr;
    }

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
        if (core.ends.to_mark > 0) [[unlikely]] {
            for (std::size_t stage = 0; stage < stages_; ++stage)
                core.mark_end(stage, number);
        }
    }

private:
    using Event = typename B::NativeEvent;
    struct alignas(64) Work {
        static constexpr std::size_t most_near = 2;

        typename B::NativeStream stream{};
        void* callable = nullptr;
        void* const* slots = nullptr;
        const Event* waits = nullptr; // those for the same batch first
        std::uint32_t same = 0;
        std::uint32_t all = 0;
        Event mark{};            // or none
        Event near[most_near]{}; // the waits, where these are enough
    };

    void fill(Work& work, Core& core, std::size_t stage, std::size_t slot, bool in_order) {
        work.stream = core.streams.of(stage, slot).get();
        work.callable = core.callable(stage);
        work.slots = core.slots.of(slot);
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

/// Runs the stages in the order of a schedule. What is not overridden is that of one that keeps nothing back.
template <Backend B>
class alignas(64) Executor {
public:
    using Core = StageCore<B>;
    using Ref = BasicStreamRef<B>;

    Executor& operator=(Executor&&) = delete;
    virtual ~Executor() = default;

    /// Is the pipeline's from here on. Nothing is under way.
    virtual void begin(Core&) {}
    /// Enqueues all stages for a batch, now or later.
    virtual void submit(Core& core, std::size_t number, const GivenBatch<B>& batch,
                        const SourceHold<B>& hold) = 0;
    /// Runs a stage on the last batch that was submitted, before as many have come as it runs once for. All batches are on their way.
    virtual void run_behind_last(Core& core, std::size_t stage, std::size_t number,
                                 const GivenBatch<B>& batch) {
        core.run_in_order(stage, number, batch);
    }
    /// Waits on the calling thread until a stage is through a batch.
    virtual void await_stage(Core& core, std::size_t stage, std::size_t number) = 0;
    /// Whether it is. What comes after it there may have to be through as well.
    virtual bool is_through(Core& core, std::size_t stage, std::size_t number) {
        return core.mark_is_reached(stage, number);
    }
    /// The last batches of which each has a mark of its own, so that a wait for one is for no other.
    virtual std::size_t marked(const Core& core) const noexcept { return core.order->slots(); }
    /// The one stream on which all work ends so far, of a device that is stage 0's; none where each stage's ends on its own.
    virtual const Ref* one_end() const noexcept { return nullptr; }

    /// What `submit` does for a batch without a hold, if they are ready.
    const PlainSteps<B>& steps() const noexcept { return steps_; }
    /// Whether a submitted batch is kept beyond `submit`, and its hold given up later.
    bool keeps_batches() const noexcept { return keeps_batches_; }
    /// A stage's next batch: those from there on are held.
    virtual std::size_t next_of(std::size_t) const noexcept {
        return (std::numeric_limits<std::size_t>::max)();
    }
    /// From here on the caller submits no more than `in_flight` batches before it waits for the first of them. False where that ends
    /// what is held each time.
    virtual bool hold_at_most(std::size_t /*in_flight*/) { return true; }
    /// Batches come from `number` on. None is in flight.
    virtual void start_at(std::size_t) noexcept {}
    /// Whether the last batches were replayed without a stage's being called, as the next will be, then.
    bool replays() const noexcept { return replays_; }
    /// Whether graphs of all stages have run.
    virtual bool has_run_steps() const noexcept { return false; }
    /// Sees that all batches are on their way through all stages.
    virtual void flush(Core&) {}
    /// A stage has thrown for `batch`: sees that all batches before it are on their way through all stages.
    virtual void finish_before(Core&, std::size_t /*batch*/) {}
    /// Forgets all batches. None is in flight.
    virtual void reset() noexcept {}
    /// Calls `visit(stage, stream)` for the streams on which stages are captured, with -1 where there are several: CUDA's
    /// backend keeps the fault of a captured host function with its stream.
    virtual void for_each_capture_stream(const CallRef<void(int, Ref)>&) const {}
    virtual GraphCounters counters() const noexcept { return {}; }
    /// Why work was not captured first, or what has changed; empty while all is well.
    virtual std::string first_refusal() const { return {}; }

protected:
    // Not asked for by a call: each submit looks at them.
    bool keeps_batches_ = false;
    bool replays_ = false;
    PlainSteps<B> steps_; // of one that holds nothing back, where each stage is one call after another
};

/// What the two that hold nothing back share: a batch is handed to all stages when it is submitted.
template <Backend B>
class PlainExecutor : public Executor<B> {
    using Core = StageCore<B>;

public:
    void submit(Core& core, std::size_t number, const GivenBatch<B>& batch, const SourceHold<B>& hold) final {
        if (this->steps_.ready() && !hold)
            this->steps_.run(core, number, batch);
        else
            submit_stage_by_stage(core, number, batch, hold);
    }

protected:
    virtual void submit_stage_by_stage(Core& core, std::size_t number, const GivenBatch<B>& batch,
                                       const SourceHold<B>& hold) = 0;
};

/// Schedule::overlapped: each stage on streams of its own, in order by the marks of those that it waits for.
template <Backend B>
class OverlappedExecutor final : public PlainExecutor<B> {
    using Core = StageCore<B>;

public:
    void begin(Core& core) override { this->steps_.lay_out(core, true); }

    void await_stage(Core& core, std::size_t stage, std::size_t number) override {
        core.await_mark(stage, number);
    }

private:
    void submit_stage_by_stage(Core& core, std::size_t number, const GivenBatch<B>& batch,
                               const SourceHold<B>& hold) override {
        core.enqueue_each(number, [&](std::size_t stage) {
            core.run_in_order(stage, number, batch);
            if (hold)
                core.release_batch(stage, number, hold);
        });
    }
};

/// Schedule::serial: one stage after another, one batch after another. All stages of a device are on one stream, and need no
/// marks. Where the work goes from one device to another, or to a thread and back, each stage waits for the one before it.
template <Backend B>
class SerialExecutor final : public PlainExecutor<B> {
    using Core = StageCore<B>;

public:
    explicit SerialExecutor(const Core& core) : marks_(core.stages()) {
        const std::size_t stages = core.stages();
        for (std::size_t stage = 0; stage < stages; ++stage) {
            const std::size_t former = former_of(stage);
            const bool threads = core.plan.stages[stage].aside || core.plan.stages[former].aside;
            // Of one thread's batches, each comes after the one before by itself.
            marks_[stage].waits =
                former != stage && (threads || !(core.streams.of(stage, 0) == core.streams.of(former, 0)));
            if (marks_[stage].waits && !core.plan.stages[former].aside)
                (threads ? marks_[former].signals : marks_[former].records) = true;
        }
        // Any may come behind any other one where some run less often.
        bool any_waits = false, any_aside = false;
        for (std::size_t stage = 0; stage < stages; ++stage) {
            any_waits = any_waits || marks_[stage].waits;
            any_aside = any_aside || core.plan.stages[stage].aside;
        }
        for (std::size_t stage = 0; core.rates.any() && any_waits && stage < stages; ++stage) {
            marks_[stage].waits = true;
            marks_[stage].records = !core.plan.stages[stage].aside;
            marks_[stage].signals = any_aside && !core.plan.stages[stage].aside;
        }
    }

    void begin(Core& core) override {
        for (const Marks& marks : marks_) {
            if (marks.waits)
                return;
        }
        this->steps_.lay_out(core, false);
    }
    void reset() noexcept override { any_ran_ = false; }

    void await_stage(Core& core, std::size_t stage, std::size_t number) override {
        if (core.plan.stages[stage].aside)
            core.await_mark(stage, number);
        else if (const BasicEvent<B>* const end = core.sooner_end(stage, number, 1))
            end->sync();
        else
            core.streams.await(stage, number);
    }
    bool is_through(Core& core, std::size_t stage, std::size_t number) override {
        if (core.plan.stages[stage].aside)
            return core.mark_is_reached(stage, number);
        const BasicEvent<B>* const end = core.sooner_end(stage, number, 1);
        return end != nullptr ? end->is_done() : core.streams.of(stage, number).is_done();
    }
    // All else is behind the last batch.
    std::size_t marked(const Core&) const noexcept override { return 1; }

    /// Runs a stage behind all that ran before.
    void run_behind_last(Core& core, std::size_t stage, std::size_t number,
                         const GivenBatch<B>& batch) override {
        const auto stream = core.streams.of(stage, number);
        const bool aside = core.plan.stages[stage].aside;
        ThreadWaits thread_waits{.by_plan = false};
        if (marks_[stage].waits && any_ran_ && last_stage_ != stage) {
            if (aside)
                thread_waits = {.by_plan = false, .any = true, .stage = last_stage_, .batch = last_batch_};
            else
                core.order->wait(stream, last_stage_, last_batch_);
        }
        core.run(stage, stream, number, batch, thread_waits);
        if (!aside)
            mark(core, stream, stage, number);
        any_ran_ = true;
        last_stage_ = stage;
        last_batch_ = number;
    }

private:
    void submit_stage_by_stage(Core& core, std::size_t number, const GivenBatch<B>& batch,
                               const SourceHold<B>& hold) override {
        for (std::size_t stage = 0; stage < marks_.size(); ++stage) {
            if (!core.rates.runs(stage, number))
                continue;
            core.follows = stage > 0 && !marks_[stage].waits;
            run_behind_last(core, stage, number, batch);
            core.release_batch(stage, number, hold);
        }
        core.follows = false;
    }

    void mark(Core& core, typename Core::Ref stream, std::size_t stage, std::size_t number) {
        core.order->mark(stream, stream, stage, number, marks_[stage].records, marks_[stage].signals);
        core.mark_end(stage, number);
    }

    struct Marks {
        bool waits = false; // for the stage before it
        bool records = false;
        bool signals = false;
    };
    std::size_t former_of(std::size_t stage) const noexcept {
        return (stage == 0 ? marks_.size() : stage) - 1;
    }
    List<Marks> marks_;
    bool any_ran_ = false;       // Since it began,
    std::size_t last_stage_ = 0; // and what ran last.
    std::size_t last_batch_ = 0;
};

} // namespace sluice::detail
