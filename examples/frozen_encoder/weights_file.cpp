#include <frozen_encoder/weights_file.hpp>

#include <common/safetensors.hpp>

namespace frozen_encoder {

void write_weights(std::span<const nn::NamedTensor> tensors, const std::filesystem::path& path) {
    examples::Safetensors content;
    for (const nn::NamedTensor& tensor : tensors) {
        content.tensors.emplace(
            tensor.name, examples::Tensor::of<float>(tensor.shape, std::span<const float>(tensor.values)));
    }
    examples::write_safetensors(content, path);
}

std::vector<nn::NamedTensor> read_weights(const std::filesystem::path& path) {
    const examples::Safetensors content = examples::read_safetensors(path);
    std::vector<nn::NamedTensor> tensors;
    for (const auto& [name, tensor] : content.tensors)
        tensors.push_back({name, tensor.shape, tensor.as<float>()});
    return tensors;
}

} // namespace frozen_encoder
