#include <frozen_encoder/weights_file.hpp>

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include <common/bad_input.hpp>
#include <common/safetensors.hpp>

namespace frozen_encoder {
namespace {

void add(examples::Safetensors& content, const std::string& prefix,
         std::span<const nn::NamedTensor> tensors) {
    for (const nn::NamedTensor& tensor : tensors) {
        content.tensors.emplace(
            prefix + tensor.name,
            examples::Tensor::of<float>(tensor.shape, std::span<const float>(tensor.values)));
    }
}

void add(examples::Safetensors& content, const std::string& name, std::vector<std::size_t> shape,
         std::span<const std::uint8_t> bytes) {
    content.tensors.emplace(name, examples::Tensor::of<std::uint8_t>(std::move(shape), bytes));
}

} // namespace

void write_weights(std::span<const nn::NamedTensor> tensors, const std::filesystem::path& path) {
    examples::Safetensors content;
    add(content, "", tensors);
    examples::write_safetensors(content, path);
}

std::vector<nn::NamedTensor> read_weights(const std::filesystem::path& path) {
    const examples::Safetensors content = examples::read_safetensors(path);
    std::vector<nn::NamedTensor> tensors;
    for (const auto& [name, tensor] : content.tensors) {
        tensors.push_back({name, tensor.shape, tensor.as<float>()});
        // All losses would be NaN, too, and all results.
        if (!std::all_of(tensors.back().values.begin(), tensors.back().values.end(),
                         [](float value) { return std::isfinite(value); })) {
            throw examples::BadInput(path.string() + ": tensor \"" + name +
                                     "\" has values that are no finite numbers; expected weights");
        }
    }
    return tensors;
}

void write_start(const Workload& workload, std::span<const nn::NamedTensor> encoder,
                 std::span<const nn::NamedTensor> decoder, const std::filesystem::path& path) {
    const Plan& plan = workload.plan();
    examples::Safetensors content;
    add(content, "encoder.", encoder);
    add(content, "decoder.", decoder);
    std::vector<std::uint8_t> images(plan.batch * plan.image_bytes());
    std::vector<std::uint8_t> labels(plan.batch * plan.label_bytes());
    const std::size_t steps = plan.warmup + plan.steps;
    for (std::size_t batch = 0; batch < (plan.distinct > 0 ? plan.distinct : steps); ++batch) {
        workload.fill(batch, images, labels);
        add(content, "images." + std::to_string(batch), {plan.batch, 3, plan.height, plan.width}, images);
        add(content, "labels." + std::to_string(batch), {plan.batch, plan.height, plan.width}, labels);
    }
    std::vector<float> rates(steps);
    for (std::size_t step = 0; step < steps; ++step)
        rates[step] = plan.rate_at(step);
    add(content, "",
        std::vector<nn::NamedTensor>{{"rates", {steps}, rates}, {"image_scale", {1}, {plan.image_scale}}});
    examples::write_safetensors(content, path);
}

} // namespace frozen_encoder
