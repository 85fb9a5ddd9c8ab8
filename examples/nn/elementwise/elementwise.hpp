/// \file
/// Operators that treat each element by itself.
#pragma once

#include <cstddef>

#include <nn/core/float16.hpp>
#include <nn/gemm/matrix.hpp>
#include <sluice/backend/stream.hpp>
#include <sluice/random/philox.hpp>

namespace nn {

/// `values[row, column] += bias[column]`, and where `relu` is set, 0 for what is then negative.
/// `bias` is as long as a row.
template <sluice::Backend B>
void add_bias(sluice::BasicStreamRef<B> stream, MatrixArgument<B> values, SpanArgument<const float, B> bias,
              bool relu);
template <sluice::Backend B>
void add_bias(sluice::BasicStreamRef<B> stream, std::type_identity_t<Matrix<Bfloat16, B>> values,
              SpanArgument<const float, B> bias, bool relu);

/// The gradient before a ReLU, from the one after it and the ReLU's output: 0 where the output is not positive.
/// In place. Both have the same number of elements.
template <sluice::Backend B>
void relu_gradient(sluice::BasicStreamRef<B> stream, SpanArgument<const float, B> output,
                   SpanArgument<float, B> gradient);
template <sluice::Backend B>
void relu_gradient(sluice::BasicStreamRef<B> stream, SpanArgument<const Bfloat16, B> output,
                   SpanArgument<Bfloat16, B> gradient);

/// Fills `values` with numbers uniform in [-bound, bound), the same on every backend. Element i is number i % 4 of
/// the run that `key` names with i / 4 added to its sample.
template <sluice::Backend B>
void fill_uniform(sluice::BasicStreamRef<B> stream, SpanArgument<float, B> values, float bound,
                  const sluice::RandomKey& key);

/// Repeats the first `period` elements over the rest of `values`, whose number is a multiple of it.
template <sluice::Backend B>
void repeat(sluice::BasicStreamRef<B> stream, SpanArgument<float, B> values, std::size_t period);

/// The factors of an update of gradient descent: `factors = {-rate, 1}`, of the one element of `rate`. The rate is read
/// when the work runs, so the replays of a graph may change it.
template <sluice::Backend B>
void descent_factors(sluice::BasicStreamRef<B> stream, SpanArgument<const float, B> rate,
                     SpanArgument<float, B> factors);

/// Weights, and where in a gradient of many their own begins.
struct StepPart {
    float* weights = nullptr; ///< in the stream's memory, at a multiple of 16 bytes
    std::size_t size = 0;
    std::size_t begin = 0; ///< a multiple of 4
};

/// A step of gradient descent by a gradient whose parts belong to weights in several places, in one launch: for each part
/// `weights[i] += factors[0] * gradient[begin + i]`, with two factors as of `descent_factors`. Then all of the gradient is 0, for
/// the next one to be added to. `parts` are there when the work runs: at least one, in the order of their
/// `begin`, apart from each other; the gradient starts with the first, and is as long as a multiple of 4.
template <sluice::Backend B>
void take_steps(sluice::BasicStreamRef<B> stream, SpanArgument<float, B> gradient,
                SpanArgument<const StepPart, B> parts, SpanArgument<const float, B> factors);

/// The matrix of the data gradient of a 3×3 convolution, which is a 3×3 convolution itself, with the taps flipped
/// and the channels exchanged: `weights [9 C, Co]`, `flipped [9 Co, C]`,
/// `flipped[(8 - tap) * Co + o, c] = weights[tap * C + c, o]`.
template <sluice::Backend B>
void flip_weights(sluice::BasicStreamRef<B> stream, ConstMatrixArgument<B> weights,
                  MatrixArgument<B> flipped);

} // namespace nn
