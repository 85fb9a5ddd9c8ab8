// Bodies of sums.hpp, the same for both backends.
#pragma once

#include <nn/core/ceil_div.hpp>
#include <nn/elementwise/for_each.hpp>
#include <nn/elementwise/sums.hpp>

namespace nn {
namespace detail {

/// Rows that one thread adds up, one after another. The tree that this makes is the same everywhere.
inline constexpr std::size_t rows_per_sum = 128;

inline constexpr std::size_t sums_of(std::size_t rows) { return ceil_div(rows, rows_per_sum); }

/// Any element as a float64.
SLUICE_HOST_DEVICE inline double number(double value) { return value; }
SLUICE_HOST_DEVICE inline double number(float value) { return static_cast<double>(value); }
SLUICE_HOST_DEVICE inline double number(Bfloat16 value) { return number(static_cast<float>(value)); }

template <class T>
SLUICE_HOST_DEVICE double sum_of_column(const T* values, std::size_t first, std::size_t last,
                                        std::size_t columns, std::size_t column) {
    double sum = 0.0;
    for (std::size_t row = first; row < last; ++row)
        sum += number(values[row * columns + column]);
    return sum;
}

template <class T>
struct SumBlocks {
    const T* values;
    double* sums;
    std::size_t rows;
    std::size_t columns;

    SLUICE_HOST_DEVICE void operator()(std::size_t block, std::size_t column) const {
        const std::size_t first = block * rows_per_sum;
        const std::size_t last = first + rows_per_sum < rows ? first + rows_per_sum : rows;
        sums[block * columns + column] = sum_of_column(values, first, last, columns, column);
    }
};

/// What becomes of a column's sum: a bias moves against it.
struct MoveBias {
    float* bias;
    std::size_t size;
    std::size_t columns;
    const float* factors;

    SLUICE_HOST_DEVICE void operator()(std::size_t column, double sum) const {
        const float rate = -factors[0];
        // The copies are equal before, and equal after.
        const float moved =
            static_cast<float>(static_cast<double>(bias[column]) - static_cast<double>(rate) * sum);
        for (std::size_t i = column; i < size; i += columns)
            bias[i] = moved;
    }
};

/// What becomes of a column's sum: it is stored, times a factor.
struct StoreScaled {
    float* result;
    double factor;

    SLUICE_HOST_DEVICE void operator()(std::size_t column, double sum) const {
        result[column] = static_cast<float>(factor * sum);
    }
};

template <class T, class Use>
struct UseSums {
    const T* values;
    std::size_t rows;
    std::size_t columns;
    Use use;

    SLUICE_HOST_DEVICE void operator()(std::size_t column) const {
        use(column, sum_of_column(values, 0, rows, columns, column));
    }
};

/// Adds up each column of [rows, columns] in rounds of `rows_per_sum`, and hands the sums to `use`.
template <sluice::Backend B, class T, class Use>
void sum_columns(const char* what, sluice::BasicStreamRef<B> stream, const T* values, std::size_t rows,
                 std::size_t columns, sluice::DeviceSpan<double, B> scratch, const Use& use) {
    if (scratch.size() < sum_scratch(rows, columns)) {
        throw sluice::Error(std::string(what) + ": scratch memory of " + std::to_string(scratch.size()) +
                            " elements was given, expected at least " +
                            std::to_string(sum_scratch(rows, columns)));
    }
    if (rows <= rows_per_sum) {
        for_each(stream, columns, UseSums<T, Use>{values, rows, columns, use});
        return;
    }
    double* sums = scratch.data();
    for_each(stream, sums_of(rows), columns, SumBlocks<T>{values, sums, rows, columns});
    for (rows = sums_of(rows); rows > rows_per_sum; rows = sums_of(rows)) {
        double* const next = sums + rows * columns;
        for_each(stream, sums_of(rows), columns, SumBlocks<double>{sums, next, rows, columns});
        sums = next;
    }
    for_each(stream, columns, UseSums<double, Use>{sums, rows, columns, use});
}

} // namespace detail

template <class T, sluice::Backend B>
void update_any_bias(sluice::BasicStreamRef<B> stream, const Matrix<const T, B>& gradient,
                     sluice::DeviceSpan<float, B> bias, sluice::DeviceSpan<const float, B> factors,
                     sluice::DeviceSpan<double, B> scratch) {
    require_size("update_bias: factors", factors.size(), 2);
    if (gradient.columns() == 0 || bias.size() % gradient.columns() != 0 || bias.empty()) {
        throw sluice::Error("update_bias: a bias of " + std::to_string(bias.size()) +
                            " elements is no multiple of the gradient's " +
                            std::to_string(gradient.columns()) + " columns");
    }
    detail::sum_columns<B>("update_bias", stream, gradient.data(), gradient.rows(), gradient.columns(),
                           scratch,
                           detail::MoveBias{bias.data(), bias.size(), gradient.columns(), factors.data()});
}

template <sluice::Backend B>
void update_bias(sluice::BasicStreamRef<B> stream, ConstMatrixArgument<B> gradient,
                 SpanArgument<float, B> bias, SpanArgument<const float, B> factors,
                 SpanArgument<double, B> scratch) {
    update_any_bias<float>(stream, gradient, bias, factors, scratch);
}

template <sluice::Backend B>
void update_bias(sluice::BasicStreamRef<B> stream, std::type_identity_t<Matrix<const Bfloat16, B>> gradient,
                 SpanArgument<float, B> bias, SpanArgument<const float, B> factors,
                 SpanArgument<double, B> scratch) {
    update_any_bias<Bfloat16>(stream, gradient, bias, factors, scratch);
}

template <sluice::Backend B>
void mean(sluice::BasicStreamRef<B> stream, SpanArgument<const float, B> values,
          SpanArgument<float, B> result, SpanArgument<double, B> scratch) {
    require_size("mean: elements of the result", result.size(), 1);
    if (values.empty())
        throw sluice::Error("mean: there are no values to take the mean of");
    detail::sum_columns<B>("mean", stream, values.data(), values.size(), 1, scratch,
                           detail::StoreScaled{result.data(), 1.0 / static_cast<double>(values.size())});
}

} // namespace nn
