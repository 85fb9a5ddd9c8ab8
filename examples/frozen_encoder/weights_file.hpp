/// \file
/// Network weights in safetensors files, laid out as PyTorch does.
#pragma once

#include <filesystem>
#include <span>
#include <vector>

#include <nn/layer_shape.hpp>

namespace frozen_encoder {

/// Writes the tensors, whole or not at all. Throws `examples::BadInput` when the file cannot be written.
void write_weights(std::span<const nn::NamedTensor> tensors, const std::filesystem::path& path);

/// Reads all tensors of a file. Throws `examples::BadInput`, naming the file, when it cannot be used.
std::vector<nn::NamedTensor> read_weights(const std::filesystem::path& path);

} // namespace frozen_encoder
