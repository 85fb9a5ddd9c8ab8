// Bodies of source_core.hpp.
#pragma once

#include <exception>
#include <string>
#include <utility>

#include <sluice/backend/device.hpp>
#include <sluice/backend/error.hpp>
#include <sluice/pipeline/detail/checked/source_checks.hpp>
#include <sluice/pipeline/detail/source_core.hpp>

namespace sluice::detail {

/// A call of a source's `fill` on this thread.
struct FillInProgress {
    const void* source;
    FillInProgress* outer; // One source's `fill` may take batches of another source.
    bool stop = false;     // Whether it has called `stop`.

    explicit FillInProgress(const void* of) noexcept : source(of), outer(innermost()) { innermost() = this; }
    FillInProgress& operator=(FillInProgress&&) = delete;
    ~FillInProgress() { innermost() = outer; }

    static FillInProgress*& innermost() noexcept {
        thread_local FillInProgress* current = nullptr;
        return current;
    }
    /// That of `source`; null where there is none.
    static FillInProgress* of(const void* source) noexcept {
        FillInProgress* fill = innermost();
        while (fill != nullptr && fill->source != source)
            fill = fill->outer;
        return fill;
    }
};

/// Throws `Error` for options that are out of their range, or do not go together.
template <Backend B>
const SourceOptions<B>& require_options(const SourceOptions<B>& options) {
    require_within("SourceOptions::workers", options.workers, 0, 1 << 16, "the caller fills");
    require_within("SourceOptions::slots", options.slots, 0, most_of_option, "two more than workers");
    require_timeout("SourceOptions::timeout", options.timeout.count());
    if (options.workers == 0 && options.timeout.count() > 0) {
        throw Error("a source without workers has no timeout, since the caller's thread fills each batch; "
                    "expected 0 ms, or a worker, got " +
                    std::to_string(options.timeout.count()) + " ms");
    }
    require_within("SourceOptions::timed_batches", options.timed_batches, 0, most_of_option);
    require_named("SourceOptions::when_ahead", options.when_ahead, WhenAhead::drop_newest,
                  "wait, drop_oldest or drop_newest");
    const int slots = slots_of(options);
    if (options.when_ahead != WhenAhead::wait && (options.workers == 0 || slots <= options.workers)) {
        throw Error("a source that drops batches needs workers, and more slots than workers: one that each "
                    "of them fills, and one whose batch waits; got " +
                    detail::counted(options.workers, "worker") + " and " + detail::counted(slots, "slot"));
    }
    return options;
}

template <Backend B>
SourceCore<B>::SourceCore(const SourceOptions<B>& options, void* source, Fill fill,
                          typename SourceLedger<B>::Delete delete_slot)
    : options_(require_options(options)), source_(source), fill_(fill),
      ledger_(new SourceLedger<B>(B::current_device(), delete_slot, options.when_ahead)) {
    const int slots = slots_of(options);
    if (options.timed_batches > 0)
        notes_.make(static_cast<std::size_t>(options.timed_batches > slots ? options.timed_batches : slots) *
                    (NotedWindows::one_in + 2));
}

template <Backend B>
void SourceCore<B>::make(CallRef<void(int)> make_slot, CallRef<void(int)> make_state) {
    const char* what = "source: making slot ";
    int number = 0;
    try {
        for (; number < slots_of(options_); ++number)
            make_slot(number);
        what = "source: making the state of worker ";
        for (number = 0; number < states_of(options_); ++number)
            make_state(number);
    } catch (...) {
        throw_after(what + std::to_string(number) + " failed: ");
    }
    ledger_->end = options_.batches;
    ledger_->errors_in_a_row = options_.errors_in_a_row;
}

template <Backend B>
void SourceCore<B>::close() noexcept {
    // What reads the slots may wait for a pipeline that is destroyed later.
    if (std::uncaught_exceptions() > exceptions_)
        ledger_->give_up_waits();
    join_workers();
    for (Slot* slot : ledger_->slots) {
        if (!ledger_->is_out(*slot))
            slot->settle_reads();
    }
}

// Fills a slot that is claimed for its batch. Returns false when the source ends there instead.
template <Backend B>
bool SourceCore<B>::fill_one(std::size_t worker, Slot& slot, FillNote* note) {
    try {
        slot.await_reads();
    } catch (const std::exception& exception) {
        std::throw_with_nested(
            Error(std::string("waiting for the work that reads its slot failed: ") + exception.what()));
    }
    {
        const SourceGuard lock(ledger_->mutex);
        slot.state = Slot::State::filling;
    }
    FillInProgress progress(this);
    if (note != nullptr)
        note->begin = FillNotes::now();
    const bool filled = fill_(source_, worker, slot);
    if (note != nullptr)
        note->end = FillNotes::now();
    return filled && !progress.stop;
}

// The same with the lock, which is given up meanwhile, and the outcome noted.
template <Backend B>
void SourceCore<B>::fill_claimed(std::size_t worker, Slot& slot, SourceGuard& lock) {
    FillNote* const note = notes_.claimed(slot.index, worker);
    lock.unlock();
    bool filled = false;
    std::exception_ptr thrown;
    SourceChecks<B>::taken_over(&slot);
    try {
        const DeviceGuard<B> device(ledger_->device);
        filled = fill_one(worker, slot, note);
    } catch (...) {
        thrown = std::current_exception();
    }
    SourceChecks<B>::handed_over(&slot);
    lock.lock();
    if (note != nullptr)
        note->settle(filled);
    ledger_->settle(slot, filled, std::move(thrown));
}

template <Backend B>
void SourceCore<B>::work(std::size_t worker) {
    [[maybe_unused]] const typename SourceChecks<B>::WorkerScope scope;
    SourceLedger<B>& ledger = *ledger_;
    SourceGuard lock(ledger.mutex);
    for (;;) {
        (void)ledger.mutex.wait(
            [&] { return stopping_ || ledger.claimed >= ledger.end || ledger.may_claim(); });
        if (stopping_ || ledger.claimed >= ledger.end)
            return;
        fill_claimed(worker, ledger.claim(), lock);
        ledger.mutex.changed();
    }
}

template <Backend B>
void SourceCore<B>::start() {
    if (started_)
        return;
    for (int worker = 0; worker < options_.workers; ++worker) {
        try {
            if (before_source_thread != nullptr)
                before_source_thread(worker);
            threads_.start([](void* source, std::size_t of) { static_cast<SourceCore*>(source)->work(of); },
                           this, static_cast<std::size_t>(worker));
        } catch (const std::exception& error) {
            join_workers();
            stopping_.store(false);
            std::throw_with_nested(Error("source: worker thread " + std::to_string(worker) + " of " +
                                         std::to_string(options_.workers) +
                                         " could not be started: " + error.what()));
        }
    }
    started_ = true;
}

// The first in line, or, where it does not wait for it, the last of those that are ready.
template <Backend B>
typename SourceCore<B>::Slot* SourceCore<B>::take(const char* call, bool waits) {
    require_outside(call);
    SourceLedger<B>& ledger = *ledger_;
    const std::int64_t asked = notes_.any() ? FillNotes::now() : 0;
    SourceGuard lock(ledger.mutex);
    for (;;) {
        if (stopping_ || ledger.next_index() >= ledger.end)
            return nullptr;
        if (!started_) [[unlikely]] {
            lock.unlock();
            start();
            lock.lock();
        }
        if (waits && ledger.ready.load() == 0)
            await_turn(lock);
        if (!waits)
            ledger.skip_all(); // The last that is ready may be behind them.
        while (!waits && ledger.ready.load() > 1)
            ledger.drop_front();
        const Slot* const slot = ledger.front();
        if (slot == nullptr || slot->state != Slot::State::ready || slot->last) {
            ledger.wanted = true;
            return nullptr;
        }
        if (slot->thrown != nullptr) {
            if (ledger.may_skip(0)) {
                ledger.skip(0);
                continue;
            }
            ledger.end_before(slot->index); // so that a loop around `next` ends whatever it catches
            throw_failure(*slot);
        }
        Slot& given = ledger.hand_out();
        SourceChecks<B>::taken_over(&given);
        notes_.given(given.index, asked);
        if (!waits)
            ledger.mutex.changed(); // Slots of those that were dropped are free.
        return &given;
    }
}

// Returns once it is known what became of the next batch.
template <Backend B>
void SourceCore<B>::await_turn(SourceGuard& lock) {
    SourceLedger<B>& ledger = *ledger_;
    const bool alone = options_.workers == 0;
    const auto may_go_on = [&] {
        if (const Slot* const slot = ledger.front(); slot != nullptr)
            return slot->state == Slot::State::ready;
        return ledger.next_index() >= ledger.end || (alone && ledger.may_claim()) || ledger.all_with_caller();
    };
    ledger.awaited = true;
    const bool in_time = ledger.mutex.wait(may_go_on, options_.timeout.count());
    ledger.awaited = false;
    if (!in_time)
        throw_late();
    if (ledger.front() != nullptr || ledger.next_index() >= ledger.end)
        return;
    if (!ledger.may_claim()) {
        throw Error("source: batch " + std::to_string(ledger.next_index()) +
                    " has no slot, since the caller holds all " + std::to_string(ledger.slots.size()) +
                    ": each is kept by a SourceBatch, or by a pipeline that has not enqueued it yet; give "
                    "some back before the next one, or give SourceOptions::slots more");
    }
    fill_claimed(0, ledger.claim(), lock);
}

template <Backend B>
void SourceCore<B>::join_workers() noexcept {
    {
        const SourceGuard lock(ledger_->mutex);
        stopping_.store(true);
    }
    ledger_->mutex.changed();
    threads_.join();
    for (const Slot* const slot : ledger_->slots)
        SourceChecks<B>::taken_over(slot);
}

template <Backend B>
void SourceCore<B>::stop() noexcept {
    if (FillInProgress* const fill = FillInProgress::of(this); fill != nullptr) {
        // This thread is one of those that would be waited for.
        fill->stop = true;
        return;
    }
    join_workers();
    const SourceGuard lock(ledger_->mutex);
    ledger_->drop_from(0);
}

template <Backend B>
void SourceCore<B>::rewind() {
    require_outside("rewind");
    join_workers();
    for (Slot* slot : ledger_->slots) {
        // Without the lock, since what reads one slot may have to give up another first.
        if (!ledger_->is_out(*slot))
            slot->await_reads();
    }
    const SourceGuard lock(ledger_->mutex);
    ledger_->start_over(options_.batches);
    notes_.clear();
    started_ = false;
    stopping_.store(false);
}

template <Backend B>
SkippedBatches SourceCore<B>::skipped() const {
    const SourceGuard lock(ledger_->mutex);
    return {ledger_->skipped, ledger_->first_skipped, ledger_->first_error};
}

template <Backend B>
std::vector<FillTime> SourceCore<B>::fill_times() const {
    if (!notes_.any())
        throw Error("fill_times: nothing has been noted; make the source with SourceOptions::timed_batches");
    const SourceGuard lock(ledger_->mutex);
    return notes_.all();
}

template <Backend B>
void SourceCore<B>::require_outside(const char* call) const {
    if (FillInProgress::of(this) != nullptr) {
        throw Error(std::string("source: ") + call +
                    " was called from within fill; the thread that made the source calls it");
    }
}

template <Backend B>
void SourceCore<B>::throw_failure(const Slot& slot) {
    std::string what = "source: filling batch " + std::to_string(slot.index) + " failed: ";
    if (slot.bad_before > 0)
        what = "source: " + detail::counted(slot.bad_before, "batch") +
               (slot.bad_before == 1 ? " in a row was" : " in a row were") + " left out, and filling batch " +
               std::to_string(slot.index) + " failed as well: ";
    try {
        std::rethrow_exception(slot.thrown);
    } catch (...) {
        throw_after(what);
    }
}

template <Backend B>
void SourceCore<B>::throw_late() const {
    const Slot* const slot = ledger_->front();
    const char* doing = "no worker had a slot for it, since work has not given back those that it reads";
    if (slot != nullptr) {
        doing = slot->state == Slot::State::filling
                    ? "its worker was in fill"
                    : "its worker was waiting for the work that reads its slot";
    }
    throw Error("source: batch " + std::to_string(ledger_->next_index()) + " was not ready within " +
                std::to_string(options_.timeout.count()) + " ms: " + doing);
}

} // namespace sluice::detail
