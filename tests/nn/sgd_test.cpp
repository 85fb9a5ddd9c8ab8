// Gradient descent with momentum, and cross-entropy over many classes, against float64.
#include <algorithm>

#include <nn/losses/cross_entropy_wide.hpp>
#include <nn/optimizer/sgd.hpp>

#include "nn/conv_engines.hpp"
#include "nn/naive.hpp"

namespace nn_sgd {

using namespace nn_test;

namespace {

template <class G, class Label>
void check_cross_entropy(Random& random, std::size_t classes) {
    const Stream stream;
    const std::size_t rows = random.between(1, 20);
    const auto values = random.numbers(rows * classes, 4.0f);
    std::vector<Label> labels;
    naive::Doubles losses(rows);
    naive::Doubles slopes(values.size());
    // A loss is a difference of numbers of the logits' size, and a slope of shares: where one label leads far, both are small.
    const naive::Doubles loss_scale(rows, 4.0);
    const naive::Doubles slope_scale(values.size(), 8.0 / static_cast<double>(rows) /
                                                        std::sqrt(static_cast<double>(classes)));
    for (std::size_t row = 0; row < rows; ++row) {
        labels.push_back(static_cast<Label>(random.between(0, std::min<std::size_t>(classes, 256) - 1)));
        const auto label = static_cast<std::size_t>(labels.back());
        double sum = 0.0;
        for (std::size_t j = 0; j < classes; ++j)
            sum += std::exp(static_cast<double>(values[row * classes + j]));
        losses[row] = std::log(sum) - static_cast<double>(values[row * classes + label]);
        for (std::size_t j = 0; j < classes; ++j) {
            const double share = std::exp(static_cast<double>(values[row * classes + j])) / sum;
            slopes[row * classes + j] = 8.0 * (share - (j == label ? 1.0 : 0.0)) / static_cast<double>(rows);
        }
    }
    Buffer<float> logits = device(values);
    const Buffer<Label> device_labels = device(labels);
    Buffer<G> gradient = poisoned<G>(stream, values.size());
    Buffer<float> each = poisoned<float>(stream, rows);
    nn::softmax_cross_entropy_wide<G, Label>(stream.ref(), matrix(logits, rows, classes), device_labels, 8.0f,
                                             gradient, each);
    CHECK(relative_error(host(stream, each), losses, loss_scale) <= 1e-6);
    CHECK(relative_error(floats(host(stream, gradient)), slopes, slope_scale) <=
          (sizeof(G) == 2 ? 2e-3 : 1e-5));
}

} // namespace

TEST_CASE("sgd: three steps with momentum, a loss scale and a rounded copy against float64") {
    NN_TEST_RANDOM(random);
    const Stream stream;
    for (const std::size_t count : {std::size_t{8} * random.between(1, 300), random.between(1, 300)}) {
        const auto first = random.numbers(count);
        Buffer<float> weights = device(first);
        Buffer<float> velocities = device(std::vector<float>(count, 0.0f));
        Buffer<nn::Half> copy = poisoned<nn::Half>(stream, count);
        naive::Doubles expected = naive::doubles(first);
        naive::Doubles velocity(count, 0.0);
        for (int step = 0; step < 3; ++step) {
            const auto slope = rounded<nn::Half>(random.numbers(count, 16.0f));
            const float rate = 0.125f * static_cast<float>(step + 1);
            const Buffer<nn::Half> gradients = device(slope);
            const Buffer<float> device_rate = device(std::vector<float>{rate});
            nn::sgd_momentum(stream.ref(), weights, velocities, gradients, device_rate,
                             {.momentum = 0.9f, .loss_scale = 16.0f}, copy);
            stream.sync();
            for (std::size_t j = 0; j < count; ++j) {
                velocity[j] = 0.9 * velocity[j] + static_cast<double>(static_cast<float>(slope[j])) / 16.0;
                expected[j] -= static_cast<double>(rate) * velocity[j];
            }
        }
        const auto result = host(stream, weights);
        CHECK(relative_error(result, expected) <= 1e-6);
        CHECK(floats(host(stream, copy)) == floats(rounded<nn::Half>(result)));
    }
}

TEST_CASE("sgd: of float gradients, without momentum, is plain descent") {
    const Stream stream;
    Buffer<float> weights = device(std::vector<float>{1.0f, 2.0f, 3.0f});
    Buffer<float> velocities = device(std::vector<float>{5.0f, 5.0f, 5.0f});
    const Buffer<float> gradients = device(std::vector<float>{1.0f, -2.0f, 4.0f});
    const Buffer<float> rate = device(std::vector<float>{0.5f});
    nn::sgd_momentum<float>(stream.ref(), weights, velocities, gradients, rate, {.momentum = 0.0f});
    CHECK(host(stream, weights) == std::vector<float>{0.5f, 3.0f, 1.0f});
    CHECK(host(stream, velocities) == std::vector<float>{1.0f, -2.0f, 4.0f});
    CHECK(error_of([&] {
              nn::sgd_momentum<float>(stream.ref(), weights, velocities, gradients.span().first(2), rate, {});
          }) == "sgd: gradients: 2 were given, expected 3");
}

TEST_CASE("cross entropy, wide: losses and gradients against float64, any labels and types") {
    NN_TEST_RANDOM(random);
    for (const std::size_t classes : {random.between(2, 40), random.between(200, 300), std::size_t{1000}}) {
        CAPTURE(classes);
        check_cross_entropy<float, std::int32_t>(random, classes);
        check_cross_entropy<float, std::uint8_t>(random, classes);
        check_cross_entropy<nn::Half, std::int32_t>(random, classes);
        check_cross_entropy<nn::Half, std::uint8_t>(random, classes);
    }
}

TEST_CASE("cross entropy, wide: large logits, and a label that is no class") {
    const Stream stream;
    Buffer<float> logits = device(std::vector<float>{1e30f, -1e30f, 1.0f, 2.0f, 1.0f, 2.0f});
    const Buffer<std::int32_t> labels = device(std::vector<std::int32_t>{0, -1, 2});
    Buffer<float> gradient = poisoned<float>(stream, 6);
    Buffer<float> losses = poisoned<float>(stream, 3);
    nn::softmax_cross_entropy_wide<float, std::int32_t>(stream.ref(), matrix(logits, 3, 2), labels, 1.0f,
                                                        gradient, losses);
    CHECK(host(stream, gradient) == std::vector<float>(6, 0.0f));
    const auto result = host(stream, losses);
    CHECK(result[0] == 0.0f);
    CHECK(std::isnan(result[1]));
    CHECK(std::isnan(result[2]));
}

TEST_CASE("cross entropy, wide: predictions are the first greatest logit") {
    const Stream stream;
    std::vector<float> values(2 * 1000, 0.0f);
    values[700] = values[800] = 3.0f;
    values[1000 + 999] = 1.0f;
    Buffer<float> logits = device(values);
    Buffer<std::int32_t> predictions = poisoned<std::int32_t>(stream, 2);
    nn::predict_classes_wide(stream.ref(), matrix(logits, 2, 1000), predictions);
    CHECK(host(stream, predictions) == std::vector<std::int32_t>{700, 999});
}

} // namespace nn_sgd
