// Bodies of pipeline.hpp.
#pragma once

namespace sluice {

template <class... Ss, class... Makers>
Pipeline<Stages<Ss...>, Slots<Makers...>>::Pipeline(Stages<Ss...> stages, Slots<Makers...> makers,
                                                    PipelineOptions options)
    : options_(options), stages_(std::move(stages.all)), rings_(Rings::make(makers.all, options_)),
      streams_(options.schedule) {
    // A callable that does not fit is refused here; only the first one's must wait until a batch's type is
    // known.
    [[maybe_unused]] constexpr bool fit = []<std::size_t... Is>(std::index_sequence<Is...>) {
        return (fits<Is + 1>() && ...);
    }
    (std::make_index_sequence<stage_count - 1>{});
    std::apply([this](auto&... stage) { (streams_.add(stage.name(), stage.options()), ...); }, stages_);
    if (options.schedule != Schedule::graphed)
        return;
    if constexpr (!GraphBackend<backend>) {
        throw Error(std::string("the backend '") + backend::name +
                    "' has no graphs, which Schedule::graphed needs");
    }
    graphs_.prepare(options.graphs);
    std::size_t index = 0;
    std::apply(
        [&](auto&... stage) {
            ((graphs_.add(index, streams_[index], stage.options().graphed), ++index), ...);
        },
        stages_);
    if (graphs_.any_uncaptured() && !lags()) {
        throw Error("a graphed pipeline of which a stage opts out of the graph needs at least 2 slots "
                    "between stages, "
                    "got 1");
    }
}

template <class... Ss, class... Makers>
Pipeline<Stages<Ss...>, Slots<Makers...>>::~Pipeline() {
    if (filled_ > 0 && failure_.empty()) {
        try {
            const DeviceGuard<backend> device(streams_.device());
            drain_steps();
        } catch (...) {
            // A destructor has nobody to tell; whoever needs to know calls finish().
        }
    }
    streams_.drain();
}

template <class... Ss, class... Makers>
template <std::size_t Index, class... Batch>
constexpr bool Pipeline<Stages<Ss...>, Slots<Makers...>>::fits() {
    using F = typename std::tuple_element_t<Index, StageTuple>::Callable;
    using Ref = BasicStreamRef<backend>;
    if constexpr (stage_count == 1) {
        return detail::check_fit<Index, stage_count, F, Ref, const Batch&...>();
    } else if constexpr (Index == 0) {
        return detail::check_fit<Index, stage_count, F, Ref, const Batch&..., SlotOf<Index>&>();
    } else if constexpr (Index + 1 == stage_count) {
        return detail::check_fit<Index, stage_count, F, Ref, SlotOf<Index - 1>&>();
    } else {
        return detail::check_fit<Index, stage_count, F, Ref, SlotOf<Index - 1>&, SlotOf<Index>&>();
    }
}

template <class... Ss, class... Makers>
template <class Batch, class AfterFirst>
void Pipeline<Stages<Ss...>, Slots<Makers...>>::submit_and(const Batch& batch, const detail::BatchKey& key,
                                                           AfterFirst&& after_first) {
    const Call call(*this, "submit");
    require_sound("submit");
    if (options_.schedule == Schedule::graphed) {
        try {
            streams_.throw_if_failed();
            enter();
            ++filled_;
            step(submitted_, &batch, key);
            after_first();
        } catch (...) {
            fail(std::exchange(current_stage_, nullptr));
        }
        ++submitted_;
        return;
    }
    backend::check_launches(); // An error from outside must not be blamed on a stage; it changes nothing
                               // here.
    try {
        streams_.throw_if_failed();
        enter();
        [&]<std::size_t... Is>(std::index_sequence<Is...>) { (run_stage<Is>(batch, after_first), ...); }
        (std::make_index_sequence<stage_count>{});
    } catch (...) {
        fail(std::exchange(current_stage_, nullptr));
    }
    ++submitted_;
}

template <class... Ss, class... Makers>
template <std::size_t Index, class Batch, class AfterFirst>
void Pipeline<Stages<Ss...>, Slots<Makers...>>::run_stage(const Batch& batch, AfterFirst& after_first) {
    constexpr bool first = Index == 0;
    constexpr bool last = Index + 1 == stage_count;

    auto& stage = std::get<Index>(stages_);
    const BasicStreamRef<backend> stream = streams_[Index];
    const detail::Range range(stage.name().c_str());
    current_stage_ = &stage.name();
    current_batch_ = submitted_;

    if constexpr (first && last) {
        if constexpr (fits<Index, Batch>())
            stage.callable()(stream, batch);
    } else if constexpr (first) {
        auto& out = std::get<Index>(rings_).begin_write(stream);
        if constexpr (fits<Index, Batch>())
            stage.callable()(stream, batch, out);
    } else if constexpr (last) {
        auto& in = std::get<Index - 1>(rings_).begin_read(stream);
        if constexpr (fits<Index>())
            stage.callable()(stream, in);
    } else {
        auto& out = std::get<Index>(rings_).begin_write(stream);
        auto& in = std::get<Index - 1>(rings_).begin_read(stream);
        if constexpr (fits<Index>())
            stage.callable()(stream, in, out);
    }

    backend::check_launches();
    if constexpr (first) {
        after_first();
    } else {
        std::get<Index - 1>(rings_).end_read(stream);
    }
    if constexpr (!last)
        std::get<Index>(rings_).end_write(stream);
    if (options_.attribute_faults)
        stream.synchronize();
    current_stage_ = nullptr;
}

// Calls stage `Index` for batch `number`, whose slots are known by it.
template <class... Ss, class... Makers>
template <std::size_t Index, class Batch>
void Pipeline<Stages<Ss...>, Slots<Makers...>>::call_stage(BasicStreamRef<backend> stream, std::size_t number,
                                                           [[maybe_unused]] const Batch* batch) {
    constexpr bool first = Index == 0;
    constexpr bool last = Index + 1 == stage_count;
    auto& stage = std::get<Index>(stages_);
    const detail::Range range(stage.name().c_str());
    current_stage_ = &stage.name();
    current_batch_ = number;
    [[maybe_unused]] const int slot = static_cast<int>(number % static_cast<std::size_t>(options_.slots));

    // Without a batch (Batch is void) only later stages are left.
    if constexpr (first && std::is_void_v<Batch>) {
    } else if constexpr (first && last) {
        if constexpr (fits<Index, Batch>())
            stage.callable()(stream, *batch);
    } else if constexpr (first) {
        if constexpr (fits<Index, Batch>())
            stage.callable()(stream, *batch, std::get<Index>(rings_)[slot]);
    } else if constexpr (last) {
        if constexpr (fits<Index>())
            stage.callable()(stream, std::get<Index - 1>(rings_)[slot]);
    } else {
        if constexpr (fits<Index>())
            stage.callable()(stream, std::get<Index - 1>(rings_)[slot], std::get<Index>(rings_)[slot]);
    }
    backend::check_launches();
    if (options_.attribute_faults)
        stream.synchronize();
    current_stage_ = nullptr;
}

template <class... Ss, class... Makers>
template <class Batch>
void Pipeline<Stages<Ss...>, Slots<Makers...>>::step(std::size_t number, const Batch* batch,
                                                     const detail::BatchKey& key) {
    graphs_.begin_step();
    if (graphs_.origin()) {
        const auto work = [&](BasicStreamRef<backend> origin) { run_forked(origin, number, batch); };
        const bool keyed = key.type != nullptr || !graphs_.captured(0);
        // While it fills or drains, a step is not like the others.
        const bool whole = batch != nullptr && is_active(stage_count - 1, number);
        if (whole && keyed && !options_.attribute_faults) {
            graphs_.run(detail::StepKey(number % static_cast<std::size_t>(options_.slots),
                                        graphs_.captured(0) ? key : detail::BatchKey{}),
                        work);
            current_stage_ = nullptr; // A refused capture may have ended within a stage.
        } else {
            if (!keyed && whole)
                graphs_.refuse(
                    "capture refused: batches are told apart by their value, and this type is not trivially "
                    "copyable or longer than 256 bytes; submit batches of a Source, spans or pointers");
            backend::check_launches();
            work(*graphs_.origin());
        }
        graphs_.end_captured();
    }
    if (graphs_.any_uncaptured())
        run_uncaptured(number, batch);
}

// The captured stages, forked from `origin` and joined to it again.
template <class... Ss, class... Makers>
template <class Batch>
void Pipeline<Stages<Ss...>, Slots<Makers...>>::run_forked(BasicStreamRef<backend> origin, std::size_t number,
                                                           const Batch* batch) {
    const bool forks = lags();
    if (forks)
        graphs_.fork(origin);
    [&]<std::size_t... Is>(std::index_sequence<Is...>) {
        const auto run = [&]<std::size_t Index>(std::integral_constant<std::size_t, Index>) {
            if (graphs_.captured(Index) && is_active(Index, number))
                call_stage<Index>(forks ? streams_[Index] : origin, number - (forks ? Index : 0), batch);
        };
        (run(std::integral_constant<std::size_t, Is>{}), ...);
    }
    (std::make_index_sequence<stage_count>{});
    if (forks)
        graphs_.join(origin);
}

template <class... Ss, class... Makers>
template <class Batch>
void Pipeline<Stages<Ss...>, Slots<Makers...>>::run_uncaptured(std::size_t number, const Batch* batch) {
    [&]<std::size_t... Is>(std::index_sequence<Is...>) {
        const auto run = [&]<std::size_t Index>(std::integral_constant<std::size_t, Index>) {
            if (graphs_.captured(Index))
                return;
            if (is_active(Index, number))
                call_stage<Index>(streams_[Index], number - Index, batch);
            graphs_.end_uncaptured(Index);
        };
        (run(std::integral_constant<std::size_t, Is>{}), ...);
    }
    (std::make_index_sequence<stage_count>{});
}

// Takes the batches that are under way through their last stages.
template <class... Ss, class... Makers>
void Pipeline<Stages<Ss...>, Slots<Makers...>>::drain_steps() {
    if (filled_ == 0)
        return;
    if (lags()) {
        for (std::size_t step_number = drained_ + filled_; step_number + 1 < drained_ + filled_ + stage_count;
             ++step_number) {
            step<void>(step_number, nullptr, {});
        }
    }
    drained_ += filled_;
    filled_ = 0;
}

template <class... Ss, class... Makers>
void Pipeline<Stages<Ss...>, Slots<Makers...>>::join(BasicStreamRef<backend> stream) {
    const Call call(*this, "join");
    require_sound("join");
    streams_.require_own_device(stream, "join: the stream");
    streams_.join(stream);
}

template <class... Ss, class... Makers>
void Pipeline<Stages<Ss...>, Slots<Makers...>>::flush() {
    const Call call(*this, "flush");
    require_sound("flush");
    try {
        leave();
    } catch (...) {
        fail(std::exchange(current_stage_, nullptr));
    }
}

template <class... Ss, class... Makers>
void Pipeline<Stages<Ss...>, Slots<Makers...>>::flush(BasicStreamRef<backend> stream) {
    const Call call(*this, "flush");
    require_sound("flush");
    streams_.require_own_device(stream, "flush: the stream");
    try {
        leave();
        streams_.release_to(stream);
    } catch (...) {
        fail(std::exchange(current_stage_, nullptr));
    }
}

template <class... Ss, class... Makers>
void Pipeline<Stages<Ss...>, Slots<Makers...>>::finish() {
    const Call call(*this, "finish");
    require_sound("finish");
    try {
        leave();
        streams_.synchronize();
        graphs_.finish();
    } catch (...) {
        fail(std::exchange(current_stage_, nullptr));
    }
}

template <class... Ss, class... Makers>
void Pipeline<Stages<Ss...>, Slots<Makers...>>::reset() {
    const Call call(*this, "reset");
    streams_.drain();
    (void)detail::thrown_text([this] { graphs_.finish(); });
    streams_.clear_failures();
    graphs_.clear_failure();
    try {
        streams_.synchronize();
    } catch (const Error& error) {
        std::throw_with_nested(
            Error(std::string("reset: the device is lost, and only a new process helps: ") + error.what()));
    }
    std::apply([](auto&... ring) { (ring.reset(), ...); }, rings_);
    inside_ = false;
    submitted_ = drained_ = filled_ = 0;
    failure_.clear();
}

template <class... Ss, class... Makers>
void Pipeline<Stages<Ss...>, Slots<Makers...>>::require_sound(const char* call) const {
    if (failure_.empty())
        return;
    throw Error(std::string(call) +
                ": the pipeline has failed before and needs a reset() first; the failure was: " + failure_);
}

template <class... Ss, class... Makers>
void Pipeline<Stages<Ss...>, Slots<Makers...>>::enter() {
    if (inside_)
        return;
    streams_.join_lent();
    inside_ = true;
}

template <class... Ss, class... Makers>
void Pipeline<Stages<Ss...>, Slots<Makers...>>::leave() {
    streams_.throw_if_failed();
    if (!inside_)
        return;
    drain_steps();
    streams_.release_to_lent();
    inside_ = false;
}

// Called from within a handler: drains, notes the failure, and throws it with its stage and batch.
template <class... Ss, class... Makers>
void Pipeline<Stages<Ss...>, Slots<Makers...>>::fail(const std::string* stage) {
    streams_.drain();
    std::string explanation = "an exception of an unknown type";
    try {
        throw;
    } catch (const Error& error) {
        const Error placed = stage == nullptr ? error : error.in_stage(*stage, current_batch_);
        failure_ = placed.what();
        std::throw_with_nested(placed);
    } catch (const std::exception& exception) {
        explanation = exception.what();
    } catch (...) {
    }
    const Error error("its callable threw: " + explanation);
    const Error placed = stage == nullptr ? error : error.in_stage(*stage, current_batch_);
    failure_ = placed.what();
    std::throw_with_nested(placed);
}

} // namespace sluice
