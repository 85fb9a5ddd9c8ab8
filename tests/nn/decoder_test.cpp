// A decoder whose end is one kernel on a device, beside the same as products one by one.
#include <cmath>

#include <nn/models/decoder.hpp>

#include "nn/steady.hpp"
#include "nn/support.hpp"

namespace nn_decoder {

using namespace nn_test;

TEST_CASE("decoder: one that ends as the published one learns the same in TF32 as in float32") {
    NN_TEST_RANDOM(random);
    for (const std::size_t levels : {1u, 3u}) {
        nn::DecoderOptions options{.height = random.between(1, 5) << levels,
                                   .width = random.between(1, 9) << levels,
                                   .channels = {32, 16},
                                   .classes = random.between(2, 16),
                                   .batch = 3,
                                   .learning_rate = 0.5f,
                                   .seed = random.seed()};
        for (std::size_t i = 1; i < levels; ++i)
            options.channels.insert(options.channels.begin(), random.between(3, 24));
        const std::size_t images = random.between(1, 3);
        const Stream stream;
        std::vector<std::vector<float>> losses;
        std::vector<std::vector<float>> weights;
        std::vector<std::vector<std::uint8_t>> predicted;
        Buffer<float> features;
        Buffer<std::uint8_t> labels;
        for (const nn::Precision precision : precisions) {
            options.precision = precision;
            nn::Decoder<B> decoder(options);
            if (features.empty()) {
                features = device(random.numbers(images * decoder.features_size()));
                labels = device(random.bytes(images * decoder.labels_size(), options.classes));
            }
            Buffer<float> loss = poisoned<float>(stream, 4);
            for (std::size_t s = 0; s < loss.size(); ++s)
                decoder.step(stream, features, labels, loss.span().subspan(s, 1));
            losses.push_back(host(stream, loss));
            weights.emplace_back();
            for (const nn::NamedTensor& tensor : decoder.weights(stream))
                weights.back().insert(weights.back().end(), tensor.values.begin(), tensor.values.end());
            Buffer<std::uint8_t> predictions = poisoned<std::uint8_t>(stream, labels.size());
            decoder.predict(stream, features, predictions);
            predicted.push_back(host(stream, predictions));
        }
        CHECK(losses[0].back() < losses[0].front());
        if (losses.size() == 1) // a backend that computes the same whatever the precision
            continue;
        CHECK(relative_error(losses[1], losses[0]) <= tolerance(nn::Precision::tf32));
        CHECK(relative_error(weights[1], weights[0]) <= tolerance(nn::Precision::tf32));
        std::size_t equal = 0;
        for (std::size_t i = 0; i < predicted[0].size(); ++i)
            equal += predicted[0][i] == predicted[1][i] ? 1u : 0u;
        CHECK(10 * equal >= 9 * predicted[0].size());
    }
}

TEST_CASE(
    "decoder: a step that forks costs nothing but its work, and replays as a graph with the same bits") {
    NN_TEST_RANDOM(random);
    const nn::DecoderOptions options{.height = 16,
                                     .width = 24,
                                     .channels = {40, 20, 32, 16},
                                     .classes = 10,
                                     .batch = 2,
                                     .learning_rate = 0.25f,
                                     .seed = random.seed()};
    nn::Decoder<B> eager(options);
    nn::Decoder<B> replayed(options);
    const Stream stream;
    const Buffer<float> features = device(random.numbers(2 * eager.features_size()));
    const Buffer<std::uint8_t> labels = device(random.bytes(2 * eager.labels_size(), 10));
    Buffer<float> loss = poisoned<float>(stream, 1);
    const auto run_on = [&](sluice::BasicStreamRef<B> on, nn::Decoder<B>& decoder, Buffer<float>& to) {
        decoder.step(on, features, labels, to);
    };
    const auto run = [&](nn::Decoder<B>& decoder, Buffer<float>& to) { run_on(stream, decoder, to); };
    check_steady(stream, [&] { run(eager, loss); });
    for (int i = 0; i < 2; ++i)
        run(replayed, loss); // what a shape needs is made when it comes first
    const sluice::BasicGraph<B> graph =
        sluice::capture(stream.ref(), [&](sluice::BasicStreamRef<B> on) { run_on(on, replayed, loss); });
    const sluice::BasicGraphExec<B> executable(graph);
    for (int i = 0; i < 3; ++i)
        executable.launch(stream);
    const auto of_graph = host(stream, loss);
    CHECK(std::isfinite(of_graph[0]));
    nn::Decoder<B> again(options);
    for (int i = 0; i < 5; ++i)
        run(again, loss);
    CHECK(host(stream, loss) == of_graph);
    const auto weights = again.weights(stream);
    const auto others = replayed.weights(stream);
    for (std::size_t i = 0; i < weights.size(); ++i)
        CHECK(weights[i].values == others[i].values);
}

TEST_CASE("decoder: a step that waits for the next one is the same step, for batches of any size") {
    NN_TEST_RANDOM(random);
    nn::DecoderOptions options{.height = 4,
                               .width = 4,
                               .channels = {48, 20, 12},
                               .classes = 5,
                               .batch = 4,
                               .learning_rate = 0.5f,
                               .precision = nn::Precision::float32,
                               .seed = random.seed()};
    nn::Decoder<B> few(options);
    options.batch = 40; // too many rows to wait
    nn::Decoder<B> many(options);
    const Stream stream;
    const std::vector<std::size_t> batches{3, 1, 4, 2};
    Buffer<float> losses[] = {poisoned<float>(stream, 4), poisoned<float>(stream, 4)};
    for (std::size_t s = 0; s < batches.size(); ++s) {
        const Buffer<float> features = device(random.numbers(batches[s] * few.features_size()));
        const Buffer<std::uint8_t> labels = device(random.bytes(batches[s] * few.labels_size(), 5));
        few.step(stream, features, labels, losses[0].span().subspan(s, 1));
        many.step(stream, features, labels, losses[1].span().subspan(s, 1));
        Buffer<std::uint8_t> predictions = poisoned<std::uint8_t>(stream, labels.size());
        if (s == 1)
            few.predict(stream, features, predictions);
        if (s == 2)
            (void)few.weights(stream);
        stream.sync();
    }
    CHECK(relative_error(host(stream, losses[0]), host(stream, losses[1])) <= 1e-4);
    const auto weights = few.weights(stream);
    const auto others = many.weights(stream);
    for (std::size_t i = 0; i < weights.size(); ++i)
        CHECK(relative_error(weights[i].values, others[i].values) <= 1e-4);
    few.load(stream, others);
    for (std::size_t i = 0; i < weights.size(); ++i)
        CHECK(few.weights(stream)[i].values == others[i].values);
}

TEST_CASE("decoder: weights that are loaded after training came to nothing are those that were loaded") {
    NN_TEST_RANDOM(random);
    nn::Decoder<B> decoder({.height = 4,
                            .width = 4,
                            .channels = {48, 20, 12},
                            .classes = 5,
                            .batch = 4,
                            .learning_rate = 1e30f, // soon too great for numbers
                            .precision = nn::Precision::float32,
                            .seed = random.seed()});
    const Stream stream;
    const auto weights = decoder.weights(stream);
    Buffer<float> loss = poisoned<float>(stream, 1);
    const Buffer<float> features = device(random.numbers(4 * decoder.features_size()));
    const Buffer<std::uint8_t> labels = device(random.bytes(4 * decoder.labels_size(), 5));
    for (int s = 0; s < 2; ++s)
        decoder.step(stream, features, labels, loss);
    decoder.load(stream, weights);
    const auto loaded = decoder.weights(stream);
    for (std::size_t i = 0; i < weights.size(); ++i)
        CHECK(loaded[i].values == weights[i].values);
}

} // namespace nn_decoder
