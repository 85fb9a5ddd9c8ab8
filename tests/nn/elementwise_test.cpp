#include <nn/elementwise/elementwise.hpp>
#include <nn/elementwise/maps.hpp>
#include <nn/elementwise/pixels.hpp>
#include <nn/elementwise/sums.hpp>
#include <nn/layers/morton_order.hpp>

#include "nn/naive.hpp"
#include "nn/support.hpp"

namespace nn_elementwise {

using namespace nn_test;

TEST_CASE("elementwise: bias and ReLU") {
    NN_TEST_RANDOM(random);
    const Stream stream;
    const std::size_t rows = random.between(1, 500);
    const std::size_t columns = random.between(1, 40);
    const auto values = random.numbers(rows * columns);
    const auto bias = random.numbers(columns);
    const Buffer<float> bias_buffer = device(bias);
    for (const bool relu : {false, true}) {
        Buffer<float> buffer = device(values);
        nn::add_bias(stream.ref(), matrix(buffer, rows, columns), bias_buffer, relu);
        const auto result = host(stream, buffer);
        for (std::size_t i = 0; i < result.size(); ++i) {
            const float sum = values[i] + bias[i % columns];
            REQUIRE(result[i] == (relu && sum < 0.0f ? 0.0f : sum));
        }
    }
}

TEST_CASE("elementwise: the gradient of a ReLU is cut where the output was not positive") {
    NN_TEST_RANDOM(random);
    const Stream stream;
    // Any number from a multiple of 16 bytes on, then a multiple of four elements from there on, and from beside it.
    const std::size_t fours = 4 * random.between(1, 500);
    const std::vector<std::pair<std::size_t, std::size_t>> cases{
        {0, random.between(1, 2000)}, {0, fours}, {1, fours}};
    for (const auto& [first, size] : cases) {
        auto output = random.numbers(first + size);
        for (float& value : output)
            value = value < 0.0f ? 0.0f : value;
        const auto gradient = random.numbers(output.size());
        Buffer<float> buffer = device(gradient);
        const Buffer<float> outputs = device(output);
        nn::relu_gradient(stream.ref(), outputs.span().subspan(first, size),
                          buffer.span().subspan(first, size));
        const auto result = host(stream, buffer);
        for (std::size_t i = 0; i < result.size(); ++i)
            REQUIRE(result[i] == (i < first || output[i] > 0.0f ? gradient[i] : 0.0f));
    }
}

TEST_CASE("elementwise: uniform numbers are the counted ones, within bounds") {
    NN_TEST_RANDOM(random);
    const Stream stream;
    const sluice::RandomKey key{
        .seed = random.seed(), .epoch = 3, .sample = std::uint64_t{1} << 40, .operation = 7};
    Buffer<float> buffer = poisoned<float>(stream, random.between(1, 3000));
    nn::fill_uniform(stream.ref(), buffer, 0.125f, key);
    const auto result = host(stream, buffer);
    for (std::size_t i = 0; i < result.size(); ++i) {
        sluice::RandomKey mine = key;
        mine.sample += i / 4;
        sluice::CountedRandom numbers{mine};
        float number = numbers.uniform();
        for (std::size_t j = 0; j < i % 4; ++j)
            number = numbers.uniform();
        REQUIRE(result[i] == (2.0f * number - 1.0f) * 0.125f);
        REQUIRE(std::abs(result[i]) <= 0.125f);
    }
}

TEST_CASE("elementwise: repetition") {
    const Stream stream;
    Buffer<float> buffer = device(std::vector<float>{1, 2, 3, 0, 0, 0, 0, 0, 0});
    nn::repeat(stream.ref(), buffer, 3);
    CHECK(host(stream, buffer) == std::vector<float>{1, 2, 3, 1, 2, 3, 1, 2, 3});
    CHECK(error_of([&] { nn::repeat(stream.ref(), buffer, 2); }) ==
          "repeat: 9 elements are no multiple of 2");
}

TEST_CASE("elementwise: steps of weights in several places by one gradient, which is 0 then") {
    NN_TEST_RANDOM(random);
    const Stream stream;
    const std::size_t sizes[] = {random.between(1, 70), random.between(1, 7), 64, random.between(1, 3000)};
    std::vector<std::vector<float>> before;
    std::vector<Buffer<float>> weights;
    std::vector<nn::StepPart> parts;
    std::size_t end = 0;
    for (const std::size_t size : sizes) {
        before.push_back(random.numbers(size));
        weights.push_back(device(before.back()));
        parts.push_back({weights.back().data(), size, end});
        end += (size + 63) / 64 * 64;
    }
    const std::vector<float> gradient = random.numbers(end);
    Buffer<float> buffer = device(gradient);
    const Buffer<float> factors = device(std::vector<float>{-0.25f, 1.0f});
    const Buffer<nn::StepPart> table = device(parts);
    nn::take_steps(stream.ref(), buffer, table, factors);
    for (std::size_t p = 0; p < parts.size(); ++p) {
        const auto after = host(stream, weights[p]);
        for (std::size_t i = 0; i < sizes[p]; ++i) // a product by a power of two is exact
            REQUIRE(after[i] == before[p][i] - 0.25f * gradient[parts[p].begin + i]);
    }
    CHECK(host(stream, buffer) == std::vector<float>(end, 0.0f));

    Buffer<float> odd(6);
    CHECK(error_of([&] { nn::take_steps(stream.ref(), odd, table, factors); }) ==
          "take_steps: 4 parts of a gradient of 6 elements; expected at least one part, and a multiple of 4 "
          "elements");
}

TEST_CASE("elementwise: flipped weights") {
    NN_TEST_RANDOM(random);
    const Stream stream;
    const std::size_t inputs = random.between(1, 20);
    const std::size_t outputs = random.between(1, 20);
    const auto weights = random.numbers(9 * inputs * outputs);
    Buffer<float> from = device(weights);
    Buffer<float> to = poisoned<float>(stream, weights.size());
    nn::flip_weights(stream.ref(), matrix(from, 9 * inputs, outputs), matrix(to, 9 * outputs, inputs));
    const auto flipped = host(stream, to);
    for (std::size_t tap = 0; tap < 9; ++tap)
        for (std::size_t c = 0; c < inputs; ++c)
            for (std::size_t o = 0; o < outputs; ++o)
                REQUIRE(flipped[((8 - tap) * outputs + o) * inputs + c] ==
                        weights[(tap * inputs + c) * outputs + o]);
}

TEST_CASE("elementwise: images become rows in their order") {
    NN_TEST_RANDOM(random);
    const Stream stream;
    const nn::MortonOrder order(4 * random.between(1, 6), 4 * random.between(1, 6), 2);
    const std::size_t images = random.between(1, 3);
    const std::size_t channels = random.between(1, 4);
    const Buffer<std::int32_t> table = device(order.raster_of_row());
    const auto check = [&](const auto& values, float scale) {
        Buffer<float> rows = poisoned<float>(stream, values.size());
        const auto planes = device(values);
        nn::rows_from_images(stream.ref(), planes, table, scale,
                             matrix(rows, images * order.pixels(), channels));
        naive::Images planar(images, channels, order.height(), order.width());
        for (std::size_t i = 0; i < values.size(); ++i) {
            planar.values[i] = static_cast<double>(scale * static_cast<float>(values[i]));
        }
        const auto result = host(stream, rows);
        const auto expected = naive::to_rows(planar, order);
        for (std::size_t i = 0; i < result.size(); ++i)
            REQUIRE(static_cast<double>(result[i]) == expected[i]);
    };
    check(random.bytes(images * channels * order.pixels()), 1.0f / 255.0f);
    check(random.numbers(images * channels * order.pixels()), 2.0f);

    Buffer<float> rows(order.pixels() + 1);
    CHECK(error_of([&] {
              nn::rows_from_images(stream.ref(), rows.span(), table, 1.0f,
                                   matrix(rows, order.pixels() + 1, 1));
          }).find("no multiple of an image's") != std::string::npos);
}

TEST_CASE("elementwise: 3x3 neighbourhoods, zero beyond the border") {
    NN_TEST_RANDOM(random);
    const Stream stream;
    const nn::MortonOrder order(2 * random.between(1, 8), 2 * random.between(1, 8), 1);
    const std::size_t images = random.between(1, 3);
    const std::size_t channels = random.between(1, 9);
    const auto values = random.numbers(images * order.pixels() * channels);
    const Buffer<std::int32_t> table = device(order.neighbours());
    Buffer<float> rows = device(values);
    Buffer<float> gathered = poisoned<float>(stream, 9 * values.size());
    nn::gather_neighbours(stream.ref(), matrix(rows, images * order.pixels(), channels), table,
                          matrix(gathered, images * order.pixels(), 9 * channels));
    const auto result = host(stream, gathered);
    const naive::Images planar = naive::from_rows(values, order, channels);
    for (std::size_t i = 0; i < result.size(); ++i) {
        const std::size_t row = i / (9 * channels);
        const std::size_t tap = i / channels % 9;
        const auto raster = static_cast<std::size_t>(order.raster_of_row()[row % order.pixels()]);
        const std::size_t y = raster / order.width() + tap / 3;
        const std::size_t x = raster % order.width() + tap % 3;
        const bool inside = y >= 1 && y <= order.height() && x >= 1 && x <= order.width();
        const double expected = inside ? planar.at(row / order.pixels(), i % channels, y - 1, x - 1) : 0.0;
        REQUIRE(static_cast<double>(result[i]) == expected);
    }
}

TEST_CASE("elementwise: a bias moves against the sum of its column") {
    NN_TEST_RANDOM(random);
    const Stream stream;
    for (const std::size_t most : {std::size_t{128}, std::size_t{2000}, std::size_t{40000}}) {
        const std::size_t rows = random.between(most / 2, most);
        const std::size_t columns = random.between(1, 20);
        const std::size_t copies = random.between(1, 4);
        const auto gradient = random.numbers(rows * columns);
        const auto once = random.numbers(columns);
        std::vector<float> bias;
        for (std::size_t i = 0; i < copies; ++i)
            bias.insert(bias.end(), once.begin(), once.end());
        Buffer<float> gradient_buffer = device(gradient);
        std::vector<float> first;
        for (int run = 0; run < 2; ++run) {
            Buffer<float> bias_buffer = device(bias);
            Buffer<double> scratch = poisoned<double>(stream, nn::sum_scratch(rows, columns));
            const Buffer<float> rate = device(std::vector<float>{0.5f});
            Buffer<float> factors = poisoned<float>(stream, 2);
            nn::descent_factors(stream.ref(), rate, factors);
            CHECK(host(stream, factors) == std::vector<float>{-0.5f, 1.0f});
            nn::update_bias(stream.ref(), matrix(gradient_buffer, rows, columns), bias_buffer, factors,
                            scratch);
            const auto result = host(stream, bias_buffer);
            if (run == 0)
                first = result;
            CHECK(result == first);
        }
        std::vector<double> expected = naive::doubles(bias);
        for (std::size_t i = 0; i < gradient.size(); ++i) {
            for (std::size_t copy = 0; copy < copies; ++copy) {
                expected[copy * columns + i % columns] -= 0.5 * static_cast<double>(gradient[i]);
            }
        }
        CHECK(relative_error(first, expected) <= 1e-6);
    }
}

TEST_CASE("elementwise: the mean, and what it refuses") {
    NN_TEST_RANDOM(random);
    const Stream stream;
    const auto values = random.numbers(random.between(1, 100000));
    double sum = 0.0;
    for (const float value : values)
        sum += static_cast<double>(value);
    Buffer<float> result = poisoned<float>(stream, 1);
    Buffer<double> scratch = poisoned<double>(stream, nn::sum_scratch(values.size(), 1));
    const Buffer<float> numbers = device(values);
    nn::mean(stream.ref(), numbers, result, scratch);
    CHECK(static_cast<double>(host(stream, result)[0]) ==
          doctest::Approx(sum / static_cast<double>(values.size())).epsilon(1e-5).scale(0.01));
    const Buffer<float> longer(200);
    Buffer<double> short_scratch(1);
    CHECK(error_of([&] { nn::mean(stream.ref(), longer, result, short_scratch); }) ==
          "mean: scratch memory of 1 elements was given, expected at least 2");
}

TEST_CASE("elementwise: images get further channels, which are 0") {
    NN_TEST_RANDOM(random);
    const Stream stream;
    const std::size_t pixels = random.between(1, 5000);
    const auto values = random.numbers(3 * pixels);
    const Buffer<float> images = device(values);
    for (const std::size_t channels : {std::size_t{3}, std::size_t{4}, std::size_t{8}}) {
        Buffer<float> padded = poisoned<float>(stream, channels * pixels);
        Buffer<nn::Half> halves = poisoned<nn::Half>(stream, channels * pixels);
        Buffer<nn::Half> again = poisoned<nn::Half>(stream, channels * pixels);
        const nn::Matrix<const float, B> from(images, pixels, 3);
        nn::pad_channels<float, float>(stream.ref(), from, {padded, pixels, channels});
        nn::pad_channels<nn::Half, float>(stream.ref(), from, {halves, pixels, channels});
        const auto result = host(stream, padded);
        const auto rounded = host(stream, halves);
        for (std::size_t i = 0; i < result.size(); ++i) {
            const std::size_t c = i % channels;
            const float expected = c < 3 ? values[i / channels * 3 + c] : 0.0f;
            REQUIRE(result[i] == expected);
            REQUIRE(rounded[i].bits() == nn::Half(expected).bits());
        }
        nn::pad_channels<nn::Half, nn::Half>(stream.ref(), {halves, pixels, channels},
                                             {again, pixels, channels});
        const auto copied = host(stream, again);
        for (std::size_t i = 0; i < copied.size(); ++i)
            REQUIRE(copied[i].bits() == rounded[i].bits());
    }
    Buffer<float> narrow(2 * pixels);
    CHECK(error_of([&] {
              nn::pad_channels<float, float>(stream.ref(), {images, pixels, 3}, {narrow, pixels, 2});
          }) == "pad_channels: " + std::to_string(pixels) + " pixels of 3 channels are to become " +
                    std::to_string(pixels) + " of 2; expected as many pixels, and as many channels or more");
}

} // namespace nn_elementwise
