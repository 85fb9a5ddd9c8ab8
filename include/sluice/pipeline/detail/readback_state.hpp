// What a readback shares with the graphs that its pushes were captured into.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <sluice/backend/detail/checked/object_checks.hpp>
#include <sluice/backend/detail/clock.hpp>
#include <sluice/backend/detail/owned.hpp>
#include <sluice/backend/detail/shared.hpp>
#include <sluice/backend/device.hpp>
#include <sluice/backend/event.hpp>
#include <sluice/backend/stream.hpp>
#include <sluice/graph/detail/not_capturable.hpp>
#include <sluice/graph/detail/replay_hooks.hpp>
#include <sluice/memory/copy.hpp>
#include <sluice/memory/span.hpp>
#include <sluice/pipeline/detail/readback_places.hpp>
#include <sluice/pipeline/stage_time.hpp>

namespace sluice::detail {

/// All of a readback but its type of handler. Hooks of graphs refer to it as long as it is there.
template <class T, Backend B>
class ReadbackState {
public:
    using Places = ReadbackPlaces<T, B>;
    using Replayed = ReplayedResults<T, B>;

    // Instead of std::function, whose header costs each file that includes sluice a tenth of a second.
    struct AnyHandler {
        virtual ~AnyHandler() = default;
        virtual void operator()(std::size_t index, std::span<const T> values) = 0;
    };

