// Bodies of select.hpp.
#pragma once

#include <string>

#include <sluice/ragged/detail/reshaping.hpp>

namespace sluice::ragged {

namespace detail {

/// What most plans have in common: the rows come from one operand.
template <class T>
struct OneOperand {
    RaggedView<const T> in;

    SLUICE_HOST_DEVICE std::int64_t limit() const { return unlimited; }
    SLUICE_HOST_DEVICE Refused refused() const { return Refused::by(*in.counts_pointer()); }
    bool aligned(std::size_t bytes) const { return lies_at(in.values(), bytes); }
};

template <class T>
struct SliceOfRows : OneOperand<T> {
    std::int64_t first;
    std::int64_t last;

    SLUICE_HOST_DEVICE std::int64_t rows() const { return larger(smaller(last, this->in.rows()) - first, 0); }
    SLUICE_HOST_DEVICE std::int64_t length(std::int64_t row) const { return this->in.length(first + row); }
    SLUICE_HOST_DEVICE const T* source(std::int64_t row, std::int64_t position) const {
        return this->in.values() + this->in.offset(first + row) + position;
    }
};

template <class T>
struct SliceWithinRows : OneOperand<T> {
    std::int64_t first;
    std::int64_t last;

    SLUICE_HOST_DEVICE std::int64_t rows() const { return this->in.rows(); }
    SLUICE_HOST_DEVICE std::int64_t length(std::int64_t row) const {
        return larger(smaller(last, this->in.length(row)) - first, 0);
    }
    SLUICE_HOST_DEVICE const T* source(std::int64_t row, std::int64_t position) const {
        return this->in.values() + this->in.offset(row) + first + position;
    }
};

/// As many rows as `count`, in device memory, says, or `most` where it is null.
template <class T>
struct IndexedRows : OneOperand<T> {
    const std::int64_t* indices;
    const std::int64_t* count;
    std::int64_t most;

    SLUICE_HOST_DEVICE std::int64_t rows() const { return count != nullptr ? *count : most; }
    SLUICE_HOST_DEVICE std::int64_t length(std::int64_t row) const {
        const std::int64_t index = indices[row];
        return index >= 0 && index < this->in.rows() ? this->in.length(index) : 0;
    }
    SLUICE_HOST_DEVICE const T* source(std::int64_t row, std::int64_t position) const {
        return this->in.values() + this->in.offset(indices[row]) + position;
    }
};

template <class T>
struct RepeatedRows : OneOperand<T> {
    std::int64_t times;

    SLUICE_HOST_DEVICE std::int64_t rows() const {
        const std::int64_t rows = this->in.rows();
        // More than any memory holds is refused, and does not overflow.
        return rows > 0 && times > beyond_any / rows ? beyond_any : rows * times;
    }
    SLUICE_HOST_DEVICE std::int64_t length(std::int64_t row) const {
        return this->in.length(quotient(row, times));
    }
    SLUICE_HOST_DEVICE const T* source(std::int64_t row, std::int64_t position) const {
        return this->in.values() + this->in.offset(quotient(row, times)) + position;
    }
};

/// The rows of a view as the shape that values are kept in.
struct RowsOfView {
    const std::int64_t* offsets;
    const RaggedCounts* counts;

    SLUICE_HOST_DEVICE std::int64_t rows() const { return counts->rows; }
    SLUICE_HOST_DEVICE std::int64_t size() const { return counts->values; }
    SLUICE_HOST_DEVICE std::int64_t offset(std::int64_t row) const { return offsets[row]; }
    SLUICE_HOST_DEVICE Refused refused() const { return Refused::by(*counts); }
};

/// How often each row comes: as often as its number says,
struct TimesGiven {
    const RaggedCounts* counts;
    const std::int64_t* times;

    SLUICE_HOST_DEVICE std::int64_t rows() const { return counts->rows; }
    SLUICE_HOST_DEVICE std::int64_t length(std::int64_t row) const {
        return larger(smaller(times[row], beyond_any), 0);
    }
};
/// once where its byte is not 0,
struct OnceIfKept {
    const RaggedCounts* counts;
    const std::uint8_t* keep;

    SLUICE_HOST_DEVICE std::int64_t rows() const { return counts->rows; }
    SLUICE_HOST_DEVICE std::int64_t length(std::int64_t row) const { return keep[row] != 0 ? 1 : 0; }
};
/// or once where it has values.
struct OnceIfFilled {
    const RaggedCounts* counts;
    const std::int64_t* offsets;

