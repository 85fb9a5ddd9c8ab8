#include <resnet18/start_file.hpp>

#include <string>
#include <utility>

#include <common/safetensors.hpp>

namespace resnet18 {

void write_start(std::span<const nn::NamedTensor> weights, const images::ImageSet& set,
                 const TrainingOrder& order, const std::filesystem::path& path) {
    examples::Safetensors content;
    const auto add = [&]<class T>(const std::string& name, std::vector<std::size_t> shape,
                                  const std::vector<T>& values) {
        content.tensors.emplace(name, examples::Tensor::of<T>(std::move(shape), std::span<const T>(values)));
    };
    for (const nn::NamedTensor& tensor : weights)
        add(tensor.name, tensor.shape, tensor.values);

    const std::size_t each = images::ImageSet::image_bytes;
    std::vector<std::uint8_t> pixels(set.size() * each);
    std::vector<std::uint8_t> labels(set.size());
    for (std::size_t i = 0; i < set.size(); ++i)
        labels[i] = set.load(i, std::span(pixels).subspan(i * each, each));
    add("images", {set.size(), images::image_side, images::image_side, 3}, pixels);
    add("labels", {set.size()}, labels);
    add("rates", {order.rates.size()}, order.rates);
    add("order", {order.samples.size()}, order.samples);
    add("sizes", {order.sizes.size()}, order.sizes);
    examples::write_safetensors(content, path);
}

} // namespace resnet18
