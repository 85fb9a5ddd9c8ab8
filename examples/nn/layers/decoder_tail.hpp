/// \file
/// The last two layers of a decoder, and its loss.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <nn/conv/convolution_3x3.hpp>
#include <nn/heads/segmentation_head.hpp>
#include <nn/losses/cross_entropy.hpp>

namespace nn {

/// What a DecoderTail is made for.
struct DecoderTailOptions {
    std::size_t inputs = 0;   ///< channels of the map that comes in
    std::size_t channels = 0; ///< of the map after the doubling
    std::size_t classes = 0;
    std::size_t images = 0; ///< at most
    Precision precision = Precision::tf32;
    sluice::RandomKey up_key;   ///< of the first weights of the transposed convolution
    sluice::RandomKey last_key; ///< of the 3×3 convolution's
};

/// A transposed 2×2 convolution of stride 2 with its ReLU, a 3×3 convolution to the classes, and the mean
/// cross-entropy over all pixels.
///
/// Where one kernel computes all of it (see segmentation_head.hpp), no map of an image's size is in device memory, and
/// products have float16 operands; otherwise each layer is a product of its own. Labels and predictions are [N, H, W] in
/// raster order. Nothing waits.
template <sluice::Backend B>
class DecoderTail {
public:
    /// For images in `order`, which halves them at least once. Throws `sluice::Error`.
    DecoderTail(const MortonOrder& order, const DecoderTailOptions& options);

    /// The first half of a step of training: forward, and the gradient of `in` [N H/2 W/2, inputs], with that of the
    /// ReLU that made `in`. An empty `in_gradient` is not computed. `scratch` holds at least `scratch_size()`
    /// elements.
    void gradients(sluice::BasicStreamRef<B> stream, Gemm<B>& gemm, Matrix<const float, B> in,
                   sluice::DeviceSpan<const std::uint8_t, B> labels, sluice::DeviceSpan<float, B> in_gradient,
                   sluice::DeviceSpan<const float, B> factors, sluice::DeviceSpan<float, B> loss,
                   sluice::DeviceSpan<double, B> scratch);

    /// The second half, in an order after the first: one step of gradient descent with the rate of `factors` (see
    /// `descent_factors`). The mean loss is in the one element of `loss` after it.
    void update(sluice::BasicStreamRef<B> stream, Gemm<B>& gemm, Matrix<const float, B> in,
                sluice::DeviceSpan<const float, B> factors, sluice::DeviceSpan<float, B> loss,
                sluice::DeviceSpan<double, B> scratch);

    /// The most likely class of each pixel.
    void predict(sluice::BasicStreamRef<B> stream, Gemm<B>& gemm, Matrix<const float, B> in,
                 sluice::DeviceSpan<std::uint8_t, B> predictions);

    std::size_t scratch_size() const noexcept { return scratch_size_; }

    /// Both layers, for whom their gradients go elsewhere (see Layer::redirect_updates).
    Layer<B>& up() noexcept { return up_; }
    Convolution3x3<B>& last() noexcept { return last_; }

    /// See Layer: the weights of layers `first` and `first + 2` of a sequence.
    void save(sluice::BasicStreamRef<B> stream, std::size_t first, std::vector<NamedTensor>& tensors) const {
        up_.save(stream, std::to_string(first), tensors);
        last_.save(stream, std::to_string(first + 2), tensors);
    }
    void load(sluice::BasicStreamRef<B> stream, std::size_t first, std::span<const NamedTensor> tensors) {
        up_.load(stream, std::to_string(first), tensors);
        last_.load(stream, std::to_string(first + 2), tensors);
    }

private:
    static bool is_fused(const DecoderTailOptions& options) {
        if constexpr (has_segmentation_head<B>(Precision::tf32)) {
            return has_segmentation_head<B>(options.precision) &&
                   supports_segmentation_head(options.inputs, options.channels, options.classes) &&
                   segmentation_head_fits();
        }
        return false;
    }
    Matrix<float, B> map(sluice::DeviceBuffer<float, B>& buffer, std::size_t rows, std::size_t columns) {
        return {buffer.span().first(rows * columns), rows, columns};
    }
    SegmentationHeadWeights<const float, B> const_weights() const {
        return {up_.weights(), up_.bias(), last_.weights(), last_.bias()};
    }
    SegmentationHeadShape shape_of(const Matrix<const float, B>& in) const {
        SegmentationHeadShape shape = shape_;
        shape.images = in.rows() * 4 / pixels_;
        return shape;
    }
    void forward(sluice::BasicStreamRef<B> stream, Gemm<B>& gemm, Matrix<const float, B> in);

