// The decoder's end at both ends of float16's range, and beyond.
#include "nn/segmentation_head_case.hpp"

namespace nn_segmentation_head {

TEST_CASE("segmentation head: numbers near both ends of float16's range") {
    NN_TEST_RANDOM(random);
    const Stream stream;
    const nn::SegmentationHeadShape shape{.height = 20, .width = 68, .levels = 2, .images = 2};
    {
        // Maps up to some ten thousand.
        Case data(random, shape, 10);
        scale(data.in, 4096.0f);
        scale(data.up_bias, 4096.0f);
        scale(data.last_weights, 1.0f / 4096.0f);
        // So great a step that float32 shows what moved a bias of some hundred.
        check(stream, data, 3, 0x1p28f);
    }
    {
        // Maps that are a thousandth of the usual.
        Case data(random, shape, 10);
        scale(data.up_weights, 1.0f / 1024.0f);
        scale(data.up_bias, 1.0f / 1024.0f);
        scale(data.last_weights, 1024.0f / 16.0f);
        check(stream, data, 3);
    }
    {
        // Nearly certain, and nearly always right: gradients far below float16's least normal number.
        Case data(random, shape, 10);
        scale(data.last_weights, 1.0f / 16.0f);
        data.last_bias[3] += 12.0f;
        std::fill(data.labels.begin(), data.labels.end(), std::uint8_t{3});
        check(stream, data, 3);
    }
}

TEST_CASE("segmentation head: what float16 has no number for shows in the loss or in the gradients") {
    NN_TEST_RANDOM(random);
    const Stream stream;
    const nn::SegmentationHeadShape shape{.height = 20, .width = 36, .levels = 2, .images = 2};
    const auto run_of = [&](const auto& change) {
        Case data(random, shape, 10);
        change(data);
        Run run(stream, data, 0.5f, 3);
        run.step(stream, data);
        return std::pair(host(stream, run.loss)[0], host(stream, run.gradient));
    };
    const auto finite = [](const std::vector<float>& values) {
        return std::all_of(values.begin(), values.end(), [](float value) { return std::isfinite(value); });
    };
    const auto usual = run_of([](Case&) {});
    CHECK(std::isfinite(usual.first));
    CHECK(finite(usual.second));
    const auto at = [&](const auto& values) { return random.between(0, values.size() - 1); };
    for (const float great : {70000.0f, 1e10f, static_cast<float>(INFINITY), static_cast<float>(NAN)}) {
        CAPTURE(great);
        CHECK(std::isnan(run_of([&](Case& data) { data.in[at(data.in)] = great; }).first));
        CHECK(std::isnan(run_of([&](Case& data) { data.up_bias[at(data.up_bias)] = great; }).first));
        CHECK(std::isnan(run_of([&](Case& data) { data.up_weights[at(data.up_weights)] = great; }).first));
        const auto last = run_of([&](Case& data) { data.last_weights[at(data.last_weights)] = great; });
        CHECK((!std::isfinite(last.first) || !finite(last.second)));
    }
    // Only gradients are too great.
    const auto steep = run_of([](Case& data) {
        scale(data.up_weights, 1.0f / 4096.0f);
        scale(data.up_bias, 1.0f / 4096.0f);
        scale(data.last_weights, 4096.0f);
    });
    CHECK(std::isfinite(steep.first));
    CHECK_FALSE(finite(steep.second));
}

} // namespace nn_segmentation_head
