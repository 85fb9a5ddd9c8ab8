// Batch normalisation with what follows it, forward and backward, against float64; float and Half.
#include <nn/norm/batch_norm.hpp>

#include "nn/conv_engines.hpp"
#include "nn/naive_resnet.hpp"

namespace nn_batch_norm {

using namespace nn_test;

namespace {

/// A layer's parameters and statistics in device memory.
struct Layer {
    std::vector<float> weight, bias, running_mean, running_variance;
    Buffer<float> device_weight = device(weight);
    Buffer<float> device_bias = device(bias);
    Buffer<float> device_running_mean = device(running_mean);
    Buffer<float> device_running_variance = device(running_variance);
    Buffer<float> mean, inverse, scale, fused;
    Buffer<double> scratch;

    Layer(Random& random, const Stream& stream, std::size_t rows, std::size_t channels)
        : weight(random.numbers(channels)), bias(random.numbers(channels)),
          running_mean(random.numbers(channels)), running_variance(channels, 1.5f),
          mean(poisoned<float>(stream, channels)), inverse(poisoned<float>(stream, channels)),
          scale(poisoned<float>(stream, channels)), fused(poisoned<float>(stream, channels)),
          scratch(poisoned<double>(stream, nn::batch_norm_scratch(rows, channels))) {
        stream.sync(); // a layer may go before anything else waits
    }

