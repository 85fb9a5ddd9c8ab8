// The encoder's first layers of the published channels, which a device computes in one kernel each way, against float64.
//
// Images and weights are small integers, so that up to the last layer nothing is rounded anywhere, in TF32 neither:
// every ReLU decides as in float64, and the gradients can be compared.
#include <algorithm>
#include <cmath>

#include <nn/models/encoder.hpp>

#include "nn/naive.hpp"
#include "nn/steady.hpp"
#include "nn/support.hpp"

namespace nn_stem {

using namespace nn_test;

namespace {

nn::EncoderOptions draw(Random& random, nn::Precision precision) {
    return {.height = 8 * random.between(1, 4),
            .width = 8 * random.between(1, 4),
            .channels = {16, 32, 64, random.between(1, 9)},
            .batch = random.between(1, 4),
            .image_scale = 0.5f,
            .trainable = true,
            .precision = precision,
            .seed = random.seed()};
}

/// The same images as bytes and as numbers, from an aligned address on or from one beside it.
class DrawnImages {
public:
    DrawnImages(Random& random, std::size_t size, bool aligned)
        : size_(size), shift_(aligned ? 0 : random.between(1, 3)), drawn_(random.bytes(shift_ + size, 5)),
          bytes_(device(drawn_)), numbers_(device(std::vector<float>(drawn_.begin(), drawn_.end()))) {}

