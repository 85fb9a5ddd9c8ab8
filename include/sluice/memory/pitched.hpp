/// \file
/// Images and other rows that do not lie one behind the other, parts of them, and copies between them.
#pragma once

#include <cstddef>
#include <string>
#include <type_traits>
#include <utility>

#include <sluice/backend/stream.hpp>
#include <sluice/memory/buffer.hpp>
#include <sluice/memory/copy.hpp>
#include <sluice/memory/detail/placed_span.hpp>
#include <sluice/memory/span.hpp>

namespace sluice {

/// `rows()` rows of `columns()` elements each, of which each begins `pitch()` elements behind the one before. `Span` is a `DeviceSpan`
/// or a `PinnedSpan`. Trivially copyable; owns nothing.
///
/// \code
/// sluice::PitchedSpan image{pixels, 1920, 1080, 2048}; // of a buffer; 2048 elements from row to row
/// sluice::PitchedSpan tile{batch.tiles, 224, 224};     // rows that lie one behind the other
/// sluice::copy_2d(stream, tile, image.part(x, y, 224, 224));
/// \endcode
template <class Span>
requires(detail::memory_kind_of<Span> != detail::MemoryKind::host) class PitchedSpan {
public:
    using backend = typename Span::backend;           ///< Whose memory it is.
    using element_type = typename Span::element_type; ///< Of the elements; const where they may only be read.

    /// Rows in `memory`, from its first element on. Throws `Error` where the pitch is less than the columns or longer than any memory,
    /// or the memory is a null pointer or does not hold them all; what is behind the last row's last column need not be there.
    PitchedSpan(Span memory, std::size_t columns, std::size_t rows, std::size_t pitch)
        : data_(memory.data()), columns_(columns), rows_(rows), pitch_(pitch) {
        require_room(memory.size());
    }
    /// Rows that lie one behind the other.
    PitchedSpan(Span memory, std::size_t columns, std::size_t rows)
        : PitchedSpan(memory, columns, rows, columns) {}

    /// The first row's first element.
    SLUICE_HOST_DEVICE element_type* data() const noexcept { return data_; }
    /// The first element of a row.
    SLUICE_HOST_DEVICE element_type* row(std::size_t index) const noexcept { return data_ + index * pitch_; }
    /// Elements of a row.
    SLUICE_HOST_DEVICE std::size_t columns() const noexcept { return columns_; }
    /// How many there are.
    SLUICE_HOST_DEVICE std::size_t rows() const noexcept { return rows_; }
    /// Elements from a row's begin to the next one's.
    SLUICE_HOST_DEVICE std::size_t pitch() const noexcept { return pitch_; }

    /// `columns` from `first_column` on of the `rows` from `first_row` on. Throws `Error` when they are not all there.
    PitchedSpan part(std::size_t first_column, std::size_t first_row, std::size_t columns,
                     std::size_t rows) const;

private:
    PitchedSpan() = default;
    void require_room(std::size_t size) const;

    element_type* data_ = nullptr;
    std::size_t columns_ = 0;
    std::size_t rows_ = 0;
    std::size_t pitch_ = 0;
};

/// Of a buffer or a span.
/// @{
template <class Memory>
PitchedSpan(Memory&&, std::size_t, std::size_t, std::size_t)
    -> PitchedSpan<std::remove_const_t<decltype(detail::placed_span(std::declval<Memory&>()))>>;
template <class Memory>
PitchedSpan(Memory&&, std::size_t, std::size_t)
    -> PitchedSpan<std::remove_const_t<decltype(detail::placed_span(std::declval<Memory&>()))>>;
/// @}

/// Copies each row of `from` to that of `to`, in the order of `stream` and without waiting, as `copy` does; what lies between rows
/// stays. May be captured. Throws `Error` when columns or rows differ, rows overlap and are not the same, or the call fails.
/// @{
template <Backend B, class To, class From>
void copy_2d(BasicStreamRef<B> stream, PitchedSpan<To> to, PitchedSpan<From> from);
template <Backend B, class To, class From>
void copy_2d(const BasicStream<B>& stream, PitchedSpan<To> to, PitchedSpan<From> from) {
    copy_2d(stream.ref(), to, from);
}
/// @}

/// Does not compile: buffers and spans do not say how wide their rows are.
template <class S, class To, class From>
requires(detail::OfBackend<To> || detail::OfBackend<From>) void copy_2d(const S&, const To&, const From&) {
    static_assert(sizeof(S) == 0, "sluice::copy_2d: copies between PitchedSpans, as in copy_2d(stream, "
                                  "PitchedSpan{to, columns, rows}, PitchedSpan{from, columns, rows, pitch})");
}

} // namespace sluice

#include <sluice/memory/detail/pitched.inl>
