// Convolutions of any kernel, stride and padding, by every implementation, against float64.
#include <array>

#include <nn/conv/conv2d.hpp>

#include "nn/conv_engines.hpp"
#include "nn/naive_resnet.hpp"
#include "nn/steady.hpp"

namespace nn_conv2d {

using namespace nn_test;

namespace {

/// A convolution with random operands, by float64 and by an implementation.
template <class Engine>
class Case {
public:
    using T = typename Engine::T;

    Case(const Engine& engine, Random& random, const nn::Conv2dShape& shape)
        : shape_(shape), allowed_(engine.allowed), uses_heap_(engine.uses_heap),
          conv_({.precision = engine.precision}), in_(rounded<T>(random.numbers(shape.in_size()))),
          weights_(rounded<T>(random.numbers(shape.weight_size(), 0.3f))),
          slope_(rounded<T>(random.numbers(shape.out_size()))), bias_(random.numbers(shape.out_channels)),
          residual_(rounded<T>(random.numbers(shape.out_size()))) {
        conv_.prepare(shape);
    }

    void check(const Stream& stream) {
        const std::size_t taps = shape_.kernel * shape_.kernel;
        const naive::Images in = naive::from_maps(in_, shape_.in_channels, shape_.height, shape_.width);
        const naive::Images slope =
            naive::from_maps(slope_, shape_.out_channels, shape_.out_height(), shape_.out_width());
        const naive::Doubles weight = naive::torch_weight(weights_, shape_.in_channels, taps);
        const naive::Doubles none(shape_.out_channels, 0.0);
        const naive::Images out =
            naive::convolution(in, weight, none, shape_.kernel, shape_.stride, shape_.padding);
        const naive::Gradients expected =
            naive::convolution_gradients(in, weight, slope, shape_.kernel, shape_.stride, shape_.padding);
        Buffer<T> to = poisoned<T>(stream, shape_.out_size());
        conv_.forward(stream, shape_, device_in_, device_weights_, to);
        CHECK(relative_error(floats(host(stream, to)), naive::to_maps(out)) <= allowed_);

        if constexpr (requires { &Engine::Conv::forward_sums; })
            check_sums(stream, naive::to_maps(out));
        Buffer<T> in_slope = poisoned<T>(stream, shape_.in_size());
        conv_.input_gradient(stream, shape_, device_slope_, device_weights_, in_slope);
        CHECK(relative_error(floats(host(stream, in_slope)), naive::to_maps(expected.input)) <= allowed_);

        Buffer<T> weight_slope = poisoned<T>(stream, shape_.weight_size());
        conv_.weight_gradient(stream, shape_, device_in_, device_slope_, weight_slope);
        CHECK(relative_error(floats(host(stream, weight_slope)),
                             naive::own_weight(expected.weight, shape_.in_channels, taps)) <= allowed_);
        check_inference(stream, naive::to_maps(out));
    }

    void check_steady(const Stream& stream) {
        Buffer<T> to = poisoned<T>(stream, shape_.out_size());
        Buffer<T> in_slope = poisoned<T>(stream, shape_.in_size());
        Buffer<T> weight_slope = poisoned<T>(stream, shape_.weight_size());
        nn_test::check_steady(
            stream,
            [&] {
                conv_.forward(stream, shape_, device_in_, device_weights_, to);
                conv_.input_gradient(stream, shape_, device_slope_, device_weights_, in_slope);
                conv_.weight_gradient(stream, shape_, device_in_, device_slope_, weight_slope);
                conv_.forward_bias_relu(stream, shape_, device_in_, device_weights_, device_bias_,
                                        device_residual_, true, to);
            },
            uses_heap_);
    }

private:
    /// Where it is fused.
    void check_sums(const Stream& stream, const naive::Doubles& out) {
        const std::size_t channels = shape_.out_channels;
        naive::Doubles expected(2 * channels, 0.0);
        for (std::size_t j = 0; j < out.size(); ++j) {
            expected[j % channels] += out[j];
            expected[channels + j % channels] += out[j] * out[j];
        }
        Buffer<T> to = poisoned<T>(stream, shape_.out_size());
        Buffer<float> sums = poisoned<float>(stream, 2 * channels);
        if (conv_.forward_sums(stream, shape_, device_in_, device_weights_, to, sums)) {
            CHECK(relative_error(floats(host(stream, to)), out) <= allowed_);
            CHECK(relative_error(host(stream, sums), expected) <= allowed_);
        }
    }

    void check_inference(const Stream& stream, const naive::Doubles& out) {
        for (const bool with_residual : {false, true}) {
            for (const bool relu : {false, true}) {
                CAPTURE(with_residual);
                CAPTURE(relu);
                naive::Doubles expected = out;
                for (std::size_t j = 0; j < out.size(); ++j) {
                    expected[j] += static_cast<double>(bias_[j % shape_.out_channels]);
                    if (with_residual)
                        expected[j] += static_cast<double>(static_cast<float>(residual_[j]));
                    if (relu && expected[j] < 0.0)
                        expected[j] = 0.0;
                }
                Buffer<T> to = poisoned<T>(stream, shape_.out_size());
                conv_.forward_bias_relu(stream, shape_, device_in_, device_weights_, device_bias_,
                                        with_residual ? device_residual_.span() : sluice::DeviceSpan<T, B>{},
                                        relu, to);
                CHECK(relative_error(floats(host(stream, to)), expected) <= allowed_);
            }
        }
    }

