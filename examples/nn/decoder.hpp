/// \file
/// The trainable decoder: from features to a class for each pixel.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include <nn/convolution_3x3.hpp>
#include <nn/decoder_tail.hpp>
#include <nn/delayed_layer.hpp>
#include <nn/encoder.hpp>
#include <nn/fork.hpp>
#include <sluice/backend/event.hpp>
#include <sluice/graph/device_scalar.hpp>

namespace nn {

/// What a decoder is made for.
struct DecoderOptions {
    std::size_t height = 0;            ///< pixels of an image; a multiple of 2^(number of doublings)
    std::size_t width = 0;             ///< likewise
    std::vector<std::size_t> channels; ///< of the features, then after each doubling: the encoder's, reversed
    std::size_t classes = 0;           ///< at most 256
    std::size_t batch = 0;             ///< images in one call, at most
    float learning_rate = 0.0f;        ///< of plain gradient descent, until another is set
    Precision precision = Precision::tf32; ///< of the products on a device
    std::uint64_t seed = 0;                ///< of the first weights
    Algorithms algorithms = Algorithms::heuristic;
};

/// Transposed 2×2 convolutions of stride 2, a ReLU after each, then a 3×3 convolution to the classes; mean
/// cross-entropy over all pixels. In TF32 a device may compute the last two layers with factors of float16, which have
/// as many bits but a shorter range (see operators/fused_tail.hpp).
///
/// Features are as an Encoder gives them. An object is driven by one thread, and by one stream at a time; two
/// objects are independent. All memory is allocated at the start, for `batch` images: later calls only enqueue.
///
/// A step forks: once a layer's gradient has gone further down, its weights are updated on a second stream of the
/// decoder's own, beside the gradients of the layers below. The caller's stream waits for both. Updates that a device
/// takes together (see MatrixProducts::joins) follow the last gradient. The first layer's step may wait until the next
/// one (see DelayedSteps); to the caller that shows in nothing.
template <sluice::Backend B>
class Decoder {
public:
    /// Throws `sluice::Error` when an option is out of its bounds, or there is not enough memory.
    explicit Decoder(const DecoderOptions& options);

    const DecoderOptions& options() const noexcept { return options_; }
    /// Features of one image.
    std::size_t features_size() const noexcept { return feature_pixels_ * options_.channels.front(); }
    /// Labels of one image.
    std::size_t labels_size() const noexcept { return options_.height * options_.width; }

    /// One step of training on features [N h w, C] and labels [N, H, W], 1 ≤ N ≤ `options().batch`. Writes the mean
    /// loss from before the step to the one element of `loss`. Throws `sluice::Error` when a size does not fit.
    void step(sluice::BasicStreamRef<B> stream, sluice::DeviceSpan<const float, B> features,
              sluice::DeviceSpan<const std::uint8_t, B> labels, sluice::DeviceSpan<float, B> loss) {
        step(stream, features, labels, rate_.span(), loss);
    }

    /// The same with the learning rate of the one element of `rate`, read when the step runs.
    void step(sluice::BasicStreamRef<B> stream, sluice::DeviceSpan<const float, B> features,
              sluice::DeviceSpan<const std::uint8_t, B> labels, sluice::DeviceSpan<const float, B> rate,
              sluice::DeviceSpan<float, B> loss);

    /// The most likely class of each pixel [N, H, W].
    void predict(sluice::BasicStreamRef<B> stream, sluice::DeviceSpan<const float, B> features,
                 sluice::DeviceSpan<std::uint8_t, B> predictions);

    /// The learning rate of the steps that `stream` gets to after this one. Waits for nothing. A step that is
    /// captured reads the rate anew in each replay, so set it between replays, on their stream; inside a capture it
    /// throws `sluice::Error`, since the graph would set this one rate for ever.
    void set_learning_rate(sluice::BasicStreamRef<B> stream, float rate) { rate_.set(stream, rate); }

    /// The weights, named and laid out as PyTorch does for `Sequential(ConvTranspose2d, ReLU, …, Conv2d)`. Waits for
    /// `stream`.
    std::vector<NamedTensor> weights(sluice::BasicStreamRef<B> stream);

    /// Takes the weights from among `tensors`. Waits for `stream`. Throws `sluice::Error` at the first that is
    /// missing or of another shape.
    void load(sluice::BasicStreamRef<B> stream, std::span<const NamedTensor> tensors);

private:
    static constexpr std::uint16_t random_operation = 0xE002;

    Decoder(const DecoderOptions& options, const PixelOrder& order);