    nn::BatchNorm<B> norm() {
        return {device_weight, device_bias, device_running_mean, device_running_variance, mean, inverse,
                scale,         fused};
    }
};

/// Random elements about `mean`.
template <class T>
std::vector<T> map_values(Random& random, std::size_t count, float mean) {
    std::vector<float> values = random.numbers(count);
    for (float& value : values)
        value += mean;
    return rounded<T>(values);
}

template <class T>
nn::Matrix<T, B> as_matrix(Buffer<T>& map, std::size_t channels) {
    return {map, map.size() / channels, channels};
}

/// What is asked of results that are stored as `T`.
template <class T>
constexpr double allowed = sizeof(T) == 2 ? 2e-3 : 1e-5;

/// Channels that are taken 16 bytes at a time, and some that are not.
std::size_t draw_channels(Random& random) {
    return random.between(0, 1) == 0 ? random.between(1, 40) : 8 * random.between(1, 80);
}

template <class T>
void check_statistics(Random& random, float mean) {
    const Stream stream;
    const std::size_t channels = draw_channels(random);
    const std::size_t rows = random.between(2, on_device ? 5000 : 300);
    CAPTURE(channels);
    CAPTURE(rows);
    const std::vector<T> values = map_values<T>(random, rows * channels, mean);
    const naive::Images images = naive::from_maps(values, channels, 1, 1);
    Layer layer(random, stream, rows, channels);
    const naive::Norm expected(images, naive::doubles(layer.weight), naive::doubles(layer.bias), 1e-3);
    Buffer<T> map = device(values);
    nn::batch_norm_statistics<T>(stream.ref(), as_matrix(map, channels), layer.norm(),
                                 {.epsilon = 1e-3f, .momentum = 0.25f}, layer.scratch);
    CHECK(relative_error(host(stream, layer.mean), expected.mean) <= 1e-5);
    CHECK(relative_error(host(stream, layer.inverse), expected.inverse) <= 1e-5);
    naive::Doubles running_mean(channels);
    naive::Doubles running_variance(channels);
    for (std::size_t c = 0; c < channels; ++c) {
        const auto n = static_cast<double>(rows);
        running_mean[c] = 0.75 * static_cast<double>(layer.running_mean[c]) + 0.25 * expected.mean[c];
        running_variance[c] = 0.75 * 1.5 + 0.25 * expected.variance[c] * n / (n - 1.0);
    }
    CHECK(relative_error(host(stream, layer.device_running_mean), running_mean) <= 1e-5);
    CHECK(relative_error(host(stream, layer.device_running_variance), running_variance) <= 1e-5);

    Buffer<T> out = poisoned<T>(stream, values.size());
    nn::scale_bias_relu<T, T>(stream.ref(), as_matrix(map, channels), layer.scale, layer.fused, {}, false,
                              as_matrix(out, channels));
    CHECK(relative_error(floats(host(stream, out)), naive::to_maps(expected.out)) <=
          allowed<T> * (1.0 + static_cast<double>(mean)));
}

enum class After { nothing, relu, relu_of_sum };

template <class T>
void check_gradients(Random& random, After after, bool with_other, bool in_place) {
    const Stream stream;
    const std::size_t channels = draw_channels(random);
    const std::size_t rows = random.between(2, on_device ? 3000 : 200);
    const std::vector<T> values = map_values<T>(random, rows * channels, 0.5f);
    const std::vector<T> slope = rounded<T>(random.numbers(values.size()));
    const std::vector<T> other = rounded<T>(random.numbers(values.size()));
    Layer layer(random, stream, rows, channels);
    Buffer<T> map = device(values);
    nn::batch_norm_statistics<T>(stream.ref(), as_matrix(map, channels), layer.norm(), {}, layer.scratch);
    Buffer<T> relu_output = device(rounded<T>(random.numbers(values.size())));
    if (after == After::relu)
        nn::scale_bias_relu<T, T>(stream.ref(), as_matrix(map, channels), layer.scale, layer.fused, {}, true,
                                  as_matrix(relu_output, channels));
    const std::vector<T> output = host(stream, relu_output);
    const naive::Norm norm(naive::from_maps(values, channels, 1, 1), naive::doubles(layer.weight),
                           naive::doubles(layer.bias), 1e-5);
    std::vector<float> joined = floats(slope);
    for (std::size_t j = 0; j < joined.size(); ++j) {
        if (with_other)
            joined[j] += static_cast<float>(other[j]);
        if (after != After::nothing && static_cast<float>(output[j]) <= 0.0f)
            joined[j] = 0.0f;
        joined[j] = static_cast<float>(static_cast<T>(joined[j]));
    }
    const naive::Gradients expected =
        norm.gradients(naive::from_maps(joined, channels, 1, 1), naive::doubles(layer.weight));

    Buffer<T> gradient = device(slope);
    Buffer<T> second = device(other);
    Buffer<T> in_gradient = poisoned<T>(stream, values.size());
    Buffer<float> weight_slope = poisoned<float>(stream, channels);
    Buffer<float> bias_slope = poisoned<float>(stream, channels);
    nn::BatchNormGradients<T, B> gradients{.in = as_matrix(map, channels),
                                           .relu = after == After::relu,
                                           .gradient = gradient,
                                           .in_gradient = in_place ? gradient.span() : in_gradient.span(),
                                           .weight_gradient = weight_slope,
                                           .bias_gradient = bias_slope};
    if (after == After::relu_of_sum)
        gradients.relu_output = relu_output;
    if (with_other)
        gradients.other_gradient = second;
    nn::batch_norm_backward<T>(stream.ref(), layer.norm(), gradients, layer.scratch);
    CHECK(relative_error(host(stream, weight_slope), expected.weight) <= 1e-4);
    CHECK(relative_error(host(stream, bias_slope), expected.bias) <= 1e-4);
    // In relation to the gradient's first term: of few rows the three of them nearly cancel.
    naive::Doubles scale(joined.size());
    for (std::size_t j = 0; j < joined.size(); ++j) {
        const std::size_t c = j % channels;
        scale[j] = static_cast<double>(joined[j]) * static_cast<double>(layer.weight[c]) * norm.inverse[c];
    }
    CHECK(relative_error(floats(host(stream, in_place ? gradient : in_gradient)),
                         naive::to_maps(expected.input), scale) <= 3 * allowed<T>);
    if (!in_place)
        CHECK(floats(host(stream, gradient)) == (after == After::relu ? floats(slope) : joined));
}

template <class T>
void check_residual(Random& random) {
    const Stream stream;
    const std::size_t channels = draw_channels(random);
    const std::size_t rows = random.between(1, 50);
    const std::vector<T> values = map_values<T>(random, rows * channels, 0.0f);
    const std::vector<T> added = map_values<T>(random, rows * channels, 0.0f);
    const std::vector<float> scale = random.numbers(channels);
    const std::vector<float> bias = random.numbers(channels);
    for (const bool scaled : {false, true}) {
        naive::Doubles expected(values.size());
        for (std::size_t j = 0; j < values.size(); ++j) {
            const auto s = static_cast<double>(scale[j % channels]);
            const auto b = static_cast<double>(bias[j % channels]);
            const auto r = static_cast<double>(static_cast<float>(added[j]));
            const double sum =
                s * static_cast<double>(static_cast<float>(values[j])) + b + (scaled ? s * r + b : r);
            expected[j] = sum > 0.0 ? sum : 0.0;
        }
        Buffer<T> map = device(values);
        Buffer<T> residual = device(added);
        const Buffer<float> device_scale = device(scale);
        const Buffer<float> device_bias = device(bias);
        nn::Residual<T, B> second{.maps = residual};
        if (scaled)
            second = {residual, device_scale, device_bias};
        nn::scale_bias_relu<T, T>(stream.ref(), as_matrix(map, channels), device_scale, device_bias, second,
                                  true, as_matrix(map, channels));
        CHECK(relative_error(floats(host(stream, map)), expected) <= allowed<T>);
    }
}

} // namespace

TEST_CASE("batch norm: a float64 one's gradients are its finite differences") {
    NN_TEST_RANDOM(random);
    naive::Images in(3, 2, 2, 2);
    in.values = naive::doubles(random.numbers(in.values.size()));
    naive::Doubles weight = naive::doubles(random.numbers(2));
    naive::Doubles bias = naive::doubles(random.numbers(2));
    naive::Images slope = in;
    slope.values = naive::doubles(random.numbers(in.values.size()));
    const naive::Gradients gradients = naive::Norm(in, weight, bias, 0.1).gradients(slope, weight);
    const auto value = [&] {
        const naive::Norm norm(in, weight, bias, 0.1);
        double sum = 0.0;
        for (std::size_t j = 0; j < in.values.size(); ++j)
            sum += norm.out.values[j] * slope.values[j];
        return sum;
    };
    const auto check = [&](naive::Doubles& values, const naive::Doubles& gradient) {
        for (std::size_t j = 0; j < values.size(); ++j) {
            const double before = values[j];
            values[j] = before + 1e-4;
            const double above = value();
            values[j] = before - 1e-4;
            const double below = value();
            values[j] = before;
            CHECK(std::abs(gradient[j] - (above - below) / 2e-4) <= 1e-6);
        }
    };
    check(in.values, gradients.input.values);
    check(weight, gradients.weight);
    check(bias, gradients.bias);
}

TEST_CASE("batch norm: statistics, running statistics and the normalised map against float64") {
    NN_TEST_RANDOM(random);
    for (int round = 0; round < 4; ++round) {
        check_statistics<float>(random, 0.25f);
        check_statistics<nn::Half>(random, 0.25f);
    }
    // A variance of 1 about a mean of 1,000: sums of squares in float32 would lose it.
    check_statistics<float>(random, 1000.0f);
}

TEST_CASE("batch norm: gradients against float64, with a ReLU, a second gradient, and in place") {
    NN_TEST_RANDOM(random);
    for (int which = 0; which < 8; ++which) {
        CAPTURE(which);
        const After after = (which & 1) != 0 ? After::relu_of_sum : After::nothing;
        check_gradients<float>(random, after, (which & 2) != 0, (which & 4) != 0);
        check_gradients<nn::Half>(random, after, (which & 2) != 0, (which & 4) != 0);
    }
    for (const bool in_place : {false, true}) {
        check_gradients<float>(random, After::relu, false, in_place);
        check_gradients<nn::Half>(random, After::relu, false, in_place);
    }
}

TEST_CASE("batch norm: a ReLU of the map alone has no second gradient") {
    NN_TEST_RANDOM(random);
    const Stream stream;
    Layer layer(random, stream, 2, 8);
    Buffer<float> map = device(std::vector<float>(16, 1.0f));
    Buffer<float> sums(8);
    const nn::BatchNormGradients<float, B> gradients{.in = as_matrix(map, 8),
                                                     .relu = true,
                                                     .gradient = map,
                                                     .other_gradient = map,
                                                     .in_gradient = map,
                                                     .weight_gradient = sums,
                                                     .bias_gradient = sums};
    CHECK_THROWS_WITH_AS(
        nn::batch_norm_backward<float>(stream.ref(), layer.norm(), gradients, layer.scratch),
        "batch norm: `relu` beside a ReLU's output or a second gradient; expected `relu` alone",
        sluice::Error);
}

TEST_CASE("batch norm: a residual is added, plain or normalised, before the ReLU") {
    NN_TEST_RANDOM(random);
    for (int round = 0; round < 3; ++round) {
        check_residual<float>(random);
        check_residual<nn::Half>(random);
    }
}

TEST_CASE("batch norm: statistics from sums are those of the elements") {
    NN_TEST_RANDOM(random);
    const Stream stream;
    const std::size_t channels = random.between(1, 30);
    const std::size_t rows = random.between(50, 200);
    const std::vector<float> values = map_values<float>(random, rows * channels, 0.5f);
    std::vector<float> sums(2 * channels, 0.0f);
    for (std::size_t j = 0; j < values.size(); ++j) {
        sums[j % channels] += values[j];
        sums[channels + j % channels] += values[j] * values[j];
    }
    Layer one(random, stream, rows, channels);
    Buffer<float> map = device(values);
    nn::batch_norm_statistics<float>(stream.ref(), as_matrix(map, channels), one.norm(), {}, one.scratch);
    const auto mean = host(stream, one.mean);
    const auto scale = host(stream, one.scale);
    const auto bias = host(stream, one.fused);
    one.device_running_mean = device(one.running_mean);
    const Buffer<float> device_sums = device(sums);
    nn::batch_norm_from_sums(stream.ref(), device_sums, rows, one.norm(), {});
    CHECK(relative_error(host(stream, one.mean), mean) <= 1e-5);
    CHECK(relative_error(host(stream, one.scale), scale) <= 1e-3);
    CHECK(relative_error(host(stream, one.fused), bias) <= 1e-3);
}

TEST_CASE("batch norm: inference uses the running statistics, also folded into weights") {
    NN_TEST_RANDOM(random);
    const Stream stream;
    const std::size_t channels = random.between(1, 30);
    Layer layer(random, stream, 2, channels);
    nn::batch_norm_inference(stream.ref(), layer.norm(), {.epsilon = 0.5f});
    const std::vector<float> weights = random.numbers(channels * 5);
    const Buffer<float> device_weights = device(weights);
    Buffer<float> folded = poisoned<float>(stream, weights.size());
    nn::fold_weights<float>(stream.ref(), {device_weights, channels, 5}, layer.scale, folded);
    naive::Doubles scale(channels), bias(channels), expected(weights.size());
    for (std::size_t c = 0; c < channels; ++c) {
        scale[c] = static_cast<double>(layer.weight[c]) / std::sqrt(2.0);
        bias[c] = static_cast<double>(layer.bias[c]) - scale[c] * static_cast<double>(layer.running_mean[c]);
        for (std::size_t i = 0; i < 5; ++i)
            expected[c * 5 + i] = scale[c] * static_cast<double>(weights[c * 5 + i]);
    }
    CHECK(relative_error(host(stream, layer.scale), scale) <= 1e-6);
    CHECK(relative_error(host(stream, layer.fused), bias) <= 1e-6);
    CHECK(relative_error(host(stream, folded), expected) <= 1e-6);
}

TEST_CASE("batch norm: a bias's gradient is the sum over the rows") {
    NN_TEST_RANDOM(random);
    const Stream stream;
    const std::size_t channels = random.between(1, 1100);
    const std::size_t rows = random.between(1, 90);
    const auto values = random.numbers(rows * channels);
    naive::Doubles expected(channels, 0.0);
    for (std::size_t j = 0; j < values.size(); ++j)
        expected[j % channels] += static_cast<double>(values[j]);
    Buffer<float> slope = device(values);
    Buffer<float> sums = poisoned<float>(stream, channels);
    Buffer<double> scratch = poisoned<double>(stream, nn::batch_norm_scratch(rows, channels));
    nn::bias_gradient<float>(stream.ref(), as_matrix(slope, channels), sums, scratch);
    CHECK(relative_error(host(stream, sums), expected) <= 1e-5);
}

TEST_CASE("batch norm: sizes that do not fit are refused in one sentence") {
    NN_TEST_RANDOM(random);
    const Stream stream;
    Layer layer(random, stream, 4, 8);
    Buffer<float> map(32);
    CHECK(error_of([&] {
              nn::batch_norm_statistics<float>(stream.ref(), {map, 8, 4}, layer.norm(), {}, layer.scratch);
          }) == "batch norm: channels: 8 were given, expected 4");
    CHECK(error_of([&] {
              nn::batch_norm_statistics<float>(stream.ref(), {map.span().first(8), 1, 8}, layer.norm(), {},
                                               layer.scratch);
          }) == "batch norm: 1 value for each channel; training expects at least 2");
    CHECK(error_of([&] {
              nn::batch_norm_statistics<float>(stream.ref(), {map, 4, 8}, layer.norm(), {},
                                               layer.scratch.span().first(3));
          }) == "batch norm: 3 elements of scratch; expected at least 16");
    CHECK(error_of([&] {
              nn::scale_bias_relu<float, float>(stream.ref(), {map, 4, 8}, layer.scale.span().first(7), {},
                                                {}, false, {map, 4, 8});
          }) == "scale_bias_relu: elements of the scale: 7 were given, expected 8");
}

} // namespace nn_batch_norm
