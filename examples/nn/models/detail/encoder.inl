// Bodies of encoder.hpp.
#pragma once

namespace nn {

namespace detail {

inline EncoderOptions checked(const EncoderOptions& options) {
    if (options.channels.empty() || options.batch == 0 || options.image_channels == 0) {
        throw sluice::Error("encoder: " + std::to_string(options.channels.size()) +
                            " layers for a batch of " + std::to_string(options.batch) + " images of " +
                            std::to_string(options.image_channels) +
                            " channels; expected at least 1 of each");
    }
    if (options.trainable && options.precision == Precision::bfloat16) {
        throw sluice::Error("encoder: one that is trainable was asked for in bfloat16; expected tf32 or "
                            "float32, since a step is often less than a bfloat16 can tell");
    }
    return options;
}

/// How products of float32 are computed in a network of this precision.
inline Precision of_float32(Precision precision) {
    return precision == Precision::bfloat16 ? Precision::tf32 : precision;
}

} // namespace detail

template <sluice::Backend B>
Encoder<B>::Encoder(const EncoderOptions& options)
    : options_(detail::checked(options)), order_(options.height, options.width, options.channels.size() - 1),
      raster_of_row_(to_device<B>(order_.raster_of_row())),
      gemm_(detail::of_float32(options.precision), options.algorithms), uses_stem_(supports_stem()) {
    const std::size_t layers = options_.channels.size();
    std::vector<std::size_t> sizes(options_.trainable ? layers : std::min<std::size_t>(layers, 2));
    std::size_t scratch = 0;
    for (std::size_t level = 0; level < layers; ++level) {
        const LayerShape shape =
            LayerShape::convolution(channels_of(level), options_.channels[level], level == 0 ? 1 : 2);
        const sluice::RandomKey key = layer_key(options_.seed, random_operation, level);
        const std::size_t in = rows_of(options_.batch, level) * channels_of(level);
        if (keeps_map(level)) {
            std::size_t& size = sizes[level % sizes.size()];
            size = std::max(size, in);
        }
        if (level >= first_rounded()) {
            rounded_.append(shape, key, in);
        } else {
            layers_.emplace_back(shape, key);
            const std::size_t out = rows_of(options_.batch, level + 1) * options_.channels[level];
            scratch = std::max(scratch, layers_[level].scratch_size(out));
        }
    }
    for (const std::size_t size : sizes)
        maps_.emplace_back(size);
    if (!options_.trainable)
        return;
    // The gradient of the images is not needed.
    for (std::size_t level = 0; level < layers; ++level)
        gradients_.emplace_back(level == 0 ? 0 : maps_[level].size());
    scratch_ = sluice::DeviceBuffer<double, B>(scratch);
    updates_ = std::make_unique<Updates>(options_.precision, options_.algorithms);
    if constexpr (has_stem<B>) {
        if (uses_stem_)
            stem_scratch_ = sluice::DeviceBuffer<float, B>(stem_backward_scratch());
    }
}

template <sluice::Backend B>
bool Encoder<B>::supports_stem() const {
    const std::vector<std::size_t>& channels = options_.channels;
    return has_stem<B> && options_.precision != Precision::float32 && channels.size() > 3 &&
           options_.image_channels == stem_channels[0] &&
           std::equal(channels.begin(), channels.begin() + 3, stem_channels + 1);
}

/// Level 0 is the images, level i the input of layer i. The first layer keeps the size, the others quarter it.
template <sluice::Backend B>
std::size_t Encoder<B>::rows_of(std::size_t images, std::size_t level) const {
    return images * (level < 2 ? order_.pixels() : order_.pixels() >> (2 * (level - 1)));
}

template <sluice::Backend B>
std::size_t Encoder<B>::channels_of(std::size_t level) const {
    return level == 0 ? options_.image_channels : options_.channels[level - 1];
}

template <sluice::Backend B>
Matrix<float, B> Encoder<B>::map(std::size_t level) {
    const std::size_t rows = rows_of(images_, level);
    return {maps_[level % maps_.size()].span().first(rows * channels_of(level)), rows, channels_of(level)};
}

template <sluice::Backend B>
template <class T>
void Encoder<B>::forward_any(sluice::BasicStreamRef<B> stream, sluice::DeviceSpan<const T, B> images,
                             sluice::DeviceSpan<float, B> features) {
    const std::size_t count = images_in("encoder", images.size(), image_size(), options_.batch);
    require_size("encoder: elements of the features", features.size(), count * features_size());
    images_ = count;
    if constexpr (std::is_same_v<T, float>) {
        numbers_ = images;
        bytes_ = {};
    } else {
        bytes_ = images;
        numbers_ = {};
    }
    std::size_t level = 0;
    if (uses_stem_) {
        forward_stem(stream, images);
        level = 3;
    } else {
        rows_from_images(stream, images, raster_of_row_, options_.image_scale, map(0));
    }
    const std::size_t last_layer = options_.channels.size() - 1;
    for (; level < layers_.size() && level < last_layer; ++level)
        layers_[level].forward(stream, gemm_, map(level), map(level + 1), true, true);
    const Matrix<float, B> last{features, count * feature_pixels(), options_.channels.back()};
    if (rounded_.empty()) {
        layers_.back().forward(stream, gemm_, map(last_layer), last, false, true);
        return;
    }
    const std::size_t elements = rows_of(count, level) * channels_of(level);
    if (keeps_map(level))
        scaled_copy<Bfloat16, float>(stream, map(level).span(), 1.0f, rounded_.input(elements).span());
    rounded_.forward(stream, gemm_, elements, last);
}

template <sluice::Backend B>
template <class T>
void Encoder<B>::forward_stem(sluice::BasicStreamRef<B> stream, sluice::DeviceSpan<const T, B> images) {
    if constexpr (has_stem<B>) {
        const StemLayer<B> layers[3] = {{std::as_const(layers_[0]).weights(), layers_[0].bias()},
                                        {std::as_const(layers_[1]).weights(), layers_[1].bias()},
                                        {std::as_const(layers_[2]).weights(), layers_[2].bias()}};
        const auto kept = options_.trainable ? map(2).span() : sluice::DeviceSpan<float, B>{};
        if (rounds())
            stem_forward(stream, images, raster_of_row_, options_.width, options_.image_scale, layers, {},
                         rounded_.input(rows_of(images_, 3) * channels_of(3)));
        else
            stem_forward(stream, images, raster_of_row_, options_.width, options_.image_scale, layers, kept,
                         map(3));
    }
}

template <sluice::Backend B>
void Encoder<B>::backward(sluice::BasicStreamRef<B> stream,
                          sluice::DeviceSpan<const float, B> features_gradient,
                          sluice::DeviceSpan<const float, B> factors) {
    if (!options_.trainable || images_ == 0) {
        throw sluice::Error(options_.trainable
                                ? "encoder: backward was called before any forward"
                                : "encoder: backward was called on one that was not made trainable");
    }
    Fork<B> fork(stream, updates_->stream.ref(), updates_->done);
    steps_.clear();
    Matrix<const float, B> out{features_gradient, images_ * feature_pixels(), options_.channels.back()};
    for (std::size_t level = layers_.size(); level-- > 0;) {
        if (uses_stem_ && level == 1) {
            backward_stem(stream, out, factors);
            break;
        }
        const Matrix<const float, B> in = map(level);
        const Matrix<float, B> gradient{gradients_[level].span().first(level == 0 ? 0 : in.size()),
                                        level == 0 ? 0 : in.rows(), in.columns()};
        // Needs the weights of the forward pass, so it comes before their update.
        if (level > 0) {
            // The stem's kernel applies its ReLU itself.
            const bool stem_next = uses_stem_ && level == 2;
            layers_[level].input_gradient(stream, gemm_, out, gradient,
                                          stem_next ? sluice::DeviceSpan<const float, B>{} : in.span(), true);
        }
        steps_.insert(steps_.begin(), layers_[level].step(in, out, scratch_)); // the longest sums first
        // Those that a device computes together would take the data gradients' room, and come after the last of them.
        if (level == (uses_stem_ ? 2 : 0) || !updates_->gemm.can_group(steps_.front(), factors)) {
            fork.follow(updates_->ready);
            updates_->gemm.update(updates_->stream, steps_, factors);
            steps_.clear();
        }
        out = gradient;
    }
    fork.join();
}

template <sluice::Backend B>
void Encoder<B>::backward_stem(sluice::BasicStreamRef<B> stream, Matrix<const float, B> gradient,
                               sluice::DeviceSpan<const float, B> factors) {
    if constexpr (has_stem<B>) {
        const StemUpdate<B> layers[2] = {{layers_[0].weights(), layers_[0].bias()},
                                         {layers_[1].weights(), layers_[1].bias()}};
        const auto enqueue = [&](auto images) {
            stem_backward(stream, images, raster_of_row_, options_.width, options_.image_scale, layers,
                          map(2).span(), gradient, factors, stem_scratch_);
        };
        if (!bytes_.empty()) {
            enqueue(bytes_);
        } else {
            enqueue(numbers_);
        }
    }
}

template <sluice::Backend B>
std::vector<NamedTensor> Encoder<B>::weights(sluice::BasicStreamRef<B> stream) const {
    std::vector<NamedTensor> tensors;
    for (std::size_t i = 0; i < layers_.size(); ++i)
        layers_[i].save(stream, std::to_string(2 * i), tensors);
    rounded_.save(stream, 2 * layers_.size(), tensors);
    return tensors;
}

template <sluice::Backend B>
void Encoder<B>::load(sluice::BasicStreamRef<B> stream, std::span<const NamedTensor> tensors) {
    for (std::size_t i = 0; i < layers_.size(); ++i)
        layers_[i].load(stream, std::to_string(2 * i), tensors);
    rounded_.load(stream, 2 * layers_.size(), tensors);
}

} // namespace nn
