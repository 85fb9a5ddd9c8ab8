// Bodies of source_slots.hpp: the slot of a further batch, and what is dropped for it.
#pragma once

#include <utility>

namespace sluice::detail {

template <Backend B>
typename SourceLedger<B>::Slot& SourceLedger<B>::claim() noexcept {
    Slot& slot = take_place();
    slot.state = Slot::State::claimed;
    slot.index = claimed++;
    slot.bad_before = std::exchange(bad_last_, 0);
    slot.behind_dropped = std::exchange(dropped_last_, false);
    line_.push(slot);
    return slot;
}

template <Backend B>
typename SourceLedger<B>::Slot& SourceLedger<B>::take_place() noexcept {
    if (!drops)
        return free_.take();
    for (std::size_t at = 0; at < free_.size(); ++at) {
        if (free_[at].has_been_read())
            return free_.take(at);
    }
    // The filling thread must not wait for the work that reads the others.
    if (const std::size_t at = droppable(); at < line_.size())
        return drop(at);
    return free_.take();
}

template <Backend B>
std::size_t SourceLedger<B>::droppable() const noexcept {
    std::size_t found = line_.size();
    if (!drops)
        return found;
    const bool keeps_first = awaited || (wanted && ready.load() == 1);
    for (std::size_t at = keeps_first ? 1 : 0; at < line_.size(); ++at) {
        if (!line_[at].has_batch())
            continue;
        found = at;
        if (drops_oldest)
            break;
    }
    return found;
}

template <Backend B>
typename SourceLedger<B>::Slot& SourceLedger<B>::drop(std::size_t at) noexcept {
    dropped.store(dropped.load() + 1);
    // Bad batches before and behind it are not in a row.
    (at + 1 < line_.size() ? line_[at + 1].behind_dropped : dropped_last_) = true;
    Slot& slot = line_.take(at);
    count_ready();
    return slot;
}

template <Backend B>
void SourceLedger<B>::drop_front() noexcept {
    push_free(drop(0));
}

template <Backend B>
void SourceLedger<B>::drop_from(std::size_t index) noexcept {
    for (std::size_t at = line_.size(); at > 0 && line_[at - 1].index >= index; --at) {
        if (line_[at - 1].has_batch())
            push_free(drop(at - 1));
    }
}

template <Backend B>
void SourceLedger<B>::end_before(std::size_t index) noexcept {
    end = index;
    drop_from(index);
}

} // namespace sluice::detail
