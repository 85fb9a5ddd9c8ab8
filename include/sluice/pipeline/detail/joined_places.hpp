/// \file
/// Places of batches that are made of two sources' batches.
#pragma once

#include <cstddef>
#include <new>
#include <utility>
#include <vector>

#include <sluice/backend/detail/owned.hpp>
#include <sluice/pipeline/detail/source_slots.hpp>
#include <sluice/pipeline/source.hpp>

namespace sluice::detail {

/// What a zip looks at in the sources' handles, and makes its own of.
struct JoinAccess {
    template <class Batch, Backend B>
    static SourceSlot<B>* slot_of(const SourceBatch<Batch, B>& batch) noexcept {
        return batch.slot_;
    }
    template <class Batch, Backend B>
    static SourceBatch<Batch, B> handle(const typename SourceBatch<Batch, B>::value_type& value,
                                        SourceSlot<B>& slot) noexcept {
        return SourceBatch<Batch, B>(value, slot);
    }
};

/// A slot that is read as its parts are, with the batch that is made of these.
template <class Batch, Backend B>
class JoinedPlace : public SourceSlot<B> {
public:
    using Value = typename SourceBatch<Batch, B>::value_type;

    JoinedPlace() : none_{} {}
    JoinedPlace(const JoinedPlace&) = delete;
    JoinedPlace& operator=(const JoinedPlace&) = delete;
    ~JoinedPlace() { clear(); }

    /// Nothing reads the former one.
    template <class Make>
    const Value& make(Make&& make) {
        clear();
        if constexpr (HoldableBatch<Batch>)
            ::new (static_cast<void*>(&value_)) Value(make(), this);
        else
            ::new (static_cast<void*>(&value_)) Value(make());
        has_value_ = true;
        return value_;
    }

private:
    void clear() noexcept {
        if (has_value_)
            value_.~Value();
        has_value_ = false;
    }
    union {
        char none_;
        Value value_;
    };
    bool has_value_ = false;
};

/// A place for each slot of the first source. So work that was captured with a place finds the same slot in it, and the place is
/// free, and unread, whenever that slot has been filled again.
template <class Batch, Backend B>
class JoinedPlaces final : public SourceLedger<B> {
public:
    JoinedPlaces(std::size_t count, std::size_t most) : SourceLedger<B>(B::current_device(), false, false) {
        for (std::size_t i = 0; i < count; ++i) {
            places_.push_back(make_owned<JoinedPlace<Batch, B>>());
            this->add(*places_.back());
        }
        this->most_held = most;
    }

    /// A handle to what `combine` makes of both batches, in the first one's stead. The second one stays the caller's.
    template <class First, class Second, class Combine>
    SourceBatch<Batch, B> hand_out_both(SourceBatch<First, B>& first, const SourceBatch<Second, B>& second,
                                        bool is_shared, Combine& combine) {
        SourceSlot<B>* const parts[] = {JoinAccess::slot_of(first), JoinAccess::slot_of(second)};
        JoinedPlace<Batch, B>& place = *places_[parts[0]->ordinal];
        const auto& value = place.make([&]() -> Batch {
            return combine(static_cast<const First&>(*first), static_cast<const Second&>(*second));
        });
        for (std::size_t i = 0; i < 2; ++i) {
            parts[i]->ledger->hold(*parts[i], false);
            place.parts[i] = parts[i];
        }
        std::size_t sure = parts[0]->ledger->sure();
        if (!is_shared && parts[1]->ledger->sure() < sure)
            sure = parts[1]->ledger->sure();
        {
            const SourceGuard lock(this->mutex);
            (void)this->hand_out_free(place.ordinal);
            this->ready.store(sure);
        }
        first.reset();
        return JoinAccess::handle<Batch, B>(value, place);
    }

    /// Numbers begin with 0.
    void start_over() {
        const SourceGuard lock(this->mutex);
        this->claimed = 0;
        this->ready.store(0);
    }

private:
    ~JoinedPlaces() override = default;

    std::vector<Owned<JoinedPlace<Batch, B>>> places_;
};

} // namespace sluice::detail
