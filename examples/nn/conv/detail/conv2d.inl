// Bodies of conv2d.hpp.
#pragma once

namespace nn {

inline std::string to_string(const Conv2dShape& shape) {
    return std::to_string(shape.images) + " images of " + std::to_string(shape.height) + " x " +
           std::to_string(shape.width) + " x " + std::to_string(shape.in_channels) + ", " +
           std::to_string(shape.out_channels) + " outputs, kernel " + std::to_string(shape.kernel) +
           ", stride " + std::to_string(shape.stride) + ", padding " + std::to_string(shape.padding);
}

inline void require_conv2d(const Conv2dShape& shape) {
    const bool is_empty = shape.images == 0 || shape.height == 0 || shape.width == 0 ||
                          shape.in_channels == 0 || shape.out_channels == 0 || shape.kernel == 0 ||
                          shape.stride == 0;
    const std::size_t least = shape.kernel > 2 * shape.padding ? shape.kernel - 2 * shape.padding : 1;
    if (is_empty || shape.height < least || shape.width < least) [[unlikely]] {
        throw sluice::Error("convolution of " + to_string(shape) +
                            "; expected no size of 0, and maps of at least " + std::to_string(least) +
                            " pixels a side");
    }
}

template <sluice::Backend B>
void PatchConv2d<B>::prepare(const Conv2dShape& shape) {
    require_conv2d(shape);
    if (!is_gathered(shape))
        return;
    const Conv2dShape some = shape.with_images(images_at_once(shape));
    const std::size_t needed = some.out_pixels() * some.patch_size();
    if (needed > patches_.size())
        patches_ = sluice::DeviceBuffer<float, B>(needed);
}

template <sluice::Backend B>
template <class Work>
void PatchConv2d<B>::for_some_images(const Conv2dShape& shape, const Work& work) {
    const std::size_t step = is_gathered(shape) ? images_at_once(shape) : shape.images;
    for (std::size_t first = 0; first < shape.images; first += step) {
        const Conv2dShape before = shape.with_images(first);
        work(shape.with_images(std::min(step, shape.images - first)), before.in_size(), before.out_size());
    }
}

template <sluice::Backend B>
Matrix<float, B> PatchConv2d<B>::patches(const Conv2dShape& shape) {
    const std::size_t needed = shape.out_pixels() * shape.patch_size();
    if (needed > patches_.size()) [[unlikely]]
        throw sluice::Error("convolution of " + to_string(shape) + " was not prepared");
    return {patches_.span().first(needed), shape.out_pixels(), shape.patch_size()};
}

/// Throws `sluice::Error` unless the three spans are as long as `shape` says.
inline void require_conv2d_sizes(const Conv2dShape& shape, std::size_t in, std::size_t weights,
                                 std::size_t out) {
    require_conv2d(shape);
    require_size("convolution: elements of the input", in, shape.in_size());
    require_size("convolution: elements of the weights", weights, shape.weight_size());
    require_size("convolution: elements of the output", out, shape.out_size());
}

template <sluice::Backend B>
void PatchConv2d<B>::forward(sluice::BasicStreamRef<B> stream, const Conv2dShape& shape,
                             sluice::DeviceSpan<const float, B> in,
                             sluice::DeviceSpan<const float, B> weights, sluice::DeviceSpan<float, B> out) {
    require_conv2d_sizes(shape, in.size(), weights.size(), out.size());
    const Matrix<const float, B> w{weights, shape.out_channels, shape.patch_size()};
    for_some_images(shape, [&](const Conv2dShape& some, std::size_t in_begin, std::size_t out_begin) {
        const auto from = in.subspan(in_begin, some.in_size());
        const Matrix<float, B> to{out.subspan(out_begin, some.out_size()), some.out_pixels(),
                                  some.out_channels};
        if (is_gathered(some)) {
            gather_conv_patches(stream, some, from, patches(some));
            gemm_.multiply(stream, patches(some), w, to, {.transpose_b = true});
        } else {
            gemm_.multiply(stream, {from, some.out_pixels(), some.in_channels}, w, to, {.transpose_b = true});
        }
    });
}

template <sluice::Backend B>
void PatchConv2d<B>::forward_bias_relu(sluice::BasicStreamRef<B> stream, const Conv2dShape& shape,
                                       sluice::DeviceSpan<const float, B> in,
                                       sluice::DeviceSpan<const float, B> weights,
                                       sluice::DeviceSpan<const float, B> bias,
                                       sluice::DeviceSpan<const float, B> residual, bool relu,
                                       sluice::DeviceSpan<float, B> out) {
    forward(stream, shape, in, weights, out);
    const Matrix<float, B> map{out, shape.out_pixels(), shape.out_channels};
    scale_bias_relu<float, float>(stream, map, {}, bias, {.maps = residual}, relu, map);
}

template <sluice::Backend B>
void PatchConv2d<B>::input_gradient(sluice::BasicStreamRef<B> stream, const Conv2dShape& shape,
                                    sluice::DeviceSpan<const float, B> out_gradient,
                                    sluice::DeviceSpan<const float, B> weights,
                                    sluice::DeviceSpan<float, B> in_gradient) {
    require_conv2d_sizes(shape, in_gradient.size(), weights.size(), out_gradient.size());
    const Matrix<const float, B> w{weights, shape.out_channels, shape.patch_size()};
    for_some_images(shape, [&](const Conv2dShape& some, std::size_t in_begin, std::size_t out_begin) {
        const auto to = in_gradient.subspan(in_begin, some.in_size());
        const Matrix<const float, B> from{out_gradient.subspan(out_begin, some.out_size()), some.out_pixels(),
                                          some.out_channels};
        if (is_gathered(some)) {
            gemm_.multiply(stream, from, w, patches(some));
            sum_conv_patches(stream, some, patches(some), to);
        } else {
            gemm_.multiply(stream, from, w, {to, some.out_pixels(), some.in_channels});
        }
    });
}

template <sluice::Backend B>
void PatchConv2d<B>::weight_gradient(sluice::BasicStreamRef<B> stream, const Conv2dShape& shape,
                                     sluice::DeviceSpan<const float, B> in,
                                     sluice::DeviceSpan<const float, B> out_gradient,
                                     sluice::DeviceSpan<float, B> weight_gradient) {
    require_conv2d_sizes(shape, in.size(), weight_gradient.size(), out_gradient.size());
    const Matrix<float, B> to{weight_gradient, shape.out_channels, shape.patch_size()};
    for_some_images(shape, [&](const Conv2dShape& some, std::size_t in_begin, std::size_t out_begin) {
        const auto from = in.subspan(in_begin, some.in_size());
        const Matrix<const float, B> slope{out_gradient.subspan(out_begin, some.out_size()),
                                           some.out_pixels(), some.out_channels};
        const Epilogue<B> epilogue{.transpose_a = true, .beta = in_begin == 0 ? 0.0f : 1.0f};
        if (is_gathered(some)) {
            gather_conv_patches(stream, some, from, patches(some));
            gemm_.multiply(stream, slope, patches(some), to, epilogue);
        } else {
            gemm_.multiply(stream, slope, {from, some.out_pixels(), some.in_channels}, to, epilogue);
        }
    });
}

} // namespace nn
