// What callables that a driver calls have thrown, by stream.
#pragma once

#include <sluice/backend/detail/owned.hpp>
#include <sluice/backend/detail/shared.hpp>

#include <atomic>
#include <cstddef>
#include <exception>
#include <mutex>
#include <utility>

#include <sluice/backend/detail/list.hpp>

namespace sluice::detail {

/// What callables of each stream have thrown, until it is cleared or the stream goes. A driver gives a handle that has
/// become free to another stream: so a callable does not know its stream by the handle, but shares a record with it,
/// which outlives the stream for as long as callables are on their way. Any thread may use it.
class StreamFailures {
public:
    using StreamId = const void*;

    /// One stream's failure.
    class Record {
    public:
        /// Whether the stream has failed, or had when it went: callables that come later are skipped. Those of a graph
        /// may come again when their stream is destroyed, when a failure could not be cleared.
        bool skips(bool comes_again) const noexcept {
            return failed_.load(std::memory_order_acquire) &&
                   !(comes_again && gone_.load(std::memory_order_acquire));
        }

    private:
        friend class StreamFailures;
        std::exception_ptr thrown_; // this and the next under the owner's mutex
        std::atomic<bool> failed_{false};
        std::atomic<bool> gone_{false};
    };
    using RecordRef = Shared<Record>;

    /// The record of the stream that has the handle now. The first call for a stream allocates.
    RecordRef record_of(StreamId stream) {
        const std::lock_guard lock(mutex_);
        if (const Entry* const entry = find(stream); entry != nullptr)
            return entry->record;
        entries_.push_back({stream, make_shared_value<Record>()});
        return entries_.back().record;
    }

    /// Whether a stream that is still there has failed: all that most calls ask.
    bool any() const noexcept { return failures_.load(std::memory_order_acquire) != 0; }

    /// Keeps what a callable threw, unless the stream has failed already. Of a destroyed stream it is dropped.
    void keep(Record& record, std::exception_ptr thrown) {
        const std::lock_guard lock(mutex_);
        if (record.failed_.load(std::memory_order_relaxed))
            return;
        record.failed_.store(true, std::memory_order_release);
        if (record.gone_.load(std::memory_order_relaxed))
            return;
        record.thrown_ = std::move(thrown);
        failures_.fetch_add(1, std::memory_order_release);
    }
    /// What the stream has failed with; null if it has not.
    std::exception_ptr of(StreamId stream) {
        const std::lock_guard lock(mutex_);
        const Entry* const entry = find(stream);
        return entry == nullptr ? nullptr : entry->record->thrown_;
    }
    /// Forgets the stream's failure.
    void clear(StreamId stream) {
        std::exception_ptr former; // goes after the lock
        const std::lock_guard lock(mutex_);
        if (Entry* const entry = find(stream); entry != nullptr && take(*entry->record, former))
            entry->record->failed_.store(false, std::memory_order_release);
    }
    /// The stream is about to be destroyed: the next one with its handle begins without a failure, whatever this one's
    /// callables still throw.
    void forget(StreamId stream) {
        std::exception_ptr former;
        RecordRef record; // likewise
        const std::lock_guard lock(mutex_);
        Entry* const entry = find(stream);
        if (entry == nullptr)
            return;
        (void)take(*entry->record, former);
        entry->record->gone_.store(true, std::memory_order_release);
        record = std::move(entry->record);
        *entry = std::move(entries_.back());
        entries_.pop_back();
    }

private:
    struct Entry {
        StreamId stream;
        RecordRef record;
    };
    Entry* find(StreamId stream) noexcept {
        for (Entry& entry : entries_) {
            if (entry.stream == stream)
                return &entry;
        }
        return nullptr;
    }
    bool take(Record& record, std::exception_ptr& thrown) noexcept {
        if (!record.failed_.load(std::memory_order_relaxed))
            return false;
        thrown.swap(record.thrown_);
        failures_.fetch_sub(1, std::memory_order_release);
        return true;
    }

    std::mutex mutex_;
    List<Entry> entries_; // of streams that have had a callable
    std::atomic<std::size_t> failures_{0};
};

} // namespace sluice::detail
