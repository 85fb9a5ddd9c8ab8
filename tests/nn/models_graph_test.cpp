// Steps of training as graphs: replays follow the learning rate, and give the bits of steps that run eagerly.
#include <nn/core/fork.hpp>
#include <nn/models/classifier.hpp>
#include <nn/models/decoder.hpp>
#include <sluice/graph/graph_capture.hpp>

#include "nn/support.hpp"

namespace nn_models_graph {

using namespace nn_test;
using StreamRef = sluice::BasicStreamRef<B>;

namespace {

const nn::EncoderOptions encoder_options{
    .height = 8, .width = 12, .channels = {5, 6, 8}, .batch = 3, .image_scale = 1.0f / 64.0f};
const nn::DecoderOptions decoder_options{
    .height = 8, .width = 12, .channels = {8, 6, 5}, .classes = 4, .batch = 3, .learning_rate = 0.5f};
const std::vector<float> rates{0.5f, 0.25f, 0.0f, 0.125f, 1.0f, 0.0625f};

/// Runs a step a rate, each on images of its own in the same place. Returns the losses, then the weights.
template <class Network, class Step>
std::vector<float> train(bool graphed, Network& network, const std::vector<Buffer<std::uint8_t>>& batches,
                         const Step& step) {
    const Stream stream;
    sluice::GraphCapture<sluice::NoKey, B> graph;
    Buffer<std::uint8_t> images = poisoned<std::uint8_t>(stream, batches[0].size());
    Buffer<float> loss = poisoned<float>(stream, 1);
    Buffer<float> losses = poisoned<float>(stream, rates.size());
    const auto work = [&](StreamRef on) { step(on, std::as_const(images).span(), loss.span()); };
    // Nothing waits in between: each step must find its own images and its own rate.
    for (std::size_t s = 0; s < rates.size(); ++s) {
        copy(stream, images, batches[s]);
        network.set_learning_rate(stream, rates[s]);
        if (graphed)
            graph.run(stream.ref(), work);
        else
            work(stream.ref());
        copy(stream, losses.span().subspan(s, 1), loss);
    }
    std::vector<float> results = host(stream, losses);
    for (const nn::NamedTensor& tensor : network.weights(stream))
        results.insert(results.end(), tensor.values.begin(), tensor.values.end());
    if (graphed) {
        CHECK(graph.counters().captures == 1);
        CHECK(graph.counters().refusals == 0);
        CHECK(graph.counters().replays >= rates.size() - 2);
    }
    return results;
}

std::vector<Buffer<std::uint8_t>> draw_batches(Random& random) {
    std::vector<Buffer<std::uint8_t>> batches;
    for (std::size_t s = 0; s < rates.size(); ++s)
        batches.push_back(device(random.bytes(encoder_options.batch * 3 * 8 * 12)));
    return batches;
}

} // namespace

TEST_CASE("models in graphs: a frozen encoder and a decoder") {
    NN_TEST_RANDOM(random);
    const auto batches = draw_batches(random);
    const Buffer<std::uint8_t> labels = device(random.bytes(3 * 8 * 12, decoder_options.classes));
    std::vector<std::vector<float>> results;
    for (const bool graphed : {false, true}) {
        nn::Encoder<B> encoder(encoder_options);
        nn::Decoder<B> decoder(decoder_options);
        Buffer<float> features(encoder_options.batch * encoder.features_size());
        results.push_back(train(graphed, decoder, batches, [&](StreamRef on, auto images, auto loss) {
            encoder.forward(on, images, features);
            decoder.step(on, features, labels, loss);
        }));
    }
    CHECK(results[0] == results[1]);
}

TEST_CASE("models in graphs: an encoder that trains with a classifier") {
    NN_TEST_RANDOM(random);
    const auto batches = draw_batches(random);
    const Buffer<std::uint8_t> labels = device(random.bytes(3, 5));
    nn::EncoderOptions options = encoder_options;
    options.trainable = true;
    std::vector<std::vector<float>> results;
    for (const bool graphed : {false, true}) {
        nn::Encoder<B> encoder(options);
        nn::Classifier<B> classifier(encoder, {.classes = 5, .learning_rate = 0.1f});
        results.push_back(train(graphed, classifier, batches, [&](StreamRef on, auto images, auto loss) {
            classifier.step(on, images, labels, loss);
        }));
    }
    CHECK(results[0] == results[1]);
}

TEST_CASE("models in graphs: a learning rate cannot be set while a step is captured") {
    nn::Decoder<B> decoder(decoder_options);
    const Stream stream;
    const std::string error = error_of(
        [&] { sluice::capture(stream, [&](StreamRef on) { decoder.set_learning_rate(on, 0.1f); }); });
    CHECK(error.find("bake") != std::string::npos);
}

TEST_CASE("models in graphs: a fork is joined when something throws in the middle of it") {
    const Stream stream;
    const Stream side;
    sluice::BasicEvent<B> begun;
    sluice::BasicEvent<B> joined;
    Buffer<std::uint8_t> bytes = poisoned<std::uint8_t>(stream, std::size_t{1} << 24);
    std::vector<std::uint8_t> last(1);
    const auto last_byte = [&] {
        copy_and_wait(stream, last, bytes.span().last(1));
        return last[0];
    };
    const auto work = [&](StreamRef on, bool throws) {
        nn::Fork<B> fork(on, side.ref(), joined);
        fork.follow(begun);
        for (std::uint8_t value = 1; value <= 128; ++value)
            sluice::fill_bytes(side, bytes, value);
        if (throws)
            throw sluice::Error("in the middle");
        fork.join();
    };
    REQUIRE(last_byte() == 0xFF);
    SUBCASE("at once") {
        CHECK(error_of([&] { work(stream.ref(), true); }) == "in the middle");
        CHECK(last_byte() == 128);
    }
    SUBCASE("in a capture") {
        const std::string error =
            error_of([&] { sluice::capture(stream, [&](StreamRef on) { work(on, true); }); });
        CHECK(error == "in the middle");
        CHECK_FALSE(B::is_capturing(side.get()));
        const sluice::BasicGraphExec<B> executable(
            sluice::capture(stream, [&](StreamRef on) { work(on, false); }));
        executable.launch(stream);
        CHECK(last_byte() == 128);
    }
    SUBCASE("that was never begun, in a capture") {
        const sluice::BasicGraphExec<B> executable(sluice::capture(stream, [&](StreamRef on) {
            const nn::Fork<B> fork(on, side.ref(), joined);
            sluice::fill_bytes(on, bytes, 7);
        }));
        executable.launch(stream);
        CHECK(last_byte() == 7);
    }
}

} // namespace nn_models_graph
