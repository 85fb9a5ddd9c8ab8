// A source's slots: who holds them, what still reads them, and which may be filled next.
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
#include <sluice/pipeline/source_options.hpp>

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

    SourceSlot() = default;
    explicit SourceSlot(int device) {
        // The one that nearly all sources need, before the first batch.
        reads.push_back(make_owned<Read>(read_options, device));
    }

    static constexpr EventOptions read_options{.sleep_while_waiting = true};

    SourceLedger<B>* ledger = nullptr;
    std::size_t ordinal = 0; // Among its ledger's.
    State state = State::free;
    std::size_t index = 0;       // Of the batch that is in the slot, or on its way there.
    int callers = 0;             // Handles and holds that the caller's thread gives up,
    int others = 0;              // and holds that other threads give up.
    bool was_filled = false;     // Whether ever; of checked backends.
    bool last = false;           // Whether the source ended instead of filling the slot.
    std::size_t bad_before = 0;  // Bad batches in a row right before it, which have been left out.
    bool behind_dropped = false; // Whether a good one was dropped right behind the one before it in line.
    std::exception_ptr thrown;
    bool thrown_by_fill = false; // Rather than by the wait for what reads the slot.
    std::exception_ptr unsafe;   // Set when work may read the slot whose end nothing tells.
    List<Owned<Read>> reads;
    /// Slots of other ledgers that are held, and read, with this one.
    SourceSlot* parts[2] = {};

    /// Waits for all that reads the slot. Throws when it may still be read; then the reads stay noted.
    void await_reads();
    /// The same, whatever becomes of the work.
    void settle_reads() noexcept;
    /// Whether that would not wait. Of a slot that is not held.
    bool has_been_read() const noexcept;
    /// Whether there is a batch in it that has not been handed out.
    bool has_batch() const noexcept { return state == State::ready && !last && thrown == nullptr; }
};

/// A source's slots in a row, or some of them.
template <Backend B>
class SlotRow {
public:
    void set_size(std::size_t slots) { ring_.resize(slots); }
    std::size_t size() const noexcept { return size_; }
    SourceSlot<B>& operator[](std::size_t at) const noexcept { return *ring_[(first_ + at) % ring_.size()]; }
    void push(SourceSlot<B>& slot) noexcept { ring_[(first_ + size_++) % ring_.size()] = &slot; }
    /// The others keep their order.
    SourceSlot<B>& take(std::size_t at = 0) noexcept {
        SourceSlot<B>& taken = (*this)[at];
        for (; at > 0; --at)
            ring_[(first_ + at) % ring_.size()] = &(*this)[at - 1];
        first_ = (first_ + 1) % ring_.size();
        --size_;
        return taken;
    }
    void clear() noexcept { size_ = 0; }

private:
    List<SourceSlot<B>*> ring_;
    std::size_t first_ = 0;
    std::size_t size_ = 0;
};

/// The slots of one source, in any thread's reach, which it owns. Lives as long as the source, a handle or a hold does: the last one to
/// go deletes it.
template <Backend B>
class SourceLedger {
public:
    using Slot = SourceSlot<B>;

    /// Deletes a slot with the batch in it.
    using Delete = void (*)(Slot* slot);

    SourceLedger(int of, Delete delete_slot, WhenAhead when_ahead = WhenAhead::wait)
        : device(of), drops(when_ahead != WhenAhead::wait),
          drops_oldest(when_ahead == WhenAhead::drop_oldest), delete_(delete_slot), destroy_(&destroy) {}
    SourceLedger& operator=(SourceLedger&&) = delete;

    /// Takes on a slot, which is free, and which it owns if this doesn't throw.
    void add(Slot& slot);

    /// The source has gone. Deletes the ledger unless a slot is still held.
    void abandon() noexcept;

    // With the mutex held:
    // -------------------------------------------------------------------------------------------------------------

    /// Whether there is a slot for a further batch: a free one, or one whose batch can be dropped.
    bool may_claim() const noexcept { return free_.size() > 0 || droppable() < line_.size(); }
    /// Whether no slot can become free unless the caller's thread gives one up.
    bool all_with_caller() const noexcept;
    /// The slot that has been free for longest becomes that of batch `claimed`. Where batches may be dropped: one that need not be
    /// waited for, if there is any.
    Slot& claim() noexcept;
    /// The slot of the caller's next batch; null where none has been claimed.
    Slot* front() const noexcept { return line_.size() > 0 ? &line_[0] : nullptr; }
    /// The number of the caller's next batch, as far as it is known.
    std::size_t next_index() const noexcept { return line_.size() > 0 ? line_[0].index : claimed; }
    /// Batch `slot.index` is in the slot, or never will be.
    void settle(Slot& slot, bool filled, std::exception_ptr exception) noexcept;
    /// The first in line goes to the caller.
    Slot& hand_out() noexcept;
    /// Whether the one there in line has failed, and may be left out. All before it are good ones.
    bool may_skip(std::size_t at) const noexcept;
    /// Leaves it out.
    void skip(std::size_t at);
    /// Leaves all out that may be, up to the first in line of which it is not known yet.
    void skip_all();
    /// The first in line is dropped.
    void drop_front() noexcept;
    /// Drops what has been filled of the batches from `index` on.
    void drop_from(std::size_t index) noexcept;
    /// Batch `index` is none, nor is any behind it.
    void end_before(std::size_t index) noexcept;
    /// All slots that are not held are free, in their order, and batch 0 is the next.
    void start_over(std::size_t batches) noexcept;