    std::vector<std::uint8_t> values() const {
        return {drawn_.end() - static_cast<std::ptrdiff_t>(size_), drawn_.end()};
    }
    auto bytes() const { return bytes_.span().subspan(shift_, size_); }
    auto numbers() const { return numbers_.span().subspan(shift_, size_); }

private:
    std::size_t size_;
    std::size_t shift_;
    std::vector<std::uint8_t> drawn_;
    Buffer<std::uint8_t> bytes_;
    Buffer<float> numbers_;
};

/// Weights -1, 0 and 1, most of them 0.
void make_small(Random& random, std::vector<nn::NamedTensor>& weights) {
    for (nn::NamedTensor& tensor : weights) {
        for (float& value : tensor.values) {
            const std::size_t drawn = random.between(0, 7);
            value = drawn == 0 ? -1.0f : drawn == 1 ? 1.0f : 0.0f;
        }
    }
}

/// The maps before each layer, the first one of images, and the last one's output.
std::vector<naive::Images> naive_maps(const std::vector<std::uint8_t>& images,
                                      const nn::EncoderOptions& options,
                                      const std::vector<nn::NamedTensor>& weights) {
    std::vector<naive::Images> maps;
    maps.emplace_back(images.size() / (3 * options.height * options.width), 3, options.height, options.width);
    for (std::size_t i = 0; i < images.size(); ++i)
        maps[0].values[i] = static_cast<double>(options.image_scale) * static_cast<double>(images[i]);
    for (std::size_t i = 0; i < options.channels.size(); ++i) {
        const std::size_t kernel = i == 0 ? 1 : 2;
        maps.push_back(naive::convolution(maps[i], naive::doubles(weights[2 * i].values),
                                          naive::doubles(weights[2 * i + 1].values), kernel, kernel, 0));
        if (i + 1 == options.channels.size())
            break;
        for (double& value : maps.back().values)
            value = std::max(value, 0.0);
    }
    return maps;
}

/// The gradients of the weights and biases, in their order.
std::vector<naive::Doubles> naive_gradients(const std::vector<naive::Images>& maps,
                                            const nn::EncoderOptions& options,
                                            const std::vector<nn::NamedTensor>& weights,
                                            naive::Images gradient) {
    std::vector<naive::Doubles> result(weights.size());
    for (std::size_t i = options.channels.size(); i-- > 0;) {
        const std::size_t kernel = i == 0 ? 1 : 2;
        naive::Gradients gradients = naive::convolution_gradients(
            maps[i], naive::doubles(weights[2 * i].values), gradient, kernel, kernel, 0);
        result[2 * i] = gradients.weight;
        result[2 * i + 1] = gradients.bias;
        gradient = gradients.input;
        for (std::size_t j = 0; j < gradient.values.size(); ++j)
            gradient.values[j] = maps[i].values[j] > 0.0 ? gradient.values[j] : 0.0;
    }
    return result;
}

} // namespace

TEST_CASE("stem: features and the step of every layer against float64, bytes or numbers, aligned or not") {
    NN_TEST_RANDOM(random);
    for (const nn::Precision precision : precisions) {
        for (const bool aligned : {true, false}) {
            const nn::EncoderOptions options = draw(random, precision);
            nn::Encoder<B> encoder(options);
            const Stream stream;
            auto weights = encoder.weights(stream);
            make_small(random, weights);
            const std::size_t images = random.between(1, options.batch);
            const DrawnImages drawn(random, images * encoder.image_size(), aligned);
            const auto features_gradient = random.numbers(images * encoder.features_size());
            const Buffer<float> gradient = device(features_gradient);
            const float learning_rate = 1.0f / 64.0f;
            const Buffer<float> factors = device(std::vector<float>{-learning_rate, 1.0f});

            const auto maps = naive_maps(drawn.values(), options, weights);
            const nn::MortonOrder raster(maps.back().h, maps.back().w, 0);
            const auto gradients = naive_gradients(
                maps, options, weights, naive::from_rows(features_gradient, raster, maps.back().c));
            std::vector<std::vector<nn::NamedTensor>> results;
            for (const bool numbers : {false, true}) {
                encoder.load(stream, weights);
                Buffer<float> features = poisoned<float>(stream, images * encoder.features_size());
                if (numbers) {
                    encoder.forward(stream, drawn.numbers(), features);
                } else {
                    encoder.forward(stream, drawn.bytes(), features);
                }
                encoder.backward(stream, gradient, factors);
                CHECK(relative_error(host(stream, features), naive::to_rows(maps.back(), raster)) <=
                      tolerance(precision));
                results.push_back(encoder.weights(stream));
                for (std::size_t i = 0; i < weights.size(); ++i) {
                    INFO(weights[i].name);
                    std::vector<double> step(weights[i].values.size());
                    double rounding = 0.0; // of the new weights, beside which the step may be small
                    double norm = 0.0;
                    for (std::size_t j = 0; j < step.size(); ++j) {
                        const auto weight = static_cast<double>(results.back()[i].values[j]);
                        step[j] = (static_cast<double>(weights[i].values[j]) - weight) /
                                  static_cast<double>(learning_rate);
                        rounding += std::pow(0x1p-24 * weight / static_cast<double>(learning_rate), 2);
                        norm += gradients[i][j] * gradients[i][j];
                    }
                    CHECK(relative_error(step, gradients[i]) <=
                          tolerance(precision) + (norm > 0.0 ? std::sqrt(rounding / norm) : 0.0));
                }
            }
            for (std::size_t i = 0; i < weights.size(); ++i)
                CHECK(results[0][i].values == results[1][i].values);
        }
    }
}

TEST_CASE("stem: a frozen one gives the bits of one that is trained, and NaN is not lost") {
    NN_TEST_RANDOM(random);
    nn::EncoderOptions options = draw(random, nn::Precision::tf32);
    nn::Encoder<B> trained(options);
    options.trainable = false;
    nn::Encoder<B> frozen(options);
    const Stream stream;
    auto numbers = random.numbers(options.batch * frozen.image_size());
    for (const bool broken : {false, true}) {
        if (broken)
            numbers[random.between(0, frozen.image_size() - 1)] = NAN;
        const Buffer<float> images = device(numbers);
        Buffer<float> features = poisoned<float>(stream, options.batch * frozen.features_size());
        Buffer<float> others = poisoned<float>(stream, options.batch * frozen.features_size());
        frozen.forward(stream, images, features);
        trained.forward(stream, images, others);
        const auto result = host(stream, features);
        const auto other = host(stream, others);
        std::size_t lost = 0;
        for (std::size_t i = 0; i < result.size(); ++i) {
            if (std::isnan(result[i]) != std::isnan(other[i]) ||
                (!std::isnan(result[i]) && result[i] != other[i]))
                ++lost;
        }
        CHECK(lost == 0);
        const bool any =
            std::any_of(result.begin(), result.end(), [](float value) { return std::isnan(value); });
        CHECK(any == broken);
    }
}

TEST_CASE("stem: a captured step gives the bits of one that is launched, without any cost") {
    NN_TEST_RANDOM(random);
    const nn::EncoderOptions options = draw(random, nn::Precision::tf32);
    const Stream stream;
    nn::Encoder<B> launched(options);
    nn::Encoder<B> captured(options);
    const Buffer<std::uint8_t> images = device(random.bytes(options.batch * launched.image_size()));
    const Buffer<float> gradient = device(random.numbers(options.batch * launched.features_size(), 1e-3f));
    const Buffer<float> factors = device(std::vector<float>{-1.0f / 64.0f, 1.0f});
    Buffer<float> features = poisoned<float>(stream, options.batch * launched.features_size());
    const auto step = [&](nn::Encoder<B>& encoder, sluice::BasicStreamRef<B> on) {
        encoder.forward(on, images, features);
        encoder.backward(on, gradient, factors);
    };
    step(captured, stream); // what a shape needs is made when it comes first
    stream.sync();
    const auto graph =
        sluice::capture(stream.ref(), [&](sluice::BasicStreamRef<B> on) { step(captured, on); });
    const sluice::BasicGraphExec<B> executable(graph);
    for (int i = 0; i < 3; ++i)
        executable.launch(stream);
    check_steady(stream, [&] { step(launched, stream); }); // 5 steps
    executable.launch(stream);
    const auto weights = launched.weights(stream);
    const auto others = captured.weights(stream);
    for (std::size_t i = 0; i < weights.size(); ++i)
        CHECK(weights[i].values == others[i].values);
}

TEST_CASE("stem: the map behind it in bfloat16, bytes or numbers, aligned or not") {
    NN_TEST_RANDOM(random);
    for (const bool aligned : {true, false}) {
        nn::EncoderOptions options = draw(random, nn::Precision::bfloat16);
        options.trainable = false;
        nn::Encoder<B> encoder(options);
        const Stream stream;
        auto weights = encoder.weights(stream);
        make_small(random, weights);
        encoder.load(stream, weights);
        const std::size_t images = random.between(1, options.batch);
        const DrawnImages drawn(random, images * encoder.image_size(), aligned);
        Buffer<float> features = poisoned<float>(stream, images * encoder.features_size());
        Buffer<float> others = poisoned<float>(stream, images * encoder.features_size());
        encoder.forward(stream, drawn.bytes(), features);
        encoder.forward(stream, drawn.numbers(), others);
        const auto result = host(stream, features);
        CHECK(host(stream, others) == result);
        const auto maps = naive_maps(drawn.values(), options, weights);
        const nn::MortonOrder raster(maps.back().h, maps.back().w, 0);
        CHECK(relative_error(result, naive::to_rows(maps.back(), raster)) <= 1e-2);
    }
}

} // namespace nn_stem
