/// \file
/// The operators `sluice::row_…`, for whatever device `Run` computes on. `Run` has a function for each, whose arguments are
/// a tensor of the device, rows, and memory for the results.
#pragma once

#include <tuple>
#include <type_traits>

#include "rows.hpp"
#include "tensors.hpp"

namespace sluice_torch {

/// Calls `work(std::type_identity<T>{})` with the type of the numbers.
template <bool Integers = true, class Work>
auto with_type(const char* op, const char* name, const Tensor& tensor, const Work& work) {
    switch (tensor.scalar_type()) {
    case ScalarType::Float:
        return work(std::type_identity<float>{});
    case ScalarType::Double:
        return work(std::type_identity<double>{});
    case ScalarType::Int:
        if constexpr (Integers)
            return work(std::type_identity<std::int32_t>{});
        break;
    case ScalarType::Long:
        if constexpr (Integers)
            return work(std::type_identity<std::int64_t>{});
        break;
    default:
        break;
    }
    refuse(op, std::string(name) + " is of " + text_of(tensor.scalar_type()) + ", expected float32" +
                   (Integers ? ", float64, int32 or int64" : " or float64"));
}

/// Tensors without gaps, for as long as they are read.
struct HeldRows {
    Tensor values;
    Tensor offsets;
    std::int64_t rows;

    HeldRows(const char* op, const Tensor& given_values, const Tensor& given_offsets)
        : values(packed(given_values, 16)), offsets(offsets_of(op, given_offsets, "values", given_values)),
          rows(offsets.numel() - 1) {
        if (given_values.dim() != 1) {
            refuse(op, "values has shape " + text_of_shape(given_values) +
                           ", expected one dimension: the values of all rows, one after the other");
        }
    }

