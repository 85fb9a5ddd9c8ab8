// Bodies of decoder.hpp.
#pragma once

namespace nn {

namespace detail {

std::size_t divided_layers(const DecoderOptions& options, std::size_t layers, std::size_t feature_pixels,
                           std::size_t ranks);
LayerShape divided_shape(const DecoderOptions& options, std::size_t i, std::size_t ranks);

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
Decoder<B>::Decoder(const DecoderOptions& options, const sluice::Communicator<B>* communicator)
    : Decoder(detail::checked(options),
              MortonOrder(options.height, options.width,
                          options.channels.empty() ? 0 : options.channels.size() - 1),
              communicator) {}

template <sluice::Backend B>
Decoder<B>::Decoder(const DecoderOptions& options, const MortonOrder& order,
                    const sluice::Communicator<B>* communicator)
    : options_(options), feature_pixels_(order.pixels() >> (2 * order.levels())),
      gemm_(options.precision, options.algorithms),
      tail_(order, {.inputs = options.channels[order.levels() - 1],
                    .channels = options.channels[order.levels()],
                    .classes = options.classes,
                    .images = options.batch,
                    .precision = options.precision,
                    .up_key = layer_key(options.seed, random_operation, order.levels() - 1),
                    .last_key = layer_key(options.seed, random_operation, order.levels())}),
      rate_(options.learning_rate), side_gemm_(options.precision, options.algorithms),
      may_update_(order.levels()) {
    const auto ranks = communicator == nullptr ? 1 : static_cast<std::size_t>(communicator->ranks());
    const std::size_t first_rows = rows_of(options.batch, 0) * ranks;
    std::size_t scratch = 0;
    const std::size_t divided = detail::divided_layers(options, order.levels() - 1, feature_pixels_, ranks);
    grouped_.reserve(order.levels());
    layers_.reserve(order.levels() - 1);
    for (std::size_t i = 0; i + 1 < order.levels(); ++i) {
        layers_.emplace_back(i < divided ? detail::divided_shape(options, i, ranks) : whole_shape(i),
                             layer_key(options.seed, random_operation, i));
        const std::size_t size = rows_of(options.batch, i + 1) * options.channels[i + 1];
        maps_.emplace_back(size);
        const bool gathered = ranks == 1 || options.exchange != RankExchange::gradients;
        if (i == 0 && gathered && DeferredUpdate<B>::supports(first_rows)) {
            deferred_ = DeferredUpdate<B>(layers_[0].shape(), first_rows);
            gradients_.emplace_back();
        } else {
            gradients_.emplace_back(size);
        }
        scratch = std::max(scratch, layers_[i].scratch_size(size * ranks));
    }
    scratch_ = sluice::DeviceBuffer<double, B>(std::max(scratch, tail_.scratch_size()));
    side_scratch_ = sluice::DeviceBuffer<double, B>(scratch_.size());
    if (ranks > 1)
        make_exchange(*communicator, divided);
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
                         std::size_t images, std::size_t begin, std::size_t end) {
    for (std::size_t i = begin; i < end; ++i) {
        const Matrix<const float, B> in = input(features, images, i);
        const Matrix<float, B> out = sized(maps_[i], images, i + 1);
        if (i == 0 && deferred_.in_use())
            deferred_.forward(stream, layers_[0], in, out);
        else
            layers_[i].forward(stream, gemm_, in, out, true, i > 0);
    }
}

template <sluice::Backend B>
void Decoder<B>::step(sluice::BasicStreamRef<B> stream, sluice::DeviceSpan<const float, B> features,
                      sluice::DeviceSpan<const std::uint8_t, B> labels,
                      sluice::DeviceSpan<const float, B> rate, sluice::DeviceSpan<float, B> loss) {
    require_size("decoder: elements of the loss", loss.size(), 1);
    require_size("decoder: elements of the learning rate", rate.size(), 1);
    const std::size_t images = checked_images(features, labels.size());
    if (exchange_ && images != options_.batch) {
        throw sluice::Error("decoder: " + std::to_string(images) + " images were given, expected " +
                            std::to_string(options_.batch) + ", as many as all other ranks give");
    }
    Fork<B> fork(stream, side_.ref(), updated_);
    fork.follow(begun_);
    descent_factors(side_.ref(), rate, factors_);
    grouped_.clear();
    factors_known_.record(side_);
    const std::size_t known = exchange_ ? exchanged_forward(stream, features, images) : 0;
    forward(stream, features, images, known, layers_.size());
    stream.wait(factors_known_);
    sluice::DeviceSpan<float, B> of_map;
    if (!layers_.empty())
        of_map = gradient(images, layers_.size()).span();
    tail_.gradients(stream, gemm_, input(features, images, layers_.size()), labels, of_map,
                    exchange_ ? exchange_->ones.span() : factors_.span(), loss, scratch_);
    if (exchange_)
        exchanged_backward(stream, fork, features, images, loss);
    else
        backward(stream, fork, features, images, loss);
    fork.join();
}

template <sluice::Backend B>
void Decoder<B>::backward(sluice::BasicStreamRef<B> stream, Fork<B>& fork,
                          sluice::DeviceSpan<const float, B> features, std::size_t images,
                          sluice::DeviceSpan<float, B> loss) {
    const std::size_t last = layers_.size();
    fork.follow(may_update_[last]);
    tail_.update(side_, side_gemm_, input(features, images, last), factors_, loss, side_scratch_);
    if (deferred_.in_use())
        deferred_.defer(side_, input(features, images, 0), factors_);
    const auto update = [&](std::size_t i) {
        const WeightUpdate<B> step =
            layers_[i].step(input(features, images, i), gradient(images, i + 1), scratch_);
        if (i == 0 || gemm_.can_group(step, factors_)) {
            grouped_.push_back(step);
        } else {
            fork.follow(may_update_[i]);
            layers_[i].update(side_, side_gemm_, step.in, step.gradient, factors_, side_scratch_);
        }
    };
    for (std::size_t i = last; i-- > 1;) {
        // Needs the weights of the forward pass, so it comes before their update.
        layers_[i].input_gradient(stream, gemm_, gradient(images, i + 1), gradient(images, i),
                                  input(features, images, i).span(), true);
        update(i);
    }
    // The gradient of the features is not needed: the encoder is frozen.
    if (deferred_.in_use()) {
        fork.follow(may_update_[0]);
        update_bias(side_.ref(), gradient(images, 1), layers_[0].bias(), factors_, side_scratch_);
    } else if (last > 0) {
        update(0);
    }
    gemm_.update(stream, grouped_, factors_);
}

template <sluice::Backend B>
void Decoder<B>::predict(sluice::BasicStreamRef<B> stream, sluice::DeviceSpan<const float, B> features,
                         sluice::DeviceSpan<std::uint8_t, B> predictions) {
    if (is_divided(0)) {
        throw sluice::Error(
            "decoder: expected one rank to predict, or all weights on each: load them into a decoder "
            "without a communicator");
    }
    const std::size_t images = checked_images(features, predictions.size());
    forward(stream, features, images, 0, layers_.size());
    if (deferred_.in_use())
        deferred_.discard(stream); // taken within the product
    tail_.predict(stream, gemm_, input(features, images, layers_.size()), predictions);
}

template <sluice::Backend B>
std::vector<NamedTensor> Decoder<B>::weights(sluice::BasicStreamRef<B> stream) {
    if (deferred_.in_use())
        deferred_.flush(stream, layers_[0]);
    std::vector<NamedTensor> tensors;
    for (std::size_t i = 0; i < layers_.size(); ++i)
        save_layer(stream, i, tensors);
    tail_.save(stream, 2 * layers_.size(), tensors);
    return tensors;
}

template <sluice::Backend B>
void Decoder<B>::load(sluice::BasicStreamRef<B> stream, std::span<const NamedTensor> tensors) {
    for (std::size_t i = 0; i < layers_.size(); ++i) {
        load_layer(stream, i, tensors);
        // At once, since another layer's weights may be missing: a step belongs to the weights that it was made with.
        if (i == 0 && deferred_.in_use())
            deferred_.discard(stream);
    }
    tail_.load(stream, 2 * layers_.size(), tensors);
    if (exchange_) { // as after a step, also where one has failed
        sluice::fill_bytes(stream, exchange_->reduction.all(), 0);
        stream.sync(); // the side stream's work comes next
    }
}

} // namespace nn
