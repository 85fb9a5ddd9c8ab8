// Bodies of packer.hpp.
#pragma once

#include <cstring>
#include <string>

#include <sluice/backend/detail/memory_pieces.hpp>

namespace sluice {

// One row at a time
// -----------------------------------------------------------------------------------------------------

template <class T, Backend B>
std::span<const T> RaggedPacker<T, B>::row(std::int64_t row) const {
    if (row < 0 || row >= rows()) {
        throw Error("RaggedPacker::row: row " + std::to_string(row) + " was asked for, of " +
                    std::to_string(rows()));
    }
    const auto index = static_cast<std::size_t>(row);
    const auto begin = static_cast<std::size_t>(offsets()[index]);
    return values().subspan(begin, static_cast<std::size_t>(offsets()[index + 1]) - begin);
}

template <class T, Backend B>
std::vector<std::int64_t> RaggedPacker<T, B>::lengths() const {
    std::vector<std::int64_t> result(static_cast<std::size_t>(rows()));
    for (std::size_t row = 0; row < result.size(); ++row)
        result[row] = offsets()[row + 1] - offsets()[row];
    return result;
}

template <class T, Backend B>
void RaggedPacker<T, B>::clear(RaggedCapacity capacity) {
    (void)detail::owned_by("ragged packer", block_.data());
    const RaggedLayout layout = RaggedLayout::of(capacity, sizeof(T));
    if (layout.bytes > block_.bytes()) {
        throw Error("RaggedPacker::clear: room for " + detail::ragged_amount(capacity) + " takes " +
                    detail::counted(layout.bytes, "byte") + ", and the packer was made with " +
                    std::to_string(block_.bytes()));
    }
    block_.wait();
    block_.changes();
    layout_ = layout;
    capacity_ = capacity;
    empty();
}

template <class T, Backend B>
void RaggedPacker<T, B>::require_room(std::int64_t rows, std::int64_t values) const {
    if (rows <= capacity_.rows && values <= capacity_.values) [[likely]]
        return;
    throw Error("RaggedPacker: " + detail::ragged_amount({rows, values}) + " are needed, and room for " +
                detail::ragged_amount(capacity_) + " is available");
}

template <class T, Backend B>
void RaggedPacker<T, B>::append(const T* values, std::int64_t count) noexcept {
    RaggedCounts& counts = held();
    if (count > 0) // memcpy may not be given null, even for no bytes
        std::memcpy(at<T>(layout_.values_at) + counts.values, values,
                    static_cast<std::size_t>(count) * sizeof(T));
    counts.values += count;
    if (count > counts.longest)
        counts.longest = count;
    places()[++counts.rows] = counts.values;
}

template <class T, Backend B>
void RaggedPacker<T, B>::add_row(std::span<const T> row) {
    const std::int64_t count = detail::ragged_number(row.size());
    require_room(rows() + 1, detail::ragged_sum(size(), count));
    detail::require_memory("RaggedPacker::add_row", "the row", detail::piece_of_span(row));
    block_.require_outside("RaggedPacker::add_row", "the row", detail::piece_of_span(row),
                           layout_.values_at + static_cast<std::size_t>(size()) * sizeof(T));
    block_.wait();
    block_.changes();
    append(row.data(), count);
}

// All rows
// -----------------------------------------------------------------------------------------------------

template <class T, Backend B>
template <RowsOf<T> Rows>
void RaggedPacker<T, B>::pack(const Rows& rows) {
    clear();
    // All of it first, so that the refusal says what would do.
    std::int64_t count = 0;
    std::int64_t total = 0;
    for (const auto& row : rows) {
        ++count;
        total = detail::ragged_sum(total, detail::ragged_number(std::span<const T>(row).size()));
    }
    require_room(count, total);
    // A range that makes its rows when it is asked for them may make others this time.
    try {
        for (const auto& row : rows) {
            const std::span<const T> values(row);
            const std::int64_t length = detail::ragged_number(values.size());
            if (!fits(1, length)) {
                throw Error("RaggedPacker::pack: the range had " + detail::ragged_amount({count, total}) +
                            " when it was counted, and gave others when they were packed: at least " +
                            detail::ragged_amount({this->rows() + 1, detail::ragged_sum(size(), length)}) +
                            " are needed, and room for " + detail::ragged_amount(capacity_) +
                            " is available; give it rows that stay the same");
            }
            detail::require_memory("RaggedPacker::pack", "a row", detail::piece_of_span(values));
            block_.require_outside("RaggedPacker::pack", "a row", detail::piece_of_span(values));
            append(values.data(), length);
        }
    } catch (...) {
        empty();
        throw;
    }
}

template <class T, Backend B>
template <IntegerRange Lengths>
void RaggedPacker<T, B>::pack(std::span<const T> values, const Lengths& lengths) {
    clear();
    detail::require_memory("RaggedPacker::pack", "the values", detail::piece_of_span(values));
    const auto all = std::span(lengths);
    block_.require_outside("RaggedPacker::pack", "the values", detail::piece_of_span(values));
    block_.require_outside("RaggedPacker::pack", "the lengths", detail::piece_of_span(all));
    const std::int64_t total = detail::ragged_number(values.size());
    std::int64_t left = total;
    for (std::size_t row = 0; row < all.size(); ++row) {
        const std::int64_t length = detail::ragged_number(all[row]);
        if (length < 0) {
            throw Error("RaggedPacker::pack: row " + std::to_string(row) + " has a length of " +
                        std::to_string(all[row]) + "; expected 0 or more");
        }
        if (length > left) {
            throw Error("RaggedPacker::pack: the lengths add up to more than the " +
                        detail::counted(total, "value") + ", from row " + std::to_string(row) +
                        " on; expected the same");
        }
        left -= length;
    }
    if (left != 0) {
        throw Error("RaggedPacker::pack: the lengths add up to " + std::to_string(total - left) + " and " +
                    detail::there_are(total, "value") + "; expected the same");
    }
    require_room(static_cast<std::int64_t>(all.size()), total);
    const T* next = values.data();
    for (const auto given : all) {
        const auto length = static_cast<std::int64_t>(given);
        append(next, length);
        next += length;
    }
}

template <class T, Backend B>
template <IntegerRange Offsets>
void RaggedPacker<T, B>::pack_offsets(std::span<const T> values, const Offsets& offsets) {
    clear();
    detail::require_memory("RaggedPacker::pack_offsets", "the values", detail::piece_of_span(values));
    using Offset = std::remove_cv_t<typename decltype(std::span(offsets))::element_type>;
    const auto all = std::span<const Offset>(offsets);
    block_.require_outside("RaggedPacker::pack_offsets", "the values", detail::piece_of_span(values));
    block_.require_outside("RaggedPacker::pack_offsets", "the offsets", detail::piece_of_span(all));
    const std::int64_t total = detail::ragged_number(values.size());
    (void)detail::require_offsets("RaggedPacker::pack_offsets", all, total);
    require_room(static_cast<std::int64_t>(all.size()) - 1, total);
    for (std::size_t row = 0; row + 1 < all.size(); ++row) {
        const auto begin = static_cast<std::int64_t>(all[row]);
        append(values.data() + begin, static_cast<std::int64_t>(all[row + 1]) - begin);
    }
}

template <class T, Backend B>
template <IntegerRange Ids>
void RaggedPacker<T, B>::pack_row_ids(std::span<const T> values, const Ids& row_ids, std::int64_t rows) {
    clear();
    detail::require_memory("RaggedPacker::pack_row_ids", "the values", detail::piece_of_span(values));
    const auto ids = std::span(row_ids);
    block_.require_outside("RaggedPacker::pack_row_ids", "the values", detail::piece_of_span(values));
    block_.require_outside("RaggedPacker::pack_row_ids", "the row ids", detail::piece_of_span(ids));
    if (ids.size() != values.size()) {
        throw Error("RaggedPacker::pack_row_ids: " + detail::there_are(ids.size(), "row id") + " and " +
                    detail::counted(values.size(), "value") + "; expected the same");
    }
    std::int64_t former = 0;
    for (std::size_t i = 0; i < ids.size(); ++i) {
        const std::int64_t id = detail::ragged_number(ids[i]);
        if (id < 0 || id >= rows) {
            throw Error("RaggedPacker::pack_row_ids: value " + std::to_string(i) + " is in row " +
                        std::to_string(ids[i]) + ", of " + detail::counted(rows, "row"));
        }
        if (id < former) {
            throw Error("RaggedPacker::pack_row_ids: the rows decrease from " + std::to_string(former) +
                        " to " + std::to_string(id) + " at value " + std::to_string(i) +
                        "; expected them in order");
        }
        former = id;
    }
    if (rows < 0)
        throw Error("RaggedPacker::pack_row_ids: there cannot be " + detail::counted(rows, "row"));
    require_room(rows, detail::ragged_number(values.size()));
    std::size_t begin = 0;
    for (std::int64_t row = 0; row < rows; ++row) {
        std::size_t end = begin;
        while (end < ids.size() && static_cast<std::int64_t>(ids[end]) == row)
            ++end;
        append(values.data() + begin, static_cast<std::int64_t>(end - begin));
        begin = end;
    }
}

namespace detail {

/// Throws unless `size` values are whole rows of `width` values each, and `rows` of them where that is known.
inline void require_padded(const char* who, std::size_t size, std::int64_t width, std::size_t rows) {
    const bool whole = width >= 0 && (width == 0 || rows <= size / static_cast<std::size_t>(width)) &&
                       rows * static_cast<std::size_t>(width) == size;
    if (!whole) {
        throw Error(std::string(who) + ": the padded array holds " + detail::counted(size, "value") +
                    "; expected " + detail::counted(rows, "row") + " of " + std::to_string(width));
    }
}

} // namespace detail

template <class T, Backend B>
template <IntegerRange Lengths>
void RaggedPacker<T, B>::pack_padded(std::span<const T> padded, std::int64_t width, const Lengths& lengths) {
    clear();
    detail::require_memory("RaggedPacker::pack_padded", "the padded array", detail::piece_of_span(padded));
    const auto all = std::span(lengths);
    block_.require_outside("RaggedPacker::pack_padded", "the padded array", detail::piece_of_span(padded));
    block_.require_outside("RaggedPacker::pack_padded", "the lengths", detail::piece_of_span(all));
    detail::require_padded("RaggedPacker::pack_padded", padded.size(), width, all.size());
    std::int64_t total = 0;
    for (std::size_t row = 0; row < all.size(); ++row) {
        const std::int64_t length = detail::ragged_number(all[row]);
        if (length < 0 || length > width) {
            throw Error("RaggedPacker::pack_padded: row " + std::to_string(row) + " has a length of " +
                        std::to_string(all[row]) + "; expected 0 to the width, " + std::to_string(width));
        }
        total = detail::ragged_sum(total, length);
    }
    require_room(static_cast<std::int64_t>(all.size()), total);
    for (std::size_t row = 0; row < all.size(); ++row)
        append(padded.data() + row * static_cast<std::size_t>(width), static_cast<std::int64_t>(all[row]));
}

template <class T, Backend B>
template <IntegerRange Mask>
void RaggedPacker<T, B>::pack_masked(std::span<const T> padded, std::int64_t width, const Mask& mask) {
    clear();
    detail::require_memory("RaggedPacker::pack_masked", "the padded array", detail::piece_of_span(padded));
    const auto real = std::span(mask);
    block_.require_outside("RaggedPacker::pack_masked", "the padded array", detail::piece_of_span(padded));
    block_.require_outside("RaggedPacker::pack_masked", "the mask", detail::piece_of_span(real));
    if (width < 1) {
        throw Error("RaggedPacker::pack_masked: rows have a width of " + std::to_string(width) +
                    "; expected 1 or more");
    }
    if (real.size() != padded.size()) {
        throw Error("RaggedPacker::pack_masked: the mask holds " + detail::counted(real.size(), "element") +
                    " and the padded array " + std::to_string(padded.size()) + "; expected the same");
    }
    const auto across = static_cast<std::size_t>(width);
    const std::size_t rows = padded.size() / across;
    detail::require_padded("RaggedPacker::pack_masked", padded.size(), width, rows);
    std::int64_t total = 0;
    for (const auto element : real)
        total += element != 0 ? 1 : 0;
    require_room(static_cast<std::int64_t>(rows), total);
    T* to = at<T>(layout_.values_at);
    RaggedCounts& counts = held();
    for (std::size_t row = 0; row < rows; ++row) {
        const std::int64_t begin = counts.values;
        for (std::size_t i = row * across; i < (row + 1) * across; ++i) {
            if (real[i] != 0)
                to[counts.values++] = padded[i];
        }
        if (counts.values - begin > counts.longest)
            counts.longest = counts.values - begin;
        places()[++counts.rows] = counts.values;
    }
}

// To the device and back
// -----------------------------------------------------------------------------------------------------

template <class T, Backend B>
void RaggedPacker<T, B>::copy_to(BasicStreamRef<B> stream, RaggedBatch<T, B>& batch) const {
    detail::require_same_device(stream, "RaggedPacker::copy_to", "the packer", block_.device());
    detail::require_same_device(stream, "RaggedPacker::copy_to", "the batch", batch.device());
    if (!(batch.capacity() == capacity_)) {
        throw Error("RaggedPacker::copy_to: the packer is laid out for " + detail::ragged_amount(capacity_) +
                    ", the batch for " + detail::ragged_amount(batch.capacity()) +
                    "; expected the same: clear(batch.capacity()) before packing lays it out anew");
    }
    const bool recorded = detail::records(stream);
    const std::size_t length = recorded ? layout_.bytes : bytes();
    copy(stream, batch.block().first(length), PinnedSpan<const std::byte, B>(block_.data(), length));
    if (!recorded)
        block_.mark_in_use(stream);
}

template <class T, Backend B>
void RaggedPacker<T, B>::mark_in_use(BasicStreamRef<B> stream) const {
    detail::mark_in_use(block_, stream, "RaggedPacker");
}

namespace detail {

template <class U, Backend B>
std::vector<std::vector<U>> ragged_lists(BasicStreamRef<B> stream, const std::vector<std::int64_t>& offsets,
                                         DeviceSpan<const U, B> values) {
    // Not a vector, which would have no data() for bool.
    PinnedBuffer<U, B> all(static_cast<std::size_t>(offsets.back()));
    copy(stream, all, values.first(all.size()));
    stream.sync();
    std::vector<std::vector<U>> lists;
    lists.reserve(offsets.size() - 1);
    for (std::size_t row = 0; row + 1 < offsets.size(); ++row)
        lists.emplace_back(all.data() + offsets[row], all.data() + offsets[row + 1]);
    return lists;
}

} // namespace detail

template <class T, Backend B>
std::vector<std::vector<T>> to_lists_and_wait(std::type_identity_t<BasicStreamRef<B>> stream,
                                              const RaggedBatch<T, B>& batch) {
    return detail::ragged_lists<T, B>(stream, batch.offsets_and_wait(stream), batch.values());
}

} // namespace sluice
