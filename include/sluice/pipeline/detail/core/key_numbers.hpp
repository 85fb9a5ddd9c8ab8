// Numbers for keys, so that keys that come again are compared as numbers, and batches that wait for stages, with theirs.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>

#include <sluice/backend/detail/list.hpp>
#include <sluice/backend/detail/owned.hpp>
#include <sluice/memory/detail/allocations.hpp>
#include <sluice/pipeline/batch_read.hpp>
#include <sluice/pipeline/detail/boundary/batch_key.hpp>
#include <sluice/pipeline/detail/boundary/plan_data.hpp>
#include <sluice/pipeline/detail/boundary/stage_call.hpp>
#include <sluice/pipeline/detail/core/slot_table.hpp>

namespace sluice::detail {

/// As memcmp and memcpy; of a number or a pointer, as most batches are, without a call.
/// @{
inline bool same_bytes(const void* a, const void* b, std::size_t bytes) noexcept {
    if (bytes == sizeof(std::uint64_t))
        return std::memcmp(a, b, sizeof(std::uint64_t)) == 0;
    return bytes == sizeof(std::uint32_t) ? std::memcmp(a, b, sizeof(std::uint32_t)) == 0
                                          : std::memcmp(a, b, bytes) == 0;
}
inline void copy_bytes(void* to, const void* from, std::size_t bytes) noexcept {
    if (bytes == sizeof(std::uint64_t))
        std::memcpy(to, from, sizeof(std::uint64_t));
    else if (bytes == sizeof(std::uint32_t))
        std::memcpy(to, from, sizeof(std::uint32_t));
    else
        std::memcpy(to, from, bytes);
}
/// @}

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
    BatchNumbers& operator=(BatchNumbers&&) = delete;

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
                   same_bytes(raw.data(), value, of.raw_bytes);
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

/// A number for all that a callable may read in the slots on the host: their bytes, what their members hold elsewhere,
/// where they show it, and which allocations they point to. The same state has the same number.
class SlotsNumber {
public:
    SlotsNumber(const PlanData& plan, const SlotTable& slots) {
        // But those of CPU stages, which write them when they run: these must not be read when a stage is called.
        for (const StagePlan& stage : plan.stages) {
            if (stage.maker < 0 || stage.hands_on || !stage.capturable)
                continue;
            const auto maker = static_cast<std::size_t>(stage.maker);
            for (std::size_t slot = 0; slot < slots.count(); ++slot)
                slots_.push_back({slots.at(maker, slot), &slots.ops(maker)});
            told_by_their_bytes_ = told_by_their_bytes_ && slots.ops(maker).told_by_bytes;
        }
    }

    std::uint64_t get() {
        const std::uint64_t changes = Allocations::instance().changes();
        if (told_by_their_bytes_ && changes == changes_ && unchanged()) [[likely]]
            return number_;
        bytes_.clear();
        for (const Slot& slot : slots_) {
            bytes_.append(slot.place, slot.ops->bytes);
            if (!slot.ops->told_by_bytes)
                (void)slot.ops->append_key(bytes_, slot.place);
        }
        if (changes == changes_ && bytes_ == known_bytes_)
            return number_;
        known_bytes_ = bytes_;
        for (const Slot& slot : slots_) {
            for (std::size_t at = 0; at + sizeof(void*) <= slot.ops->bytes; at += sizeof(void*)) {
                const void* word = nullptr;
                std::memcpy(&word, static_cast<const char*>(slot.place) + at, sizeof(word));
                append_scalar(bytes_, Allocations::instance().number_of(word));
            }
        }
        changes_ = changes;
        number_ = numbers_.number_of(bytes_);
        return number_;
    }

private:
    struct Slot {
        const void* place;
        const SlotOps* ops;
    };

    // Whether all slots are as they were when their number was made. Those that `told_by_bytes`.
    bool unchanged() const noexcept {
        const std::byte* known = known_bytes_.data();
        for (const Slot& slot : slots_) {
            if (!slot.ops->empty && std::memcmp(slot.place, known, slot.ops->bytes) != 0)
                return false;
            known += slot.ops->bytes;
        }
        return true;
    }

