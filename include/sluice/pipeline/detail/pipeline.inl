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
void Pipeline<Stages<Ss...>, Slots<Makers...>>::submit_and(const Batch& batch, AfterFirst&& after_first) {
    const Call call(*this, "submit");
    require_sound("submit");
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
        fail(nullptr);
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
        fail(nullptr);
    }
}

template <class... Ss, class... Makers>
void Pipeline<Stages<Ss...>, Slots<Makers...>>::finish() {
    const Call call(*this, "finish");
    require_sound("finish");
    try {
        leave();
        streams_.synchronize();
    } catch (...) {
        fail(nullptr);
    }
}

template <class... Ss, class... Makers>
void Pipeline<Stages<Ss...>, Slots<Makers...>>::reset() {
    const Call call(*this, "reset");
    streams_.drain();
    streams_.clear_failures();
    try {
        streams_.synchronize();
    } catch (const Error& error) {
        std::throw_with_nested(
            Error(std::string("reset: the device is lost, and only a new process helps: ") + error.what()));
    }
    std::apply([](auto&... ring) { (ring.reset(), ...); }, rings_);
    inside_ = false;
    submitted_ = 0;
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
        const Error placed = stage == nullptr ? error : error.in_stage(*stage, submitted_);
        failure_ = placed.what();
        std::throw_with_nested(placed);
    } catch (const std::exception& exception) {
        explanation = exception.what();
    } catch (...) {
    }
    const Error error("its callable threw: " + explanation);
    const Error placed = stage == nullptr ? error : error.in_stage(*stage, submitted_);
    failure_ = placed.what();
    std::throw_with_nested(placed);
}

} // namespace sluice
