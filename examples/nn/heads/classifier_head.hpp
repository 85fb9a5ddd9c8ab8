/// \file
/// A linear layer with softmax cross-entropy at the end of a network, in two kernels, on a device.
///
/// The layer is too small to fill a device, so its time is that of its dependent kernels: there are two. Everything is float32,
/// and in the same order in every run.
#pragma once

#include <cstddef>
#include <cstdint>

#include <nn/gemm/matrix.hpp>
#include <sluice/backend/stream.hpp>

namespace nn {

/// Whether the kernels are written for so many classes.
constexpr bool supports_classifier_head(std::size_t classes) { return classes >= 1 && classes <= 16; }

/// The elements of scratch memory that `classifier_step` needs for so many images.
constexpr std::size_t classifier_scratch(std::size_t images, std::size_t classes) {
    return 8 * images * classes;
}

/// Where such kernels exist.
template <sluice::Backend B>
inline constexpr bool has_classifier_head = false;

#if SLUICE_HAS_CUDA
template <>
inline constexpr bool has_classifier_head<sluice::Cuda> = true;

/// One step of training for the layer `logits = features [N, K] * weights [K, C] + bias` and the mean cross-entropy of
/// its softmax with `labels` [N] (see `softmax_cross_entropy`): writes the gradient of the features and the one element
/// of `loss`, both with the weights as they are, and then moves weights and bias against their gradients, with the rate
/// of `factors` (see `descent_factors`). Throws `sluice::Error` when a size does not fit.
void classifier_step(sluice::CudaStreamRef stream, Matrix<const float, sluice::Cuda> features,
                     sluice::DeviceSpan<const std::uint8_t, sluice::Cuda> labels,
                     sluice::DeviceSpan<const float, sluice::Cuda> factors,
                     Matrix<float, sluice::Cuda> weights, sluice::DeviceSpan<float, sluice::Cuda> bias,
                     Matrix<float, sluice::Cuda> features_gradient,
                     sluice::DeviceSpan<float, sluice::Cuda> loss,
                     sluice::DeviceSpan<float, sluice::Cuda> scratch);
#endif

} // namespace nn
