// The detector as a whole: against float64 and PyTorch, in training, as a graph, and with what does not fit.
#include <algorithm>

#include <common/safetensors.hpp>
#include <nn/detector.hpp>
#include <sluice/graph/graph_capture.hpp>

#include "nn/naive_detector.hpp"
#include "nn/support.hpp"
#include "support/heap_count.hpp"
#include "support/reference.hpp"

using namespace nn_test;
using StreamRef = sluice::BasicStreamRef<B>;

namespace {

constexpr nn::Precision all_precisions[] = {nn::Precision::float32, nn::Precision::tf32,
                                            nn::Precision::bfloat16};

double forward_tolerance(nn::Precision precision) {
    return precision == nn::Precision::bfloat16 ? 1e-2 : tolerance(precision);
}

/// A small detector. `fused`: of the channels that a device convolves and pools at once in bfloat16.
nn::DetectorOptions draw(Random& random, bool fused) {
    nn::DetectorOptions options;
    options.channels = fused ? std::vector<std::size_t>{4, 16, 64} : std::vector<std::size_t>{3, 5};
    const std::size_t step = std::size_t{1} << options.channels.size();
    options.height = step * random.between(2, 4);
    options.width = step * random.between(2, 4);
    options.hidden = random.between(20, 40);
    options.max_boxes = random.between(4, 9);
    options.batch = random.between(3, 5);
    options.image_scale = 1.0f / 64.0f;
    options.box_scale = 4.0f;
    options.learning_rate = 1.0f;
    options.seed = random.seed();
    return options;
}

naive::Images scaled_images(const std::vector<std::uint8_t>& bytes, const nn::DetectorOptions& options) {
    const std::size_t size = options.height * options.width;
    naive::Images images(bytes.size() / size, 1, options.height, options.width);
    for (std::size_t i = 0; i < bytes.size(); ++i)
        images.values[i] = static_cast<double>(options.image_scale) * static_cast<double>(bytes[i]);
    return images;
}

std::vector<float> values_of(const std::vector<nn::NamedTensor>& tensors) {
    std::vector<float> result;
    for (const nn::NamedTensor& tensor : tensors)
        result.insert(result.end(), tensor.values.begin(), tensor.values.end());
    return result;
}

std::vector<float> floats(const std::vector<nn::Bfloat16>& values) {
    std::vector<float> result;
    for (const nn::Bfloat16 value : values)
        result.push_back(static_cast<float>(value));
    return result;
}

const examples::Safetensors& reference() {
    static const examples::Safetensors file = examples::read_safetensors(sluice_test::reference_path());
    return file;
}

} // namespace

TEST_CASE("detector: forward against float64, any number of images, in float32 and bfloat16") {
    NN_TEST_RANDOM(random);
    for (const bool fused : {false, true}) {
        for (const nn::Precision precision : all_precisions) {
            CAPTURE(fused);
            CAPTURE(static_cast<int>(precision));
            nn::DetectorOptions options = draw(random, fused);
            options.precision = precision;
            nn::Detector<B> detector(options);
            const Stream stream;
            naive::Detector expected(detector.weights(stream), static_cast<double>(options.box_scale));
            for (std::size_t images = 1; images <= options.batch; ++images) {
                const auto bytes = random.bytes(images * detector.image_size());
                const Buffer<std::uint8_t> pixels = device(bytes);
                Buffer<float> boxes = poisoned<float>(stream, images * detector.predictions_size());
                Buffer<nn::Bfloat16> rounded = poisoned<nn::Bfloat16>(stream, boxes.size());
                detector.forward(stream, pixels, boxes);
                detector.forward(stream, pixels, rounded);
                const auto result = host(stream, boxes);
                // What small random networks sum up may nearly cancel, which leaves more of the rounding.
                CHECK(relative_error(result, expected.forward(scaled_images(bytes, options))) <=
                      (precision == nn::Precision::bfloat16 ? 1.5 : 1.0) * forward_tolerance(precision));
                std::vector<float> same;
                for (const float value : result)
                    same.push_back(static_cast<float>(nn::Bfloat16(value)));
                CHECK(floats(host(stream, rounded)) == same);
            }
        }
    }
}

