/// \file
/// Patches of a convolution (im2col) and their gradient, for every backend, and their explicit instantiation.
#pragma once

#include <cstdint>

#include <nn/conv/conv2d.hpp>
#include <nn/elementwise/for_each.hpp>

namespace nn {
namespace detail {

/// One tap of one output pixel: all channels of an input pixel, or zeros.
struct GatherConvPatches {
    const float* in;
    float* patches;
    std::uint32_t height, width, channels, out_height, out_width, kernel, stride, padding;

    SLUICE_HOST_DEVICE void operator()(std::size_t row, std::size_t tap) const {
        const auto pixel = static_cast<std::uint32_t>(row % (out_height * out_width));
        const std::size_t image = quotient(row, out_height * out_width);
        const auto ky = static_cast<std::uint32_t>(tap) / kernel;
        const auto kx = static_cast<std::uint32_t>(tap) % kernel;
        // Beyond the upper and left border these wrap around to large numbers.
        const std::uint32_t y = pixel / out_width * stride + ky - padding;
        const std::uint32_t x = pixel % out_width * stride + kx - padding;
        float* const to = patches + (row * kernel * kernel + tap) * channels;
        if (y >= height || x >= width) {
            for (std::uint32_t c = 0; c < channels; ++c)
                to[c] = 0.0f;
            return;
        }
        const float* const from = in + ((image * height + y) * width + x) * channels;
        for (std::uint32_t c = 0; c < channels; ++c)
            to[c] = from[c];
    }
};

/// All channels of one input pixel: the sum over the patches that hold it.
struct SumConvPatches {
    const float* patches;
    float* in_gradient;
    std::uint32_t height, width, channels, out_height, out_width, kernel, stride, padding;

    SLUICE_HOST_DEVICE void operator()(std::size_t row) const {
        const auto pixel = static_cast<std::uint32_t>(row % (height * width));
        const std::size_t image = quotient(row, height * width);
        const std::uint32_t y = pixel / width + padding;
        const std::uint32_t x = pixel % width + padding;
        float* const to = in_gradient + row * channels;
        for (std::uint32_t c = 0; c < channels; ++c)
            to[c] = 0.0f;
        for (std::uint32_t ky = 0; ky < kernel && ky <= y; ++ky) {
            if ((y - ky) % stride != 0 || (y - ky) / stride >= out_height)
                continue;
            for (std::uint32_t kx = 0; kx < kernel && kx <= x; ++kx) {
                if ((x - kx) % stride != 0 || (x - kx) / stride >= out_width)
                    continue;
                const std::size_t out =
                    (image * out_height + (y - ky) / stride) * out_width + (x - kx) / stride;
                const float* const from = patches + ((out * kernel + ky) * kernel + kx) * channels;
                for (std::uint32_t c = 0; c < channels; ++c)
                    to[c] += from[c];
            }
        }
    }
};

/// Both functors have the same members after their two pointers.
template <class Functor, class From, class To>
Functor conv_patches_functor(const Conv2dShape& shape, From* from, To* to) {
    const auto narrow = [](std::size_t value) { return static_cast<std::uint32_t>(value); };
    return {from,
            to,
            narrow(shape.height),
            narrow(shape.width),
            narrow(shape.in_channels),
            narrow(shape.out_height()),
            narrow(shape.out_width()),
            narrow(shape.kernel),
            narrow(shape.stride),
            narrow(shape.padding)};
}

} // namespace detail

template <sluice::Backend B>
void gather_conv_patches(sluice::BasicStreamRef<B> stream, const Conv2dShape& shape,
                         SpanArgument<const float, B> in, MatrixArgument<B> patches) {
    require_size("convolution: elements of the input", in.size(), shape.in_size());
    require_size("convolution: elements of the patches", patches.size(),
                 shape.out_pixels() * shape.patch_size());
    detail::for_each(
        stream, shape.out_pixels(), shape.kernel * shape.kernel,
        detail::conv_patches_functor<detail::GatherConvPatches>(shape, in.data(), patches.data()));
}

template <sluice::Backend B>
void sum_conv_patches(sluice::BasicStreamRef<B> stream, const Conv2dShape& shape,
                      ConstMatrixArgument<B> patch_gradients, SpanArgument<float, B> in_gradient) {
    require_size("convolution: elements of the input", in_gradient.size(), shape.in_size());
    require_size("convolution: elements of the patches", patch_gradients.size(),
                 shape.out_pixels() * shape.patch_size());
    detail::for_each(stream, shape.images * shape.height * shape.width,
                     detail::conv_patches_functor<detail::SumConvPatches>(shape, patch_gradients.data(),
                                                                          in_gradient.data()));
}

} // namespace nn

/// Explicit instantiations, in namespace nn, once for each backend.
#define NN_INSTANTIATE_CONV_PATCHES(Backend)                                                                 \
    template void gather_conv_patches(sluice::BasicStreamRef<Backend>, const Conv2dShape&,                   \
                                      SpanArgument<const float, Backend>, MatrixArgument<Backend>);          \
    template void sum_conv_patches(sluice::BasicStreamRef<Backend>, const Conv2dShape&,                      \
                                   ConstMatrixArgument<Backend>, SpanArgument<float, Backend>);
