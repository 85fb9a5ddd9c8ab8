/// \file
/// A linear head that trains an encoder to classify images.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include <nn/heads/classifier_head.hpp>
#include <nn/losses/cross_entropy.hpp>
#include <nn/models/encoder.hpp>
#include <sluice/graph/device_scalar.hpp>

namespace nn {

/// What a classifier is made for.
struct ClassifierOptions {
    std::size_t classes = 0;    ///< at most 256
    float learning_rate = 0.0f; ///< of plain gradient descent, for head and encoder, until another is set
    std::uint64_t seed = 0;     ///< of the head's first weights
};

/// An encoder, its features flattened (channel, row, column), and a linear layer; mean cross-entropy. Uses the
/// encoder that it is given, which must outlive it and must not be used by others meanwhile.
template <sluice::Backend B>
class Classifier {
public:
    /// Throws `sluice::Error` when an option is out of its bounds, or there is not enough memory.
    Classifier(Encoder<B>& encoder, const ClassifierOptions& options);

    /// One step of training on planar images [N, C, H, W], bytes or numbers, and their labels [N]. Writes the mean
    /// loss from before the step to the one element of `loss`. Throws `sluice::Error` when a size does not fit or
    /// the encoder is not trainable.
    void step(sluice::BasicStreamRef<B> stream, sluice::DeviceSpan<const std::uint8_t, B> images,
              sluice::DeviceSpan<const std::uint8_t, B> labels, sluice::DeviceSpan<float, B> loss) {
        step_any(stream, images, labels, loss);
    }
    void step(sluice::BasicStreamRef<B> stream, sluice::DeviceSpan<const float, B> images,
              sluice::DeviceSpan<const std::uint8_t, B> labels, sluice::DeviceSpan<float, B> loss) {
        step_any(stream, images, labels, loss);
    }

    /// The most likely class of each image.
    void predict(sluice::BasicStreamRef<B> stream, sluice::DeviceSpan<const std::uint8_t, B> images,
                 sluice::DeviceSpan<std::uint8_t, B> predictions) {
        predict_any(stream, images, predictions);
    }
    void predict(sluice::BasicStreamRef<B> stream, sluice::DeviceSpan<const float, B> images,
                 sluice::DeviceSpan<std::uint8_t, B> predictions) {
        predict_any(stream, images, predictions);
    }

    /// The learning rate of the steps that `stream` gets to after this one. Waits for nothing. A step that is
    /// captured reads the rate anew in each replay, so set it between replays, on their stream; inside a capture it
    /// throws `sluice::Error`, since every replay would set this rate again.
    void set_learning_rate(sluice::BasicStreamRef<B> stream, float rate) { rate_.set(stream, rate); }

    /// The weights of encoder and head, named as in PyTorch's `Sequential(…, Conv2d, Flatten, Linear)`. Waits for
    /// `stream`.
    std::vector<NamedTensor> weights(sluice::BasicStreamRef<B> stream) const;

    /// Takes the weights of encoder and head from among `tensors`. Waits for `stream`. Throws `sluice::Error` at the
    /// first that is missing or of another shape.
    void load(sluice::BasicStreamRef<B> stream, std::span<const NamedTensor> tensors);

private:
    static constexpr std::uint16_t random_operation = 0xE003;

    template <class T>
    void step_any(sluice::BasicStreamRef<B> stream, sluice::DeviceSpan<const T, B> images,
                  sluice::DeviceSpan<const std::uint8_t, B> labels, sluice::DeviceSpan<float, B> loss);
    template <class T>
    void predict_any(sluice::BasicStreamRef<B> stream, sluice::DeviceSpan<const T, B> images,
                     sluice::DeviceSpan<std::uint8_t, B> predictions);
    void train_head(sluice::BasicStreamRef<B> stream, sluice::DeviceSpan<const std::uint8_t, B> labels,
                    sluice::DeviceSpan<float, B> loss);
    template <class T>
    std::size_t forward(sluice::BasicStreamRef<B> stream, sluice::DeviceSpan<const T, B> images);
    Matrix<float, B> features(std::size_t images, sluice::DeviceBuffer<float, B>& buffer) {
        return {buffer.span().first(images * encoder_->features_size()), images, encoder_->features_size()};
    }
    Matrix<float, B> logits(std::size_t images) {
        return {logits_.span().first(images * options_.classes), images, options_.classes};
    }
    std::string head_name() const { return std::to_string(2 * encoder_->options().channels.size()); }

