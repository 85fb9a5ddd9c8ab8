/// \file
/// What a training starts from, in a safetensors file, for another program to start from the same.
#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <vector>

#include <images/image_set.hpp>
#include <nn/layers/layer_shape.hpp>

namespace resnet18 {

/// A training's steps: the learning rate and the number of images of each, and all these images' numbers in the set.
struct TrainingOrder {
    std::vector<float> rates;
    std::vector<std::int32_t> sizes;
    std::vector<std::int32_t> samples;
};

/// Writes the weights by their names, `images` [N, 32, 32, 3] and `labels` [N] of the set in bytes, `rates`, `sizes` and
/// `order`.
/// Throws `examples::BadInput` when the file cannot be written.
void write_start(std::span<const nn::NamedTensor> weights, const images::ImageSet& set,
                 const TrainingOrder& order, const std::filesystem::path& path);

} // namespace resnet18
