/// \file
/// The convolutional encoder: frozen, or trainable.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include <nn/core/fork.hpp>
#include <nn/elementwise/pixels.hpp>
#include <nn/layers/layer.hpp>
#include <nn/layers/morton_order.hpp>
#include <nn/layers/rounded_layers.hpp>
#include <nn/stem/stem.hpp>
#include <sluice/backend/event.hpp>

namespace nn {

/// What an encoder is made for.
struct EncoderOptions {
    std::size_t height = 0;                ///< pixels of an image; a multiple of 2^(number of halvings)
    std::size_t width = 0;                 ///< likewise
    std::size_t image_channels = 3;        ///< of an image
    std::vector<std::size_t> channels;     ///< after the 1×1 convolution, then after each halving
    std::size_t batch = 0;                 ///< images in one call, at most
    float image_scale = 1.0f;              ///< what the images' numbers are multiplied with
    bool trainable = false;                ///< true: keeps what `backward` needs, in more memory
    Precision precision = Precision::tf32; ///< of the products on a device
    std::uint64_t seed = 0;                ///< of the first weights
    Algorithms algorithms = Algorithms::heuristic; ///< of the products on a device
};

/// A 1×1 convolution, then 2×2 convolutions of stride 2; a ReLU after each but the last.
///
/// On a device, in TF32, the first three layers are one kernel if their channels are `stem_channels` and more layers
/// follow (see stem.hpp). Updates run on a stream of the encoder's own, and those that a device computes together (see
/// Gemm::can_group) once all gradients but those of the first layers are there.
///
/// With `Precision::bfloat16` the first layer, and what goes into that kernel, are as in TF32; the weights of all others,
/// and the maps between them, lie in memory as bfloat16, on both backends, and features are float32 still. For a frozen
/// encoder only.
///
/// Features are a matrix [N h w, C], a row for each place of the last and smallest map, in raster order, images one
/// after another, channels last. An object is driven by one thread, and by one stream at a time; two objects are
/// independent. All memory is allocated at the start, for `batch` images: later calls only enqueue.
template <sluice::Backend B>
class Encoder {
public:
    /// Throws `sluice::Error` when an option is out of its bounds, or there is not enough memory.
    explicit Encoder(const EncoderOptions& options);

    const EncoderOptions& options() const noexcept { return options_; }
    std::size_t image_size() const noexcept { return options_.image_channels * order_.pixels(); }
    /// How often the image is halved.
    std::size_t halvings() const noexcept { return options_.channels.size() - 1; }
    /// Pixels of the last map.
    std::size_t feature_pixels() const noexcept { return order_.pixels() >> (2 * halvings()); }
    /// Features of one image: the last map's pixels times its channels.
    std::size_t features_size() const noexcept { return feature_pixels() * options_.channels.back(); }

    /// From planar images [N, C, H, W], 1 ≤ N ≤ `options().batch`, to features [N h w, C]. Throws `sluice::Error`
    /// when a size does not fit.
    void forward(sluice::BasicStreamRef<B> stream, sluice::DeviceSpan<const std::uint8_t, B> images,
                 sluice::DeviceSpan<float, B> features) {
        forward_any(stream, images, features);
    }
    void forward(sluice::BasicStreamRef<B> stream, sluice::DeviceSpan<const float, B> images,
                 sluice::DeviceSpan<float, B> features) {
        forward_any(stream, images, features);
    }

    /// One step of gradient descent from the features' gradient, for the images of the latest `forward`, which are read
    /// again, with the rate of `factors` (see `descent_factors`). Throws `sluice::Error` unless the encoder is
    /// trainable and has gone forward.
    void backward(sluice::BasicStreamRef<B> stream, sluice::DeviceSpan<const float, B> features_gradient,
                  sluice::DeviceSpan<const float, B> factors);

    /// The weights, named and laid out as PyTorch does for `Sequential(Conv2d, ReLU, Conv2d, …)`: `0.weight`,
    /// `0.bias`, `2.weight`, …, rounded where they are kept so. Waits for `stream`.
    std::vector<NamedTensor> weights(sluice::BasicStreamRef<B> stream) const;

    /// Takes the weights from among `tensors`. Waits for `stream`. Throws `sluice::Error` at the first that is
    /// missing or of another shape.
    void load(sluice::BasicStreamRef<B> stream, std::span<const NamedTensor> tensors);

private:
    static constexpr std::uint16_t random_operation = 0xE001;

    /// The stream of updates. Its products need workspace of their own.
    struct Updates {
        Updates(Precision precision, Algorithms algorithms) : gemm(precision, algorithms) {}

        sluice::BasicStream<B> stream;
        Gemm<B> gemm;
        sluice::BasicEvent<B> ready; // what an update needs
        sluice::BasicEvent<B> done;
    };

    std::size_t rows_of(std::size_t images, std::size_t level) const;
    std::size_t channels_of(std::size_t level) const;
    Matrix<float, B> map(std::size_t level);
    bool supports_stem() const;
    bool rounds() const { return options_.precision == Precision::bfloat16; }
    /// The first level whose map is kept: the maps before it stay on chip in the stem's kernels.
    std::size_t first_map() const { return !uses_stem_ ? 0 : options_.trainable ? 2 : 3; }
    /// The first layer whose weights, and whose input, are rounded.
    std::size_t first_rounded() const { return !rounds() ? options_.channels.size() : uses_stem_ ? 3 : 1; }
    /// Whether the input of layer `level` is kept in float32: also that of the first rounded layer, if another layer
    /// writes it so.
    bool keeps_map(std::size_t level) const {
        return level >= first_map() && (level < first_rounded() || (level == first_rounded() && !uses_stem_));
    }
    template <class T>
    void forward_any(sluice::BasicStreamRef<B> stream, sluice::DeviceSpan<const T, B> images,
                     sluice::DeviceSpan<float, B> features);
    template <class T>
    void forward_stem(sluice::BasicStreamRef<B> stream, sluice::DeviceSpan<const T, B> images);
    void backward_stem(sluice::BasicStreamRef<B> stream, Matrix<const float, B> gradient,
                       sluice::DeviceSpan<const float, B> factors);

    EncoderOptions options_;
    MortonOrder order_;
    sluice::DeviceBuffer<std::int32_t, B> raster_of_row_;
    Gemm<B> gemm_;
    bool uses_stem_;
    std::vector<Layer<B>> layers_;
    RoundedLayers<B> rounded_; // which follow these
    // The inputs of the layers: each in a buffer of its own if the backward pass needs them, otherwise alternating
    // between two.
    std::vector<sluice::DeviceBuffer<float, B>> maps_;
    std::size_t images_ = 0; // in the latest forward
    // Only in an encoder that is trained:
    std::vector<sluice::DeviceBuffer<float, B>> gradients_; // of the maps
    sluice::DeviceBuffer<double, B> scratch_;
    sluice::DeviceBuffer<float, B> stem_scratch_;
    sluice::DeviceSpan<const std::uint8_t, B> bytes_; // the images of the latest forward: either these,
    sluice::DeviceSpan<const float, B> numbers_;      // or these
    std::unique_ptr<Updates> updates_;
    std::vector<WeightUpdate<B>> steps_; // of the latest backward, those that are still to be enqueued
};

} // namespace nn

#include <nn/models/detail/encoder.inl>
