// Places of batches that are made of two sources' batches.
#pragma once

#include <cstddef>
#include <new>

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
    JoinedPlace& operator=(JoinedPlace&&) = delete;
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
class JoinedPlaces {
    using Place = JoinedPlace<Batch, B>;

public:
    JoinedPlaces(std::size_t count, std::size_t most)
        : ledger_(new SourceLedger<B>(B::current_device(), &delete_place)) {
        for (std::size_t i = 0; i < count; ++i) {
            auto place = make_owned<Place>();
            ledger_->add(*place);
            (void)place.give();
        }
        ledger_->most_held = most;
    }

    /// How many batches can be held at a time, and in how many places they lie.
    std::size_t most_held() const noexcept { return ledger_->most_held; }
    std::size_t size() const noexcept { return ledger_->slots.size(); }

    /// A handle to what `combine` makes of both batches, in the first one's stead. The second one stays the caller's.
    template <class First, class Second, class Combine>
    SourceBatch<Batch, B> hand_out_both(SourceBatch<First, B>& first, const SourceBatch<Second, B>& second,
                                        bool is_shared, Combine& combine) {
        SourceSlot<B>& of_first = *JoinAccess::slot_of(first);
        Place& place = static_cast<Place&>(*ledger_->slots[of_first.ordinal]);
        const auto& value = place.make([&]() -> Batch {
            return combine(static_cast<const First&>(*first), static_cast<const Second&>(*second));
        });
        ledger_->hand_out_joined(place, of_first, *JoinAccess::slot_of(second), is_shared);
        first.reset();
        return JoinAccess::handle<Batch, B>(value, place);
    }

    /// Numbers begin with 0.
    void start_over() {
        const SourceGuard lock(ledger_->mutex);
        ledger_->claimed = 0;
        ledger_->ready.store(0);
    }

private:
    static void delete_place(SourceSlot<B>* slot) { delete static_cast<Place*>(slot); }

    SourceLedgerOwner<B> ledger_;
};

} // namespace sluice::detail