TEST_CASE("detector: a step moves every weight against its gradient") {
    NN_TEST_RANDOM(random);
    for (const bool fused : {false, true}) {
        for (const nn::Precision precision : all_precisions) {
            CAPTURE(fused);
            CAPTURE(static_cast<int>(precision));
            nn::DetectorOptions options = draw(random, fused);
            options.precision = precision;
            nn::Detector<B> detector(options);
            const Stream stream;
            const auto before = detector.weights(stream);
            // Fewer images than the batch: what is beyond them must not count.
            const std::size_t images = options.batch - 1;
            const auto bytes = random.bytes(images * detector.image_size());
            const Buffer<std::uint8_t> pixels = device(bytes);
            Buffer<float> boxes = poisoned<float>(stream, images * detector.predictions_size());
            const auto gradient = random.numbers(boxes.size());
            const Buffer<float> gradients = device(gradient);
            detector.forward(stream, pixels, boxes);
            detector.backward_and_update(stream, gradients);
            const auto after = detector.weights(stream);

            naive::Detector naive_detector(before, static_cast<double>(options.box_scale));
            naive_detector.forward(scaled_images(bytes, options));
            const auto expected = naive_detector.backward(naive::doubles(gradient));
            std::vector<double> all_moved;
            naive::Doubles all_expected;
            for (std::size_t i = 0; i < before.size(); ++i) {
                CAPTURE(before[i].name);
                CHECK(after[i].name == before[i].name);
                CHECK(after[i].shape == before[i].shape);
                naive::Doubles moved;
                for (std::size_t j = 0; j < before[i].values.size(); ++j) {
                    moved.push_back(static_cast<double>(before[i].values[j]) -
                                    static_cast<double>(after[i].values[j]));
                }
                if (forward_tolerance(precision) <= 1e-5)
                    CHECK(relative_error(moved, expected[i]) <= 1e-5);
                all_moved.insert(all_moved.end(), moved.begin(), moved.end());
                all_expected.insert(all_expected.end(), expected[i].begin(), expected[i].end());
            }
            // Where factors are rounded, elements of a pool that are nearly equal change places, and with them where
            // gradients go. A gradient that has nothing to do with the right one is off by more than 1.
            CHECK(relative_error(all_moved, all_expected) <= 0.5);
        }
    }
}

TEST_CASE("detector: PyTorch's boxes") {
    const std::string prefix = "detector/weight.";
    std::vector<nn::NamedTensor> weights;
    for (const std::string& name : reference().names(prefix)) {
        const examples::Tensor& tensor = reference().at(name);
        weights.push_back({name.substr(prefix.size()), tensor.shape, tensor.as<float>()});
    }
    const examples::Tensor& image = reference().at("detector/image");
    const examples::Tensor& boxes = reference().at("detector/boxes");
    nn::DetectorOptions options;
    options.height = image.shape.at(2);
    options.width = image.shape.at(3);
    options.batch = image.shape.at(0);
    options.max_boxes = boxes.shape.at(1);
    options.image_scale = 1.0f;
    options.channels.clear();
    for (std::size_t index = 0;; index += 3) {
        const examples::Tensor* weight = nullptr;
        const std::string name = prefix + std::to_string(index) + ".weight";
        if (reference().contains(name))
            weight = &reference().at(name);
        if (weight == nullptr || weight->shape.size() != 4) {
            options.hidden = reference().at(prefix + std::to_string(index + 1) + ".weight").shape.at(0);
            break;
        }
        options.channels.push_back(weight->shape[0]);
    }
    const auto bytes = image.as<std::uint8_t>();
    for (const nn::Precision precision : all_precisions) {
        CAPTURE(static_cast<int>(precision));
        options.precision = precision;
        nn::Detector<B> detector(options);
        const Stream stream;
        detector.load(stream, weights);
        const Buffer<std::uint8_t> pixels = device(bytes);
        Buffer<float> result = poisoned<float>(stream, boxes.count());
        detector.forward(stream, pixels, result);
        CHECK(relative_error(host(stream, result), boxes.as<double>()) <= forward_tolerance(precision));
        CHECK(detector.weights(stream).size() == weights.size());
        for (const nn::NamedTensor& tensor : detector.weights(stream)) {
            const auto given = std::find_if(weights.begin(), weights.end(),
                                            [&](const auto& t) { return t.name == tensor.name; });
            REQUIRE(given != weights.end());
            CHECK(given->shape == tensor.shape);
            CHECK(given->values == tensor.values);
        }
    }
}

