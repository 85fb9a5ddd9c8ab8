// Bodies of resnet18.hpp: memory, forward pass and inference.
#pragma once

namespace nn {

template <sluice::Backend B, class Conv>
ResNet18<B, Conv>::ResNet18(const ResNet18Options& options)
    : options_(options), plan_(options), conv_(options.convolution), is_prepared_(options.batch + 1),
      weights_(to_device<B>(plan_.first_weights(options.seed))),
      parameters_(to_device<B>(plan_.first_parameters(options.seed))), statistics_(6 * plan_.channel_size()),
      folded_(plan_.weight_size()), rate_(options.learning_rate) {
    allocate();
    prepare(options.batch);
    // Running variances begin as 1, and all that is not written as 0.
    std::vector<float> statistics(statistics_.size(), 0.0f);
    std::fill_n(statistics.begin() + static_cast<std::ptrdiff_t>(plan_.channel_size()), plan_.channel_size(),
                1.0f);
    on_own_stream<B>([&](Stream stream) {
        sluice::copy_and_wait(stream, statistics_, statistics);
        sluice::fill_bytes(stream, velocities_, 0);
        sluice::fill_bytes(stream, parameter_velocities_, 0);
        sluice::fill_bytes(stream, gradients_, 0);
        sluice::fill_bytes(stream, parameter_gradients_, 0);
        if constexpr (is_rounded)
            fold_weights<T>(stream, {weights_, 1, weights_.size()}, {}, rounded_);
        fold(stream);
    });
}

template <sluice::Backend B, class Conv>
void ResNet18<B, Conv>::allocate() {
    const std::size_t batch = options_.batch;
    const std::size_t stem = plan_.stem_map().size();
    const std::size_t pooled = pooled_shape(plan_.stem_map()).size();
    for (std::size_t i = 0; i < 4; ++i)
        maps_[i] = Buffer<T>(batch * (i == 0 ? std::max(stem, plan_.largest_map()) : plan_.largest_map()));
    features_ = Buffer<T>(batch * plan_.head().shape.in_channels);
    raw_logits_ = Buffer<T>(batch * options_.classes);
    logits_ = Buffer<float>(batch * options_.classes);
    if constexpr (is_rounded)
        rounded_ = Buffer<T>(plan_.weight_size());
    if (!options_.trainable)
        return;
    velocities_ = Buffer<float>(plan_.weight_size());
    parameter_velocities_ = Buffer<float>(plan_.parameter_size());
    gradients_ = Buffer<T>(plan_.weight_size());
    parameter_gradients_ = Buffer<float>(plan_.parameter_size());
    std::size_t scratch = std::max(sum_scratch(batch, 1), batch_norm_scratch(batch, options_.classes));
    for (const ResNetConv& conv : plan_.convs()) {
        const Conv2dShape whole = conv.shape.with_images(batch);
        conv_outs_.emplace_back(whole.out_size());
        scratch = std::max(scratch, batch_norm_scratch(whole.out_pixels(), whole.out_channels));
    }
    for (const ResNetBlock& block : plan_.blocks()) {
        inners_.emplace_back(conv_outs_[block.first].size());
        outs_.emplace_back(conv_outs_[block.second].size());
    }
    pooled_ = Buffer<T>(batch * pooled);
    taps_ = Buffer<std::uint8_t>(batch * pooled);
    losses_ = Buffer<float>(batch);
    if constexpr (has_forward_sums<Conv> || has_own_stem)
        sums_ = Buffer<float>(2 * plan_.head().shape.in_channels); // the last stage has the most channels
    if constexpr (has_own_stem) {
        if (has_own_kernels(0, plan_.stem().shape))
            stem_scratch_ = Buffer<float>(conv_7x7_scratch());
    }
    scratch_ = Buffer<double>(scratch);
}

template <sluice::Backend B, class Conv>
void ResNet18<B, Conv>::prepare(std::size_t images) {
    if (images == 0 || images > options_.batch) [[unlikely]] {
        throw sluice::Error("resnet18: a batch of " + std::to_string(images) + " images; expected 1 to " +
                            std::to_string(options_.batch));
    }
    if (is_prepared_[images])
        return;
    for (const ResNetConv& conv : plan_.convs())
        conv_.prepare(conv.shape.with_images(images));
    conv_.prepare(plan_.head().shape.with_images(images));
    is_prepared_[images] = true;
}

template <sluice::Backend B, class Conv>
std::size_t ResNet18<B, Conv>::images_of(std::size_t elements, const char* what) {
    const std::size_t images = images_in(what, elements, image_size(), options_.batch);
    prepare(images);
    return images;
}

template <sluice::Backend B, class Conv>
auto ResNet18<B, Conv>::conv_weights(const ResNetConv& conv) -> Span<const T> {
    if constexpr (is_rounded)
        return Span<const T>(rounded_.span()).subspan(conv.weight_offset, conv.shape.weight_size());
    else
        return Span<const T>(weights_.span()).subspan(conv.weight_offset, conv.shape.weight_size());
}

template <sluice::Backend B, class Conv>
BatchNorm<B> ResNet18<B, Conv>::norm(std::size_t index) {
    const ResNetConv& conv = plan_.convs()[index];
    const std::size_t channels = conv.shape.out_channels;
    const auto of = [&](Buffer<float>& buffer, std::size_t member) {
        return buffer.span().subspan(member * plan_.channel_size() + conv.channel_offset, channels);
    };
    return {of(parameters_, 0), of(parameters_, 1), of(statistics_, 0), of(statistics_, 1),
            of(statistics_, 2), of(statistics_, 3), of(statistics_, 4), of(statistics_, 5)};
}

/// A convolution, and what the normalisation after it multiplies with and adds.
template <sluice::Backend B, class Conv>
void ResNet18<B, Conv>::convolve(Stream stream, std::size_t conv, Span<const T> in, Statistics statistics) {
    const Conv2dShape whole = shape(conv);
    const Span<const T> weights = conv_weights(plan_.convs()[conv]);
    const Span<T> to = conv_out(conv);
    if (statistics == Statistics::running) {
        conv_.forward(stream, whole, in, weights, to);
        return batch_norm_inference(stream, norm(conv), options_.batch_norm);
    }
    if constexpr (has_own_stem) {
        if (has_own_kernels(conv, whole)) {
            const Span<float> sums = part(sums_, 2 * whole.out_channels);
            conv_7x7_sums(stream, whole, in, weights, to, sums, stem_scratch_);
            return batch_norm_from_sums(stream, sums, whole.out_pixels(), norm(conv), options_.batch_norm);
        }
    }
    if constexpr (has_forward_sums<Conv>) {
        const Span<float> sums = part(sums_, 2 * whole.out_channels);
        if (options_.fuse_statistics && conv_.forward_sums(stream, whole, in, weights, to, sums)) {
            batch_norm_from_sums(stream, sums, whole.out_pixels(), norm(conv), options_.batch_norm);
            return;
        }
    }
    conv_.forward(stream, whole, in, weights, to);
    batch_norm_statistics<T>(stream, matrix(conv, to), norm(conv), options_.batch_norm, scratch_);
}

template <sluice::Backend B, class Conv>
void ResNet18<B, Conv>::join(Stream stream, std::size_t index) {
    const ResNetBlock& block = plan_.blocks()[index];
    const BatchNorm<B> second = norm(block.second);
    Residual<T, B> residual{.maps = block_in(index)};
    if (block.downsample != ResNetBlock::none) {
        const BatchNorm<B> downsample = norm(block.downsample);
        residual = {conv_out(block.downsample), downsample.fused_scale, downsample.fused_bias};
    }
    scale_bias_relu<T, T>(stream, matrix(block.second, conv_out(block.second)), second.fused_scale,
                          second.fused_bias, residual, true, matrix(block.second, out(index)));
}

template <sluice::Backend B, class Conv>
void ResNet18<B, Conv>::head_forward(Stream stream, Span<const T> features_map, Span<const T> head_weights,
                                     Matrix<float, B> to) {
    const Conv2dShape head = plan_.head().shape.with_images(images_);
    const Span<T> features = part(features_, head.in_size());
    const Span<T> raw = part(raw_logits_, head.out_size());
    average_pool<T>(stream, features_map, plan_.features_map(), features);
    conv_.forward(stream, head, features, head_weights, raw);
    scale_bias_relu<T, float>(stream, {raw, images_, options_.classes}, {}, head_bias(parameters_), {}, false,
                              to);
}

/// From images to logits, with all that the backward pass needs.
template <sluice::Backend B, class Conv>
void ResNet18<B, Conv>::forward_maps(Stream stream, Span<const T> images, Statistics statistics,
                                     Matrix<float, B> to) {
    convolve(stream, 0, images, statistics);
    const Span<T> pooled = part(pooled_, pooled_size());
    max_pool_relu<T>(stream, conv_out(0), plan_.stem_map(), norm(0).fused_scale, norm(0).fused_bias, pooled,
                     part(taps_, pooled.size()));
    for (std::size_t index = 0; index < plan_.blocks().size(); ++index) {
        const ResNetBlock& block = plan_.blocks()[index];
        convolve(stream, block.first, block_in(index), statistics);
        const BatchNorm<B> first = norm(block.first);
        scale_bias_relu<T, T>(stream, matrix(block.first, conv_out(block.first)), first.fused_scale,
                              first.fused_bias, {}, true, matrix(block.first, inner(index)));
        convolve(stream, block.second, inner(index), statistics);
        if (block.downsample != ResNetBlock::none)
            convolve(stream, block.downsample, block_in(index), statistics);
        join(stream, index);
    }
    head_forward(stream, out(plan_.blocks().size() - 1), conv_weights(plan_.head()), to);
}

template <sluice::Backend B, class Conv>
void ResNet18<B, Conv>::evaluate(sluice::BasicStreamRef<B> stream, sluice::DeviceSpan<const T, B> images,
                                 sluice::DeviceSpan<float, B> logits) {
    if (!options_.trainable)
        throw sluice::Error("resnet18: `evaluate` needs a network made trainable; `infer` does not");
    images_ = images_of(images.size(), "resnet18");
    require_size("resnet18: elements of the logits", logits.size(), images_ * options_.classes);
    forward_maps(stream, images, Statistics::running, {logits, images_, options_.classes});
}

template <sluice::Backend B, class Conv>
template <class Label>
void ResNet18<B, Conv>::forward(sluice::BasicStreamRef<B> stream, sluice::DeviceSpan<const T, B> images,
                                sluice::DeviceSpan<const Label, B> labels, sluice::DeviceSpan<float, B> loss,
                                sluice::DeviceSpan<const float, B> share) {
    if (!options_.trainable)
        throw sluice::Error("resnet18: a training step needs a network made trainable");
    require_size("resnet18: elements of the loss", loss.size(), 1);
    if (!share.empty())
        require_size("resnet18: elements of the share", share.size(), 1);
    images_ = images_of(images.size(), "resnet18");
    require_size("resnet18: labels", labels.size(), images_);
    if (images_ * plan_.features_map().pixels() < 2) {
        throw sluice::Error(
            "resnet18: a training step on one image whose last map is one pixel; expected two values "
            "for each channel at least, for their variance");
    }
    forward_maps(stream, images, Statistics::batch, logits());
    const Span<float> losses = part(losses_, images_);
    softmax_cross_entropy_wide<T, Label>(stream, logits(), labels, options_.loss_scale,
                                         part(raw_logits_, logits().size()), losses, share.data());
    mean(stream, losses, loss, scratch_);
}

template <sluice::Backend B, class Conv>
template <class Label>
void ResNet18<B, Conv>::train_step(sluice::BasicStreamRef<B> stream, sluice::DeviceSpan<const T, B> images,
                                   sluice::DeviceSpan<const Label, B> labels,
                                   sluice::DeviceSpan<float, B> loss,
                                   sluice::DeviceSpan<const float, B> share) {
    forward(stream, images, labels, loss, share);
    backward(stream, images);
    update(stream);
}

template <sluice::Backend B, class Conv>
void ResNet18<B, Conv>::infer_conv(Stream stream, std::size_t conv, Span<const T> in, Span<const T> residual,
                                   bool relu, Span<T> to) {
    const ResNetConv& layer = plan_.convs()[conv];
    const Span<const T> weights = folded_.span().subspan(layer.weight_offset, layer.shape.weight_size());
    conv_.forward_bias_relu(stream, shape(conv), in, weights, norm(conv).fused_bias, residual, relu, to);
}

/// From scratch map `in`, 1 to 3, to the one that is returned.
template <sluice::Backend B, class Conv>
std::size_t ResNet18<B, Conv>::infer_block(Stream stream, std::size_t index, std::size_t in) {
    const ResNetBlock& block = plan_.blocks()[index];
    const std::size_t spare = in % 3 + 1;
    const std::size_t result = spare % 3 + 1;
    const Span<T> from = scratch_map(in, shape(block.first).in_size());
    const Span<T> middle = scratch_map(0, shape(block.first).out_size());
    const Span<T> to = scratch_map(result, shape(block.second).out_size());
    infer_conv(stream, block.first, from, {}, true, middle);
    Span<const T> residual = from;
    if (block.downsample != ResNetBlock::none) {
        const Span<T> downsampled = scratch_map(spare, to.size());
        infer_conv(stream, block.downsample, from, {}, false, downsampled);
        residual = downsampled;
    }
    infer_conv(stream, block.second, middle, residual, true, to);
    return result;
}

template <sluice::Backend B, class Conv>
void ResNet18<B, Conv>::infer(sluice::BasicStreamRef<B> stream, sluice::DeviceSpan<const T, B> images,
                              sluice::DeviceSpan<float, B> logits) {
    images_ = images_of(images.size(), "resnet18");
    require_size("resnet18: elements of the logits", logits.size(), images_ * options_.classes);
    const ResNetConv& stem = plan_.stem();
    const Span<T> convolved = scratch_map(0, shape(0).out_size());
    conv_.forward(stream, shape(0), images,
                  folded_.span().subspan(stem.weight_offset, stem.shape.weight_size()), convolved);
    std::size_t at = 1;
    max_pool_relu<T>(stream, convolved, plan_.stem_map(), {}, norm(0).fused_bias,
                     scratch_map(at, pooled_size()), {});
    for (std::size_t index = 0; index < plan_.blocks().size(); ++index)
        at = infer_block(stream, index, at);
    const ResNetConv& head = plan_.head();
    head_forward(stream, scratch_map(at, images_ * plan_.features_map().size()),
                 folded_.span().subspan(head.weight_offset, head.shape.weight_size()),
                 {logits, images_, options_.classes});
}

} // namespace nn
