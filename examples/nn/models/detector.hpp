/// \file
/// A convolutional network that predicts boxes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include <nn/core/float16.hpp>
#include <nn/layers/layer_shape.hpp>
#include <nn/models/detail/detector_network.hpp>
#include <nn/models/detector_options.hpp>
#include <sluice/backend/stream.hpp>
#include <sluice/graph/device_scalar.hpp>
#include <sluice/memory/span.hpp>

namespace nn {

/// Several times {3×3 convolution with padding 1, 2×2 max pool, ReLU}, then flatten, linear, ReLU, linear: four
/// numbers (x1, y1, x2, y2) for each box, in pixels, not bounded by anything.
///
/// Images are grey bytes [N, H, W], 1 ≤ N ≤ `options().batch`; predictions are [N, max_boxes, 4]. The last layer's
/// outputs are multiplied with `box_scale`: 1 gives PyTorch's `Sequential` as it is; about the side of an image
/// lets first weights of usual size predict boxes of usual size. It multiplies the gradients twice, in the forward and
/// in the backward pass, so the learning rate has to be smaller.
///
/// A loss of overlaps such as GIoU has no useful gradient for inverted boxes, as most boxes are at first. With
/// `centred_boxes` the last layer's first bias is that of a box (¼, ¼) … (¾, ¾) of the image, from where such a loss
/// descends steadily.
///
/// With `Precision::bfloat16` activations and the weights that products take are bfloat16 and sums are float32; the
/// weights that are updated stay float32, since a step is often smaller than the spacing of bfloat16. On a device the
/// convolutions of the channels {4, 16, 64 …, 256} are then kernels of our own, which pool before they write, and in
/// the backward pass spread gradients from pools to pixels on chip, never in memory.
///
/// An object is driven by one thread, and by one stream at a time; two objects are independent. All memory is
/// allocated at the start, for `batch` images: later calls only enqueue, wait for nothing, and can be captured. The
/// same images and weights give the same bits in each run.
template <sluice::Backend B>
class Detector {
public:
    /// Throws `sluice::Error` when an option is out of its bounds, or there is not enough memory.
    explicit Detector(const DetectorOptions& options);

    const DetectorOptions& options() const noexcept { return options_; }
    /// Bytes of one image.
    std::size_t image_size() const noexcept { return options().height * options().width; }
    /// Numbers predicted for one image: `4 * max_boxes`.
    std::size_t predictions_size() const noexcept { return 4 * options().max_boxes; }

    /// From images to predictions, in either type whatever the precision. The images must stay as they are until a
    /// `backward_and_update` that follows is done. Throws `sluice::Error` when a size does not fit.
    void forward(sluice::BasicStreamRef<B> stream, sluice::DeviceSpan<const std::uint8_t, B> images,
                 sluice::DeviceSpan<float, B> predictions);
    void forward(sluice::BasicStreamRef<B> stream, sluice::DeviceSpan<const std::uint8_t, B> images,
                 sluice::DeviceSpan<Bfloat16, B> predictions);

    /// One step of gradient descent from the gradient of the predictions [N, max_boxes, 4] of the latest `forward`.
    /// Throws `sluice::Error` before any forward, or when the size does not fit.
    void backward_and_update(sluice::BasicStreamRef<B> stream,
                             sluice::DeviceSpan<const float, B> prediction_gradients) {
        backward_and_update(stream, prediction_gradients, rate_.span());
    }
    /// The same with the learning rate of the one element of `rate`, read when the update runs: a rate that comes
    /// with its batch.
    void backward_and_update(sluice::BasicStreamRef<B> stream,
                             sluice::DeviceSpan<const float, B> prediction_gradients,
                             sluice::DeviceSpan<const float, B> rate);

    /// The learning rate of the updates that `stream` gets to after this one. Waits for nothing. An update that is
    /// captured reads the rate anew in each replay; inside a capture this throws `sluice::Error`.
    void set_learning_rate(sluice::BasicStreamRef<B> stream, float rate) { rate_.set(stream, rate); }

    /// The weights, named and laid out as PyTorch does for `Sequential(Conv2d, MaxPool2d, ReLU, …, Flatten, Linear,
    /// ReLU, Linear)`: `0.weight`, `0.bias`, `3.weight`, … Waits for `stream`.
    std::vector<NamedTensor> weights(sluice::BasicStreamRef<B> stream) const {
        return network_->weights(stream);
    }