namespace {

struct Trained {
    std::vector<double> losses;
    std::vector<float> weights;
};

/// Descends half the squared distance of an image's boxes from fixed ones, in the mean of all images; eagerly or as a graph.
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

TEST_CASE("detector: boxes that begin in the middle") {
    nn::DetectorOptions options{
        .height = 8, .width = 16, .channels = {4, 6}, .hidden = 5, .max_boxes = 3, .batch = 1};
    options.box_scale = 8.0f;
    options.centred_boxes = true;
    const nn::Detector<B> detector(options);
    const Stream stream;
    const auto weights = detector.weights(stream);
    const std::vector<float> box{0.5f, 0.25f, 1.5f, 0.75f};
    for (std::size_t i = 0; i < 12; ++i)
        CHECK(weights.back().values[i] == box[i % 4]);
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
        const auto step = [&] {
            detector.forward(stream, pixels, boxes);
            detector.backward_and_update(stream, gradients);
        };
        for (int warmup = 0; warmup < 2; ++warmup)
            step();
        stream.synchronize();
        const std::uint64_t allocations = B::counts().device_allocations.created;
        const std::uint64_t objects = B::counts().streams.created + B::counts().events.created;
        const sluice::test::HeapCount heap;
        for (int round = 0; round < 3; ++round)
            step();
        stream.synchronize();
        const std::uint64_t heap_allocations = heap.allocations();
        CHECK(B::counts().device_allocations.created == allocations);
        CHECK(B::counts().streams.created + B::counts().events.created == objects);
        CHECK(heap_allocations == 0);
    }
}

TEST_CASE("detector: what does not fit is refused in one sentence") {
    const nn::DetectorOptions options{
        .height = 8, .width = 12, .channels = {4, 6}, .hidden = 5, .max_boxes = 3, .batch = 2};
    CHECK(error_of([&] {
              nn::DetectorOptions wrong = options;
              wrong.width = 10;
              nn::Detector<B>{wrong};
          }) == "detector: an image of 8 x 10 pixels cannot be halved 2 times; both sides must be multiples "
                "of 4");
    CHECK(error_of([&] {
              nn::DetectorOptions wrong = options;
              wrong.hidden = 0;
              nn::Detector<B>{wrong};
          }) ==
          "detector: 2 convolutions, 0 hidden features and 3 boxes for a batch of 2 images; expected at "
          "least 1 of each");
    nn::Detector<B> detector(options);
    const Stream stream;
    Buffer<std::uint8_t> images(3 * detector.image_size());
    Buffer<float> boxes(2 * detector.predictions_size());
    CHECK(error_of([&] { detector.backward_and_update(stream, boxes); }) ==
          "detector: backward_and_update was called before any forward");
    CHECK(error_of([&] { detector.forward(stream, images, boxes); }) ==
          "detector: 288 elements were given, expected 96 for each of 1 to 2 images");
    CHECK(error_of([&] { detector.forward(stream, images.span().first(96), boxes); }) ==
          "detector: elements of the predictions: 24 were given, expected 12");
    sluice::fill_bytes(stream, images, 0);
    detector.forward(stream, images.span().first(96), boxes.span().first(12));
    CHECK(error_of([&] { detector.backward_and_update(stream, boxes); }) ==
          "detector: elements of the predictions' gradient: 24 were given, expected 12");
    stream.synchronize();
}
