/// \file
/// The 7×7 convolution of stride 2 that begins a residual network: few channels to 64, float16 on Tensor Cores, on a device.
///
/// Images are [N, H, W, 4], maps [N, H / 2, W / 2, 64], weights [64, 7, 7, 4], channels last. The convolution pads with three
/// zeros. Sums are float32, in the same order in every run on a device.
#pragma once

#include <cstddef>

#include <nn/conv/conv2d.hpp>
#include <nn/core/float16.hpp>
#include <sluice/backend/stream.hpp>

namespace nn {

/// Whether the kernels of this file take a convolution of this shape.
constexpr bool supports_conv_7x7(const Conv2dShape& shape) {
    return shape.kernel == 7 && shape.stride == 2 && shape.padding == 3 && shape.in_channels == 4 &&
           shape.out_channels == 64 && shape.height % 2 == 0 && shape.width % 32 == 0 && shape.width <= 256;
}

/// Whether a backend has the kernels for elements `T`.
template <class T, sluice::Backend B>
inline constexpr bool has_conv_7x7 = false;

/// The floats of scratch memory that the functions below need on the current device. Only in builds with CUDA.
std::size_t conv_7x7_scratch();

#if SLUICE_HAS_CUDA
template <>
inline constexpr bool has_conv_7x7<Half, sluice::Cuda> = true;

/// The forward pass, and for each channel of `out`, as it is stored, its sum and the sum of its squares: `sums` [2, 64].
/// Throws `sluice::Error` when a size does not fit or the shape is not supported.
void conv_7x7_sums(sluice::CudaStreamRef stream, const Conv2dShape& shape,
                   sluice::DeviceSpan<const Half, sluice::Cuda> in,
                   sluice::DeviceSpan<const Half, sluice::Cuda> weights,
                   sluice::DeviceSpan<Half, sluice::Cuda> out, sluice::DeviceSpan<float, sluice::Cuda> sums,
                   sluice::DeviceSpan<float, sluice::Cuda> scratch);

/// The gradient of the weights from `in` and the gradient of `out`. Throws as `conv_7x7_sums`.
void conv_7x7_weight_gradient(sluice::CudaStreamRef stream, const Conv2dShape& shape,
                              sluice::DeviceSpan<const Half, sluice::Cuda> in,
                              sluice::DeviceSpan<const Half, sluice::Cuda> out_gradient,
                              sluice::DeviceSpan<Half, sluice::Cuda> weight_gradient,
                              sluice::DeviceSpan<float, sluice::Cuda> scratch);
#endif

} // namespace nn
