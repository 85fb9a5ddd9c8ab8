// What operations on rows tell the checker.
#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>

#include <sluice/backend/detail/checked/interface.hpp>
#include <sluice/backend/stream.hpp>
#include <sluice/ragged/detail/row_memory.hpp>
#include <sluice/ragged/view.hpp>
#include <sluice/ragged/workspace.hpp>

namespace sluice::ragged::detail {

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
/// Tells a checked backend what an operation reads and writes that is enqueued next. Throws `Error` for a mistake, and on any backend
/// where there is no memory.
template <Backend B, class... Ts>
void tell_touched([[maybe_unused]] BasicStreamRef<B> stream, [[maybe_unused]] const char* operation,
                  [[maybe_unused]] Touched<Ts>... all) {
    (require_there(operation, "an operand or a result", all), ...);
    if constexpr (sluice::detail::IsChecked<B>::value) {
        const sluice::detail::checked::Range ranges[] = {
            {all.data, addressable_bytes(piece_of(all)), !std::is_const_v<Ts>}...};
        sluice::detail::checked::accesses(sluice::detail::checked::key_of(stream.get()), ranges,
                                          sizeof...(Ts), sluice::detail::checked::Op::rows, operation);
    }
}
/// The same of an operation on `rows`, as far as there is room. Throws `Error` on any backend where a result is not there or over what
/// says which rows there are, and where these are no rows at all.
template <Backend B, class T, class... Ts>
void tell_rows([[maybe_unused]] BasicStreamRef<B> stream, [[maybe_unused]] const char* operation,
               [[maybe_unused]] RaggedView<T> rows, [[maybe_unused]] Touched<Ts>... others) {
    (require_shape_kept(operation, rows, others), ...);
    if constexpr (sluice::detail::IsChecked<B>::value) {
        using sluice::detail::checked::Range;
        const auto bytes = [](const auto& memory) { return addressable_bytes(piece_of(memory)); };
        const Range ranges[] = {
            {rows.values(), bytes(touched(rows.values(), rows.value_capacity())), !std::is_const_v<T>},
            {rows.offsets(), bytes(touched(rows.offsets(), rows.row_capacity() + 1))},
            {rows.counts_pointer(), sizeof(RaggedCounts)},
            {others.data, bytes(others), !std::is_const_v<Ts>}...};
        sluice::detail::checked::accesses(sluice::detail::checked::key_of(stream.get()), ranges,
                                          3 + sizeof...(Ts), sluice::detail::checked::Op::rows, operation);
    }
}

} // namespace sluice::ragged::detail
