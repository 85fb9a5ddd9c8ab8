// A decoder that is trained by several ranks, against one that is given all ranks' images.
#include <cmath>
#include <cstdint>
#include <numeric>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include <nn/models/decoder.hpp>
#include <sluice/collective.hpp>
#include <sluice/memory.hpp>

#include "support/backend.hpp"
#include "support/doctest.hpp"

namespace nn_decoder_exchange {

using B = sluice::test::TestBackend;
constexpr std::size_t steps = 5;
constexpr float rate = 0.5f;

nn::DecoderOptions options_for(std::size_t images, nn::RankExchange exchange) {
    return {.height = 16,
            .width = 16,
            .channels = {64, 32, 16, 8, 4},
            .classes = 3,
            .batch = images,
            .learning_rate = rate,
            .precision = nn::Precision::float32,
            .seed = 3,
            .exchange = exchange};
}

// The features and labels of images `first` … of step `step`.
std::vector<float> features_of(std::size_t first, std::size_t images, std::size_t step) {
    std::vector<float> values(images * 64);
    for (std::size_t i = 0; i < values.size(); ++i)
        values[i] = static_cast<float>(((first * 64 + i) * 37 + step * 11) % 19) / 19.0f;
    return values;
}
std::vector<std::uint8_t> labels_of(std::size_t first, std::size_t images, std::size_t step) {
    std::vector<std::uint8_t> values(images * 256);
    for (std::size_t i = 0; i < values.size(); ++i)
        values[i] = static_cast<std::uint8_t>(((first * 256 + i) / 5 + step) % 3);
    return values;
}

struct Trained {
    std::vector<float> losses;
    std::vector<nn::NamedTensor> weights;
};

// Images `first` to `first + images` of each step's.
Trained train(std::size_t first, std::size_t images, nn::RankExchange exchange,
              const sluice::Communicator<B>* communicator) {
    const sluice::BasicStream<B> stream;
    nn::Decoder<B> decoder(options_for(images, exchange), communicator);
    sluice::DeviceBuffer<float, B> features(images * 64);
    sluice::DeviceBuffer<std::uint8_t, B> labels(images * 256);
    sluice::DeviceBuffer<float, B> loss(1);
    decoder.set_learning_rate(stream,
                              rate / static_cast<float>(communicator == nullptr ? 1 : communicator->ranks()));
    Trained trained;
    for (std::size_t step = 0; step < steps; ++step) {
        copy_and_wait(stream, features, features_of(first, images, step));
        copy_and_wait(stream, labels, labels_of(first, images, step));
        decoder.step(stream, features, labels, loss);
        std::vector<float> one(1);
        copy_and_wait(stream, one, loss);
        trained.losses.push_back(one[0]);
    }
    trained.weights = decoder.weights(stream);
    return trained;
}

std::vector<Trained> train_on_ranks(std::size_t ranks, std::size_t images, nn::RankExchange exchange) {
    std::vector<int> devices(ranks);
    std::iota(devices.begin(), devices.end(), 0);
    const auto communicators = sluice::Communicator<B>::for_devices(devices);
    std::vector<Trained> trained(ranks);
    std::vector<std::thread> threads;
    for (std::size_t rank = 0; rank < ranks; ++rank) {
        threads.emplace_back([&, rank] {
            const sluice::DeviceGuard<B> device(devices[rank]);
            trained[rank] = train(rank * images, images, exchange, &communicators[rank]);
        });
    }
    for (std::thread& thread : threads)
        thread.join();
    return trained;
}

bool enough_devices(int ranks) {
#if defined(SLUICE_TEST_CUDA) && !SLUICE_HAS_NCCL
    MESSAGE("skipped: built without NCCL");
    return false;
#endif
    if (B::device_count() >= ranks)
        return true;
    MESSAGE("skipped: needs " << ranks << " devices, and there are " << B::device_count());
    return false;
}

// Against `whole`, which one rank was trained to with all images.
void check_ranks(const Trained& whole, std::size_t ranks, std::size_t images, nn::RankExchange exchange) {
    CAPTURE(ranks);
    CAPTURE(images);
    CAPTURE(static_cast<int>(exchange));
    const std::vector<Trained> trained = train_on_ranks(ranks, images, exchange);
    for (std::size_t step = 0; step < steps; ++step) {
        float mean = 0;
        for (const Trained& one : trained)
            mean += one.losses[step] / static_cast<float>(ranks);
        CHECK(mean == doctest::Approx(whole.losses[step]).epsilon(1e-5));
    }
    for (std::size_t t = 0; t < whole.weights.size(); ++t) {
        CAPTURE(whole.weights[t].name);
        REQUIRE(trained[0].weights[t].shape == whole.weights[t].shape);
        double distance = 0;
        for (std::size_t i = 0; i < whole.weights[t].values.size(); ++i) {
            const double difference = static_cast<double>(whole.weights[t].values[i]) -
                                      static_cast<double>(trained[0].weights[t].values[i]);
            distance = std::fmax(distance, std::fabs(difference));
        }
        CHECK(distance < 2e-6);
        for (const Trained& one : trained)
            CHECK(one.weights[t].values == trained[0].weights[t].values);
    }
}

TEST_CASE("decoder: ranks take the steps of one that has all their images, whatever they exchange") {
    using nn::RankExchange;
    if (!enough_devices(2))
        return;
    // A device defers the first layer's step where its rows are few.
    for (const std::size_t images : {std::size_t{2}, std::size_t{12}}) {
        for (const std::size_t ranks : {std::size_t{2}, std::size_t{3}, std::size_t{4}}) {
            if (static_cast<std::size_t>(B::device_count()) < ranks)
                continue;
            const Trained whole = train(0, ranks * images, RankExchange::automatic, nullptr);
            CHECK(whole.losses.back() < whole.losses.front());
            for (const RankExchange exchange :
                 {RankExchange::automatic, RankExchange::factors, RankExchange::gradients})
                check_ranks(whole, ranks, images, exchange);
            if (ranks != 3)
                check_ranks(whole, ranks, images, RankExchange::shards);
        }
    }
}

TEST_CASE("decoder: weights that are divided among ranks come back as they were loaded, and do not predict") {
    if (!enough_devices(2))
        return;
    const sluice::BasicStream<B> first_stream;
    nn::DecoderOptions other = options_for(2, nn::RankExchange::shards);
    other.seed = 4;
    nn::Decoder<B> source(other);
    const std::vector<nn::NamedTensor> given = source.weights(first_stream);
    const auto two = sluice::Communicator<B>::for_devices({0, 1});
    std::vector<std::vector<nn::NamedTensor>> first(2);
    std::vector<std::vector<nn::NamedTensor>> loaded(2);
    std::vector<std::string> refusals(2);
    std::vector<std::thread> threads;
    for (std::size_t rank = 0; rank < 2; ++rank) {
        threads.emplace_back([&, rank] {
            const sluice::DeviceGuard<B> device(static_cast<int>(rank));
            const sluice::BasicStream<B> stream;
            nn::Decoder<B> decoder(options_for(2, nn::RankExchange::shards), &two[rank]);
            const sluice::DeviceBuffer<float, B> features(2 * 64);
            sluice::DeviceBuffer<std::uint8_t, B> classes(2 * 256);
            first[rank] = decoder.weights(stream);
            decoder.load(stream, given);
            loaded[rank] = decoder.weights(stream);
            try {
                decoder.predict(stream, features, classes);
            } catch (const sluice::Error& error) {
                refusals[rank] = error.what();
            }
        });
    }
    for (std::thread& thread : threads)
        thread.join();
    nn::Decoder<B> alone(options_for(2, nn::RankExchange::shards));
    const std::vector<nn::NamedTensor> expected = alone.weights(first_stream);
    for (std::size_t rank = 0; rank < 2; ++rank) {
        REQUIRE(first[rank].size() == expected.size());
        for (std::size_t t = 0; t < given.size(); ++t) {
            CHECK(first[rank][t].name == expected[t].name);
            CHECK(first[rank][t].shape == expected[t].shape);
            CHECK(first[rank][t].values == expected[t].values);
            CHECK(loaded[rank][t].values == given[t].values);
        }
        CHECK(refusals[rank] ==
              "decoder: expected one rank to predict, or all weights on each: load them into a decoder "
              "without a communicator");
    }
}

TEST_CASE("decoder: what ranks cannot do together is refused in one sentence") {
    if (!enough_devices(2))
        return;
    const auto two = sluice::Communicator<B>::for_devices({0, 1});
    const sluice::BasicStream<B> stream;
    nn::Decoder<B> decoder(options_for(2, nn::RankExchange::factors), two.data());
    const sluice::DeviceBuffer<float, B> features(64);
    const sluice::DeviceBuffer<std::uint8_t, B> labels(256);
    sluice::DeviceBuffer<float, B> loss(1);
    CHECK_THROWS_WITH_AS(decoder.step(stream, features, labels, loss),
                         "decoder: 1 images were given, expected 2, as many as all other ranks give",
                         sluice::Error);
    nn::DecoderOptions tuned = options_for(2, nn::RankExchange::automatic);
    tuned.algorithms = nn::Algorithms::autotune;
    CHECK_THROWS_WITH_AS(nn::Decoder<B>(tuned, two.data()),
                         "decoder: expected Algorithms::heuristic unless ranks exchange gradients alone, not "
                         "autotune: each would time "
                         "its own GPU, and might multiply in another way than the others",
                         sluice::Error);
    nn::DecoderOptions uneven = options_for(2, nn::RankExchange::shards);
    uneven.channels = {64, 36, 16, 8, 4};
    CHECK_THROWS_WITH_AS(
        nn::Decoder<B>(uneven, two.data()),
        "decoder: 36 channels between the first two of 4 layers; expected a multiple of 8 and at "
        "least 3 layers, to divide weights among 2 ranks",
        sluice::Error);
}

} // namespace nn_decoder_exchange
