// Streams, views and memory from what the row operations are given, and the checks that the host can make.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <type_traits>

#include <sluice/backend/detail/same_device.hpp>
#include <sluice/backend/stream.hpp>
#include <sluice/memory/detail/placed_span.hpp>
#include <sluice/ragged/detail/checked/row_accesses.hpp>
#include <sluice/ragged/detail/numbers.hpp>
#include <sluice/ragged/detail/row_memory.hpp>
#include <sluice/ragged/layout.hpp>
#include <sluice/ragged/operands.hpp>
#include <sluice/ragged/view.hpp>
#include <sluice/ragged/workspace.hpp>

namespace sluice::ragged::detail {

template <AnyStream S>
BasicStreamRef<BackendOf<S>> ref_of(const S& stream) {
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

/// What `operand` has room for, where that is rows; otherwise nothing.
template <class Operand>
RaggedCapacity room_of([[maybe_unused]] const Operand& operand) {
    if constexpr (std::is_same_v<Operand, RaggedCapacity>) {
        return operand;
    } else if constexpr (RaggedInput<Operand>) {
        const auto view = input_view(operand);
        return {view.row_capacity(), view.value_capacity()};
    } else {
        return {};
    }
}
template <class T>
RaggedCapacity room_of(const std::span<const RaggedView<const T>>& operands) {
    RaggedCapacity most;
    for (const RaggedView<const T>& operand : operands) {
        most.rows = larger(most.rows, operand.row_capacity());
        most.values = larger(most.values, operand.value_capacity());
    }
    return most;
}
/// Throws `Error` where the workspace was made for less than an operand, even where its bytes would do: with as much in
/// the operand as it has room for they might not. No workspace is enough for operations that can do without.
template <Backend B, class Operand>
void require_workspace_for(const char* operation, const RaggedWorkspace<B>* workspace,
                           const Operand& operand) {
    if (workspace == nullptr)
        return;
    const RaggedCapacity room = room_of(operand);
    const RaggedCapacity made_for = workspace->capacity();
    if (room.rows <= made_for.rows && room.values <= made_for.values) [[likely]]
        return;
    throw Error(std::string("ragged::") + operation + ": the workspace is too small: it was made for " +
                sluice::detail::ragged_amount(made_for) + ", and an operand has room for " +
                sluice::detail::ragged_amount(room) + "; expected as much at least");
}

/// The stream of an operation on `operands`, once they are known to fit together.
template <AnyStream S, class... Operands>
BasicStreamRef<BackendOf<S>> ref_for(const S& stream, const char* operation,
                                     const RaggedWorkspace<BackendOf<S>>* workspace,
                                     const Operands&... operands) {
    const BasicStreamRef<BackendOf<S>> ref = ref_of(stream);
    if (workspace != nullptr) // also where an operation of so few values would do without
        (void)sluice::detail::owned_by("ragged workspace", workspace->bytes());
    require_operand_of(ref, operation, workspace);
    (require_operand_of(ref, operation, operands), ...);
    (require_workspace_for(operation, workspace, operands), ...);
    return ref;
}

[[noreturn]] inline void refuse_size(const char* operation, const char* what, std::int64_t given,
                                     std::int64_t needed) {
    throw Error(std::string("ragged::") + operation + ": " + what + " has room for " +
                sluice::detail::counted(given, "element") + ", expected at least " + std::to_string(needed) +
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

/// Refuses, with a readable message, a result of another type.
template <class T, class U>
T* as_result([[maybe_unused]] U* given) {
    static_assert(std::is_same_v<T, U>,
                  "sluice::ragged: the elements of `out` are of another type than this operation's results");
    if constexpr (std::is_same_v<T, U>) {
        return given;
    } else {
        return nullptr;
    }
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