    // Without it:
    // -------------------------------------------------------------------------------------------------------------

    /// Whether the slot is held. Without workers, one that is not held is the calling thread's alone.
    bool is_out(const Slot& slot);
    /// One more holds the slot. Throws `Error` when it is not held any longer.
    void hold(Slot& slot, bool elsewhere);
    /// One less does; the last one frees it.
    void done(Slot& slot, bool elsewhere) noexcept;
    /// What `stream` has been handed so far reads the slot.
    void release(Slot& slot, BasicStreamRef<B> stream);
    /// Behind an exception: ends waits for semaphores that will not be signalled, and that what still reads slots may be behind.
    void give_up_waits() noexcept;

    /// `place`, which is free, goes to the caller as the next batch, made of those in these slots: both are held, and read, with it.
    /// A slot that `is_shared` comes again.
    void hand_out_joined(Slot& place, Slot& first, Slot& second, bool is_shared);

    /// Batches that are ready to be taken, and will not be dropped.
    std::size_t sure() const noexcept { return drops ? 0 : ready.load(); }

    List<Slot*> slots;
    std::size_t most_held = 0; // Batches that can be held at a time.
    const int device;
    const bool drops; // Batches are dropped for further ones: the oldest, or the newest.
    const bool drops_oldest;

    SourceLock mutex;
    std::size_t claimed = 0; // The first batch that has had no slot yet.
    std::size_t end = 0;     // The first batch that will not be filled.
    bool awaited = false;    // Whether the caller waits for the first in line, which is not dropped then.
    bool wanted = false;     // Whether it has looked in vain: one that is ready is left then.
    /// Batches that are ready and come next, one after the other.
    Atomic<std::size_t> ready;
    /// Batches that were filled, and that are not handed out.
    Atomic<std::size_t> dropped;
    std::size_t errors_in_a_row = 0; // That may be left out; how many have been since batch 0,
    std::size_t skipped = 0;
    std::size_t first_skipped = 0; // the first of these, and why.
    std::string first_error;

private:
    ~SourceLedger();
    void push_free(Slot& slot) noexcept;
    void give_to_caller(Slot& slot) noexcept;
    // Where in line the batch stands that is dropped for a further one; behind the line where there is none.
    std::size_t droppable() const noexcept;
    Slot& drop(std::size_t at) noexcept;
    Slot& take_place() noexcept;
    void count_ready() noexcept;
    // An event for a read by `stream`, whose record is under way from now on.
    typename Slot::Read& begin_read(Slot& slot, BasicStreamRef<B> stream);
    // Whether all that `stream` was handed is over for sure.
    static bool waited_for(BasicStreamRef<B> stream) noexcept;
    static void destroy(SourceLedger* ledger) noexcept;

    const Delete delete_;
    void (*const destroy_)(
        SourceLedger*) noexcept; // So that pipelines without sources compile no end of them.
    int references_ = 1;         // The source, and slots that are held.
    SlotRow<B> free_;            // The longest free one first.
    std::size_t bad_last_ = 0;   // `bad_before` of the batch that is claimed next,
    bool dropped_last_ = false;  // and its `behind_dropped`.
    SlotRow<B> line_;            // Of batches that are being filled, or wait for the caller, in their order.
};

/// A source's own. At its end the slots are released, or left to the last handle that holds one.
template <Backend B>
class SourceLedgerOwner {
public:
    explicit SourceLedgerOwner(SourceLedger<B>* made) : ledger_(*made) {}
    SourceLedgerOwner& operator=(SourceLedgerOwner&&) = delete;
    ~SourceLedgerOwner() { ledger_.abandon(); }
    SourceLedger<B>& operator*() const noexcept { return ledger_; }
    SourceLedger<B>* operator->() const noexcept { return &ledger_; }

private:
    SourceLedger<B>& ledger_;
};

} // namespace sluice::detail

#if SLUICE_HAS_BODIES
#include <sluice/pipeline/detail/source_drops.inl>
#include <sluice/pipeline/detail/source_slots.inl>
#endif
