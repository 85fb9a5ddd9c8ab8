#include <algorithm>

#include <nn/elementwise/sums.hpp>
#include <nn/layers/morton_order.hpp>
#include <nn/losses/cross_entropy.hpp>

#include "nn/support.hpp"

namespace nn_cross_entropy {

using namespace nn_test;

namespace {

struct Expected {
    std::vector<double> losses;
    std::vector<double> gradient;
};

/// Row by row in float64; `label_of` gives a row's label.
template <class LabelOf>
Expected naive_loss(const std::vector<float>& logits, std::size_t classes, const LabelOf& label_of) {
    const std::size_t rows = logits.size() / classes;
    Expected result{std::vector<double>(rows), std::vector<double>(logits.size())};
    for (std::size_t row = 0; row < rows; ++row) {
        double sum = 0.0;
        for (std::size_t j = 0; j < classes; ++j)
            sum += std::exp(static_cast<double>(logits[row * classes + j]));
        const std::size_t label = label_of(row);
        result.losses[row] = std::log(sum) - static_cast<double>(logits[row * classes + label]);
        for (std::size_t j = 0; j < classes; ++j) {
            result.gradient[row * classes + j] =
                (std::exp(static_cast<double>(logits[row * classes + j])) / sum - (j == label ? 1.0 : 0.0)) /
                static_cast<double>(rows);
        }
    }
    return result;
}

} // namespace

TEST_CASE("cross entropy: cross-entropy of pixels and its gradient, also in place") {
    NN_TEST_RANDOM(random);
    const Stream stream;
    const nn::MortonOrder order(4 * random.between(1, 6), 4 * random.between(1, 6), 2);
    const std::size_t rows = random.between(1, 3) * order.pixels();
    const std::size_t classes = random.between(2, 12);
    const auto logits = random.numbers(rows * classes, 3.0f);
    const auto labels = random.bytes(rows, classes);
    const Buffer<std::int32_t> table = device(order.raster_of_row());
    const Expected expected = naive_loss(logits, classes, [&](std::size_t row) {
        const auto raster = static_cast<std::size_t>(order.raster_of_row()[row % order.pixels()]);
        return labels[row / order.pixels() * order.pixels() + raster];
    });
    Buffer<float> values = device(logits);
    Buffer<float> gradient = poisoned<float>(stream, logits.size());
    Buffer<float> losses = poisoned<float>(stream, rows);
    const auto label_buffer = device(labels);
    nn::softmax_cross_entropy(stream.ref(), matrix(values, rows, classes), label_buffer, table,
                              matrix(gradient, rows, classes), losses);
    const auto result = host(stream, gradient);
    CHECK(relative_error(result, expected.gradient) <= 1e-5);
    CHECK(relative_error(host(stream, losses), expected.losses) <= 1e-5);

    nn::softmax_cross_entropy(stream.ref(), matrix(values, rows, classes), label_buffer, table,
                              matrix(values, rows, classes), losses);
    CHECK(host(stream, values) == result);
}

TEST_CASE("cross entropy: a label for each row, and large logits") {
    NN_TEST_RANDOM(random);
    const Stream stream;
    const std::size_t rows = random.between(50, 300);
    const std::size_t classes = random.between(2, 256);
    const auto logits = random.numbers(rows * classes, 30.0f);
    const auto labels = random.bytes(rows, classes);
    const Expected expected = naive_loss(logits, classes, [&](std::size_t row) { return labels[row]; });
    Buffer<float> values = device(logits);
    Buffer<float> gradient = poisoned<float>(stream, logits.size());
    Buffer<float> losses = poisoned<float>(stream, rows);
    const auto label_buffer = device(labels);
    nn::softmax_cross_entropy(stream.ref(), matrix(values, rows, classes), label_buffer, {},
                              matrix(gradient, rows, classes), losses);
    CHECK(relative_error(host(stream, gradient), expected.gradient) <= 1e-5);
    CHECK(relative_error(host(stream, losses), expected.losses) <= 1e-5);

    Buffer<float> huge = device(std::vector<float>{1e30f, -1e30f});
    Buffer<float> slope = poisoned<float>(stream, 2);
    Buffer<float> loss = poisoned<float>(stream, 1);
    const auto zero = device(std::vector<std::uint8_t>{0});
    nn::softmax_cross_entropy(stream.ref(), matrix(huge, 1, 2), zero, {}, matrix(slope, 1, 2), loss);
    CHECK(host(stream, loss) == std::vector<float>{0.0f});
    CHECK(host(stream, slope) == std::vector<float>{0.0f, 0.0f});
}

TEST_CASE("cross entropy: a label that is no class shows in the loss and moves nothing") {
    const Stream stream;
    Buffer<float> logits = device(std::vector<float>{1, 2, 3, 4, 5, 6});
    Buffer<float> gradient = poisoned<float>(stream, 6);
    Buffer<float> losses = poisoned<float>(stream, 2);
    sluice::fill_bytes(stream, losses, 0);
    const auto labels = device(std::vector<std::uint8_t>{3, 2});
    nn::softmax_cross_entropy(stream.ref(), matrix(logits, 2, 3), labels, {}, matrix(gradient, 2, 3), losses);
    const auto result = host(stream, losses);
    CHECK(std::isnan(result[0]));
    CHECK_FALSE(std::isnan(result[1]));
    const auto slope = host(stream, gradient);
    for (std::size_t j = 0; j < 3; ++j)
        CHECK(slope[j] == 0.0f);
    CHECK(slope[5] != 0.0f);
}

TEST_CASE("cross entropy: predictions are the first greatest logit, in raster order") {
    NN_TEST_RANDOM(random);
    const Stream stream;
    const nn::MortonOrder order(2 * random.between(1, 9), 2 * random.between(1, 9), 1);
    const std::size_t rows = 2 * order.pixels();
    const std::size_t classes = random.between(2, 11);
    std::vector<float> logits;
    for (const std::uint8_t value : random.bytes(rows * classes, 5))
        logits.push_back(value); // ties among them
    Buffer<float> values = device(logits);
    Buffer<std::uint8_t> predictions = poisoned<std::uint8_t>(stream, rows);
    const auto table = device(order.raster_of_row());
    nn::predict_classes(stream.ref(), matrix(values, rows, classes), table, predictions);
    const auto result = host(stream, predictions);
    for (std::size_t row = 0; row < rows; ++row) {
        const auto begin = logits.begin() + static_cast<std::ptrdiff_t>(row * classes);
        const auto best = std::max_element(begin, begin + static_cast<std::ptrdiff_t>(classes)) - begin;
        const std::size_t image = row / order.pixels();
        const auto raster = static_cast<std::size_t>(order.raster_of_row()[row % order.pixels()]);
        REQUIRE(result[image * order.pixels() + raster] == best);
    }
}

TEST_CASE("cross entropy: sizes that do not fit are refused in one sentence") {
    const Stream stream;
    Buffer<float> logits(12);
    Buffer<float> losses(4);
    Buffer<std::uint8_t> labels(5);
    CHECK(error_of([&] {
              nn::softmax_cross_entropy(stream.ref(), matrix(logits, 4, 3), labels, {}, matrix(logits, 4, 3),
                                        losses);
          }) == "softmax_cross_entropy: labels: 5 were given, expected 4");
    Buffer<float> wide(514);
    CHECK(error_of([&] {
              nn::predict_classes(stream.ref(), matrix(wide, 2, 257), {}, labels.span().first(2));
          }) == "predict_classes: 257 classes do not fit a byte; expected at most 256");
}

} // namespace nn_cross_entropy
