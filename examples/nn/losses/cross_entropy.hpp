/// \file
/// Softmax cross-entropy and predictions.
///
/// A row of logits belongs to a pixel of an image, or, where `raster_of_row` is empty, to a sample of its own.
/// Labels and predictions are in raster order [N, H, W], or one per sample.
#pragma once

#include <cstdint>

#include <nn/gemm/matrix.hpp>
#include <sluice/backend/stream.hpp>

namespace nn {

/// Softmax cross-entropy of each row, and the gradient of their mean, in one pass:
/// `losses[row] = log(sum(exp(logits))) - logits[label]`,
/// `gradient[row, j] = (softmax(logits)[j] - (j == label)) / rows`. `gradient` may be `logits`.
///
/// A label that is no class makes its row's loss NaN and its gradient 0: the mean shows it, and the weights are not
/// damaged.
template <sluice::Backend B>
void softmax_cross_entropy(sluice::BasicStreamRef<B> stream, ConstMatrixArgument<B> logits,
                           SpanArgument<const std::uint8_t, B> labels,
                           SpanArgument<const std::int32_t, B> raster_of_row, MatrixArgument<B> gradient,
                           SpanArgument<float, B> losses);

/// The class with the greatest logit of each row; of equal ones the first. At most 256 classes.
template <sluice::Backend B>
void predict_classes(sluice::BasicStreamRef<B> stream, ConstMatrixArgument<B> logits,
                     SpanArgument<const std::int32_t, B> raster_of_row,
                     SpanArgument<std::uint8_t, B> predictions);

} // namespace nn
