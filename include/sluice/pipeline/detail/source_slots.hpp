/// \file
/// A source's slots: who holds them, what still reads them, and which may be filled next.
#pragma once

#include <cstddef>
#include <exception>
#include <string>

#include <sluice/backend/detail/atomic.hpp>
#include <sluice/backend/detail/checked/interface.hpp>
#include <sluice/backend/detail/list.hpp>
#include <sluice/backend/detail/owned.hpp>
#include <sluice/backend/device.hpp>
#include <sluice/backend/event.hpp>
#include <sluice/backend/stream.hpp>
#include <sluice/pipeline/detail/source_threads.hpp>

namespace sluice::detail {

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
        reads.push_back(make_owned<Read>(read_options, device));
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
    bool thrown_by_fill = false; // Rather than by the wait for what reads the slot.
    std::exception_ptr unsafe;   // Set when work may read the slot whose end nothing tells.
    List<Owned<Read>> reads;

    /// Waits for all that reads the slot. Throws when it may still be read; then the reads stay noted.
    void await_reads();
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
    void add(Slot& slot);

    /// The source has gone. Deletes the ledger unless a slot is still held.
    void abandon() noexcept;

    // With the mutex held:
    // -------------------------------------------------------------------------------------------------------------

    bool any_free() const noexcept { return free_count_ > 0; }
    /// Whether no slot can become free unless the caller's thread gives one up.
    bool all_with_caller() const noexcept;
    /// The slot that has been free for longest becomes that of batch `claimed`.
    Slot& claim() noexcept;
    /// The slot of batch `index`; null where none has been claimed.
    Slot* slot_of(std::size_t index) const noexcept {
        return index < claimed ? claims_[index % claims_.size()] : nullptr;
    }
    /// Batch `slot.index` is in the slot, or never will be.
    void settle(Slot& slot, bool filled, std::exception_ptr exception) noexcept;
    /// Batch `handed` goes to the caller.
    void hand_out(Slot& slot) noexcept;
    /// Leaves batch `handed` out, which has failed; false where there may be no more.
    bool skip(Slot& slot);
    /// All slots that nobody holds are free, in their order, and batch 0 is the next.
    void start_over(std::size_t batches) noexcept;

    // Without it:
    // -------------------------------------------------------------------------------------------------------------

    /// Whether somebody holds the slot. Without workers, one that nobody holds is the caller's thread's alone.
    bool is_out(const Slot& slot);
    /// One more holds the slot. Throws `Error` when nobody does any longer.
    void hold(Slot& slot, bool elsewhere);
    /// One less does; the last one frees it.
    void done(Slot& slot, bool elsewhere) noexcept;
    /// What `stream` has been handed so far reads the slot.
    void release(Slot& slot, BasicStreamRef<B> stream);
    /// Behind an exception: ends waits for semaphores that nobody signals any more and that what reads slots may be behind.
    void give_up_waits() noexcept;

    List<Slot*> slots;
    const int device;

    SourceLock mutex;
    std::size_t claimed = 0; // The first batch that has no slot yet.
    std::size_t handed = 0;  // The next batch for the caller.
    std::size_t end = 0;     // The first batch that will not be filled.
    /// Batches that are ready and come next, one after the other.
    Atomic<std::size_t> ready;
    std::size_t errors_in_a_row = 0; // That may be left out; how many have been
    std::size_t skipped_in_a_row = 0;
    std::size_t skipped = 0;       // and since batch 0,
    std::size_t first_skipped = 0; // the first of these, and why.
    std::string first_error;

protected:
    virtual ~SourceLedger() = default;
    /// Waits for what reads the slots.
    void await_all_reads() noexcept;

private:
    void push_free(Slot& slot) noexcept;
    void count_ready() noexcept;
    // An event for a read by `stream`, whose record is under way from now on.
    typename Slot::Read& begin_read(Slot& slot, BasicStreamRef<B> stream);
    // Whether all that `stream` was handed is over for sure.
    static bool waited_for(BasicStreamRef<B> stream) noexcept;
    void destroy() noexcept;

    int references_ = 1;                     // The source, and slots that are held.
    List<typename B::NativeStream> readers_; // All streams that have read a slot.
    List<Slot*> free_;                       // A ring, the longest free one first.
    List<Slot*> claims_;                     // That of batch i is at i modulo the slots.
    std::size_t free_first_ = 0;
    std::size_t free_count_ = 0;
};

/// A source's own. At its end the slots go, or are left to whoever holds one.
template <class Ledger>
class SourceLedgerOwner {
public:
    explicit SourceLedgerOwner(int device) : ledger_(*new Ledger(device)) {}
    SourceLedgerOwner(const SourceLedgerOwner&) = delete;
    SourceLedgerOwner& operator=(const SourceLedgerOwner&) = delete;
    ~SourceLedgerOwner() { ledger_.abandon(); }
    Ledger& operator*() const noexcept { return ledger_; }
    Ledger* operator->() const noexcept { return &ledger_; }

private:
    Ledger& ledger_;
};

} // namespace sluice::detail

#if SLUICE_HAS_BODIES
#include <sluice/pipeline/detail/source_slots.inl>
#endif
