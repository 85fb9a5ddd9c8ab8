/// \file
/// Batch normalisation in training: statistics of each channel, normalisation with what follows it, gradients.
///
/// Maps are matrices of a row for each pixel of each image and a column for each channel, of float or Half; statistics,
/// parameters and sums are float. A forward pass is `batch_norm_statistics` and then `scale_bias_relu` with the scale and
/// the bias that it found. A row of Half that is a multiple of 8 elements, or of float one of 4, is taken 16 bytes at a
/// time, from addresses that are multiples of 16.
#pragma once

#include <cstddef>

#include <nn/core/float16.hpp>
#include <nn/gemm/matrix.hpp>
#include <sluice/backend/stream.hpp>

namespace nn {

/// PyTorch's defaults.
struct BatchNormOptions {
    float epsilon = 1e-5f; ///< added to the variance
    float momentum = 0.1f; ///< the weight of this batch in the running statistics
};

/// A layer's parameters and statistics, one element a channel each.
template <sluice::Backend B>
struct BatchNorm {
    sluice::DeviceSpan<const float, B> weight;
    sluice::DeviceSpan<const float, B> bias;
    sluice::DeviceSpan<float, B> running_mean;
    sluice::DeviceSpan<float, B> running_variance; ///< unbiased
    // Of the latest batch, for the backward pass:
    sluice::DeviceSpan<float, B> mean;
    sluice::DeviceSpan<float, B> inverse_deviation; ///< 1 / sqrt(biased variance + epsilon)
    // So that the normalised map is `scale * x + bias`:
    sluice::DeviceSpan<float, B> fused_scale;
    sluice::DeviceSpan<float, B> fused_bias;
};

/// Float64 elements of scratch that the sums over `rows` rows of `channels` channels need; grows with either.
std::size_t batch_norm_scratch(std::size_t rows, std::size_t channels);

/// The statistics of `in`, and the running statistics moved towards them. Of one row alone the unbiased variance is not
/// defined: `sluice::Error`. Throws it, too, when a size does not fit.
template <class T, sluice::Backend B>
void batch_norm_statistics(sluice::BasicStreamRef<B> stream, std::type_identity_t<Matrix<const T, B>> in,
                           const BatchNorm<B>& norm, const BatchNormOptions& options,
                           SpanArgument<double, B> scratch);

/// The same from sums that something else has made: `sums` [2, channels] of each channel's elements and of their squares, over
/// `rows` rows. In float32, so a mean far from 0 costs digits of the variance.
template <sluice::Backend B>
void batch_norm_from_sums(sluice::BasicStreamRef<B> stream, SpanArgument<const float, B> sums,
                          std::size_t rows, const BatchNorm<B>& norm, const BatchNormOptions& options);

/// Fused scale and bias from the running statistics: those of inference.
template <sluice::Backend B>
void batch_norm_inference(sluice::BasicStreamRef<B> stream, const BatchNorm<B>& norm,
                          const BatchNormOptions& options);

/// `folded[o, i] = scale[o] * weights[o, i]`, rounded to float or Half: a convolution's weights with the normalisation after
/// it. An empty scale is 1.
template <class T, sluice::Backend B>
void fold_weights(sluice::BasicStreamRef<B> stream, ConstMatrixArgument<B> weights,
                  SpanArgument<const float, B> scale, SpanArgument<T, B> folded);

/// What is added to a normalised map before its ReLU.
template <class T, sluice::Backend B>
struct Residual {
    sluice::DeviceSpan<const T, B> maps = {};      ///< as many elements as the map; empty for none
    sluice::DeviceSpan<const float, B> scale = {}; ///< of each channel; empty for 1
    sluice::DeviceSpan<const float, B> bias = {};  ///< of each channel; empty for 0
};

/// `out = scale * in + bias`, plus the residual with a scale and a bias of its own, then ReLU if `relu`. An empty scale
/// is 1. `out` may be `in` or the residual's maps. NaN stays NaN.
template <class T, class Out, sluice::Backend B>
void scale_bias_relu(sluice::BasicStreamRef<B> stream, std::type_identity_t<Matrix<const T, B>> in,
                     SpanArgument<const float, B> scale, SpanArgument<const float, B> bias,
                     const std::type_identity_t<Residual<T, B>>& residual, bool relu,
                     std::type_identity_t<Matrix<Out, B>> out);

/// The gradients of a batch normalisation, perhaps with a residual and a ReLU after it.
template <class T, sluice::Backend B>
struct BatchNormGradients {
    /// The normalisation's input.
    Matrix<const T, B> in;
    /// The output of the ReLU; empty if there is none, or nothing was added before it.
    sluice::DeviceSpan<const T, B> relu_output = {};
    /// A ReLU of the normalised map alone, whose output follows from `in`; excludes `relu_output` and `other_gradient`.
    bool relu = false;
    /// The gradient of the output. With `relu_output` or `other_gradient` it becomes that of the ReLU's input, which is the
    /// residual's, too.
    sluice::DeviceSpan<T, B> gradient;
    /// A second part of the output's gradient, which is added to the first; empty for none.
    sluice::DeviceSpan<const T, B> other_gradient = {};
    /// Receives the input's gradient; may be `gradient`, or `other_gradient`.
    sluice::DeviceSpan<T, B> in_gradient;
    /// Receive the gradients of the parameters.
    sluice::DeviceSpan<float, B> weight_gradient;
    sluice::DeviceSpan<float, B> bias_gradient;
};

/// Computes them from the statistics that `batch_norm_statistics` left. Throws `sluice::Error` when a size does not fit, or
/// what excludes each other is given.
template <class T, sluice::Backend B>
void batch_norm_backward(sluice::BasicStreamRef<B> stream, const BatchNorm<B>& norm,
                         const BatchNormGradients<T, B>& gradients, SpanArgument<double, B> scratch);

/// The gradient of a bias: the sums over the columns of `gradient`.
template <class T, sluice::Backend B>
void bias_gradient(sluice::BasicStreamRef<B> stream, std::type_identity_t<Matrix<const T, B>> gradient,
                   SpanArgument<float, B> sums, SpanArgument<double, B> scratch);

} // namespace nn
