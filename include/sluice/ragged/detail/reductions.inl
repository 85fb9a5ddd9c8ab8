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

// What each function enqueues, whatever the backend.
template <class Op, class S, class Out, class Rows, class Workspace>
void reduce_into(const S& given, const char* name, Out& out, const Rows& input, Workspace* workspace) {
    const auto stream = ref_for(given, name, workspace, out, input);
    const auto rows = input_view(input);
    auto* const results = as_result<typename Op::Result>(elements_for_rows(name, "the result", out, rows));
    // Not the memory of the values, which other rows are still made of.
    require_elsewhere(name, "the result", touched(results, rows.row_capacity()), "the rows' values",
                      touched(rows.values(), rows.value_capacity()));
    tell_rows(stream, name, rows, touched(results, rows.row_capacity()), touched_workspace(workspace));
    reduce_rows(stream, Op{}, results, rows, workspace);
}

} // namespace detail

template <AnyStream S, DeviceMemory<BackendOf<S>> Out, RowsOn<BackendOf<S>> Rows>
void sum(const S& stream, Out&& out, const Rows& rows, RaggedWorkspace<BackendOf<S>>* workspace) {
    detail::reduce_into<detail::SumOf<detail::InputValue<Rows>, detail::Element<Out>>>(stream, "sum", out,
                                                                                       rows, workspace);
}
template <AnyStream S, DeviceMemory<BackendOf<S>> Out, RowsOn<BackendOf<S>> Rows>
void mean(const S& stream, Out&& out, const Rows& rows, RaggedWorkspace<BackendOf<S>>* workspace) {
    detail::reduce_into<detail::MeanOf<detail::InputValue<Rows>, detail::Element<Out>>>(stream, "mean", out,
                                                                                        rows, workspace);
}
template <AnyStream S, DeviceMemory<BackendOf<S>> Out, RowsOn<BackendOf<S>> Rows>
void(max)(const S& stream, Out&& out, const Rows& rows, RaggedWorkspace<BackendOf<S>>* workspace) {
    detail::reduce_into<detail::ExtremeOf<detail::InputValue<Rows>, true>>(stream, "max", out, rows,
                                                                           workspace);
}
template <AnyStream S, DeviceMemory<BackendOf<S>> Out, RowsOn<BackendOf<S>> Rows>
void(min)(const S& stream, Out&& out, const Rows& rows, RaggedWorkspace<BackendOf<S>>* workspace) {
    detail::reduce_into<detail::ExtremeOf<detail::InputValue<Rows>, false>>(stream, "min", out, rows,
                                                                            workspace);
}
template <AnyStream S, DeviceMemory<BackendOf<S>> Out, RowsOn<BackendOf<S>> Rows>
void argmax(const S& stream, Out&& out, const Rows& rows, RaggedWorkspace<BackendOf<S>>* workspace) {
    detail::reduce_into<detail::ArgmaxOf<detail::InputValue<Rows>>>(stream, "argmax", out, rows, workspace);
}
template <AnyStream S, DeviceMemory<BackendOf<S>> Out, RowsOn<BackendOf<S>> Rows>
void logsumexp(const S& stream, Out&& out, const Rows& rows, RaggedWorkspace<BackendOf<S>>* workspace) {
    detail::reduce_into<detail::LogSumExpOf<detail::InputValue<Rows>>>(stream, "logsumexp", out, rows,
                                                                       workspace);
}

} // namespace sluice::ragged
