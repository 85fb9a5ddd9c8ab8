// Bodies of pipeline.hpp.
#pragma once

namespace sluice {

namespace detail {

[[noreturn]] inline void throw_in_use(const char* call) {
    throw Error(std::string(call) +
                ": the pipeline is in use, by another thread or by this call's own stage; drive a "
                "pipeline from one thread, and not from within its stages");
}

/// Marks a pipeline as in use, on its device, for the length of a call.
template <Backend B>
class PipelineCall {
public:
    PipelineCall(const StageStreams<B>& streams, std::atomic<bool>& in_use, const char* name)
        : in_use_(in_use) {
        // Asking for the current device takes time that a replay would notice.
        if (!streams.only_device()) [[unlikely]]
            device_.emplace(streams.device());
        if (in_use.exchange(true, std::memory_order_acquire)) [[unlikely]]
            throw_in_use(name);
    }
    PipelineCall(const PipelineCall&) = delete;
    PipelineCall& operator=(const PipelineCall&) = delete;
    ~PipelineCall() { in_use_.store(false, std::memory_order_release); }

private:
    std::atomic<bool>& in_use_;
    std::optional<DeviceGuard<B>> device_;
    [[no_unique_address]] checked::InternalScopeOn<IsChecked<B>::value> internal_;
};

/// Gives a hold up at the end of a call, unless somebody else will.
template <Backend B>
struct HeldUntilEnd {
    explicit HeldUntilEnd(const SourceHold<B>& given) noexcept : hold(given) {}
    HeldUntilEnd(const HeldUntilEnd&) = delete;
    HeldUntilEnd& operator=(const HeldUntilEnd&) = delete;
    ~HeldUntilEnd() {
        if (hold && !passed_on)
            hold.give_up();
    }
    const SourceHold<B> hold;
    bool passed_on = false;
};

} // namespace detail

template <class... Ss, class... Makers>
Pipeline<Stages<Ss...>, Slots<Makers...>>::Pipeline(Stages<Ss...> stages, Slots<Makers...> makers,
                                                    PipelineOptions options)
    : options_(options),
      core_(std::move(stages.all), makers.all, options.schedule, options.slots, options.launch_blocking),
      runs_(options.schedule), serial_(core_), held_(options.steps_per_graph),
      waiter_(detail::BatchWaiter::make()) {
    (void)detail::check_plan<Shape>();
    detail::require_checked<backend>(options.checked);
    if constexpr (Core::is_checked)
        core_.checks.on = options.checked.value_or(true);
    waiter_->pipeline = this;
    waiter_->wait = [](void* pipeline, std::size_t run, std::size_t number) {
        auto& self = *static_cast<Pipeline*>(pipeline);
        // After a reset nothing of it is under way, and within a call it is too late to ask.
        if (run == self.run_ && !self.in_use_.load(std::memory_order_relaxed))
            self.await_batch(number);
    };
    waiter_->drain = [](void* pipeline) {
        auto& self = *static_cast<Pipeline*>(pipeline);
        if (!self.in_use_.load(std::memory_order_relaxed))
            self.core_.drain();
    };
    const bool graphs = options.schedule == Schedule::graphed || options.schedule == Schedule::automatic;
    if (options.timed_batches != 0)
        detail::note_times(core_, options.timed_batches, graphs);
    if (options.schedule == Schedule::graphed)
        make_graphs(options.graph_each_stage, options.graphs);
    if (options.schedule == Schedule::automatic) {
        tuner_.emplace(trials_of(options));
        tuning_ = !tuner_->choice().decided;
        use(tuner_->current());
    }
    watched_ = tuning_ || core_.times;
}

// One graph for all stages, where all of them can be captured and the caller does not wish one for each, or else one for
// each that can.
template <class... Ss, class... Makers>
void Pipeline<Stages<Ss...>, Slots<Makers...>>::make_graphs(bool each_stage, const GraphOptions& options) {
    if constexpr (has_graphs) {
        if (options_.steps_per_graph < 0)
            throw Error("a graph needs at least 1 step (0: as many as is good), got " +
                        std::to_string(options_.steps_per_graph));
        if constexpr (Shape::all_capturable) {
            bool all = !each_stage;
            Core::for_each_stage(
                [&](auto stage) { all = all && core_.template stage<stage>().options().graphed; });
            if (all) {
                steps_.emplace(core_, options, static_cast<std::size_t>(options_.steps_per_graph));
                graphs_ = true;
                return;
            }
        }
        stage_graphs_.emplace(core_, options);
        graphs_ = true;
    } else {
        throw Error(std::string("the backend '") + backend::name +
                    "' has no graphs, which Schedule::graphed needs");
    }
}

template <class... Ss, class... Makers>
Pipeline<Stages<Ss...>, Slots<Makers...>>::~Pipeline() {
    waiter_->pipeline = nullptr;
    held_.let_go(false);
    if (failure_.empty()) {
        try {
            const DeviceGuard<backend> device(core_.streams.device());
            with_executor(*this, [&](auto& executor) { executor.flush(core_); });
        } catch (...) {
            // A destructor has nobody to tell; whoever needs to know calls finish().
        }
    }
    core_.drain();
    drop_batches();
}

template <class... Ss, class... Makers>
template <class Self, class Visit>
decltype(auto) Pipeline<Stages<Ss...>, Slots<Makers...>>::with_executor(Self& self, Visit&& visit) {
    if constexpr (has_graphs) {
        if (self.graphs_) [[unlikely]] {
            if constexpr (Shape::all_capturable) {
                if (self.steps_)
                    return visit(*self.steps_);
            }
            return visit(*self.stage_graphs_);
        }
    }
    if (self.runs_ == Schedule::serial)
        return visit(self.serial_);
    detail::OverlappedExecutor<Core> overlapped;
    return visit(overlapped);
}

template <class... Ss, class... Makers>
template <bool MayChange, class Batch>
BatchRead Pipeline<Stages<Ss...>, Slots<Makers...>>::submit_own(const Batch& batch) {
    submit_given(batch, {});
    return BatchRead(waiter_, run_, submitted_ - 1, MayChange && detail::may_change_under_way<Batch>());
}

template <class... Ss, class... Makers>
template <class Batch, Backend B>
void Pipeline<Stages<Ss...>, Slots<Makers...>>::submit_of_source(const SourceBatch<Batch, B>& batch) {
    static_assert(
        std::is_same_v<B, backend>,
        "sluice::Pipeline: the source is another backend's than the stages; give it SourceOptions of "
        "theirs, such as SourceOptions<Host>{}");
    if constexpr (std::is_same_v<B, backend>) {
        if (!batch)
            throw Error(
                "submit: the batch is empty, its source has ended; look at it before it is submitted");
        submit_given(static_cast<const Batch&>(*batch), batch.hold());
    }
}

template <class... Ss, class... Makers>
template <class Batch>
void Pipeline<Stages<Ss...>, Slots<Makers...>>::submit_given(const Batch& batch, const Hold& hold) {
    // Given back at the end, whatever happens: all that reads the batch has told its source by then, or is drained.
    detail::HeldUntilEnd<backend> held{hold};
    const Call call(core_.streams, in_use_, "submit");
    require_sound("submit");
    // An error from outside must not be blamed on a stage; it changes nothing here. A replay calls no stage, and a look at
    // it takes time that a replay would notice.
    if (!graphs_ || !with_executor(*this, [](const auto& executor) { return executor.replays(); })) [[likely]]
        backend::check_launches();
    try {
        throw_known_fault();
        enter();
        held_.let_go(true);
        const SubmitBegin begin = watched_ ? SubmitBegin::now() : SubmitBegin{};
        begun_ = submitted_ + 1;
        with_executor(*this, [&](auto& executor) {
            held.passed_on = executor.keeps_batches();
            if constexpr (requires { executor.takes_types; })
                executor.submit(core_, submitted_, batch, hold);
            else
                executor.submit(core_, submitted_, detail::GivenBatch<backend>::template of<Core>(batch),
                                hold);
            if (!hold)
                held_.submitted(core_, executor, submitted_, batch);
            else
                held_.hold(core_, executor);
        });
        ++submitted_;
        if (watched_) [[unlikely]]
            look_at_submit(begin);
    } catch (...) {
        if (failure_.empty())
            fail();
        throw;
    }
}

template <class... Ss, class... Makers>
void Pipeline<Stages<Ss...>, Slots<Makers...>>::await_stage(std::size_t stage, std::size_t number) {
    held_.let_go(true);
    with_executor(*this, [&](auto& executor) {
        executor.await_stage(core_, stage, number);
        held_.hold(core_, executor);
    });
}

// Waits until all stages that take the batch have read it.
template <class... Ss, class... Makers>
void Pipeline<Stages<Ss...>, Slots<Makers...>>::await_batch(std::size_t number) {
    const Call call(core_.streams, in_use_, "BatchRead::wait");
    if (!failure_.empty()) {
        throw_unreported();
        return; // Nothing is under way then.
    }
    try {
        for (std::size_t stage = 0; stage < stage_count; ++stage) {
            if (Shape::bindings.reads_batch[stage])
                await_stage(stage, number);
        }
        throw_known_fault();
    } catch (...) {
        if (failure_.empty())
            fail();
        throw;
    }
}

template <class... Ss, class... Makers>
template <class Out>
const Out& Pipeline<Stages<Ss...>, Slots<Makers...>>::await_result(std::size_t number) {
    const Call call(core_.streams, in_use_, "run");
    require_sound("run");
    try {
        await_stage(stage_count - 1, number);
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
    const Call call(core_.streams, in_use_, "wait_for");
    require_sound("wait_for");
    core_.streams.require_own_device(stream, "wait_for: the stream");
    held_.note_other_work();
    core_.streams.join(stream);
}

template <class... Ss, class... Makers>
void Pipeline<Stages<Ss...>, Slots<Makers...>>::flush() {
    const Call call(core_.streams, in_use_, "flush");
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
    const Call call(core_.streams, in_use_, "flush");
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
    const Call call(core_.streams, in_use_, "finish");
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
    // Streams first: the driver looks for their end without a pause, where a thread that sleeps is woken late. What waits for a
    // CPU stage in a stream comes through there.
    std::exception_ptr first; // Whole, with what is nested in it.
    core_.streams.for_each([&](BasicStreamRef<backend> stream) {
        try {
            stream.sync();
        } catch (...) {
            if (first == nullptr)
                first = std::current_exception();
        }
    });
    core_.cpu_stages.drain();
    if (first != nullptr)
        std::rethrow_exception(first);
}

template <class... Ss, class... Makers>
void Pipeline<Stages<Ss...>, Slots<Makers...>>::reset() {
    const Call call(core_.streams, in_use_, "reset");
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
    if (tuning_)
        tuner_->interrupted();
    begun_ = 0;
    submitted_ = 0;
    ++run_;
    failure_.clear();
    waiter_->unreported = nullptr;
}

template <class... Ss, class... Makers>
void Pipeline<Stages<Ss...>, Slots<Makers...>>::enter() {
    if (inside_) [[likely]]
        return;
    core_.streams.wait_for_external();
    inside_ = true;
}

template <class... Ss, class... Makers>
void Pipeline<Stages<Ss...>, Slots<Makers...>>::leave() {
    throw_known_fault();
    if (!inside_)
        return;
    held_.let_go(true);
    with_executor(*this, [&](auto& executor) { executor.flush(core_); });
    core_.streams.release_to_external();
    inside_ = false;
    if (tuning_)
        tuner_->interrupted();
}

template <class... Ss, class... Makers>
void Pipeline<Stages<Ss...>, Slots<Makers...>>::drop_batches() noexcept {
    held_.drop();
    with_executor(*this, [](auto& executor) { executor.reset(); });
}

template <class... Ss, class... Makers>
template <class Source>
Results<Pipeline<Stages<Ss...>, Slots<Makers...>>, Source,
        typename Pipeline<Stages<Ss...>, Slots<Makers...>>::result_type>
Pipeline<Stages<Ss...>, Slots<Makers...>>::run(Source& source) {
    static_assert(Shape::has_result,
                  "sluice::Pipeline::run: the last stage makes nothing; give it an output, with a slot "
                  "maker, that the loop reads");
    return Results<Pipeline, Source, result_type>(*this, source);
}

} // namespace sluice
