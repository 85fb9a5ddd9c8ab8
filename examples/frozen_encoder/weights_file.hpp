/// \file
/// Networks' weights, and a run's beginning, in safetensors files, laid out as PyTorch does.
#pragma once

#include <filesystem>
#include <span>
#include <vector>

#include <frozen_encoder/workload.hpp>
#include <nn/layers/layer_shape.hpp>

namespace frozen_encoder {

/// Writes the tensors, whole or not at all. Throws `examples::BadInput` when the file cannot be written.
void write_weights(std::span<const nn::NamedTensor> tensors, const std::filesystem::path& path);

/// Reads all tensors of a file. Throws `examples::BadInput`, naming the file, when it cannot be used, or holds a number that is not finite.
std::vector<nn::NamedTensor> read_weights(const std::filesystem::path& path);

/// Writes what a run starts from, for another program to start from the same: `encoder.` and `decoder.` before the
/// tensors' names, the workload's distinct batches as `images.0`, `labels.0`, `images.1` … in bytes, `image_scale`, what
/// a byte is multiplied with, and `rates`, the learning rate of each step. Throws as `write_weights` does.
void write_start(const Workload& workload, std::span<const nn::NamedTensor> encoder,
                 std::span<const nn::NamedTensor> decoder, const std::filesystem::path& path);

} // namespace frozen_encoder
