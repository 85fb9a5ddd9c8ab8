/// \file
/// Numbers for keys, so that keys that come again are compared as numbers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>

#include <sluice/backend/detail/list.hpp>
#include <sluice/backend/detail/owned.hpp>
#include <sluice/memory/detail/allocations.hpp>
#include <sluice/pipeline/detail/boundary/batch_key.hpp>

namespace sluice::detail {

/// Gives equal keys the same number, and different ones different numbers, never 0. It remembers the last 512 keys: one
/// that was forgotten gets another number.
class KeyNumbers {
public:
    std::uint64_t number_of(const KeyBytes& key) {
        const std::size_t hash =
            std::hash<std::string_view>{}({reinterpret_cast<const char*>(key.data()), key.size()});
        for (std::size_t i = 0; i < hashes_.size(); ++i) {
            if (hashes_[i] == hash && entries_[i].key == key)
                return entries_[i].number;
        }
        const std::uint64_t number = ++last_;
        if (hashes_.size() < most) {
            entries_.push_back({key, number});
            hashes_.push_back(hash);
        } else {
            const std::size_t oldest = number % most; // They came in this order.
            hashes_[oldest] = hash;
            entries_[oldest] = {key, number};
        }
        return number;
    }

private:
    static constexpr std::size_t most = 512;
    struct Entry {
        KeyBytes key;
        std::uint64_t number;
    };
    List<std::size_t> hashes_; // of the entries, one after the other to be looked through fast
    List<Entry> entries_;
    std::uint64_t last_ = most - 1; // so that the oldest entry is at its number modulo `most`
};

/// The same for batches. Most batches come again in the same order with the same bytes: then no key is made.
class BatchNumbers {
public:
    BatchNumbers() = default;
    BatchNumbers(const BatchNumbers&) = delete;
    BatchNumbers& operator=(const BatchNumbers&) = delete;

    /// The number of the batch at `value`; 0 when it cannot be told from others. `Ops` tell about its type: `raw_bytes`
    /// decide, if there are any, and otherwise what `append_key(key, value)` appends. `place` counts as well.
    template <class Ops>
    std::uint64_t number_of(const Ops& ops, const void* value, const void* place) {
        const std::uint64_t changes = Allocations::instance().changes();
        if (last_->next->is(ops, value, place, changes)) [[likely]] {
            last_ = last_->next;
            return last_->number;
        }
        key_.clear();
        const bool known = ops.append_key(key_, value);
        append_scalar(key_, place);
        if (!known)
            return 0;
        const std::uint64_t number = numbers_.number_of(key_);
        if (ops.raw_bytes > 0)
            note(&ops, value, ops.raw_bytes, place, changes, number);
        return number;
    }

private:
    static constexpr std::size_t most = 256;
    struct Seen {
        const void* ops = nullptr; // Null: none that a batch has.
        const void* place = nullptr;
        std::uint64_t changes = 0;
        std::uint64_t number = 0;
        Seen* next = this; // What came after it the last time.
        List<std::byte> raw;

        template <class Ops>
        bool is(const Ops& of, const void* value, const void* at, std::uint64_t when) const noexcept {
            return ops == &of && place == at && changes == when &&
                   std::memcmp(raw.data(), value, of.raw_bytes) == 0;
        }
    };

    void note(const void* ops, const void* value, std::size_t bytes, const void* place, std::uint64_t changes,
              std::uint64_t number) {
        Seen& seen = place_of(number);
        seen.ops = ops;
        seen.place = place;
        seen.changes = changes;
        seen.number = number;
        const std::byte* const begin = static_cast<const std::byte*>(value);
        seen.raw.resize(bytes);
        std::memcpy(seen.raw.data(), begin, bytes);
        last_->next = &seen;
        last_ = &seen;
    }

    // Where the batch of this number is noted, or else the oldest note's place, or a new one.
    Seen& place_of(std::uint64_t number) {
        for (const auto& seen : seen_) {
            if (seen->number == number)
                return *seen;
        }
        if (seen_.size() == most)
            return *seen_[oldest_++ % most];
        return *seen_.emplace_back(make_owned<Seen>());
    }

    KeyNumbers numbers_;
    KeyBytes key_;
    List<Owned<Seen>> seen_;
    std::size_t oldest_ = 0;
    Seen none_;
    Seen* last_ = &none_; // The one that came last.
};

} // namespace sluice::detail
