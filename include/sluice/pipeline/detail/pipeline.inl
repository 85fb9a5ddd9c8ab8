// Bodies of pipeline.hpp.
#pragma once

#include <iterator>

namespace sluice {

template <class... Ss, class... Makers>
Pipeline<Stages<Ss...>, Slots<Makers...>>::Pipeline(Stages<Ss...> stages, Slots<Makers...> makers,
                                                    PipelineOptions options)
    : options_(options),
      core_(std::move(stages.all), makers.all, options.schedule, options.slots, options.launch_blocking),
      serial_(core_), waiter_(detail::BatchWaiter::make()) {
    (void)detail::check_plan<Shape>();
    waiter_->pipeline = this;
    waiter_->wait = [](void* pipeline, std::size_t run, std::size_t number) {
        auto& self = *static_cast<Pipeline*>(pipeline);
        // After a reset nothing of it is under way, and within a call it is too late to ask.
        if (run == self.run_ && !self.in_use_.load(std::memory_order_relaxed))
            self.await_batch(number);
    };
    if (options.schedule != Schedule::graphed)
        return;
    if constexpr (GraphBackend<backend>) {
        graphed_.emplace(core_, options.graphs, options.steps_per_graph, options.graph_each_stage);
    } else {
        throw Error(std::string("the backend '") + backend::name +
                    "' has no graphs, which Schedule::graphed needs");
    }
}

template <class... Ss, class... Makers>
Pipeline<Stages<Ss...>, Slots<Makers...>>::~Pipeline() {
    waiter_->pipeline = nullptr;
    if (failure_.empty()) {
        try {
            const DeviceGuard<backend> device(core_.streams.device());
            if constexpr (GraphBackend<backend>) {
                if (graphed_)
                    graphed_->flush(core_);
            }
        } catch (...) {
            // A destructor has nobody to tell; whoever needs to know calls finish().
        }
    }
    core_.drain();
    drop_batches();
}

template <class... Ss, class... Makers>
template <class Visit>
void Pipeline<Stages<Ss...>, Slots<Makers...>>::with_executor(Visit&& visit) {
    if constexpr (GraphBackend<backend>) {
        if (graphed_) {
            visit(*graphed_);
            return;
        }
    }
    if (options_.schedule == Schedule::serial) {
        visit(serial_);
    } else {
        detail::OverlappedExecutor<Core> overlapped;
        visit(overlapped);
    }
}

template <class... Ss, class... Makers>
template <class Batch>
void Pipeline<Stages<Ss...>, Slots<Makers...>>::submit_given(const Batch& batch, const Hold& hold) {
    // Given back at the end, whatever happens: all that reads the batch has told its source by then, or is drained.
    HeldUntilEnd held{hold};
    const Call call(*this, "submit");
    require_sound("submit");
    // An error from outside must not be blamed on a stage; it changes nothing here. A replay calls no stage, and a look at
    // it takes time that a replay would notice.
    if (calls_stages())
        backend::check_launches();
    try {
        throw_known_fault();
        enter();
        with_executor([&](auto& executor) {
            held.passed_on = executor.keeps_batches();
            executor.submit(core_, submitted_, {&batch, &detail::BatchOps<Core>::template of<Batch>()}, hold);
        });
    } catch (...) {
        if (failure_.empty())
            fail();
        throw;
    }
    ++submitted_;
}

template <class... Ss, class... Makers>
template <std::size_t Index>
void Pipeline<Stages<Ss...>, Slots<Makers...>>::await_stage(std::size_t number) {
    with_executor([&](auto& executor) { executor.template await_stage<Index>(core_, number); });
}

// Waits until all stages that take the batch have read it.
template <class... Ss, class... Makers>
void Pipeline<Stages<Ss...>, Slots<Makers...>>::await_batch(std::size_t number) {
    const Call call(*this, "BatchRead::wait");
    if (!failure_.empty()) {
        throw_unreported();
        return; // Nothing is under way then.
    }
    try {
        Core::for_each_stage([&](auto stage) {
            if constexpr (Shape::bindings.reads_batch[stage])
                await_stage<stage>(number);
        });
        throw_known_fault();
    } catch (...) {
        if (failure_.empty())
            fail();
        throw;
    }
}

template <class... Ss, class... Makers>
const auto& Pipeline<Stages<Ss...>, Slots<Makers...>>::await_result(std::size_t number) {
    const Call call(*this, "run");
    require_sound("run");
    try {
        await_stage<stage_count - 1>(number);
        throw_known_fault();
    } catch (...) {
        if (failure_.empty())
            fail();
        throw;
    }
    return core_.template slot<stage_count - 1>(number);
}

template <class... Ss, class... Makers>
void Pipeline<Stages<Ss...>, Slots<Makers...>>::wait_for(BasicStreamRef<backend> stream) {
    const Call call(*this, "wait_for");
    require_sound("wait_for");
    core_.streams.require_own_device(stream, "wait_for: the stream");
    core_.streams.join(stream);
}

template <class... Ss, class... Makers>
void Pipeline<Stages<Ss...>, Slots<Makers...>>::flush() {
    const Call call(*this, "flush");
    require_sound("flush");
    try {
        leave();
    } catch (...) {
        if (failure_.empty())
            fail();
        throw;
    }
}

template <class... Ss, class... Makers>
void Pipeline<Stages<Ss...>, Slots<Makers...>>::flush(BasicStreamRef<backend> stream) {
    const Call call(*this, "flush");
    require_sound("flush");
    core_.streams.require_own_device(stream, "flush: the stream");
    try {
        leave();
        core_.streams.release_to(stream);
    } catch (...) {
        if (failure_.empty())
            fail();
        throw;
    }
}

template <class... Ss, class... Makers>
void Pipeline<Stages<Ss...>, Slots<Makers...>>::finish() {
    const Call call(*this, "finish");
    require_sound("finish");
    try {
        leave();
        sync();
        throw_known_fault();
    } catch (...) {
        if (failure_.empty())
            fail();
        throw;
    }
}

template <class... Ss, class... Makers>
void Pipeline<Stages<Ss...>, Slots<Makers...>>::sync() {
    core_.cpu_stages.drain();
    std::exception_ptr first; // Whole, with what is nested in it.
    core_.streams.for_each([&](BasicStreamRef<backend> stream) {
        try {
            stream.sync();
        } catch (...) {
            if (first == nullptr)
                first = std::current_exception();
        }
    });
    if (first == nullptr)
        return;
    throw_known_fault(); // which may know the stage
    std::rethrow_exception(first);
}

template <class... Ss, class... Makers>
void Pipeline<Stages<Ss...>, Slots<Makers...>>::reset() {
    const Call call(*this, "reset");
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
    inside_ = false;
    submitted_ = 0;
    ++run_;
    failure_.clear();
    waiter_->unreported = nullptr;
}

template <class... Ss, class... Makers>
BasicStreamRef<typename Pipeline<Stages<Ss...>, Slots<Makers...>>::backend>
Pipeline<Stages<Ss...>, Slots<Makers...>>::stream(std::size_t index) const {
    if (index >= stage_count) {
        throw Error("the stream of stage " + std::to_string(index) + " was asked for, of a pipeline of " +
                    std::to_string(stage_count) + " stages, counted from 0");
    }
    if (Shape::aside[index])
        throw Error("the stream of stage '" + core_.name(index) +
                    "' was asked for, which is a CPU stage and has none");
    return core_.streams.of(index, 0);
}

template <class... Ss, class... Makers>
void Pipeline<Stages<Ss...>, Slots<Makers...>>::require_sound(const char* call) const {
    if (failure_.empty())
        return;
    throw_unreported();
    throw Error(std::string(call) +
                ": the pipeline has failed before and needs a reset() first; the failure was: " + failure_);
}

// Throws, once, the fault that the destructor of a `BatchRead` met.
template <class... Ss, class... Makers>
void Pipeline<Stages<Ss...>, Slots<Makers...>>::throw_unreported() const {
    if (waiter_->unreported != nullptr)
        std::rethrow_exception(std::exchange(waiter_->unreported, nullptr));
}

// Fails with what is known without waiting to have gone wrong, and where, as far as that can be told.
template <class... Ss, class... Makers>
void Pipeline<Stages<Ss...>, Slots<Makers...>>::throw_known_fault() {
    if (const detail::ThreadFault& fault = core_.cpu_stages.fault(); fault.known()) {
        try {
            std::rethrow_exception(fault.thrown());
        } catch (...) {
            fail_at(static_cast<int>(fault.stage()), fault.batch(), false);
        }
    }
    if constexpr (requires { backend::any_failed(); }) {
        if (!backend::any_failed()) [[likely]]
            return;
    }
    core_.streams.for_each([&](BasicStreamRef<backend> stream) {
        try {
            backend::throw_if_failed(stream.get());
        } catch (...) {
            const detail::FaultPlace place = detail::find_fault(core_, submitted_, stream);
            fail_at(place.stage, place.batch, place.or_earlier);
        }
    });
    if constexpr (GraphBackend<backend>) {
        if (!graphed_)
            return;
        graphed_->for_each_capture_stream([&](std::size_t stage, BasicStreamRef<backend> stream) {
            try {
                backend::throw_if_failed(stream.get());
            } catch (...) {
                fail_at(static_cast<int>(stage), std::nullopt, false);
            }
        });
    }
}

template <class... Ss, class... Makers>
void Pipeline<Stages<Ss...>, Slots<Makers...>>::enter() {
    if (inside_)
        return;
    core_.streams.wait_for_external();
    inside_ = true;
}

template <class... Ss, class... Makers>
void Pipeline<Stages<Ss...>, Slots<Makers...>>::leave() {
    throw_known_fault();
    if (!inside_)
        return;
    if constexpr (GraphBackend<backend>) {
        if (graphed_)
            graphed_->flush(core_);
    }
    core_.streams.release_to_external();
    inside_ = false;
}

template <class... Ss, class... Makers>
void Pipeline<Stages<Ss...>, Slots<Makers...>>::drop_batches() noexcept {
    if constexpr (GraphBackend<backend>) {
        if (graphed_)
            graphed_->reset();
    }
}

// Called from within a handler: drains, notes the failure, and throws it with its stage and batch.
template <class... Ss, class... Makers>
void Pipeline<Stages<Ss...>, Slots<Makers...>>::fail() {
    const int stage = core_.current_stage();
    bool earlier = false;
    try {
        throw;
    } catch (const Error& error) {
        earlier = !options_.launch_blocking && detail::is_late(error);
    } catch (...) {
    }
    // A fault of earlier work that a later call was told of: which work's, nobody knows.
    if (earlier) {
        const bool any = submitted_ > 0 || stage >= 0;
        fail_at(-1, any ? std::optional(stage >= 0 ? core_.current_batch() : submitted_ - 1) : std::nullopt,
                true);
    }
    fail_at(stage, stage >= 0 ? std::optional(core_.current_batch()) : std::nullopt, false);
}

template <class... Ss, class... Makers>
void Pipeline<Stages<Ss...>, Slots<Makers...>>::fail_at(int stage, std::optional<std::size_t> batch,
                                                        bool or_earlier) {
    core_.leave_stage();
    core_.drain();
    drop_batches();
    const auto place = [&](const Error& error) {
        if (or_earlier && batch)
            return error.at_or_before(*batch);
        if (stage < 0)
            return error;
        const std::string& name = core_.name(static_cast<std::size_t>(stage));
        return batch ? error.in_stage(name, *batch) : error.in_stage(name);
    };
    std::string explanation = "an exception of an unknown type";
    try {
        throw;
    } catch (const Error& error) {
        const Error placed = place(error);
        failure_ = placed.what();
        std::throw_with_nested(placed);
    } catch (const std::exception& exception) {
        explanation = exception.what();
    } catch (...) {
    }
    const Error placed = place(Error("its callable threw: " + explanation));
    failure_ = placed.what();
    std::throw_with_nested(placed);
}

/// See `Pipeline::run`.
template <class Pipe, class Source>
class Results {
public:
    Results(Pipe& pipeline, Source& source)
        : pipeline_(pipeline), next_(std::begin(source)), end_(std::end(source)),
          taken_(pipeline.submitted()) {}
    Results(const Results&) = delete;
    Results& operator=(const Results&) = delete;

