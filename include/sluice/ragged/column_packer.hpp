/// \file
/// Further values over the rows of a packer.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <tuple>
#include <type_traits>
#include <vector>

#include <sluice/ragged/packer.hpp>

namespace sluice {

/// Gathers further values over the rows of a `RaggedPacker`, such as a label for each box, in a pinned block
/// of its own, and copies them to a `RaggedColumn`. What is said of `RaggedPacker` about its own block, changes, captures
/// and threads holds here.
template <class U, Backend B = DefaultBackend>
class RaggedColumnPacker {
    static_assert(std::is_trivially_copyable_v<U>,
                  "sluice::RaggedColumnPacker: values must be trivially copyable");
    static_assert(!std::is_const_v<U>,
                  "sluice::RaggedColumnPacker: values must not be const, since they are written");

public:
    using backend = B;    ///< Whose devices copy from its block.
    using value_type = U; ///< Of the values.

    /// Room for `values` values. Throws `Error` below 0, or for too little memory.
    explicit RaggedColumnPacker(std::int64_t values)
        : room_(values), laid_out_(values), block_(block_bytes(values)) {}

    /// The other one may be assigned to then; what changes or reads its values throws `Error`. Assigning waits for copies of what was here.
    /// @{
    RaggedColumnPacker(RaggedColumnPacker&&) noexcept = default;
    RaggedColumnPacker& operator=(RaggedColumnPacker&&) noexcept = default;
    /// @}

    /// Values that a captured copy takes: as many as the rows that were packed last had room for.
    std::int64_t laid_out() const noexcept { return laid_out_; }
    /// How many values it holds.
    std::int64_t size() const noexcept { return size_; }
    /// What it holds, `size()` values, row after row. Good until the next change.
    std::span<const U> values() const { return {data(), static_cast<std::size_t>(size_)}; }

    /// One row for each of `shape`'s, of the same length. Throws `Error` where they differ, with the row, or
    /// where `shape` has room for more values than this; nothing is held then.
    template <class T, RowsOf<U> Rows>
    void pack(const RaggedPacker<T, B>& shape, const Rows& rows);
    /// The values of all rows one after the other. Throws `Error` unless there are `shape.size()`.
    template <class T>
    void pack_values(const RaggedPacker<T, B>& shape, std::span<const U> values);

    /// Gives `column` the values held, in the order of `stream`, with one copy: those that are held, or,
    /// while the stream is being captured, as many as the shape had room for. Throws `Error` when the column
    /// has less room.
    void copy_to(BasicStreamRef<B> stream, RaggedColumn<U, B>& column) const;

    /// As `RaggedPacker::mark_in_use`.
    void mark_in_use(BasicStreamRef<B> stream) const;
    /// As `RaggedPacker::in_use`.
    bool in_use() const { return block_.in_use(); }

private:
    U* data() const { return reinterpret_cast<U*>(detail::owned_by("ragged packer", block_.data())); }
    static std::size_t block_bytes(std::int64_t values);
    void begin(std::int64_t values);

    std::int64_t room_;
    std::int64_t laid_out_; // What the shape has room for.
    std::int64_t size_ = 0;
    mutable detail::PinnedBlock<B> block_;
};

/// What a captured `copy_to` reads of the packer on the host: its block's address, and how many values it copies.
template <class U, Backend B>
auto graph_key(const RaggedColumnPacker<U, B>& packer) {
    return std::tuple(static_cast<const void*>(packer.values().data()), packer.laid_out());
}

/// The values of `column` over the rows of `batch` when `stream` gets there, for which it waits. Throws `Error` as
/// `RaggedBatch::require_valid_and_wait` does, and where the column has room for fewer values.
template <class U, class T, Backend B>
std::vector<std::vector<U>> to_lists_and_wait(std::type_identity_t<BasicStreamRef<B>> stream,
                                              const RaggedBatch<T, B>& batch,
                                              const RaggedColumn<U, B>& column);

} // namespace sluice

#include <sluice/ragged/detail/column_packer.inl>
