/// \file
/// A detector for one type of its activations. Users include detector.hpp.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <type_traits>
#include <vector>

#include <nn/conv/pooled_convolution.hpp>
#include <nn/models/detector_options.hpp>

namespace nn::detail {

/// The work of a detector, whatever the type of its activations. See Detector.
template <sluice::Backend B>
class DetectorWork {
public:
    using StreamRef = sluice::BasicStreamRef<B>;

    virtual ~DetectorWork() = default;
    virtual void forward(StreamRef stream, sluice::DeviceSpan<const std::uint8_t, B> images,
                         sluice::DeviceSpan<float, B> predictions) = 0;
    virtual void forward(StreamRef stream, sluice::DeviceSpan<const std::uint8_t, B> images,
                         sluice::DeviceSpan<Bfloat16, B> predictions) = 0;
    virtual void backward_and_update(StreamRef stream, sluice::DeviceSpan<const float, B> gradients,
                                     sluice::DeviceSpan<const float, B> rate) = 0;
    virtual std::vector<NamedTensor> weights(StreamRef stream) const = 0;
    virtual void load(StreamRef stream, std::span<const NamedTensor> tensors) = 0;
};

/// With activations, and the factors of products, of type `T`: float or Bfloat16.
template <class T, sluice::Backend B>
class DetectorNetwork final : public DetectorWork<B> {
public:
    using StreamRef = sluice::BasicStreamRef<B>;

    explicit DetectorNetwork(const DetectorOptions& options);

    void forward(StreamRef stream, sluice::DeviceSpan<const std::uint8_t, B> images,
                 sluice::DeviceSpan<float, B> predictions) override {
        forward_any(stream, images, predictions);
    }
    void forward(StreamRef stream, sluice::DeviceSpan<const std::uint8_t, B> images,
                 sluice::DeviceSpan<Bfloat16, B> predictions) override {
        forward_any(stream, images, predictions);
    }
    void backward_and_update(StreamRef stream, sluice::DeviceSpan<const float, B> gradients,
                             sluice::DeviceSpan<const float, B> rate) override;
    std::vector<NamedTensor> weights(StreamRef stream) const override;
    void load(StreamRef stream, std::span<const NamedTensor> tensors) override;

private:
    static constexpr std::uint16_t random_operation = 0xE004;

    static std::vector<PooledConvolution<T, B>> make_convolutions(const DetectorOptions& options);
    static typename ConvolutionWorkspace<T, B>::Sizes
    workspace_sizes(const std::vector<PooledConvolution<T, B>>& convolutions);

    void centre_boxes(StreamRef stream);
    template <class U>
    void forward_any(StreamRef stream, sluice::DeviceSpan<const std::uint8_t, B> images,
                     sluice::DeviceSpan<U, B> predictions);

    /// The first images' part of a buffer of rows for each image.
    template <class U>
    Matrix<U, B> rows(sluice::DeviceBuffer<U, B>& buffer) {
        const std::size_t columns = buffer.size() / options_.batch;
        return {buffer.span().first(images_ * columns), images_, columns};
    }
    sluice::DeviceSpan<std::uint32_t, B> routes(std::size_t level) {
        return routes_[level].span().first(routes_[level].size() / options_.batch * images_);
    }
    Matrix<T, B> gradient_of_map(std::size_t level) {
        const std::size_t columns = convolutions_[level].out().size();
        return {gradients_[level % 2].span().first(images_ * columns), images_, columns};
    }
    // PyTorch numbers the layers with pools, ReLUs and flatten between them.
    std::string convolution_name(std::size_t level) const { return std::to_string(3 * level); }
    std::string hidden_name() const { return std::to_string(3 * convolutions_.size() + 1); }
    std::string head_name() const { return std::to_string(3 * convolutions_.size() + 3); }