    List<Slot> slots_;
    bool told_by_their_bytes_ = true;
    KeyBytes bytes_;
    KeyNumbers numbers_;
    // The state that has `number_`, as long as so many allocations have changed.
    KeyBytes known_bytes_;
    std::uint64_t changes_ = ~std::uint64_t{0};
    std::uint64_t number_ = 0;
};

/// Numbers that tell steps apart.
class StepKey {
public:
    void clear() noexcept { size_ = 0; }
    void push_back(std::uint64_t number) {
        if (size_ < few) [[likely]]
            numbers_[size_] = number;
        else
            push_more(number);
        ++size_;
    }
    friend bool operator==(const StepKey& a, const StepKey& b) noexcept {
        std::uint64_t differences = a.size_ ^ b.size_;
        for (std::size_t i = 0; i < few; ++i)
            differences |= i < a.size_ ? a.numbers_[i] ^ b.numbers_[i] : 0;
        if (differences != 0)
            return false;
        for (std::size_t i = few; i < a.size_; ++i) {
            if (a.more_[i - few] != b.more_[i - few])
                return false;
        }
        return true;
    }

private:
    static constexpr std::size_t few = 4; // As many as a graph of one step of two stages needs.
    void push_more(std::uint64_t number) {
        if (size_ - few >= more_.size())
            more_.resize(2 * more_.size() + 16);
        more_[size_ - few] = number;
    }

    std::size_t size_ = 0;
    std::array<std::uint64_t, few> numbers_{};
    List<std::uint64_t> more_;
};

/// The batches that not all stages have had yet, and their sources' holds.
template <Backend B>
class PendingBatches {
    using Given = GivenBatch<B>;
    using Hold = SourceHold<B>;

public:
    /// For so many at a time. `are_read`: whether any stage reads the batch.
    PendingBatches(std::size_t most, bool are_read)
        : ring_(std::bit_ceil(most)), mask_(ring_.size() - 1), are_read_(are_read) {}

    const Given& given(std::size_t number) noexcept { return at(number).batch; }
    Hold& hold(std::size_t number) noexcept { return at(number).hold; }

    void take(std::size_t number, const Given& given, const Hold& source) {
        Pending& pending = at(number);
        pending.batch = given;
        pending.hold = source;
        // Where there is no copy, the batch is a source's, or the caller keeps it.
        if (!source && given.ops->copied_bytes > 0)
            pending.batch.value = copy_into(pending.copy, *given.ops, given.value);
        pending.shaped = false;
        if (are_read_) {
            const void* const value = pending.batch.value;
            // Work may read it where it is then.
            pending.key = numbers_.number_of(*given.ops, value, value == given.value ? given.value : nullptr);
        }
    }

    /// Appends the batches' numbers. False when one cannot be told from others.
    bool append_numbers(StepKey& key, std::size_t begin, std::size_t end) noexcept {
        for (std::size_t batch = begin; are_read_ && batch < end; ++batch) {
            const std::uint64_t number = at(batch).key;
            if (number == 0) [[unlikely]]
                return false;
            key.push_back(number);
        }
        return true;
    }

    /// Appends the batches' numbers and sizes, but not their addresses, of those from `begin` on. Of those before `first`
    /// no more is known than before. False when one's are not.
    bool append_shapes(KeyBytes& kind, std::size_t begin, std::size_t first, std::size_t end) {
        const KeyBytes* former = nullptr;
        for (std::size_t batch = begin; are_read_ && batch < end; ++batch) {
            Pending& pending = at(batch);
            // Older ones may have been given back, and be filled with others by now.
            if (!pending.shaped && batch >= first) {
                pending.shape.clear();
                pending.shape.leave_out_addresses();
                pending.shaped = pending.batch.ops->append_key(pending.shape, pending.batch.value);
            }
            if (!pending.shaped)
                return false;
            // One after the other, each once: a longer graph of the same batches is of the same kind.
            if (former != nullptr && *former == pending.shape)
                continue;
            kind.append(pending.shape.data(), pending.shape.size());
            former = &pending.shape;
        }
        return are_read_;
    }

    /// Gives all holds up.
    void drop() noexcept {
        for (Pending& pending : ring_) {
            if (pending.hold)
                pending.hold.give_up();
            pending.hold = {};
        }
    }

private:
    struct Pending {
        Given batch;
        Hold hold;
        List<std::byte> copy;
        std::uint64_t key = 0; // 0: it cannot be told from others.
        KeyBytes shape;        // Its key without addresses,
        bool shaped = false;   // where it has been asked for while the batch was there.
    };
    Pending& at(std::size_t number) noexcept { return ring_[number & mask_]; }
    static const void* copy_into(List<std::byte>& memory, const BatchOps& ops, const void* value) {
        const std::size_t space = ops.copied_bytes + ops.alignment;
        if (memory.size() < space) [[unlikely]]
            memory.resize(space);
        const auto address = reinterpret_cast<std::uintptr_t>(memory.data());
        void* const to = memory.data() + (-address & (ops.alignment - 1)); // a power of two
        copy_bytes(to, value, ops.copied_bytes);
        return to;
    }

    List<Pending> ring_; // as long as a power of two
    std::size_t mask_;
    bool are_read_;
    BatchNumbers numbers_;
};

} // namespace sluice::detail
