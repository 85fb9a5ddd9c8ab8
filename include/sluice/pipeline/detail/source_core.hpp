// A source below the types of its batches: its slots' books, its workers, and what its caller waits for.
#pragma once

#include <cstddef>
#include <exception>
#include <vector>

#include <sluice/backend/detail/atomic.hpp>
#include <sluice/graph/detail/call_ref.hpp>
#include <sluice/pipeline/detail/fill_times.hpp>
#include <sluice/pipeline/detail/source_slots.hpp>
#include <sluice/pipeline/detail/source_threads.hpp>
#include <sluice/pipeline/source_ends.hpp>
#include <sluice/pipeline/source_options.hpp>
#include <sluice/pipeline/stage_time.hpp>

namespace sluice::detail {

/// For tests: called before each worker thread is made, which fails if it throws.
inline void (*before_source_thread)(int worker) = nullptr;

/// The slots of a source.
template <Backend B>
int slots_of(const SourceOptions<B>& options) noexcept {
    return options.slots > 0 ? options.slots : options.workers + 2;
}
/// The states of its workers; without any, one for the caller.
template <Backend B>
int states_of(const SourceOptions<B>& options) noexcept {
    return options.workers > 0 ? options.workers : 1;
}

/// What `Source` promises, of slots. Its functions do what the source's of the same names do.
template <Backend B>
class SourceCore {
public:
    using Slot = SourceSlot<B>;
    /// Fills a slot's batch, as a worker of `source`. Returns false where the source ends before it.
    using Fill = bool (*)(void* source, std::size_t worker, Slot& slot);

    /// Throws `Error` for options that are out of their range, or do not go together.
    SourceCore(const SourceOptions<B>& options, void* source, Fill fill,
               typename SourceLedger<B>::Delete delete_slot);
    SourceCore& operator=(SourceCore&&) = delete;

    /// Calls both for each slot and each worker, on this thread: the slot maker has to `add` what it makes. Throws `Error` with what
    /// they throw nested.
    void make(CallRef<void(int)> make_slot, CallRef<void(int)> make_state);

    /// What the source's destructor does: the workers end, and reads of slots that are not held.
    void close() noexcept;

    /// The slot of the next batch, of the caller's now; null where there is none.
    Slot* next() { return take("next", true); }
    Slot* newest() { return take("newest", options_.workers == 0); }
    SkippedBatches skipped() const;
    std::vector<FillTime> fill_times() const;
    void stop() noexcept;
    void rewind();

    const SourceOptions<B>& options() const noexcept { return options_; }
    SourceLedger<B>& ledger() const noexcept { return *ledger_; }
    FillStop fill_stop() const noexcept { return FillStop(stopping_); }

private:
    bool fill_one(std::size_t worker, Slot& slot, FillNote* note);
    void fill_claimed(std::size_t worker, Slot& slot, SourceGuard& lock);
    void work(std::size_t worker);
    void start();
    void join_workers() noexcept;
    Slot* take(const char* call, bool waits);
    void await_turn(SourceGuard& lock);
    void require_outside(const char* call) const;
    [[noreturn]] void throw_failure(const Slot& slot);
    [[noreturn]] void throw_late() const;

    const SourceOptions<B> options_;
    void* const source_;
    const Fill fill_;
    SourceLedgerOwner<B> ledger_;
    FillNotes notes_;
    SourceThreads threads_;
    bool started_ = false;
    Atomic<bool> stopping_;                             // Changed under the ledger's mutex.
    const int exceptions_ = std::uncaught_exceptions(); // when this was made
};

} // namespace sluice::detail

#if SLUICE_HAS_BODIES
#include <sluice/pipeline/detail/source_core.inl>
#endif
