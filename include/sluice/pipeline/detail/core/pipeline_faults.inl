// Bodies of pipeline_core.hpp: how a pipeline fails, what it says then, and how it begins anew.
#pragma once

#include <sluice/pipeline/detail/core/captured_streams.hpp>

namespace sluice::detail {

template <Backend B>
void PipelineCore<B>::throw_not_sound(const char* call) {
    if (!failure_) {
        // A handle went whose wait could not even begin: what was under way has been drained, and later work has not begun.
        try {
            throw_unreported();
        } catch (...) {
            fail();
        }
    }
    throw_unreported();
    throw failure_->after(std::string(call) +
                          ": the pipeline has failed before and needs a reset() first; the failure was: ");
}

template <Backend B>
void PipelineCore<B>::require_ready(const char* call, bool own) {
    if (failure_ || waiter_->unreported != nullptr)
        throw_not_sound(call);
    require_not_captured(call, own);
}

// Refuses `call`, and changes nothing, where a stage's stream is being captured, or `stream` is. Without `own` it asks of streams alone
// that stages were given: each look takes time that a step would notice.
template <Backend B>
void PipelineCore<B>::require_not_captured(const char* call, bool own) const {
    if (own) {
        core_.streams.for_each([&](Ref stream) {
            if (is_captured(stream)) [[unlikely]]
                throw_captured(call, "a stage's stream");
        });
    }
    // Serially nothing runs on most of them, and the pipeline still waits for them.
    core_.streams.for_each_external([&](Ref stream) {
        if (is_captured(stream)) [[unlikely]]
            throw_captured(call, "a stage's stream (StageOptions::stream)");
    });
}
template <Backend B>
void PipelineCore<B>::require_not_captured(const char* call, Ref stream) const {
    if (is_captured(stream)) [[unlikely]]
        throw_captured(call, "the stream");
}

// Throws, once, the fault that the destructor of a `BatchRead` met.
template <Backend B>
void PipelineCore<B>::throw_unreported() const {
    if (waiter_->unreported != nullptr)
        std::rethrow_exception(std::exchange(waiter_->unreported, nullptr));
}

// Fails with what a CPU stage has thrown, for the earliest batch: once nothing is at work, no earlier one can fail any more.
template <Backend B>
void PipelineCore<B>::throw_thread_fault() {
    core_.drain();
    const ThreadFault& fault = core_.thread_fault();
    try {
        std::rethrow_exception(fault.thrown());
    } catch (...) {
        fail_at(static_cast<int>(fault.stage()), fault.batch(), false);
    }
}

/// Within a handler: throws `placed`, which says all that the exception in hand does, with what that nests.
[[noreturn]] inline void throw_instead(const Error& placed) {
    try {
        throw;
    } catch (const std::nested_exception& outer) {
        if (outer.nested_ptr() == nullptr)
            std::throw_with_nested(placed);
        try {
            outer.rethrow_nested();
        } catch (...) {
            std::throw_with_nested(placed);
        }
    } catch (...) {
        std::throw_with_nested(placed);
    }
}

template <Backend B>
void PipelineCore<B>::throw_stream_fault() {
    core_.streams.for_each([&](Ref stream) {
        try {
            B::throw_if_failed(stream.get());
        } catch (...) {
            parts_->in_flight.look_quietly(core_);
            const FaultPlace place = find_fault(core_, submitted_, parts_->in_flight.completed(), begun_,
                                                stream, executor_->has_run_steps());
            // A CPU stage that has thrown failed its stream, and those that wait for it, after that: perhaps it is what was found.
            if (core_.thread_fault().known())
                throw_thread_fault();
            fail_at(place.stage, place.batch, place.or_earlier, true);
        }
    });
    executor_->for_each_capture_stream([&](int stage, Ref stream) {
        try {
            B::throw_if_failed(stream.get());
        } catch (...) {
            fail_at(stage, std::nullopt, false, true);
        }
    });
}

// Whether what was thrown within a stage, by a wait of a Readback's push, is a fault that one of the streams has passed on to it.
template <Backend B>
bool PipelineCore<B>::is_of_streams(const Error& error) const {
    const auto* const outer = dynamic_cast<const std::nested_exception*>(&error);
    if (outer == nullptr || outer->nested_ptr() == nullptr)
        return false;
    bool same = false;
    core_.streams.for_each([&](Ref stream) {
        try {
            B::throw_if_failed(stream.get());
        } catch (const std::nested_exception& failed) {
            same = same || failed.nested_ptr() == outer->nested_ptr();
        } catch (...) {
            // One that nests nothing is not the one in hand.
        }
    });
    return same;
}

// Called from within a handler: drains, notes the failure, and throws it with its stage and batch.
template <Backend B>
void PipelineCore<B>::fail() {
    const int stage = core_.current_stage();
    // A wait throws what the streams passed on to it, and does not know where that began.
    if (stage < 0)
        throw_known_fault();
    const bool of_work = core_.was_awaiting_work();
    bool earlier = false, of_batch = false, of_streams = false;
    try {
        throw;
    } catch (const BatchFailure&) {
        of_batch = true;
    } catch (const Error& error) {
        of_streams = stage >= 0 && !of_work && is_of_streams(error);
        earlier = !options_.launch_blocking && (of_streams || is_late(error));
    } catch (...) {
    }
    if (of_streams && core_.thread_fault().known())
        throw_thread_fault();
    // A fault of earlier work that a later call reported: which work's, is unknown.
    if (earlier) {
        const bool any = begun_ > 0 || stage >= 0;
        fail_at(-1, any ? std::optional(stage >= 0 ? core_.current_batch() : begun_ - 1) : std::nullopt, true,
                of_streams);
    }
    if (stage < 0)
        fail_at(stage, of_batch ? std::optional(begun_ - 1) : std::nullopt, false, of_batch);
    const std::size_t batch = core_.current_batch();
    try {
        executor_->finish_before(core_, batch);
    } catch (...) {
        // What failed first is told.
    }
    fail_at(stage, batch, false, of_batch || of_work);
}

template <Backend B>
void PipelineCore<B>::fail_at(int stage, std::optional<std::size_t> batch, bool or_earlier, bool of_stream) {
    core_.leave_stage();
    core_.drain();
    // Batches before the one that is told of have passed all stages: a CPU stage may have thrown for one of them meanwhile.
    if (batch && !or_earlier && core_.thread_fault().comes_before(stage, *batch))
        throw_thread_fault();
    drop_batches();
    const auto place = [&](const Error& error) {
        if (or_earlier && batch)
            return error.at_or_before(*batch);
        if (stage < 0)
            return batch ? error.in_batch(*batch) : error;
        const std::string& name = core_.name(static_cast<std::size_t>(stage));
        return batch ? error.in_stage(name, *batch) : error.in_stage(name);
    };
    try {
        throw;
    } catch (const Error& error) {
        const Error placed = place(error);
        failure_.emplace(placed);
        // What a host function, a graph_key or a batch_time threw is nested as what a stage throws is, not one deeper.
        if (of_stream)
            throw_instead(placed);
        std::throw_with_nested(placed);
    } catch (...) {
        // Of no stage are what a replay of whole steps hands results to, and what is asked of a batch, and want of memory.
        const char* const thrower =
            stage >= 0 ? "its callable threw: " : "what is of no stage threw, such as a Readback's handler: ";
        const Error placed = place(Error(thrower + words_of_handled()));
        failure_.emplace(placed);
        std::throw_with_nested(placed);
    }
}

template <Backend B>
void PipelineCore<B>::reset() {
    const Call call(*this, "reset");
    require_not_captured("reset");
    core_.drain();
    drop_batches();
    core_.forget_faults();
    try {
        core_.order->record_anew();
        sync();
    } catch (const Error& error) {
        std::throw_with_nested(
            Error(std::string("reset: the device is lost, and only a new process helps: ") + error.what()));
    }
    if (core_.times)
        core_.times->clear();
    inside_ = false;
    asks_streams_ = true;
    if (tuning_)
        parts_->tuner->interrupted();
    begun_ = 0;
    reading_ = results_ = 0;
    submitted_ = 0;
    dropped_ = 0;
    if (core_.rates.any()) {
        core_.rates.reset();
        core_.slots.lay_out_rows(core_.plan, core_.rates);
    }
    at_rest();
    results_left_ = {};
    ++run_;
    failure_.reset();
    waiter_->unreported = nullptr;
}

} // namespace sluice::detail
