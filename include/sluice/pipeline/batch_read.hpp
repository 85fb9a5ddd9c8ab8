/// \file
/// When a submitted batch has been read, and what holds a source's batch until then.
#pragma once

#include <cstddef>
#include <exception>
#include <optional>
#include <utility>

#include <sluice/backend/concept.hpp>
#include <sluice/backend/error.hpp>
#include <sluice/backend/stream.hpp>

namespace sluice {

template <class Batch, Backend B>
class SourceBatch;
template <class Batch, Backend B>
class HeldBatch;

namespace detail {
template <Backend B>
class PipelineCore;
template <Backend B>
struct SourceSlot;
struct JoinAccess;

class BatchWaiterRef;

/// What a pipeline lends to those who wait for its batches; `pipeline` is null once it has gone.
struct alignas(64) BatchWaiter { // one line of memory, which each submit looks at
    void* pipeline = nullptr;
    bool (*wait)(void* pipeline, std::size_t run,
                 std::size_t number) = nullptr; // false, without a wait, where the pipeline is in use
    bool (*is_read)(void* pipeline, std::size_t run, std::size_t number) = nullptr;
    void (*stays)(void* pipeline, std::size_t run, std::size_t number) = nullptr; // where that is checked
    bool (*drain)(void* pipeline) =
        nullptr;                   // where that has failed; whether waits for semaphores were given up
    std::size_t references = 0;    // One thread has them all.
    std::exception_ptr unreported; // What a destructor's wait has thrown, for the pipeline's next call.

    static BatchWaiterRef make();
};

/// A shared pointer without atomics.
class BatchWaiterRef {
public:
    BatchWaiterRef() = default;
    explicit BatchWaiterRef(BatchWaiter* waiter) noexcept : waiter_(waiter) { ++waiter_->references; }
    BatchWaiterRef(const BatchWaiterRef& other) noexcept : waiter_(other.waiter_) {
        if (waiter_ != nullptr)
            ++waiter_->references;
    }
    BatchWaiterRef(BatchWaiterRef&& other) noexcept : waiter_(std::exchange(other.waiter_, nullptr)) {}
    BatchWaiterRef& operator=(BatchWaiterRef other) noexcept {
        std::swap(waiter_, other.waiter_);
        return *this;
    }
    ~BatchWaiterRef() {
        if (waiter_ != nullptr && --waiter_->references == 0)
            delete waiter_;
    }
    BatchWaiter* operator->() const noexcept { return waiter_; }
    BatchWaiter& operator*() const noexcept { return *waiter_; }
    SLUICE_ALWAYS_INLINE explicit operator bool() const noexcept { return waiter_ != nullptr; }

private:
    BatchWaiter* waiter_ = nullptr;
};

inline BatchWaiterRef BatchWaiter::make() { return BatchWaiterRef(new BatchWaiter); }
} // namespace detail

/// What `submit` returns of a batch of the caller's own: tells when all stages that take the batch have read it, and so
/// when its memory may be filled again. Not before: under `Schedule::graphed` a batch may be held, and read long after `submit`
/// has returned. On a checked backend (backend/checked.hpp) a change before that is an `Error` of the next call.
///
/// Three things can be done with it:
///
/// | the batch | |
/// | --- | --- |
/// | is filled again at once | `pipeline.submit(batch).wait();` the host waits, and enqueues nothing meanwhile |
/// | stays as it is until `finish` | `pipeline.submit(batch).stays();` the host does not wait |
/// | is one of several that are filled in turns | keep it, and call `wait` before that batch is filled again |
///
/// Destroying it waits as well, where the batch names host memory as far as can be seen (`NamesHostMemory`), and the
/// compiler warns where it is dropped at once. Numbers and device memory are never waited for, nor what lies behind a plain
/// pointer; `submit` of a `Source`'s batch returns nothing, as there is nothing to see to. A fault that the destructor
/// meets is thrown by the next call of the pipeline.
///
/// Used by the thread that drives the pipeline, which it may outlive.
///
/// \code
/// sluice::BatchRead read[2];
/// for (int step = 0; step < steps; ++step) {
///     read[step % 2].wait(); // of two steps ago
///     load(step, batch[step % 2]);
///     read[step % 2] = pipeline.submit(batch[step % 2]);
/// }
/// \endcode
class BatchRead {
public:
    /// Of no batch: nothing to wait for.
    BatchRead() = default;
    /// Leaves nothing to wait for behind.
    BatchRead(BatchRead&& other) noexcept = default;
    /// Waits first where the destructor would.
    BatchRead& operator=(BatchRead&& other) noexcept;
    /// Waits where the batch names host memory.
    ~BatchRead() {
        if (waits_ && waiter_)
            wait_quietly();
    }

