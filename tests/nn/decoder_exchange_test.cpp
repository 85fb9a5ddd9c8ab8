// A decoder that is trained by several ranks, against one that is given all ranks' images.
#include <cmath>
#include <cstdint>
#include <numeric>
#include <span>
#include <thread>
#include <vector>

#include <doctest/doctest.h>

#include <nn/models/decoder.hpp>
#include <sluice/collective.hpp>
#include <sluice/memory.hpp>

#include "support/backend.hpp"

namespace nn_decoder_exchange {

using B = sluice::test::TestBackend;
constexpr std::size_t steps = 5;
constexpr float rate = 0.5f;

nn::DecoderOptions options_for(std::size_t images, bool factors) {
    return {.height = 16,
            .width = 16,
            .channels = {64, 32, 16, 8, 4},
            .classes = 3,
            .batch = images,
            .learning_rate = rate,
            .precision = nn::Precision::float32,
            .seed = 3,
            .exchange_factors = factors};
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
Trained train(std::size_t first, std::size_t images, bool factors,
              const sluice::Communicator<B>* communicator) {
    const sluice::BasicStream<B> stream;
    nn::Decoder<B> decoder(options_for(images, factors), communicator);
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

std::vector<Trained> train_on_ranks(std::size_t ranks, std::size_t images, bool factors) {
    std::vector<int> devices(ranks);
    std::iota(devices.begin(), devices.end(), 0);
    const auto communicators = sluice::Communicator<B>::for_devices(devices);
    std::vector<Trained> trained(ranks);
    std::vector<std::thread> threads;
    for (std::size_t rank = 0; rank < ranks; ++rank) {
        threads.emplace_back([&, rank] {
            const sluice::DeviceGuard<B> device(devices[rank]);
            trained[rank] = train(rank * images, images, factors, &communicators[rank]);
        });
    }
    for (std::thread& thread : threads)
        thread.join();
    return trained;
}

TEST_CASE("decoder: ranks take the steps of one that has all their images, by gradients or factors") {
#if defined(SLUICE_TEST_CUDA) && !SLUICE_HAS_NCCL
    MESSAGE("skipped: built without NCCL");
    return;
#endif
    if (B::device_count() < 2) {
        MESSAGE("skipped: needs 2 devices, and there are " << B::device_count());
        return;
    }
    constexpr std::size_t images = 2;
    for (const std::size_t ranks : {std::size_t{2}, std::size_t{3}}) {
        if (static_cast<std::size_t>(B::device_count()) < ranks)
            continue;
        const Trained whole = train(0, ranks * images, true, nullptr);
        for (const bool factors : {true, false}) {
            CAPTURE(ranks);
            CAPTURE(factors);
            const std::vector<Trained> trained = train_on_ranks(ranks, images, factors);
            for (std::size_t step = 0; step < steps; ++step) {
                float mean = 0;
                for (const Trained& one : trained)
                    mean += one.losses[step] / static_cast<float>(ranks);
                CHECK(mean == doctest::Approx(whole.losses[step]).epsilon(1e-5));
            }
            CHECK(whole.losses.back() < whole.losses.front());
            for (std::size_t t = 0; t < whole.weights.size(); ++t) {
                CAPTURE(whole.weights[t].name);
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
    }
}

TEST_CASE("decoder: with other ranks a batch that is not full is refused, and a choice by trial") {
#if defined(SLUICE_TEST_CUDA) && !SLUICE_HAS_NCCL
    return;
#endif
    if (B::device_count() < 2)
        return;
    const auto two = sluice::Communicator<B>::for_devices({0, 1});
    const sluice::BasicStream<B> stream;
    nn::Decoder<B> decoder(options_for(2, true), two.data());
    const sluice::DeviceBuffer<float, B> features(64);
    const sluice::DeviceBuffer<std::uint8_t, B> labels(256);
    sluice::DeviceBuffer<float, B> loss(1);
    CHECK_THROWS_WITH_AS(decoder.step(stream, features, labels, loss),
                         "decoder: 1 images were given, expected 2, as many as all other ranks give",
                         sluice::Error);
    nn::DecoderOptions tuned = options_for(2, true);
    tuned.algorithms = nn::Algorithms::autotune;
    CHECK_THROWS_WITH_AS(
        nn::Decoder<B>(tuned, two.data()),
        "decoder: expected Algorithms::heuristic where ranks exchange factors, not autotune: each would time "
        "its own GPU, and might multiply in another way than the others",
        sluice::Error);
}

} // namespace nn_decoder_exchange
