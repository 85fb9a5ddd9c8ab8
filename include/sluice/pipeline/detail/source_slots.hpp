/// \file
/// A source's slots: who holds them, what still reads them, and which may be filled next.
#pragma once

#include <atomic>
#include <concepts>
#include <condition_variable>
#include <cstddef>
#include <exception>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include <sluice/backend/detail/checked/interface.hpp>
#include <sluice/backend/device.hpp>
#include <sluice/backend/event.hpp>
#include <sluice/backend/stream.hpp>

namespace sluice::detail {

/// Whether the latest record of `event` has been reached for sure, whatever became of the work before it.
template <Backend B>
bool has_been_reached(const BasicEvent<B>& event) noexcept {
    try {
        // The Host backend's own `is_done` throws the fault of the work before the record, which is over then.
        if constexpr (std::same_as<typename B::NativeEvent, host::Event*>) {
            return event.get()->is_done();
        } else {
            return event.is_done();
        }
    } catch (...) {
        return false;
    }
}

/// Returns when the work before the latest record of `event` is over. A fault of that work is its stream's to report.
/// Throws `Error` when the work may not be over.
template <Backend B>
void await_over(const BasicEvent<B>& event) {
    try {
        event.sync();
    } catch (...) {
        if (!has_been_reached(event))
            throw;
    }
}

template <Backend B>
class SourceLedger;

/// What a source knows of one slot, beside the batch in it. All but `reads` of a slot that is being filled belongs to
/// the ledger's mutex.
template <Backend B>
struct SourceSlot {
    enum class State { free, claimed, filling, ready, out };

    /// Work that reads the slot: what `stream` was handed up to the record of `event`.
    struct Read {
        Read(const EventOptions& options, int of) : event(options), device(of) {}
        BasicEvent<B> event;
        int device;
        typename B::NativeStream stream{};
        bool used = false; // Since the slot was filled.
        bool busy = false; // While its event is being recorded.
    };

    explicit SourceSlot(int device) {
        // The one that nearly all sources need, before the first batch.
        reads.push_back(std::make_unique<Read>(read_options, device));
    }

    static constexpr EventOptions read_options{.sleep_while_waiting = true};

    SourceLedger<B>* ledger = nullptr;
    State state = State::free;
    std::size_t index = 0;   // Of the batch that is in the slot, or on its way there.
    int callers = 0;         // Handles and holds that the caller's thread gives up,
    int others = 0;          // and holds that other threads give up.
    bool was_filled = false; // Whether ever; of checked backends.
    bool last = false;       // Whether the source ended instead of filling the slot.
    std::exception_ptr thrown;
    std::exception_ptr unsafe; // Set when work may read the slot whose end nothing tells.
    std::vector<std::unique_ptr<Read>> reads;

    /// Waits for all that reads the slot. Throws when it may still be read; then the reads stay noted.
    void await_reads() {
        std::exception_ptr failed = unsafe;
        for (const auto& read : reads) {
            if (!read->used)
                continue;
            try {
                await_over(read->event);
                read->used = false;
            } catch (...) {
                failed = std::current_exception();
            }
        }
        if (failed != nullptr)
            std::rethrow_exception(failed);
    }
};

/// The slots of one source, in any thread's reach. Lives as long as the source, a handle or a hold does: the last one to
/// go deletes it.
template <Backend B>
class SourceLedger {
public:
    using Slot = SourceSlot<B>;

    explicit SourceLedger(int of) : device(of) {}
    SourceLedger(const SourceLedger&) = delete;
    SourceLedger& operator=(const SourceLedger&) = delete;

    /// Takes on a slot, which is free. The derived class owns it.
    void add(Slot& slot) {
        slot.ledger = this;
        slots.push_back(&slot);
        free_.resize(slots.size());
        claims_.resize(slots.size());
        push_free(slot);
    }

    /// The source has gone. Deletes the ledger unless a slot is still held.
    void abandon() noexcept {
        {
            const std::lock_guard lock(mutex);
            if (--references_ > 0)
                return;
        }
        destroy();
    }

    // With the mutex held:
    // -------------------------------------------------------------------------------------------------------------

    bool any_free() const noexcept { return free_count_ > 0; }
    /// Whether no slot can become free unless the caller's thread gives one up.
    bool all_with_caller() const noexcept {
        for (const Slot* slot : slots) {
            if (slot->callers == 0)
                return false;
        }
        return true;
    }
    /// The slot that has been free for longest becomes that of batch `claimed`.
    Slot& claim() noexcept {
        Slot& slot = *free_[free_first_];
        free_first_ = (free_first_ + 1) % free_.size();
        --free_count_;
        slot.state = Slot::State::claimed;
        slot.index = claimed;
        claims_[claimed++ % claims_.size()] = &slot;
        return slot;
    }
    /// The slot of batch `index`; null where none has been claimed.
    Slot* slot_of(std::size_t index) const noexcept {
        return index < claimed ? claims_[index % claims_.size()] : nullptr;
    }
    /// Batch `slot.index` is in the slot, or never will be.
    void settle(Slot& slot, bool filled, std::exception_ptr exception) noexcept {
        slot.last = !filled && exception == nullptr;
        slot.thrown = std::move(exception);
        slot.state = Slot::State::ready;
        if (!filled && slot.index < end)
            end = slot.index + 1;
        count_ready();
    }
    /// Batch `handed` goes to the caller.
    void hand_out(Slot& slot) noexcept {
        slot.state = Slot::State::out;
        slot.callers = 1;
        ++references_;
        ++handed;
        count_ready();
    }
    /// All slots that nobody holds are free, in their order, and batch 0 is the next.
    void start_over(std::size_t batches) noexcept {
        free_first_ = free_count_ = 0;
        for (Slot* slot : slots) {
            if (slot->state == Slot::State::out)
                continue;
            slot->last = false;
            slot->thrown = nullptr;
            push_free(*slot);
        }
        claimed = handed = 0;
        end = batches;
        count_ready();
    }

