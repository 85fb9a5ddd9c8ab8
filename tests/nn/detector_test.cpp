// The detector as a whole: against float64 and PyTorch, and with what does not fit.
#include <algorithm>

#include <common/safetensors.hpp>

#include "nn/detector_case.hpp"
#include "nn/naive_detector.hpp"
#include "support/reference.hpp"

namespace nn_detector {

using namespace nn_test;

namespace {

naive::Images scaled_images(const std::vector<std::uint8_t>& bytes, const nn::DetectorOptions& options) {
    const std::size_t size = options.height * options.width;
    naive::Images images(bytes.size() / size, 1, options.height, options.width);
    for (std::size_t i = 0; i < bytes.size(); ++i)
        images.values[i] = static_cast<double>(options.image_scale) * static_cast<double>(bytes[i]);
    return images;
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
                // The gradients of the last layer come straight from its inputs, through no pool and no ReLU.
                const bool last = i + 2 >= before.size();
                if (forward_tolerance(precision) <= 1e-5)
                    CHECK(relative_error(moved, expected[i]) <= 1e-5);
                else if (last)
                    CHECK(relative_error(moved, expected[i]) <= 5e-2);
                all_moved.insert(all_moved.end(), moved.begin(), moved.end());
                all_expected.insert(all_expected.end(), expected[i].begin(), expected[i].end());
            }
            // Where factors are rounded, elements of a pool that are nearly equal change places, and sums
            // near 0 change signs before a ReLU; whole gradients then go elsewhere, and in networks as small
            // as these a few of them are a large part of all. One that has nothing to do with the right one
            // is off by more than 1.
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
    stream.sync();
}

} // namespace nn_detector
