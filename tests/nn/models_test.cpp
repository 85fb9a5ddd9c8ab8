// The networks as wholes: batches of any size, two streams at once, no cost in steady state, wrong sizes.
#include <algorithm>

#include <nn/models/classifier.hpp>
#include <nn/models/decoder.hpp>

#include "nn/naive.hpp"
#include "nn/steady.hpp"
#include "nn/support.hpp"

namespace nn_models {

using namespace nn_test;

namespace {

struct Setup {
    nn::EncoderOptions encoder;
    nn::DecoderOptions decoder;
};

/// A small network over images of random sides.
Setup draw(Random& random, nn::Precision precision) {
    const std::size_t halvings = random.between(1, 3);
    Setup setup;
    setup.encoder.height = random.between(1, 3) << halvings;
    setup.encoder.width = random.between(1, 3) << halvings;
    for (std::size_t i = 0; i <= halvings; ++i)
        setup.encoder.channels.push_back(random.between(3, 12));
    setup.encoder.batch = random.between(2, 5);
    setup.encoder.image_scale = 1.0f / 64.0f;
    setup.encoder.precision = precision;
    setup.encoder.seed = random.seed();
    setup.decoder.height = setup.encoder.height;
    setup.decoder.width = setup.encoder.width;
    setup.decoder.channels.assign(setup.encoder.channels.rbegin(), setup.encoder.channels.rend());
    setup.decoder.classes = random.between(2, 11);
    setup.decoder.batch = setup.encoder.batch;
    setup.decoder.learning_rate = 0.25f;
    setup.decoder.precision = precision;
    setup.decoder.seed = random.seed();
    return setup;
}

/// The encoder in float64.
naive::Images naive_features(const std::vector<std::uint8_t>& images, const nn::EncoderOptions& options,
                             const std::vector<nn::NamedTensor>& weights) {
    const std::size_t size = options.image_channels * options.height * options.width;
    naive::Images map(images.size() / size, options.image_channels, options.height, options.width);
    for (std::size_t i = 0; i < images.size(); ++i) {
        map.values[i] = static_cast<double>(options.image_scale) * static_cast<double>(images[i]);
    }
    for (std::size_t i = 0; i < options.channels.size(); ++i) {
        const std::size_t kernel = i == 0 ? 1 : 2;
        if (i > 0) {
            for (double& value : map.values)
                value = std::max(value, 0.0);
        }
        map = naive::convolution(map, naive::doubles(weights[2 * i].values),
                                 naive::doubles(weights[2 * i + 1].values), kernel, kernel, 0);
    }
    return map;
}

} // namespace

TEST_CASE("models: the encoder against float64, frozen or trainable, bytes or numbers") {
    NN_TEST_RANDOM(random);
    for (const nn::Precision precision : precisions) {
        Setup setup = draw(random, precision);
        nn::Encoder<B> frozen(setup.encoder);
        setup.encoder.trainable = true;
        nn::Encoder<B> trainable(setup.encoder);
        const Stream stream;
        const auto weights = frozen.weights(stream);
        for (std::size_t images = 1; images <= setup.encoder.batch; ++images) {
            const auto bytes = random.bytes(images * frozen.image_size());
            const Buffer<std::uint8_t> as_bytes = device(bytes);
            const Buffer<float> as_numbers = device(std::vector<float>(bytes.begin(), bytes.end()));
            Buffer<float> features = poisoned<float>(stream, images * frozen.features_size());
            Buffer<float> others = poisoned<float>(stream, images * frozen.features_size());
            frozen.forward(stream, as_bytes, features);
            trainable.forward(stream, as_numbers, others);
            const auto result = host(stream, features);
            CHECK(host(stream, others) == result);
            const naive::Images expected = naive_features(bytes, setup.encoder, weights);
            const nn::MortonOrder raster(expected.h, expected.w, 0);
            CHECK(relative_error(result, naive::to_rows(expected, raster)) <= tolerance(precision));
        }
    }
}

TEST_CASE("models: a frozen encoder in bfloat16 against float64, as loaded, and saved") {
    NN_TEST_RANDOM(random);
    for (int round = 0; round < 3; ++round) {
        const Setup setup = draw(random, nn::Precision::bfloat16);
        nn::Encoder<B> encoder(setup.encoder);
        nn::EncoderOptions options = setup.encoder;
        options.precision = nn::Precision::float32;
        options.seed = random.seed() + 1;
        nn::Encoder<B> whole(options);
        const Stream stream;
        const auto before = encoder.weights(stream);
        encoder.load(stream, whole.weights(stream));
        const auto weights = encoder.weights(stream);
        const auto expected_weights = whole.weights(stream);
        REQUIRE(weights.size() == expected_weights.size());
        for (std::size_t i = 0; i < weights.size(); ++i) {
            CHECK(weights[i].values != before[i].values);
            // The first layer, and biases, are whole.
            const bool rounded = i >= 2 && i % 2 == 0;
            for (std::size_t j = 0; j < weights[i].values.size(); ++j) {
                const float value = expected_weights[i].values[j];
                REQUIRE(weights[i].values[j] == (rounded ? static_cast<float>(nn::Bfloat16(value)) : value));
            }
        }
        for (std::size_t images = 1; images <= setup.encoder.batch; ++images) {
            const auto bytes = random.bytes(images * encoder.image_size());
            const Buffer<std::uint8_t> as_bytes = device(bytes);
            const Buffer<float> as_numbers = device(std::vector<float>(bytes.begin(), bytes.end()));
            Buffer<float> features = poisoned<float>(stream, images * encoder.features_size());
            Buffer<float> others = poisoned<float>(stream, images * encoder.features_size());
            encoder.forward(stream, as_bytes, features);
            encoder.forward(stream, as_numbers, others);
            const auto result = host(stream, features);
            CHECK(host(stream, others) == result);
            const naive::Images expected = naive_features(bytes, setup.encoder, weights);
            const nn::MortonOrder raster(expected.h, expected.w, 0);
            CHECK(relative_error(result, naive::to_rows(expected, raster)) <= 2e-2);
        }
    }
}

TEST_CASE("models: an encoder in bfloat16 is not trained") {
    CHECK(error_of([] {
              nn::Encoder<B>({.height = 2,
                              .width = 2,
                              .channels = {4, 4},
                              .batch = 1,
                              .trainable = true,
                              .precision = nn::Precision::bfloat16});
          }) ==
          "encoder: one that is trainable was asked for in bfloat16; expected tf32 or float32, since a step "
          "is often less than a bfloat16 can tell");
}

TEST_CASE("models: training lowers the loss, and predictions come out of it") {
    NN_TEST_RANDOM(random);
    Setup setup = draw(random, nn::Precision::float32);
    setup.decoder.classes = 2;
    nn::Encoder<B> encoder(setup.encoder);
    nn::Decoder<B> decoder(setup.decoder);
    const Stream stream;
    const std::size_t images = setup.encoder.batch;
    const Buffer<std::uint8_t> pixels = device(random.bytes(images * encoder.image_size()));
    const Buffer<std::uint8_t> labels = device(std::vector<std::uint8_t>(images * decoder.labels_size(), 1));
    Buffer<float> features = poisoned<float>(stream, images * encoder.features_size());
    Buffer<float> loss = poisoned<float>(stream, 1);
    Buffer<std::uint8_t> predictions = poisoned<std::uint8_t>(stream, labels.size());
    encoder.forward(stream, pixels, features);
    float first = 0.0f;
    float last = 0.0f;
    for (int step = 0; step < 60; ++step) {
        decoder.step(stream, features, labels, loss);
        last = host(stream, loss)[0];
        if (step == 0)
            first = last;
    }
    CHECK(last < 0.5f * first);
    decoder.predict(stream, features, predictions);
    CHECK(host(stream, predictions) == host(stream, labels));
}

TEST_CASE("models: a saved and loaded decoder goes on with the same bits") {
    NN_TEST_RANDOM(random);
    const Setup setup = draw(random, nn::Precision::tf32);
    nn::Decoder<B> one(setup.decoder);
    nn::DecoderOptions options = setup.decoder;
    options.seed += 1;
    nn::Decoder<B> two(options);
    const Stream stream;
    const std::size_t images = random.between(1, options.batch);
    const Buffer<float> features = device(random.numbers(images * one.features_size()));
    const Buffer<std::uint8_t> labels = device(random.bytes(images * one.labels_size(), options.classes));
    Buffer<float> loss = poisoned<float>(stream, 1);
    one.step(stream, features, labels, loss);
    two.load(stream, one.weights(stream));
    one.step(stream, features, labels, loss);
    const auto expected = host(stream, loss);
    two.step(stream, features, labels, loss);
    CHECK(host(stream, loss) == expected);
    const auto weights = one.weights(stream);
    const auto others = two.weights(stream);
    for (std::size_t i = 0; i < weights.size(); ++i) {
        CHECK(weights[i].name == others[i].name);
        CHECK(weights[i].values == others[i].values);
    }
}

TEST_CASE("models: a learning rate that changes, set or handed in, gives the same bits") {
    NN_TEST_RANDOM(random);
    const Setup setup = draw(random, nn::Precision::tf32);
    const std::size_t images = setup.decoder.batch;
    const Stream stream;
    const std::vector<float> rates{0.5f, 0.25f, 0.0f, 0.125f};
    const Buffer<float> rates_buffer = device(rates);
    Buffer<float> features;
    Buffer<std::uint8_t> labels;
    std::vector<std::vector<float>> results;
    for (const bool set : {false, true}) {
        nn::Decoder<B> decoder(setup.decoder);
        if (!set) {
            features = device(random.numbers(images * decoder.features_size()));
            labels = device(random.bytes(images * decoder.labels_size(), setup.decoder.classes));
        }
        Buffer<float> losses = poisoned<float>(stream, rates.size());
        for (std::size_t s = 0; s < rates.size(); ++s) {
            // All are enqueued at once: each step must find the rate that was set just before it.
            if (set) {
                decoder.set_learning_rate(stream, rates[s]);
                decoder.step(stream, features, labels, losses.span().subspan(s, 1));
            } else {
                decoder.step(stream, features, labels, rates_buffer.span().subspan(s, 1),
                             losses.span().subspan(s, 1));
            }
        }
        results.push_back(host(stream, losses));
        for (const nn::NamedTensor& tensor : decoder.weights(stream))
            results.back().insert(results.back().end(), tensor.values.begin(), tensor.values.end());
    }
    CHECK(results[0] == results[1]);
    // A step of rate 0 leaves the weights as they are, and so the next loss.
    CHECK(results[0][3] == results[0][2]);
    CHECK(results[0][2] != results[0][1]);
}

TEST_CASE("models: encoder and decoder on two streams at once give the bits of one after the other") {
    NN_TEST_RANDOM(random);
    const Setup setup = draw(random, nn::Precision::tf32);
    const std::size_t steps = 12;
    const std::size_t images = setup.encoder.batch;
    std::vector<Buffer<std::uint8_t>> batches;
    std::vector<Buffer<std::uint8_t>> labels;
    std::vector<Buffer<float>> features;
    nn::Encoder<B> encoder(setup.encoder);
    const Stream first;
    for (std::size_t s = 0; s < steps; ++s) {
        batches.push_back(device(random.bytes(images * encoder.image_size())));
        labels.push_back(
            device(random.bytes(images * setup.decoder.height * setup.decoder.width, setup.decoder.classes)));
        features.push_back(poisoned<float>(first, images * encoder.features_size()));
    }
    first.sync();
    std::vector<std::vector<float>> results;
    for (const bool overlapped : {false, true}) {
        nn::Decoder<B> decoder(setup.decoder);
        const Stream second;
        std::vector<sluice::BasicEvent<B>> ready(steps);
        Buffer<float> losses = poisoned<float>(first, steps);
        first.sync();
        for (std::size_t s = 0; s < steps; ++s) {
            encoder.forward(first, batches[s], features[s]);
            ready[s].record(first);
            second.wait(ready[s]);
            decoder.step(overlapped ? second : first, features[s], labels[s], losses.span().subspan(s, 1));
        }
        first.sync();
        results.push_back(host(second, losses));
        for (const nn::NamedTensor& tensor : decoder.weights(second))
            results.back().insert(results.back().end(), tensor.values.begin(), tensor.values.end());
    }
    CHECK(results[0] == results[1]);
}

TEST_CASE("models: nothing is allocated or created after the first steps") {
    NN_TEST_RANDOM(random);
    Setup setup = draw(random, nn::Precision::tf32);
    nn::Encoder<B> encoder(setup.encoder);
    nn::Decoder<B> decoder(setup.decoder);
    setup.encoder.trainable = true;
    nn::Encoder<B> trainable(setup.encoder);
    nn::Classifier<B> classifier(trainable, {.classes = 3, .learning_rate = 0.1f});
    const Stream stream;
    const std::size_t images = setup.encoder.batch;
    const Buffer<std::uint8_t> pixels = device(random.bytes(images * encoder.image_size()));
    const Buffer<std::uint8_t> labels =
        device(random.bytes(images * decoder.labels_size(), setup.decoder.classes));
    const Buffer<std::uint8_t> classes = device(random.bytes(images, 3));
    Buffer<float> features = poisoned<float>(stream, images * encoder.features_size());
    Buffer<float> loss = poisoned<float>(stream, 1);
    Buffer<std::uint8_t> predictions = poisoned<std::uint8_t>(stream, labels.size());
    check_steady(stream, [&] {
        encoder.forward(stream, pixels, features);
        decoder.step(stream, features, labels, loss);
        decoder.predict(stream, features, predictions);
        classifier.step(stream, pixels, classes, loss);
        classifier.predict(stream, pixels, predictions.span().first(images));
    });
}

TEST_CASE("models: sizes and options that do not fit are refused in one sentence") {
    nn::EncoderOptions encoder{.height = 8, .width = 12, .channels = {4, 6, 8}, .batch = 2};
    CHECK(error_of([&] {
              nn::EncoderOptions wrong = encoder;
              wrong.width = 10;
              nn::Encoder<B>{wrong};
          }) == "morton order: an image of 8 x 10 pixels cannot be halved 2 times; both sides must be "
                "multiples of 2^2");
    CHECK(error_of([&] {
              nn::EncoderOptions wrong = encoder;
              wrong.batch = 0;
              nn::Encoder<B>{wrong};
          }).find("encoder: 3 layers for a batch of 0 images") == 0);
    CHECK(error_of([&] {
              nn::Decoder<B>{{.height = 8, .width = 12, .channels = {8}, .classes = 3, .batch = 2}};
          }).find("decoder: 1 sizes of maps") == 0);

    nn::Encoder<B> frozen(encoder);
    const Stream stream;
    Buffer<std::uint8_t> images(3 * frozen.image_size());
    Buffer<float> features(2 * frozen.features_size());
    CHECK(error_of([&] { frozen.forward(stream, images, features); }) ==
          "encoder: 864 elements were given, expected 288 for each of 1 to 2 images");
    CHECK(error_of([&] {
              frozen.forward(stream, images.span().first(0), features);
          }).find("encoder: 0 elements") == 0);
    CHECK(error_of([&] { frozen.forward(stream, images.span().first(288), features); }) ==
          "encoder: elements of the features: 96 were given, expected 48");
    CHECK(error_of([&] { frozen.backward(stream, features, features.span().first(1)); }) ==
          "encoder: backward was called on one that was not made trainable");

    nn::Decoder<B> decoder({.height = 8, .width = 12, .channels = {8, 6, 4}, .classes = 3, .batch = 2});
    Buffer<float> loss(1);
    CHECK(error_of([&] { decoder.step(stream, features, images.span().first(96), loss); }) ==
          "decoder: labels or predictions: 96 were given, expected 192");
    CHECK(error_of([&] {
              decoder.step(stream, features, images.span().first(192), features.span().first(2), loss);
          }) == "decoder: elements of the learning rate: 2 were given, expected 1");
}

} // namespace nn_models
