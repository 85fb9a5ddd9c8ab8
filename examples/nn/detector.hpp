/// \file
/// A convolutional network that predicts boxes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include <nn/float16.hpp>
#include <nn/layer_shape.hpp>
#include <nn/products.hpp>
#include <sluice/backend/stream.hpp>
#include <sluice/memory/span.hpp>

namespace nn {

/// What a detector is made for.
struct DetectorOptions {
    std::size_t height = 0; ///< pixels of an image; a multiple of 2^(convolutions)
    std::size_t width = 0;  ///< likewise
    std::vector<std::size_t> channels = {4, 16, 64, 256}; ///< after each convolution
    std::size_t hidden = 0;                               ///< features between the two linear layers
    std::size_t max_boxes = 0;                            ///< boxes predicted for each image
    std::size_t batch = 0;                                ///< images in one call, at most
    float learning_rate = 0.0f;                           ///< of plain gradient descent, until another is set
    float image_scale = 1.0f / 255.0f;                    ///< what the images' bytes are multiplied with
    float box_scale = 1.0f; ///< what the last layer's outputs are multiplied with, to be pixels
    Precision precision = Precision::tf32; ///< of products on a device; bfloat16: of weights and maps too
    std::uint64_t seed = 0;                ///< of the first weights
};

/// Several times {3×3 convolution with padding 1, 2×2 max pool, ReLU}, then flatten, linear, ReLU, linear: four
/// numbers (x1, y1, x2, y2) for each box, in pixels, not bounded by anything.
///
/// Images are grey bytes [N, H, W], 1 ≤ N ≤ `options().batch`; predictions are [N, max_boxes, 4]. The last layer's
/// outputs are multiplied with `box_scale`: 1 gives PyTorch's `Sequential` as it is; about the side of an image
/// lets first weights of usual size predict boxes of usual size, and trains faster (the gradient grows alike, so
/// that the learning rate wants to be smaller).
///
/// With `Precision::bfloat16` activations and the weights that products take are bfloat16 and sums are float32; the
/// weights that descend are float32 still, since a step is often less than a bfloat16 can tell. On a device the
/// convolutions of the channels {4, 16, 64 …, 256} are then kernels of our own that pool before they write.
///
/// An object is driven by one thread, and by one stream at a time; two objects are independent. All memory is
/// allocated at the start, for `batch` images: later calls only enqueue, wait for nothing, and can be captured. The
/// same images and weights give the same bits in each run.
template <sluice::Backend B>
class Detector {
public:
    /// Throws `sluice::Error` when an option is out of its bounds, or there is not enough memory.
    explicit Detector(const DetectorOptions& options);

    const DetectorOptions& options() const noexcept;
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
                             sluice::DeviceSpan<const float, B> prediction_gradients);

    /// The learning rate of the updates that `stream` gets to after this one. Waits for nothing. An update that is
    /// captured reads the rate anew in each replay; inside a capture this throws `sluice::Error`.
    void set_learning_rate(sluice::BasicStreamRef<B> stream, float rate);

    /// The weights, named and laid out as PyTorch does for `Sequential(Conv2d, MaxPool2d, ReLU, …, Flatten, Linear,
    /// ReLU, Linear)`: `0.weight`, `0.bias`, `3.weight`, … Waits for `stream`.
    std::vector<NamedTensor> weights(sluice::BasicStreamRef<B> stream) const;

    /// Takes the weights from among `tensors`. Waits for `stream`. Throws `sluice::Error` at the first that is
    /// missing or of another shape.
    void load(sluice::BasicStreamRef<B> stream, std::span<const NamedTensor> tensors);
};

} // namespace nn
