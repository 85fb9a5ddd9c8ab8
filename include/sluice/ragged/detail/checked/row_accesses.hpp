// What operations on rows tell the checker.
#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>

#include <sluice/backend/detail/checked/interface.hpp>
#include <sluice/backend/detail/memory_pieces.hpp>
#include <sluice/backend/stream.hpp>
#include <sluice/ragged/view.hpp>
#include <sluice/ragged/workspace.hpp>

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

} // namespace sluice::ragged::detail
