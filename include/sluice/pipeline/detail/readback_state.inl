// Bodies of readback_state.hpp.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include <sluice/backend/detail/checked/object_checks.hpp>
#include <sluice/backend/detail/clock.hpp>
#include <sluice/backend/detail/memory_pieces.hpp>
#include <sluice/backend/device.hpp>
#include <sluice/backend/error.hpp>
#include <sluice/graph/detail/not_capturable.hpp>
#include <sluice/graph/detail/replay_hooks.hpp>
#include <sluice/memory/copy.hpp>
#include <sluice/pipeline/detail/readback_places.hpp>
#include <sluice/pipeline/detail/readback_state.hpp>
#include <sluice/pipeline/stage_time.hpp>

namespace sluice::detail {

template <Backend B>
struct ReadbackState<B>::Slot {
    explicit Slot(ReadbackPlace of) : place(of), arrived(EventOptions{.sleep_while_waiting = true}) {}
    ReadbackPlace place;
    DeviceEvent<B> arrived;
    bool busy = false; // From the push until the handler has returned.
};

// A result on its way: a slot's, or a graph's.
template <Backend B>
struct ReadbackState<B>::Entry {
    Slot* slot = nullptr;
    Shared<Replayed> replayed;
    std::size_t launch = 0; // of the graph
    ReadbackPlace place{};
    std::size_t size = 0;
    bool counted = false; // as in a graph's
};

/// Kept by the graph. Knows the readback as long as it is there.
template <Backend B>
class ReadbackState<B>::Hook final : public ReplayHook<B> {
public:
    Hook(Watched<ReadbackState> state, Shared<Places> places)
        : state_(std::move(state)), replayed_(make_shared_value<Replayed>(std::move(places))) {}

