/// \file
/// 3×3 convolution, 2×2 max pool and ReLU in one kernel that writes pooled maps only; bfloat16, on a device.
///
/// Maps are [N, H, W, C], channels last, in raster order. The convolution pads with zeros; pooled maps are
/// [N, H / 2, W / 2, Co]. Sums are float32, results are rounded to bfloat16 once.
#pragma once

#include <cstddef>
#include <cstdint>

#include <nn/core/float16.hpp>
#include <nn/elementwise/maps.hpp>
#include <nn/gemm/matrix.hpp>
#include <sluice/backend/stream.hpp>

namespace nn {

/// Whether a kernel of this file convolves maps of `inputs` channels to maps of `outputs` channels. One input means
/// images of bytes.
constexpr bool supports_conv_fprop(std::size_t inputs, std::size_t outputs) {
    if (inputs == 1)
        return outputs % 4 == 0;
    if (inputs == 4)
        return outputs % 16 == 0;
    return (inputs == 16 || inputs == 32 || inputs == 64) && outputs % 64 == 0;
}

/// The 32-bit words of a convolution's weights as the kernels take them. None for one input.
constexpr std::size_t packed_weight_words(std::size_t inputs, std::size_t outputs) {
    if (inputs == 1)
        return 0;
    // Three taps of four channels are filled up to a step of the Tensor Cores, which is 16 deep.
    return (inputs == 4 ? 3 * 16 : 9 * inputs) * outputs / 2;
}

/// The 32-bit words of the routes of `pooled` elements, a multiple of 8. A route is four bits, one for each element of the
/// pool (upper left, upper right, lower left, lower right); the one that the gradient goes to is set, or none where the
/// ReLU gives 0.
constexpr std::size_t route_words(std::size_t pooled) { return pooled / 8; }

/// Whether a backend has the kernels for maps of elements `T`.
template <class T, sluice::Backend B>
inline constexpr bool has_conv_fprop = false;

#if SLUICE_HAS_CUDA
template <>
inline constexpr bool has_conv_fprop<Bfloat16, sluice::Cuda> = true;

/// Rounds weights [9 C, Co] (see LayerShape) and puts them into the order in which the Tensor Cores take them.
/// Throws `sluice::Error` for sizes that no kernel is offered for.
void pack_weights(sluice::CudaStreamRef stream, Matrix<const float, sluice::Cuda> weights,
                  sluice::DeviceSpan<std::uint32_t, sluice::Cuda> packed);

/// From images of bytes [N, H, W], which are multiplied with `scale`, and weights [9, Co].
void conv_fprop(sluice::CudaStreamRef stream, sluice::DeviceSpan<const std::uint8_t, sluice::Cuda> images,
                const MapShape& shape, float scale, Matrix<const float, sluice::Cuda> weights,
                sluice::DeviceSpan<const float, sluice::Cuda> bias,
                sluice::DeviceSpan<Bfloat16, sluice::Cuda> pooled);

/// From maps of 4, 16, 32 or 64 channels, with packed weights. If `routes` are given, it writes them as well, or, if
/// `pooled` is empty, alone: of each pool the greatest element, which is found among elements rounded to bfloat16 as
/// everywhere, and of equal ones is the first. Maps of 32 channels have no routes.
void conv_fprop(sluice::CudaStreamRef stream, sluice::DeviceSpan<const Bfloat16, sluice::Cuda> maps,
                const MapShape& shape, sluice::DeviceSpan<const std::uint32_t, sluice::Cuda> packed,
                sluice::DeviceSpan<const float, sluice::Cuda> bias,
                sluice::DeviceSpan<Bfloat16, sluice::Cuda> pooled,
                sluice::DeviceSpan<std::uint32_t, sluice::Cuda> routes = {});
#endif

} // namespace nn
