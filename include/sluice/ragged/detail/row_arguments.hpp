/// \file
/// Streams, views and memory from what the row operations are given, and the checks that the host can make.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <type_traits>

#include <sluice/backend/detail/same_device.hpp>
#include <sluice/backend/stream.hpp>
#include <sluice/memory/detail/placed_span.hpp>
#include <sluice/ragged/detail/checked/row_accesses.hpp>
#include <sluice/ragged/operands.hpp>
#include <sluice/ragged/view.hpp>
#include <sluice/ragged/workspace.hpp>

namespace sluice::ragged::detail {

template <AnyStream S>
BasicStreamRef<BackendOf<S>> ref_of(const S& stream) noexcept {
    return BasicStreamRef<BackendOf<S>>(stream);
}

/// Throws `Error` where the stream belongs to another device than `operand`, if that says whose it is: a view and a span are
/// addresses.
template <Backend B, class Operand>
void require_operand_of([[maybe_unused]] BasicStreamRef<B> stream, [[maybe_unused]] const char* operation,
                        [[maybe_unused]] const Operand& operand) {
    if constexpr (std::is_pointer_v<Operand>) { // a workspace that need not be there
        if (operand != nullptr)
            require_operand_of(stream, operation, *operand);
    } else if constexpr (requires { operand.device(); }) {
        sluice::detail::require_same_device(stream, {"ragged::", operation}, "an operand", operand.device());
    }
}
/// The stream of an operation on `operands`.
template <AnyStream S, class... Operands>
BasicStreamRef<BackendOf<S>> ref_on_device(const S& stream, const char* operation,
                                           const Operands&... operands) {
    const BasicStreamRef<BackendOf<S>> ref = ref_of(stream);
    (require_operand_of(ref, operation, operands), ...);
    return ref;
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
