/// \file
/// Temporary device memory of operations on ragged batches, allocated once.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include <sluice/memory/buffer.hpp>
#include <sluice/ragged/layout.hpp>

namespace sluice {

/// Hands out pieces of a workspace to one operation. Ends with it; the pieces are the next operation's then.
template <Backend B>
class RaggedScratch {
public:
    RaggedScratch(std::byte* memory, std::size_t bytes) noexcept : memory_(memory), bytes_(bytes) {}

    /// `count` elements, undefined, at a multiple of 256 bytes. Throws `Error`, with what is needed and what
    /// is there, when the workspace is too small.
    template <class T>
    T* take(std::size_t count) {
        const std::size_t wanted = detail::checked_bytes<T>(count);
        const std::size_t begin =
            (used_ + RaggedLayout::alignment - 1) / RaggedLayout::alignment * RaggedLayout::alignment;
        if (begin > bytes_ || wanted > bytes_ - begin) {
            throw Error("a ragged workspace of " + std::to_string(bytes_) +
                        " bytes is too small: an operation needs " + std::to_string(wanted) +
                        " bytes more than the " + std::to_string(begin) +
                        " that it has taken; make it with a larger capacity, or more bytes a value");
        }
        used_ = begin + wanted;
        return reinterpret_cast<T*>(memory_ + begin);
    }
    template <class T>
    T* take(std::int64_t count) {
        return take<T>(static_cast<std::size_t>(count));
    }

    /// Bytes that can still be taken as one piece.
    std::size_t left() const noexcept {
        const std::size_t begin =
            (used_ + RaggedLayout::alignment - 1) / RaggedLayout::alignment * RaggedLayout::alignment;
        return begin < bytes_ ? bytes_ - begin : 0;
    }

private:
    std::byte* memory_;
    std::size_t bytes_;
    std::size_t used_ = 0;
};

/// Temporary memory for operations that say that they need some. Allocated by the constructor; an operation,
/// and a replay of it, uses what is there. Two operations may share one as long as they run one after the
/// other: on one stream, or on streams that wait for each other.
///
/// Move-only. Must outlive the work that uses it, unless made with the stream of that work. Belongs to the
/// device that was current when it was made. Not synchronised: one thread at a time.
template <Backend B = DefaultBackend>
class RaggedWorkspace {
public:
    using backend = B;

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
    /// `Error` and leaves its result alone. Throws `Error` for a capacity below 0, or too little memory.
    explicit RaggedWorkspace(RaggedCapacity capacity, std::size_t bytes_per_value = default_bytes_per_value)
        : block_(bytes_for(capacity, bytes_per_value)) {}
    /// Allocated and freed in the order of `stream`.
    RaggedWorkspace(RaggedCapacity capacity, BasicStreamRef<B> stream,
                    std::size_t bytes_per_value = default_bytes_per_value)
        : block_(bytes_for(capacity, bytes_per_value), stream) {}

    /// Bytes that a workspace of that capacity allocates.
    static std::size_t bytes_for(RaggedCapacity capacity,
                                 std::size_t bytes_per_value = default_bytes_per_value) {
        constexpr std::size_t fixed = 256 * 1024; // what sorts and scans need however little there is
        constexpr std::size_t bytes_per_row = 48; // six numbers of 64 bits, of which a batch's layout has one
        const std::size_t of_values = RaggedLayout::of(capacity, bytes_per_value).bytes;
        const std::size_t of_rows =
            RaggedLayout::of({0, capacity.rows}, bytes_per_row - sizeof(std::int64_t)).bytes;
        return fixed + of_rows + of_values;
    }

    std::size_t bytes() const noexcept { return block_.bytes(); }

    /// All of it, for the next operation.
    RaggedScratch<B> scratch() noexcept { return {block_.data(), block_.size()}; }

private:
    DeviceBuffer<std::byte, B> block_;
};

} // namespace sluice
