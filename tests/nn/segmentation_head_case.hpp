// The decoder's end on fresh data: what it is given, what it should come to in float64, and a run of it.
#pragma once

#include <algorithm>
#include <cmath>

#include <nn/elementwise/elementwise.hpp>
#include <nn/heads/segmentation_head.hpp>
#include <nn/layers/layer_shape.hpp>

#include "nn/naive.hpp"
#include "nn/support.hpp"

namespace nn_segmentation_head {

using namespace nn_test;

inline constexpr std::size_t inputs = 32;
inline constexpr std::size_t channels = 16;

/// Fresh data of a shape, in host memory.
struct Case {
    nn::SegmentationHeadShape shape;
    std::size_t classes;
    nn::LayerShape up = nn::LayerShape::transposed_convolution(inputs, channels, 2);
    nn::LayerShape last;
    std::vector<float> in;
    std::vector<float> up_weights;
    std::vector<float> up_bias;
    std::vector<float> last_weights;
    std::vector<float> last_bias;
    std::vector<std::uint8_t> labels;

    Case(Random& random, const nn::SegmentationHeadShape& shape_, std::size_t classes_)
        : shape(shape_), classes(classes_), last(nn::LayerShape::convolution(channels, classes_, 3)),
          in(random.numbers(pixels() / 4 * inputs)), up_weights(random.numbers(inputs * 4 * channels, 0.2f)),
          up_bias(random.numbers(channels, 0.2f)), last_weights(random.numbers(9 * channels * classes, 0.2f)),
          last_bias(random.numbers(classes, 0.2f)), labels(random.bytes(pixels(), classes)) {
        // Few bits each, so that the kernel's products and sums are exact where signs decide.
        for (float& value : in)
            value = std::max(std::round(8.0f * value) / 8.0f, 0.0f);
        for (std::vector<float>* values : {&up_weights, &up_bias}) {
            for (float& value : *values)
                value = std::round(64.0f * value) / 64.0f;
        }
    }
    std::size_t pixels() const { return shape.images * shape.height * shape.width; }
    nn::MortonOrder in_order() const { return {shape.height / 2, shape.width / 2, shape.levels - 1}; }
};

/// What float64 makes of a case. Labels beyond the classes make no gradient.
struct Expected {
    naive::Images map;
    naive::Images logits;
    double loss = 0.0;
    naive::Doubles in_gradient;
    std::vector<double> up, up_bias, last, last_bias; // gradients, as the layers lay weights out
    std::vector<double> last_bias_terms;              // what `last_bias` adds up, without signs

    explicit Expected(const Case& data) : map(0, 0, 0, 0), logits(0, 0, 0, 0) {
        const naive::Images in = naive::from_rows(data.in, data.in_order(), inputs);
        const naive::Doubles up_torch = naive::doubles(data.up.torch_from_matrix(data.up_weights));
        const naive::Doubles last_torch = naive::doubles(data.last.torch_from_matrix(data.last_weights));
        map = naive::transposed_convolution(in, up_torch, naive::doubles(data.up_bias), 2);
        for (double& value : map.values)
            value = std::max(value, 0.0);
        logits = naive::convolution(map, last_torch, naive::doubles(data.last_bias), 3, 1, 1);

        naive::Images slope(logits.n, logits.c, logits.h, logits.w);
        last_bias_terms.assign(logits.c, 0.0);
        const double count = static_cast<double>(data.pixels());
        for (std::size_t pixel = 0; pixel < data.pixels(); ++pixel) {
            const std::size_t i = pixel / (logits.h * logits.w);
            const std::size_t y = pixel / logits.w % logits.h;
            const std::size_t x = pixel % logits.w;
            const std::size_t label = data.labels[pixel];
            double sum = 0.0;
            for (std::size_t j = 0; j < logits.c; ++j)
                sum += std::exp(logits.at(i, j, y, x));
            if (label >= logits.c) {
                loss = NAN;
                continue;
            }
            loss += (std::log(sum) - logits.at(i, label, y, x)) / count;
            for (std::size_t j = 0; j < logits.c; ++j) {
                slope.at(i, j, y, x) =
                    (std::exp(logits.at(i, j, y, x)) / sum - (j == label ? 1.0 : 0.0)) / count;
                last_bias_terms[j] += std::abs(slope.at(i, j, y, x));
            }
        }
        naive::Gradients of_last = naive::convolution_gradients(map, last_torch, slope, 3, 1, 1);
        for (std::size_t i = 0; i < map.values.size(); ++i) {
            if (map.values[i] <= 0.0)
                of_last.input.values[i] = 0.0;
        }
        naive::Gradients of_up = naive::transposed_convolution_gradients(in, up_torch, of_last.input, 2);
        for (std::size_t i = 0; i < in.values.size(); ++i) {
            if (in.values[i] <= 0.0)
                of_up.input.values[i] = 0.0;
        }
        in_gradient = naive::to_rows(of_up.input, data.in_order());
        up = matrix_of(data.up, of_up.weight);
        up_bias = of_up.bias;
        last = matrix_of(data.last, of_last.weight);
        last_bias = of_last.bias;
    }

private:
    static std::vector<double> matrix_of(const nn::LayerShape& shape, const naive::Doubles& torch) {
        const std::vector<float> matrix =
            shape.matrix_from_torch(std::vector<float>(torch.begin(), torch.end()));
        return {matrix.begin(), matrix.end()};
    }
};

inline std::vector<float> repeated(const std::vector<float>& bias) {
    std::vector<float> result;
    for (int i = 0; i < 4; ++i)
        result.insert(result.end(), bias.begin(), bias.end());
    return result;
}

/// A case in device memory, and what the kernels make of it.
struct Run {
    Buffer<float> in;
    Buffer<float> up;
    Buffer<float> up_bias;
    Buffer<float> last;
    Buffer<float> last_bias;
    Buffer<std::uint8_t> labels;
    Buffer<float> gradient;
    Buffer<float> sums;
    Buffer<float> loss;
    Buffer<float> factors;
    Buffer<std::uint8_t> predictions;
    std::size_t blocks;

