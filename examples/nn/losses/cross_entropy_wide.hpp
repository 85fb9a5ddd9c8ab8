/// \file
/// Softmax cross-entropy over many classes: a block for each row on a device, gradients of float or Half.
#pragma once

#include <cstdint>

#include <nn/core/float16.hpp>
#include <nn/gemm/matrix.hpp>
#include <sluice/backend/stream.hpp>

namespace nn {

/// For each row of `logits` [rows, classes] the loss `log(sum(exp(logits))) - logits[label]`, and the gradient of the mean
/// over the rows, times `loss_scale` and, if `factor` is not null, the number in device memory that it points to, rounded to the type `G` of `gradient` (float or Half), which may be empty. A label
/// that is no class makes its row's loss NaN and its gradient 0. Labels are `std::int32_t` or `std::uint8_t`. Throws
/// `sluice::Error` when a size does not fit.
template <class G, class Label, sluice::Backend B>
void softmax_cross_entropy_wide(sluice::BasicStreamRef<B> stream, ConstMatrixArgument<B> logits,
                                SpanArgument<const Label, B> labels, float loss_scale,
                                SpanArgument<G, B> gradient, SpanArgument<float, B> losses,
                                const float* factor = nullptr);

/// The first greatest of each row's logits.
template <sluice::Backend B>
void predict_classes_wide(sluice::BasicStreamRef<B> stream, ConstMatrixArgument<B> logits,
                          SpanArgument<std::int32_t, B> predictions);

} // namespace nn
