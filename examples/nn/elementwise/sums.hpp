/// \file
/// Sums down the columns of a matrix, in float64 and in a fixed order: the same bits in every run.
#pragma once

#include <cstddef>

#include <nn/core/float16.hpp>
#include <nn/gemm/matrix.hpp>
#include <sluice/backend/stream.hpp>

namespace nn {

/// The elements of scratch memory that a sum over `rows` rows of `columns` elements needs; grows with either.
std::size_t sum_scratch(std::size_t rows, std::size_t columns);

/// One step of gradient descent for a bias: `bias[i] -= rate * (sum of column i % columns of gradient)`, with the rate
/// of `factors` (see `descent_factors`). A bias that is kept several times over, as for a transposed convolution,
/// stays so. `scratch` holds at least `sum_scratch(rows, columns)` elements.
template <sluice::Backend B>
void update_bias(sluice::BasicStreamRef<B> stream, ConstMatrixArgument<B> gradient,
                 SpanArgument<float, B> bias, SpanArgument<const float, B> factors,
                 SpanArgument<double, B> scratch);

template <sluice::Backend B>
void update_bias(sluice::BasicStreamRef<B> stream, std::type_identity_t<Matrix<const Bfloat16, B>> gradient,
                 SpanArgument<float, B> bias, SpanArgument<const float, B> factors,
                 SpanArgument<double, B> scratch);

/// The mean of `values` into the one element of `result`. `scratch` holds at least `sum_scratch(values.size(), 1)`.
template <sluice::Backend B>
void mean(sluice::BasicStreamRef<B> stream, SpanArgument<const float, B> values,
          SpanArgument<float, B> result, SpanArgument<double, B> scratch);

} // namespace nn