    Run(const Stream& stream, const Case& data, float rate, std::size_t blocks_)
        : in(device(data.in)), up(device(data.up_weights)), up_bias(device(repeated(data.up_bias))),
          last(device(data.last_weights)), last_bias(device(data.last_bias)), labels(device(data.labels)),
          gradient(poisoned<float>(stream, data.in.size())),
          sums(poisoned<float>(stream, nn::segmentation_head_scratch(blocks_))),
          loss(poisoned<float>(stream, 1)), factors(device(std::vector<float>{-rate, 1.0f})),
          predictions(poisoned<std::uint8_t>(stream, data.labels.size())), blocks(blocks_) {}

    nn::SegmentationHeadWeights<float, B> weights(const Case& data) {
        return {matrix(up, inputs, 4 * channels), up_bias, matrix(last, 9 * channels, data.classes),
                last_bias};
    }
    nn::SegmentationHeadWeights<const float, B> const_weights(const Case& data) {
        const nn::SegmentationHeadWeights<float, B> w = weights(data);
        return {w.up, w.up_bias, w.last, w.last_bias};
    }
    void step(sluice::BasicStreamRef<B> stream, const Case& data) {
        const std::size_t rows = data.pixels() / 4;
        nn::segmentation_head_gradients(stream, data.shape, const_weights(data), matrix(in, rows, inputs),
                                        labels, gradient, sums, blocks);
        nn::segmentation_head_update(stream, data.shape, weights(data), sums, blocks, factors, loss);
    }
    void predict(const Stream& stream, const Case& data) {
        nn::segmentation_head_predict(stream.ref(), data.shape, const_weights(data),
                                      matrix(in, data.pixels() / 4, inputs), predictions, blocks);
    }
};

inline void scale(std::vector<float>& values, float factor) {
    for (float& value : values)
        value *= factor;
}

/// (before - after) / rate: the gradient that moved a weight.
inline std::vector<double> moved(const std::vector<float>& before, const std::vector<float>& after,
                                 float rate) {
    std::vector<double> result(before.size());
    for (std::size_t i = 0; i < before.size(); ++i)
        result[i] =
            (static_cast<double>(before[i]) - static_cast<double>(after[i])) / static_cast<double>(rate);
    return result;
}

inline void check(const Stream& stream, const Case& data, std::size_t blocks, float rate = 16.0f) {
    CAPTURE(data.shape.height);
    CAPTURE(data.shape.width);
    CAPTURE(data.shape.levels);
    CAPTURE(data.shape.images);
    CAPTURE(data.classes);
    CAPTURE(blocks);
    const Expected expected(data);
    Run run(stream, data, rate, blocks);
    run.predict(stream, data);
    run.step(stream, data);

    const double bound = tolerance(nn::Precision::tf32);
    CHECK(relative_error(host(stream, run.gradient), expected.in_gradient) <= bound);
    CHECK(relative_error(moved(data.up_weights, host(stream, run.up), rate), expected.up) <= bound);
    CHECK(relative_error(moved(data.last_weights, host(stream, run.last), rate), expected.last) <= bound);
    // Of few classes these sums all but cancel, while a rounded weight moves all their terms one way.
    CHECK(relative_error(moved(data.last_bias, host(stream, run.last_bias), rate), expected.last_bias,
                         expected.last_bias_terms) <= 0.1 * bound);
    const auto up_bias = host(stream, run.up_bias);
    CHECK(relative_error(moved(data.up_bias, {up_bias.begin(), up_bias.begin() + channels}, rate),
                         expected.up_bias) <= bound);
    CHECK(repeated({up_bias.begin(), up_bias.begin() + channels}) == up_bias);
    const float loss = host(stream, run.loss)[0];
    if (std::isnan(expected.loss))
        CHECK(std::isnan(loss));
    else
        CHECK(static_cast<double>(loss) == doctest::Approx(expected.loss).epsilon(bound));

    // A prediction may differ from float64's where two classes are as good as equal.
    const auto predictions = host(stream, run.predictions);
    const naive::Images& logits = expected.logits;
    std::size_t wrong = 0;
    for (std::size_t pixel = 0; pixel < data.pixels(); ++pixel) {
        const std::size_t i = pixel / (logits.h * logits.w);
        const std::size_t y = pixel / logits.w % logits.h;
        const std::size_t x = pixel % logits.w;
        REQUIRE(predictions[pixel] < data.classes);
        double greatest = logits.at(i, 0, y, x);
        for (std::size_t j = 1; j < data.classes; ++j)
            greatest = std::max(greatest, logits.at(i, j, y, x));
        wrong += logits.at(i, predictions[pixel], y, x) < greatest - 0.02 ? 1u : 0u;
    }
    CHECK(wrong == 0);
}

} // namespace nn_segmentation_head
