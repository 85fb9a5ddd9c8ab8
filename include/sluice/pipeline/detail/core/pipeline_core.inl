// Bodies of pipeline_core.hpp.
#pragma once

#include <exception>

#include <sluice/backend/detail/calling_stage.hpp>
#include <sluice/backend/device.hpp>
#include <sluice/pipeline/detail/core/executor.hpp>
#include <sluice/pipeline/detail/core/faults.hpp>
#include <sluice/pipeline/detail/core/graphed_stages.hpp>
#include <sluice/pipeline/detail/core/graphed_steps.hpp>
#include <sluice/pipeline/detail/core/in_flight.hpp>
#include <sluice/pipeline/detail/core/schedule_tuner.hpp>
#include <sluice/pipeline/detail/core/stage_core.hpp>

namespace sluice::detail {

template <Backend B>
struct PipelineCore<B>::Parts {
    Parts(const PlanData& plan, const PipelineSetup<B>& setup, const PipelineOptions& options)
        : core(plan, setup, options), in_flight(core, options.in_flight) {}

    StageCore<B> core;
    InFlight<B> in_flight;
    OverlappedExecutor<B> overlapped;
    Maybe<SerialExecutor<B>> serial;
    Owned<Executor<B>> graphs;  // Under `Schedule::graphed`.
    Maybe<ScheduleTuner> tuner; // Under `Schedule::automatic`.
};

/// Marks a pipeline as in use, on its device, for the length of a call.
template <Backend B>
class PipelineCore<B>::Call {
public:
    SLUICE_ALWAYS_INLINE Call(PipelineCore& pipeline, const char* name)
        : in_use_(pipeline.in_use_), calling_(&pipeline.core_, &StageCore<B>::stage_of) {
        // Asking for the current device takes time that a replay would notice.
        if (!pipeline.only_device_) [[unlikely]]
            make_current(pipeline.core_.streams.device());
        if (calling_.is_of_own_stage()) [[unlikely]]
            throw_in_use(name); // Not in use, but the call might wait for that stage.
        if (in_use_.exchange(true, __ATOMIC_ACQUIRE)) [[unlikely]]
            throw_in_use(name);
    }
    Call& operator=(Call&&) = delete;
    ~Call() { in_use_.store(false, __ATOMIC_RELEASE); }

private:
    [[gnu::noinline]] void make_current(int device) { device_.emplace(device); }

