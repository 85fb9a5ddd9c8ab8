/// \file
/// One number from each row: sum, mean, maximum, minimum, where the maximum is, and log-sum-exp.
///
/// All take `(stream, out, rows)`. `rows` is a `RaggedView` or a `RaggedBatch`; `out` is device memory (a buffer or a
/// `DeviceSpan`) with room for one element for each row that `rows` has room for, or else `Error` is thrown. Elements
/// beyond the rows stay as they are. Nothing waits, nothing is allocated, and how many rows there are is read where
/// the work runs, so that a captured graph serves any batch that fits.
///
/// For Host streams; CUDA streams need reductions.cuh. There, a row of more than 1,024 values is one block's, unless a
/// `workspace` is given, with room for as much as `rows`: then rows of more than 16,384 values are shared among all
/// blocks, for two further launches. One that is too small is an `Error`, on Host streams as well. The order in which a
/// row is added up depends on its length alone (and on whether there is a workspace): the same row gives the same bits
/// in every batch and run.
#pragma once

#include <cstdint>

#include <sluice/backend/stream.hpp>
#include <sluice/ragged/detail/long_parts.hpp>
#include <sluice/ragged/detail/row_arguments.hpp>
#include <sluice/ragged/detail/row_functors.hpp>
#include <sluice/ragged/workspace.hpp>

namespace sluice::ragged {

/// `out[r]` = the sum of row r, added up in the type of `out`'s elements; 0 for an empty row.
template <AnyStream S, detail::DeviceMemory<BackendOf<S>> Out, detail::RowsOn<BackendOf<S>> Rows>
void sum(const S& stream, Out&& out, const Rows& rows, RaggedWorkspace<BackendOf<S>>* workspace = nullptr);

/// The mean, added up and divided in the type of `out`'s elements, float or double; NaN for an empty row.
template <AnyStream S, detail::DeviceMemory<BackendOf<S>> Out, detail::RowsOn<BackendOf<S>> Rows>
void mean(const S& stream, Out&& out, const Rows& rows, RaggedWorkspace<BackendOf<S>>* workspace = nullptr);

/// The greatest value; NaN if there is one in the row. For an empty row -infinity, or of integers the lowest.
/// `out`'s elements are of the values' type.
template <AnyStream S, detail::DeviceMemory<BackendOf<S>> Out, detail::RowsOn<BackendOf<S>> Rows>
void(max)(const S& stream, Out&& out, const Rows& rows, RaggedWorkspace<BackendOf<S>>* workspace = nullptr);

/// The least value; NaN if there is one in the row. For an empty row +infinity, or of integers the greatest.
template <AnyStream S, detail::DeviceMemory<BackendOf<S>> Out, detail::RowsOn<BackendOf<S>> Rows>
void(min)(const S& stream, Out&& out, const Rows& rows, RaggedWorkspace<BackendOf<S>>* workspace = nullptr);

/// The position in its row, from 0 on, of the greatest value, or of the first NaN; of equal ones the first. -1 for an
/// empty row. `out`'s elements are `std::int64_t`.
template <AnyStream S, detail::DeviceMemory<BackendOf<S>> Out, detail::RowsOn<BackendOf<S>> Rows>
void argmax(const S& stream, Out&& out, const Rows& rows, RaggedWorkspace<BackendOf<S>>* workspace = nullptr);

/// log(Σ exp(value)), without overflow; -infinity for an empty row. Values and `out` are both float or both double.
template <AnyStream S, detail::DeviceMemory<BackendOf<S>> Out, detail::RowsOn<BackendOf<S>> Rows>
void logsumexp(const S& stream, Out&& out, const Rows& rows,
               RaggedWorkspace<BackendOf<S>>* workspace = nullptr);

// ---------------------------------------------------------------------------------------------------------------

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

// What each function enqueues, whatever the backend.
template <template <class, class> class Op, class Stream, class Out, class T, class Workspace>
void reduce_into_sums(Stream stream, const char* name, Out& out, RaggedView<const T> rows,
                      Workspace* workspace) {
    reduce_rows(stream, Op<T, Element<Out>>{}, elements_for_rows(name, "the result", out, rows), rows,
                workspace);
}
template <class Op, class Stream, class Out, class T, class Workspace>
void reduce_into(Stream stream, const char* name, Out& out, RaggedView<const T> rows, Workspace* workspace) {
    require_element<Out, typename Op::Result>();
    if constexpr (std::is_same_v<Element<Out>, typename Op::Result>)
        reduce_rows(stream, Op{}, elements_for_rows(name, "the result", out, rows), rows, workspace);
}

} // namespace detail

template <AnyStream S, detail::DeviceMemory<BackendOf<S>> Out, detail::RowsOn<BackendOf<S>> Rows>
void sum(const S& stream, Out&& out, const Rows& rows, RaggedWorkspace<BackendOf<S>>* workspace) {
    detail::reduce_into_sums<detail::SumOf>(detail::ref_of(stream), "sum", out, detail::input_view(rows),
                                            workspace);
}
template <AnyStream S, detail::DeviceMemory<BackendOf<S>> Out, detail::RowsOn<BackendOf<S>> Rows>
void mean(const S& stream, Out&& out, const Rows& rows, RaggedWorkspace<BackendOf<S>>* workspace) {
    detail::reduce_into_sums<detail::MeanOf>(detail::ref_of(stream), "mean", out, detail::input_view(rows),
                                             workspace);
}
template <AnyStream S, detail::DeviceMemory<BackendOf<S>> Out, detail::RowsOn<BackendOf<S>> Rows>
void(max)(const S& stream, Out&& out, const Rows& rows, RaggedWorkspace<BackendOf<S>>* workspace) {
    detail::reduce_into<detail::ExtremeOf<detail::InputValue<Rows>, true>>(
        detail::ref_of(stream), "max", out, detail::input_view(rows), workspace);
}
template <AnyStream S, detail::DeviceMemory<BackendOf<S>> Out, detail::RowsOn<BackendOf<S>> Rows>
void(min)(const S& stream, Out&& out, const Rows& rows, RaggedWorkspace<BackendOf<S>>* workspace) {
    detail::reduce_into<detail::ExtremeOf<detail::InputValue<Rows>, false>>(
        detail::ref_of(stream), "min", out, detail::input_view(rows), workspace);
}
template <AnyStream S, detail::DeviceMemory<BackendOf<S>> Out, detail::RowsOn<BackendOf<S>> Rows>
void argmax(const S& stream, Out&& out, const Rows& rows, RaggedWorkspace<BackendOf<S>>* workspace) {
    detail::reduce_into<detail::ArgmaxOf<detail::InputValue<Rows>>>(detail::ref_of(stream), "argmax", out,
                                                                    detail::input_view(rows), workspace);
}
template <AnyStream S, detail::DeviceMemory<BackendOf<S>> Out, detail::RowsOn<BackendOf<S>> Rows>
void logsumexp(const S& stream, Out&& out, const Rows& rows, RaggedWorkspace<BackendOf<S>>* workspace) {
    detail::reduce_into<detail::LogSumExpOf<detail::InputValue<Rows>>>(
        detail::ref_of(stream), "logsumexp", out, detail::input_view(rows), workspace);
}

} // namespace sluice::ragged