    /// Takes the weights from among `tensors`. Waits for `stream`. Throws `sluice::Error` at the first that is
    /// missing or of another shape.
    void load(sluice::BasicStreamRef<B> stream, std::span<const NamedTensor> tensors) {
        network_->load(stream, tensors);
    }

private:
    static DetectorOptions checked(const DetectorOptions& options);
    static std::unique_ptr<detail::DetectorWork<B>> make(const DetectorOptions& options);
    template <class U>
    void forward_any(sluice::BasicStreamRef<B> stream, sluice::DeviceSpan<const std::uint8_t, B> images,
                     sluice::DeviceSpan<U, B> predictions);

    DetectorOptions options_;
    std::unique_ptr<detail::DetectorWork<B>> network_;
    sluice::DeviceScalar<float, B> rate_;
    std::size_t images_ = 0; // in the latest forward
};

// ---------------------------------------------------------------------------------------------------------------

template <sluice::Backend B>
DetectorOptions Detector<B>::checked(const DetectorOptions& options) {
    const std::size_t halvings = options.channels.size();
    if (halvings == 0 || halvings > 31 || options.hidden == 0 || options.max_boxes == 0 ||
        options.batch == 0) {
        throw sluice::Error("detector: " + std::to_string(halvings) + " convolutions, " +
                            std::to_string(options.hidden) + " hidden features and " +
                            std::to_string(options.max_boxes) + " boxes for a batch of " +
                            std::to_string(options.batch) + " images; expected at least 1 of each");
    }
    const std::size_t step = std::size_t{1} << halvings;
    if (options.height == 0 || options.width == 0 || options.height % step != 0 ||
        options.width % step != 0) {
        throw sluice::Error("detector: an image of " + std::to_string(options.height) + " x " +
                            std::to_string(options.width) + " pixels cannot be halved " +
                            std::to_string(halvings) + " times; both sides must be multiples of " +
                            std::to_string(step));
    }
    return options;
}

template <sluice::Backend B>
std::unique_ptr<detail::DetectorWork<B>> Detector<B>::make(const DetectorOptions& options) {
    if (options.precision == Precision::bfloat16)
        return std::make_unique<detail::DetectorNetwork<Bfloat16, B>>(options);
    return std::make_unique<detail::DetectorNetwork<float, B>>(options);
}

template <sluice::Backend B>
Detector<B>::Detector(const DetectorOptions& options)
    : options_(checked(options)), network_(make(options_)), rate_(options.learning_rate) {}

template <sluice::Backend B>
template <class U>
void Detector<B>::forward_any(sluice::BasicStreamRef<B> stream,
                              sluice::DeviceSpan<const std::uint8_t, B> images,
                              sluice::DeviceSpan<U, B> predictions) {
    const std::size_t count = images_in("detector", images.size(), image_size(), options_.batch);
    require_size("detector: elements of the predictions", predictions.size(), count * predictions_size());
    images_ = count;
    network_->forward(stream, images, predictions);
}

template <sluice::Backend B>
void Detector<B>::forward(sluice::BasicStreamRef<B> stream, sluice::DeviceSpan<const std::uint8_t, B> images,
                          sluice::DeviceSpan<float, B> predictions) {
    forward_any(stream, images, predictions);
}

template <sluice::Backend B>
void Detector<B>::forward(sluice::BasicStreamRef<B> stream, sluice::DeviceSpan<const std::uint8_t, B> images,
                          sluice::DeviceSpan<Bfloat16, B> predictions) {
    forward_any(stream, images, predictions);
}

template <sluice::Backend B>
void Detector<B>::backward_and_update(sluice::BasicStreamRef<B> stream,
                                      sluice::DeviceSpan<const float, B> prediction_gradients,
                                      sluice::DeviceSpan<const float, B> rate) {
    if (images_ == 0)
        throw sluice::Error("detector: backward_and_update was called before any forward");
    require_size("detector: elements of the predictions' gradient", prediction_gradients.size(),
                 images_ * predictions_size());
    require_size("detector: learning rates", rate.size(), 1);
    network_->backward_and_update(stream, prediction_gradients, rate);
}

} // namespace nn
