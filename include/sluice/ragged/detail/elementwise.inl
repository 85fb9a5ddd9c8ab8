// Bodies of elementwise.hpp.
#pragma once

#include <cstdint>
#include <string>
#include <type_traits>
#include <utility>

#include <sluice/ragged/detail/row_arguments.hpp>

namespace sluice::ragged {

namespace detail {

template <class F, class T>
struct ApplyOne {
    F f;
    const T* values;
    SLUICE_HOST_DEVICE auto operator()(std::int64_t i) const { return f(values[i]); }
};
template <class F, class T, class U>
struct ApplyTwo {
    F f;
    const T* values;
    const U* others;
    SLUICE_HOST_DEVICE auto operator()(std::int64_t i) const { return f(values[i], others[i]); }
};
template <class F, class T, class U>
struct ApplyByRow {
    F f;
    const T* values;
    const U* dense;
    SLUICE_HOST_DEVICE auto operator()(std::int64_t row, std::int64_t, std::int64_t i) const {
        return f(values[i], dense[row]);
    }
};
template <class F, class T, class U>
struct ApplyPadded {
    F f;
    const T* values;
    const U* padded;
    std::int64_t width;
    SLUICE_HOST_DEVICE auto operator()(std::int64_t row, std::int64_t position, std::int64_t i) const {
        return f(values[i], padded[row * width + position]);
    }
};

// A type of this namespace, in which the functions that take it are then looked up, those of elementwise.cuh too.
template <class F>
struct Generate {
    F f;
    SLUICE_HOST_DEVICE auto operator()(std::int64_t row, std::int64_t position, std::int64_t i) const {
        return f(row, position, i);
    }
};

/// Other values that an input is paired with.
template <class Other, class T>
auto* paired_values(const char* operation, const Other& other, RaggedView<const T> rows) {
    if constexpr (RaggedInput<Other>) {
        const auto view = input_view(other);
        if (view.value_capacity() < rows.value_capacity())
            refuse_size(operation, "the other operand", view.value_capacity(), rows.value_capacity());
        return view.values();
    } else {
        return elements_for_values(operation, "the other operand", other, rows);
    }
}
/// The values of a result that may belong to a batch of its own, if that is an operand; those of `rows` are read for it.
template <class Out, class T>
auto* values_of_result(const char* operation, Out& out, RaggedView<const T> rows) {
    auto* const results = elements_for_values(operation, "the result", out, rows);
    require_elsewhere_or_in_place(operation, "the result", touched(results, rows.value_capacity()),
                                  "the rows' values", touched(rows.values(), rows.value_capacity()));
    return results;
}

template <Backend B>
void fill_values(BasicStreamRef<B>, ...) {
    require_kernels<B>();
}
template <Backend B>
void fill_rows(BasicStreamRef<B>, ...) {
    require_kernels<B>();
}
/// Enqueues `out[i] = f(i)`, `out[i] = f(row, position, i)`. elementwise.cuh has them for CUDA.
template <class F, class U, class T>
void fill_values(HostStreamRef stream, const F& f, U* out, RaggedView<const T> rows) {
    stream.enqueue([f, out, rows] {
        const std::int64_t count = rows.size();
        for (std::int64_t i = 0; i < count; ++i)
            out[i] = static_cast<U>(f(i));
    });
}
template <class F, class U, class T>
void fill_rows(HostStreamRef stream, const F& f, U* out, RaggedView<const T> rows, std::int64_t width,
               std::int64_t* refused) {
    stream.enqueue([f, out, rows, width, refused] {
        const bool fits = rows.longest() <= width;
        if (refused != nullptr)
            *refused = fits ? 0 : rows.longest();
        if (!fits)
            return;
        const std::int64_t count = rows.rows();
        for (std::int64_t r = 0; r < count; ++r) {
            const std::int64_t begin = rows.offset(r);
            for (std::int64_t i = begin; i < rows.offset(r + 1); ++i)
                out[i] = static_cast<U>(f(r, i - begin, i));
        }
    });
}
inline constexpr std::int64_t any_width = std::int64_t{1} << 62;

/// Whether what a function gives converts to a `Result`.
template <class Result, class F, class... Args>
inline constexpr bool gives = requires(const F& f) {
    static_cast<Result>(f(std::declval<Args>()...));
};
template <class Result, class F, class... Args>
struct GivesResult : std::bool_constant<gives<Result, F, Args...>> {};

/// Refuses, with a readable message, a function that does not take what it is to be called with, or gives what its result does
/// not hold. What kernels call is not looked at.
template <class Stream, class Result, class F, class... Args>
struct TakesItsArguments {
    static_assert(!std::is_const_v<Result>, "sluice::ragged: the elements of `out` are const");
    static_assert(std::disjunction_v<std::negation<std::is_same<Stream, HostStreamRef>>,
                                     std::is_invocable<const F&, Args...>>,
                  "sluice::ragged: the function must be callable as f(value), or with the other operand's "
                  "element behind the value, and generate's as f(row, position, index); as const");
    static_assert(std::disjunction_v<std::negation<std::is_same<Stream, HostStreamRef>>,
                                     std::negation<std::is_invocable<const F&, Args...>>,
                                     GivesResult<Result, F, Args...>>,
                  "sluice::ragged: what the function returns must convert to the elements of `out`");
};

// What each function enqueues, whatever the backend.
template <class Stream, class F, class Out, class T>
void apply_into(Stream stream, const F& f, Out& out, RaggedView<const T> rows) {
    auto* const results = values_of_result("apply", out, rows);
    (void)TakesItsArguments<Stream, std::remove_pointer_t<decltype(+results)>, F, const T&>();
    tell_rows(stream, "apply", rows, touched(results, rows.value_capacity()));
    fill_values(stream, ApplyOne<F, T>{f, rows.values()}, results, rows);
}
template <class Stream, class F, class Out, class T, class Other>
void apply_into(Stream stream, const F& f, Out& out, RaggedView<const T> rows, const Other& other) {
    const auto* others = paired_values("apply", other, rows);
    using U = std::remove_cv_t<std::remove_pointer_t<decltype(others)>>;
    auto* const results = values_of_result("apply", out, rows);
    (void)TakesItsArguments<Stream, std::remove_pointer_t<decltype(+results)>, F, const T&, const U&>();
    require_elsewhere_or_in_place("apply", "the result", touched(results, rows.value_capacity()),
                                  "the other operand", touched(others, rows.value_capacity()));
    tell_rows(stream, "apply", rows, touched(results, rows.value_capacity()),
              touched(others, rows.value_capacity()));
    fill_values(stream, ApplyTwo<F, T, U>{f, rows.values(), others}, results, rows);
}
template <class Stream, class F, class Out, class T, class Dense>
void apply_by_row_into(Stream stream, const F& f, Out& out, RaggedView<const T> rows, const Dense& dense) {
    const auto* elements = elements_for_rows("apply_by_row", "the dense operand", dense, rows);
    using U = std::remove_cv_t<std::remove_pointer_t<decltype(elements)>>;
    auto* const results = values_of_result("apply_by_row", out, rows);
    (void)TakesItsArguments<Stream, std::remove_pointer_t<decltype(+results)>, F, const T&, const U&>();
    require_elsewhere("apply_by_row", "the result", touched(results, rows.value_capacity()),
                      "the dense operand", touched(elements, rows.row_capacity()));
    tell_rows(stream, "apply_by_row", rows, touched(results, rows.value_capacity()),
              touched(elements, rows.row_capacity()));
    fill_rows(stream, ApplyByRow<F, T, U>{f, rows.values(), elements}, results, rows, any_width, nullptr);
}
template <class Stream, class F, class Out, class T, class Padded, class B>
void apply_padded_into(Stream stream, const F& f, Out& out, RaggedView<const T> rows, const Padded& padded,
                       std::int64_t width, DeviceSpan<std::int64_t, B> refused) {
    const auto span = sluice::detail::placed_span(padded);
    if (width < 0)
        throw Error("ragged::apply_padded: the width is " + std::to_string(width) + ", expected 0 or more");
    if (width > 0 && static_cast<std::int64_t>(span.size()) / width < rows.row_capacity()) {
        throw Error("ragged::apply_padded: the padded operand has " +
                    sluice::detail::counted(span.size(), "element") + ", expected at least " +
                    sluice::detail::counted(rows.row_capacity(), "row") + " of " + std::to_string(width));
    }
    using U = std::remove_const_t<typename decltype(span)::element_type>;
    auto* const results = values_of_result("apply_padded", out, rows);
    (void)TakesItsArguments<Stream, std::remove_pointer_t<decltype(+results)>, F, const T&, const U&>();
    const auto written = touched(results, rows.value_capacity());
    const auto read = touched(static_cast<const U*>(span.data()), static_cast<std::int64_t>(span.size()));
    require_elsewhere("apply_padded", "the result", written, "the padded operand", read);
    if (!refused.empty()) {
        require_place_apart("apply_padded", refused.data(), "the result", written);
        require_place_apart("apply_padded", refused.data(), "the rows' values",
                            touched(rows.values(), rows.value_capacity()));
        require_place_apart("apply_padded", refused.data(), "the padded operand", read);
    }
    tell_rows(stream, "apply_padded", rows, written, read, touched(refused.data(), refused.empty() ? 0 : 1));
    fill_rows(stream, ApplyPadded<F, T, U>{f, rows.values(), span.data(), width}, results, rows, width,
              refused.empty() ? nullptr : refused.data());
}
template <class Stream, class F, class Out, class T>
void generate_into(Stream stream, const F& f, Out& out, RaggedView<const T> rows) {
    auto* const results = elements_for_values("generate", "the result", out, rows);
    (void)TakesItsArguments<Stream, std::remove_pointer_t<decltype(+results)>, F, std::int64_t, std::int64_t,
                            std::int64_t>();
    require_shape_kept("generate", rows, touched(results, rows.value_capacity()));
    tell_rows(stream, "generate", rows.over(results)); // whose own values are not read
    fill_rows(stream, Generate<F>{f}, results, rows, any_width, nullptr);
}

} // namespace detail

template <AnyStream S, class F, RaggedValues<BackendOf<S>> Out, RowsOn<BackendOf<S>> Rows>
void apply(const S& stream, const F& f, Out&& out, const Rows& rows) {
    sluice::detail::require_callable("ragged::apply: the function", f);
    detail::apply_into(detail::ref_for(stream, "apply", nullptr, out, rows), f, out,
                       detail::input_view(rows));
}
template <AnyStream S, class F, RaggedValues<BackendOf<S>> Out, RowsOn<BackendOf<S>> Rows,
          RaggedValues<BackendOf<S>> Other>
void apply(const S& stream, const F& f, Out&& out, const Rows& rows, const Other& other) {
    sluice::detail::require_callable("ragged::apply: the function", f);
    detail::apply_into(detail::ref_for(stream, "apply", nullptr, out, rows, other), f, out,
                       detail::input_view(rows), other);
}
template <AnyStream S, class F, RaggedValues<BackendOf<S>> Out, RowsOn<BackendOf<S>> Rows,
          DeviceMemory<BackendOf<S>> Dense>
void apply_by_row(const S& stream, const F& f, Out&& out, const Rows& rows, const Dense& dense) {
    sluice::detail::require_callable("ragged::apply_by_row: the function", f);
    detail::apply_by_row_into(detail::ref_for(stream, "apply_by_row", nullptr, out, rows, dense), f, out,
                              detail::input_view(rows), dense);
}
template <AnyStream S, class F, RaggedValues<BackendOf<S>> Out, RowsOn<BackendOf<S>> Rows,
          DeviceMemory<BackendOf<S>> Padded>
void apply_padded(const S& stream, const F& f, Out&& out, const Rows& rows, const Padded& padded,
                  std::int64_t width, DeviceSpan<std::int64_t, BackendOf<S>> refused) {
    sluice::detail::require_callable("ragged::apply_padded: the function", f);
    detail::apply_padded_into(detail::ref_for(stream, "apply_padded", nullptr, out, rows, padded), f, out,
                              detail::input_view(rows), padded, width, refused);
}
template <AnyStream S, class F, RaggedValues<BackendOf<S>> Out, RowsOn<BackendOf<S>> Rows>
void generate(const S& stream, const F& f, Out&& out, const Rows& rows) {
    sluice::detail::require_callable("ragged::generate: the function", f);
    detail::generate_into(detail::ref_for(stream, "generate", nullptr, out, rows), f, out,
                          detail::input_view(rows));
}

} // namespace sluice::ragged
