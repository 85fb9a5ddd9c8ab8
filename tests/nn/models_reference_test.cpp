// Training against PyTorch's, step by step: names, shapes and values come from the reference file.
#include <algorithm>

#include <common/safetensors.hpp>
#include <nn/models/classifier.hpp>
#include <nn/models/decoder.hpp>

#include "nn/support.hpp"
#include "support/reference.hpp"

namespace nn_models_reference {

using namespace nn_test;

namespace {

const examples::Safetensors& reference() {
    static const examples::Safetensors file = examples::read_safetensors(sluice_test::reference_path());
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

/// The encoder that a network's weights `S.weight` are for, of images like `input`. Its convolutions come first:
/// they are the weights of four sides whose inputs are their predecessor's outputs.
nn::EncoderOptions encoder_options(const std::vector<nn::NamedTensor>& weights, const examples::Tensor& input,
                                   nn::Precision precision) {
    nn::EncoderOptions options{.height = input.shape.at(2),
                               .width = input.shape.at(3),
                               .image_channels = input.shape.at(1),
                               .channels = {},
                               .batch = input.shape.at(0),
                               .trainable = true,
                               .precision = precision};
    for (std::size_t index = 0;; index += 2) {
        const std::string name = std::to_string(index) + ".weight";
        const auto found =
            std::find_if(weights.begin(), weights.end(), [&](const auto& t) { return t.name == name; });
        if (found == weights.end() || found->shape.size() != 4)
            return options;
        options.channels.push_back(found->shape[0]);
    }
}

void check_weights(const std::vector<nn::NamedTensor>& actual, const std::string& prefix, double allowed) {
    CHECK(reference().names(prefix).size() == actual.size());
    for (const nn::NamedTensor& tensor : actual) {
        CAPTURE(tensor.name);
        const examples::Tensor& expected = reference().at(prefix + tensor.name);
        CHECK(tensor.shape == expected.shape);
        CHECK(relative_error(tensor.values, expected.as<double>()) <= allowed);
    }
}

/// Trains over the file's steps; `step(images, labels, loss)` enqueues one. Returns the losses.
template <class Step>
std::vector<float> train(const Stream& stream, const std::string& prefix, const Step& step) {
    std::vector<float> losses;
    const std::size_t steps = reference().at(prefix + "losses").count();
    for (std::size_t s = 0; s < steps; ++s) {
        const Buffer<float> images =
            device(reference().at(prefix + "input." + std::to_string(s)).as<float>());
        const Buffer<std::uint8_t> labels =
            device(reference().at(prefix + "label." + std::to_string(s)).as<std::uint8_t>());
        Buffer<float> loss = poisoned<float>(stream, 1);
        step(images.span(), labels.span(), loss.span());
        losses.push_back(host(stream, loss)[0]);
    }
    return losses;
}

struct Outcome {
    std::vector<float> losses;
    std::vector<nn::NamedTensor> weights;
};

Outcome train_decoder(nn::Precision precision) {
    const std::string prefix = "encoder_decoder/";
    const Stream stream;
    // frozen.0, frozen.1, … are weight and bias in turns, as 0.weight, 0.bias, 2.weight, …
    std::vector<nn::NamedTensor> frozen = tensors(prefix + "frozen.");
    for (nn::NamedTensor& tensor : frozen) {
        const std::size_t index = std::stoul(tensor.name);
        tensor.name = std::to_string(index / 2 * 2) + (index % 2 == 0 ? ".weight" : ".bias");
    }
    const examples::Tensor& input = reference().at(prefix + "input.0");
    nn::EncoderOptions options = encoder_options(frozen, input, precision);
    options.trainable = false;
    nn::Encoder<B> encoder(options);
    encoder.load(stream, frozen);

    const std::vector<nn::NamedTensor> initial = tensors(prefix + "initial.");
    const std::string last = std::to_string(2 * encoder.halvings()) + ".bias";
    const auto classes =
        std::find_if(initial.begin(), initial.end(), [&](const auto& t) { return t.name == last; });
    REQUIRE(classes != initial.end());
    std::vector<std::size_t> channels(options.channels.rbegin(), options.channels.rend());
    nn::Decoder<B> decoder({.height = options.height,
                            .width = options.width,
                            .channels = channels,
                            .classes = classes->values.size(),
                            .batch = options.batch,
                            .learning_rate = 0.5f,
                            .precision = precision});
    decoder.load(stream, initial);

    Buffer<float> features = poisoned<float>(stream, options.batch * encoder.features_size());
    const auto losses = train(stream, prefix, [&](auto images, auto labels, auto loss) {
        encoder.forward(stream, images, features);
        decoder.step(stream, features, labels, loss);
    });
    return {losses, decoder.weights(stream)};
}

Outcome train_classifier(nn::Precision precision) {
    const std::string prefix = "classifier/";
    const Stream stream;
    const std::vector<nn::NamedTensor> initial = tensors(prefix + "initial.");
    const nn::EncoderOptions options =
        encoder_options(initial, reference().at(prefix + "input.0"), precision);
    nn::Encoder<B> encoder(options);
    const std::string head = std::to_string(2 * options.channels.size()) + ".bias";
    const auto bias =
        std::find_if(initial.begin(), initial.end(), [&](const auto& t) { return t.name == head; });
    REQUIRE(bias != initial.end());
    nn::Classifier<B> classifier(encoder, {.classes = bias->values.size(), .learning_rate = 0.2f});
    classifier.load(stream, initial);
    const auto losses = train(stream, prefix, [&](auto images, auto labels, auto loss) {
        classifier.step(stream, images, labels, loss);
    });
    return {losses, classifier.weights(stream)};
}

void check(const std::string& prefix, Outcome (*run)(nn::Precision)) {
    for (const nn::Precision precision : precisions) {
        CAPTURE(precision == nn::Precision::tf32);
        const Outcome outcome = run(precision);
        const auto expected = reference().at(prefix + "losses").as<double>();
        for (std::size_t s = 0; s < expected.size(); ++s) {
            CAPTURE(s);
            CHECK(std::abs(static_cast<double>(outcome.losses[s]) - expected[s]) <=
                  tolerance(precision) * std::abs(expected[s]));
        }
        check_weights(outcome.weights, prefix + "final.", tolerance(precision));

        const Outcome again = run(precision);
        CHECK(again.losses == outcome.losses);
        for (std::size_t i = 0; i < outcome.weights.size(); ++i) {
            CHECK(again.weights[i].values == outcome.weights[i].values);
        }
    }
}

} // namespace

TEST_CASE("reference: frozen encoder and decoder") { check("encoder_decoder/", train_decoder); }

TEST_CASE("reference: classifier") { check("classifier/", train_classifier); }

} // namespace nn_models_reference
