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

/// All values, one tensor after another.
inline std::vector<float> values_of(const std::vector<nn::NamedTensor>& tensors) {
    std::vector<float> result;
    for (const nn::NamedTensor& tensor : tensors)
        result.insert(result.end(), tensor.values.begin(), tensor.values.end());
    return result;
}

} // namespace nn_test
