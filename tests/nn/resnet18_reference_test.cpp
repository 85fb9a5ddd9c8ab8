// ResNet-18's training and inference against PyTorch's: bench/pytorch/resnet18_reference.py wrote the file.
#include <common/safetensors.hpp>

#include "nn/resnet18_case.hpp"
#include "support/reference.hpp"

namespace nn_resnet18_reference {

using namespace nn_test;

namespace {

const examples::Safetensors& reference() {
    static const examples::Safetensors file = examples::read_safetensors(
        std::filesystem::path{SLUICE_TEST_DATA_DIR} / "resnet18_reference.safetensors");
    return file;
}

/// The tensors whose names begin with `prefix`, without it.
std::vector<nn::NamedTensor> tensors(const std::string& prefix) {
    std::vector<nn::NamedTensor> result;
    for (const std::string& name : reference().names(prefix)) {
        const examples::Tensor& tensor = reference().at(name);
        result.push_back({name.substr(prefix.size()), tensor.shape, tensor.as<float>()});
    }
    return result;
}

/// Each tensor on its own if `is_exact`; otherwise all of them together, since masks of ReLUs that change make errors of
/// about the square root of the rounding.
void check_tensors(const std::vector<nn::NamedTensor>& actual, const std::string& prefix, bool is_exact,
                   double allowed) {
    CHECK(reference().names(prefix).size() == actual.size());
    naive::ResNet::Tensors expected;
    for (const nn::NamedTensor& tensor : actual) {
        const examples::Tensor& each = reference().at(prefix + tensor.name);
        CHECK(tensor.shape == each.shape);
        expected[tensor.name] = each.as<double>();
    }
    const auto errors = tensor_errors(by_name(actual), expected, 0.0);
    CHECK(errors.at("") <= allowed);
    for (const auto& entry : errors) {
        CAPTURE(entry.first);
        if (is_exact)
            CHECK(entry.second <= allowed);
    }
}

} // namespace

TEST_CASE("resnet18: three steps of training, and inference after them, are PyTorch's") {
    const examples::Tensor& planes = reference().at("images");
    const auto values = planes.as<float>();
    const std::size_t images = planes.shape.at(0);
    const std::size_t pixels = planes.shape.at(2) * planes.shape.at(3);
    std::vector<float> channels_last(values.size());
    for (std::size_t j = 0; j < values.size(); ++j)
        channels_last[(j / (3 * pixels) * pixels + j % pixels) * 3 + j / pixels % 3] = values[j];
    for (const nn::Precision precision : precisions) {
        CAPTURE(static_cast<int>(precision));
        const bool is_exact = tolerance(precision) < 1e-4;
        nn::ResNet18<B> network({.height = planes.shape.at(2),
                                 .width = planes.shape.at(3),
                                 .base_channels = reference().at("before.conv1.weight").shape.at(0),
                                 .classes = reference().at("before.fc.bias").shape.at(0),
                                 .batch = images,
                                 .learning_rate = 0.05f,
                                 .convolution = {.precision = precision}});
        const Stream stream;
        network.load(stream.ref(), tensors("before."));
        const Buffer<float> device_images = device(channels_last);
        const Buffer<std::int32_t> labels = device(reference().at("labels").as<std::int32_t>());
        Buffer<float> losses = poisoned<float>(stream, 3);
        for (std::size_t step = 0; step < 3; ++step) {
            network.train_step<std::int32_t>(stream, device_images, labels, losses.span().subspan(step, 1));
            if (step == 0)
                check_tensors(network.gradients(stream.ref()), "gradient.", is_exact, is_exact ? 1e-3 : 0.6);
        }
        const auto expected_losses = reference().at("losses").as<double>();
        CHECK(host(stream, losses)[0] == doctest::Approx(expected_losses[0]).epsilon(is_exact ? 1e-4 : 5e-3));
        CHECK(relative_error(host(stream, losses), expected_losses) <= (is_exact ? 1e-4 : 0.1));
        check_tensors(network.weights(stream.ref()), "after.", is_exact, is_exact ? 1e-3 : 0.1);
        network.fold(stream);
        Buffer<float> logits = poisoned<float>(stream, images * network.options().classes);
        network.infer(stream, device_images, logits);
        CHECK(relative_error(host(stream, logits), reference().at("logits").as<double>()) <=
              (is_exact ? 1e-3 : 0.7));
    }
}

} // namespace nn_resnet18_reference
