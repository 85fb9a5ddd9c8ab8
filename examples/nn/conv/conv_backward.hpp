/// \file
/// The backward pass of a 3×3 convolution, 2×2 max pool and ReLU without a map of the convolution's own size in memory;
/// bfloat16, on a device.
///
/// Maps are [N, H, W, C], channels last, in raster order; the gradients of pooled maps are [N, H / 2, W / 2, Co]. Which
/// element of a pool a gradient goes to was found by `conv_fprop`. Products run on Tensor Cores, sums are float32.
/// How a sum over pixels is split depends on sizes alone.
#pragma once

#include <cstddef>
#include <cstdint>

#include <nn/conv/conv_fprop.hpp>

namespace nn {

/// Whether the kernels of this file are for maps of `inputs` channels convolved to `outputs`. One input means images of
/// bytes.
constexpr bool supports_conv_backward(std::size_t inputs, std::size_t outputs) {
    return inputs != 32 && supports_conv_fprop(inputs, outputs);
}

/// The 32-bit words of a convolution's weights as its `conv_dgrad` takes them.
constexpr std::size_t flipped_weight_words(std::size_t inputs, std::size_t outputs) {
    if (inputs == 1)
        return 0;
    return 9 * outputs * (inputs == 4 ? 8 : inputs) / 2; // a step of the Tensor Cores has eight columns
}

/// The partial gradients of weights and bias that `conv_wgrad` writes, and the caller adds up: enough to keep a large
/// device busy, and the same number on every device.
constexpr std::size_t gradient_parts(std::size_t inputs, std::size_t outputs) {
    constexpr std::size_t blocks = 132;
    switch (inputs) {
    case 1:
        return 3 * blocks;
    case 4:
        return 4 * blocks;
    default:
        const std::size_t groups = outputs / 64;
        return (groups < blocks ? blocks / groups : 1) * (64 / inputs);
    }
}

/// Whether a block of the current device may have the shared memory that the kernels for maps of `inputs` channels ask
/// for: 64 channels take 149 KiB, more than some GPUs have. Defined in builds with CUDA. Throws
/// `sluice::Error`.
bool device_supports_conv_backward(std::size_t inputs);

#if SLUICE_HAS_CUDA
/// Rounds weights [9 C, Co] and puts them into the order in which `conv_dgrad` takes them.
void pack_flipped_weights(sluice::CudaStreamRef stream, Matrix<const float, sluice::Cuda> weights,
                          sluice::DeviceSpan<std::uint32_t, sluice::Cuda> packed);

/// The gradient of maps of `shape`, from that of the pooled maps.
void conv_dgrad(sluice::CudaStreamRef stream,
                sluice::DeviceSpan<const Bfloat16, sluice::Cuda> pooled_gradient,
                sluice::DeviceSpan<const std::uint32_t, sluice::Cuda> routes, const MapShape& shape,
                std::size_t outputs, sluice::DeviceSpan<const std::uint32_t, sluice::Cuda> flipped,
                sluice::DeviceSpan<Bfloat16, sluice::Cuda> gradient);

/// The gradients of weights [9 C, Co] and bias, in `gradient_parts` parts: `weight_parts` [parts, 9 C Co] and
/// `bias_parts` [parts, Co]. From maps of 4, 16 or 64 channels.
void conv_wgrad(sluice::CudaStreamRef stream, sluice::DeviceSpan<const Bfloat16, sluice::Cuda> maps,
                const MapShape& shape, sluice::DeviceSpan<const Bfloat16, sluice::Cuda> pooled_gradient,
                sluice::DeviceSpan<const std::uint32_t, sluice::Cuda> routes, std::size_t outputs,
                Matrix<float, sluice::Cuda> weight_parts, Matrix<float, sluice::Cuda> bias_parts);

/// The same from images of bytes, which are multiplied with `scale`. It computes the convolution again, and needs no
/// routes.
void conv_wgrad(sluice::CudaStreamRef stream, sluice::DeviceSpan<const std::uint8_t, sluice::Cuda> images,
                const MapShape& shape, float scale, Matrix<const float, sluice::Cuda> weights,
                sluice::DeviceSpan<const float, sluice::Cuda> bias,
                sluice::DeviceSpan<const Bfloat16, sluice::Cuda> pooled_gradient,
                Matrix<float, sluice::Cuda> weight_parts, Matrix<float, sluice::Cuda> bias_parts);
#endif

} // namespace nn
