/// \file
/// The trainable decoder: from features to a class for each pixel.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include <nn/conv/convolution_3x3.hpp>
#include <nn/core/fork.hpp>
#include <nn/layers/decoder_tail.hpp>
#include <nn/layers/deferred_update.hpp>
#include <nn/models/detail/decoder_exchange.hpp>
#include <nn/models/encoder.hpp>
#include <nn/models/rank_exchange.hpp>
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
    /// With a communicator. But for gradients all ranks multiply alike, so that `algorithms` is `heuristic`.
    RankExchange exchange = RankExchange::automatic;
};

/// Transposed 2×2 convolutions of stride 2, a ReLU after each, then a 3×3 convolution to the classes; mean
/// cross-entropy over all pixels. In TF32 a device may compute the last two layers with factors of float16, which have
/// as many bits but a shorter range (see segmentation_head.hpp).
///
/// Features are as an Encoder gives them. An object is driven by one thread, and by one stream at a time; two
/// objects are independent. All memory is allocated at the start, for `batch` images: later calls only enqueue.
///
/// A step forks: once the gradient of a layer's input is computed, its weights are updated on a second stream of the
/// decoder's own, while the backward pass goes on to the layers below. The caller's stream waits for both. Updates that a
/// device computes together (see Gemm::can_group) follow the last gradient. The first layer's update may be deferred to
/// the next step (see DeferredUpdate), which the caller cannot observe.
///
/// **Several ranks.** Made with a communicator, each rank's decoder takes the same steps, from the same first weights: the
/// gradient is the sum of those of all ranks' batches, each that of the mean loss of its batch, so a rate for one GPU is
/// divided by the ranks. Layers of few rows exchange something else than their gradients (see RankExchange); the gradients of the
/// others are reduced in buckets while the backward pass goes on. The weights of all ranks stay equal to the bit. All
/// batches have `options().batch` images, and all ranks call `step` equally often, and `weights` as well. `loss` is of the rank's
/// own batch.
template <sluice::Backend B>
class Decoder {
public:
    /// Throws `sluice::Error` when an option is out of its bounds, or there is not enough memory. A `communicator` outlives the
    /// decoder, is of its device, and serves nothing else while steps are taken.
    explicit Decoder(const DecoderOptions& options, const sluice::Communicator<B>* communicator = nullptr);

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

    /// The most likely class of each pixel [N, H, W]. Throws `sluice::Error` where weights are divided among ranks.
    void predict(sluice::BasicStreamRef<B> stream, sluice::DeviceSpan<const float, B> features,
                 sluice::DeviceSpan<std::uint8_t, B> predictions);

    /// The learning rate of the steps that `stream` gets to after this one. Waits for nothing. A step that is
    /// captured reads the rate anew in each replay, so set it between replays, on their stream; inside a capture it
    /// throws `sluice::Error`, since every replay would set this rate again.
    void set_learning_rate(sluice::BasicStreamRef<B> stream, float rate) { rate_.set(stream, rate); }

    /// The weights, named and laid out as PyTorch does for `Sequential(ConvTranspose2d, ReLU, …, Conv2d)`. Waits for
    /// `stream`. With other ranks, all of them call it, as no step is under way.
    std::vector<NamedTensor> weights(sluice::BasicStreamRef<B> stream);

    /// Takes the weights from among `tensors`. Waits for `stream`. Throws `sluice::Error` at the first that is
    /// missing or of another shape. A rank takes its part of weights that are divided.
    void load(sluice::BasicStreamRef<B> stream, std::span<const NamedTensor> tensors);

private:
    static constexpr std::uint16_t random_operation = 0xE002;