    std::size_t rows_of(std::size_t images, std::size_t level) const {
        return (images * feature_pixels_) << (2 * level);
    }
    /// A matrix of the size of the map after `level` doublings, at the start of `buffer`.
    Matrix<float, B> sized(sluice::DeviceBuffer<float, B>& buffer, std::size_t images, std::size_t level) {
        const std::size_t rows = rows_of(images, level);
        const std::size_t columns = options_.channels[level];
        return {buffer.span().first(rows * columns), rows, columns};
    }
    /// The gradient of the map after `level` doublings.
    Matrix<float, B> gradient(std::size_t images, std::size_t level) {
        if (level == 1 && delayed_.in_use())
            return delayed_.gradient(rows_of(images, 0)).with_columns(options_.channels[1]);
        return sized(gradients_[level - 1], images, level);
    }
    /// What goes into layer `level`: the features or a map.
    Matrix<const float, B> input(sluice::DeviceSpan<const float, B> features, std::size_t images,
                                 std::size_t level) {
        if (level == 0)
            return {features, rows_of(images, 0), options_.channels[0]};
        return sized(maps_[level - 1], images, level);
    }
    /// The number of images of `features`, for which `labels` labels must be enough.
    std::size_t checked_images(sluice::DeviceSpan<const float, B> features, std::size_t labels) const;
    /// Fills the maps.
    void forward(sluice::BasicStreamRef<B> stream, sluice::DeviceSpan<const float, B> features,
                 std::size_t images);
    /// `fork` is of `stream` and `side_`.
    void backward(sluice::BasicStreamRef<B> stream, Fork<B>& fork,
                  sluice::DeviceSpan<const float, B> features, std::size_t images,
                  sluice::DeviceSpan<float, B> loss);

