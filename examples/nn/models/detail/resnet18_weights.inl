// Bodies of resnet18.hpp: folding, saving and loading weights.
#pragma once

namespace nn {

template <sluice::Backend B, class Conv>
void ResNet18<B, Conv>::fold(sluice::BasicStreamRef<B> stream) {
    for (std::size_t i = 0; i < plan_.convs().size(); ++i) {
        const ResNetConv& conv = plan_.convs()[i];
        batch_norm_inference(stream, norm(i), options_.batch_norm);
        fold_weights<T>(stream,
                        {weights_.span().subspan(conv.weight_offset, conv.shape.weight_size()),
                         conv.shape.out_channels, conv.shape.patch_size()},
                        norm(i).fused_scale,
                        folded_.span().subspan(conv.weight_offset, conv.shape.weight_size()));
    }
    const ResNetConv& head = plan_.head();
    fold_weights<T>(stream,
                    {weights_.span().subspan(head.weight_offset, head.shape.weight_size()),
                     head.shape.out_channels, head.shape.in_channels},
                    {}, folded_.span().subspan(head.weight_offset, head.shape.weight_size()));
}

/// By names, from all weights and parameters.
template <sluice::Backend B, class Conv>
std::vector<NamedTensor> ResNet18<B, Conv>::named(const std::vector<float>& weights,
                                                  const std::vector<float>& parameters) const {
    std::vector<NamedTensor> tensors;
    const auto weight = [&](const ResNetConv& conv) {
        const auto own = std::span(weights).subspan(conv.weight_offset, conv.shape.weight_size());
        tensors.push_back({conv.name + ".weight", plan_.torch_shape(conv), plan_.torch_weight(conv, own)});
    };
    const auto vector = [&](const std::string& name, std::size_t offset, std::size_t size) {
        const auto begin = parameters.begin() + static_cast<std::ptrdiff_t>(offset);
        tensors.push_back({name, {size}, {begin, begin + static_cast<std::ptrdiff_t>(size)}});
    };
    for (const ResNetConv& conv : plan_.convs()) {
        weight(conv);
        const std::size_t channels = conv.shape.out_channels;
        vector(conv.norm_name + ".weight", conv.channel_offset, channels);
        vector(conv.norm_name + ".bias", plan_.channel_size() + conv.channel_offset, channels);
    }
    weight(plan_.head());
    vector("fc.bias", 2 * plan_.channel_size(), options_.classes);
    return tensors;
}

template <sluice::Backend B, class Conv>
std::vector<NamedTensor> ResNet18<B, Conv>::weights(sluice::BasicStreamRef<B> stream) const {
    std::vector<NamedTensor> tensors = named(to_host(stream, weights_), to_host(stream, parameters_));
    const std::vector<float> statistics = to_host(stream, statistics_);
    for (const ResNetConv& conv : plan_.convs()) {
        const std::size_t channels = conv.shape.out_channels;
        for (const std::size_t member : {0u, 1u}) {
            const auto begin = statistics.begin() + static_cast<std::ptrdiff_t>(
                                                        member * plan_.channel_size() + conv.channel_offset);
            tensors.push_back({conv.norm_name + (member == 0 ? ".running_mean" : ".running_var"),
                               {channels},
                               {begin, begin + static_cast<std::ptrdiff_t>(channels)}});
        }
    }
    return tensors;
}

template <sluice::Backend B, class Conv>
std::vector<NamedTensor> ResNet18<B, Conv>::gradients(sluice::BasicStreamRef<B> stream) const {
    std::vector<float> weights;
    for (const T value : to_host(stream, gradients_))
        weights.push_back(static_cast<float>(value));
    return named(weights, to_host(stream, parameter_gradients_));
}

template <sluice::Backend B, class Conv>
std::vector<NamedTensor> ResNet18<B, Conv>::velocities(sluice::BasicStreamRef<B> stream) const {
    return named(to_host(stream, velocities_), to_host(stream, parameter_velocities_));
}

namespace detail {

inline void put_at(const std::vector<float>& values, std::vector<float>& to, std::size_t offset) {
    std::copy(values.begin(), values.end(), to.begin() + static_cast<std::ptrdiff_t>(offset));
}

} // namespace detail

/// What `named` gives, back in the network's layout. Places that have no name stay as they are.
template <sluice::Backend B, class Conv>
void ResNet18<B, Conv>::collect(std::span<const NamedTensor> tensors, std::vector<float>& weights,
                                std::vector<float>& parameters) const {
    const auto weight = [&](const ResNetConv& conv) {
        const NamedTensor* found = find_tensor(tensors, conv.name + ".weight", plan_.torch_shape(conv));
        detail::put_at(plan_.own_weight(conv, found->values), weights, conv.weight_offset);
    };
    for (const ResNetConv& conv : plan_.convs()) {
        weight(conv);
        for (const std::size_t member : {0u, 1u}) {
            const NamedTensor* found = find_tensor(
                tensors, conv.norm_name + (member == 0 ? ".weight" : ".bias"), {conv.shape.out_channels});
            detail::put_at(found->values, parameters, member * plan_.channel_size() + conv.channel_offset);
        }
    }
    weight(plan_.head());
    detail::put_at(find_tensor(tensors, "fc.bias", {options_.classes})->values, parameters,
                   2 * plan_.channel_size());
}

template <sluice::Backend B, class Conv>
void ResNet18<B, Conv>::load_velocities(sluice::BasicStreamRef<B> stream,
                                        std::span<const NamedTensor> tensors) {
    std::vector<float> weights(velocities_.size(), 0.0f);
    std::vector<float> parameters(parameter_velocities_.size(), 0.0f);
    collect(tensors, weights, parameters);
    sluice::copy_and_wait(stream, velocities_, weights);
    sluice::copy_and_wait(stream, parameter_velocities_, parameters);
}

template <sluice::Backend B, class Conv>
void ResNet18<B, Conv>::load(sluice::BasicStreamRef<B> stream, std::span<const NamedTensor> tensors) {
    std::vector<float> weights(plan_.weight_size(), 0.0f);
    std::vector<float> parameters = plan_.first_parameters(0);
    std::vector<float> statistics = to_host(stream, statistics_);
    collect(tensors, weights, parameters);
    for (const ResNetConv& conv : plan_.convs()) {
        for (const std::size_t member : {0u, 1u}) {
            const NamedTensor* found =
                find_tensor(tensors, conv.norm_name + (member == 0 ? ".running_mean" : ".running_var"),
                            {conv.shape.out_channels});
            detail::put_at(found->values, statistics, member * plan_.channel_size() + conv.channel_offset);
        }
    }
    sluice::copy_and_wait(stream, weights_, weights);
    sluice::copy_and_wait(stream, parameters_, parameters);
    sluice::copy_and_wait(stream, statistics_, statistics);
    sluice::fill_bytes(stream, velocities_, 0);
    sluice::fill_bytes(stream, parameter_velocities_, 0);
    if constexpr (is_rounded)
        fold_weights<T>(stream, {weights_, 1, weights_.size()}, {}, rounded_);
    fold(stream);
    stream.sync(); // so that steps on another stream come after all of this
}

} // namespace nn
