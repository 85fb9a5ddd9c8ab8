/// \file
/// A source's slots with the batches in them, and how its `fill` is called for them.
#pragma once

#include <cstddef>
#include <type_traits>
#include <vector>

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

/// A call of a source's `fill` on this thread.
struct FillInProgress {
    const void* source;
    FillInProgress* outer; // One source's `fill` may take batches of another source.
    bool stop = false;     // Whether it has called `stop`.

    explicit FillInProgress(const void* of) noexcept : source(of), outer(innermost()) { innermost() = this; }
    FillInProgress(const FillInProgress&) = delete;
    FillInProgress& operator=(const FillInProgress&) = delete;
    ~FillInProgress() { innermost() = outer; }

    static FillInProgress*& innermost() noexcept {
        thread_local FillInProgress* current = nullptr;
        return current;
    }
    /// That of `source`; null where there is none.
    static FillInProgress* of(const void* source) noexcept {
        FillInProgress* fill = innermost();
        while (fill != nullptr && fill->source != source)
            fill = fill->outer;
        return fill;
    }
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

private:
    template <class Make>
    static Value make_value(Make& make, int number, SourceSlot<B>* slot) {
        if constexpr (HoldableBatch<Batch>)
            return Value(make(number), slot);
        else
            return make(number);
    }
};

/// The slots of a source of `Batch`.
template <class Batch, Backend B>
class SourcePlaces final : public SourceLedger<B> {
public:
    using SourceLedger<B>::SourceLedger;

    template <class Make>
    void make(Make& make_slot, int number) {
        places_.push_back(SourceChecks<B>::make(make_slot, number, [&](auto& maker) {
            return make_owned<SourcePlace<Batch, B>>(maker, number, this->device);
        }));
        this->add(*places_.back());
    }

private:
    ~SourcePlaces() override {
        this->await_all_reads();
        for (const auto& place : places_)
            SourceChecks<B>::gone(place->batch(), static_cast<SourceSlot<B>*>(place.get()));
    }

    std::vector<Owned<SourcePlace<Batch, B>>> places_;
};

} // namespace sluice::detail
