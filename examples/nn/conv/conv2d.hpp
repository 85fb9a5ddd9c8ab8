/// \file
/// Convolutions of any square kernel, stride and padding: their sizes, and how they are computed as matrix products.
///
/// Maps are [N, H, W, C], channels last. Weights are [Co, kernel, kernel, C], the layout that cuDNN takes with such maps.
#pragma once

#include <algorithm>
#include <compare>
#include <cstddef>
#include <string>

#include <nn/gemm/gemm.hpp>
#include <nn/gemm/matrix.hpp>
#include <nn/norm/batch_norm.hpp>
#include <sluice/memory/buffer.hpp>

namespace nn {

/// The sizes of one convolution over a batch. Kernel, stride and padding are the same along both axes.
struct Conv2dShape {
    std::size_t images = 0;
    std::size_t height = 0;
    std::size_t width = 0;
    std::size_t in_channels = 0;
    std::size_t out_channels = 0;
    std::size_t kernel = 1;
    std::size_t stride = 1;
    std::size_t padding = 0;

    constexpr std::size_t out_height() const noexcept { return (height + 2 * padding - kernel) / stride + 1; }
    constexpr std::size_t out_width() const noexcept { return (width + 2 * padding - kernel) / stride + 1; }
    /// Pixels of the output, over all images.
    constexpr std::size_t out_pixels() const noexcept { return images * out_height() * out_width(); }
    /// Elements of the input, the output and the weights.
    constexpr std::size_t in_size() const noexcept { return images * height * width * in_channels; }
    constexpr std::size_t out_size() const noexcept { return out_pixels() * out_channels; }
    constexpr std::size_t weight_size() const noexcept { return out_channels * patch_size(); }
    /// Elements of the input that one output pixel sees.
    constexpr std::size_t patch_size() const noexcept { return kernel * kernel * in_channels; }
    /// The same convolution over another number of images.
    constexpr Conv2dShape with_images(std::size_t count) const noexcept {
        Conv2dShape result = *this;
        result.images = count;
        return result;
    }

    auto operator<=>(const Conv2dShape&) const = default;
};

/// How convolutions are computed.
struct Conv2dOptions {
    Precision precision = Precision::tf32;
    Algorithms algorithms = Algorithms::heuristic;
    /// Where an implementation that autotunes keeps what it chose; empty for nowhere.
    std::string plan_file = {};
    /// Leaves out algorithms whose sums have no fixed order, where an implementation has such.
    bool deterministic = true;
};

/// For errors: "3 images of 8 x 8 x 4, 16 outputs, kernel 3, stride 1, padding 1".
inline std::string to_string(const Conv2dShape& shape);

/// Throws `sluice::Error` when a size is 0 or the kernel is larger than the padded map.
inline void require_conv2d(const Conv2dShape& shape);

/// Convolutions in float32 as matrix products over gathered patches (im2col), on every backend. Images are taken some at
/// a time, so that the patches stay small. Sums have a fixed order: the same bits in every run.
///
/// What the implementations of a convolution have in common: `prepare` allocates what a shape needs, and the functions
/// after it neither allocate nor wait. They throw `sluice::Error` when a span is of another size than the shape says, or
/// the shape was not prepared. An object is driven by one thread and one stream at a time.
template <sluice::Backend B>
class PatchConv2d {
public:
    using value_type = float;

    explicit PatchConv2d(const Conv2dOptions& options = {}) : gemm_(options.precision, options.algorithms) {}

    /// Makes the scratch memory that `shape`, and every one with fewer images, needs.
    void prepare(const Conv2dShape& shape);

    /// `out = conv(in, weights)`.
    void forward(sluice::BasicStreamRef<B> stream, const Conv2dShape& shape,
                 sluice::DeviceSpan<const float, B> in, sluice::DeviceSpan<const float, B> weights,
                 sluice::DeviceSpan<float, B> out);

    /// `out = conv(in, weights) + bias`, plus `residual` unless it is empty, then ReLU if `relu`: inference with the batch
    /// normalisation folded into weights and bias.
    void forward_bias_relu(sluice::BasicStreamRef<B> stream, const Conv2dShape& shape,
                           sluice::DeviceSpan<const float, B> in, sluice::DeviceSpan<const float, B> weights,
                           sluice::DeviceSpan<const float, B> bias,
                           sluice::DeviceSpan<const float, B> residual, bool relu,
                           sluice::DeviceSpan<float, B> out);

    /// The gradient of `in` from that of `out`.
    void input_gradient(sluice::BasicStreamRef<B> stream, const Conv2dShape& shape,
                        sluice::DeviceSpan<const float, B> out_gradient,
                        sluice::DeviceSpan<const float, B> weights, sluice::DeviceSpan<float, B> in_gradient);

    /// The gradient of the weights from `in` and the gradient of `out`.
    void weight_gradient(sluice::BasicStreamRef<B> stream, const Conv2dShape& shape,
                         sluice::DeviceSpan<const float, B> in,
                         sluice::DeviceSpan<const float, B> out_gradient,
                         sluice::DeviceSpan<float, B> weight_gradient);

private:
    // On the CPU as many as a cache holds, on a device as many as keep it busy.
    static constexpr std::size_t greatest_patches =
        std::is_same_v<B, sluice::Host> ? std::size_t{1} << 18 : std::size_t{1} << 25;

    static bool is_gathered(const Conv2dShape& shape) {
        return shape.kernel != 1 || shape.stride != 1 || shape.padding != 0;
    }
    static std::size_t images_at_once(const Conv2dShape& shape) {
        const std::size_t each = shape.out_height() * shape.out_width() * shape.patch_size();
        return std::clamp<std::size_t>(greatest_patches / each, 1, shape.images);
    }
    // Calls `work(shape of some images, elements of in before them, of out before them)`.
    template <class Work>
    void for_some_images(const Conv2dShape& shape, const Work& work);
    Matrix<float, B> patches(const Conv2dShape& shape);

    Gemm<B> gemm_;
    sluice::DeviceBuffer<float, B> patches_;
};

/// `patches[pixel, (ky * kernel + kx) * C + c]` is the pixel at (y * stride + ky - padding, x * stride + kx - padding) of
/// `in`, and 0 beyond the border.
template <sluice::Backend B>
void gather_conv_patches(sluice::BasicStreamRef<B> stream, const Conv2dShape& shape,
                         SpanArgument<const float, B> in, MatrixArgument<B> patches);

/// The gradient of the maps from that of the patches: each element adds up its copies, in order.
template <sluice::Backend B>
void sum_conv_patches(sluice::BasicStreamRef<B> stream, const Conv2dShape& shape,
                      ConstMatrixArgument<B> patch_gradients, SpanArgument<float, B> in_gradient);

} // namespace nn

#include <nn/conv/detail/conv2d.inl>
