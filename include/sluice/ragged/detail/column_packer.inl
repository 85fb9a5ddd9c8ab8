// Bodies of column_packer.hpp.
#pragma once

#include <cstring>
#include <string>

#include <sluice/backend/detail/memory_pieces.hpp>

namespace sluice {

template <class U, Backend B>
std::size_t RaggedColumnPacker<U, B>::block_bytes(std::int64_t values) {
    if (values < 0) {
        throw Error("a ragged column packer cannot have room for " + detail::counted(values, "value") +
                    "; expected 0 or more");
    }
    // A block without memory would be one that was moved from.
    return values == 0 ? 1 : detail::checked_bytes(static_cast<std::size_t>(values), sizeof(U));
}

template <class U, Backend B>
void RaggedColumnPacker<U, B>::begin(std::int64_t values) {
    block_.wait();
    block_.changes();
    size_ = 0;
    if (values > room_) {
        throw Error("RaggedColumnPacker: the rows that it shares have room for " +
                    detail::counted(values, "value") + ", and it for " + std::to_string(room_) +
                    "; expected as many at least");
    }
    laid_out_ = values;
}

template <class U, Backend B>
template <class T, RowsOf<U> Rows>
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
                            detail::counted(values.size(), "value") + ", and the row that it shares " +
                            std::to_string(expected) + "; expected the same");
            }
            detail::require_memory("RaggedColumnPacker", "a row", detail::piece_of_span(values));
            block_.require_outside("RaggedColumnPacker", "a row", detail::piece_of_span(values));
            if (!values.empty())
                std::memcpy(data() + offsets[row], values.data(), values.size_bytes());
        }
        ++row;
    }
    if (row + 1 != offsets.size()) {
        throw Error("RaggedColumnPacker: " + detail::there_are(row, "row") + ", and " +
                    std::to_string(shape.rows()) + " to be shared; expected the same");
    }
    size_ = shape.size();
}

template <class U, Backend B>
template <class T>
void RaggedColumnPacker<U, B>::pack_values(const RaggedPacker<T, B>& shape, std::span<const U> values) {
    begin(shape.capacity().values);
    if (static_cast<std::int64_t>(values.size()) != shape.size()) {
        throw Error("RaggedColumnPacker: " + detail::there_are(values.size(), "value") + ", and " +
                    std::to_string(shape.size()) + " in the rows that it shares; expected the same");
    }
    detail::require_memory("RaggedColumnPacker", "the values", detail::piece_of_span(values));
    block_.require_outside("RaggedColumnPacker", "the values", detail::piece_of_span(values));
    if (!values.empty())
        std::memcpy(data(), values.data(), values.size_bytes());
    size_ = shape.size();
}

template <class U, Backend B>
void RaggedColumnPacker<U, B>::copy_to(BasicStreamRef<B> stream, RaggedColumn<U, B>& column) const {
    detail::require_same_device(stream, "RaggedColumnPacker::copy_to", "the packer", block_.device());
    detail::require_same_device(stream, "RaggedColumnPacker::copy_to", "the column", column.device());
    if (column.capacity() < laid_out_) {
        throw Error("RaggedColumnPacker::copy_to: the rows have room for " +
                    detail::counted(laid_out_, "value") + ", and the column for " +
                    std::to_string(column.capacity()) + "; expected as many at least");
    }
    const U* const values = data();
    const bool recorded = detail::records(stream);
    const auto count = static_cast<std::size_t>(recorded ? laid_out_ : size_);
    if (count == 0)
        return;
    copy(stream, column.values().first(count), PinnedSpan<const U, B>(values, count));
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
        throw Error("to_lists_and_wait: the rows hold " + detail::counted(offsets.back(), "value") +
                    ", and the column has room for " + std::to_string(column.capacity()));
    }
    return detail::ragged_lists<U, B>(stream, offsets, column.values());
}

} // namespace sluice
