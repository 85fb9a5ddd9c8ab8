#include <nn/models/resnet18_plan.hpp>

#include <algorithm>
#include <cmath>
#include <numbers>

#include <nn/pool/pool.hpp>
#include <sluice/random/philox.hpp>

namespace nn {
namespace {

constexpr std::uint16_t random_operation = 0xE018;

/// Two uniform numbers for each pair of weights of layer `layer`: the first is not 0.
sluice::CountedRandom random_pair(std::uint64_t seed, std::size_t layer, std::size_t pair) {
    return sluice::CountedRandom({.seed = seed,
                                  .epoch = 0,
                                  .sample = (static_cast<std::uint64_t>(layer) << 40) + pair,
                                  .operation = random_operation});
}

/// Normal numbers by Box and Muller.
void fill_normal(std::span<float> values, double deviation, std::uint64_t seed, std::size_t layer) {
    for (std::size_t i = 0; i < values.size(); i += 2) {
        sluice::CountedRandom random = random_pair(seed, layer, i / 2);
        const double radius =
            deviation * std::sqrt(-2.0 * std::log(1.0 - static_cast<double>(random.uniform())));
        const double angle = 2.0 * std::numbers::pi * static_cast<double>(random.uniform());
        values[i] = static_cast<float>(radius * std::cos(angle));
        if (i + 1 < values.size())
            values[i + 1] = static_cast<float>(radius * std::sin(angle));
    }
}

void fill_uniform_within(std::span<float> values, double bound, std::uint64_t seed, std::size_t layer) {
    for (std::size_t i = 0; i < values.size(); ++i) {
        sluice::CountedRandom random = random_pair(seed, layer, i);
        values[i] = static_cast<float>(bound * (2.0 * static_cast<double>(random.uniform()) - 1.0));
    }
}

std::size_t stored_channels(const ResNet18Options& options) {
    return options.stored_channels == 0 ? options.image_channels : options.stored_channels;
}

void require_options(const ResNet18Options& options) {
    if (options.image_channels == 0 || options.base_channels == 0 || options.classes == 0 ||
        options.batch == 0 || options.height == 0 || options.width == 0) {
        throw sluice::Error(
            "resnet18: " + std::to_string(options.height) + " x " + std::to_string(options.width) +
            " pixels of " + std::to_string(options.image_channels) + " channels, " +
            std::to_string(options.base_channels) + " base channels, " + std::to_string(options.classes) +
            " classes, a batch of " + std::to_string(options.batch) + "; none of these may be 0");
    }
    if (stored_channels(options) < options.image_channels) {
        throw sluice::Error("resnet18: " + std::to_string(options.stored_channels) +
                            " stored channels; expected at least the image's " +
                            std::to_string(options.image_channels));
    }
}

} // namespace

ResNet18Plan::ResNet18Plan(const ResNet18Options& options) : image_channels_(options.image_channels) {
    require_options(options);
    convs_.reserve(20);
    add("conv1", "bn1",
        {1, options.height, options.width, stored_channels(options), options.base_channels, 7, 2, 3});
    MapShape map = pooled_shape(stem_map());
    largest_map_ = map.size();
    for (std::size_t stage = 0; stage < 4; ++stage) {
        const std::size_t channels = options.base_channels << stage;
        for (std::size_t block = 0; block < 2; ++block) {
            const std::size_t stride = stage > 0 && block == 0 ? 2 : 1;
            add_block("layer" + std::to_string(stage + 1) + "." + std::to_string(block) + ".",
                      {1, map.height, map.width, map.channels, channels, 3, stride, 1});
            map = {(map.height - 1) / stride + 1, (map.width - 1) / stride + 1, channels};
        }
    }
    head_.name = "fc";
    head_.shape = {1, 1, 1, map.channels, options.classes, 1, 1, 0};
    head_.weight_offset = weight_size_;
    weight_size_ += padded(head_.shape.weight_size());
}

std::size_t ResNet18Plan::add(const std::string& name, const std::string& norm_name,
                              const Conv2dShape& shape) {
    require_conv2d(shape);
    convs_.push_back({name, norm_name, shape, weight_size_, channel_size_});
    weight_size_ += padded(shape.weight_size());
    channel_size_ += padded(shape.out_channels);
    if (convs_.size() > 1)
        largest_map_ = std::max({largest_map_, shape.in_size(), shape.out_size()});
    return convs_.size() - 1;
}

void ResNet18Plan::add_block(const std::string& name, const Conv2dShape& first) {
    ResNetBlock block;
    block.first = add(name + "conv1", name + "bn1", first);
    const std::size_t channels = first.out_channels;
    block.second = add(name + "conv2", name + "bn2",
                       {1, first.out_height(), first.out_width(), channels, channels, 3, 1, 1});
    if (first.stride != 1 || first.in_channels != channels) {
        block.downsample =
            add(name + "downsample.0", name + "downsample.1",
                {1, first.height, first.width, first.in_channels, channels, 1, first.stride, 0});
    }
    blocks_.push_back(block);
}

MapShape ResNet18Plan::stem_map() const noexcept {
    const Conv2dShape& shape = stem().shape;
    return {shape.out_height(), shape.out_width(), shape.out_channels};
}

MapShape ResNet18Plan::features_map() const noexcept {
    const Conv2dShape& shape = convs_[blocks_.back().second].shape;
    return {shape.out_height(), shape.out_width(), shape.out_channels};
}

std::vector<std::size_t> ResNet18Plan::torch_shape(const ResNetConv& conv) const {
    const Conv2dShape& shape = conv.shape;
    if (&conv == &head_)
        return {shape.out_channels, shape.in_channels};
    return {shape.out_channels, used_channels(conv), shape.kernel, shape.kernel};
}

std::vector<float> ResNet18Plan::torch_weight(const ResNetConv& conv, std::span<const float> weight) const {
    const Conv2dShape& shape = conv.shape;
    require_size("resnet18: elements of a weight", weight.size(), shape.weight_size());
    const std::size_t taps = shape.kernel * shape.kernel;
    const std::size_t channels = used_channels(conv);
    std::vector<float> torch(shape.out_channels * channels * taps);
    for (std::size_t row = 0; row < shape.out_channels * taps; ++row) {
        for (std::size_t c = 0; c < channels; ++c) {
            torch[(row / taps * channels + c) * taps + row % taps] = weight[row * shape.in_channels + c];
        }
    }
    return torch;
}

std::vector<float> ResNet18Plan::own_weight(const ResNetConv& conv, std::span<const float> torch) const {
    const Conv2dShape& shape = conv.shape;
    const std::size_t taps = shape.kernel * shape.kernel;
    const std::size_t channels = used_channels(conv);
    require_size("resnet18: elements of a weight", torch.size(), shape.out_channels * channels * taps);
    std::vector<float> weight(shape.weight_size(), 0.0f);
    for (std::size_t row = 0; row < shape.out_channels * taps; ++row) {
        for (std::size_t c = 0; c < channels; ++c) {
            weight[row * shape.in_channels + c] = torch[(row / taps * channels + c) * taps + row % taps];
        }
    }
    return weight;
}

std::vector<float> ResNet18Plan::first_weights(std::uint64_t seed) const {
    std::vector<float> weights(weight_size_, 0.0f);
    const auto put = [&](const ResNetConv& conv, const std::vector<float>& torch) {
        const std::vector<float> own = own_weight(conv, torch);
        std::copy(own.begin(), own.end(), weights.begin() + static_cast<std::ptrdiff_t>(conv.weight_offset));
    };
    for (std::size_t i = 0; i < convs_.size(); ++i) {
        const Conv2dShape& shape = convs_[i].shape;
        const std::size_t fan_out = shape.out_channels * shape.kernel * shape.kernel;
        std::vector<float> torch(fan_out * used_channels(convs_[i]));
        fill_normal(torch, std::sqrt(2.0 / static_cast<double>(fan_out)), seed, i);
        put(convs_[i], torch);
    }
    std::vector<float> torch(head_.shape.weight_size());
    fill_uniform_within(torch, 1.0 / std::sqrt(static_cast<double>(head_.shape.in_channels)), seed,
                        convs_.size());
    put(head_, torch);
    return weights;
}

std::vector<float> ResNet18Plan::first_parameters(std::uint64_t seed) const {
    std::vector<float> parameters(parameter_size(), 0.0f);
    std::fill_n(parameters.begin(), channel_size_, 1.0f);
    fill_uniform_within(std::span(parameters).subspan(2 * channel_size_, head_.shape.out_channels),
                        1.0 / std::sqrt(static_cast<double>(head_.shape.in_channels)), seed,
                        convs_.size() + 1);
    return parameters;
}

} // namespace nn
