// ResNet-18 in training: batches of several sizes, the same bits again, as a graph and from saved weights, at no cost;
// wrong sizes; and that a narrow one learns digits.
#include <common/digits.hpp>
#include <sluice/graph/graph_capture.hpp>

#include "nn/resnet18_case.hpp"
#include "nn/steady.hpp"
#include "support/sanitized.hpp"

namespace nn_resnet18_training {

using namespace nn_test;
using StreamRef = sluice::BasicStreamRef<B>;

namespace {

/// Losses of steps on batches of 4 and of 3 images in turn, then the weights.
template <class Network>
std::vector<float> train(bool graphed, Network& network, const std::vector<std::vector<float>>& batches,
                         const Buffer<std::int32_t>& labels) {
    using T = typename Network::T;
    const Stream stream;
    Buffer<T> images = poisoned<T>(stream, batches[0].size());
    Buffer<float> loss = poisoned<float>(stream, 1);
    std::vector<float> results;
    sluice::GraphCapture<sluice::NoKey, B> graphs[2];
    for (std::size_t s = 0; s < batches.size(); ++s) {
        const std::size_t count = s % 2 == 0 ? 4 : 3;
        network.prepare(count);
        network.set_learning_rate(stream, 0.125f / static_cast<float>(s + 1));
        sluice::copy_and_wait(stream.ref(), images, rounded<T>(batches[s]));
        const auto work = [&](StreamRef on) {
            network.template train_step<std::int32_t>(
                on, std::as_const(images).span().first(count * network.image_size()),
                labels.span().first(count), loss);
        };
        if (graphed)
            graphs[s % 2].run(stream.ref(), work);
        else
            work(stream.ref());
        results.push_back(host(stream, loss)[0]);
    }
    if (graphed) {
        for (const auto& graph : graphs) {
            CHECK(graph.counters().captures == 1);
            CHECK(graph.counters().refusals == 0);
            CHECK(graph.counters().replays >= 1);
        }
    }
    const auto weights = values_of(network.weights(stream.ref()));
    results.insert(results.end(), weights.begin(), weights.end());
    return results;
}

/// A digit set's canvases as numbers in [-1, 1], [N, 32, 32, 3], and their classes.
struct Canvases {
    std::vector<float> images;
    std::vector<std::int32_t> labels;