    /// Waits until the batch has been read. Sends held batches on their way, as `flush` does, where it is one of them.
    /// Throws `Error` for a fault of that work; and, without a wait, within a stage or a call of its pipeline: there is still to be
    /// waited for then.
    void wait();

    /// Whether the batch has been read, without a wait: then `wait` would return at once. Where the pipeline has failed, and
    /// of no batch, too. False for a batch that is held under `Schedule::graphed`; asked for the same one again with nothing
    /// submitted in between, it is sent on its way, as by `flush`. Throws `Error` for a known fault.
    bool is_ready() const;

    /// Promises that the batch, and the memory that it names, stays as it is until the pipeline's next `finish` or
    /// `reset`: nothing waits for it any more. On a checked backend a change before the stages have read it is an `Error`
    /// of a later call.
    void stays() noexcept;

private:
    template <Backend B>
    friend class detail::PipelineCore;
    BatchRead(const detail::BatchWaiterRef& waiter, std::size_t run, std::size_t number,
              bool waits_in_destructor) noexcept
        : waiter_(waiter), run_(run), number_(number), waits_(waits_in_destructor) {}
    void wait_quietly() noexcept;
    [[noreturn]] static void throw_in_use();

    detail::BatchWaiterRef waiter_;
    std::size_t run_ = 0;
    std::size_t number_ = 0;
    bool waits_ = false;
};

/// What `try_submit` returns of a batch that names host memory: its `BatchRead`, or nothing where it was not taken. It is to be kept,
/// since the destructor of a `BatchRead` waits for its batch: asking a temporary one whether the batch was taken does not compile.
class TriedSubmit : public std::optional<BatchRead> {
public:
    using std::optional<BatchRead>::optional;
    /// Whether the batch was taken.
    explicit operator bool() const& noexcept { return has_value(); }
#if !defined(__NVCC__) && !defined(__EDG__) // which take the `read` of `if (auto read = …)` for a temporary
    /// Does not compile: write `if (auto read = pipeline.try_submit(batch))`, and keep what it has. nvcc does not see it, and then the
    /// batch is waited for.
    explicit operator bool() const&& = delete;
#endif
};

/// Holds the slot of a source's batch beyond its handle. A plain value: copies are the same hold, and one of them gives
/// it up with `give_up`. Any thread may use it. While there is one, the slot is not filled again, and its memory stays even
/// when the source goes.
template <Backend B = DefaultBackend>
class SourceHold {
public:
    /// Holds nothing.
    SourceHold() = default;

    /// Whether it holds a slot. Of one that does not, `give_up` does nothing, and all else throws `Error`.
    explicit operator bool() const noexcept { return slot_ != nullptr; }

    /// What `stream` has been handed so far reads the batch. May be called for any number of streams, more than once, and
    /// before or after others; they do not wait for each other. Throws `Error`, also while `stream` is being captured.
    void release(BasicStreamRef<B> stream) const { slot().ledger->release(*slot_, stream); }

    /// Gives the hold up: no `release` of it comes any more. Once for each hold; no copy may be used afterwards.
    void give_up() const noexcept {
        if (slot_ != nullptr)
            slot_->ledger->done(*slot_, elsewhere_);
    }

    /// The same, where the host has read the batch by now.
    void give_up_on_host() const noexcept { give_up(); }

    /// A further hold, which a thread other than the caller's will give up by itself. `Source::next` waits for such ones,
    /// and throws when all slots are held by others, which it would wait for in vain.
    SourceHold hold_elsewhere() const {
        slot().ledger->hold(*slot_, true);
        return SourceHold(slot_, true);
    }

    /// The batch's number in its source.
    std::size_t index() const { return slot().index; }
    /// Batches behind it that are ready to be taken, as `Source::filled`, and will not be dropped.
    std::size_t ready_behind() const { return slot().ledger->sure(); }
    /// The source's slots.
    std::size_t slots() const { return slot().ledger->most_held; }

private:
    template <class, Backend>
    friend class SourceBatch;
    template <class, Backend>
    friend class HeldBatch;
    friend struct detail::JoinAccess;
    SourceHold(detail::SourceSlot<B>* slot, bool elsewhere) noexcept : slot_(slot), elsewhere_(elsewhere) {}

    detail::SourceSlot<B>& slot() const {
        if (slot_ == nullptr) [[unlikely]]
            throw Error("source: a SourceHold that holds no slot was used; look with `if (hold)` first");
        return *slot_;
    }
    // Throws `Error` when the slot is not held any longer.
    static SourceHold of(detail::SourceSlot<B>* slot) {
        slot->ledger->hold(*slot, false);
        return SourceHold(slot, false);
    }

    detail::SourceSlot<B>* slot_ = nullptr;
    bool elsewhere_ = false;
};

} // namespace sluice

#if SLUICE_HAS_COMMON_BODIES
#include <sluice/pipeline/detail/batch_read.inl>
#endif
