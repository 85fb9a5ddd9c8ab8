/// \file
/// From scattered rows in host memory to a ragged batch on the device, with one copy.
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <span>
#include <tuple>
#include <type_traits>
#include <vector>

#include <sluice/ragged/detail/pinned_block.hpp>
#include <sluice/ragged/ragged_batch.hpp>

namespace sluice {

/// A range of rows, of each of which a `std::span<const T>` can be made.
template <class R, class T>
concept RowsOf = requires(const R& rows) {
    std::span<const T>(*std::begin(rows));
    std::end(rows);
};

/// A contiguous range of integers.
template <class R>
concept IntegerRange = requires(const R& range) {
    requires std::integral<typename decltype(std::span(range))::value_type>;
};

/// Gathers rows in one pinned block, laid out as a `RaggedBatch` of the same capacity, and copies counts,
/// offsets and values together. The block is allocated once; packing again allocates nothing.
///
/// There are two ways to fill it: `clear` and `add_row` for one row at a time, or a `pack` function for all
/// rows, which replaces what was there. All check what they are given and throw `Error`, with what is needed
/// and what is available where it does not fit; `add_row` leaves the packer as it was then, a `pack` function
/// leaves it without rows. What a `pack` function is given does not lie in the packer's own block; `add_row` takes one of
/// the rows held.
///
/// The block must not change while it is being read. Changes therefore wait for copies that `copy_to` has
/// enqueued, if they are still on their way; two packers in turns never wait. Of a copy that was captured the
/// packer knows nothing: call `mark_in_use` after each launch of the graph. (In the slots of a `Source`,
/// which waits by itself, neither matters.)
///
/// Move-only; a moved-from packer may be assigned to; what changes or reads its rows throws `Error`. Belongs to the device that was
/// current when it was made. Not synchronised: one thread at a time.
///
/// \code
/// sluice::RaggedPacker<Box> packer{{.rows = 1024, .values = 8192}};
/// sluice::RaggedBatch<Box> batch{packer.capacity()};
/// packer.clear();
/// for (const Image& image : images) packer.add_row(image.boxes);
/// packer.copy_to(stream, batch);
/// \endcode
template <class T, Backend B = DefaultBackend>
class RaggedPacker {
    static_assert(std::is_trivially_copyable_v<T>, "sluice::RaggedPacker: values must be trivially copyable");
    static_assert(!std::is_const_v<T>, "sluice::RaggedPacker: values must not be const, since they are "
                                       "written; a RaggedView may have const ones");
    static_assert(alignof(T) <= RaggedLayout::alignment,
                  "sluice::RaggedPacker: values are aligned to 256 bytes");

public:
    using backend = B;    ///< Whose devices copy from its block.
    using value_type = T; ///< Of the values.

    /// Room for `capacity`, without rows. Throws `Error` for a capacity below 0, or too little memory.
    explicit RaggedPacker(RaggedCapacity capacity)
        : layout_(RaggedLayout::of(capacity, sizeof(T))), capacity_(capacity), block_(layout_.bytes) {
        empty();
    }

    /// The other one may be assigned to then. Assigning waits for copies of what was here.
    /// @{
    RaggedPacker(RaggedPacker&&) noexcept = default;
    RaggedPacker& operator=(RaggedPacker&&) noexcept = default;
    /// @}

    /// What it is laid out for.
    RaggedCapacity capacity() const noexcept { return capacity_; }
    /// Rows that it holds.
    std::int64_t rows() const { return counts().rows; }
    /// Values of all rows together.
    std::int64_t size() const { return counts().values; }
    /// Values of the longest row.
    std::int64_t longest() const { return counts().longest; }
    /// Whether so many more rows, with so many values in all, fit. Fewer than 0 do not.
    bool fits(std::int64_t rows, std::int64_t values) const {
        return rows >= 0 && values >= 0 && rows <= capacity_.rows - this->rows() &&
               values <= capacity_.values - size();
    }
    /// Bytes of an eager copy: all up to the last value.
    std::size_t bytes() const {
        return size() > 0
                   ? layout_.values_at + static_cast<std::size_t>(size()) * sizeof(T)
                   : layout_.offsets_at + (static_cast<std::size_t>(rows()) + 1) * sizeof(std::int64_t);
    }

    /// \name What it holds; good until the next change
    /// @{

    /// How much it is.
    const RaggedCounts& counts() const { return *at<RaggedCounts>(0); }
    /// Where each row begins among the values, and the end: `rows()` + 1 of them.
    std::span<const std::int64_t> offsets() const {
        return {at<std::int64_t>(layout_.offsets_at), static_cast<std::size_t>(rows()) + 1};
    }
    /// The values of all rows, row after row.
    std::span<const T> values() const { return {at<T>(layout_.values_at), static_cast<std::size_t>(size())}; }
    /// The values of row `row`. Throws `Error` when there is no such row.
    std::span<const T> row(std::int64_t row) const;
    /// The length of each row, in a vector of its own.
    std::vector<std::int64_t> lengths() const;
    /// As a kernel would see it; for Host code.
    RaggedView<const T> view() const {
        return {at<T>(layout_.values_at), at<std::int64_t>(layout_.offsets_at), at<RaggedCounts>(0),
                capacity_.rows, capacity_.values};
    }

