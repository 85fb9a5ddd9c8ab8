// What the tests of ResNet-18 share: a small network with random weights, images, and the same in float64.
#pragma once

#include <algorithm>
#include <map>
#include <string>

#include <nn/models/resnet18.hpp>

#include "nn/conv_engines.hpp"
#include "nn/naive_resnet.hpp"

namespace nn_test {

/// A network that is small in every respect.
inline nn::ResNet18Options small_resnet(Random& random, std::size_t base_channels = 4) {
    return {.height = random.between(33, 48),
            .width = random.between(33, 48),
            .image_channels = 3,
            .stored_channels = base_channels == 8 ? std::size_t{8} : std::size_t{0},
            .base_channels = base_channels,
            .classes = base_channels == 8 ? std::size_t{16} : 12,
            .batch = 4,
            .learning_rate = 0.0625f,
            .seed = random.seed()};
}

/// Images [N, H, W, stored C], 0 in the channels that are only stored.
inline std::vector<float> draw_images(Random& random, const nn::ResNet18Options& options,
                                      std::size_t images) {
    const std::size_t stored =
        options.stored_channels == 0 ? options.image_channels : options.stored_channels;
    std::vector<float> result = random.numbers(images * options.height * options.width * stored);
    for (std::size_t j = 0; j < result.size(); ++j) {
        if (j % stored >= options.image_channels)
            result[j] = 0.0f;
    }
    return result;
}

inline std::vector<std::int32_t> draw_labels(Random& random, std::size_t images, std::size_t classes) {
    std::vector<std::int32_t> labels;
    for (std::size_t i = 0; i < images; ++i)
        labels.push_back(static_cast<std::int32_t>(random.between(0, classes - 1)));
    return labels;
}

/// The images of `draw_images` without what is only stored.
template <class T>
naive::Images naive_images(const std::vector<T>& images, const nn::ResNet18Options& options) {
    const std::size_t stored = images.size() % options.image_channels == 0 && options.stored_channels == 0
                                   ? options.image_channels
                                   : options.stored_channels;
    const naive::Images all = naive::from_maps(images, stored, options.height, options.width);
    naive::Images result(all.n, options.image_channels, all.h, all.w);
    for (std::size_t i = 0; i < all.n; ++i)
        for (std::size_t c = 0; c < result.c; ++c)
            for (std::size_t pixel = 0; pixel < all.h * all.w; ++pixel)
                result.at(i, c, pixel / all.w, pixel % all.w) = all.at(i, c, pixel / all.w, pixel % all.w);
    return result;
}

/// Tensors by name, in float64.
inline naive::ResNet::Tensors by_name(const std::vector<nn::NamedTensor>& tensors) {
    naive::ResNet::Tensors result;
    for (const nn::NamedTensor& tensor : tensors)
        result[tensor.name] = naive::doubles(tensor.values);
    return result;
}

/// Batch normalisations' weights and biases that are not 1 and 0, so that leaving one out shows.
inline std::vector<nn::NamedTensor> perturbed(Random& random, std::vector<nn::NamedTensor> tensors) {
    for (nn::NamedTensor& tensor : tensors) {
        if (tensor.shape.size() == 1 && tensor.name.find("running") == std::string::npos) {
            const auto noise = random.numbers(tensor.values.size(), 0.25f);
            for (std::size_t j = 0; j < noise.size(); ++j)
                tensor.values[j] += noise[j];
        }
    }
    return tensors;
}

/// Batch normalisations that make a channel positive in all of its elements, or in none, by at least four deviations: no
/// mask of a ReLU depends on the rounding then. With random ones some do in any network, and so the error of a gradient is
/// about the square root of the rounding.
inline std::vector<nn::NamedTensor> with_clear_masks(Random& random, const nn::ResNet18Plan& plan,
                                                     std::vector<nn::NamedTensor> tensors) {
    const auto near = [&](std::size_t count, float scale, auto bias_of, const std::string& name) {
        for (nn::NamedTensor& tensor : tensors) {
            const bool is_weight = tensor.name == name + ".weight";
            if (!is_weight && tensor.name != name + ".bias")
                continue;
            for (std::size_t c = 0; c < count; ++c) {
                const float noise = static_cast<float>(random.between(0, 200)) / 1000.0f - 0.1f;
                tensor.values[c] = is_weight ? scale * (1.0f + noise) : bias_of(c) + noise;
            }
        }
    };
    const auto set = [&](std::size_t index, std::size_t negative, float scale, float above, float below) {
        const nn::ResNetConv& conv = plan.convs()[index];
        near(
            conv.shape.out_channels, scale, [&](std::size_t c) { return c % 4 == negative ? -below : above; },
            conv.norm_name);
    };
    set(0, 3, 1.0f, 4.0f, 4.0f);
    for (const nn::ResNetBlock& block : plan.blocks()) {
        set(block.first, 1, 1.0f, 4.0f, 4.0f);
        if (block.downsample == nn::ResNetBlock::none) {
            set(block.second, 3, 1.0f, 2.0f, 4.0f); // the residual is 0, or 4 at least
        } else {
            set(block.second, 3, 0.7f, 2.0f, 2.0f);
            set(block.downsample, 3, 0.7f, 2.0f, 2.0f);
        }
    }
    return tensors;
}

/// What tensors are compared with those of: weights of convolutions, of normalisations, biases, and so on.
inline std::string kind_of(const std::string& name) {
    const std::string member = name.substr(name.rfind('.'));
    if (name.starts_with("fc."))
        return name;
    const bool is_norm =
        name.find("bn") != std::string::npos || name.find("downsample.1") != std::string::npos;
    return is_norm ? "norm" + member : "conv" + member;
}

/// The error of each tensor of `actual` by its name, in relation to `expected` less `origin` (nothing where `origin` is
/// empty), or to `share` of what tensors of its kind are where that is more: some gradients nearly cancel, such as that of
/// a bias before another normalisation. All of them together have the name "".
inline std::map<std::string, double> tensor_errors(const naive::ResNet::Tensors& actual,
                                                   const naive::ResNet::Tensors& expected, double share,
                                                   const naive::ResNet::Tensors& origin = {}) {
    struct Squares {
        double error = 0.0;
        double norm = 0.0;
        double count = 0.0;
    };
    std::map<std::string, Squares> tensors;
    std::map<std::string, Squares> sums;
    for (const auto& [name, values] : expected) {
        const naive::Doubles& own = actual.at(name);
        REQUIRE(own.size() == values.size());
        Squares& each = tensors[name];
        for (std::size_t j = 0; j < values.size(); ++j) {
            const double way = values[j] - (origin.empty() ? 0.0 : origin.at(name)[j]);
            each.error += (own[j] - values[j]) * (own[j] - values[j]);
            each.norm += way * way;
        }
        for (const std::string& of : {kind_of(name), std::string()}) {
            sums[of].error += each.error;
            sums[of].norm += each.norm;
            sums[of].count += 1.0;
        }
    }
    std::map<std::string, double> result{{"", std::sqrt(sums[""].error / sums[""].norm)}};
    for (const auto& [name, each] : tensors) {
        const Squares& kind = sums.at(kind_of(name));
        const double norm = std::max(each.norm, share * share * kind.norm / kind.count);
        result[name] = std::sqrt(norm == 0.0 ? each.error : each.error / norm);
    }
    return result;
}

/// All values, one tensor after another.
inline std::vector<float> values_of(const std::vector<nn::NamedTensor>& tensors) {
    std::vector<float> result;
    for (const nn::NamedTensor& tensor : tensors)
        result.insert(result.end(), tensor.values.begin(), tensor.values.end());
    return result;
}

} // namespace nn_test