    ClassifierOptions options_;
    Encoder<B>* encoder_;
    Gemm<B> gemm_;
    Layer<B> head_;
    sluice::DeviceBuffer<float, B> features_;
    sluice::DeviceBuffer<float, B> features_gradient_;
    sluice::DeviceBuffer<float, B> logits_;
    sluice::DeviceBuffer<float, B> losses_;
    sluice::DeviceBuffer<double, B> scratch_;
    sluice::DeviceBuffer<float, B> parts_; // of the logits
    sluice::DeviceScalar<float, B> rate_;
    sluice::DeviceBuffer<float, B> factors_{2}; // of the latest step
};

// ---------------------------------------------------------------------------------------------------------------

template <sluice::Backend B>
Classifier<B>::Classifier(Encoder<B>& encoder, const ClassifierOptions& options)
    : options_(options), encoder_(&encoder), gemm_(encoder.options().precision, encoder.options().algorithms),
      head_(LayerShape::linear(encoder.options().channels.back(), options.classes, encoder.feature_pixels()),
            layer_key(options.seed, random_operation, 0)),
      features_(encoder.options().batch * encoder.features_size()), features_gradient_(features_.size()),
      logits_(encoder.options().batch * options.classes), losses_(encoder.options().batch),
      scratch_(std::max(head_.scratch_size(logits_.size()), sum_scratch(losses_.size(), 1))),
      parts_(has_classifier_head<B> ? classifier_scratch(encoder.options().batch, options.classes) : 0),
      rate_(options.learning_rate) {
    if (options.classes > 256) {
        throw sluice::Error("classifier: " + std::to_string(options.classes) +
                            " classes; expected at most 256");
    }
}

template <sluice::Backend B>
template <class T>
std::size_t Classifier<B>::forward(sluice::BasicStreamRef<B> stream, sluice::DeviceSpan<const T, B> images) {
    const std::size_t count =
        images_in("classifier", images.size(), encoder_->image_size(), encoder_->options().batch);
    encoder_->forward(stream, images, features(count, features_).span());
    head_.forward(stream, gemm_, features(count, features_), logits(count), false);
    return count;
}

template <sluice::Backend B>
template <class T>
void Classifier<B>::step_any(sluice::BasicStreamRef<B> stream, sluice::DeviceSpan<const T, B> images,
                             sluice::DeviceSpan<const std::uint8_t, B> labels,
                             sluice::DeviceSpan<float, B> loss) {
    if (!encoder_->options().trainable)
        throw sluice::Error("classifier: step needs an encoder made trainable");
    require_size("classifier: elements of the loss", loss.size(), 1);
    require_size("classifier: labels", labels.size(), images.size() / encoder_->image_size());
    const std::size_t count =
        images_in("classifier", images.size(), encoder_->image_size(), encoder_->options().batch);
    encoder_->forward(stream, images, features(count, features_).span());
    descent_factors(stream, rate_.span(), factors_);
    train_head(stream, labels, loss);
    encoder_->backward(stream, features(count, features_gradient_).span(), factors_);
}

/// Forward and back through the head, which takes its step.
template <sluice::Backend B>
void Classifier<B>::train_head(sluice::BasicStreamRef<B> stream,
                               sluice::DeviceSpan<const std::uint8_t, B> labels,
                               sluice::DeviceSpan<float, B> loss) {
    const std::size_t count = labels.size();
    const Matrix<const float, B> in = features(count, features_);
    const Matrix<float, B> in_gradient = features(count, features_gradient_);
    if constexpr (has_classifier_head<B>) {
        if (supports_classifier_head(options_.classes)) {
            classifier_step(stream, in, labels, factors_, head_.weights(), head_.bias(), in_gradient, loss,
                            parts_.span().first(classifier_scratch(count, options_.classes)));
            return;
        }
    }
    const Matrix<float, B> gradient = logits(count);
    const auto losses = losses_.span().first(count);
    head_.forward(stream, gemm_, in, gradient, false);
    softmax_cross_entropy(stream, gradient, labels, {}, gradient, losses);
    mean(stream, losses, loss, scratch_);
    head_.input_gradient(stream, gemm_, gradient, in_gradient);
    head_.update(stream, gemm_, in, gradient, factors_, scratch_);
}

template <sluice::Backend B>
template <class T>
void Classifier<B>::predict_any(sluice::BasicStreamRef<B> stream, sluice::DeviceSpan<const T, B> images,
                                sluice::DeviceSpan<std::uint8_t, B> predictions) {
    require_size("classifier: predictions", predictions.size(), images.size() / encoder_->image_size());
    const std::size_t count = forward(stream, images);
    predict_classes(stream, logits(count), {}, predictions);
}

template <sluice::Backend B>
std::vector<NamedTensor> Classifier<B>::weights(sluice::BasicStreamRef<B> stream) const {
    std::vector<NamedTensor> tensors = encoder_->weights(stream);
    head_.save(stream, head_name(), tensors);
    return tensors;
}

template <sluice::Backend B>
void Classifier<B>::load(sluice::BasicStreamRef<B> stream, std::span<const NamedTensor> tensors) {
    encoder_->load(stream, tensors);
    head_.load(stream, head_name(), tensors);
}

} // namespace nn