    DecoderTailOptions options_;
    bool fused_;
    std::size_t pixels_;
    SegmentationHeadShape shape_; // but for the number of images
    Layer<B> up_;
    Convolution3x3<B> last_;
    std::size_t scratch_size_;
    // Where each layer is a product.
    sluice::DeviceBuffer<std::int32_t, B> raster_of_row_;
    sluice::DeviceBuffer<float, B> map_;
    sluice::DeviceBuffer<float, B> gradient_;
    sluice::DeviceBuffer<float, B> logits_;
    sluice::DeviceBuffer<float, B> losses_;
    // Where one kernel computes all.
    std::size_t blocks_ = 0;
    sluice::DeviceBuffer<float, B> partial_sums_;
};

// ---------------------------------------------------------------------------------------------------------------

template <sluice::Backend B>
DecoderTail<B>::DecoderTail(const MortonOrder& order, const DecoderTailOptions& options)
    : options_(options), fused_(is_fused(options)), pixels_(order.pixels()), shape_{.height = order.height(),
                                                                                    .width = order.width(),
                                                                                    .levels = order.levels(),
                                                                                    .images = 0},
      up_(LayerShape::transposed_convolution(options.inputs, options.channels, 2), options.up_key),
      last_(order, options.channels, options.classes, fused_ ? 0 : options.images, options.last_key),
      scratch_size_(0) {
    if (fused_) {
        if constexpr (has_segmentation_head<B>(Precision::tf32)) {
            blocks_ = segmentation_head_blocks();
            partial_sums_ = sluice::DeviceBuffer<float, B>(segmentation_head_scratch(blocks_));
        }
        return;
    }
    const std::size_t rows = options.images * pixels_;
    raster_of_row_ = to_device<B>(order.raster_of_row());
    map_ = sluice::DeviceBuffer<float, B>(rows * options.channels);
    gradient_ = sluice::DeviceBuffer<float, B>(rows * options.channels);
    logits_ = sluice::DeviceBuffer<float, B>(rows * options.classes);
    losses_ = sluice::DeviceBuffer<float, B>(rows);
    scratch_size_ = std::max({last_.scratch_size(rows * options.classes),
                              up_.scratch_size(rows * options.channels), sum_scratch(rows, 1)});
}

template <sluice::Backend B>
void DecoderTail<B>::forward(sluice::BasicStreamRef<B> stream, Gemm<B>& gemm, Matrix<const float, B> in) {
    const std::size_t rows = in.rows() * 4;
    const Matrix<float, B> out = map(map_, rows, options_.channels);
    up_.forward(stream, gemm, in, out, true);
    last_.forward(stream, gemm, out, map(logits_, rows, options_.classes));
}

template <sluice::Backend B>
void DecoderTail<B>::gradients(sluice::BasicStreamRef<B> stream, Gemm<B>& gemm, Matrix<const float, B> in,
                               sluice::DeviceSpan<const std::uint8_t, B> labels,
                               sluice::DeviceSpan<float, B> in_gradient,
                               sluice::DeviceSpan<const float, B> factors, sluice::DeviceSpan<float, B> loss,
                               sluice::DeviceSpan<double, B> scratch) {
    if constexpr (has_segmentation_head<B>(Precision::tf32)) {
        if (fused_) {
            segmentation_head_gradients(stream, shape_of(in), const_weights(), in, labels, in_gradient,
                                        partial_sums_, blocks_);
            return;
        }
    }
    forward(stream, gemm, in);
    const std::size_t rows = in.rows() * 4;
    const Matrix<float, B> logits = map(logits_, rows, options_.classes);
    const Matrix<float, B> gradient = map(gradient_, rows, options_.channels);
    const auto losses = losses_.span().first(rows);
    softmax_cross_entropy(stream, logits, labels, raster_of_row_, logits, losses);
    mean(stream, losses, loss, scratch);
    last_.backward(stream, gemm, logits, gradient, factors, scratch);
    relu_gradient(stream, map(map_, rows, options_.channels).span(), gradient.span());
    if (!in_gradient.empty()) {
        up_.input_gradient(stream, gemm, gradient, {in_gradient, in.rows(), in.columns()}, in.span());
    }
}

template <sluice::Backend B>
void DecoderTail<B>::update(sluice::BasicStreamRef<B> stream, Gemm<B>& gemm, Matrix<const float, B> in,
                            sluice::DeviceSpan<const float, B> factors, sluice::DeviceSpan<float, B> loss,
                            sluice::DeviceSpan<double, B> scratch) {
    if constexpr (has_segmentation_head<B>(Precision::tf32)) {
        if (fused_) {
            segmentation_head_update(
                stream, shape_of(in),
                SegmentationHeadWeights<float, B>{up_.updated_weights(), up_.updated_bias(),
                                                  last_.updated_weights(), last_.updated_bias()},
                partial_sums_, blocks_, factors, loss);
            return;
        }
    }
    up_.update(stream, gemm, in, map(gradient_, in.rows() * 4, options_.channels), factors, scratch);
}

template <sluice::Backend B>
void DecoderTail<B>::predict(sluice::BasicStreamRef<B> stream, Gemm<B>& gemm, Matrix<const float, B> in,
                             sluice::DeviceSpan<std::uint8_t, B> predictions) {
    if constexpr (has_segmentation_head<B>(Precision::tf32)) {
        if (fused_) {
            segmentation_head_predict(stream, shape_of(in), const_weights(), in, predictions, blocks_);
            return;
        }
    }
    forward(stream, gemm, in);
    predict_classes(stream, map(logits_, in.rows() * 4, options_.classes), raster_of_row_, predictions);
}

} // namespace nn
