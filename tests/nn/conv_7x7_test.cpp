// The kernels of a residual network's first convolution, against float64.
#include <nn/conv/conv_7x7.hpp>

#include "nn/conv_engines.hpp"
#include "nn/naive_resnet.hpp"

namespace nn_conv_7x7 {

using namespace nn_test;
using nn::Half;

namespace {

constexpr nn::Conv2dShape shape_of(std::size_t images, std::size_t height, std::size_t width) {
    return {images, height, width, 4, 64, 7, 2, 3};
}

/// Of each channel its sum, then of each the sum of its squares.
struct Sums {
    naive::Doubles sums = naive::Doubles(128, 0.0);

    explicit Sums(const std::vector<Half>& out) {
        for (std::size_t i = 0; i < out.size(); ++i) {
            const double value = static_cast<float>(out[i]);
            sums[i % 64] += value;
            sums[64 + i % 64] += value * value;
        }
    }
};

void check(Random& random, const nn::Conv2dShape& shape) {
    CAPTURE(nn::to_string(shape));
    REQUIRE(nn::supports_conv_7x7(shape));
    const std::vector<Half> in = rounded<Half>(random.numbers(shape.in_size()));
    const std::vector<Half> weights = rounded<Half>(random.numbers(shape.weight_size(), 0.3f));
    const std::vector<Half> slope = rounded<Half>(random.numbers(shape.out_size()));
    const naive::Images images = naive::from_maps(in, 4, shape.height, shape.width);
    const naive::Doubles weight = naive::torch_weight(weights, 4, 49);
    const naive::Images expected =
        naive::convolution(images, weight, naive::Doubles(64, 0.0), 7, shape.stride, shape.padding);
    const naive::Gradients gradients = naive::convolution_gradients(
        images, weight, naive::from_maps(slope, 64, shape.out_height(), shape.out_width()), 7, shape.stride,
        shape.padding);

    const Stream stream;
    const Buffer<Half> device_in = device(in), device_weights = device(weights), device_slope = device(slope);
    Buffer<float> scratch = poisoned<float>(stream, nn::conv_7x7_scratch());
    Buffer<Half> out = poisoned<Half>(stream, shape.out_size());
    Buffer<float> sums = poisoned<float>(stream, 128);
    nn::conv_7x7_sums(stream, shape, device_in, device_weights, out, sums, scratch);
    const std::vector<Half> stored = host(stream, out);
    CHECK(relative_error(floats(stored), naive::to_maps(expected)) <= 1e-3);
    const Sums of_stored(stored);
    const std::vector<float> found = host(stream, sums);
    for (std::size_t i = 0; i < 128; ++i) {
        CAPTURE(i);
        CHECK(std::abs(found[i] - of_stored.sums[i]) <= 1e-4 * std::max(1.0, of_stored.sums[64 + i % 64]));
    }

    Buffer<Half> weight_slope = poisoned<Half>(stream, shape.weight_size());
    scratch = poisoned<float>(stream, nn::conv_7x7_scratch());
    nn::conv_7x7_weight_gradient(stream, shape, device_in, device_slope, weight_slope, scratch);
    CHECK(relative_error(floats(host(stream, weight_slope)), naive::own_weight(gradients.weight, 4, 49)) <=
          1e-3);
}

} // namespace

TEST_CASE(
    "conv_7x7: output, sums and gradient of the weights are float64's, on whole and on cut-off strips") {
    NN_TEST_RANDOM(random);
    check(random, shape_of(1, 2, 32));
    check(random, shape_of(1, 16, 32));
    check(random, shape_of(3, 38, 64));
    check(random, shape_of(2, 30, 256));
    check(random, shape_of(2, 224, 224));
    check(random, shape_of(150, 16, 32)); // more strips than multiprocessors
}

TEST_CASE("conv_7x7: the same bits in every run") {
    NN_TEST_RANDOM(random);
    const nn::Conv2dShape shape = shape_of(40, 64, 96);
    const Stream stream;
    const Buffer<Half> in = device(rounded<Half>(random.numbers(shape.in_size())));
    const Buffer<Half> weights = device(rounded<Half>(random.numbers(shape.weight_size(), 0.3f)));
    Buffer<float> scratch(nn::conv_7x7_scratch());
    std::vector<std::vector<float>> first;
    for (int run = 0; run < 20; ++run) {
        Buffer<Half> out = poisoned<Half>(stream, shape.out_size());
        Buffer<Half> weight_slope = poisoned<Half>(stream, shape.weight_size());
        Buffer<float> sums = poisoned<float>(stream, 128);
        nn::conv_7x7_sums(stream, shape, in, weights, out, sums, scratch);
        nn::conv_7x7_weight_gradient(stream, shape, in, out, weight_slope, scratch);
        const std::vector<std::vector<float>> results = {floats(host(stream, out)), host(stream, sums),
                                                         floats(host(stream, weight_slope))};
        if (run == 0)
            first = results;
        CHECK(results == first);
    }
}

TEST_CASE("conv_7x7: shapes and sizes that do not fit are refused in one sentence") {
    CHECK(!nn::supports_conv_7x7({1, 32, 32, 8, 64, 7, 2, 3}));
    CHECK(!nn::supports_conv_7x7({1, 32, 32, 4, 64, 3, 2, 1}));
    CHECK(!nn::supports_conv_7x7(shape_of(1, 32, 40)));
    CHECK(!nn::supports_conv_7x7(shape_of(1, 31, 32)));
    const nn::Conv2dShape shape = shape_of(1, 32, 32);
    const Stream stream;
    Buffer<Half> in(shape.in_size()), weights(shape.weight_size()), out(shape.out_size());
    Buffer<float> sums(128), scratch(nn::conv_7x7_scratch());
    CHECK(
        error_of([&] { nn::conv_7x7_sums(stream, shape_of(1, 32, 40), in, weights, out, sums, scratch); }) ==
        "conv_7x7_sums: no kernel takes 1 images of 32 x 40 x 4, 64 outputs, kernel 7, stride 2, padding 3");
    CHECK(error_of([&] {
              nn::conv_7x7_sums(stream, shape, in.span().first(8), weights, out, sums, scratch);
          }) == "convolution: elements of the input: 8 were given, expected 4096");
    CHECK(error_of([&] {
              nn::conv_7x7_weight_gradient(stream, shape, in, out, weights, scratch.span().first(7));
          }) == "conv_7x7_weight_gradient: 7 floats of scratch memory; expected " +
                    std::to_string(nn::conv_7x7_scratch()));
}

} // namespace nn_conv_7x7
