// The pools of a ResNet, forward and backward, against float64; float and Half.
#include <nn/pool/pool.hpp>

#include "nn/conv_engines.hpp"
#include "nn/naive_resnet.hpp"

namespace nn_pool {

using namespace nn_test;

namespace {

template <class T>
constexpr double allowed = sizeof(T) == 2 ? 2e-3 : 1e-5;

nn::MapShape draw(Random& random) {
    return {random.between(1, 33), random.between(1, 11), 4 * random.between(1, 12)};
}

template <class T>
void check_max_pool(Random& random, bool with_other) {
    const Stream stream;
    const nn::MapShape shape = draw(random);
    const nn::MapShape pooled = nn::pooled_shape(shape);
    const std::size_t images = random.between(1, 3);
    const std::vector<T> values = rounded<T>(random.numbers(images * shape.size()));
    const std::vector<float> scale = random.numbers(shape.channels);
    const std::vector<float> bias = random.numbers(shape.channels);
    const std::vector<T> slope = rounded<T>(random.numbers(images * pooled.size()));
    const std::vector<T> other = rounded<T>(random.numbers(slope.size()));
    naive::Images activated = naive::from_maps(values, shape.channels, shape.height, shape.width);
    for (std::size_t j = 0; j < activated.values.size(); ++j) {
        const std::size_t c = j / shape.pixels() % shape.channels;
        // In float, as the kernel does: of nearly equal elements both must choose the same.
        const float product = static_cast<float>(activated.values[j]) * scale[c];
        activated.values[j] = static_cast<double>(product + bias[c]);
    }
    naive::relu(activated);
    std::vector<std::size_t> from;
    const naive::Images expected = naive::max_pool(activated, from);
    naive::Images joined = naive::from_maps(slope, shape.channels, pooled.height, pooled.width);
    if (with_other)
        naive::add(joined, naive::from_maps(other, shape.channels, pooled.height, pooled.width));
    naive::Images unpooled(images, shape.channels, shape.height, shape.width);
    for (std::size_t j = 0; j < from.size(); ++j)
        unpooled.values[from[j]] += joined.values[j];
    naive::relu_slope(activated, unpooled);

    const Buffer<T> in = device(values);
    const Buffer<float> device_scale = device(scale);
    const Buffer<float> device_bias = device(bias);
    Buffer<T> out = poisoned<T>(stream, slope.size());
    Buffer<std::uint8_t> taps = poisoned<std::uint8_t>(stream, slope.size());
    nn::max_pool_relu<T>(stream.ref(), in, shape, device_scale, device_bias, out, taps);
    CHECK(relative_error(floats(host(stream, out)), naive::to_maps(expected)) <= allowed<T>);
    const Buffer<T> device_slope = device(slope);
    const Buffer<T> device_other = device(other);
    Buffer<T> in_slope = poisoned<T>(stream, values.size());
    nn::max_pool_relu_gradient<T>(stream.ref(), device_slope,
                                  with_other ? device_other.span() : sluice::DeviceSpan<const T, B>{}, taps,
                                  shape, in_slope);
    CHECK(relative_error(floats(host(stream, in_slope)), naive::to_maps(unpooled)) <= allowed<T>);
}

template <class T>
void check_average_pool(Random& random) {
    const Stream stream;
    const nn::MapShape shape = draw(random);
    const std::size_t images = random.between(1, 4);
    const std::vector<T> values = rounded<T>(random.numbers(images * shape.size()));
    const std::vector<T> slope = rounded<T>(random.numbers(images * shape.channels));
    const auto pixels = static_cast<double>(shape.pixels());
    naive::Doubles means(slope.size(), 0.0);
    naive::Doubles spread(values.size());
    for (std::size_t j = 0; j < values.size(); ++j) {
        const std::size_t of = j / shape.size() * shape.channels + j % shape.channels;
        means[of] += static_cast<double>(static_cast<float>(values[j])) / pixels;
        spread[j] = static_cast<double>(static_cast<float>(slope[of])) / pixels;
    }
    const Buffer<T> in = device(values);
    Buffer<T> out = poisoned<T>(stream, slope.size());
    nn::average_pool<T>(stream.ref(), in, shape, out);
    CHECK(relative_error(floats(host(stream, out)), means) <= allowed<T>);
    const Buffer<T> device_slope = device(slope);
    Buffer<T> in_slope = poisoned<T>(stream, values.size());
    nn::average_pool_gradient<T>(stream.ref(), device_slope, shape, in_slope);
    CHECK(relative_error(floats(host(stream, in_slope)), spread) <= allowed<T>);
}

} // namespace

TEST_CASE("pool: max pool after scale, bias and ReLU, and its gradient of one or two parts") {
    NN_TEST_RANDOM(random);
    for (int round = 0; round < 4; ++round) {
        check_max_pool<float>(random, round % 2 == 1);
        check_max_pool<nn::Half>(random, round % 2 == 1);
    }
}

TEST_CASE("pool: a pool of zeros sends its gradient nowhere, and NaN wins") {
    const Stream stream;
    const nn::MapShape shape{1, 2, 2};
    const Buffer<float> in = device(std::vector<float>{-1.0f, std::nanf(""), -2.0f, 5.0f});
    const Buffer<float> bias = device(std::vector<float>{0.0f, 0.0f});
    Buffer<float> out = poisoned<float>(stream, 2);
    Buffer<std::uint8_t> taps = poisoned<std::uint8_t>(stream, 2);
    sluice::fill_bytes(stream, taps, 0);
    nn::max_pool_relu<float>(stream.ref(), in, shape, {}, bias, out, taps);
    CHECK(host(stream, taps) == std::vector<std::uint8_t>{nn::no_tap, 4});
    CHECK(host(stream, out)[0] == 0.0f);
    CHECK(std::isnan(host(stream, out)[1]));
    const Buffer<float> slope = device(std::vector<float>{3.0f, 4.0f});
    Buffer<float> in_slope = poisoned<float>(stream, 4);
    nn::max_pool_relu_gradient<float>(stream.ref(), slope, {}, taps, shape, in_slope);
    CHECK(host(stream, in_slope) == std::vector<float>{0.0f, 4.0f, 0.0f, 0.0f});
}

TEST_CASE("pool: the mean over a map, and its gradient") {
    NN_TEST_RANDOM(random);
    for (int round = 0; round < 3; ++round) {
        check_average_pool<float>(random);
        check_average_pool<nn::Half>(random);
    }
}

TEST_CASE("pool: sizes that do not fit are refused in one sentence") {
    const Stream stream;
    Buffer<float> map(32);
    Buffer<std::uint8_t> taps(8);
    CHECK(error_of([&] {
              nn::max_pool_relu<float>(stream.ref(), map, {4, 4, 2}, {}, map.span().first(2),
                                       map.span().first(9), taps);
          }) == "max pool: elements of the output: 9 were given, expected 8");
    CHECK(error_of([&] {
              nn::average_pool<float>(stream.ref(), map, {3, 4, 2}, map);
          }) == "average pool: 32 elements are no maps of 3 x 4 pixels of 2 channels");
}

} // namespace nn_pool
