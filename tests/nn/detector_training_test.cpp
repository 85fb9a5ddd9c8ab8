// The detector in training: what it learns, the same bits again, as a graph and from saved weights, at no
// cost.
#include <cstddef>
#include <cstdint>
#include <vector>

#include <sluice/graph/graph_capture.hpp>

#include "nn/detector_case.hpp"
#include "nn/steady.hpp"

namespace nn_detector_training {

using namespace nn_test;
using StreamRef = sluice::BasicStreamRef<B>;

namespace {

struct Trained {
    std::vector<double> losses;
    std::vector<float> weights;
};

/// Descends half the squared distance of an image's boxes from fixed ones, in the mean of all images; eagerly
/// or as a graph.
Trained train(const nn::DetectorOptions& options, const std::vector<std::uint8_t>& bytes,
              const std::vector<float>& targets, std::size_t steps, bool graphed) {
    nn::Detector<B> detector(options);
    const Stream stream;
    sluice::GraphCapture<sluice::NoKey, B> forward_graph;
    sluice::GraphCapture<sluice::NoKey, B> backward_graph;
    const Buffer<std::uint8_t> pixels = device(bytes);
    Buffer<float> boxes = poisoned<float>(stream, targets.size());
    Buffer<float> gradients = poisoned<float>(stream, targets.size());
    const auto forward = [&](StreamRef on) { detector.forward(on, pixels, boxes); };
    const auto backward = [&](StreamRef on) { detector.backward_and_update(on, gradients); };
    Trained result;
    for (std::size_t step = 0; step < steps; ++step) {
        // A graph must follow the rate.
        detector.set_learning_rate(stream, options.learning_rate / (step % 2 == 0 ? 1.0f : 2.0f));
        if (graphed)
            forward_graph.run(stream.ref(), forward);
        else
            forward(stream.ref());
        std::vector<float> values = host(stream, boxes);
        double loss = 0.0;
        for (std::size_t i = 0; i < values.size(); ++i) {
            const float distance = values[i] - targets[i];
            values[i] = distance / static_cast<float>(options.batch);
            loss += static_cast<double>(distance) * static_cast<double>(values[i]) / 2.0;
        }
        result.losses.push_back(loss);
        sluice::copy_and_wait(stream.ref(), gradients, values);
        if (graphed)
            backward_graph.run(stream.ref(), backward);
        else
            backward(stream.ref());
    }
    result.weights = values_of(detector.weights(stream));
    if (graphed) {
        CHECK(forward_graph.counters().refusals + backward_graph.counters().refusals == 0);
        CHECK(backward_graph.counters().replays + 2 >= steps);
    }
    return result;
}

} // namespace

TEST_CASE("detector: training lowers the loss, and gives the same bits again and as a graph") {
    NN_TEST_RANDOM(random);
    for (const nn::Precision precision : all_precisions) {
        CAPTURE(static_cast<int>(precision));
        nn::DetectorOptions options = draw(random, true);
        options.precision = precision;
        options.hidden = 32;
        options.image_scale = 1.0f / 255.0f;
        options.box_scale = 1.0f;
        options.learning_rate = 0.03f;
        const auto bytes = random.bytes(options.batch * options.height * options.width);
        // Alike in all images but for a little, which makes the first part of the way easy.
        std::vector<float> targets = random.numbers(options.batch * 4 * options.max_boxes, 0.2f);
        const auto common = random.numbers(4 * options.max_boxes);
        for (std::size_t i = 0; i < targets.size(); ++i)
            targets[i] += common[i % common.size()];
        const Trained trained = train(options, bytes, targets, 80, false);
        CHECK(trained.losses.back() < 0.5 * trained.losses.front());
        options.keep_routes = !options.keep_routes;
        const Trained again = train(options, bytes, targets, 80, false);
        CHECK(again.losses == trained.losses);
        CHECK(again.weights == trained.weights);
        const Trained graphed = train(options, bytes, targets, 80, true);
        CHECK(graphed.losses == trained.losses);
        CHECK(graphed.weights == trained.weights);
    }
}

TEST_CASE("detector: a saved and loaded one goes on with the same bits") {
    NN_TEST_RANDOM(random);
    for (const nn::Precision precision : all_precisions) {
        nn::DetectorOptions options = draw(random, true);
        options.precision = precision;
        nn::Detector<B> one(options);
        options.seed += 1;
        nn::Detector<B> two(options);
        const Stream stream;
        const Buffer<std::uint8_t> pixels = device(random.bytes(options.batch * one.image_size()));
        const Buffer<float> gradients = device(random.numbers(options.batch * one.predictions_size(), 0.1f));
        Buffer<float> boxes = poisoned<float>(stream, gradients.size());
        one.forward(stream, pixels, boxes);
        one.backward_and_update(stream, gradients);
        two.load(stream, one.weights(stream));
        for (nn::Detector<B>* detector : {&one, &two}) {
            detector->forward(stream, pixels, boxes);
            detector->backward_and_update(stream, gradients);
        }
        CHECK(values_of(one.weights(stream)) == values_of(two.weights(stream)));
    }
}

TEST_CASE("detector: nothing is allocated or created after the first steps") {
    NN_TEST_RANDOM(random);
    for (const nn::Precision precision : all_precisions) {
        nn::DetectorOptions options = draw(random, true);
        options.precision = precision;
        nn::Detector<B> detector(options);
        const Stream stream;
        const Buffer<std::uint8_t> pixels = device(random.bytes(options.batch * detector.image_size()));
        const Buffer<float> gradients =
            device(random.numbers(options.batch * detector.predictions_size(), 0.01f));
        Buffer<float> boxes = poisoned<float>(stream, gradients.size());
        check_steady(stream, [&] {
            detector.forward(stream, pixels, boxes);
            detector.backward_and_update(stream, gradients);
        });
    }
}

} // namespace nn_detector_training