    void before_replay(ReplayExec<B>) override {
        if (const auto state = state_.lock(); state != nullptr) {
            state->make_room(*replayed_);
            replayed_->prepare();
        } // Otherwise nothing takes results, and copies may be under way that have not been counted.
    }
    void after_replay(BasicStreamRef<B> stream) override {
        std::size_t launch = 0;
        or_synced(stream, [&] { launch = replayed_->launched(stream); });
        if (const auto state = state_.lock(); state != nullptr)
            state->append(replayed_, launch);
    }
    void append_own_memory(std::vector<const void*>& addresses) const override {
        for (const auto& result : replayed_->results) {
            const auto place = replayed_->pool->place(result.row, 0);
            addresses.insert(addresses.end(), {result.row, place.values, place.length});
        }
    }
    Replayed& replayed() noexcept { return *replayed_; }

private:
    Watched<ReadbackState> state_;
    Shared<Replayed> replayed_;
};

template <Backend B>
Shared<ReadbackState<B>> ReadbackState<B>::make(std::size_t count, std::size_t value_bytes,
                                                Owned<AnyHandler> handler, int slots) {
    auto made = make_shared_value<ReadbackState>(count, value_bytes, std::move(handler), slots);
    made->self_ = made; // by which hooks refer to it
    return made;
}

template <Backend B>
ReadbackState<B>::ReadbackState(std::size_t count, std::size_t value_bytes, Owned<AnyHandler> handler,
                                int slots)
    : count_(count), value_bytes_(value_bytes), handler_(std::move(handler)), device_(B::current_device()) {
    require_within("readback: the number of slots", slots, 1, most_of_option);
    if (count > ~std::size_t{0} / (4 * most_of_option) / value_bytes) {
        throw Error("a readback of " + detail::counted(count, "value") + " of " +
                    detail::counted(value_bytes, "byte") + " each is larger than any memory");
    }
    const auto eager = static_cast<std::size_t>(slots);
    places_ = make_shared_value<Places>(count * value_bytes, eager);
    const std::size_t depth = places_->depth();
    // Rows for the pushes of captures to come: many where they are small.
    const std::size_t many = 262144 / places_->row_bytes() < 1024 ? 262144 / places_->row_bytes() : 1024;
    const std::size_t few = depth > 1 ? 16 : eager;
    spare_ = few < many ? many : few;
    places_->add((eager + depth - 1) / depth + spare_);
    slots_.reserve(eager);
    typename Places::Row row = nullptr;
    for (std::size_t slot = 0; slot < eager; ++slot) {
        row = slot % depth == 0 ? places_->take() : row;
        slots_.push_back(make_owned<Slot>(places_->place(row, slot)));
    }
    entries_.resize(eager);
}

template <Backend B>
ReadbackState<B>::~ReadbackState() = default;

template <Backend B>
void ReadbackState<B>::push(BasicStreamRef<B> stream, const void* values, std::size_t size,
                            const DeviceSpan<const std::int64_t, B>* length) {
    if (size > count_) {
        throw Error("readback: " + detail::counted_were(size, "value") + " pushed; this one takes " +
                    std::to_string(count_) + " at most");
    }
    if (length != nullptr && length->size() != 1) {
        throw Error("readback: " + std::to_string(length->size()) +
                    " lengths were pushed with a result; expected 1");
    }
    require_memory("readback", "the values", {values, size, value_bytes_});
    if (length != nullptr)
        require_memory("readback", "the length", piece_of_span(*length));
    if (records(stream)) {
        push_captured(stream, values, size, length);
        return;
    }
    if (!handing_)
        poll();
    Slot& slot = free_slot();
    if (places_->free() < spare_) {
        const DeviceGuard<B> device(device_);
        places_->add(spare_);
    }
    or_synced(stream, [&] {
        bool copied = false;
        if constexpr (requires(RingCopy one) { B::copy_to_place(stream.get(), one); }) {
            const std::int64_t* const number = length != nullptr ? length->data() : nullptr;
            copied = B::copy_to_place(stream.get(),
                                      Places::copy_to(slot.place, values, size * value_bytes_, number));
        }
        if (!copied)
            copy_to_place(stream, slot.place, values, size, length);
        slot.arrived.record(stream);
    });
    slot.busy = true;
    append(Entry{&slot, nullptr, 0, slot.place, size, length != nullptr});
}

template <Backend B>
void ReadbackState<B>::push_captured(BasicStreamRef<B> stream, const void* values, std::size_t size,
                                     const DeviceSpan<const std::int64_t, B>* length) {
    ReplayHooks<B>* const hooks = replay_hooks<B>();
    if (hooks == nullptr) {
        throw NotCapturable("readback: a push was being captured where replays are not reported, in a "
                            "plain capture or in the body of a branch or a loop; push outside of those, "
                            "in a pipeline from a stage that opts out (StageOptions::graphed)");
    }
    if (places_->free() == 0) {
        throw NotCapturable(
            "readback: no pinned memory is left for a captured push, and none can be allocated during a "
            "capture; give the readback as many slots as one capture has pushes");
    }
    Shared<Hook> hook = latest_.lock();
    bool known = false; // Whether that was this capture.
    for (const auto& other : *hooks)
        known = known || (hook != nullptr && other.get() == hook.get());
    if (!known) {
        hook = make_shared_value<Hook>(self_, places_);
        hooks->push_back(hook);
        latest_ = hook;
    }
    Replayed& replayed = hook->replayed();
    reserve_entries(places_->depth());
    const typename Places::Row row = places_->take();
    replayed.add({row, size, length != nullptr});
    if constexpr (requires { B::has_ring_copies(false); }) {
        if (replayed.in_turns()) {
            if (!B::has_ring_copies(false))
                throw NotCapturable("readback: a graph pushes on several devices; push on one of them");
            B::copy_to_ring(stream.get(), places_->copy_to(row, values, size * value_bytes_,
                                                           length != nullptr ? length->data() : nullptr));
            return;
        }
    }
    copy_to_place(stream, places_->place(row, 0), values, size, length);
}

template <Backend B>
void ReadbackState<B>::copy_to_place(BasicStreamRef<B> stream, const ReadbackPlace& place, const void* values,
                                     std::size_t size,
                                     const DeviceSpan<const std::int64_t, B>* length) const {
    const std::size_t bytes = size * value_bytes_;
    copy(stream, PinnedSpan<std::byte, B>(place.values, bytes),
         DeviceSpan<const std::byte, B>(static_cast<const std::byte*>(values), bytes));
    if (length != nullptr)
        copy(stream, PinnedSpan<std::int64_t, B>(place.length, 1), *length);
}

template <Backend B>
void ReadbackState<B>::poll() {
    while (!handing_ && waiting_ > 0 && has_arrived(front()))
        hand_over();
}

template <Backend B>
void ReadbackState<B>::finish() {
    if (handing_)
        throw Error("readback: finish was called from within the handler; call it outside");
    while (waiting_ > 0) {
        await(front());
        hand_over();
    }
}

template <Backend B>
void ReadbackState<B>::reset() noexcept {
    while (waiting_ > 0) {
        Entry entry = pop();
        if (entry.replayed == nullptr)
            entry.slot->arrived.settle();
        else
            entry.replayed->settle(entry.launch);
        release(entry);
    }
    pushed_ = handed_ = 0;
}

template <Backend B>
void ReadbackState<B>::make_room(Replayed& replayed) {
    poll();
    while (!replayed.has_room()) {
        if (handing_) {
            throw Error("readback: a graph was launched from within the handler, while its last results have "
                        "not been handed over; launch it outside");
        }
        await(front());
        hand_over();
    }
}

template <Backend B>
void ReadbackState<B>::append(const Shared<Replayed>& replayed, std::size_t launch) {
    replayed->pending += replayed->results.size();
    for (std::size_t i = 0; i < replayed->results.size(); ++i) {
        const auto& result = replayed->results[i];
        append(Entry{nullptr, replayed, launch, replayed->place(i), result.size, result.counted});
    }
}

template <Backend B>
typename ReadbackState<B>::Entry& ReadbackState<B>::front() noexcept {
    return entries_[first_];
}

template <Backend B>
void ReadbackState<B>::append(Entry entry) noexcept {
    entries_[(first_ + waiting_++) % entries_.size()] = std::move(entry);
    ++pushed_;
}

// Room for so many more results on their way.
template <Backend B>
void ReadbackState<B>::reserve_entries(std::size_t more) {
    List<Entry> larger(entries_.size() + more);
    for (std::size_t i = 0; i < waiting_; ++i)
        larger[i] = std::move(entries_[(first_ + i) % entries_.size()]);
    entries_ = std::move(larger);
    first_ = 0;
}

template <Backend B>
bool ReadbackState<B>::has_arrived(Entry& entry) {
    if (entry.replayed == nullptr)
        return entry.slot->arrived.is_done();
    return entry.replayed->has_arrived(entry.launch);
}

template <Backend B>
void ReadbackState<B>::await(Entry& entry) {
    const std::int64_t begun = steady_nanoseconds();
    if (entry.replayed == nullptr)
        entry.slot->arrived.sync();
    else
        entry.replayed->await(entry.launch);
    waited_for_results() += steady_nanoseconds() - begun;
}

template <Backend B>
void ReadbackState<B>::release(Entry& entry) noexcept {
    if (entry.replayed == nullptr)
        entry.slot->busy = false;
    else
        --entry.replayed->pending;
}

template <Backend B>
typename ReadbackState<B>::Entry ReadbackState<B>::pop() noexcept {
    Entry entry = std::move(front());
    first_ = (first_ + 1) % entries_.size();
    --waiting_;
    return entry;
}

// A slot that is free. Hands over what is older where none is.
template <Backend B>
typename ReadbackState<B>::Slot& ReadbackState<B>::free_slot() {
    for (;;) {
        // They are mostly freed in the order of their pushes: the first one looked at is free, or none is.
        for (std::size_t tried = 0; tried < slots_.size(); ++tried) {
            Slot& slot = *slots_[next_slot_];
            next_slot_ = (next_slot_ + 1) % slots_.size();
            if (!slot.busy)
                return slot;
        }
        if (handing_) {
            throw Error("readback: a push from within the handler found no free slot, since all " +
                        std::to_string(slots_.size()) +
                        " are on their way or being handed over; give the readback more slots");
        }
        await(front());
        hand_over();
    }
}

template <Backend B>
void ReadbackState<B>::hand_over() {
    struct Handing {
        ReadbackState* state;
        Entry entry; // Its place stays in use, whatever the handler does.
        Handing(ReadbackState* of) noexcept : state(of), entry(of->pop()) { state->handing_ = true; }
        Handing& operator=(Handing&&) = delete;
        ~Handing() {
            release(entry);
            state->handing_ = false;
        }
    } const handing(this);
    // Counted first, so that a handler that throws is not called for the same result again.
    const std::size_t index = handed_++;
    const Entry& result = handing.entry;
    std::size_t size = result.size;
    ObjectChecks<B>::result_read(result.place.values, size * value_bytes_,
                                 result.counted ? result.place.length : nullptr);
    if (result.counted) {
        const std::int64_t length = *result.place.length;
        if (length < 0 || static_cast<std::size_t>(length) > size) {
            throw Error("readback: result " + std::to_string(index) + " has a length of " +
                        detail::counted(length, "value") + "; expected 0 to the " + std::to_string(size) +
                        " that were pushed");
        }
        size = static_cast<std::size_t>(length);
    }
    (*handler_)(index, result.place.values, size);
}

} // namespace sluice::detail
