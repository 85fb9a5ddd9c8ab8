/// \file
/// A source's slots with the batches in them.
#pragma once

#include <cstddef>
#include <vector>

#include <sluice/backend/detail/owned.hpp>
#include <sluice/pipeline/detail/checked/source_checks.hpp>
#include <sluice/pipeline/detail/source_slots.hpp>
#include <sluice/pipeline/source.hpp>

namespace sluice::detail {

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