    Atomic<bool>& in_use_;
    const CallingPipeline calling_;
    Maybe<DeviceGuard<B>> device_;
    [[no_unique_address]] typename StageCore<B>::Checks::LibraryScope library_;
};

/// Releases a hold at the end of a call, unless it was handed on.
template <Backend B>
struct HeldUntilEnd {
    explicit HeldUntilEnd(const SourceHold<B>& given) noexcept : hold(given) {}
    HeldUntilEnd& operator=(HeldUntilEnd&&) = delete;
    ~HeldUntilEnd() {
        if (hold && !passed_on)
            hold.give_up();
    }
    const SourceHold<B> hold;
    bool passed_on = false;
};

template <Backend B>
PipelineCore<B>::PipelineCore(const PlanData& plan, const PipelineSetup<B>& setups,
                              const PipelineOptions& options, OfThisKind)
    : options_(options), parts_(make_owned<Parts>(plan, setups, require_options(options))),
      core_(parts_->core), executor_(&parts_->overlapped), waiter_(BatchWaiter::make()),
      only_device_(core_.streams.only_device()), any_external_(core_.streams.any_external()),
      looks_at_batches_(core_.rates.any() || !core_.host_readers().empty()),
      exceptions_(std::uncaught_exceptions()) {
    waiter_->pipeline = this;
    waiter_->wait = [](void* pipeline, std::size_t run, std::size_t number) {
        auto& self = *static_cast<PipelineCore*>(pipeline);
        if (run != self.run_)
            return true; // After a reset nothing of it is under way.
        if (!self.may_be_asked()) [[unlikely]]
            return false;
        self.await_batch(number);
        return true;
    };
    waiter_->is_read = [](void* pipeline, std::size_t run, std::size_t number) {
        auto& self = *static_cast<PipelineCore*>(pipeline);
        return run != self.run_ || (self.may_be_asked() && self.is_read(number));
    };
    if constexpr (StageCore<B>::Checks::listens) {
        waiter_->stays = [](void* pipeline, std::size_t run, std::size_t number) {
            auto& self = *static_cast<PipelineCore*>(pipeline);
            if (self.may_be_asked() && run == self.run_)
                self.core_.checks.batch_stays(number);
        };
    }
    waiter_->drain = [](void* pipeline) {
        auto& self = *static_cast<PipelineCore*>(pipeline);
        return self.may_be_asked() && self.core_.drain();
    };
    const bool graphs = options.schedule == Schedule::graphed || options.schedule == Schedule::automatic;
    if (options.timed_batches != 0)
        core_.note_times(options.timed_batches, graphs);
    switch (options.schedule) {
    case Schedule::serial:
        executor_ = &parts_->serial.emplace(core_);
        break;
    case Schedule::overlapped:
        break;
    case Schedule::graphed:
        use_graphs(options.graph_each_stage);
        break;
    case Schedule::automatic:
        parts_->tuner.emplace(trials());
        tuning_ = !parts_->tuner->choice().decided;
        use(parts_->tuner->current());
        break;
    }
    executor_->begin(core_);
    watched_ = tuning_ || core_.times;
    room_until_ = parts_->in_flight.limit();
    mark_at_ = parts_->in_flight.due();
}

template <Backend B>
PipelineCore<B>::~PipelineCore() {
    waiter_->pipeline = nullptr;
    core_.checks.let_go(false);
    const bool failed = failure_ || std::uncaught_exceptions() > exceptions_;
    if (failed)
        core_.streams.give_up_waits();
    if (!failure_) {
        try {
            const DeviceGuard<B> device(core_.streams.device());
            executor_->flush(core_);
            run_turns();
        } catch (...) {
            // A destructor cannot report it; a caller that needs to know calls finish().
            core_.checks.not_thrown();
        }
    }
    core_.drain(failed);
    drop_batches();
}

template <Backend B>
bool PipelineCore<B>::may_be_asked() const noexcept {
    return !in_use_.load() && !CallingPipeline::is_in_stage_of(&core_);
}

template <Backend B>
template <class Work>
void PipelineCore<B>::or_fail(Work&& work) {
    try {
        work();
    } catch (...) {
        if (!failure_)
            fail();
        throw;
    }
}

template <Backend B>
SLUICE_ALWAYS_INLINE inline void PipelineCore<B>::require_sound(const char* call, bool often) {
    if (failure_ || waiter_->unreported != nullptr || asks_streams_ || !often) [[unlikely]]
        require_ready(call, !often || !inside_);
}

// Fails with what is known without waiting to have gone wrong, and where, as far as that can be told.
template <Backend B>
SLUICE_ALWAYS_INLINE inline void PipelineCore<B>::throw_known_fault() {
    bool streams_may_have_failed = true;
    if constexpr (requires { B::any_failed(); })
        streams_may_have_failed = B::any_failed();
    if (streams_may_have_failed) [[unlikely]]
        throw_stream_fault();
    if (core_.thread_fault().known()) [[unlikely]]
        throw_thread_fault();
}

template <Backend B>
BatchRead PipelineCore<B>::submit(const GivenBatch<B>& batch, bool names_host_memory) {
    bool kept = false;
    submit_given(batch, {}, kept);
    return BatchRead(waiter_, run_, submitted_ - 1, names_host_memory);
}

template <Backend B>
void PipelineCore<B>::submit_held(const GivenBatch<B>& batch, const Hold& hold) {
    // Given back at the end, whatever happens: all that reads the batch has told its source by then, or is drained.
    HeldUntilEnd<B> held{hold};
    submit_given(batch, hold, held.passed_on);
}

template <Backend B>
void PipelineCore<B>::submit_given(const GivenBatch<B>& batch, const Hold& hold, bool& kept) {
    const Call call(*this, "submit");
    require_sound("submit", true);
    // An error from outside must not be blamed on a stage; it changes nothing here. A replay calls no stage, and a look at
    // it takes time that a replay would notice.
    if (!executor_->replays()) [[likely]]
        B::check_launches();
    try {
        enqueue(batch, hold, kept);
    } catch (...) {
        if (!failure_)
            fail();
        throw;
    }
}

template <Backend B>
SLUICE_ALWAYS_INLINE inline void PipelineCore<B>::enqueue(const GivenBatch<B>& batch, const Hold& hold,
                                                          bool& kept) {
    const SubmitBegin begin = watched_ ? SubmitBegin{StageTimes<B>::now(), waited()} : SubmitBegin{};
    if (submitted_ >= room_until_) [[unlikely]]
        await_room();
    if (looks_at_batches_) [[unlikely]]
        look_at_batch(batch);
    throw_known_fault();
    enter();
    core_.checks.let_go(true);
    begun_ = submitted_ + 1;
    kept = executor_->keeps_batches();
    if (executor_->steps().ready() && !hold) [[likely]] // without a call
        executor_->steps().run(core_, submitted_, batch);
    else
        executor_->submit(core_, submitted_, batch, hold);
    if (!hold)
        core_.checks.batch_submitted(core_, *executor_, submitted_, batch);
    else
        core_.checks.executor_called(core_, *executor_);
    if (++submitted_ >= mark_at_) [[unlikely]]
        mark_end();
    if (watched_) [[unlikely]]
        look_at_submit(begin, batch);
}

template <Backend B>
void PipelineCore<B>::look_at_batch(const GivenBatch<B>& batch) {
    // Callables set numbers in slots on the host when they are called, which is before CPU stages read them.
    const std::int64_t begun = watched_ ? StageTimes<B>::now() : 0;
    for_each_host_reader([&](std::size_t reader, std::size_t number) { await_stage(reader, number); });
    if (watched_)
        room_ += StageTimes<B>::now() - begun; // no launching
    last_ = batch;
    last_.value = nullptr;
}

// Calls `visit(stage, batch)` for the CPU stages whose slots the next batch is in, with the batch before in them.
template <Backend B>
template <class Visit>
void PipelineCore<B>::for_each_host_reader(Visit&& visit) {
    const std::size_t begin = core_.rates.begin();
    for (const std::size_t reader : core_.host_readers()) {
        const std::size_t batches = core_.rates.batches_a_run(reader);
        const std::size_t before = core_.free_slots() * batches;
        // What came before `begin` is over.
        if (submitted_ - begin >= before)
            visit(reader, begin + (submitted_ - begin - before) / batches * batches + batches - 1);
    }
}

template <Backend B>
void PipelineCore<B>::await_stage(std::size_t stage, std::size_t number) {
    core_.checks.let_go(true);
    ask_for_ends(number);
    executor_->await_stage(core_, stage, number);
    core_.checks.executor_called(core_, *executor_);
}

// Waits until all stages that take the batch have read it.
template <Backend B>
void PipelineCore<B>::await_batch(std::size_t number) {
    const Call call(*this, "BatchRead::wait");
    if (failure_) {
        throw_unreported();
        return; // Nothing is under way then.
    }
    if (any_external_) [[unlikely]]
        require_not_captured("BatchRead::wait", false);
    or_fail([&] {
        const std::int64_t begun = watched_ ? StageTimes<B>::now() : 0;
        for (std::size_t stage = 0; stage < core_.stages(); ++stage) {
            if (core_.plan.stages[stage].reads_batch)
                await_stage(stage, number);
        }
        throw_known_fault();
        // Who waits for an older one has others to fill, and the stages hold it up.
        if (watched_) [[unlikely]]
            (number + 1 == submitted_ ? reading_ : results_) += StageTimes<B>::now() - begun;
    });
}

template <Backend B>
const void* PipelineCore<B>::await_result(std::size_t number) {
    const Call call(*this, "run");
    require_sound("run", true);
    const std::size_t last = core_.stages() - 1;
    or_fail([&] {
        const std::int64_t begun = watched_ ? StageTimes<B>::now() : 0;
        await_stage(last, number);
        throw_known_fault();
        if (watched_) [[unlikely]]
            results_ += StageTimes<B>::now() - begun;
    });
    return core_.slot_at(static_cast<std::size_t>(core_.plan.stages[last].maker), number);
}

template <Backend B>
void PipelineCore<B>::wait_for(Ref stream) {
    const Call call(*this, "wait_for");
    require_sound("wait_for");
    require_not_captured("wait_for", stream);
    core_.streams.require_own_device(stream, "wait_for: the stream");
    core_.checks.other_work_noted();
    core_.streams.join(stream);
}

template <Backend B>
void PipelineCore<B>::flush() {
    const Call call(*this, "flush");
    require_sound("flush");
    or_fail([&] { leave(); });
}

template <Backend B>
void PipelineCore<B>::flush(Ref stream) {
    const Call call(*this, "flush");
    require_sound("flush");
    require_not_captured("flush", stream);
    core_.streams.require_own_device(stream, "flush: the stream");
    or_fail([&] {
        leave();
        core_.streams.release_to(stream);
    });
}

template <Backend B>
void PipelineCore<B>::finish() {
    const Call call(*this, "finish");
    require_sound("finish");
    or_fail([&] { end_all(); });
}

template <Backend B>
void PipelineCore<B>::sync() {
    // Streams first: the driver looks for their end without a pause, where a thread that sleeps is woken late. What waits for a
    // CPU stage in a stream comes through there.
    std::exception_ptr first; // Whole, with what is nested in it.
    core_.streams.for_each([&](Ref stream) {
        try {
            stream.sync();
        } catch (...) {
            if (first == nullptr)
                first = std::current_exception();
        }
    });
    core_.drain_threads();
    if (first != nullptr)
        std::rethrow_exception(first);
    at_rest();
}

template <Backend B>
void PipelineCore<B>::enter() {
    if (inside_) [[likely]]
        return;
    core_.streams.wait_for_external();
    inside_ = true;
    asks_streams_ = any_external_;
}

template <Backend B>
void PipelineCore<B>::leave() {
    core_.checks.throw_pending();
    throw_known_fault();
    if (!inside_)
        return;
    core_.checks.let_go(true);
    executor_->flush(core_);
    core_.streams.release_to_external();
    inside_ = false;
    asks_streams_ = true;
    if (tuning_)
        parts_->tuner->interrupted();
}

template <Backend B>
void PipelineCore<B>::drop_batches() noexcept {
    core_.checks.drop();
    executor_->reset();
}

} // namespace sluice::detail
