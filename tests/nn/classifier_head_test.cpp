// The head of a classifier: training it lowers the loss on both backends; and a device's kernels against float64.
#include <algorithm>

#include <nn/models/classifier.hpp>

#include "nn/steady.hpp"
#include "nn/support.hpp"

namespace nn_classifier_head {

using namespace nn_test;

TEST_CASE("classifier: more classes than the kernels of the head take are trained in the same way") {
    NN_TEST_RANDOM(random);
    const nn::EncoderOptions options{.height = 8,
                                     .width = 8,
                                     .channels = {5, 6, 7},
                                     .batch = random.between(2, 5),
                                     .image_scale = 1.0f / 64.0f,
                                     .trainable = true,
                                     .precision = nn::Precision::float32,
                                     .seed = random.seed()};
    const Stream stream;
    std::vector<nn::NamedTensor> first;
    std::vector<std::vector<float>> results;
    const auto bytes = random.bytes(options.batch * 3 * 64);
    const auto classes = random.bytes(options.batch, 3);
    const Buffer<std::uint8_t> images = device(bytes);
    const Buffer<std::uint8_t> labels = device(classes);
    // 17 classes, of which 14 are as good as impossible, are 3 classes.
    for (const std::size_t count : {std::size_t{3}, std::size_t{17}}) {
        nn::Encoder<B> encoder(options);
        nn::Classifier<B> classifier(encoder, {.classes = count, .learning_rate = 0.1f, .seed = 1});
        auto weights = classifier.weights(stream);
        nn::NamedTensor& weight = weights[weights.size() - 2];
        nn::NamedTensor& bias = weights.back();
        if (count == 3) {
            first = weights;
        } else {
            weights = first;
            weight.values.resize(count * weight.shape[1], 0.0f);
            weight.shape[0] = count;
            bias.values.resize(count, -100.0f);
            bias.shape[0] = count;
            classifier.load(stream, weights);
        }
        Buffer<float> losses = poisoned<float>(stream, 4);
        for (std::size_t step = 0; step < losses.size(); ++step)
            classifier.step(stream, images, labels, losses.span().subspan(step, 1));
        results.push_back(host(stream, losses));
        for (const nn::NamedTensor& tensor : classifier.weights(stream)) {
            results.back().insert(results.back().end(), tensor.values.begin(),
                                  tensor.values.begin() +
                                      static_cast<std::ptrdiff_t>(tensor.values.size() /
                                                                  (tensor.shape[0] == count ? count : 1) *
                                                                  (tensor.shape[0] == count ? 3 : 1)));
        }
    }
    CHECK(relative_error(results[1], results[0]) <= 1e-5);
}

#if SLUICE_TEST_CUDA
TEST_CASE("classifier head: loss, gradients and step against float64") {
    NN_TEST_RANDOM(random);
    for (int round = 0; round < 6; ++round) {
        const std::size_t images = random.between(1, round == 0 ? 150 : 40);
        const std::size_t inputs = random.between(1, round == 1 ? 5000 : 300);
        const std::size_t classes = round == 2 ? 16 : random.between(1, 16);
        const auto features = random.numbers(images * inputs);
        auto weights = random.numbers(inputs * classes, 0.1f);
        auto bias = random.numbers(classes);
        auto labels = random.bytes(images, classes);
        const bool broken = round == 3;
        if (broken)
            labels[0] = 200;
        const float rate = 0.5f;

        const Stream stream;
        const Buffer<float> in = device(features);
        Buffer<float> w = device(weights);
        Buffer<float> b = device(bias);
        const Buffer<std::uint8_t> l = device(labels);
        const Buffer<float> factors = device(std::vector<float>{-rate, 1.0f});
        Buffer<float> in_gradient = poisoned<float>(stream, features.size());
        Buffer<float> loss = poisoned<float>(stream, 1);
        Buffer<float> scratch = poisoned<float>(stream, nn::classifier_scratch(images, classes));
        nn::classifier_step(stream, {in, images, inputs}, l, factors, matrix(w, inputs, classes), b,
                            matrix(in_gradient, images, inputs), loss, scratch);

        std::vector<double> expected_gradient(images * classes);
        double expected_loss = 0.0;
        for (std::size_t i = 0; i < images; ++i) {
            std::vector<double> logits(bias.begin(), bias.end());
            for (std::size_t k = 0; k < inputs; ++k)
                for (std::size_t c = 0; c < classes; ++c)
                    logits[c] += static_cast<double>(features[i * inputs + k]) *
                                 static_cast<double>(weights[k * classes + c]);
            const double greatest = *std::max_element(logits.begin(), logits.end());
            double sum = 0.0;
            for (const double logit : logits)
                sum += std::exp(logit - greatest);
            const bool known = labels[i] < classes;
            if (known) {
                expected_loss += (std::log(sum) + greatest - logits[labels[i]]) / static_cast<double>(images);
            }
            for (std::size_t c = 0; c < classes; ++c) {
                expected_gradient[i * classes + c] =
                    known ? (std::exp(logits[c] - greatest) / sum - (c == labels[i] ? 1.0 : 0.0)) /
                                static_cast<double>(images)
                          : 0.0;
            }
        }
        std::vector<double> expected_in(features.size(), 0.0);
        std::vector<double> expected_weights(weights.begin(), weights.end());
        std::vector<double> expected_bias(bias.begin(), bias.end());
        for (std::size_t i = 0; i < images; ++i) {
            for (std::size_t c = 0; c < classes; ++c) {
                const double mine = expected_gradient[i * classes + c];
                expected_bias[c] -= static_cast<double>(rate) * mine;
                for (std::size_t k = 0; k < inputs; ++k) {
                    expected_in[i * inputs + k] += mine * static_cast<double>(weights[k * classes + c]);
                    expected_weights[k * classes + c] -=
                        static_cast<double>(rate) * mine * static_cast<double>(features[i * inputs + k]);
                }
            }
        }
        if (broken) {
            CHECK(std::isnan(host(stream, loss)[0]));
        } else {
            CHECK(relative_error(host(stream, loss), std::vector<double>{expected_loss}) <= 1e-5);
        }
        CHECK(relative_error(host(stream, in_gradient), expected_in) <= 1e-5);
        CHECK(relative_error(host(stream, w), expected_weights) <= 1e-5);
        CHECK(relative_error(host(stream, b), expected_bias) <= 1e-5);
    }
}
#endif

} // namespace nn_classifier_head
