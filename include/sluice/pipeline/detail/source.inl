// Bodies of source.hpp.
#pragma once

#include <sluice/pipeline/detail/source_places.hpp>

namespace sluice {

namespace detail {

/// What a pipeline does with `*batch` of a source's batch.
struct HeldBatchAccess {
    /// A hold of it. Throws `Error` when it has been given back.
    template <class Batch, Backend B>
    static SourceHold<B> hold(const HeldBatch<Batch, B>& batch) {
        return batch.sluice_source_hold();
    }
};

/// What a pipeline submits of a source's batch. Throws `Error` where there is none.
template <class Batch, Backend B>
const Batch& require_source_batch(const SourceBatch<Batch, B>& batch) {
    if (!batch)
        throw Error("submit: the batch is empty, its source has ended; look at it before it is submitted");
    return *batch;
}

} // namespace detail

template <class Batch, class State, class Fill, Backend B>
template <class MakeSlot, class MakeState>
Source<Batch, State, Fill, B>::Source(MakeSlot make_slot, MakeState make_state, Fill fill,
                                      SourceOptions<B> options)
    : fill_(std::move(fill)), core_(options, this, &fill_slot, &Place::remove) {
    constexpr bool answers = check_fill();
    (void)answers;
    detail::require_callable("source: make_slot", make_slot);
    detail::require_callable("source: make_state", make_state);
    detail::require_callable("source: fill", fill_);
    states_.reserve(static_cast<std::size_t>(detail::states_of(options)));
    core_.make([&](int number) { Place::add(core_.ledger(), make_slot, number); },
               [&](int number) { states_.push_back(make_state(number)); });
}

template <class Batch, class State, class Fill, Backend B>
constexpr bool Source<Batch, State, Fill, B>::check_fill() {
    using Called = detail::FillCall<State, Fill, Batch>;
    constexpr bool fits = requires { typename Called::type; };
    static_assert(fits, "sluice::Source: fill must be callable as fill(std::size_t index, Batch& out), or, "
                        "with make_state, as fill(state, index, out)");
    if constexpr (fits) {
        using Result = typename Called::type;
        constexpr bool answers = std::is_void_v<Result> || std::same_as<std::remove_cvref_t<Result>, bool>;
        static_assert(answers, "sluice::Source: fill must return nothing, or bool, of which false ends the "
                               "source before that batch");
        return answers;
    } else {
        return false;
    }
}

// Whether there is a batch, and in the slot.
template <class Batch, class State, class Fill, Backend B>
bool Source<Batch, State, Fill, B>::fill_slot(void* source, std::size_t worker, Slot& slot) {
    if constexpr (check_fill()) {
        Source& self = *static_cast<Source*>(source);
        using Call = detail::FillCall<State, Fill, Batch>;
        Batch& out = static_cast<Place&>(slot).batch();
        [[maybe_unused]] const typename detail::SourceChecks<B>::Filling filling(
            out, !std::exchange(slot.was_filled, true), self.core_.options().keeps_slots);
        const auto fill = [&](auto&... rest) -> decltype(auto) {
            if constexpr (std::same_as<State, NoState>)
                return self.fill_(rest...);
            else
                return self.fill_(self.states_[worker], rest...);
        };
        const auto fill_or_stop = [&]() -> decltype(auto) {
            std::size_t index = slot.index;
            if constexpr (Call::takes_stop) {
                FillStop stop = self.core_.fill_stop();
                return fill(index, out, stop);
            } else {
                return fill(index, out);
            }
        };
        if constexpr (std::is_void_v<typename Call::type>)
            return fill_or_stop(), true;
        else
            return fill_or_stop();
    } else {
        return false;
    }
}

} // namespace sluice

#if SLUICE_HAS_COMMON_BODIES
namespace sluice {

SLUICE_BODY void detail::throw_no_batch() {
    throw Error("source: an empty SourceBatch was used as a batch; the source has ended, or it was moved "
                "from: look with `if (batch)` first");
}

} // namespace sluice
#endif
