// Bodies of reductions.hpp.
#pragma once

#include <cstdint>
#include <type_traits>

#include <sluice/ragged/detail/long_parts.hpp>
#include <sluice/ragged/detail/row_arguments.hpp>
#include <sluice/ragged/detail/row_functors.hpp>

namespace sluice::ragged {

namespace detail {

template <class Out>
using Element = typename std::remove_cvref_t<decltype(sluice::detail::placed_span(
    std::declval<std::remove_reference_t<Out>&>()))>::element_type;

template <class Out, class Result>
constexpr void require_element() {
    static_assert(std::is_same_v<Element<Out>, Result>,
                  "sluice::ragged: the elements of `out` are of another type than this operation's results");
}

template <Backend B>
void reduce_rows(BasicStreamRef<B>, ...) {
    require_kernels<B>();
}
/// Enqueues `op` for each row: the one place where a reduction meets the backend. reductions.cuh has it for CUDA.
template <class Op, class T>
void reduce_rows(HostStreamRef stream, const Op& op, typename Op::Result* out, RaggedView<const T> rows,
                 RaggedWorkspace<Host>* workspace) {
    require_long_parts<typename Op::Accumulator>(workspace, rows);
    stream.enqueue([op, out, rows] {
        const std::int64_t count = rows.rows();
        for (std::int64_t r = 0; r < count; ++r) {
            const RowSpan<const T> row = rows.row(r);
            out[r] = op.finish(reduce_all(op, row.data(), row.size()), row.size());
        }
    });
}

/// Not the memory of the values, which other rows are still made of.
template <class Out, class T>
auto* results_for_rows(const char* operation, Out& out, RaggedView<const T> rows) {
    auto* const results = elements_for_rows(operation, "the result", out, rows);
    require_elsewhere(operation, "the result", touched(results, rows.row_capacity()), "the rows' values",
                      touched(rows.values(), rows.value_capacity()));
    return results;
}

// What each function enqueues, whatever the backend.
template <template <class, class> class Op, class Stream, class Out, class T, class Workspace>
void reduce_into_sums(Stream stream, const char* name, Out& out, RaggedView<const T> rows,
                      Workspace* workspace) {
    auto* const results = results_for_rows(name, out, rows);
    tell_rows(stream, name, rows, touched(results, rows.row_capacity()), touched_workspace(workspace));
    reduce_rows(stream, Op<T, Element<Out>>{}, results, rows, workspace);
}
template <class Op, class Stream, class Out, class T, class Workspace>
void reduce_into(Stream stream, const char* name, Out& out, RaggedView<const T> rows, Workspace* workspace) {
    require_element<Out, typename Op::Result>();
    if constexpr (std::is_same_v<Element<Out>, typename Op::Result>) {
        auto* const results = results_for_rows(name, out, rows);
        tell_rows(stream, name, rows, touched(results, rows.row_capacity()), touched_workspace(workspace));
        reduce_rows(stream, Op{}, results, rows, workspace);
    }
}

} // namespace detail

template <AnyStream S, DeviceMemory<BackendOf<S>> Out, RowsOn<BackendOf<S>> Rows>
void sum(const S& stream, Out&& out, const Rows& rows, RaggedWorkspace<BackendOf<S>>* workspace) {
    detail::reduce_into_sums<detail::SumOf>(detail::ref_for(stream, "sum", workspace, out, rows), "sum", out,
                                            detail::input_view(rows), workspace);
}
template <AnyStream S, DeviceMemory<BackendOf<S>> Out, RowsOn<BackendOf<S>> Rows>
void mean(const S& stream, Out&& out, const Rows& rows, RaggedWorkspace<BackendOf<S>>* workspace) {
    detail::reduce_into_sums<detail::MeanOf>(detail::ref_for(stream, "mean", workspace, out, rows), "mean",
                                             out, detail::input_view(rows), workspace);
}
template <AnyStream S, DeviceMemory<BackendOf<S>> Out, RowsOn<BackendOf<S>> Rows>
void(max)(const S& stream, Out&& out, const Rows& rows, RaggedWorkspace<BackendOf<S>>* workspace) {
    detail::reduce_into<detail::ExtremeOf<detail::InputValue<Rows>, true>>(
        detail::ref_for(stream, "max", workspace, out, rows), "max", out, detail::input_view(rows),
        workspace);
}
template <AnyStream S, DeviceMemory<BackendOf<S>> Out, RowsOn<BackendOf<S>> Rows>
void(min)(const S& stream, Out&& out, const Rows& rows, RaggedWorkspace<BackendOf<S>>* workspace) {
    detail::reduce_into<detail::ExtremeOf<detail::InputValue<Rows>, false>>(
        detail::ref_for(stream, "min", workspace, out, rows), "min", out, detail::input_view(rows),
        workspace);
}
template <AnyStream S, DeviceMemory<BackendOf<S>> Out, RowsOn<BackendOf<S>> Rows>
void argmax(const S& stream, Out&& out, const Rows& rows, RaggedWorkspace<BackendOf<S>>* workspace) {
    detail::reduce_into<detail::ArgmaxOf<detail::InputValue<Rows>>>(
        detail::ref_for(stream, "argmax", workspace, out, rows), "argmax", out, detail::input_view(rows),
        workspace);
}
template <AnyStream S, DeviceMemory<BackendOf<S>> Out, RowsOn<BackendOf<S>> Rows>
void logsumexp(const S& stream, Out&& out, const Rows& rows, RaggedWorkspace<BackendOf<S>>* workspace) {
    detail::reduce_into<detail::LogSumExpOf<detail::InputValue<Rows>>>(
        detail::ref_for(stream, "logsumexp", workspace, out, rows), "logsumexp", out,
        detail::input_view(rows), workspace);
}

} // namespace sluice::ragged
