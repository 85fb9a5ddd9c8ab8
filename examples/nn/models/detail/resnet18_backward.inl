// Bodies of resnet18.hpp: backward pass and update.
#pragma once

namespace nn {

template <sluice::Backend B, class Conv>
void ResNet18<B, Conv>::norm_backward(Stream stream, std::size_t conv, Span<T> gradient, Span<T> in_gradient,
                                      const Relu& relu) {
    const ResNetConv& layer = plan_.convs()[conv];
    const std::size_t channels = layer.shape.out_channels;
    const Span<float> all = parameter_gradients_;
    batch_norm_backward<T>(
        stream, norm(conv),
        BatchNormGradients<T, B>{.in = matrix(conv, conv_out(conv)),
                                 .relu_output = relu.output,
                                 .relu = relu.of_norm,
                                 .gradient = gradient,
                                 .other_gradient = relu.other_gradient,
                                 .in_gradient = in_gradient,
                                 .weight_gradient = all.subspan(layer.channel_offset, channels),
                                 .bias_gradient =
                                     all.subspan(plan_.channel_size() + layer.channel_offset, channels)},
        scratch_);
}

/// From the gradient of the logits to that of the last block's output.
template <sluice::Backend B, class Conv>
auto ResNet18<B, Conv>::head_backward(Stream stream) -> Gradient {
    const Conv2dShape head = plan_.head().shape.with_images(images_);
    const Span<T> slope = part(raw_logits_, head.out_size());
    const Span<T> features = part(features_, head.in_size());
    bias_gradient<T>(stream, {slope, images_, options_.classes}, head_bias(parameter_gradients_), scratch_);
    conv_.weight_gradient(stream, head, features, slope, weight_gradient(plan_.head()));
    conv_.input_gradient(stream, head, slope, conv_weights(plan_.head()), features);
    average_pool_gradient<T>(stream, features, plan_.features_map(),
                             scratch_map(1, images_ * plan_.features_map().size()));
    return {1, 2, 3, false};
}

/// From the gradient of a block's output to that of its input.
template <sluice::Backend B, class Conv>
auto ResNet18<B, Conv>::block_backward(Stream stream, std::size_t index, const Gradient& gradient)
    -> Gradient {
    const ResNetBlock& block = plan_.blocks()[index];
    const auto [joined, second, third, is_sum] = gradient;
    const Conv2dShape first_shape = shape(block.first);
    const Conv2dShape second_shape = shape(block.second);
    const ResNetConv& first_conv = plan_.convs()[block.first];
    const ResNetConv& second_conv = plan_.convs()[block.second];

    // The second normalisation; `joined` becomes the gradient of the residual.
    const Span<T> after_join = scratch_map(joined, second_shape.out_size());
    const Span<T> convolved = scratch_map(second, second_shape.out_size());
    norm_backward(stream, block.second, after_join, convolved,
                  {.output = out(index), .other_gradient = is_sum ? convolved : Span<T>{}});
    conv_.weight_gradient(stream, second_shape, inner(index), convolved, weight_gradient(second_conv));
    const Span<T> middle = scratch_map(third, first_shape.out_size());
    conv_.input_gradient(stream, second_shape, convolved, conv_weights(second_conv), middle);

    norm_backward(stream, block.first, middle, middle, {.of_norm = true});
    conv_.weight_gradient(stream, first_shape, block_in(index), middle, weight_gradient(first_conv));
    conv_.input_gradient(stream, first_shape, middle, conv_weights(first_conv),
                         scratch_map(second, first_shape.in_size()));
    if (block.downsample == ResNetBlock::none)
        return {second, joined, third, true};

    const Conv2dShape downsample_shape = shape(block.downsample);
    const ResNetConv& downsample_conv = plan_.convs()[block.downsample];
    norm_backward(stream, block.downsample, after_join, after_join, {});
    conv_.weight_gradient(stream, downsample_shape, block_in(index), after_join,
                          weight_gradient(downsample_conv));
    conv_.input_gradient(stream, downsample_shape, after_join, conv_weights(downsample_conv),
                         scratch_map(third, downsample_shape.in_size()));
    return {second, third, joined, true};
}

template <sluice::Backend B, class Conv>
void ResNet18<B, Conv>::stem_weight_gradient(Stream stream, Span<const T> images, Span<const T> slope) {
    if constexpr (has_own_stem) {
        if (has_own_kernels(0, shape(0)))
            return conv_7x7_weight_gradient(stream, shape(0), images, slope, weight_gradient(plan_.stem()),
                                            stem_scratch_);
    }
    conv_.weight_gradient(stream, shape(0), images, slope, weight_gradient(plan_.stem()));
}

template <sluice::Backend B, class Conv>
void ResNet18<B, Conv>::backward(sluice::BasicStreamRef<B> stream, sluice::DeviceSpan<const T, B> images) {
    require_size("resnet18: elements of the images of the forward pass", images.size(),
                 images_ * image_size());
    averaged_from_ = gradients_.size();
    Gradient gradient = head_backward(stream);
    for (std::size_t index = plan_.blocks().size(); index-- > 0;) {
        gradient = block_backward(stream, index, gradient);
        // A block's first convolution is the first of its weights.
        const std::size_t begin = plan_.convs()[plan_.blocks()[index].first].weight_offset;
        if (communicator_ != nullptr && (averaged_from_ - begin) * sizeof(T) >= bucket_bytes_)
            average_from(stream, begin);
    }
    const Span<T> stem = scratch_map(0, shape(0).out_size());
    max_pool_relu_gradient<T>(stream, scratch_map(gradient.first, pooled_size()),
                              scratch_map(gradient.second, pooled_size()), part(taps_, pooled_size()),
                              plan_.stem_map(), stem);
    norm_backward(stream, 0, stem, stem, {});
    stem_weight_gradient(stream, images, stem);
    if (communicator_ != nullptr)
        finish_averaging(stream);
}

template <sluice::Backend B, class Conv>
void ResNet18<B, Conv>::average_gradients_over(const sluice::Communicator<B>& communicator,
                                               std::size_t bucket_bytes) {
    bucket_bytes_ = bucket_bytes;
    communicator_ = communicator.ranks() > 1 ? &communicator : nullptr;
}

template <sluice::Backend B, class Conv>
void ResNet18<B, Conv>::average_from(Stream stream, std::size_t begin) {
    complete_.record(stream);
    averaging_.wait(complete_);
    sluice::all_reduce(averaging_, *communicator_, gradients_.span().subspan(begin, averaged_from_ - begin),
                       sluice::Reduction::average);
    averaged_from_ = begin;
}

template <sluice::Backend B, class Conv>
void ResNet18<B, Conv>::finish_averaging(Stream stream) {
    average_from(stream, 0);
    sluice::all_reduce(averaging_, *communicator_, parameter_gradients_, sluice::Reduction::average);
    averaged_.record(averaging_);
    stream.wait(averaged_);
    communicator_->fail_with_group(stream);
}

template <sluice::Backend B, class Conv>
void ResNet18<B, Conv>::share_statistics(Stream stream, const sluice::Communicator<B>& communicator) {
    sluice::broadcast(stream, communicator, statistics_, 0);
}

template <sluice::Backend B, class Conv>
void ResNet18<B, Conv>::zero_gradients(sluice::BasicStreamRef<B> stream) {
    sluice::fill_bytes(stream, gradients_, 0);
    sluice::fill_bytes(stream, parameter_gradients_, 0);
}

template <sluice::Backend B, class Conv>
void ResNet18<B, Conv>::update(sluice::BasicStreamRef<B> stream) {
    const SgdOptions sgd{.momentum = options_.momentum, .loss_scale = options_.loss_scale};
    if constexpr (is_rounded)
        sgd_momentum(stream, weights_, velocities_, gradients_, rate_.span(), sgd, rounded_);
    else
        sgd_momentum<T>(stream, weights_, velocities_, gradients_, rate_.span(), sgd);
    sgd_momentum<float>(stream, parameters_, parameter_velocities_, parameter_gradients_, rate_.span(), sgd);
}

} // namespace nn
