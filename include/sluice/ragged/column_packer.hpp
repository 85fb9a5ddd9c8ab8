/// \file
/// Further values over the rows of a packer.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <tuple>
#include <type_traits>
#include <vector>

#include <sluice/ragged/packer.hpp>

namespace sluice {

/// Gathers further values over the rows of a `RaggedPacker`, such as a label for each box, in a pinned block
/// of its own, and copies them to a `RaggedColumn`. What is said of `RaggedPacker` about changes, captures
/// and threads holds here.
template <class U, Backend B = DefaultBackend>
class RaggedColumnPacker {
    static_assert(std::is_trivially_copyable_v<U>,
                  "sluice::RaggedColumnPacker: values must be trivially copyable");

public:
    using backend = B;
    using value_type = U;

    /// Room for `values` values. Throws `Error` below 0, or for too little memory.
    explicit RaggedColumnPacker(std::int64_t values)
        : room_(values), laid_out_(values), block_(RaggedLayout::of({0, values}, sizeof(U)).bytes) {}

    RaggedColumnPacker(RaggedColumnPacker&&) noexcept = default;
    RaggedColumnPacker& operator=(RaggedColumnPacker&&) noexcept = default;

    /// Values that a captured copy takes: as many as the rows that were packed last had room for.
    std::int64_t laid_out() const noexcept { return laid_out_; }
    /// What it holds, and how many. Good until the next change.
    std::int64_t size() const noexcept { return size_; }
    std::span<const U> values() const noexcept { return {data(), static_cast<std::size_t>(size_)}; }

    /// One row for each of `shape`'s, of the same length. Throws `Error` where they differ, with the row, or
    /// where `shape` has room for more values than this; nothing is held then.
    template <class T, detail::RowsOf<U> Rows>
    void pack(const RaggedPacker<T, B>& shape, const Rows& rows);
    /// The values of all rows one after the other. Throws `Error` unless there are `shape.size()`.
    template <class T>
    void pack_values(const RaggedPacker<T, B>& shape, std::span<const U> values);

    /// Gives `column` the values held, in the order of `stream`, with one copy: those that are held, or,
    /// while the stream is being captured, as many as the shape had room for. Throws `Error` when the column
    /// has less room.
    void copy_to(BasicStreamRef<B> stream, RaggedColumn<U, B>& column) const;

    /// As those of `RaggedPacker`: to be told of a replay that reads the block, and whether one still does.
    void mark_in_use(BasicStreamRef<B> stream) const;
    bool in_use() const { return block_.in_use(); }

private:
    U* data() const noexcept { return reinterpret_cast<U*>(block_.data()); }
    void begin(std::int64_t values);

    std::int64_t room_;
    std::int64_t laid_out_; // What the shape has room for.
    std::int64_t size_ = 0;
    mutable detail::PinnedBlock<B> block_;
};

/// What a captured `copy_to` reads of the packer on the host: its block's address, and how many values it copies.
template <class U, Backend B>
auto graph_key(const RaggedColumnPacker<U, B>& packer) noexcept {
    return std::tuple(static_cast<const void*>(packer.values().data()), packer.laid_out());
}

/// The values of `column` over the rows of `batch` when `stream` gets there, for which it waits. Throws `Error` as
/// `RaggedBatch::require_valid_and_wait` does, and where the column has room for fewer values.
template <class U, class T, Backend B>
std::vector<std::vector<U>> to_lists_and_wait(std::type_identity_t<BasicStreamRef<B>> stream,
                                              const RaggedBatch<T, B>& batch,
                                              const RaggedColumn<U, B>& column);

// ---------------------------------------------------------------------------------------------------------------

template <class U, Backend B>
void RaggedColumnPacker<U, B>::begin(std::int64_t values) {
    block_.wait();
    size_ = 0;
    if (values > room_) {
        throw Error("RaggedColumnPacker: the rows that it shares have room for " + std::to_string(values) +
                    " values, and it for " + std::to_string(room_) + "; expected as many at least");
    }
    laid_out_ = values;
}

template <class U, Backend B>
template <class T, detail::RowsOf<U> Rows>
void RaggedColumnPacker<U, B>::pack(const RaggedPacker<T, B>& shape, const Rows& rows) {
    begin(shape.capacity().values);
    const auto offsets = shape.offsets();
    std::size_t row = 0;
    for (const auto& given : rows) {
        const std::span<const U> values(given);
        if (row + 1 < offsets.size()) {
            const auto expected = static_cast<std::size_t>(offsets[row + 1] - offsets[row]);
            if (values.size() != expected) {
                throw Error("RaggedColumnPacker: row " + std::to_string(row) + " has " +
                            std::to_string(values.size()) + " values, and the row that it shares " +
                            std::to_string(expected) + "; expected the same");
            }
            if (!values.empty())
                std::memcpy(data() + offsets[row], values.data(), values.size_bytes());
        }
        ++row;
    }
    if (row + 1 != offsets.size()) {
        throw Error("RaggedColumnPacker: there are " + std::to_string(row) + " rows, and " +
                    std::to_string(shape.rows()) + " to be shared; expected the same");
    }
    size_ = shape.size();
}

template <class U, Backend B>
template <class T>
void RaggedColumnPacker<U, B>::pack_values(const RaggedPacker<T, B>& shape, std::span<const U> values) {
    begin(shape.capacity().values);
    if (static_cast<std::int64_t>(values.size()) != shape.size()) {
        throw Error("RaggedColumnPacker: there are " + std::to_string(values.size()) + " values, and " +
                    std::to_string(shape.size()) + " in the rows that it shares; expected the same");
    }
    if (!values.empty())
        std::memcpy(data(), values.data(), values.size_bytes());
    size_ = shape.size();
}

template <class U, Backend B>
void RaggedColumnPacker<U, B>::copy_to(BasicStreamRef<B> stream, RaggedColumn<U, B>& column) const {
    if (column.capacity() < laid_out_) {
        throw Error("RaggedColumnPacker::copy_to: the rows have room for " + std::to_string(laid_out_) +
                    " values, and the column for " + std::to_string(column.capacity()) +
                    "; expected as many at least");
    }
    const bool recorded = detail::records(stream);
    const auto count = static_cast<std::size_t>(recorded ? laid_out_ : size_);
    if (count == 0)
        return;
    copy(stream, column.values().first(count), PinnedSpan<const U, B>(data(), count));
    if (!recorded)
        block_.mark_in_use(stream);
}

template <class U, Backend B>
void RaggedColumnPacker<U, B>::mark_in_use(BasicStreamRef<B> stream) const {
    detail::mark_in_use(block_, stream, "RaggedColumnPacker");
}

template <class U, class T, Backend B>
std::vector<std::vector<U>> to_lists_and_wait(std::type_identity_t<BasicStreamRef<B>> stream,
                                              const RaggedBatch<T, B>& batch,
                                              const RaggedColumn<U, B>& column) {
    const std::vector<std::int64_t> offsets = batch.offsets_and_wait(stream);
    if (offsets.back() > column.capacity()) {
        throw Error("to_lists_and_wait: the rows hold " + std::to_string(offsets.back()) +
                    " values, and the column has room for " + std::to_string(column.capacity()));
    }
    return detail::ragged_lists<U, B>(stream, offsets, column.values());
}

} // namespace sluice