    DecoderOptions options_;
    std::size_t feature_pixels_;
    MatrixProducts<B> products_;
    std::vector<Layer<B>> layers_; // all but the tail's
    DecoderTail<B> tail_;
    DelayedSteps<B> delayed_;                          // of the first layer
    std::vector<sluice::DeviceBuffer<float, B>> maps_; // after each of these
    std::vector<sluice::DeviceBuffer<float, B>>
        gradients_; // likewise: updates read them while others are written
    sluice::DeviceBuffer<double, B> scratch_;
    sluice::DeviceScalar<float, B> rate_;
    sluice::DeviceBuffer<float, B> factors_{2}; // of the latest step
    // The second stream's: products share no workspace with those of the first.
    MatrixProducts<B> side_products_;
    sluice::DeviceBuffer<double, B> side_scratch_;
    sluice::BasicStream<B> side_;
    sluice::BasicEvent<B> begun_;
    sluice::BasicEvent<B> factors_known_;
    std::vector<sluice::BasicEvent<B>> may_update_; // a layer's weights
    std::vector<WeightUpdate<B>> joined_;           // of the latest step, those that are taken together
    sluice::BasicEvent<B> updated_;
};

// ---------------------------------------------------------------------------------------------------------------

namespace detail {

inline DecoderOptions checked(const DecoderOptions& options) {
    if (options.channels.size() < 2 || options.batch == 0 || options.classes == 0 || options.classes > 256) {
        throw sluice::Error("decoder: " + std::to_string(options.channels.size()) +
                            " sizes of maps, a batch of " + std::to_string(options.batch) + " images and " +
                            std::to_string(options.classes) +
                            " classes; expected at least 2, at least 1, and 1 to 256");
    }
    return options;
}

} // namespace detail

template <sluice::Backend B>
Decoder<B>::Decoder(const DecoderOptions& options)
    : Decoder(detail::checked(options),
              PixelOrder(options.height, options.width,
                         options.channels.empty() ? 0 : options.channels.size() - 1)) {}

template <sluice::Backend B>
Decoder<B>::Decoder(const DecoderOptions& options, const PixelOrder& order)
    : options_(options), feature_pixels_(order.pixels() >> (2 * order.levels())),
      products_(options.precision, options.algorithms),
      tail_(order, {.inputs = options.channels[order.levels() - 1],
                    .channels = options.channels[order.levels()],
                    .classes = options.classes,
                    .images = options.batch,
                    .precision = options.precision,
                    .up_key = layer_key(options.seed, random_operation, order.levels() - 1),
                    .last_key = layer_key(options.seed, random_operation, order.levels())}),
      rate_(options.learning_rate), side_products_(options.precision, options.algorithms),
      may_update_(order.levels()) {
    std::size_t scratch = 0;
    joined_.reserve(order.levels());
    layers_.reserve(order.levels() - 1);
    for (std::size_t i = 0; i + 1 < order.levels(); ++i) {
        layers_.emplace_back(
            LayerShape::transposed_convolution(options.channels[i], options.channels[i + 1], 2),
            layer_key(options.seed, random_operation, i));
        const std::size_t size = rows_of(options.batch, i + 1) * options.channels[i + 1];
        maps_.emplace_back(size);
        if (i == 0 && DelayedSteps<B>::offered(rows_of(options.batch, 0))) {
            delayed_ = DelayedSteps<B>(layers_[0].shape(), rows_of(options.batch, 0));
            gradients_.emplace_back();
        } else {
            gradients_.emplace_back(size);
        }
        scratch = std::max(scratch, layers_[i].scratch_size(size));
    }
    scratch_ = sluice::DeviceBuffer<double, B>(std::max(scratch, tail_.scratch_size()));
    side_scratch_ = sluice::DeviceBuffer<double, B>(scratch_.size());
}

template <sluice::Backend B>
std::size_t Decoder<B>::checked_images(sluice::DeviceSpan<const float, B> features,
                                       std::size_t labels) const {
    const std::size_t images = images_in("decoder", features.size(), features_size(), options_.batch);
    require_size("decoder: labels or predictions", labels, images * labels_size());
    return images;
}

template <sluice::Backend B>
void Decoder<B>::forward(sluice::BasicStreamRef<B> stream, sluice::DeviceSpan<const float, B> features,
                         std::size_t images) {
    for (std::size_t i = 0; i < layers_.size(); ++i) {
        const Matrix<const float, B> in = input(features, images, i);
        const Matrix<float, B> out = sized(maps_[i], images, i + 1);
        if (i == 0 && delayed_.in_use())
            delayed_.forward(stream, layers_[0], in, out);
        else
            layers_[i].forward(stream, products_, in, out, true, i > 0);
    }
}

template <sluice::Backend B>
void Decoder<B>::step(sluice::BasicStreamRef<B> stream, sluice::DeviceSpan<const float, B> features,
                      sluice::DeviceSpan<const std::uint8_t, B> labels,
                      sluice::DeviceSpan<const float, B> rate, sluice::DeviceSpan<float, B> loss) {
    require_size("decoder: elements of the loss", loss.size(), 1);
    require_size("decoder: elements of the learning rate", rate.size(), 1);
    const std::size_t images = checked_images(features, labels.size());
    Fork<B> fork(stream, side_.ref(), updated_);
    fork.follow(begun_);
    descent_factors(side_.ref(), rate, factors_);
    factors_known_.record(side_);
    forward(stream, features, images);
    stream.wait(factors_known_);
    sluice::DeviceSpan<float, B> of_map;
    if (!layers_.empty())
        of_map = gradient(images, layers_.size()).span();
    tail_.gradients(stream, products_, input(features, images, layers_.size()), labels, of_map, factors_,
                    loss, scratch_);
    backward(stream, fork, features, images, loss);
    fork.join();
}

template <sluice::Backend B>
void Decoder<B>::backward(sluice::BasicStreamRef<B> stream, Fork<B>& fork,
                          sluice::DeviceSpan<const float, B> features, std::size_t images,
                          sluice::DeviceSpan<float, B> loss) {
    const std::size_t last = layers_.size();
    fork.follow(may_update_[last]);
    tail_.update(side_, side_products_, input(features, images, last), factors_, loss, side_scratch_);
    if (delayed_.in_use())
        delayed_.keep(side_, input(features, images, 0), factors_);
    joined_.clear();
    const auto update = [&](std::size_t i) {
        const WeightUpdate<B> step =
            layers_[i].step(input(features, images, i), gradient(images, i + 1), scratch_);
        if (i == 0 || products_.joins(step, factors_)) {
            joined_.push_back(step);
        } else {
            fork.follow(may_update_[i]);
            layers_[i].update(side_, side_products_, step.in, step.gradient, factors_, side_scratch_);
        }
    };
    for (std::size_t i = last; i-- > 1;) {
        // With the weights that went forward, and so before their update.
        layers_[i].input_gradient(stream, products_, gradient(images, i + 1), gradient(images, i),
                                  input(features, images, i).span(), true);
        update(i);
    }
    // Nobody asks for the gradient of the features: what made them is frozen.
    if (delayed_.in_use()) {
        fork.follow(may_update_[0]);
        update_bias(side_.ref(), gradient(images, 1), layers_[0].bias(), factors_, side_scratch_);
    } else if (last > 0) {
        update(0);
    }
    products_.update(stream, joined_, factors_);
}

template <sluice::Backend B>
void Decoder<B>::predict(sluice::BasicStreamRef<B> stream, sluice::DeviceSpan<const float, B> features,
                         sluice::DeviceSpan<std::uint8_t, B> predictions) {
    const std::size_t images = checked_images(features, predictions.size());
    forward(stream, features, images);
    if (delayed_.in_use())
        delayed_.forget(stream); // taken within the product
    tail_.predict(stream, products_, input(features, images, layers_.size()), predictions);
}

template <sluice::Backend B>
std::vector<NamedTensor> Decoder<B>::weights(sluice::BasicStreamRef<B> stream) {
    if (delayed_.in_use())
        delayed_.settle(stream, layers_[0]);
    std::vector<NamedTensor> tensors;
    for (std::size_t i = 0; i < layers_.size(); ++i)
        layers_[i].save(stream, std::to_string(2 * i), tensors);
    tail_.save(stream, 2 * layers_.size(), tensors);
    return tensors;
}

template <sluice::Backend B>
void Decoder<B>::load(sluice::BasicStreamRef<B> stream, std::span<const NamedTensor> tensors) {
    for (std::size_t i = 0; i < layers_.size(); ++i) {
        layers_[i].load(stream, std::to_string(2 * i), tensors);
        // At once, since another layer's weights may be missing: a step belongs to the weights that it was made with.
        if (i == 0 && delayed_.in_use())
            delayed_.forget(stream);
    }
    tail_.load(stream, 2 * layers_.size(), tensors);
}

} // namespace nn
