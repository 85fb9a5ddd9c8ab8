/// \file
/// Batches of rows of uneven length in device memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <tuple>
#include <type_traits>
#include <vector>

#include <sluice/backend/stream.hpp>
#include <sluice/memory/buffer.hpp>
#include <sluice/memory/copy.hpp>
#include <sluice/ragged/layout.hpp>
#include <sluice/ragged/view.hpp>

namespace sluice {

/// Owns rows of uneven length: counts, 64-bit offsets and values in one block of device memory (see
/// `RaggedLayout`). How much it has room for is fixed; how much it holds is a matter of the device memory,
/// which a copy (`RaggedPacker::copy_to`) or an operation on a stream changes, also as part of a replayed
/// graph. The host does not know it unless it asks, and waits.
///
/// `T` is any trivially copyable type: a number, or a struct such as a box for an inner width. Starts with no
/// rows. Move-only; its addresses move with it. A moved-from batch may be assigned to; what uses its rows throws `Error`.
/// Belongs to the device that was current when it was made. Not synchronised: one thread at a time.
template <class T, Backend B = DefaultBackend>
class RaggedBatch {
    static_assert(std::is_trivially_copyable_v<T>, "sluice::RaggedBatch: values must be trivially copyable");
    static_assert(!std::is_const_v<T>, "sluice::RaggedBatch: values must not be const, since they are "
                                       "written; a RaggedView may have const ones");
    static_assert(alignof(T) <= RaggedLayout::alignment,
                  "sluice::RaggedBatch: values are aligned to 256 bytes");

public:
    using backend = B;    ///< Whose device memory it is.
    using value_type = T; ///< Of the values.

    /// Has no rows when the constructor returns, for which it waits; any stream may use it at once, and it
    /// must outlive all work that uses it. Throws `Error` for a capacity below 0, or too little memory.
    explicit RaggedBatch(RaggedCapacity capacity)
        : RaggedBatch(capacity, RaggedLayout::of(capacity, sizeof(T))) {
        const BasicStream<B> stream;
        clear(stream);
        stream.sync();
    }
    /// Allocated, emptied and freed in the order of `stream`, as a `DeviceBuffer`. Throws `Error` likewise.
    RaggedBatch(RaggedCapacity capacity, BasicStreamRef<B> stream)
        : capacity_(capacity), layout_(RaggedLayout::of(capacity, sizeof(T))), block_(layout_.bytes, stream) {
        clear(stream);
    }

    /// The other one may be assigned to then, and has no rows to use.
    /// @{
    RaggedBatch(RaggedBatch&&) noexcept = default;
    RaggedBatch& operator=(RaggedBatch&&) noexcept = default;
    /// @}

    /// The device whose memory it is.
    int device() const noexcept { return block_.device(); }
    /// Rows and values that it has room for.
    RaggedCapacity capacity() const noexcept { return capacity_; }
    /// Where counts, offsets and values lie in `block()`.
    const RaggedLayout& layout() const noexcept { return layout_; }

    /// The rows, for kernels. Good as long as the batch, also of what it holds later.
    /// @{
    RaggedView<T> view() { return target().view(); }
    RaggedView<const T> view() const {
        return {values().data(), offsets().data(), counts().data(), capacity_.rows, capacity_.values};
    }
    /// @}
    /// The same, for kernels that make its rows.
    RaggedTarget<T> target() {
        return {at<T>(layout_.values_at), at<std::int64_t>(layout_.offsets_at), at<RaggedCounts>(0),
                capacity_.rows, capacity_.values};
    }

    /// As many values as there is room for; those beyond the rows are undefined.
    /// @{
    DeviceSpan<T, B> values() { return {at<T>(layout_.values_at), value_count()}; }
    DeviceSpan<const T, B> values() const { return {at<T>(layout_.values_at), value_count()}; }
    /// @}
    /// Where each row begins among the values, and the end: as many as there is room for rows, and one.
    DeviceSpan<const std::int64_t, B> offsets() const {
        return {at<std::int64_t>(layout_.offsets_at), static_cast<std::size_t>(capacity_.rows) + 1};
    }
    /// One element: how much it holds.
    DeviceSpan<const RaggedCounts, B> counts() const { return {at<RaggedCounts>(0), 1}; }
    /// Counts, offsets and values together, as `layout()` says.
    /// @{
    DeviceSpan<std::byte, B> block() { return {at<std::byte>(0), block_.size()}; }
    DeviceSpan<const std::byte, B> block() const { return {at<std::byte>(0), block_.size()}; }
    /// @}

