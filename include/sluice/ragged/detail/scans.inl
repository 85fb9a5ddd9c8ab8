// Bodies of scans.hpp.
#pragma once

#include <cstdint>
#include <type_traits>

#include <sluice/ragged/detail/long_parts.hpp>
#include <sluice/ragged/detail/row_arguments.hpp>
#include <sluice/ragged/detail/row_functors.hpp>

namespace sluice::ragged {

namespace detail {

/// How a row becomes another: `Stored` is the type of the result.
template <class T>
struct SoftmaxOf {
    static_assert(std::is_floating_point_v<T>, "sluice::ragged::softmax: values must be float or double");
    using Stored = T;
    SLUICE_HOST_DEVICE static T share(ExponentialSum<T> of, T value) {
        // Infinity less itself is NaN: the row's values besides would be 0.
        return exp_of(value - of.greatest) / (of.sum + (of.greatest - of.greatest));
    }
    void row(T* out, const T* values, std::int64_t count) const {
        const ExponentialSum<T> of = reduce_all(ExponentialSumOf<T>{}, values, count);
        for (std::int64_t i = 0; i < count; ++i)
            out[i] = share(of, values[i]);
    }
};
template <class T, class U>
struct ExclusiveSumOf {
    static_assert(adds_up<T, U>,
                  "sluice::ragged: sums need results that are numbers and not const, and values that "
                  "convert to them");
    using Stored = U;
    void row(U* out, const T* values, std::int64_t count) const {
        U sum = U(0);
        for (std::int64_t i = 0; i < count; ++i) {
            const U value = static_cast<U>(values[i]); // `out` may be the same memory
            out[i] = sum;
            sum = plus(sum, value);
        }
    }
};

/// What is reduced for each part of a long row.
template <class Op>
struct PartsOf;
template <class T>
struct PartsOf<SoftmaxOf<T>> {
    using Reduction = ExponentialSumOf<T>;
};
template <class T, class U>
struct PartsOf<ExclusiveSumOf<T, U>> {
    using Reduction = SumOf<T, U>;
};
template <class Op>
using PartValue = typename PartsOf<Op>::Reduction::Accumulator;

template <Backend B>
void transform_rows(BasicStreamRef<B>, ...) {
    require_kernels<B>();
}
/// Enqueues `op` for each row. scans.cuh has it for CUDA.
template <class Op, class T>
void transform_rows(HostStreamRef stream, const Op& op, typename Op::Stored* out, RaggedView<const T> rows,
                    RaggedWorkspace<Host>* workspace) {
    require_long_parts<PartValue<Op>>(workspace, rows);
    stream.enqueue([op, out, rows] {
        const std::int64_t count = rows.rows();
        for (std::int64_t r = 0; r < count; ++r)
            op.row(out + rows.offset(r), rows.row(r).data(), rows.length(r));
    });
}

/// Not a part of the values, which others are still made of.
template <class Result, class T>
void require_scan_in_place(const char* operation, Result* results, RaggedView<const T> rows) {
    require_elsewhere_or_in_place(operation, "the result", touched(results, rows.value_capacity()),
                                  "the rows' values", touched(rows.values(), rows.value_capacity()));
}

template <class Stream, class Out, class T, class Workspace>
void softmax_into(Stream stream, Out& out, RaggedView<const T> rows, Workspace* workspace) {
    T* const values = as_result<T>(elements_for_values("softmax", "the result", out, rows));
    require_scan_in_place("softmax", values, rows);
    tell_rows(stream, "softmax", rows, touched(values, rows.value_capacity()), touched_workspace(workspace));
    transform_rows(stream, SoftmaxOf<T>{}, values, rows, workspace);
}
template <class Stream, class Out, class T, class Workspace>
void exclusive_sum_into(Stream stream, Out& out, RaggedView<const T> rows, Workspace* workspace) {
    auto* const values = elements_for_values("exclusive_sum", "the result", out, rows);
    using Sum = std::remove_pointer_t<std::remove_const_t<decltype(values)>>;
    require_scan_in_place("exclusive_sum", values, rows);
    tell_rows(stream, "exclusive_sum", rows, touched(values, rows.value_capacity()),
              touched_workspace(workspace));
    transform_rows(stream, ExclusiveSumOf<T, Sum>{}, values, rows, workspace);
}

} // namespace detail

template <AnyStream S, RaggedValues<BackendOf<S>> Out, RowsOn<BackendOf<S>> Rows>
void softmax(const S& stream, Out&& out, const Rows& rows, RaggedWorkspace<BackendOf<S>>* workspace) {
    detail::softmax_into(detail::ref_for(stream, "softmax", workspace, out, rows), out,
                         detail::input_view(rows), workspace);
}
template <AnyStream S, RaggedValues<BackendOf<S>> Out, RowsOn<BackendOf<S>> Rows>
void exclusive_sum(const S& stream, Out&& out, const Rows& rows, RaggedWorkspace<BackendOf<S>>* workspace) {
    detail::exclusive_sum_into(detail::ref_for(stream, "exclusive_sum", workspace, out, rows), out,
                               detail::input_view(rows), workspace);
}

} // namespace sluice::ragged