    template <class Run, class T>
    RowsIn<T> of(const char* op) const {
        RowsIn<T> result{static_cast<const T*>(values.const_data_ptr()),
                         static_cast<const std::int64_t*>(offsets.const_data_ptr()), rows, values.numel()};
        if (Run::on_cpu)
            require_offsets(op, result.offsets, rows, result.size);
        return result;
    }
};

template <class T>
T* data_of(const Tensor& tensor) {
    return static_cast<T*>(tensor.mutable_data_ptr());
}

template <class Run>
Tensor row_sum(Tensor values, Tensor offsets) {
    constexpr const char* op = "row_sum";
    return with_type(op, "values", values, [&]<class T>(std::type_identity<T>) {
        const HeldRows held(op, values, offsets);
        Tensor out = empty_on(values, {held.rows}, values.scalar_type());
        Run::sum(values, held.of<Run, T>(op), data_of<T>(out));
        return out;
    });
}

template <class Run>
std::tuple<Tensor, Tensor> row_max(Tensor values, Tensor offsets) {
    constexpr const char* op = "row_max";
    return with_type(op, "values", values, [&]<class T>(std::type_identity<T>) {
        const HeldRows held(op, values, offsets);
        Tensor out = empty_on(values, {held.rows}, values.scalar_type());
        Tensor positions = empty_on(values, {held.rows}, ScalarType::Long);
        Run::max(values, held.of<Run, T>(op), data_of<T>(out), data_of<std::int64_t>(positions));
        return std::tuple(out, positions);
    });
}

template <class Run>
Tensor row_softmax(Tensor values, Tensor offsets) {
    constexpr const char* op = "row_softmax";
    return with_type<false>(op, "values", values, [&]<class T>(std::type_identity<T>) {
        const HeldRows held(op, values, offsets);
        Tensor out = empty_on(values, {values.numel()}, values.scalar_type());
        Run::softmax(values, held.of<Run, T>(op), data_of<T>(out));
        return out;
    });
}

template <class Run>
std::tuple<Tensor, Tensor> row_sort(Tensor values, Tensor offsets, bool descending) {
    constexpr const char* op = "row_sort";
    return with_type(op, "values", values, [&]<class T>(std::type_identity<T>) {
        const HeldRows held(op, values, offsets);
        Tensor out = empty_on(values, {values.numel()}, values.scalar_type());
        Tensor positions = empty_on(values, {values.numel()}, ScalarType::Long);
        Run::sort(values, held.of<Run, T>(op), data_of<T>(out), data_of<std::int64_t>(positions), descending);
        return std::tuple(out, positions);
    });
}

/// What the three operations below share: rows of `size` values that are written, not read.
template <class Run, class T>
RowsIn<T> shape_only(const char* op, const Tensor& offsets, std::int64_t size) {
    RowsIn<T> rows{nullptr, static_cast<const std::int64_t*>(offsets.const_data_ptr()), offsets.numel() - 1,
                   size};
    if (Run::on_cpu)
        require_offsets(op, rows.offsets, rows.rows, size);
    return rows;
}

inline void require_size(const char* op, std::int64_t size) {
    if (size < 0)
        refuse(op, "size is " + std::to_string(size) + ", expected 0 or more");
}

inline void require_length(const char* op, const char* name, const Tensor& tensor, std::int64_t length,
                           const char* as) {
    if (tensor.dim() != 1 || tensor.numel() != length) {
        refuse(op, std::string(name) + " has shape " + text_of_shape(tensor) + ", expected [" +
                       std::to_string(length) + "], " + as);
    }
}

template <class Run>
Tensor row_expand(Tensor of_rows, Tensor offsets, std::int64_t size) {
    constexpr const char* op = "row_expand";
    require_size(op, size);
    return with_type(op, "of_rows", of_rows, [&]<class T>(std::type_identity<T>) {
        const Tensor held = packed(of_rows, 16);
        const Tensor held_offsets = offsets_of(op, offsets, "of_rows", of_rows);
        require_length(op, "of_rows", of_rows, held_offsets.numel() - 1, "a number for each row");
        Tensor out = empty_on(of_rows, {size}, of_rows.scalar_type());
        const auto rows = shape_only<Run, T>(op, held_offsets, size);
        Run::map(of_rows, rows, ExpandRows<T>{static_cast<const T*>(held.const_data_ptr()), data_of<T>(out)});
        return out;
    });
}

template <class Run>
Tensor row_unsort(Tensor sorted, Tensor positions, Tensor offsets) {
    constexpr const char* op = "row_unsort";
    return with_type(op, "sorted", sorted, [&]<class T>(std::type_identity<T>) {
        const HeldRows held(op, sorted, offsets);
        require_type(op, "positions", positions, ScalarType::Long);
        require_same_device(op, "positions", positions, "sorted", sorted);
        require_length(op, "positions", positions, sorted.numel(), "one for each value");
        const Tensor held_positions = torch::stable::contiguous(positions);
        Tensor out = empty_on(sorted, {sorted.numel()}, sorted.scalar_type());
        const auto rows = held.of<Run, T>(op);
        Run::map(sorted, rows,
                 UnsortRows<T>{rows.values, static_cast<const std::int64_t*>(held_positions.const_data_ptr()),
                               data_of<T>(out)});
        return out;
    });
}

template <class Run>
Tensor row_place(Tensor of_rows, Tensor positions, Tensor offsets, std::int64_t size) {
    constexpr const char* op = "row_place";
    require_size(op, size);
    return with_type(op, "of_rows", of_rows, [&]<class T>(std::type_identity<T>) {
        const Tensor held = packed(of_rows, 16);
        const Tensor held_offsets = offsets_of(op, offsets, "of_rows", of_rows);
        require_length(op, "of_rows", of_rows, held_offsets.numel() - 1, "a number for each row");
        require_type(op, "positions", positions, ScalarType::Long);
        require_same_device(op, "positions", positions, "of_rows", of_rows);
        require_length(op, "positions", positions, held_offsets.numel() - 1, "one for each row");
        const Tensor held_positions = torch::stable::contiguous(positions);
        Tensor out = empty_on(of_rows, {size}, of_rows.scalar_type());
        const auto rows = shape_only<Run, T>(op, held_offsets, size);
        Run::map(of_rows, rows,
                 PlaceInRows<T>{static_cast<const T*>(held.const_data_ptr()),
                                static_cast<const std::int64_t*>(held_positions.const_data_ptr()),
                                data_of<T>(out)});
        return out;
    });
}

template <class Run>
void register_rows(torch::stable::detail::StableLibrary& library) {
    library.impl("row_sum", TORCH_BOX(&row_sum<Run>));
    library.impl("row_max", TORCH_BOX(&row_max<Run>));
    library.impl("row_softmax", TORCH_BOX(&row_softmax<Run>));
    library.impl("row_sort", TORCH_BOX(&row_sort<Run>));
    library.impl("row_expand", TORCH_BOX(&row_expand<Run>));
    library.impl("row_unsort", TORCH_BOX(&row_unsort<Run>));
    library.impl("row_place", TORCH_BOX(&row_place<Run>));
}

} // namespace sluice_torch
