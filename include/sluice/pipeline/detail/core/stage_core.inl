// Bodies of stage_core.hpp: a stage's calls, and what they wait for.
#pragma once

namespace sluice::detail {

template <Backend B>
void StageCore<B>::run(std::size_t stage, Ref stream, std::size_t number, const GivenBatch<B>& batch,
                       [[maybe_unused]] const ThreadWaits& waits) {
    const Range range(name(stage));
    enter_stage(stage, number);
    [[maybe_unused]] const auto scope = checks.scope(*this, stage, stream, number);
    if constexpr (has_threads) {
        if (plan.stages[stage].aside) {
            hand_to_thread(stage, number, batch, waits);
            leave_stage();
            return;
        }
    }
    checks.before_call(*this, stage, stream, number);
    if constexpr (has_threads) {
        // It may load kernels: see `StageOrder::wait`. With the first batch no stream waits for a thread.
        if (number > 0 && rates.any() && rates.run_of(stage, number) == 0) [[unlikely]]
            (void)SemaphoreWaits::instance().let_threads_catch_up();
    }
    if (plain_) [[likely]]
        call(stage, stream, number, batch);
    else
        call_watched(stage, stream, number, batch);
    B::check_launches();
    checks.after_call(*this, stage, stream, number, batch);
    if (launch_blocking_) {
        awaiting_work_ = true;
        stream.sync();
        awaiting_work_ = false;
    }
    leave_stage();
}

template <Backend B>
void StageCore<B>::call(std::size_t stage, Ref stream, std::size_t number, const GivenBatch<B>& batch) {
    const auto on_stream = batch.calls[stage].on_stream;
    if constexpr (streams_are_threads<B>) {
        const StagePlan& own = plan.stages[stage];
        if (own.as_task) {
            B::enqueue(stream.get(),
                       [this, stage, stream, number, on_stream, kept = KeptBatch(batch, own.reads_batch)] {
                           [[maybe_unused]] const auto within = checks.scope(*this, stage, stream, number);
                           const CallingPipeline calling(this, name(stage));
                           try {
                               on_stream(entries_[stage].callable, stream, slots_for(number), kept.get());
                           } catch (...) {
                               fault_.set(std::current_exception(), stage, number);
                               throw; // Streams that wait for this must fail, too.
                           }
                       });
            return;
        }
    }
    on_stream(entries_[stage].callable, stream, slots_for(number), batch.value);
}

// Calls a stage on its device, and notes when.
template <Backend B>
void StageCore<B>::call_watched(std::size_t stage, Ref stream, std::size_t number,
                                const GivenBatch<B>& batch) {
    const DeviceGuard<B> device(streams.device_of(stage));
    const auto timed = times ? times->begin_work(stage, number, stream, follows) : TimedWork::not_at_all;
    call(stage, stream, number, batch);
    if (timed != TimedWork::not_at_all)
        times->end_work(timed, stage, number, stream);
}

template <Backend B>
void StageCore<B>::hand_to_thread(std::size_t stage, std::size_t number, const GivenBatch<B>& batch,
                                  const ThreadWaits& waits) {
    const BasicStreamRef<Host> thread = threads_[stage].thread_of(number);
    const auto told = checks.thread_is_handed(*this, stage, thread, number, batch, waits);
    thread.enqueue([this, stage, number, waits, told, on_thread = batch.calls[stage].on_thread,
                    kept = KeptBatch(batch, plan.stages[stage].reads_batch)] {
        [[maybe_unused]] const auto within = checks.call_scope(told);
        call_on_thread(stage, number, waits, on_thread, kept.get());
    });
    checks.thread_was_handed(*this, stage, thread, number);
    if (launch_blocking_)
        threads_[stage].drain(&Checks::thread_waited_for);
}

template <Backend B>
void StageCore<B>::call_on_thread(std::size_t stage, std::size_t number, const ThreadWaits& waits,
                                  typename StageCall<B>::OnThread on_thread, const void* batch) {
    [[maybe_unused]] const auto scope = checks.scope(*this, stage, streams.of(stage, number), number);
    const CallingPipeline calling(this, name(stage));
    bool ready = true;
    try {
        for_each_thread_wait(stage, number, waits, [&](std::size_t of, std::size_t of_batch) {
            ready = ready && await_on_thread(of, of_batch, number, true);
        });
        // Again, since what it waited for may have failed meanwhile.
        if (ready && !is_behind_fault(number)) {
            const Range range(name(stage));
            const BasicStreamRef<Host> stream = threads_[stage].stream_of(number);
            checks.before_thread_calls(*this, stage, number);
            const std::int64_t begun = times ? times->now() : 0;
            on_thread(entries_[stage].callable, stream, slots_for(number), batch);
            Host::throw_if_failed(stream.get()); // what it enqueued there has run
            if (times)
                times->note_thread(stage, number, begun);
        }
    } catch (...) {
        fault_.set(std::current_exception(), stage, number);
    }
    // In any case, since streams wait for it.
    order->semaphore(stage, number).signal(order->lap_of(stage, number));
}

// Whether a CPU stage has thrown for batch `number`, or one before it: batches before that one pass all stages.
template <Backend B>
bool StageCore<B>::is_behind_fault(std::size_t number) const noexcept {
    return fault_.batch() <= number;
}

// Waits on a thread, for a stage that is called for batch `called_for`. False when that one is not to be called any more.
template <Backend B>
bool StageCore<B>::await_on_thread(std::size_t stage, std::size_t number, std::size_t called_for, bool told) {
    constexpr std::int64_t between_looks_at_faults = 20'000'000;
    while (true) {
        for (WaitingThread thread(between_looks_at_faults); thread.goes_on();) {
            if (told ? order->is_signalled(stage, number) : order->reached(stage, number))
                return true;
        }
        if (is_behind_fault(called_for))
            return false;
        // A device that has failed signals nothing.
        if (!plan.stages[stage].aside)
            streams.for_each([](Ref stream) { (void)stream.is_done(); });
    }
}

template <Backend B>
template <class Visit>
void StageCore<B>::for_each_wait(std::size_t stage, std::size_t number, Visit&& visit) const {
    const std::size_t slot_count = order->slots();
    if (rates.any()) [[unlikely]] {
        rates.for_each_wait(stage, number, slot_count, [&](std::size_t of, std::size_t of_batch) {
            if (of != stage || slot_count % lanes(stage) != 0)
                visit(of, of_batch);
        });
        return;
    }
    for (const PlanWait& wait : plan.waits_of(stage)) {
        if (!wait.former) {
            visit(wait.stage, number);
            continue;
        }
        // In the first lap the slot is unused.
        if (number < slot_count) [[unlikely]]
            return;
        // Its own work in the same slot comes first by itself where it is on the same stream.
        if (wait.stage != stage || slot_count % lanes(stage) != 0)
            visit(wait.stage, number + wait.ahead - slot_count);
    }
}

template <Backend B>
template <class Visit>
void StageCore<B>::for_each_thread_wait(std::size_t stage, std::size_t number, const ThreadWaits& waits,
                                        Visit&& visit) const {
    if (waits.by_plan)
        for_each_wait(stage, number, visit);
    else if (waits.any)
        visit(waits.stage, waits.batch);
}

// Lets `stream`, of the stage and batch, wait for all that this work must come after. Threads wait by themselves.
template <Backend B>
void StageCore<B>::await_inputs(std::size_t stage, std::size_t number, Ref stream) {
    const StagePlan& own = plan.stages[stage];
    if (!own.needs_semaphore) [[likely]] {
        for_each_wait(stage, number,
                      [&](std::size_t of, std::size_t of_batch) { order->wait(stream, of, of_batch); });
        return;
    }
    bool waits_beside = false;
    for_each_wait(stage, number, [&](std::size_t of, std::size_t of_batch) {
        if (!plan.stages[of].aside) {
            order->wait(stream, of, of_batch);
            return;
        }
        // A checker is told of each wait: that one is not needed is luck.
        if (!Checks::listens && order->is_signalled(of, of_batch))
            return;
        // While the stage has other work, its stream need not spend time on the wait.
        if (number == 0 || order->is_signalled(stage, number - 1)) {
            order->wait(stream, of, of_batch);
        } else {
            order->wait(streams.waits_of(stage, number), of, of_batch);
            waits_beside = true;
        }
    });
    if (waits_beside)
        streams.join_waits(stage, number);
}

template <Backend B>
template <class Work>
void StageCore<B>::call_in_order(std::size_t stage, std::size_t number, Work&& work) {
    const Ref stream = streams.of(stage, number);
    const StagePlan& own = plan.stages[stage];
    if (own.aside) {
        work(stream);
        return;
    }
    await_inputs(stage, number, stream);
    work(stream);
    order->mark(stream, own.needs_semaphore ? streams.signals_of(stage, number) : stream, stage, number,
                own.needs_event, own.needs_semaphore);
    mark_end(stage, number);
}

template <Backend B>
void StageCore<B>::release_batch(std::size_t stage, std::size_t number, const SourceHold<B>& hold) {
    if (!hold || !plan.stages[stage].reads_batch)
        return;
    if (plan.stages[stage].aside) {
        // A stream of no stage's, which may wait for the thread.
        order->wait(spare_stream(), stage, number);
        hold.release(spare_stream());
    } else {
        hold.release(streams.of(stage, number));
    }
}

template <Backend B>
BasicStreamRef<B> StageCore<B>::spare_stream() {
    if (!spare_)
        spare_.emplace();
    return *spare_;
}

template <Backend B>
void StageCore<B>::await_mark(std::size_t stage, std::size_t number) {
    if constexpr (has_threads) {
        if (plan.stages[stage].needs_semaphore && !plan.stages[stage].needs_event) {
            (void)await_on_thread(stage, number, number, false);
            return;
        }
    }
    const BasicEvent<B>* const sooner = sooner_end(stage, number, order->slots());
    (sooner != nullptr ? *sooner : order->event(stage, number)).sync();
}

template <Backend B>
bool StageCore<B>::mark_is_reached(std::size_t stage, std::size_t number) {
    const StagePlan& own = plan.stages[stage];
    if (has_threads && own.needs_semaphore && !own.needs_event)
        return order->reached(stage, number);
    const BasicEvent<B>* const sooner = sooner_end(stage, number, order->slots());
    return (sooner != nullptr ? *sooner : order->event(stage, number)).is_done();
}

template <Backend B>
void StageCore<B>::drain_threads() const noexcept {
    for (const CpuThreads<B>& threads : threads_)
        threads.drain(&Checks::thread_waited_for);
}

template <Backend B>
bool StageCore<B>::drain(bool failed) noexcept {
    const bool given_up = failed && streams.give_up_waits();
    // Streams may wait for threads, and threads for streams: neither needs this one to go on.
    drain_threads();
    streams.drain();
    // Before the semaphores that it waits for count from 0 again.
    if (spare_) {
        try {
            spare_->sync();
        } catch (...) {
            // The streams of the stages report what failed before.
        }
    }
    return given_up;
}

template <Backend B>
void StageCore<B>::forget_faults() noexcept {
    fault_.clear();
    for (const CpuThreads<B>& threads : threads_)
        threads.clear_failures();
    streams.clear_failures();
    if (order)
        order->reset();
    ends.forget();
    leave_stage();
    follows = false;
}

template <Backend B>
void StageCore<B>::note_times(int batches, bool whole_steps) {
    times.emplace(stages(), batches);
    watch_calls();
    bool any_aside = false;
    for (std::size_t stage = 0; stage < stages(); ++stage) {
        if (plan.stages[stage].aside) {
            any_aside = true;
            times->add_thread(stage);
            continue;
        }
        const DeviceGuard<B> device(streams.device_of(stage));
        times->add_stream(stage, streams.of(stage, 0));
    }
    if (whole_steps && !any_aside) {
        const DeviceGuard<B> device(streams.device_of(0));
        times->add_graphs(streams.of(0, 0));
    }
}

} // namespace sluice::detail