    Decoder(const DecoderOptions& options, const MortonOrder& order,
            const sluice::Communicator<B>* communicator);

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
        if (level == 1 && deferred_.in_use()) {
            const std::size_t rows = rows_of(images, 0);
            if (!exchange_)
                return deferred_.gradient(rows).with_columns(options_.channels[1]);
            return exchange_->own_part(gathered_gradient(0).span()).with_columns(options_.channels[1]);
        }
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
    /// Fills the maps that layers `begin` up to `end` make.
    void forward(sluice::BasicStreamRef<B> stream, sluice::DeviceSpan<const float, B> features,
                 std::size_t images, std::size_t begin, std::size_t end);
    /// `fork` is of `stream` and `side_`.
    void backward(sluice::BasicStreamRef<B> stream, Fork<B>& fork,
                  sluice::DeviceSpan<const float, B> features, std::size_t images,
                  sluice::DeviceSpan<float, B> loss);
    /// The first layers' part of `forward`, as far as other ranks take part in it. Returns the number of these layers.
    std::size_t exchanged_forward(sluice::BasicStreamRef<B> stream,
                                  sluice::DeviceSpan<const float, B> features, std::size_t images);
    /// That of the layers whose weights are divided.
    void divided_forward(sluice::BasicStreamRef<B> stream, sluice::DeviceSpan<const float, B> features);
    /// `backward` with the gradients of all ranks.
    void exchanged_backward(sluice::BasicStreamRef<B> stream, Fork<B>& fork,
                            sluice::DeviceSpan<const float, B> features, std::size_t images,
                            sluice::DeviceSpan<float, B> loss);
    /// Gathers the gradient of layer `i`'s output from all ranks.
    void gather_gradient(sluice::BasicStreamRef<B> stream, std::size_t i);
    /// Computes the gradient of layer `i`, which is to be reduced, on the side stream, at once or together with those of
    /// later calls, unless it is the last.
    void collect_gradient(Fork<B>& fork, std::size_t i, bool last, Matrix<const float, B> in,
                          Matrix<const float, B> out_gradient);
    /// Takes the step of the layers whose gradients are reduced, on the side stream. The last of them is known on another.
    void apply_reduced(Fork<B>& fork, sluice::BasicStreamRef<B> last_known_on);
    /// Takes it of the others, but for a deferred one.
    void apply_gathered(sluice::BasicStreamRef<B> stream);
    /// What goes into layer `i` on all ranks. What comes out of a divided layer has all ranks' rows as it is.
    Matrix<const float, B> gathered_input(std::size_t i) const {
        return {i == 1 && exchange_->is_divided(i) ? maps_[0].span() : exchange_->inputs[i].span(),
                exchange_->rows_of_all(rows_of(options_.batch, i)), layers_[i].shape().rows()};
    }
    Matrix<float, B> gathered_gradient(std::size_t i) {
        const std::size_t rows = exchange_->rows_of_all(rows_of(options_.batch, i));
        if (i == 0 && deferred_.in_use())
            return deferred_.gradient(rows);
        return {i == 0 && exchange_->is_divided(i) ? gradients_[0].span() : exchange_->gradients[i].span(),
                rows, layers_[i].shape().columns()};
    }
    /// Whether a gradient of much work is computed by itself, so that others need not wait for it.
    bool takes_long(const WeightUpdate<B>& step) const {
        return step.in.rows() * step.weights.size() > (std::size_t{1} << 30) ||
               !side_gemm_.can_group(step, exchange_->ones);
    }
    bool is_divided(std::size_t i) const { return exchange_ && exchange_->is_divided(i); }
    /// Of layer `i`, not of this rank's part.
    LayerShape whole_shape(std::size_t i) const {
        return LayerShape::transposed_convolution(options_.channels[i], options_.channels[i + 1], 2);
    }
    void make_exchange(const sluice::Communicator<B>& communicator, std::size_t divided_layers);
    void divide_weights();
    void load_layer(sluice::BasicStreamRef<B> stream, std::size_t i, std::span<const NamedTensor> tensors);
    void save_layer(sluice::BasicStreamRef<B> stream, std::size_t i, std::vector<NamedTensor>& tensors);

    DecoderOptions options_;
    std::size_t feature_pixels_;
    Gemm<B> gemm_;
    std::vector<Layer<B>> layers_; // all but the tail's
    DecoderTail<B> tail_;
    DeferredUpdate<B> deferred_;                       // of the first layer
    std::unique_ptr<DecoderExchange<B>> exchange_;     // with other ranks; null where there are none
    std::vector<sluice::DeviceBuffer<float, B>> maps_; // after each of these
    std::vector<sluice::DeviceBuffer<float, B>>
        gradients_; // likewise: updates read them while others are written
    sluice::DeviceBuffer<double, B> scratch_;
    sluice::DeviceScalar<float, B> rate_;
    sluice::DeviceBuffer<float, B> factors_{2}; // of the latest step
    // The second stream's: products share no workspace with those of the first.
    Gemm<B> side_gemm_;
    sluice::DeviceBuffer<double, B> side_scratch_;
    sluice::BasicStream<B> side_;
    sluice::BasicEvent<B> begun_;
    sluice::BasicEvent<B> factors_known_;
    std::vector<sluice::BasicEvent<B>> may_update_; // a layer's weights
    std::vector<WeightUpdate<B>> grouped_;          // of the latest step, those that are taken together
    sluice::BasicEvent<B> updated_;
};

} // namespace nn

#include <nn/models/detail/decoder.inl>
#include <nn/models/detail/decoder_exchange.inl>
#include <nn/models/detail/decoder_shards.inl>