    Canvases(const examples::IdxSplit& split, std::uint32_t epoch, std::size_t first, std::size_t count) {
        const examples::CanvasSpec spec{.height = 32, .width = 32, .digit = 28};
        std::vector<std::uint8_t> planes(examples::image_bytes(spec));
        for (std::size_t i = 0; i < count; ++i) {
            labels.push_back(examples::compose_classification(split, spec, 1, epoch, first + i, planes));
            for (std::size_t j = 0; j < planes.size(); ++j) {
                const std::uint8_t byte = planes[j % 3 * 1024 + j / 3];
                images.push_back(static_cast<float>(byte) / 127.5f - 1.0f);
            }
        }
    }
};

} // namespace

TEST_CASE("resnet18: steps give the same bits again and as graphs, for batches of two sizes") {
    NN_TEST_RANDOM(random);
    for_each_engine([&](const auto& engine) {
        INFO(engine.name);
        using Conv = typename std::decay_t<decltype(engine)>::Conv;
        nn::ResNet18Options options = small_resnet(random, 8);
        options.convolution.precision = engine.precision;
        std::vector<std::vector<float>> batches;
        for (int s = 0; s < 6; ++s)
            batches.push_back(draw_images(random, options, 4));
        const Buffer<std::int32_t> labels = device(draw_labels(random, 4, options.classes));
        std::vector<std::vector<float>> results;
        for (const bool graphed : {false, false, true}) {
            nn::ResNet18<B, Conv> network(options);
            results.push_back(train(graphed, network, batches, labels));
        }
        CHECK(results[0] == results[1]);
        CHECK(results[0] == results[2]);
        CHECK(results[0][0] != results[0][2]);
    });
}

TEST_CASE("resnet18: inference as a graph gives the same bits, one image or several") {
    NN_TEST_RANDOM(random);
    for_each_engine([&](const auto& engine) {
        INFO(engine.name);
        using Network = nn::ResNet18<B, typename std::decay_t<decltype(engine)>::Conv>;
        nn::ResNet18Options options = small_resnet(random, 8);
        options.convolution.precision = engine.precision;
        options.trainable = false;
        Network network(options);
        const Stream stream;
        const Buffer<typename Network::T> images =
            device(rounded<typename Network::T>(draw_images(random, options, 4)));
        for (const std::size_t count : {std::size_t{1}, std::size_t{4}}) {
            sluice::GraphCapture<sluice::NoKey, B> graph;
            Buffer<float> logits = poisoned<float>(stream, count * options.classes);
            std::vector<std::vector<float>> results;
            for (int run = 0; run < 3; ++run) {
                sluice::fill_bytes(stream, logits, 0xFF);
                graph.run(stream.ref(), [&](StreamRef on) {
                    network.infer(on, images.span().first(count * network.image_size()), logits);
                });
                results.push_back(host(stream, logits));
            }
            CHECK(graph.counters().captures == 1);
            CHECK(graph.counters().refusals == 0);
            CHECK_FALSE(std::isnan(results[0][0]));
            CHECK(results[1] == results[0]);
            CHECK(results[2] == results[0]);
        }
    });
}

TEST_CASE("resnet18: saved and loaded weights give the same logits and the same next step") {
    NN_TEST_RANDOM(random);
    nn::ResNet18Options options = small_resnet(random);
    const Stream stream;
    nn::ResNet18<B> one(options);
    options.seed += 1;
    options.stored_channels = 4;
    nn::ResNet18<B> two(options);
    const auto images = draw_images(random, options, 4);
    const Buffer<float> device_images = device(images);
    std::vector<float> narrow;
    for (std::size_t j = 0; j < images.size(); ++j) {
        if (j % 4 < 3)
            narrow.push_back(images[j]);
    }
    const Buffer<float> narrow_images = device(narrow);
    const Buffer<std::int32_t> labels = device(draw_labels(random, 4, options.classes));
    Buffer<float> loss = poisoned<float>(stream, 1);
    one.train_step<std::int32_t>(stream, narrow_images, labels, loss);
    two.load(stream.ref(), one.weights(stream.ref()));
    CHECK(stream.is_done());
    CHECK(values_of(two.weights(stream.ref())) == values_of(one.weights(stream.ref())));
    Buffer<float> logits = poisoned<float>(stream, 4 * options.classes);
    Buffer<float> others = poisoned<float>(stream, 4 * options.classes);
    one.fold(stream);
    one.infer(stream, narrow_images, logits);
    two.infer(stream, device_images, others);
    CHECK(relative_error(host(stream, others), host(stream, logits)) <=
          tolerance(options.convolution.precision));

    auto tensors = one.weights(stream.ref());
    tensors[0].shape[2] = 5;
    CHECK(error_of([&] { two.load(stream.ref(), tensors); }) ==
          "weights: conv1.weight has the shape [4, 3, 5, 7], expected [4, 3, 7, 7]");
    tensors.erase(tensors.begin());
    CHECK(error_of([&] { two.load(stream.ref(), tensors); }) ==
          "weights: there is no tensor named conv1.weight");
}

TEST_CASE("resnet18: nothing is allocated or created after the first steps") {
    NN_TEST_RANDOM(random);
    for_each_engine([&](const auto& engine) {
        INFO(engine.name);
        using Network = nn::ResNet18<B, typename std::decay_t<decltype(engine)>::Conv>;
        nn::ResNet18Options options = small_resnet(random, 8);
        options.convolution.precision = engine.precision;
        Network network(options);
        network.prepare(1);
        const Stream stream;
        const Buffer<typename Network::T> images =
            device(rounded<typename Network::T>(draw_images(random, options, 4)));
        const Buffer<std::int32_t> labels = device(draw_labels(random, 4, options.classes));
        const Buffer<std::uint8_t> bytes = device(random.bytes(4, options.classes));
        Buffer<float> loss = poisoned<float>(stream, 1);
        Buffer<float> logits = poisoned<float>(stream, options.classes);
        check_steady(
            stream,
            [&] {
                network.set_learning_rate(stream, 0.01f);
                network.template train_step<std::int32_t>(stream, images, labels, loss);
                network.template train_step<std::uint8_t>(stream, images, bytes, loss);
                network.zero_gradients(stream);
                network.evaluate(stream, images.span().first(network.image_size()), logits);
                network.fold(stream);
                network.infer(stream, images.span().first(network.image_size()), logits);
            },
            engine.uses_heap);
    });
}

TEST_CASE("resnet18: sizes and options that do not fit are refused in one sentence") {
    const nn::ResNet18Options options{
        .height = 32, .width = 32, .base_channels = 2, .classes = 3, .batch = 2};
    CHECK(error_of([&] {
              nn::ResNet18Options wrong = options;
              wrong.classes = 0;
              nn::ResNet18<B>{wrong};
          }) ==
          "resnet18: 32 x 32 pixels of 3 channels, 2 base channels, 0 classes, a batch of 2; none of these "
          "may be 0");
    CHECK(error_of([&] {
              nn::ResNet18Options wrong = options;
              wrong.stored_channels = 2;
              nn::ResNet18<B>{wrong};
          }) == "resnet18: 2 stored channels; expected at least the image's 3");
    nn::ResNet18<B> network(options);
    const Stream stream;
    Buffer<float> images(3 * network.image_size());
    Buffer<std::uint8_t> labels(3);
    Buffer<float> loss(1);
    const auto two = images.span().first(2 * network.image_size());
    CHECK(error_of([&] { network.train_step<std::uint8_t>(stream, images, labels, loss); }) ==
          "resnet18: 9216 elements were given, expected 3072 for each of 1 to 2 images");
    CHECK(error_of([&] { network.train_step<std::uint8_t>(stream, two, labels, loss); }) ==
          "resnet18: labels: 3 were given, expected 2");
    CHECK(error_of([&] { network.prepare(3); }) == "resnet18: a batch of 3 images; expected 1 to 2");
    CHECK(error_of([&] { network.infer(stream, two, loss); }) ==
          "resnet18: elements of the logits: 1 were given, expected 6");
    nn::ResNet18Options frozen = options;
    frozen.trainable = false;
    nn::ResNet18<B> inference(frozen);
    CHECK(error_of([&] { inference.train_step<std::uint8_t>(stream, two, labels.span().first(2), loss); }) ==
          "resnet18: a training step needs a network made trainable");
    CHECK(error_of([&] { inference.evaluate(stream, two, loss); }) ==
          "resnet18: `evaluate` needs a network made trainable; `infer` does not");
    nn::ResNet18Options single = options;
    single.batch = 1;
    nn::ResNet18<B> small(single);
    CHECK(error_of([&] {
              small.train_step<std::uint8_t>(stream, images.span().first(3072), labels.span().first(1), loss);
          }) ==
          "resnet18: a training step on one image whose last map is one pixel; expected two values for each "
          "channel at least, for their variance");
}

// What it computes is what the other cases do; this takes too long under a sanitizer.
TEST_CASE("resnet18: a narrow network learns digits" * doctest::skip(sluice::test::sanitized)) {
    const examples::DigitSet digits = examples::load_digit_set(SLUICE_DIGITS_DIR);
    constexpr std::size_t batch = 50;
    nn::ResNet18<B> network({.height = 32,
                             .width = 32,
                             .base_channels = 8,
                             .classes = 10,
                             .batch = batch,
                             .learning_rate = 0.05f,
                             .seed = 1});
    const Stream stream;
    Buffer<float> loss = poisoned<float>(stream, 1);
    Buffer<float> images(batch * network.image_size());
    Buffer<std::int32_t> labels(batch);
    const std::size_t steps = digits.train.labels.values.size() / batch;
    constexpr std::uint32_t epochs = 5;
    for (std::uint32_t epoch = 0; epoch < epochs; ++epoch) {
        for (std::size_t step = 0; step < steps; ++step) {
            const auto done = static_cast<float>(epoch * steps + step) / static_cast<float>(epochs * steps);
            network.set_learning_rate(stream, 0.05f * (1.0f - done));
            const Canvases canvases(digits.train, epoch, step * batch, batch);
            sluice::copy_and_wait(stream.ref(), images, canvases.images);
            sluice::copy_and_wait(stream.ref(), labels, canvases.labels);
            network.train_step<std::int32_t>(stream, images, labels, loss);
        }
    }
    network.fold(stream);
    Buffer<float> logits(batch * 10);
    Buffer<std::int32_t> predictions(batch);
    std::size_t right = 0;
    constexpr std::size_t held_out = 250;
    for (std::size_t first = 0; first < held_out; first += batch) {
        const Canvases canvases(digits.test, 0, first, batch);
        sluice::copy_and_wait(stream.ref(), images, canvases.images);
        network.infer(stream, images, logits);
        nn::predict_classes_wide(stream.ref(), matrix(logits, batch, 10), predictions);
        const auto predicted = host(stream, predictions);
        for (std::size_t i = 0; i < batch; ++i)
            right += predicted[i] == canvases.labels[i] ? std::size_t{1} : 0;
    }
    // 25 would be right by chance.
    CHECK(right >= 200);
}

} // namespace nn_resnet18_training
