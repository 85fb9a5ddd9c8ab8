// Memory that operations on rows touch, and what is asked of it before they are enqueued.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <type_traits>

#include <sluice/backend/detail/memory_pieces.hpp>
#include <sluice/backend/error.hpp>
#include <sluice/ragged/view.hpp>

namespace sluice::ragged::detail {

/// Elements in device memory that an operation reads, or writes where they are not const.
template <class T>
struct Touched {
    T* data;
    std::int64_t count;
};
template <class T>
Touched<T> touched(T* data, std::int64_t count) noexcept {
    return {data, count};
}
template <class T>
sluice::detail::Piece piece_of(Touched<T> touched) noexcept {
    return {touched.data, touched.count > 0 ? static_cast<std::size_t>(touched.count) : 0, sizeof(T)};
}

/// Throws `Error` where there is no memory for elements that an operation reads or writes.
template <class T>
void require_there(const char* operation, const char* what, Touched<T> given) {
    sluice::detail::require_memory({"ragged::", operation}, what, piece_of(given));
}
/// Throws `Error` where memory that an operation writes is not there, or is also what it reads in another order, or writes besides.
template <class T, class U>
void require_elsewhere(const char* operation, const char* what, Touched<T> written, const char* whose,
                       Touched<U> other) {
    require_there(operation, what, written);
    require_there(operation, whose, other);
    if (sluice::detail::overlap(piece_of(written), piece_of(other))) [[unlikely]]
        sluice::detail::throw_overlap({"ragged::", operation}, what, whose,
                                      std::string(", expected other memory for ") + what);
}
/// The same where each element is read only for the one that is written in its place: they may be the same ones.
template <class T, class U>
void require_elsewhere_or_in_place(const char* operation, const char* what, Touched<T> written,
                                   const char* whose, Touched<U> other) {
    require_there(operation, what, written);
    require_there(operation, whose, other);
    if (sluice::detail::overlap_in_part(piece_of(written), piece_of(other))) [[unlikely]]
        sluice::detail::throw_overlap(
            {"ragged::", operation}, what, whose,
            std::string(" in part, expected the same elements, or other memory for ") + what);
}
/// The same of the place where an operation says what did not fit.
template <class U>
void require_place_apart(const char* operation, std::int64_t* refused, const char* whose, Touched<U> other) {
    require_elsewhere(operation, "the place for what was refused", touched(refused, 1), whose, other);
}
/// Throws `Error` where an operation on `rows` writes where these begin, or how many there are.
template <class V, class T>
void require_shape_kept([[maybe_unused]] const char* operation, [[maybe_unused]] const RaggedView<V>& rows,
                        [[maybe_unused]] Touched<T> other) {
    if constexpr (!std::is_const_v<T>) {
        require_elsewhere(operation, "a result", other, "the rows' offsets",
                          touched(rows.offsets(), rows.row_capacity() + 1));
        require_elsewhere(operation, "a result", other, "the rows' counts",
                          touched(rows.counts_pointer(), 1));
    }
}

} // namespace sluice::ragged::detail