    // Without it:
    // -------------------------------------------------------------------------------------------------------------

    /// Whether somebody holds the slot. Without workers, one that nobody holds is the caller's thread's alone.
    bool is_out(const Slot& slot) {
        const std::lock_guard lock(mutex);
        return slot.state == Slot::State::out;
    }
    /// One more holds the slot. Throws `Error` when nobody does any longer.
    void hold(Slot& slot, bool elsewhere) {
        const std::lock_guard lock(mutex);
        if (slot.callers + slot.others == 0)
            throw Error("source: the batch has been given back, and its slot may be filled again; keep its "
                        "SourceBatch while it is used");
        ++(elsewhere ? slot.others : slot.callers);
    }
    /// One less does; the last one frees it.
    void done(Slot& slot, bool elsewhere) noexcept {
        bool gone = false;
        if constexpr (IsChecked<B>::value)
            checked::handed_over(&slot);
        {
            const std::lock_guard lock(mutex);
            --(elsewhere ? slot.others : slot.callers);
            if (slot.callers + slot.others == 0) {
                push_free(slot);
                gone = --references_ == 0;
            }
            // Within the lock, since the ledger may be gone as soon as it is free.
            changed.notify_all();
        }
        if (gone)
            destroy();
    }
    /// What `stream` has been handed so far reads the slot.
    void release(Slot& slot, BasicStreamRef<B> stream) {
        if (records(stream)) {
            throw Error(
                "source: a batch was released on a stream that is being captured, whose replays the "
                "source would not know of; release it on the stream that the graph is launched on, after "
                "each launch");
        }
        typename Slot::Read* read = nullptr;
        try {
            read = &begin_read(slot, stream);
            read->event.record(stream);
        } catch (...) {
            // No event will tell of the end, and the slot must not be filled before it.
            const std::exception_ptr unsafe = waited_for(stream) ? nullptr : std::current_exception();
            const std::lock_guard lock(mutex);
            if (read != nullptr)
                read->busy = false;
            if (unsafe != nullptr)
                slot.unsafe = unsafe;
            throw;
        }
        const std::lock_guard lock(mutex);
        read->busy = false;
    }

    std::vector<Slot*> slots;
    const int device;

    std::mutex mutex;
    std::condition_variable changed;
    std::size_t claimed = 0; // The first batch that has no slot yet.
    std::size_t handed = 0;  // The next batch for the caller.
    std::size_t end = 0;     // The first batch that will not be filled.
    /// Batches that are ready and come next, one after the other.
    std::atomic<std::size_t> ready{0};

protected:
    virtual ~SourceLedger() = default;
    /// Waits for what reads the slots.
    void await_all_reads() noexcept {
        for (Slot* slot : slots) {
            try {
                slot->await_reads();
            } catch (...) {
                // The device is lost, and whoever waits for its streams gets the error.
            }
        }
    }

private:
    void push_free(Slot& slot) noexcept {
        slot.state = Slot::State::free;
        free_[(free_first_ + free_count_++) % free_.size()] = &slot;
    }
    void count_ready() noexcept {
        std::size_t count = 0;
        for (std::size_t index = handed; index < claimed; ++index, ++count) {
            const Slot& slot = *claims_[index % claims_.size()];
            if (slot.state != Slot::State::ready || slot.last || slot.thrown != nullptr)
                break;
        }
        ready.store(count, std::memory_order_relaxed);
    }
    // An event for a read by `stream`, whose record is under way from now on.
    typename Slot::Read& begin_read(Slot& slot, BasicStreamRef<B> stream) {
        using Read = typename Slot::Read;
        const auto take = [&](Read& read) -> Read& {
            read.stream = stream.get();
            read.used = read.busy = true;
            return read;
        };
        {
            const std::lock_guard lock(mutex);
            for (const auto& read : slot.reads) {
                if (!read->busy && read->stream == stream.get())
                    return take(*read);
            }
        }
        // Seen for the first time: an event belongs to the device of its streams.
        const int of = stream.device();
        {
            const std::lock_guard lock(mutex);
            for (const auto& read : slot.reads) {
                if (!read->busy && !read->used && read->device == of)
                    return take(*read);
            }
        }
        const DeviceGuard<B> guard(of);
        auto made = std::make_unique<Read>(Slot::read_options, of);
        const std::lock_guard lock(mutex);
        slot.reads.push_back(std::move(made));
        return take(*slot.reads.back());
    }
    // Whether all that `stream` was handed is over for sure.
    static bool waited_for(BasicStreamRef<B> stream) noexcept {
        try {
            stream.sync();
            return true;
        } catch (...) {
            // The Host backend waits before it throws the fault of a stream's work.
            return std::same_as<typename B::NativeStream, host::Queue*>;
        }
    }
    void destroy() noexcept {
        try {
            const DeviceGuard<B> guard(device);
            delete this;
        } catch (...) {
            delete this; // The device is lost.
        }
    }

    int references_ = 1;        // The source, and slots that are held.
    std::vector<Slot*> free_;   // A ring, the longest free one first.
    std::vector<Slot*> claims_; // That of batch i is at i modulo the slots.
    std::size_t free_first_ = 0;
    std::size_t free_count_ = 0;
};

} // namespace sluice::detail
