// Bodies of pitched.hpp.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <type_traits>

#include <sluice/backend/detail/copies.hpp>
#include <sluice/backend/error.hpp>

namespace sluice {

namespace detail {

inline std::string size_text(std::size_t columns, std::size_t rows) {
    return std::to_string(columns) + " x " + std::to_string(rows);
}

/// Whether a row that is written has bytes of one that is read and does not lie at the same place.
inline bool rows_overlap(const RowsCopy& copy) noexcept {
    const auto to = reinterpret_cast<std::uintptr_t>(copy.to);
    const auto from = reinterpret_cast<std::uintptr_t>(copy.from);
    if (to == from && copy.to_pitch == copy.from_pitch)
        return false;
    const std::uintptr_t last = copy.rows - 1;
    if (to + last * copy.to_pitch + copy.bytes <= from || from + last * copy.from_pitch + copy.bytes <= to)
        return false;
    for (std::size_t row = 0; row < copy.rows; ++row) {
        const std::uintptr_t begin = to + row * copy.to_pitch;
        // The read row that begins last in front of it, and the next one.
        const std::size_t before = begin > from ? (begin - from) / copy.from_pitch : 0;
        for (std::size_t read = before; read < copy.rows && read <= before + 1; ++read) {
            if (overlap({copy.to + row * copy.to_pitch, copy.bytes},
                        {copy.from + read * copy.from_pitch, copy.bytes}))
                return true;
        }
    }
    return false;
}

} // namespace detail

template <class Span>
requires(detail::memory_kind_of<Span> !=
         detail::MemoryKind::host) void PitchedSpan<Span>::require_room(std::size_t size) const {
    if (pitch_ < columns_)
        throw Error("a pitched span has rows of " + detail::counted(columns_, "element") + ", " +
                    std::to_string(pitch_) + " apart; expected a pitch of as many or more");
    if (columns_ == 0 || rows_ == 0)
        return;
    if (size < columns_ || (size - columns_) / pitch_ < rows_ - 1)
        throw Error("a pitched span of " + detail::size_text(columns_, rows_) + " elements with a pitch of " +
                    std::to_string(pitch_) + " does not fit into the " + std::to_string(size) +
                    " that there are");
    detail::require_memory("a pitched span", "its memory", {data_, size, sizeof(element_type)});
    if (pitch_ > ~std::size_t{0} / sizeof(element_type)) // of one row, which has none behind it
        throw Error("a pitched span has a pitch of " + detail::counted(pitch_, "element") + " of " +
                    detail::counted(sizeof(element_type), "byte") +
                    " each; expected no more than any memory holds");
}

template <class Span>
requires(detail::memory_kind_of<Span> != detail::MemoryKind::host) PitchedSpan<Span> PitchedSpan<Span>::part(
    std::size_t first_column, std::size_t first_row, std::size_t columns, std::size_t rows)
const {
    if (first_column > columns_ || columns > columns_ - first_column || first_row > rows_ ||
        rows > rows_ - first_row)
        throw Error("a part of " + detail::size_text(columns, rows) + " from column " +
                    std::to_string(first_column) + " and row " + std::to_string(first_row) +
                    " on was asked for, of " + detail::size_text(columns_, rows_));
    PitchedSpan part;
    if (columns != 0 && rows != 0) // an empty part may begin behind all memory
        part.data_ = data_ + first_row * pitch_ + first_column;
    part.columns_ = columns;
    part.rows_ = rows;
    part.pitch_ = pitch_;
    return part;
}

template <Backend B, class To, class From>
void copy_2d(BasicStreamRef<B> stream, PitchedSpan<To> to, PitchedSpan<From> from) {
    using Element = typename To::element_type;
    constexpr bool writable = !std::is_const_v<Element>;
    constexpr bool same =
        std::is_same_v<std::remove_const_t<Element>, std::remove_const_t<typename From::element_type>>;
    constexpr bool own = detail::fits_backend<To, B> && detail::fits_backend<From, B>;
    static_assert(writable, "sluice::copy_2d: the destination's elements are const; it comes before the "
                            "source, as in copy_2d(stream, to, from)");
    static_assert(same, "sluice::copy_2d: source and destination must hold the same type of elements");
    static_assert(own, "sluice::copy_2d: the memory belongs to another backend than the stream");
    if (to.columns() != from.columns() || to.rows() != from.rows()) {
        throw Error("copy_2d: the source has " + detail::size_text(from.columns(), from.rows()) +
                    " elements and the destination " + detail::size_text(to.columns(), to.rows()) +
                    "; both must have the same columns and rows");
    }
    if (from.columns() == 0 || from.rows() == 0)
        return;
    if constexpr (writable && same && own) {
        constexpr std::size_t size = sizeof(Element);
        const detail::RowsCopy copy{reinterpret_cast<std::byte*>(to.data()),
                                    to.pitch() * size,
                                    reinterpret_cast<const std::byte*>(from.data()),
                                    from.pitch() * size,
                                    from.columns() * size,
                                    from.rows()};
        if (detail::rows_overlap(copy))
            detail::throw_copy_overlap("copy_2d");
        B::copy_rows(copy, detail::kind_between(detail::memory_kind_of<To>, detail::memory_kind_of<From>),
                     stream.get());
    }
}

} // namespace sluice
