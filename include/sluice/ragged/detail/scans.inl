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

// What each function enqueues, whatever the backend.
template <template <class T, class U> class Op, class S, class Out, class Rows, class Workspace>
void scan_into(const S& given, const char* name, Out& out, const Rows& input, Workspace* workspace) {
    const auto stream = ref_for(given, name, workspace, out, input);
    const auto rows = input_view(input);
    auto* const elements = elements_for_values(name, "the result", out, rows);
    using Scan = Op<InputValue<Rows>, std::remove_pointer_t<decltype(+elements)>>;
    auto* const results = as_result<typename Scan::Stored>(elements);
    // Not a part of the values, which others are still made of.
    require_elsewhere_or_in_place(name, "the result", touched(results, rows.value_capacity()),
                                  "the rows' values", touched(rows.values(), rows.value_capacity()));
    tell_rows(stream, name, rows, touched(results, rows.value_capacity()), touched_workspace(workspace));
    transform_rows(stream, Scan{}, results, rows, workspace);
}
template <class T, class U>
using SoftmaxInto = SoftmaxOf<T>;

} // namespace detail

template <AnyStream S, RaggedValues<BackendOf<S>> Out, RowsOn<BackendOf<S>> Rows>
void softmax(const S& stream, Out&& out, const Rows& rows, RaggedWorkspace<BackendOf<S>>* workspace) {
    detail::scan_into<detail::SoftmaxInto>(stream, "softmax", out, rows, workspace);
}
template <AnyStream S, RaggedValues<BackendOf<S>> Out, RowsOn<BackendOf<S>> Rows>
void exclusive_sum(const S& stream, Out&& out, const Rows& rows, RaggedWorkspace<BackendOf<S>>* workspace) {
    detail::scan_into<detail::ExclusiveSumOf>(stream, "exclusive_sum", out, rows, workspace);
}

} // namespace sluice::ragged