    ReadbackState(std::size_t count, Owned<AnyHandler> handler, int slots)
        : count_(count), handler_(std::move(handler)), device_(B::current_device()) {
        require_within("readback: the number of slots", slots, 1, most_of_option);
        if (count > ~std::size_t{0} / (4 * most_of_option) / sizeof(T)) {
            throw Error("a readback of " + std::to_string(count) + " values of " + std::to_string(sizeof(T)) +
                        " bytes each is larger than any memory");
        }
        const auto eager = static_cast<std::size_t>(slots);
        places_ = make_shared_value<Places>(count, eager);
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

    /// Of the readback's owner: hooks refer to it by this.
    void watch_itself(const Shared<ReadbackState>& self) noexcept { self_ = self; }
    void push(BasicStreamRef<B> stream, DeviceSpan<const T, B> values,
              const DeviceSpan<const std::int64_t, B>* length) {
        if (values.size() > count_) {
            throw Error("readback: " + std::to_string(values.size()) +
                        " values were pushed; this one takes " + std::to_string(count_) + " at most");
        }
        if (length != nullptr && length->size() != 1) {
            throw Error("readback: " + std::to_string(length->size()) +
                        " lengths were pushed with a result; expected 1");
        }
        if (records(stream)) {
            push_captured(stream, values, length);
            return;
        }
        if (!handing_)
            poll();
        Slot& slot = free_slot();
        if (places_->free() < spare_) {
            const DeviceGuard<B> device(device_);
            places_->add(spare_);
        }
        try {
            bool copied = false;
            if constexpr (requires(RingCopy one) { B::copy_to_place(stream.get(), one); }) {
                const std::int64_t* const number = length != nullptr ? length->data() : nullptr;
                copied = B::copy_to_place(stream.get(),
                                          Places::copy_to(slot.place, values.data(), values.size(), number));
            }
            if (!copied)
                copy_to_place(stream, slot.place, values, length);
            slot.arrived.record(stream);
        } catch (...) {
            // No event will tell of the copy's end, and the slot's memory must not go before it.
            try {
                stream.sync();
            } catch (...) {
            }
            throw;
        }
        slot.busy = true;
        append(Entry{&slot, nullptr, 0, slot.place, values.size(), length != nullptr});
    }
    void poll() {
        while (!handing_ && waiting_ > 0 && has_arrived(front()))
            hand_over();
    }
    void finish() {
        if (handing_)
            throw Error("readback: finish was called from within the handler; call it outside");
        while (waiting_ > 0) {
            await(front());
            hand_over();
        }
    }
    void reset() noexcept {
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
    std::size_t pushed() const noexcept { return pushed_; }

    /// Hands over what has arrived, and waits where the graph has no place for the results of another launch.
    void make_room(Replayed& replayed) {
        poll();
        while (!replayed.has_room()) {
            if (handing_) {
                throw Error(
                    "readback: a graph was launched from within the handler, while its last results have "
                    "not been handed over; launch it outside");
            }
            await(front());
            hand_over();
        }
    }
    /// The graph has been launched, and its event recorded.
    void append(const Shared<Replayed>& replayed, std::size_t launch) {
        replayed->pending += replayed->results.size();
        for (std::size_t i = 0; i < replayed->results.size(); ++i) {
            const auto& result = replayed->results[i];
            append(Entry{nullptr, replayed, launch, replayed->place(i), result.size, result.counted});
        }
    }

private:
    class Hook;

    struct Slot {
        explicit Slot(typename Places::Place of)
            : place(of), arrived(EventOptions{.sleep_while_waiting = true}) {}
        typename Places::Place place;
        DeviceEvent<B> arrived;
        bool busy = false; // From the push until the handler has returned.
    };
    // A result on its way: a slot's, or a graph's.
    struct Entry {
        Slot* slot = nullptr;
        Shared<Replayed> replayed;
        std::size_t launch = 0; // of the graph
        typename Places::Place place{};
        std::size_t size = 0;
        bool counted = false; // as in a graph's
    };

    void push_captured(BasicStreamRef<B> stream, DeviceSpan<const T, B> values,
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
        replayed.add({row, values.size(), length != nullptr});
        if constexpr (requires { B::has_ring_copies(false); }) {
            if (replayed.in_turns()) {
                if (!B::has_ring_copies(false))
                    throw NotCapturable("readback: a graph pushes on several devices; push on one of them");
                B::copy_to_ring(stream.get(), places_->copy_to(row, values.data(), values.size(),
                                                               length != nullptr ? length->data() : nullptr));
                return;
            }
        }
        copy_to_place(stream, places_->place(row, 0), values, length);
    }
    static void copy_to_place(BasicStreamRef<B> stream, const typename Places::Place& place,
                              DeviceSpan<const T, B> values,
                              const DeviceSpan<const std::int64_t, B>* length) {
        copy(stream, PinnedSpan<T, B>(place.values, values.size()), values);
        if (length != nullptr)
            copy(stream, PinnedSpan<std::int64_t, B>(place.length, 1), *length);
    }

    Entry& front() noexcept { return entries_[first_]; }
    void append(Entry entry) noexcept {
        entries_[(first_ + waiting_++) % entries_.size()] = std::move(entry);
        ++pushed_;
    }
    // Room for so many more results on their way.
    void reserve_entries(std::size_t more) {
        std::vector<Entry> larger(entries_.size() + more);
        for (std::size_t i = 0; i < waiting_; ++i)
            larger[i] = std::move(entries_[(first_ + i) % entries_.size()]);
        entries_ = std::move(larger);
        first_ = 0;
    }
    static bool has_arrived(Entry& entry) {
        if (entry.replayed == nullptr)
            return entry.slot->arrived.is_done();
        return entry.replayed->has_arrived(entry.launch);
    }
    static void await(Entry& entry) {
        const std::int64_t begun = steady_nanoseconds();
        if (entry.replayed == nullptr)
            entry.slot->arrived.sync();
        else
            entry.replayed->await(entry.launch);
        waited_for_results() += steady_nanoseconds() - begun;
    }
    static void release(Entry& entry) noexcept {
        if (entry.replayed == nullptr)
            entry.slot->busy = false;
        else
            --entry.replayed->pending;
    }
    Entry pop() noexcept {
        Entry entry = std::move(front());
        first_ = (first_ + 1) % entries_.size();
        --waiting_;
        return entry;
    }
    // A slot that is free. Hands over what is older where none is.
    Slot& free_slot() {
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
    void hand_over() {
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
        ObjectChecks<B>::result_read(result.place.values, size * sizeof(T),
                                     result.counted ? result.place.length : nullptr);
        if (result.counted) {
            const std::int64_t length = *result.place.length;
            if (length < 0 || static_cast<std::size_t>(length) > size) {
                throw Error("readback: result " + std::to_string(index) + " has a length of " +
                            std::to_string(length) + " values; expected 0 to the " + std::to_string(size) +
                            " that were pushed");
            }
            size = static_cast<std::size_t>(length);
        }
        (*handler_)(index, std::span<const T>(result.place.values, size));
    }

    std::size_t count_;
    Owned<AnyHandler> handler_;
    int device_;
    Shared<Places> places_;
    std::size_t spare_ = 0; // Rows to have ready for captures.
    std::vector<Owned<Slot>> slots_;
    std::size_t next_slot_ = 0;
    std::vector<Entry> entries_; // A ring, in the order of the pushes and launches.
    std::size_t first_ = 0;
    std::size_t waiting_ = 0;
    std::size_t pushed_ = 0;
    std::size_t handed_ = 0;
    bool handing_ = false; // Whether the handler is being called.
    Watched<ReadbackState> self_;
    Watched<Hook> latest_; // That of the capture in which a push was captured last.
};

/// Kept by the graph. Knows the readback as long as it is there.
template <class T, Backend B>
class ReadbackState<T, B>::Hook final : public ReplayHook<B> {
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
        try {
            launch = replayed_->launched(stream);
        } catch (...) {
            // No event will tell of the copies' end, and their memory must not go before it.
            try {
                stream.sync();
            } catch (...) {
            }
            throw;
        }
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

} // namespace sluice::detail
