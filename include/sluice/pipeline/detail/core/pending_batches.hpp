// Batches that wait for stages, with what tells them apart.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include <sluice/backend/detail/list.hpp>
#include <sluice/pipeline/batch_read.hpp>
#include <sluice/pipeline/detail/boundary/batch_key.hpp>
#include <sluice/pipeline/detail/boundary/stage_call.hpp>
#include <sluice/pipeline/detail/core/key_numbers.hpp>
#include <sluice/pipeline/detail/core/step_graphs.hpp>

namespace sluice::detail {

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
        void* const to = memory.data() + (ops.alignment - address % ops.alignment) % ops.alignment;
        std::memcpy(to, value, ops.copied_bytes);
        return to;
    }

    List<Pending> ring_; // as long as a power of two
    std::size_t mask_;
    bool are_read_;
    BatchNumbers numbers_;
};

} // namespace sluice::detail
