// The layers against convolutions in float64: forward, data gradient, weight and bias gradient.
#include <nn/conv/convolution_3x3.hpp>
#include <nn/layers/layer.hpp>
#include <nn/layers/morton_order.hpp>

#include "nn/naive.hpp"
#include "nn/support.hpp"

namespace nn_layer {

using namespace nn_test;
using naive::doubles;

namespace {

/// A layer's random weights, in PyTorch's layout.
std::vector<nn::NamedTensor> draw_weights(Random& random, const nn::LayerShape& shape) {
    return {{"layer.weight", shape.torch_shape(), random.numbers(shape.rows() * shape.columns(), 0.3f)},
            {"layer.bias", {shape.outputs()}, random.numbers(shape.outputs())}};
}

/// `before - rate * gradient`, which is what an update leaves.
std::vector<double> moved(const std::vector<float>& before, const naive::Doubles& gradient, double rate) {
    std::vector<double> after = doubles(before);
    for (std::size_t i = 0; i < after.size(); ++i)
        after[i] -= rate * gradient[i];
    return after;
}

constexpr float rate = 0.5f;
// As descent_factors leaves them.
const std::vector<float> factors{-rate, 1.0f};

/// Sends random images through `layer` and back, and checks all that comes out.
template <class Layer>
void check_layer(Random& random, nn::Precision precision, const nn::LayerShape& shape, Layer& layer,
                 const nn::MortonOrder& in_order, const nn::MortonOrder& out_order, std::size_t images,
                 const auto& forward, const auto& gradients, const auto& backward) {
    const Stream stream;
    nn::Gemm<B> gemm(precision);
    const auto weights = draw_weights(random, shape);
    layer.load(stream, "layer", weights);

    const std::size_t in_rows = images * in_order.pixels();
    const std::size_t out_rows = images * out_order.pixels();
    const auto in = random.numbers(in_rows * shape.inputs());
    const auto out_gradient = random.numbers(out_rows * shape.outputs());
    Buffer<float> in_buffer = device(in);
    Buffer<float> out_gradient_buffer = device(out_gradient);
    Buffer<float> out_buffer = poisoned<float>(stream, out_gradient.size());
    Buffer<float> in_gradient_buffer = poisoned<float>(stream, in.size());
    Buffer<double> scratch = poisoned<double>(stream, layer.scratch_size(out_gradient.size()));

    layer.forward(stream, gemm, matrix(in_buffer, in_rows, shape.inputs()),
                  matrix(out_buffer, out_rows, shape.outputs()));
    backward(stream, gemm, matrix(in_buffer, in_rows, shape.inputs()),
             matrix(out_gradient_buffer, out_rows, shape.outputs()),
             matrix(in_gradient_buffer, in_rows, shape.inputs()), scratch.span());
    std::vector<nn::NamedTensor> after;
    layer.save(stream, "layer", after);

    const naive::Images planar = naive::from_rows(in, in_order, shape.inputs());
    const naive::Images out = forward(planar, doubles(weights[0].values), doubles(weights[1].values));
    const naive::Gradients expected = gradients(planar, doubles(weights[0].values),
                                                naive::from_rows(out_gradient, out_order, shape.outputs()));
    const double allowed = tolerance(precision);
    CHECK(relative_error(host(stream, out_buffer), naive::to_rows(out, out_order)) <= allowed);
    CHECK(relative_error(host(stream, in_gradient_buffer), naive::to_rows(expected.input, in_order)) <=
          allowed);
    CHECK(after[0].shape == weights[0].shape);
    CHECK(relative_error(after[0].values, moved(weights[0].values, expected.weight, rate)) <= allowed);
    CHECK(relative_error(after[1].values, moved(weights[1].values, expected.bias, rate)) <= 1e-5);
}

/// A Layer with the forward that check_layer calls.
struct PlainLayer : nn::Layer<B> {
    using nn::Layer<B>::Layer;
    void forward(sluice::BasicStreamRef<B> stream, nn::Gemm<B>& gemm, nn::Matrix<const float, B> in,
                 nn::Matrix<float, B> out) {
        nn::Layer<B>::forward(stream, gemm, in, out, false);
    }
};

/// A Layer's backward pass: the gradient with the old weights, then the update.
auto backward_of(nn::Layer<B>& layer) {
    return [&layer](sluice::BasicStreamRef<B> stream, nn::Gemm<B>& gemm, nn::Matrix<const float, B> in,
                    nn::Matrix<const float, B> out_gradient, nn::Matrix<float, B> in_gradient,
                    sluice::DeviceSpan<double, B> scratch) {
        layer.input_gradient(stream, gemm, out_gradient, in_gradient);
        const Buffer<float> on_device = device(factors);
        layer.update(stream, gemm, in, out_gradient, on_device, scratch);
        stream.sync(); // before the factors go
    };
}

/// Random sizes of a small map that can be halved once more.
struct Sizes {
    std::size_t height, width, inputs, outputs, images;
    explicit Sizes(Random& random)
        : height(2 * random.between(1, 6)), width(2 * random.between(1, 6)), inputs(random.between(1, 9)),
          outputs(random.between(1, 9)), images(random.between(1, 3)) {}
};

} // namespace

TEST_CASE("layer: 1x1 and 2x2 convolution of stride 2") {
    NN_TEST_RANDOM(random);
    for (const nn::Precision precision : precisions) {
        for (const std::size_t kernel : {std::size_t{1}, std::size_t{2}}) {
            const Sizes sizes(random);
            const nn::MortonOrder fine(sizes.height, sizes.width, 1);
            const nn::MortonOrder coarse(sizes.height / 2, sizes.width / 2, 0);
            const auto shape = nn::LayerShape::convolution(sizes.inputs, sizes.outputs, kernel);
            PlainLayer layer(shape, sluice::RandomKey{});
            check_layer(
                random, precision, shape, layer, fine, kernel == 1 ? fine : coarse, sizes.images,
                [&](const auto& in, const auto& weight, const auto& bias) {
                    return naive::convolution(in, weight, bias, kernel, kernel, 0);
                },
                [&](const auto& in, const auto& weight, const auto& out_gradient) {
                    return naive::convolution_gradients(in, weight, out_gradient, kernel, kernel, 0);
                },
                backward_of(layer));
        }
    }
}

TEST_CASE("layer: 2x2 transposed convolution of stride 2") {
    NN_TEST_RANDOM(random);
    for (const nn::Precision precision : precisions) {
        const Sizes sizes(random);
        const nn::MortonOrder fine(sizes.height, sizes.width, 1);
        const nn::MortonOrder coarse(sizes.height / 2, sizes.width / 2, 0);
        const auto shape = nn::LayerShape::transposed_convolution(sizes.inputs, sizes.outputs, 2);
        PlainLayer layer(shape, sluice::RandomKey{});
        check_layer(
            random, precision, shape, layer, coarse, fine, sizes.images,
            [&](const auto& in, const auto& weight, const auto& bias) {
                return naive::transposed_convolution(in, weight, bias, 2);
            },
            [&](const auto& in, const auto& weight, const auto& out_gradient) {
                return naive::transposed_convolution_gradients(in, weight, out_gradient, 2);
            },
            backward_of(layer));
    }
}

TEST_CASE("layer: 3x3 convolution") {
    NN_TEST_RANDOM(random);
    for (const nn::Precision precision : precisions) {
        const Sizes sizes(random);
        const nn::MortonOrder order(sizes.height, sizes.width, 1);
        const auto shape = nn::LayerShape::convolution(sizes.inputs, sizes.outputs, 3);
        // Made for more images than it is given.
        nn::Convolution3x3<B> layer(order, sizes.inputs, sizes.outputs, sizes.images + 1,
                                    sluice::RandomKey{});
        check_layer(
            random, precision, shape, layer, order, order, sizes.images,
            [&](const auto& in, const auto& weight, const auto& bias) {
                return naive::convolution(in, weight, bias, 3, 1, 1);
            },
            [&](const auto& in, const auto& weight, const auto& out_gradient) {
                return naive::convolution_gradients(in, weight, out_gradient, 3, 1, 1);
            },
            [&](sluice::BasicStreamRef<B> stream, nn::Gemm<B>& gemm, nn::Matrix<const float, B>,
                nn::Matrix<const float, B> out_gradient, nn::Matrix<float, B> in_gradient,
                sluice::DeviceSpan<double, B> scratch) {
                const Buffer<float> on_device = device(factors);
                layer.backward(stream, gemm, out_gradient, in_gradient, on_device, scratch);
                stream.sync(); // before the factors go
            });
    }
}

TEST_CASE("layer: first weights are PyTorch's in distribution, the same for the same key, other ones for "
          "another") {
    NN_TEST_RANDOM(random);
    const Stream stream;
    const auto shape = nn::LayerShape::transposed_convolution(40, 30, 2);
    const auto weights = [&](std::uint64_t seed, std::size_t index) {
        std::vector<nn::NamedTensor> tensors;
        nn::Layer<B>(shape, nn::layer_key(seed, 1, index)).save(stream, "a", tensors);
        return tensors;
    };
    const auto first = weights(random.seed(), 0);
    const double bound = 1.0 / std::sqrt(120.0);
    double sum = 0.0;
    double squares = 0.0;
    for (const float value : first[0].values) {
        REQUIRE(std::abs(static_cast<double>(value)) <= bound * 1.000001);
        sum += static_cast<double>(value);
        squares += static_cast<double>(value) * static_cast<double>(value);
    }
    const double count = static_cast<double>(first[0].values.size());
    CHECK(std::abs(sum / count) < 6.0 * bound / std::sqrt(3.0 * count));
    CHECK(squares / count == doctest::Approx(bound * bound / 3.0).epsilon(0.1));
    CHECK(first[1].shape == std::vector<std::size_t>{30});
    CHECK(first[1].values[0] != first[0].values[0]); // numbers of their own, not the weights'
    CHECK(weights(random.seed(), 0)[0].values == first[0].values);
    CHECK(weights(random.seed(), 0)[1].values == first[1].values);
    CHECK(weights(random.seed(), 1)[0].values != first[0].values);
    CHECK(weights(random.seed() + 1, 0)[0].values != first[0].values);
}

TEST_CASE("layer: weights that are missing or of another shape are refused, and nothing changes") {
    const Stream stream;
    const auto shape = nn::LayerShape::convolution(2, 3, 2);
    nn::Layer<B> layer(shape, sluice::RandomKey{});
    std::vector<nn::NamedTensor> before;
    layer.save(stream, "4", before);
    std::vector<nn::NamedTensor> other = before;
    other[0].values.assign(other[0].values.size(), 0.0f);
    other[1].name = "5.bias";
    CHECK(error_of([&] { layer.load(stream, "4", other); }) == "weights: there is no tensor named 4.bias");
    other[1] = {"4.bias", {4}, {0, 0, 0, 0}};
    CHECK(error_of([&] { layer.load(stream, "4", other); }) ==
          "weights: 4.bias has the shape [4], expected [3]");
    std::vector<nn::NamedTensor> after;
    layer.save(stream, "4", after);
    CHECK(after[0].values == before[0].values);
}

} // namespace nn_layer
