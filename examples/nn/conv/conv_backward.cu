#include <nn/conv/conv_backward.hpp>

#include <algorithm>
#include <limits>

#include <nn/conv/detail/conv_dgrad.cuh>
#include <nn/conv/detail/conv_dgrad_narrow.cuh>
#include <nn/conv/detail/conv_launch.cuh>
#include <nn/conv/detail/conv_wgrad.cuh>
#include <nn/conv/detail/conv_wgrad_bytes.cuh>
#include <nn/conv/detail/conv_wgrad_narrow.cuh>
#include <nn/core/ceil_div.hpp>
#include <nn/elementwise/for_each.cuh>

namespace nn {
namespace {

using detail::bits_of;
using detail::checked_blocks;
using detail::conv_shape;
using detail::ConvShape;
using sluice::Cuda;
using sluice::CudaStreamRef;
using sluice::DeviceSpan;

/// Checks what every call needs; returns the number of images.
std::size_t checked_images(const char* what, const MapShape& shape, std::size_t elements, std::size_t outputs,
                           std::size_t pooled) {
    const bool offered = supports_conv_backward(shape.channels, outputs);
    const std::size_t images = detail::checked_images(what, offered, shape, elements, outputs, pooled);
    if (shape.pixels() * outputs > std::numeric_limits<std::int32_t>::max())
        throw sluice::Error(std::string(what) + ": a convolved map exceeds 2^31 elements");
    return images;
}

void check_parts(const MapShape& shape, std::size_t outputs, const Matrix<float, Cuda>& weight_parts,
                 const Matrix<float, Cuda>& bias_parts) {
    const std::size_t parts = gradient_parts(shape.channels, outputs);
    require_size("conv_wgrad: elements of the weights' parts", weight_parts.size(),
                 parts * 9 * shape.channels * outputs);
    require_size("conv_wgrad: elements of the bias's parts", bias_parts.size(), parts * outputs);
}

template <int Inputs>
void launch_pack(CudaStreamRef stream, const Matrix<const float, Cuda>& weights,
                 const DeviceSpan<std::uint32_t, Cuda>& packed) {
    detail::for_each(stream, packed.size(),
                     detail::PackFlippedWeights<Inputs>{weights.data(), packed.data(),
                                                        static_cast<int>(weights.columns())});
}

template <int Inputs>
void launch_dgrad(CudaStreamRef stream, const DeviceSpan<const Bfloat16, Cuda>& pooled_gradient,
                  const DeviceSpan<const std::uint32_t, Cuda>& routes, const MapShape& shape,
                  std::size_t outputs, std::size_t images,
                  const DeviceSpan<const std::uint32_t, Cuda>& flipped,
                  const DeviceSpan<Bfloat16, Cuda>& gradient) {
    using Tile = detail::DgradTile<Inputs>;
    const ConvShape tiled = conv_shape(shape, outputs, Tile::Pixels::side, Tile::Pixels::side);
    SLUICE_CUDA_CHECK(cudaFuncSetAttribute(detail::conv_dgrad_kernel<Inputs>,
                                           cudaFuncAttributeMaxDynamicSharedMemorySize, Tile::bytes));
    detail::conv_dgrad_kernel<Inputs><<<checked_blocks("conv_dgrad", images * tiled.tiles),
                                        detail::conv_threads, Tile::bytes, stream.get()>>>(
        bits_of(pooled_gradient.data()), routes.data(), tiled, flipped.data(), bits_of(gradient.data()));
    SLUICE_CUDA_CHECK(cudaGetLastError());
}

template <int Inputs>
void launch_wgrad(CudaStreamRef stream, const DeviceSpan<const Bfloat16, Cuda>& maps, const MapShape& shape,
                  std::size_t images, const DeviceSpan<const Bfloat16, Cuda>& pooled_gradient,
                  const DeviceSpan<const std::uint32_t, Cuda>& routes, std::size_t outputs,
                  float* weight_parts, float* bias_parts) {
    using Tile = detail::WgradTile<Inputs>;
    const ConvShape tiled = conv_shape(shape, outputs, Tile::height, Tile::width);
    SLUICE_CUDA_CHECK(cudaFuncSetAttribute(detail::conv_wgrad_kernel<Inputs>,
                                           cudaFuncAttributeMaxDynamicSharedMemorySize, Tile::bytes));
    const std::size_t blocks = gradient_parts(Inputs, outputs) / Tile::sharers * (outputs / 64);
    detail::conv_wgrad_kernel<Inputs>
        <<<checked_blocks("conv_wgrad", blocks), Tile::threads, Tile::bytes, stream.get()>>>(
            bits_of(maps.data()), tiled, images * tiled.tiles, bits_of(pooled_gradient.data()), routes.data(),
            weight_parts, bias_parts);
    SLUICE_CUDA_CHECK(cudaGetLastError());
}

} // namespace

bool device_supports_conv_backward(std::size_t inputs) {
    if (inputs != 64)
        return true; // no more than conv_fprop takes, or less than every device has
    int device = 0;
    int most = 0;
    SLUICE_CUDA_CHECK(cudaGetDevice(&device));
    SLUICE_CUDA_CHECK(cudaDeviceGetAttribute(&most, cudaDevAttrMaxSharedMemoryPerBlockOptin, device));
    return most >= std::max(detail::WgradTile<64>::bytes, detail::DgradTile<64>::bytes);
}

void pack_flipped_weights(CudaStreamRef stream, Matrix<const float, Cuda> weights,
                          DeviceSpan<std::uint32_t, Cuda> packed) {
    const std::size_t inputs = weights.rows() / 9;
    if (weights.rows() % 9 != 0 || inputs == 1 || !supports_conv_backward(inputs, weights.columns())) {
        throw sluice::Error("pack_flipped_weights: no kernel takes weights of " +
                            std::to_string(weights.rows()) + " rows and " +
                            std::to_string(weights.columns()) + " columns");
    }
    require_size("pack_flipped_weights: words", packed.size(),
                 flipped_weight_words(inputs, weights.columns()));
    if (inputs == 4)
        launch_pack<4>(stream, weights, packed);
    else if (inputs == 16)
        launch_pack<16>(stream, weights, packed);
    else
        launch_pack<64>(stream, weights, packed);
}

void conv_dgrad(CudaStreamRef stream, DeviceSpan<const Bfloat16, Cuda> pooled_gradient,
                DeviceSpan<const std::uint32_t, Cuda> routes, const MapShape& shape, std::size_t outputs,
                DeviceSpan<const std::uint32_t, Cuda> flipped, DeviceSpan<Bfloat16, Cuda> gradient) {
    const std::size_t images =
        checked_images("conv_dgrad", shape, gradient.size(), outputs, pooled_gradient.size());
    require_size("conv_dgrad: words of routes", routes.size(), route_words(pooled_gradient.size()));
    require_size("conv_dgrad: words of weights", flipped.size(),
                 flipped_weight_words(shape.channels, outputs));
    const auto launch = [&](auto kernel) {
        kernel(stream, pooled_gradient, routes, shape, outputs, images, flipped, gradient);
    };
    switch (shape.channels) {
    case 4: {
        const ConvShape tiled = conv_shape(shape, outputs, 2 * detail::narrow_segment, detail::narrow_strip);
        constexpr std::size_t warps_per_block = detail::conv_threads / 32;
        const std::size_t warps = images * tiled.tiles;
        detail::conv_dgrad_narrow_kernel<<<checked_blocks("conv_dgrad", ceil_div(warps, warps_per_block)),
                                           detail::conv_threads, 0, stream.get()>>>(
            bits_of(pooled_gradient.data()), routes.data(), tiled, flipped.data(), bits_of(gradient.data()),
            warps);
        SLUICE_CUDA_CHECK(cudaGetLastError());
        return;
    }
    case 16:
        return launch(launch_dgrad<16>);
    case 64:
        return launch(launch_dgrad<64>);
    default:
        throw sluice::Error("conv_dgrad: images of bytes have no gradient");
    }
}

void conv_wgrad(CudaStreamRef stream, DeviceSpan<const Bfloat16, Cuda> maps, const MapShape& shape,
                DeviceSpan<const Bfloat16, Cuda> pooled_gradient,
                DeviceSpan<const std::uint32_t, Cuda> routes, std::size_t outputs,
                Matrix<float, Cuda> weight_parts, Matrix<float, Cuda> bias_parts) {
    const std::size_t images =
        checked_images("conv_wgrad", shape, maps.size(), outputs, pooled_gradient.size());
    require_size("conv_wgrad: words of routes", routes.size(), route_words(pooled_gradient.size()));
    check_parts(shape, outputs, weight_parts, bias_parts);
    switch (shape.channels) {
    case 4: {
        using Tile = detail::NarrowWgradTile;
        const ConvShape tiled = conv_shape(shape, outputs, Tile::height, Tile::width);
        const std::size_t blocks = gradient_parts(4, outputs) * (outputs / 16);
        detail::conv_wgrad_narrow_kernel<<<checked_blocks("conv_wgrad", blocks), Tile::threads, 0,
                                           stream.get()>>>(bits_of(maps.data()), tiled, images * tiled.tiles,
                                                           bits_of(pooled_gradient.data()), routes.data(),
                                                           weight_parts.data(), bias_parts.data());
        SLUICE_CUDA_CHECK(cudaGetLastError());
        return;
    }
    case 16:
        return launch_wgrad<16>(stream, maps, shape, images, pooled_gradient, routes, outputs,
                                weight_parts.data(), bias_parts.data());
    case 64:
        return launch_wgrad<64>(stream, maps, shape, images, pooled_gradient, routes, outputs,
                                weight_parts.data(), bias_parts.data());
    default:
        throw sluice::Error("conv_wgrad: maps of 1 channel are images of bytes");
    }
}

void conv_wgrad(CudaStreamRef stream, DeviceSpan<const std::uint8_t, Cuda> images, const MapShape& shape,
                float scale, Matrix<const float, Cuda> weights, DeviceSpan<const float, Cuda> bias,
                DeviceSpan<const Bfloat16, Cuda> pooled_gradient, Matrix<float, Cuda> weight_parts,
                Matrix<float, Cuda> bias_parts) {
    const std::size_t outputs = bias.size();
    const std::size_t count =
        checked_images("conv_wgrad", shape, images.size(), outputs, pooled_gradient.size());
    require_size("conv_wgrad: channels of images", shape.channels, 1);
    require_size("conv_wgrad: weights", weights.size(), 9 * outputs);
    check_parts(shape, outputs, weight_parts, bias_parts);
    const bool aligned = shape.width % 8 == 0 && reinterpret_cast<std::uintptr_t>(images.data()) % 8 == 0;
    const std::size_t windows = count * (shape.height / 2) * ((shape.width / 2 + 3) / 4);
    const dim3 grid(static_cast<unsigned>(gradient_parts(1, outputs)), static_cast<unsigned>(outputs / 4));
    detail::conv_wgrad_bytes_kernel<<<grid, detail::conv_threads, 0, stream.get()>>>(
        images.data(), conv_shape(shape, outputs, 1, 1), scale, weights.data(), bias.data(),
        bits_of(pooled_gradient.data()), weight_parts.data(), bias_parts.data(), aligned, windows);
    SLUICE_CUDA_CHECK(cudaGetLastError());
}

} // namespace nn
