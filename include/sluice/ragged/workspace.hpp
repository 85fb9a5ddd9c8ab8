/// \file
/// Temporary device memory of operations on ragged batches, allocated once.
#pragma once

#include <cstddef>
#include <cstdint>

#include <sluice/backend/detail/owned.hpp>
#include <sluice/memory/buffer.hpp>
#include <sluice/ragged/layout.hpp>

namespace sluice {

/// Hands out pieces of a workspace to one operation. Ends with it; the pieces are the next operation's then.
template <Backend B>
class RaggedScratch {
public:
    /// Hands out the `bytes` bytes of device memory from `memory` on, which begins at a multiple of 256 bytes.
    RaggedScratch(std::byte* memory, std::size_t bytes) noexcept : memory_(memory), bytes_(bytes) {}

    /// `count` elements, undefined, at a multiple of 256 bytes. Throws `Error`, with what is needed and what
    /// is there, when the workspace is too small.
    /// @{
    template <class T>
    T* take(std::size_t count) {
        return reinterpret_cast<T*>(memory_ + take_bytes(detail::checked_bytes(count, sizeof(T))));
    }
    template <class T>
    T* take(std::int64_t count) {
        return take<T>(static_cast<std::size_t>(count));
    }
    /// @}

    /// Bytes that can still be taken as one piece.
    std::size_t left() const noexcept {
        const std::size_t begin = next();
        return begin < bytes_ ? bytes_ - begin : 0;
    }

private:
    /// Where the next piece would begin.
    std::size_t next() const noexcept {
        return (used_ + RaggedLayout::alignment - 1) / RaggedLayout::alignment * RaggedLayout::alignment;
    }
    std::size_t take_bytes(std::size_t wanted);

    std::byte* memory_;
    std::size_t bytes_;
    std::size_t used_ = 0;
};

/// Temporary memory for operations that say that they need some. Allocated by the constructor; an operation,
/// and a replay of it, uses what is there. Two operations may share one as long as they run one after the
/// other: on one stream, or on streams that wait for each other.
///
/// Move-only; a moved-from workspace may be assigned to; an operation that is given it throws `Error`. Must outlive the work that
/// uses it, unless made with the stream of that work. Belongs to the device that was current when it was made. Not synchronised: one
/// thread at a time.
template <Backend B = DefaultBackend>
class RaggedWorkspace {
public:
    using backend = B; ///< Whose device memory it is.

    /// Enough for every operation of the library, whatever the type of the values. At most, operations take
    ///
    /// | operation | bytes for each value of capacity | for each row |
    /// | --- | --- | --- |
    /// | `sort_with_positions`, of values of n bytes | n + 8, and 1/32 | 0 |
    /// | `sort` | n, and 1/32; on Host streams n + 8 | 0 |
    /// | reductions and scans | 1/128 | 0 |
    /// | `mask`, `from_padded_mask` | 1/4, and 1/2,048 | 1/64 |
    /// | `order_by_length`, `bucket_by_length` | 0 | 48 |
    /// | `repeat`, `repeat_each`, `mask_rows`, `remove_empty` | 0 | 16, and 1/32 |
    /// | all others | 0 | 1/64 |
    ///
    /// and 256 KiB whatever the capacity. Each workspace has those, and 48 bytes for each row.
    static constexpr std::size_t default_bytes_per_value = 17;

    /// For batches of that capacity, in operands and results: an operation that finds too little throws
    /// `Error` and leaves its result alone, and so does one whose operands or results have room for more. Throws `Error` for a
    /// capacity below 0, or too little memory.
    explicit RaggedWorkspace(RaggedCapacity capacity, std::size_t bytes_per_value = default_bytes_per_value)
        : block_(bytes_for(capacity, bytes_per_value)), capacity_(capacity) {}
    /// Allocated and freed in the order of `stream`.
    RaggedWorkspace(RaggedCapacity capacity, BasicStreamRef<B> stream,
                    std::size_t bytes_per_value = default_bytes_per_value)
        : block_(bytes_for(capacity, bytes_per_value), stream), capacity_(capacity) {}

    /// Bytes that a workspace of that capacity allocates.
    static std::size_t bytes_for(RaggedCapacity capacity,
                                 std::size_t bytes_per_value = default_bytes_per_value);

    /// What it was made for.
    RaggedCapacity capacity() const noexcept { return capacity_; }
    /// The device whose memory it is.
    int device() const noexcept { return block_.device(); }
    /// Bytes that it has.
    std::size_t bytes() const noexcept { return block_.bytes(); }

    /// All of it, for the next operation. Throws `Error` where the workspace was moved from.
    RaggedScratch<B> scratch() {
        return {detail::owned_by("ragged workspace", block_.data()), block_.size()};
    }

private:
    DeviceBuffer<std::byte, B> block_;
    RaggedCapacity capacity_;
};

} // namespace sluice

#include <sluice/ragged/detail/workspace.inl>