    /// @}

    /// Leaves no rows.
    void clear() {
        block_.wait();
        block_.changes();
        empty();
    }
    /// Leaves no rows, and lays the block out for batches of another capacity, such as a bucket's. Throws
    /// `Error` when that takes more bytes than the block has, and changes nothing.
    void clear(RaggedCapacity capacity);

    /// Adds a row, which may be empty. Throws `Error` when it does not fit.
    void add_row(std::span<const T> row);

    /// One row for each element of `rows`, of which a `std::span<const T>` can be made. The range is walked twice, first
    /// to count; one that makes its rows as it is walked should make the same ones both times, and is refused like one
    /// that does not fit where the second ones do not.
    template <RowsOf<T> Rows>
    void pack(const Rows& rows);
    /// From values one after the other, and the length of each row. Throws `Error` for a length below 0, or
    /// lengths that add up to something else than the number of values.
    template <IntegerRange Lengths>
    void pack(std::span<const T> values, const Lengths& lengths);
    /// From values one after the other, and offsets, one more than there are rows. Throws `Error` unless they
    /// start at 0, do not decrease, and end at the number of values.
    template <IntegerRange Offsets>
    void pack_offsets(std::span<const T> values, const Offsets& offsets);
    /// From values one after the other, and the row of each. Throws `Error` for rows that decrease, or that
    /// are not in 0 … `rows` - 1; those that do not occur are empty.
    template <IntegerRange Ids>
    void pack_row_ids(std::span<const T> values, const Ids& row_ids, std::int64_t rows);
    /// From a [rows, `width`] array, and how many values at the beginning of each row are real. Throws
    /// `Error` for a length outside 0 … `width`, or an array of another size.
    template <IntegerRange Lengths>
    void pack_padded(std::span<const T> padded, std::int64_t width, const Lengths& lengths);
    /// From a [rows, `width`] array, and an array of the same shape that is not 0 where a value is real.
    /// Throws `Error` for a width below 1, or arrays of other sizes.
    template <IntegerRange Mask>
    void pack_masked(std::span<const T> padded, std::int64_t width, const Mask& mask);

    /// Gives `batch` the rows held, in the order of `stream`, with one copy, without waiting. It is as long as what is
    /// held, or, while the stream is being captured, the whole block: replays bring over whatever the block holds
    /// when they come to it, so packer and batch must outlive them, and the packer keep its capacity. The next change
    /// waits for a copy that was not captured; for replays see `mark_in_use`. Throws `Error` when the capacities differ.
    void copy_to(BasicStreamRef<B> stream, RaggedBatch<T, B>& batch) const;

    /// The next change waits for what `stream` has been handed so far, such as a replay of a captured copy: call it
    /// after the launch. Does not wait itself. Throws `Error`, also while the stream is being captured.
    void mark_in_use(BasicStreamRef<B> stream) const;
    /// Whether a change would wait. Throws `Error` for a fault of the work that reads the block.
    bool in_use() const { return block_.in_use(); }

private:
    template <class U>
    U* at(std::size_t byte) const {
        return reinterpret_cast<U*>(detail::owned_by("ragged packer", block_.data()) + byte);
    }
    RaggedCounts& held() { return *at<RaggedCounts>(0); }
    std::int64_t* places() { return at<std::int64_t>(layout_.offsets_at); }
    void empty() {
        held() = RaggedCounts{};
        places()[0] = 0;
    }
    void require_room(std::int64_t rows, std::int64_t values) const;
    void append(const T* values, std::int64_t count) noexcept;

    RaggedLayout layout_;
    RaggedCapacity capacity_;
    mutable detail::PinnedBlock<B> block_; // The event behind a copy changes with the copy.
};

/// What a captured `copy_to` reads of the packer on the host: its block's address, and the rows and values that it is laid
/// out for. Not what it holds: a replay takes that from the block.
template <class T, Backend B>
auto graph_key(const RaggedPacker<T, B>& packer) {
    return std::tuple(static_cast<const void*>(&packer.counts()), packer.capacity().rows,
                      packer.capacity().values);
}

/// The rows that `batch` holds when `stream` gets there, for which it waits. Throws `Error` as
/// `RaggedBatch::require_valid_and_wait` does.
template <class T, Backend B>
std::vector<std::vector<T>> to_lists_and_wait(std::type_identity_t<BasicStreamRef<B>> stream,
                                              const RaggedBatch<T, B>& batch);

} // namespace sluice

#include <sluice/ragged/detail/packer.inl>