    nn::Conv2dShape shape_;
    double allowed_;
    bool uses_heap_;
    typename Engine::Conv conv_;
    std::vector<T> in_;
    std::vector<T> weights_;
    std::vector<T> slope_;
    std::vector<float> bias_;
    std::vector<T> residual_;
    Buffer<T> device_in_ = device(in_);
    Buffer<T> device_weights_ = device(weights_);
    Buffer<T> device_slope_ = device(slope_);
    Buffer<float> device_bias_ = device(bias_);
    Buffer<T> device_residual_ = device(residual_);
};

} // namespace

TEST_CASE("conv2d: a float64 convolution's gradients are its finite differences") {
    NN_TEST_RANDOM(random);
    const std::size_t stride = random.between(1, 2);
    naive::Images in(2, 3, 6, 5);
    in.values = naive::doubles(random.numbers(in.values.size()));
    naive::Doubles weight = naive::doubles(random.numbers(4 * 3 * 9));
    const naive::Doubles none(4, 0.0);
    const naive::Images out = naive::convolution(in, weight, none, 3, stride, 1);
    naive::Images slope = out;
    slope.values = naive::doubles(random.numbers(out.values.size()));
    const naive::Gradients gradients = naive::convolution_gradients(in, weight, slope, 3, stride, 1);
    const auto value = [&] {
        const naive::Images now = naive::convolution(in, weight, none, 3, stride, 1);
        double sum = 0.0;
        for (std::size_t j = 0; j < now.values.size(); ++j)
            sum += now.values[j] * slope.values[j];
        return sum;
    };
    const auto check = [&](naive::Doubles& values, const naive::Doubles& gradient) {
        for (std::size_t j = 0; j < values.size(); j += 7) {
            const double before = values[j];
            values[j] = before + 1e-4;
            const double above = value();
            values[j] = before - 1e-4;
            const double below = value();
            values[j] = before;
            CHECK(gradient[j] == doctest::Approx((above - below) / 2e-4).epsilon(1e-6));
        }
    };
    check(in.values, gradients.input.values);
    check(weight, gradients.weight);
}

TEST_CASE("conv2d: forward, both gradients, and inference with bias, residual and ReLU against float64") {
    NN_TEST_RANDOM(random);
    const Stream stream;
    for_each_engine([&](const auto& engine) {
        INFO(engine.name);
        // Tensor Cores take channels by eights.
        const std::size_t unit = sizeof(typename std::decay_t<decltype(engine)>::T) == 2 ? 8 : 4;
        for (const auto& [kernel, stride, padding] :
             {std::array<std::size_t, 3>{7, 2, 3}, {3, 1, 1}, {3, 2, 1}, {1, 1, 0}, {1, 2, 0}, {2, 1, 0}}) {
            const nn::Conv2dShape shape{random.between(1, 3),
                                        random.between(kernel, 12),
                                        random.between(kernel, 12),
                                        unit * random.between(1, 2),
                                        unit * random.between(1, 3),
                                        kernel,
                                        stride,
                                        padding};
            INFO(nn::to_string(shape));
            Case test(engine, random, shape);
            test.check(stream);
        }
    });
}

TEST_CASE("conv2d: more patches than are gathered at once") {
    NN_TEST_RANDOM(random);
    const Stream stream;
    // On the Host one image's are more than half of that.
    Case test(Engine<nn::PatchConv2d<B>>{"patches", nn::Precision::float32, 1e-5}, random,
              {3, 24, 24, 8, 3, 7, 1, 3});
    test.check(stream);
}

TEST_CASE("conv2d: nothing is allocated after the first calls") {
    NN_TEST_RANDOM(random);
    const Stream stream;
    for_each_engine([&](const auto& engine) {
        INFO(engine.name);
        Case test(engine, random, {2, 9, 8, 8, 16, 3, 2, 1});
        test.check_steady(stream);
    });
}

TEST_CASE("conv2d: sizes that do not fit are refused in one sentence") {
    const Stream stream;
    nn::PatchConv2d<B> conv;
    CHECK(error_of([&] {
              conv.prepare({2, 4, 4, 3, 0, 3, 1, 1});
          }) == "convolution of 2 images of 4 x 4 x 3, 0 outputs, kernel 3, stride 1, padding 1; expected no "
                "size of 0, and maps of at least 1 pixels a side");
    CHECK(error_of([&] {
              conv.prepare({1, 4, 9, 3, 2, 7, 1, 1});
          }).find("at least 5 pixels a side") != std::string::npos);
    const nn::Conv2dShape shape{1, 4, 4, 2, 2, 3, 1, 1};
    Buffer<float> map(32);
    Buffer<float> weights(36);
    CHECK(error_of([&] { conv.forward(stream, shape, map, weights, map.span().first(30)); }) ==
          "convolution: elements of the output: 30 were given, expected 32");
    CHECK(error_of([&] { conv.forward(stream, shape, map, weights, map); }) ==
          "convolution of 1 images of 4 x 4 x 2, 2 outputs, kernel 3, stride 1, padding 1 was not prepared");
}

} // namespace nn_conv2d
