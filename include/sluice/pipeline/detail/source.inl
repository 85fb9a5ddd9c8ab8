// Bodies of source.hpp.
#pragma once

#include <sluice/pipeline/detail/source_places.hpp>

namespace sluice {

namespace detail {

/// What a pipeline does with `*batch` of a source's batch.
struct HeldBatchAccess {
    /// A hold of it. Throws `Error` when it has been given back.
    template <class Batch, Backend B>
    static SourceHold<B> hold(const HeldBatch<Batch, B>& batch) {
        return batch.sluice_source_hold();
    }
};

/// What a pipeline submits of a source's batch. Throws `Error` where there is none.
template <class Batch, Backend B>
const Batch& require_source_batch(const SourceBatch<Batch, B>& batch) {
    if (!batch)
        throw Error("submit: the batch is empty, its source has ended; look at it before it is submitted");
    return *batch;
}

/// For tests: called before each worker thread is made, which fails if it throws.
inline void (*before_source_thread)(int worker) = nullptr;

} // namespace detail

template <class Batch, class State, class Fill, Backend B>
template <class MakeSlot, class MakeState>
Source<Batch, State, Fill, B>::Source(MakeSlot make_slot, MakeState make_state, Fill fill,
                                      SourceOptions<B> options)
    : options_(options), device_(B::current_device()), fill_(std::move(fill)),
      ledger_(new Places(device_, options.when_ahead != WhenAhead::wait,
                         options.when_ahead == WhenAhead::drop_oldest)) {
    (void)check_fill();
    detail::require_callable("source: make_slot", make_slot);
    detail::require_callable("source: make_state", make_state);
    detail::require_callable("source: fill", fill_);
    detail::require_within("SourceOptions::workers", options.workers, 0, 1 << 16, "the caller fills");
    detail::require_within("SourceOptions::slots", options.slots, 0, detail::most_of_option,
                           "two more than workers");
    detail::require_timeout("SourceOptions::timeout", options.timeout.count());
    if (options.workers == 0 && options.timeout.count() > 0) {
        throw Error(
            "a source without workers has no timeout, since the caller's thread fills each batch; expected "
            "0 ms, or a worker, got " +
            std::to_string(options.timeout.count()) + " ms");
    }
    detail::require_within("SourceOptions::timed_batches", options.timed_batches, 0, detail::most_of_option);
    detail::require_named("SourceOptions::when_ahead", options.when_ahead, WhenAhead::drop_newest,
                          "wait, drop_oldest or drop_newest");
    const int slots = options.slots > 0 ? options.slots : options.workers + 2;
    if (options.when_ahead != WhenAhead::wait && (options.workers == 0 || slots <= options.workers)) {
        throw Error(
            "a source that drops batches needs workers, and more slots than workers: one that each of them "
            "fills, and one whose batch waits; got " +
            std::to_string(options.workers) + " workers and " + std::to_string(slots) + " slots");
    }
    if (options.timed_batches > 0)
        notes_.make(static_cast<std::size_t>(options.timed_batches > slots ? options.timed_batches : slots) *
                    (detail::NotedWindows::one_in + 2));
    const int states = options.workers > 0 ? options.workers : 1;
    states_.reserve(static_cast<std::size_t>(states));
    const char* what = "source: making slot ";
    int number = 0;
    try {
        for (; number < slots; ++number)
            ledger_->make(make_slot, number);
        what = "source: making the state of worker ";
        for (number = 0; number < states; ++number)
            states_.push_back(make_state(number));
    } catch (...) {
        detail::throw_after(what + std::to_string(number) + " failed: ");
    }
    ledger_->end = options.batches;
    ledger_->errors_in_a_row = options.errors_in_a_row;
}

template <class Batch, class State, class Fill, Backend B>
Source<Batch, State, Fill, B>::~Source() {
    // What reads the slots may wait for a pipeline that is destroyed later.
    if (std::uncaught_exceptions() > exceptions_)
        ledger_->give_up_waits();
    join_workers();
    for (Slot* slot : ledger_->slots) {
        try {
            if (!ledger_->is_out(*slot))
                slot->await_reads();
        } catch (...) {
            // The device is lost, and the next wait for its streams reports the error.
        }
    }
}

template <class Batch, class State, class Fill, Backend B>
constexpr bool Source<Batch, State, Fill, B>::check_fill() {
    using Called = detail::FillCall<State, Fill, Batch>;
    constexpr bool fits = requires { typename Called::type; };
    static_assert(fits,
                  "sluice::Source: fill must be callable as fill(std::size_t index, Batch& out), or, with "
                  "make_state, as fill(state, index, out)");
    if constexpr (fits) {
        using Result = typename Called::type;
        constexpr bool answers = std::is_void_v<Result> || std::same_as<std::remove_cvref_t<Result>, bool>;
        static_assert(answers,
                      "sluice::Source: fill must return nothing, or bool, of which false ends the source "
                      "before that batch");
        return answers;
    } else {
        return false;
    }
}

// Whether there is batch `index`, and in `out`.
template <class Batch, class State, class Fill, Backend B>
template <class... Stop>
bool Source<Batch, State, Fill, B>::call_fill(State& state, std::size_t index, Batch& out, Stop... stop) {
    if constexpr (!check_fill()) {
        return false;
    } else if constexpr (sizeof...(stop) == 0 && detail::FillCall<State, Fill, Batch>::takes_stop) {
        return call_fill(state, index, out, FillStop(stopping_));
    } else {
        detail::FillInProgress progress(this);
        const auto call = [&]() -> decltype(auto) {
            if constexpr (std::same_as<State, NoState>) {
                return fill_(index, out, stop...);
            } else {
                return fill_(state, index, out, stop...);
            }
        };
        if constexpr (std::is_void_v<decltype(call())>) {
            call();
            return !progress.stop;
        } else {
            const bool filled = call();
            return filled && !progress.stop;
        }
    }
}

// Fills a slot that is claimed for its batch. Returns false when the source ends there instead.
template <class Batch, class State, class Fill, Backend B>
bool Source<Batch, State, Fill, B>::fill_one(State& state, Slot& slot, detail::FillNote* note) {
    try {
        slot.await_reads();
    } catch (const std::exception& exception) {
        std::throw_with_nested(
            Error(std::string("waiting for the work that reads its slot failed: ") + exception.what()));
    }
    {
        const Guard lock(ledger_->mutex);
        slot.state = Slot::State::filling;
    }
    [[maybe_unused]] const typename Checks::Filling filling(
        static_cast<Place&>(slot).batch(), !std::exchange(slot.was_filled, true), options_.keeps_slots);
    if (note == nullptr)
        return call_fill(state, slot.index, static_cast<Place&>(slot).batch());
    note->begin = detail::FillNotes::now();
    const bool filled = call_fill(state, slot.index, static_cast<Place&>(slot).batch());
    note->end = detail::FillNotes::now();
    return filled;
}

// The same with the lock, which is given up meanwhile, and the outcome noted.
template <class Batch, class State, class Fill, Backend B>
void Source<Batch, State, Fill, B>::fill_claimed(std::size_t worker, Slot& slot, Guard& lock) {
    detail::FillNote* const note = notes_.claimed(slot.index, worker);
    lock.unlock();
    bool filled = false;
    std::exception_ptr thrown;
    Checks::taken_over(&slot);
    try {
        const DeviceGuard<B> device(device_);
        filled = fill_one(states_[worker], slot, note);
    } catch (...) {
        thrown = std::current_exception();
    }
    Checks::handed_over(&slot);
    lock.lock();
    if (note != nullptr)
        note->settle(filled);
    ledger_->settle(slot, filled, std::move(thrown));
}

template <class Batch, class State, class Fill, Backend B>
void Source<Batch, State, Fill, B>::work(std::size_t worker) {
    [[maybe_unused]] const typename Checks::WorkerScope scope;
    Places& ledger = *ledger_;
    Guard lock(ledger.mutex);
    for (;;) {
        (void)ledger.mutex.wait(
            [&] { return stopping_ || ledger.claimed >= ledger.end || ledger.may_claim(); });
        if (stopping_ || ledger.claimed >= ledger.end)
            return;
        fill_claimed(worker, ledger.claim(), lock);
        ledger.mutex.changed();
    }
}

template <class Batch, class State, class Fill, Backend B>
void Source<Batch, State, Fill, B>::start() {
    if (started_)
        return;
    for (int worker = 0; worker < options_.workers; ++worker) {
        try {
            if (detail::before_source_thread != nullptr)
                detail::before_source_thread(worker);
            threads_.start([](void* source, std::size_t of) { static_cast<Source*>(source)->work(of); }, this,
                           static_cast<std::size_t>(worker));
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

template <class Batch, class State, class Fill, Backend B>
typename Source<Batch, State, Fill, B>::value_type Source<Batch, State, Fill, B>::next() {
    return take("next", true);
}

template <class Batch, class State, class Fill, Backend B>
typename Source<Batch, State, Fill, B>::value_type Source<Batch, State, Fill, B>::newest() {
    return take("newest", options_.workers == 0);
}

// The first in line, or, where it does not wait for it, the last of those that are ready.
template <class Batch, class State, class Fill, Backend B>
typename Source<Batch, State, Fill, B>::value_type Source<Batch, State, Fill, B>::take(const char* call,
                                                                                       bool waits) {
    require_outside(call);
    Places& ledger = *ledger_;
    const std::int64_t asked = notes_.any() ? detail::FillNotes::now() : 0;
    Guard lock(ledger.mutex);
    for (;;) {
        if (stopping_ || ledger.next_index() >= ledger.end)
            return {};
        if (!started_) [[unlikely]] {
            lock.unlock();
            start();
            lock.lock();
        }
        if (waits && ledger.ready.load() == 0)
            await_turn(lock);
        while (!waits && ledger.ready.load() > 1)
            ledger.drop_front();
        const Slot* const slot = ledger.front();
        if (slot == nullptr || slot->state != Slot::State::ready || slot->last) {
            ledger.wanted = true;
            return {};
        }
        if (slot->thrown != nullptr) {
            if (ledger.skip())
                continue;
            ledger.end_before(slot->index); // so that a loop around `next` ends whatever it catches
            throw_failure(*slot);
        }
        Slot& given = ledger.hand_out();
        Checks::taken_over(&given);
        notes_.given(given.index, asked);
        if (!waits)
            ledger.mutex.changed(); // Slots of those that were dropped are free.
        return value_type(static_cast<Place&>(given).value, given);
    }
}

// Returns once it is known what became of the next batch.
template <class Batch, class State, class Fill, Backend B>
void Source<Batch, State, Fill, B>::await_turn(Guard& lock) {
    Places& ledger = *ledger_;
    const bool alone = options_.workers == 0;
    const auto may_go_on = [&] {
        if (const Slot* const slot = ledger.front(); slot != nullptr)
            return slot->state == Slot::State::ready;
        return (alone && ledger.may_claim()) || ledger.all_with_caller();
    };
    ledger.awaited = true;
    const bool in_time = ledger.mutex.wait(may_go_on, options_.timeout.count());
    ledger.awaited = false;
    if (!in_time)
        throw_late();
    if (ledger.front() != nullptr)
        return;
    if (!ledger.may_claim()) {
        throw Error(
            "source: batch " + std::to_string(ledger.next_index()) +
            " has no slot, since the caller holds all " + std::to_string(ledger.slots.size()) +
            ": each is kept by a SourceBatch, or by a pipeline that has not enqueued it yet; give some back "
            "before the next one, or give SourceOptions::slots more");
    }
    fill_claimed(0, ledger.claim(), lock);
}

template <class Batch, class State, class Fill, Backend B>
void Source<Batch, State, Fill, B>::join_workers() noexcept {
    {
        const Guard lock(ledger_->mutex);
        stopping_.store(true);
    }
    ledger_->mutex.changed();
    threads_.join();
    for (const Slot* const slot : ledger_->slots)
        Checks::taken_over(slot);
}

template <class Batch, class State, class Fill, Backend B>
void Source<Batch, State, Fill, B>::stop() noexcept {
    if (detail::FillInProgress* const fill = detail::FillInProgress::of(this); fill != nullptr) {
        // This thread is one of those that would be waited for.
        fill->stop = true;
        return;
    }
    join_workers();
    const Guard lock(ledger_->mutex);
    ledger_->drop_from(0);
}

template <class Batch, class State, class Fill, Backend B>
void Source<Batch, State, Fill, B>::rewind() {
    require_outside("rewind");
    join_workers();
    for (Slot* slot : ledger_->slots) {
        // Without the lock, since what reads one slot may have to give up another first.
        if (!ledger_->is_out(*slot))
            slot->await_reads();
    }
    const Guard lock(ledger_->mutex);
    ledger_->start_over(options_.batches);
    notes_.clear();
    started_ = false;
    stopping_.store(false);
}

template <class Batch, class State, class Fill, Backend B>
SkippedBatches Source<Batch, State, Fill, B>::skipped() const {
    const Guard lock(ledger_->mutex);
    return {ledger_->skipped, ledger_->first_skipped, ledger_->first_error};
}

template <class Batch, class State, class Fill, Backend B>
std::vector<FillTime> Source<Batch, State, Fill, B>::fill_times() const {
    if (!notes_.any())
        throw Error("fill_times: nothing has been noted; make the source with SourceOptions::timed_batches");
    const Guard lock(ledger_->mutex);
    return notes_.all();
}

template <class Batch, class State, class Fill, Backend B>
void Source<Batch, State, Fill, B>::require_outside(const char* call) const {
    if (detail::FillInProgress::of(this) != nullptr) {
        throw Error(std::string("source: ") + call +
                    " was called from within fill; the thread that made the source calls it");
    }
}

template <class Batch, class State, class Fill, Backend B>
void Source<Batch, State, Fill, B>::throw_failure(const Slot& slot) {
    std::string what = "source: filling batch " + std::to_string(slot.index) + " failed: ";
    if (ledger_->skipped_in_a_row > 0)
        what = "source: " + std::to_string(ledger_->skipped_in_a_row) +
               " batches in a row were left out, and filling batch " + std::to_string(slot.index) +
               " failed as well: ";
    try {
        std::rethrow_exception(slot.thrown);
    } catch (...) {
        detail::throw_after(what);
    }
}

template <class Batch, class State, class Fill, Backend B>
void Source<Batch, State, Fill, B>::throw_late() const {
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

} // namespace sluice