    SLUICE_HOST_DEVICE std::int64_t rows() const { return counts->rows; }
    SLUICE_HOST_DEVICE std::int64_t length(std::int64_t row) const {
        return offsets[row + 1] > offsets[row] ? 1 : 0;
    }
};

/// Each row as often as `times` says: sums those numbers up, writes down which row each of the result's is, and gathers.
template <AnyStream S, class T, Backend B, class Times>
void repeat_by(const S& given, const char* what, RaggedBatch<T, B>& out, RaggedView<const T> in,
               const Times& times, RaggedWorkspace<B>& workspace) {
    const BasicStreamRef<B> stream = ref_for(given, what, &workspace, out, in);
    const RaggedTarget<T> target = out.target();
    require_apart(what, target, in);
    RaggedScratch<B> scratch = workspace.scratch();
    const std::int64_t rows = in.row_capacity();
    auto* const starts = scratch.template take<std::int64_t>(rows + 1);
    auto* const indices = scratch.template take<std::int64_t>(target.row_capacity);
    tell_rows(stream, what, in);
    tell_made(stream, what, target, workspace);
    Engine<B>::sum_before(stream, starts, rows, times, scratch);
    if (target.row_capacity > 0) {
        const NumberedRows repeated{starts, &in.counts_pointer()->rows, target.row_capacity};
        Engine<B>::for_each_value(stream, repeated, StoreRow{indices});
    }
    // Beyond the operand's rows nothing is added, so the last place holds the sum over all of them.
    Engine<B>::make(stream, target, IndexedRows<T>{{in}, indices, starts + rows, 0}, scratch);
}

inline void require_range(const char* what, std::int64_t first, std::int64_t last) {
    if (first < 0 || last < first) {
        throw Error("ragged::" + std::string(what) + ": from " + std::to_string(first) + " up to " +
                    std::to_string(last) +
                    " was asked for, expected 0 or more, and no end before the beginning");
    }
}

inline void require_not_negative(const char* what, std::int64_t given) {
    if (given < 0)
        throw Error("ragged::" + std::string(what) + ": " + std::to_string(given) +
                    " was given, expected 0 or more");
}

template <AnyStream S, class T, Backend B, class Plan>
void make(const S& given, const char* what, RaggedBatch<T, B>& out, const Plan& plan,
          RaggedWorkspace<B>& workspace) {
    const BasicStreamRef<B> stream = ref_for(given, what, &workspace, out, plan.in);
    const RaggedTarget<T> target = out.target();
    require_apart(what, target, plan.in);
    RaggedScratch<B> scratch = workspace.scratch();
    tell_rows(stream, what, plan.in);
    tell_made(stream, what, target, workspace);
    Engine<B>::make(stream, target, plan, scratch);
}

} // namespace detail

template <AnyStream S, class T>
void slice(const S& stream, RaggedBatch<T, BackendOf<S>>& out, std::type_identity_t<RaggedView<const T>> in,
           std::int64_t first, std::int64_t last, RaggedWorkspace<BackendOf<S>>& workspace) {
    detail::require_range("slice", first, last);
    detail::make(stream, "slice", out, detail::SliceOfRows<T>{{in}, first, last}, workspace);
}

template <AnyStream S, class T>
void slice_within(const S& stream, RaggedBatch<T, BackendOf<S>>& out,
                  std::type_identity_t<RaggedView<const T>> in, std::int64_t first, std::int64_t last,
                  RaggedWorkspace<BackendOf<S>>& workspace) {
    detail::require_range("slice_within", first, last);
    detail::make(stream, "slice_within", out, detail::SliceWithinRows<T>{{in}, first, last}, workspace);
}

template <AnyStream S, class T>
void prefix(const S& stream, RaggedBatch<T, BackendOf<S>>& out, std::type_identity_t<RaggedView<const T>> in,
            std::int64_t most, RaggedWorkspace<BackendOf<S>>& workspace) {
    detail::require_not_negative("prefix", most);
    detail::make(stream, "prefix", out, detail::SliceWithinRows<T>{{in}, 0, most}, workspace);
}

template <AnyStream S, class T>
void gather(const S& stream, RaggedBatch<T, BackendOf<S>>& out, std::type_identity_t<RaggedView<const T>> in,
            std::type_identity_t<DeviceSpan<const std::int64_t, BackendOf<S>>> indices,
            RaggedWorkspace<BackendOf<S>>& workspace) {
    const auto count = static_cast<std::int64_t>(indices.size());
    detail::require_read_apart("gather", out.target(), "the indices", indices.data(), count);
    detail::tell_touched(detail::ref_of(stream), "gather", detail::touched(indices.data(), count));
    detail::make(stream, "gather", out, detail::IndexedRows<T>{{in}, indices.data(), nullptr, count},
                 workspace);
}

template <AnyStream S, class T>
void reorder(const S& stream, RaggedBatch<T, BackendOf<S>>& out, std::type_identity_t<RaggedView<const T>> in,
             std::type_identity_t<DeviceSpan<const std::int64_t, BackendOf<S>>> order,
             RaggedWorkspace<BackendOf<S>>& workspace) {
    detail::require_elements("reorder: the order", order.size(), in.row_capacity());
    const detail::IndexedRows<T> plan{{in}, order.data(), &in.counts_pointer()->rows, 0};
    detail::require_read_apart("reorder", out.target(), "the order", order.data(), in.row_capacity());
    detail::tell_touched(detail::ref_of(stream), "reorder", detail::touched(order.data(), in.row_capacity()));
    detail::make(stream, "reorder", out, plan, workspace);
}

template <AnyStream S, class T>
void mask(const S& stream, RaggedBatch<T, BackendOf<S>>& out, std::type_identity_t<RaggedView<const T>> in,
          std::type_identity_t<DeviceSpan<const std::uint8_t, BackendOf<S>>> keep,
          RaggedWorkspace<BackendOf<S>>& workspace) {
    using B = BackendOf<S>;
    const RaggedTarget<T> target = out.target();
    detail::require_apart("mask", target, in);
    detail::require_elements("mask: the values to keep", keep.size(), in.value_capacity());
    detail::require_read_apart("mask", target, "the values to keep", keep.data(), in.value_capacity());
    RaggedScratch<B> scratch = workspace.scratch();
    detail::tell_rows(detail::ref_for(stream, "mask", &workspace, out, in), "mask", in);
    detail::tell_made(detail::ref_of(stream), "mask", target, workspace,
                      detail::touched(keep.data(), in.value_capacity()));
    detail::Engine<B>::compact(stream, target, in.values(),
                               detail::RowsOfView{in.offsets(), in.counts_pointer()}, keep.data(),
                               in.value_capacity(), scratch);
}

template <AnyStream S, class T>
void mask_rows(const S& stream, RaggedBatch<T, BackendOf<S>>& out,
               std::type_identity_t<RaggedView<const T>> in,
               std::type_identity_t<DeviceSpan<const std::uint8_t, BackendOf<S>>> keep,
               RaggedWorkspace<BackendOf<S>>& workspace) {
    detail::require_elements("mask_rows: the rows to keep", keep.size(), in.row_capacity());
    detail::tell_touched(detail::ref_of(stream), "mask_rows",
                         detail::touched(keep.data(), in.row_capacity()));
    detail::repeat_by(stream, "mask_rows", out, in, detail::OnceIfKept{in.counts_pointer(), keep.data()},
                      workspace);
}

template <AnyStream S, class T>
void remove_empty(const S& stream, RaggedBatch<T, BackendOf<S>>& out,
                  std::type_identity_t<RaggedView<const T>> in, RaggedWorkspace<BackendOf<S>>& workspace) {
    detail::repeat_by(stream, "remove_empty", out, in,
                      detail::OnceIfFilled{in.counts_pointer(), in.offsets()}, workspace);
}

template <AnyStream S, class T>
void repeat(const S& stream, RaggedBatch<T, BackendOf<S>>& out, std::type_identity_t<RaggedView<const T>> in,
            std::int64_t times, RaggedWorkspace<BackendOf<S>>& workspace) {
    detail::require_not_negative("repeat", times);
    detail::make(stream, "repeat", out, detail::RepeatedRows<T>{{in}, times}, workspace);
}

template <AnyStream S, class T>
void repeat_each(const S& stream, RaggedBatch<T, BackendOf<S>>& out,
                 std::type_identity_t<RaggedView<const T>> in,
                 std::type_identity_t<DeviceSpan<const std::int64_t, BackendOf<S>>> times,
                 RaggedWorkspace<BackendOf<S>>& workspace) {
    detail::require_elements("repeat_each: the times", times.size(), in.row_capacity());
    detail::tell_touched(detail::ref_of(stream), "repeat_each",
                         detail::touched(times.data(), in.row_capacity()));
    detail::repeat_by(stream, "repeat_each", out, in, detail::TimesGiven{in.counts_pointer(), times.data()},
                      workspace);
}

} // namespace sluice::ragged
