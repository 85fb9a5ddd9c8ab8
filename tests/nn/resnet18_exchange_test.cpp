// ResNet-18 trained by two ranks: the gradients are the averages of those of two networks, each on one rank's images.
#include <cstdint>
#include <thread>
#include <utility>
#include <vector>

#include <nn/models/resnet18.hpp>
#include <sluice/collective.hpp>
#include <sluice/memory.hpp>

#include "support/doctest.hpp"

namespace nn_resnet18_exchange {

using B = sluice::Host;
using Network = nn::ResNet18<B>;
constexpr std::size_t images = 2;
constexpr std::size_t side = 33;

nn::ResNet18Options options() {
    return {.height = side,
            .width = side,
            .base_channels = 4,
            .classes = 5,
            .batch = images,
            .learning_rate = 0.0625f,
            .seed = 7};
}

struct Step {
    std::vector<nn::NamedTensor> gradients;
    std::vector<nn::NamedTensor> weights;
};

// One step on the first `count` images of `shard`, whose gradients are multiplied with `share`; two with a communicator, so that
// what the first leaves behind shows.
Step train(int shard, const sluice::Communicator<B>* communicator, std::size_t bucket_bytes,
           std::size_t count = images, float share = 1) {
    const sluice::BasicStream<B> stream;
    Network network(options());
    if (communicator != nullptr)
        network.average_gradients_over(*communicator, bucket_bytes);
    std::vector<float> pixels(count * network.image_size());
    for (std::size_t i = 0; i < pixels.size(); ++i)
        pixels[i] = static_cast<float>((i * 7 + static_cast<std::size_t>(shard) * 13) % 29) / 29.0f - 0.5f;
    sluice::DeviceBuffer<float, B> in(pixels.size());
    sluice::DeviceBuffer<std::int32_t, B> labels(count);
    sluice::DeviceBuffer<float, B> loss(1);
    sluice::DeviceBuffer<float, B> factor(1);
    fill(stream, factor, share);
    copy_and_wait(stream, in, pixels);
    std::vector<std::int32_t> classes{shard, 3};
    classes.resize(count);
    copy_and_wait(stream, labels, classes);
    network.train_step<std::int32_t>(stream, in.span(), labels.span(), loss, factor.span());
    Step step{network.gradients(stream), {}};
    if (communicator != nullptr) {
        network.train_step<std::int32_t>(stream, in.span(), labels.span(), loss, factor.span());
        network.share_statistics(stream, *communicator);
    }
    step.weights = network.weights(stream);
    return step;
}

TEST_CASE("resnet18: ranks average their gradients in buckets, and stay equal to the bit") {
    REQUIRE(B::device_count() >= 2);
    const Step first = train(0, nullptr, 0);
    const Step second = train(1, nullptr, 0);
    for (const std::size_t bucket_bytes : {std::size_t{1}, std::size_t{20'000}, std::size_t{1} << 30}) {
        CAPTURE(bucket_bytes);
        const auto communicators = sluice::Communicator<B>::for_devices({0, 1});
        std::vector<Step> steps(2);
        std::vector<std::thread> threads;
        for (int rank = 0; rank < 2; ++rank) {
            threads.emplace_back([&, rank] {
                const sluice::DeviceGuard<B> device(rank);
                const auto place = static_cast<std::size_t>(rank);
                steps[place] = train(rank, &communicators[place], bucket_bytes);
            });
        }
        for (std::thread& thread : threads)
            thread.join();
        for (std::size_t t = 0; t < first.gradients.size(); ++t) {
            CAPTURE(first.gradients[t].name);
            std::vector<float> average(first.gradients[t].values.size());
            for (std::size_t i = 0; i < average.size(); ++i)
                average[i] = (first.gradients[t].values[i] + second.gradients[t].values[i]) / 2;
            CHECK(steps[0].gradients[t].values == average);
            CHECK(steps[1].gradients[t].values == average);
        }
        for (std::size_t t = 0; t < steps[0].weights.size(); ++t)
            CHECK(steps[0].weights[t].values == steps[1].weights[t].values);
    }
}

TEST_CASE("resnet18: ranks whose batches differ in size weigh each image the same") {
    REQUIRE(B::device_count() >= 2);
    // Two images and one: of all three, so many parts each.
    const std::size_t counts[] = {2, 1};
    const Step alone[] = {train(0, nullptr, 0, 2), train(1, nullptr, 0, 1)};
    const auto communicators = sluice::Communicator<B>::for_devices({0, 1});
    std::vector<Step> steps(2);
    std::vector<std::thread> threads;
    for (int rank = 0; rank < 2; ++rank) {
        threads.emplace_back([&, rank] {
            const sluice::DeviceGuard<B> device(rank);
            const auto place = static_cast<std::size_t>(rank);
            const float share = static_cast<float>(2 * counts[place]) / 3;
            steps[place] = train(rank, &communicators[place], 20'000, counts[place], share);
        });
    }
    for (std::thread& thread : threads)
        thread.join();
    for (std::size_t t = 0; t < alone[0].gradients.size(); ++t) {
        CAPTURE(alone[0].gradients[t].name);
        CHECK(steps[0].gradients[t].values == steps[1].gradients[t].values);
        for (std::size_t i = 0; i < alone[0].gradients[t].values.size(); ++i) {
            const float expected =
                (2 * alone[0].gradients[t].values[i] + alone[1].gradients[t].values[i]) / 3;
            REQUIRE(steps[0].gradients[t].values[i] == doctest::Approx(expected).epsilon(1e-4).scale(1));
        }
    }
}

} // namespace nn_resnet18_exchange
