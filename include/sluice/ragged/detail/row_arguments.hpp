/// \file
/// What the row operations take: views, or whatever has one; and the checks that the host can make.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <type_traits>

#include <sluice/memory/copy.hpp>
#include <sluice/ragged/detail/any_stream.hpp>
#include <sluice/ragged/view.hpp>

namespace sluice::ragged::detail {

template <class T>
inline constexpr bool is_view = false;
template <class T>
inline constexpr bool is_view<RaggedView<T>> = true;

/// A view, or a batch that has one.
template <class R>
concept RaggedInput = is_view<std::remove_cvref_t<R>> || requires(const R& batch) {
    requires is_view<decltype(batch.view())>;
};

/// A buffer or span of device memory of the backend `B`.
template <class R, class B>
concept DeviceMemory = std::is_same_v<typename std::remove_cvref_t<R>::backend, B> && requires(R& range) {
    requires sluice::detail::memory_kind_of<std::remove_const_t<decltype(sluice::detail::placed_span(range))>>
    == sluice::detail::MemoryKind::device;
};

template <class T>
constexpr RaggedView<const T> as_const(RaggedView<T> view) {
    return view;
}
template <RaggedInput R>
constexpr auto input_view(const R& input) {
    if constexpr (is_view<R>) {
        return as_const(input);
    } else {
        return as_const(input.view());
    }
}
template <RaggedInput R>
using InputValue = typename decltype(input_view(std::declval<const R&>()))::value_type;

[[noreturn]] inline void refuse_size(const char* operation, const char* what, std::int64_t given,
                                     std::int64_t needed) {
    throw Error(std::string("ragged::") + operation + ": " + what + " has room for " + std::to_string(given) +
                " elements, expected at least " + std::to_string(needed) +
                ", for as much as the rows have room for");
}

/// Memory with one element for each row that there is room for.
template <class R, class T>
auto* elements_for_rows(const char* operation, const char* what, R& range, RaggedView<T> rows) {
    const auto span = sluice::detail::placed_span(range);
    if (span.size() < static_cast<std::size_t>(rows.row_capacity()))
        refuse_size(operation, what, static_cast<std::int64_t>(span.size()), rows.row_capacity());
    return span.data();
}

/// Memory for one value each: device memory, or the values of a ragged view over the same rows.
template <class R, class T>
auto* elements_for_values(const char* operation, const char* what, R& range, RaggedView<T> rows) {
    if constexpr (RaggedInput<R>) {
        const auto view = [&] {
            if constexpr (is_view<std::remove_cvref_t<R>>) {
                return range;
            } else {
                return range.view();
            }
        }();
        if (view.offsets() != rows.offsets() || view.counts_pointer() != rows.counts_pointer()) {
            throw Error(std::string("ragged::") + operation + ": " + what +
                        " has rows of its own, expected values over the same rows (RaggedView::over, "
                        "RaggedColumn::view_over)");
        }
        return view.values();
    } else {
        const auto span = sluice::detail::placed_span(range);
        if (span.size() < static_cast<std::size_t>(rows.value_capacity()))
            refuse_size(operation, what, static_cast<std::int64_t>(span.size()), rows.value_capacity());
        return span.data();
    }
}

/// Rows that work of the backend `B` may read: a batch of its memory, or a view, which does not say whose it is.
template <class R, class B>
concept RowsOn = RaggedInput<R> &&
    (is_view<std::remove_cvref_t<R>> || std::is_same_v<typename std::remove_cvref_t<R>::backend, B>);

/// What may stand for values over the rows of an input.
template <class R, class B>
concept RaggedValues = RowsOn<R, B> || DeviceMemory<R, B>;

} // namespace sluice::ragged::detail