    DetectorOptions options_;
    Gemm<B> gemm_;
    std::vector<PooledConvolution<T, B>> convolutions_;
    MixedLayer<T, B> hidden_layer_;
    MixedLayer<T, B> head_layer_;
    std::vector<sluice::DeviceBuffer<T, B>> maps_; // the outputs of the convolutions
    // The routes of their pools; empty unless kept.
    std::vector<sluice::DeviceBuffer<std::uint32_t, B>> routes_;
    sluice::DeviceBuffer<T, B> hidden_;
    sluice::DeviceBuffer<float, B> outputs_; // of the head
    sluice::DeviceBuffer<T, B> gradients_[2];
    sluice::DeviceBuffer<T, B> hidden_gradient_;
    sluice::DeviceBuffer<T, B> outputs_gradient_;
    sluice::DeviceBuffer<float, B> factors_{2};
    ConvolutionWorkspace<T, B> workspace_;
    sluice::DeviceBuffer<double, B> scratch_;
    sluice::DeviceSpan<const std::uint8_t, B> seen_; // the images of the latest forward
    std::size_t images_ = 0;                         // their number
};

// ---------------------------------------------------------------------------------------------------------------

template <class T, sluice::Backend B>
auto DetectorNetwork<T, B>::make_convolutions(const DetectorOptions& options)
    -> std::vector<PooledConvolution<T, B>> {
    std::vector<PooledConvolution<T, B>> convolutions;
    convolutions.reserve(options.channels.size());
    MapShape shape{options.height, options.width, 1};
    for (std::size_t level = 0; level < options.channels.size(); ++level) {
        convolutions.emplace_back(shape, options.channels[level], options.batch, level == 0,
                                  options.image_scale, layer_key(options.seed, random_operation, level));
        shape = convolutions.back().out();
    }
    return convolutions;
}

template <class T, sluice::Backend B>
auto DetectorNetwork<T, B>::workspace_sizes(const std::vector<PooledConvolution<T, B>>& convolutions) ->
    typename ConvolutionWorkspace<T, B>::Sizes {
    typename ConvolutionWorkspace<T, B>::Sizes most;
    for (const auto& convolution : convolutions) {
        const auto sizes = convolution.workspace_sizes();
        most.patches = std::max(most.patches, sizes.patches);
        most.convolved = std::max(most.convolved, sizes.convolved);
        most.weight_gradients = std::max(most.weight_gradients, sizes.weight_gradients);
        most.bias_gradients = std::max(most.bias_gradients, sizes.bias_gradients);
        most.routes = std::max(most.routes, sizes.routes);
        most.scratch = std::max(most.scratch, sizes.scratch);
    }
    return most;
}

template <class T, sluice::Backend B>
DetectorNetwork<T, B>::DetectorNetwork(const DetectorOptions& options)
    : options_(options), gemm_(options.precision), convolutions_(make_convolutions(options)),
      hidden_layer_(
          LayerShape::linear(options.channels.back(), options.hidden, convolutions_.back().out().pixels()),
          layer_key(options.seed, random_operation, options.channels.size())),
      head_layer_(LayerShape::linear(options.hidden, 4 * options.max_boxes, 1),
                  layer_key(options.seed, random_operation, options.channels.size() + 1)),
      hidden_(options.batch * options.hidden), outputs_(options.batch * 4 * options.max_boxes),
      hidden_gradient_(hidden_.size()), outputs_gradient_(outputs_.size()),
      workspace_(workspace_sizes(convolutions_)),
      scratch_(
          std::max(hidden_layer_.scratch_size(hidden_.size()), head_layer_.scratch_size(outputs_.size()))) {
    std::size_t sizes[2] = {0, 0};
    for (std::size_t level = 0; level < convolutions_.size(); ++level) {
        const std::size_t size = options.batch * convolutions_[level].out().size();
        maps_.emplace_back(size);
        routes_.emplace_back(options.keep_routes ? convolutions_[level].kept_words(options.batch) : 0);
        sizes[level % 2] = std::max(sizes[level % 2], size);
    }
    for (std::size_t turn = 0; turn < 2; ++turn)
        gradients_[turn] = sluice::DeviceBuffer<T, B>(sizes[turn]);
    if (options.centred_boxes)
        on_own_stream<B>([&](StreamRef stream) { centre_boxes(stream); });
}

template <class T, sluice::Backend B>
void DetectorNetwork<T, B>::centre_boxes(StreamRef stream) {
    std::vector<NamedTensor> tensors;
    head_layer_.save(stream, "head", tensors);
    for (std::size_t i = 0; i < tensors[1].values.size(); ++i) {
        const std::size_t side = i % 2 == 0 ? options_.width : options_.height;
        const float place = i % 4 < 2 ? 0.25f : 0.75f;
        tensors[1].values[i] = place * static_cast<float>(side) / options_.box_scale;
    }
    head_layer_.load(stream, "head", tensors);
}

template <class T, sluice::Backend B>
template <class U>
void DetectorNetwork<T, B>::forward_any(StreamRef stream, sluice::DeviceSpan<const std::uint8_t, B> images,
                                        sluice::DeviceSpan<U, B> predictions) {
    images_ = images.size() / (options_.height * options_.width);
    seen_ = images;
    for (std::size_t level = 0; level < convolutions_.size(); ++level) {
        if (level == 0) {
            convolutions_[0].forward(stream, gemm_, images, rows(maps_[0]).span(), workspace_);
        } else {
            const Matrix<const T, B> before = rows(maps_[level - 1]);
            convolutions_[level].forward(stream, gemm_, before.span(), rows(maps_[level]).span(), workspace_,
                                         routes(level));
        }
    }
    hidden_layer_.forward(stream, gemm_, rows(maps_.back()), rows(hidden_), true);
    head_layer_.forward(stream, gemm_, rows(hidden_), rows(outputs_), false);
    scaled_copy<U, float>(stream, rows(outputs_).span(), options_.box_scale, predictions);
}

template <class T, sluice::Backend B>
void DetectorNetwork<T, B>::backward_and_update(StreamRef stream,
                                                sluice::DeviceSpan<const float, B> gradients,
                                                sluice::DeviceSpan<const float, B> rate) {
    const std::size_t last = convolutions_.size() - 1;
    descent_factors(stream, rate, factors_);
    scaled_copy<T, float>(stream, gradients, options_.box_scale, rows(outputs_gradient_).span());
    // Each input gradient needs the weights of the forward pass, so it comes before their update.
    head_layer_.input_gradient(stream, gemm_, rows(outputs_gradient_), rows(hidden_gradient_));
    head_layer_.update(stream, gemm_, rows(hidden_), rows(outputs_gradient_), factors_, scratch_);
    relu_gradient(stream, rows(hidden_).span(), rows(hidden_gradient_).span());
    hidden_layer_.input_gradient(stream, gemm_, rows(hidden_gradient_), gradient_of_map(last));
    hidden_layer_.update(stream, gemm_, rows(maps_.back()), rows(hidden_gradient_), factors_, scratch_);
    for (std::size_t level = last + 1; level-- > 0;) {
        const sluice::DeviceSpan<const T, B> pooled = rows(maps_[level]).span();
        const sluice::DeviceSpan<T, B> gradient = gradient_of_map(level).span();
        if (level == 0) {
            convolutions_[0].backward(stream, gemm_, seen_, pooled, gradient, {}, factors_, workspace_);
        } else {
            const Matrix<const T, B> before = rows(maps_[level - 1]);
            convolutions_[level].backward(stream, gemm_, before.span(), pooled, gradient,
                                          gradient_of_map(level - 1).span(), factors_, workspace_,
                                          routes(level));
        }
    }
}

template <class T, sluice::Backend B>
std::vector<NamedTensor> DetectorNetwork<T, B>::weights(StreamRef stream) const {
    std::vector<NamedTensor> tensors;
    for (std::size_t level = 0; level < convolutions_.size(); ++level)
        convolutions_[level].save(stream, convolution_name(level), tensors);
    hidden_layer_.save(stream, hidden_name(), tensors);
    head_layer_.save(stream, head_name(), tensors);
    return tensors;
}

template <class T, sluice::Backend B>
void DetectorNetwork<T, B>::load(StreamRef stream, std::span<const NamedTensor> tensors) {
    for (std::size_t level = 0; level < convolutions_.size(); ++level)
        convolutions_[level].load(stream, convolution_name(level), tensors);
    hidden_layer_.load(stream, hidden_name(), tensors);
    head_layer_.load(stream, head_name(), tensors);
}

} // namespace nn::detail