    /// Leaves no rows, in the order of `stream`. Can be captured.
    void clear(BasicStreamRef<B> stream) {
        detail::require_same_device(stream, "RaggedBatch::clear", "the batch", device());
        // The counts and the first offset, all zero.
        fill_bytes(stream, block().first(layout_.offsets_at + sizeof(std::int64_t)), 0);
    }

    /// What it holds when `stream` gets there, for which it waits. Throws `Error`, also while `stream` is
    /// being captured.
    RaggedCounts counts_and_wait(BasicStreamRef<B> stream) const;

    /// Waits, and throws `Error` unless the offsets start at 0, do not decrease and end at the number of
    /// values, there is room for rows and values, the longest row is as long as is said, and no operation's
    /// result was refused.
    void require_valid_and_wait(BasicStreamRef<B> stream) const;

    /// The offsets of all rows and their end, after the same checks.
    std::vector<std::int64_t> offsets_and_wait(BasicStreamRef<B> stream) const;

private:
    RaggedBatch(RaggedCapacity capacity, const RaggedLayout& layout)
        : capacity_(capacity), layout_(layout), block_(layout.bytes) {}

    template <class U>
    U* at(std::size_t byte) const {
        return reinterpret_cast<U*>(const_cast<std::byte*>(detail::owned_by("ragged batch", block_.data())) +
                                    byte);
    }
    std::size_t value_count() const noexcept { return static_cast<std::size_t>(capacity_.values); }

    RaggedCapacity capacity_;
    RaggedLayout layout_;
    DeviceBuffer<std::byte, B> block_;
};

/// Further values over the rows of a batch, one for each of its values: labels or weights beside boxes. Owns
/// the values alone; offsets and counts are the batch's. Move-only, as a `DeviceBuffer`.
template <class U, Backend B = DefaultBackend>
class RaggedColumn {
public:
    using backend = B;    ///< Whose device memory it is.
    using value_type = U; ///< Of the values.

    /// Room for `values` values, undefined at first. Throws `Error` below 0, or for too little memory.
    explicit RaggedColumn(std::int64_t values) : values_(checked(values)) {}
    /// The same, allocated and freed in the order of `stream`.
    RaggedColumn(std::int64_t values, BasicStreamRef<B> stream) : values_(checked(values), stream) {}

    /// The device whose memory it is.
    int device() const noexcept { return values_.device(); }
    /// Values that it has room for.
    std::int64_t capacity() const noexcept { return static_cast<std::int64_t>(values_.size()); }
    /// As many values as there is room for.
    /// @{
    DeviceSpan<U, B> values() noexcept { return values_.span(); }
    DeviceSpan<const U, B> values() const noexcept { return values_.span(); }
    /// @}

    /// The column's values as rows of `batch`, whatever it holds when a kernel looks. Throws `Error` when the
    /// batch has room for more values than the column.
    /// @{
    template <class T>
    RaggedView<U> view_over(const RaggedBatch<T, B>& batch) {
        require_room(batch.capacity().values);
        return batch.view().over(values_.data());
    }
    template <class T>
    RaggedView<const U> view_over(const RaggedBatch<T, B>& batch) const {
        require_room(batch.capacity().values);
        return batch.view().over(values_.data());
    }
    /// @}

private:
    static std::size_t checked(std::int64_t values);
    void require_room(std::int64_t needed) const;

    DeviceBuffer<U, B> values_;
};

/// What captured work reads of the batch on the host: its block's address, and the rows and values that it has room for.
template <class T, Backend B>
auto graph_key(const RaggedBatch<T, B>& batch) {
    return std::tuple(static_cast<const void*>(batch.block().data()), batch.capacity().rows,
                      batch.capacity().values);
}
/// The same of a column: where its values are, and how many it has room for.
template <class U, Backend B>
auto graph_key(const RaggedColumn<U, B>& column) noexcept {
    return std::tuple(static_cast<const void*>(column.values().data()), column.capacity());
}

} // namespace sluice

#include <sluice/ragged/detail/ragged_batch.inl>
