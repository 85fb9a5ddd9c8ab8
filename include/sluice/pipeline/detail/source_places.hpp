// A source's slots with the batches in them, and how its `fill` can be called for them.
#pragma once

#include <cstddef>
#include <type_traits>

#include <sluice/backend/detail/owned.hpp>
#include <sluice/pipeline/detail/checked/source_checks.hpp>
#include <sluice/pipeline/detail/source_slots.hpp>
#include <sluice/pipeline/source.hpp>
#include <sluice/pipeline/source_ends.hpp>

namespace sluice::detail {

/// What a source's `fill` returns; without `type` where it cannot be called.
template <class State, class Fill, class Batch, class... Stop>
struct FillResult : std::invoke_result<Fill&, State&, std::size_t, Batch&, Stop...> {};
template <class Fill, class Batch, class... Stop>
struct FillResult<NoState, Fill, Batch, Stop...> : std::invoke_result<Fill&, std::size_t, Batch&, Stop...> {};
/// The same, called in the way that fits.
template <class State, class Fill, class Batch>
struct FillCall : FillResult<State, Fill, Batch, FillStop> {
    static constexpr bool takes_stop = true;
};
template <class State, class Fill, class Batch>
requires requires { typename FillResult<State, Fill, Batch>::type; }
struct FillCall<State, Fill, Batch> : FillResult<State, Fill, Batch> {
    static constexpr bool takes_stop = false;
};

/// A slot with its batch in it.
template <class Batch, Backend B>
struct SourcePlace : SourceSlot<B> {
    using Value = typename SourceBatch<Batch, B>::value_type;
    template <class Make>
    SourcePlace(Make& make, int number, int device)
        : SourceSlot<B>(device), value(make_value(make, number, this)) {}
    Value value;
    Batch& batch() noexcept { return value; }

    /// Makes one for `ledger`. Throws what `make_slot` throws.
    template <class Make>
    static void add(SourceLedger<B>& ledger, Make& make_slot, int number) {
        auto place = SourceChecks<B>::make(make_slot, number, [&](auto& maker) {
            return make_owned<SourcePlace>(maker, number, ledger.device);
        });
        ledger.add(*place);
        (void)place.give();
    }
    /// Ends one.
    static void remove(SourceSlot<B>* slot) {
        const Owned<SourcePlace> place(static_cast<SourcePlace*>(slot));
        SourceChecks<B>::gone(place->batch(), slot);
    }

private:
    template <class Make>
    static Value make_value(Make& make, int number, SourceSlot<B>* slot) {
        if constexpr (HoldableBatch<Batch>)
            return Value(make(number), slot);
        else
            return make(number);
    }
};

} // namespace sluice::detail
