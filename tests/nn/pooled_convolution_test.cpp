// What a detector is made of: patches, pools, biases of bfloat16, fused convolutions and the layer.
#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include <nn/conv/pooled_convolution.hpp>
#include <nn/elementwise/elementwise.hpp>
#include <nn/elementwise/maps.hpp>
#include <nn/elementwise/sums.hpp>

#include "nn/detector_case.hpp"
#include "nn/naive_detector.hpp"

namespace nn_pooled_convolution {

using namespace nn_test;
using nn::Bfloat16;

namespace {

/// Channels last, as operators take them, from planar images.
naive::Doubles channels_last(const naive::Images& images) {
    return naive::to_rows(images, nn::MortonOrder(images.h, images.w, 0));
}

template <class T>
naive::Images planar(const std::vector<T>& maps, const nn::MapShape& shape) {
    const naive::Doubles values = widened(maps);
    return naive::from_rows(values, nn::MortonOrder(shape.height, shape.width, 0), shape.channels);
}

nn::MapShape draw_shape(Random& random) {
    return {2 * random.between(1, 6), 2 * random.between(1, 6), random.between(1, 7)};
}

} // namespace

TEST_CASE_TEMPLATE("pooled convolution: patches and their sums against a convolution", T, float, Bfloat16) {
    NN_TEST_RANDOM(random);
    const Stream stream;
    const nn::MapShape shape = draw_shape(random);
    const std::size_t images = random.between(1, 3);
    const std::size_t rows = images * shape.pixels();
    const auto maps = rounded<T>(random.numbers(images * shape.size()));
    const Buffer<T> input = device(maps);
    Buffer<T> patches = poisoned<T>(stream, 9 * maps.size());
    const nn::Matrix<T, B> matrix{patches, rows, 9 * shape.channels};
    nn::gather_patches<T>(stream.ref(), input, shape, matrix);
    const auto gathered = widened(host(stream, patches));
    const naive::Images in = planar(maps, shape);
    std::vector<double> expected(gathered.size(), 0.0);
    for (std::size_t row = 0; row < rows; ++row) {
        const std::size_t y = row / shape.width % shape.height;
        const std::size_t x = row % shape.width;
        for (std::size_t i = 0; i < 9 * shape.channels; ++i) {
            const std::size_t yi = y + i / shape.channels / 3;
            const std::size_t xi = x + i / shape.channels % 3;
            if (yi >= 1 && yi <= shape.height && xi >= 1 && xi <= shape.width) {
                expected[row * 9 * shape.channels + i] =
                    in.at(row / shape.pixels(), i % shape.channels, yi - 1, xi - 1);
            }
        }
    }
    CHECK(gathered == expected);

    // The backward pass is the transpose: <gather(a), b> = <a, sum(b)>.
    const auto gradient = rounded<T>(random.numbers(patches.size()));
    const Buffer<T> gradients = device(gradient);
    Buffer<T> sums = poisoned<T>(stream, maps.size());
    nn::sum_patches<T>(stream.ref(), nn::Matrix<const T, B>{gradients, rows, 9 * shape.channels}, shape,
                       sums);
    naive::Doubles summed(maps.size(), 0.0);
    for (std::size_t i = 0; i < gradient.size(); ++i) {
        const std::size_t row = i / (9 * shape.channels);
        const std::size_t tap = i / shape.channels % 9;
        const std::size_t y = row / shape.width % shape.height + tap / 3;
        const std::size_t x = row % shape.width + tap % 3;
        if (y >= 1 && y <= shape.height && x >= 1 && x <= shape.width) {
            const std::size_t pixel = (row / shape.pixels() * shape.height + y - 1) * shape.width + x - 1;
            summed[pixel * shape.channels + i % shape.channels] +=
                static_cast<double>(static_cast<float>(gradient[i]));
        }
    }
    CHECK(relative_error(widened(host(stream, sums)), summed) <= element_tolerance<T>());

    const nn::MapShape grey{shape.height, shape.width, 1};
    const auto bytes = random.bytes(rows);
    const Buffer<std::uint8_t> pixels = device(bytes);
    Buffer<T> byte_patches = poisoned<T>(stream, 9 * rows);
    nn::gather_patches<T>(stream.ref(), pixels, grey, 0.25f, nn::Matrix<T, B>{byte_patches, rows, 9});
    const auto result = widened(host(stream, byte_patches));
    for (std::size_t row = 0; row < rows;
         ++row) // the pixel itself; a quarter of a byte is exact in either type
        CHECK(result[9 * row + 4] == 0.25 * static_cast<double>(bytes[row]));
}

TEST_CASE_TEMPLATE("pooled convolution: pools, and gradients through them", T, float, Bfloat16) {
    NN_TEST_RANDOM(random);
    const Stream stream;
    const nn::MapShape shape = draw_shape(random);
    const std::size_t images = random.between(1, 3);
    // Few different values, so that pools with equal ones are common.
    std::vector<float> values;
    for (const std::uint8_t byte : random.bytes(images * shape.size(), 5))
        values.push_back(static_cast<float>(byte) - 2.0f);
    const auto bias = random.numbers(shape.channels);
    Buffer<T> maps = device(rounded<T>(values));
    const Buffer<float> bias_buffer = device(bias);
    Buffer<T> pooled = poisoned<T>(stream, values.size() / 4);
    nn::pool_relu<T>(stream.ref(), maps, shape, bias_buffer, pooled);
    naive::Images in = planar(rounded<T>(values), shape);
    const naive::Images plain = in;
    for (std::size_t i = 0; i < in.values.size(); ++i)
        in.values[i] += static_cast<double>(bias[i / shape.pixels() % shape.channels]);
    const naive::Pooled expected = naive::pool_relu(in);
    CHECK(relative_error(widened(host(stream, pooled)), channels_last(expected.maps)) <=
          element_tolerance<T>());

    const auto gradient = rounded<T>(random.numbers(pooled.size()));
    Buffer<T> gradients = device(gradient);
    nn::relu_gradient(stream.ref(), pooled, gradients);
    nn::unpool_gradient<T>(stream.ref(), gradients, shape, maps);
    const nn::MapShape half{shape.height / 2, shape.width / 2, shape.channels};
    const naive::Images routed = naive::unpool(expected, plain, planar(gradient, half).values);
    CHECK(widened(host(stream, maps)) == channels_last(routed));
}

TEST_CASE("pooled convolution: NaN survives a pool") {
    const Stream stream;
    for (std::size_t place = 0; place < 4; ++place) {
        std::vector<float> values{1.0f, -1.0f, 2.0f, 0.5f};
        values[place] = NAN;
        const Buffer<float> maps = device(values);
        const Buffer<float> bias = device(std::vector<float>{1.0f});
        Buffer<float> pooled = device(std::vector<float>{0.0f}); // no NaN yet
        nn::pool_relu<float>(stream.ref(), maps, {2, 2, 1}, bias, pooled);
        CHECK(std::isnan(host(stream, pooled)[0]));
    }
}

TEST_CASE("pooled convolution: bias and its descent in bfloat16") {
    NN_TEST_RANDOM(random);
    const Stream stream;
    const std::size_t rows = random.between(1, 700);
    const std::size_t columns = random.between(1, 9);
    const auto values = rounded<Bfloat16>(random.numbers(rows * columns));
    const auto bias = random.numbers(columns);
    Buffer<Bfloat16> matrix = device(values);
    Buffer<float> bias_buffer = device(bias);
    nn::add_bias(stream.ref(), nn::Matrix<Bfloat16, B>{matrix, rows, columns}, bias_buffer, true);
    naive::Doubles expected = widened(values);
    naive::Doubles moved = naive::doubles(bias);
    for (std::size_t i = 0; i < expected.size(); ++i) {
        moved[i % columns] -= 0.5 * expected[i];
        expected[i] = std::max(expected[i] + static_cast<double>(bias[i % columns]), 0.0);
    }
    CHECK(relative_error(widened(host(stream, matrix)), expected) <= 1e-2);
    const Buffer<Bfloat16> gradient = device(values);
    const Buffer<float> factors = device(std::vector<float>{-0.5f, 1.0f});
    Buffer<double> scratch(nn::sum_scratch(rows, columns));
    nn::update_bias(stream.ref(), nn::Matrix<const Bfloat16, B>{gradient, rows, columns}, bias_buffer,
                    factors, scratch);
    CHECK(relative_error(host(stream, bias_buffer), moved) <= 1e-5);
}

namespace {

/// Multiples of 1/8, within ±4.
std::vector<float> coarse(std::vector<float> values) {
    for (float& value : values)
        value = std::clamp(std::round(value * 8.0f), -32.0f, 32.0f) / 8.0f;
    return values;
}

naive::Doubles difference(const std::vector<float>& a, const std::vector<float>& b) {
    naive::Doubles result = naive::doubles(a);
    for (std::size_t i = 0; i < result.size(); ++i)
        result[i] -= static_cast<double>(b[i]);
    return result;
}

/// What the sums of a convolution with a pool would be if nothing cancelled: errors of roundings are as large as that has them.
naive::Doubles uncancelled(naive::Images in, naive::Doubles weight, naive::Doubles bias) {
    for (naive::Doubles* const values : {&in.values, &weight, &bias}) {
        for (double& value : *values)
            value = std::abs(value);
    }
    return channels_last(naive::pool_relu(naive::convolution(in, weight, bias, 3, 1, 1)).maps);
}

/// What a layer of elements `T` should do, and what it does, forward and back. `From` is `T`, or a byte for images.
template <class T, class From>
void check_layer(Random& random, const nn::MapShape& shape, std::size_t outputs, std::size_t batch,
                 std::size_t images) {
    CAPTURE(shape.height);
    CAPTURE(shape.width);
    CAPTURE(shape.channels);
    CAPTURE(outputs);
    CAPTURE(images);
    constexpr bool bytes = std::is_same_v<From, std::uint8_t>;
    constexpr float scale = 1.0f / 64.0f; // exact
    const Stream stream;
    nn::Gemm<B> gemm;
    nn::PooledConvolution<T, B> layer(shape, outputs, batch, bytes, scale, {.seed = random.seed()});
    nn::ConvolutionWorkspace<T, B> workspace(layer.workspace_sizes());
    // Of few digits, as the maps are: all sums are exact, in either type of factors and in any order, so that of
    // elements of a pool that are nearly equal, or equal, the same one is the greatest everywhere.
    std::vector<nn::NamedTensor> before;
    layer.save(stream, "w", before);
    for (float& value : before[0].values)
        value = std::round(value * 64.0f) / 64.0f;
    layer.load(stream, "w", before);

    std::vector<From> maps;
    if constexpr (bytes)
        maps = random.bytes(images * shape.size());
    else
        maps = rounded<T>(coarse(random.numbers(images * shape.size())));
    naive::Images in = planar(maps, shape);
    for (double& value : in.values)
        value *= bytes ? static_cast<double>(scale) : 1.0;
    const Buffer<From> input = device(maps);
    Buffer<T> pooled = poisoned<T>(stream, images * layer.out().size());
    // What the backward pass needs of the forward pass is kept, or found again.
    Buffer<std::uint32_t> kept =
        poisoned<std::uint32_t>(stream, random.between(0, 1) == 1 ? layer.kept_words(images) : 0);
    layer.forward(stream.ref(), gemm, input.span(), pooled.span(), workspace, kept.span());

    const naive::Doubles weight = naive::doubles(before[0].values);
    const naive::Doubles bias = naive::doubles(before[1].values);
    const naive::Images convolved = naive::convolution(in, weight, bias, 3, 1, 1);
    // Rounded before the bias is added, which may nearly cancel it.
    CHECK(relative_error(widened(host(stream, pooled)), channels_last(naive::pool_relu(convolved).maps),
                         uncancelled(in, weight, bias)) <= element_tolerance<T>());

    // Which element of a pool is the greatest is found among rounded ones, without the bias.
    naive::Images found = naive::convolution(in, weight, naive::Doubles(outputs, 0.0), 3, 1, 1);
    for (double& value : found.values)
        value = static_cast<double>(static_cast<float>(T(static_cast<float>(value))));
    naive::Pooled chosen = naive::pool_relu(found);
    chosen.maps = planar(host(stream, pooled), layer.out());
    const auto gradient = rounded<T>(random.numbers(pooled.size()));
    const naive::Images routed = naive::unpool(chosen, found, planar(gradient, layer.out()).values);
    const naive::Gradients expected = naive::convolution_gradients(in, weight, routed, 3, 1, 1);
    Buffer<T> gradients = device(gradient);
    Buffer<T> in_gradients = poisoned<T>(stream, maps.size());
    const Buffer<float> factors = device(std::vector<float>{-1.0f, 1.0f});
    layer.backward(stream.ref(), gemm, input.span(), std::as_const(pooled).span(), gradients.span(),
                   bytes ? sluice::DeviceSpan<T, B>{} : in_gradients.span(), factors.span(), workspace,
                   std::as_const(kept).span());
    std::vector<nn::NamedTensor> after;
    layer.save(stream, "w", after);
    for (std::size_t i = 0; i < 2; ++i) {
        CAPTURE(i);
        CHECK(relative_error(difference(before[i].values, after[i].values),
                             i == 0 ? expected.weight : expected.bias) <= element_tolerance<T>());
    }
    if (!bytes) {
        CHECK(relative_error(widened(host(stream, in_gradients)), channels_last(expected.input)) <=
              element_tolerance<T>());
    }
    // The kernels' own copies of the weights follow the update, which is large, and makes sums that nearly cancel.
    layer.forward(stream.ref(), gemm, input.span(), pooled.span(), workspace);
    const naive::Doubles next_weight = naive::doubles(after[0].values);
    const naive::Doubles next_bias = naive::doubles(after[1].values);
    const naive::Images next = naive::convolution(in, next_weight, next_bias, 3, 1, 1);
    CHECK(relative_error(widened(host(stream, pooled)), channels_last(naive::pool_relu(next).maps),
                         uncancelled(in, next_weight, next_bias)) <= element_tolerance<T>());
}

} // namespace

TEST_CASE_TEMPLATE("pooled convolution: convolution and pool of any channels", T, float, Bfloat16) {
    NN_TEST_RANDOM(random);
    for (int round = 0; round < 4; ++round) {
        const nn::MapShape shape = draw_shape(random);
        const std::size_t batch = random.between(1, 4);
        const std::size_t images = random.between(1, batch);
        check_layer<T, T>(random, shape, random.between(1, 6), batch, images);
        check_layer<T, std::uint8_t>(random, {shape.height, shape.width, 1}, random.between(1, 6), batch,
                                     images);
    }
}

// On a device these are the kernels that pool before they write; elsewhere, and in float32, the general way.
TEST_CASE_TEMPLATE("pooled convolution: convolution and pool of the channels that have kernels", T, float,
                   Bfloat16) {
    NN_TEST_RANDOM(random);
    // Sides that are whole tiles, parts of a tile, and one more than a tile.
    const auto side = [&](std::size_t tile) {
        return std::array{tile, 2 * random.between(1, tile / 2), tile + 2}[random.between(0, 2)];
    };
    for (int round = 0; round < (on_device ? 3 : 1); ++round) {
        check_layer<T, std::uint8_t>(random, {side(8), side(16), 1}, 4, 3, random.between(1, 3));
        check_layer<T, std::uint8_t>(random, {side(8), side(16), 1}, 8, 3, random.between(1, 3));
        check_layer<T, T>(random, {side(16), side(64), 4}, 16, 2, random.between(1, 2));
        check_layer<T, T>(random, {side(8), side(16), 4}, 32, 2, random.between(1, 2));
    }
    check_layer<T, T>(random, {side(16), side(16), 16}, 64, 2, random.between(1, 2));
    // The general way does with these what it does with fewer channels; the plain loops take most of the test's time.
    if (nn::has_conv_fprop<Bfloat16, B>) {
        check_layer<T, T>(random, {side(8), side(16), 32}, 128, 2, random.between(1, 2));
        check_layer<T, T>(random, {side(16), side(16), 64}, 64, 2, random.between(1, 2));
        check_layer<T, T>(random, {side(16), side(16), 64}, 256, 1, 1);
    }
}

TEST_CASE("pooled convolution: of many maps each is convolved as alone") {
    NN_TEST_RANDOM(random);
    const Stream stream;
    // On a device so many that a block takes one group of channels after another.
    const std::size_t images = nn::has_conv_fprop<Bfloat16, B> ? 2048 : 4;
    const nn::MapShape shape{2, 4, 64};
    nn::Gemm<B> gemm;
    const nn::PooledConvolution<Bfloat16, B> layer(shape, 128, images, false, 1.0f, {.seed = random.seed()});
    nn::ConvolutionWorkspace<Bfloat16, B> workspace(layer.workspace_sizes());
    const auto few = rounded<Bfloat16>(random.numbers(3 * shape.size()));
    const auto convolve = [&](std::size_t count) {
        std::vector<Bfloat16> maps;
        for (std::size_t i = 0; i < count * shape.size(); ++i)
            maps.push_back(few[i % few.size()]);
        const Buffer<Bfloat16> input = device(maps);
        Buffer<Bfloat16> pooled = poisoned<Bfloat16>(stream, count * layer.out().size());
        Buffer<std::uint32_t> kept = poisoned<std::uint32_t>(stream, layer.kept_words(count));
        layer.forward(stream.ref(), gemm, input.span(), pooled.span(), workspace, kept.span());
        return std::pair{widened(host(stream, pooled)), host(stream, kept)};
    };
    const auto [pooled, kept] = convolve(3);
    const auto [all_pooled, all_kept] = convolve(images);
    bool equal = true;
    for (std::size_t i = 0; i < all_pooled.size(); ++i)
        equal = equal && all_pooled[i] == pooled[i % pooled.size()];
    CHECK(equal);
    for (std::size_t i = 0; i < all_kept.size(); ++i)
        equal = equal && all_kept[i] == kept[i % kept.size()];
    CHECK(equal);
}

#if SLUICE_TEST_CUDA
TEST_CASE("pooled convolution: gradients without kernels, and sizes that do not fit, are refused") {
    const Stream stream;
    const nn::MapShape shape{4, 4, 16};
    const Buffer<Bfloat16> maps(shape.size());
    const Buffer<Bfloat16> pooled_gradient(4 * 64);
    const Buffer<std::uint32_t> routes(nn::route_words(pooled_gradient.size()));
    Buffer<float> parts(nn::gradient_parts(16, 64) * 9 * 16 * 64);
    Buffer<float> bias_parts(64);
    CHECK(error_of([&] {
              nn::conv_wgrad(stream, maps, {4, 4, 32}, pooled_gradient, routes, 64,
                             nn::Matrix<float, B>{parts, parts.size(), 1},
                             nn::Matrix<float, B>{bias_parts, 1, 64});
          }) == "conv_wgrad: no kernel takes maps of 32 channels convolved to 64");
    CHECK(error_of([&] {
              nn::conv_wgrad(stream, maps, shape, pooled_gradient, routes, 64,
                             nn::Matrix<float, B>{parts, parts.size(), 1},
                             nn::Matrix<float, B>{bias_parts, 1, 64});
          }) == "conv_wgrad: elements of the bias's parts: 64 were given, expected 33792");
    Buffer<Bfloat16> gradient(maps.size());
    const Buffer<std::uint32_t> flipped(nn::flipped_weight_words(16, 64));
    CHECK(error_of([&] {
              nn::conv_dgrad(stream, pooled_gradient, routes.span().first(31), shape, 64, flipped, gradient);
          }) == "conv_dgrad: words of routes: 31 were given, expected 32");
}
#endif

} // namespace nn_pooled_convolution