    class Iterator {
    public:
        using difference_type = std::ptrdiff_t;
        using value_type = std::remove_cvref_t<decltype(std::declval<Pipe&>().await_result(0))>;
        explicit Iterator(Results& results) : results_(&results) { results_->advance(); }
        const value_type& operator*() const noexcept { return *results_->shown_; }
        Iterator& operator++() {
            ++results_->taken_;
            results_->advance();
            return *this;
        }
        void operator++(int) { ++*this; }
        friend bool operator==(const Iterator& iterator, std::default_sentinel_t) {
            return iterator.at_end();
        }

    private:
        bool at_end() const noexcept { return results_->shown_ == nullptr; }
        Results* results_;
    };
    Iterator begin() { return Iterator(*this); }
    std::default_sentinel_t end() const noexcept { return {}; }

private:
    void advance() {
        shown_ = nullptr;
        const auto slots = static_cast<std::size_t>(pipeline_.options().slots);
        while (pipeline_.submitted() - taken_ < slots) {
            // Only now, since a batch that a source has given and nobody submits is lost.
            if (submitted_)
                ++next_;
            submitted_ = !(next_ == end_);
            if (!submitted_)
                break;
            pipeline_.submit(*next_);
        }
        if (taken_ < pipeline_.submitted())
            shown_ = &pipeline_.await_result(taken_);
    }

    Pipe& pipeline_;
    decltype(std::begin(std::declval<Source&>())) next_;
    decltype(std::end(std::declval<Source&>())) end_;
    std::size_t taken_;
    bool submitted_ = false; // Whether `*next_` has been.
    const std::remove_cvref_t<decltype(std::declval<Pipe&>().await_result(0))>* shown_ = nullptr;
};

template <class... Ss, class... Makers>
template <class Source>
auto Pipeline<Stages<Ss...>, Slots<Makers...>>::run(Source& source) {
    static_assert(Shape::has_result,
                  "sluice::Pipeline::run: the last stage makes nothing; give it an output, with a slot "
                  "maker, that the loop reads");
    return Results<Pipeline, Source>(*this, source);
}

} // namespace sluice
