/// \file
/// Streams, views and memory from what the row operations are given, and the checks that the host can make.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <type_traits>

#include <sluice/backend/detail/checked/interface.hpp>
#include <sluice/backend/stream.hpp>
#include <sluice/memory/detail/placed_span.hpp>
#include <sluice/ragged/operands.hpp>
#include <sluice/ragged/view.hpp>
#include <sluice/ragged/workspace.hpp>

namespace sluice::ragged::detail {

template <AnyStream S>
BasicStreamRef<BackendOf<S>> ref_of(const S& stream) noexcept {
    return BasicStreamRef<BackendOf<S>>(stream);
}

/// Refuses, with a readable message, streams whose operations on rows have not been included.
template <Backend B>
void require_kernels() {
    static_assert(std::is_void_v<B>,
                  "sluice: operations on rows need <sluice/ragged/rows.cuh>, and a CUDA compiler, for "
                  "CUDA streams");
}

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
/// All of a workspace, which need not be there.
template <Backend B>
Touched<std::byte> touched_workspace(RaggedWorkspace<B>* workspace) {
    if (!sluice::detail::IsChecked<B>::value || workspace == nullptr)
        return {nullptr, 0};
    const std::size_t bytes = workspace->bytes();
    return {workspace->scratch().template take<std::byte>(bytes), static_cast<std::int64_t>(bytes)};
}
template <Backend B>
Touched<std::byte> touched_workspace(RaggedWorkspace<B>& workspace) {
    return touched_workspace(&workspace);
}
/// Tells a checked backend what an operation reads and writes that is enqueued next. Throws `Error` for a mistake.
template <Backend B, class... Ts>
void tell_touched([[maybe_unused]] BasicStreamRef<B> stream, [[maybe_unused]] const char* operation,
                  [[maybe_unused]] Touched<Ts>... all) {
    if constexpr (sluice::detail::IsChecked<B>::value) {
        const sluice::detail::checked::Range ranges[] = {
            {all.data, static_cast<std::size_t>(all.count) * sizeof(Ts), !std::is_const_v<Ts>}...};
        sluice::detail::checked::accesses(sluice::detail::checked::key_of(stream.get()), ranges,
                                          sizeof...(Ts), sluice::detail::checked::Op::rows, operation);
    }
}
/// The same of an operation on `rows`, as far as there is room.
template <Backend B, class T, class... Ts>
void tell_rows([[maybe_unused]] BasicStreamRef<B> stream, [[maybe_unused]] const char* operation,
               [[maybe_unused]] RaggedView<T> rows, [[maybe_unused]] Touched<Ts>... others) {
    if constexpr (sluice::detail::IsChecked<B>::value) {
        using sluice::detail::checked::Range;
        const auto bytes = [](std::int64_t count, std::size_t size) {
            return static_cast<std::size_t>(count) * size;
        };
        const Range ranges[] = {{rows.values(), bytes(rows.value_capacity(), sizeof(T)), !std::is_const_v<T>},
                                {rows.offsets(), bytes(rows.row_capacity() + 1, sizeof(std::int64_t))},
                                {rows.counts_pointer(), sizeof(RaggedCounts)},
                                {others.data, bytes(others.count, sizeof(Ts)), !std::is_const_v<Ts>}...};
        sluice::detail::checked::accesses(sluice::detail::checked::key_of(stream.get()), ranges,
                                          3 + sizeof...(Ts), sluice::detail::checked::Op::rows, operation);
    }
}

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

} // namespace sluice::ragged::detail
