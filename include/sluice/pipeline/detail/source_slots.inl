// Bodies of source_slots.hpp.
#pragma once

#include <concepts>
#include <mutex>
#include <utility>

#include <sluice/backend/detail/semaphore_waits.hpp>
#include <sluice/backend/error.hpp>
#include <sluice/backend/host.hpp>
#include <sluice/pipeline/detail/checked/source_checks.hpp>

namespace sluice::detail {

/// Whether the latest record of `event` has been reached for sure, whatever became of the work before it.
template <Backend B>
bool has_been_reached(const BasicEvent<B>& event) noexcept {
    try {
        // The Host backend's own `is_done` throws the fault of the work before the record, which is over then.
        if constexpr (std::same_as<typename B::NativeEvent, host::Event*>) {
            return host::Functions::event_reached(event.get());
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
void SourceSlot<B>::await_reads() {
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

template <Backend B>
void SourceSlot<B>::settle_reads() noexcept {
    try {
        await_reads();
    } catch (...) {
        // The device is lost, and the next wait for its streams reports the error.
    }
}

template <Backend B>
bool SourceSlot<B>::has_been_read() const noexcept {
    for (const auto& read : reads) {
        if (read->used && !has_been_reached(read->event))
            return false;
    }
    return unsafe == nullptr;
}

template <Backend B>
void SourceLedger<B>::add(Slot& slot) {
    slot.ledger = this;
    slot.ordinal = slots.size();
    free_.set_size(slots.size() + 1);
    line_.set_size(slots.size() + 1);
    slots.push_back(&slot); // From here on nothing throws.
    most_held = slots.size();
    push_free(slot);
}

template <Backend B>
void SourceLedger<B>::abandon() noexcept {
    {
        const std::lock_guard lock(mutex);
        if (--references_ > 0)
            return;
    }
    destroy_(this);
}

template <Backend B>
SourceLedger<B>::~SourceLedger() {
    for (Slot* slot : slots)
        slot->settle_reads();
    for (Slot* slot : slots)
        delete_(slot);
}

template <Backend B>
bool SourceLedger<B>::all_with_caller() const noexcept {
    for (const Slot* slot : slots) {
        if (slot->callers == 0)
            return false;
    }
    return true;
}

template <Backend B>
void SourceLedger<B>::settle(Slot& slot, bool filled, std::exception_ptr exception) noexcept {
    slot.last = !filled && exception == nullptr;
    slot.thrown = std::move(exception);
    slot.thrown_by_fill = slot.state == Slot::State::filling;
    slot.state = Slot::State::ready;
    const bool may_go_on = slot.thrown != nullptr && slot.thrown_by_fill && errors_in_a_row > 0;
    if (!filled && !may_go_on && slot.index < end)
        end = slot.index + 1;
    drop_from(end);
    if (drops)
        skip_all(); // They would take the places of good ones, and hide those behind them.
    count_ready();
}

template <Backend B>
typename SourceLedger<B>::Slot& SourceLedger<B>::hand_out() noexcept {
    Slot& slot = line_.take();
    give_to_caller(slot);
    wanted = false;
    count_ready();
    return slot;
}

template <Backend B>
void SourceLedger<B>::hand_out_joined(Slot& place, Slot& first, Slot& second, bool is_shared) {
    std::size_t part = 0;
    for (Slot* const slot : {&first, &second}) {
        slot->ledger->hold(*slot, false);
        place.parts[part++] = slot;
    }
    std::size_t sure = first.ledger->sure();
    if (!is_shared && second.ledger->sure() < sure)
        sure = second.ledger->sure();
    const std::lock_guard lock(mutex);
    std::size_t at = 0;
    while (&free_[at] != &place)
        ++at;
    free_.take(at).index = claimed++;
    give_to_caller(place);
    ready.store(sure);
}

template <Backend B>
void SourceLedger<B>::give_to_caller(Slot& slot) noexcept {
    slot.state = Slot::State::out;
    slot.callers = 1;
    ++references_;
}

template <Backend B>
bool SourceLedger<B>::may_skip(std::size_t at) const noexcept {
    const Slot& slot = line_[at];
    return slot.state == Slot::State::ready && slot.thrown != nullptr && slot.thrown_by_fill &&
           slot.bad_before < errors_in_a_row;
}

template <Backend B>
void SourceLedger<B>::skip(std::size_t at) {
    Slot& slot = line_.take(at);
    if (skipped == 0) {
        try {
            std::rethrow_exception(slot.thrown);
        } catch (...) {
            first_error = words_of_handled();
        }
        first_skipped = slot.index;
    }
    ++skipped;
    const bool is_last = at == line_.size();
    if (!(is_last ? dropped_last_ : line_[at].behind_dropped)) // A good one between ends the row.
        (is_last ? bad_last_ : line_[at].bad_before) += slot.bad_before + 1;
    slot.thrown = nullptr;
    push_free(slot);
    count_ready();
    mutex.changed();
}

template <Backend B>
void SourceLedger<B>::skip_all() {
    for (std::size_t at = 0; at < line_.size();) {
        if (line_[at].has_batch())
            ++at;
        else if (may_skip(at))
            skip(at);
        else
            return;
    }
}

template <Backend B>
void SourceLedger<B>::start_over(std::size_t batches) noexcept {
    free_.clear();
    line_.clear();
    for (Slot* slot : slots) {
        if (slot->state == Slot::State::out)
            continue;
        slot->last = false;
        slot->thrown = nullptr;
        push_free(*slot);
    }
    claimed = 0;
    skipped = first_skipped = bad_last_ = 0;
    first_error.clear();
    wanted = dropped_last_ = false;
    end = batches;
    dropped.store(0);
    count_ready();
}

template <Backend B>
bool SourceLedger<B>::is_out(const Slot& slot) {
    const std::lock_guard lock(mutex);
    return slot.state == Slot::State::out;
}

template <Backend B>
void SourceLedger<B>::hold(Slot& slot, bool elsewhere) {
    const std::lock_guard lock(mutex);
    if (slot.callers + slot.others == 0)
        throw Error("source: the batch has been given back, and its slot may be filled again; keep its "
                    "SourceBatch while it is used");
    ++(elsewhere ? slot.others : slot.callers);
    for (Slot* part : slot.parts) {
        if (part != nullptr)
            part->ledger->hold(*part, elsewhere);
    }
}

template <Backend B>
void SourceLedger<B>::done(Slot& slot, bool elsewhere) noexcept {
    bool gone = false;
    Slot* const parts[] = {slot.parts[0],
                           slot.parts[1]}; // The slot may be another batch's as soon as it is free.
    if (parts[0] == nullptr)
        SourceChecks<B>::handed_over(&slot);
    {
        const std::lock_guard lock(mutex);
        --(elsewhere ? slot.others : slot.callers);
        if (slot.callers + slot.others == 0) {
            push_free(slot);
            gone = --references_ == 0;
        }
        // Within the lock, since the ledger may be gone as soon as it is free.
        mutex.changed();
    }
    if (gone)
        destroy_(this);
    for (Slot* part : parts) {
        if (part != nullptr)
            part->ledger->done(*part, elsewhere);
    }
}

template <Backend B>
void SourceLedger<B>::release(Slot& slot, BasicStreamRef<B> stream) {
    if (records(stream)) {
        throw Error("source: a batch was released on a stream that is being captured, whose replays the "
                    "source would not know of; release it on the stream that the graph is launched on, after "
                    "each launch");
    }
    for (Slot* part : slot.parts) {
        if (part != nullptr)
            part->ledger->release(*part, stream);
    }
    if (slot.parts[0] != nullptr)
        return;
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

template <Backend B>
void SourceLedger<B>::give_up_waits() noexcept {
    if constexpr (SemaphoreCalls<B>::there) {
        for (Slot* const slot : slots) {
            for (std::size_t i = 0;; ++i) {
                typename B::NativeStream reader{};
                {
                    const std::lock_guard lock(mutex);
                    if (i == slot->reads.size())
                        break;
                    const auto& read = *slot->reads[i];
                    if (!read.busy && has_been_reached(read.event))
                        continue; // The stream may wait for what comes later, of which this is no business.
                    reader = read.stream;
                }
                SemaphoreWaits::instance().give_up_around(reader);
            }
        }
    }
}

template <Backend B>
void SourceLedger<B>::push_free(Slot& slot) noexcept {
    slot.state = Slot::State::free;
    free_.push(slot);
}

template <Backend B>
void SourceLedger<B>::count_ready() noexcept {
    std::size_t count = 0;
    while (count < line_.size() && line_[count].has_batch())
        ++count;
    ready.store(count);
}

template <Backend B>
typename SourceSlot<B>::Read& SourceLedger<B>::begin_read(Slot& slot, BasicStreamRef<B> stream) {
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
            if (!read->used && read->device == of)
                return take(*read);
        }
    }
    const DeviceGuard<B> guard(of);
    auto made = make_owned<Read>(Slot::read_options, of);
    const std::lock_guard lock(mutex);
    slot.reads.push_back(std::move(made));
    return take(*slot.reads.back());
}

template <Backend B>
bool SourceLedger<B>::waited_for(BasicStreamRef<B> stream) noexcept {
    try {
        stream.sync();
        return true;
    } catch (...) {
        // The Host backend waits before it throws the fault of a stream's work.
        return std::same_as<typename B::NativeStream, host::Queue*>;
    }
}

template <Backend B>
void SourceLedger<B>::destroy(SourceLedger* ledger) noexcept {
    try {
        const DeviceGuard<B> guard(ledger->device);
        delete ledger;
    } catch (...) {
        delete ledger; // The device is lost.
    }
}

} // namespace sluice::detail
