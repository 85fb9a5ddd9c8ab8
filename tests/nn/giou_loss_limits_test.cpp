// Box losses at their limits: no boxes, rows that do not fit, NaN, and sizes that are refused; and as graphs.
#include <sluice/graph/graph_capture.hpp>

#include "nn/giou_loss_case.hpp"

namespace nn_giou_loss_limits {

using namespace nn_test;

namespace {

const nn::ArticleGiou article;

/// Every variant's mean and gradient as `check(mean, gradient, tolerance)`, the tolerance that of the mean.
template <class Check>
void for_each_found(const BoxCase<float, float>& boxes, const Check& check) {
    const Stream stream;
    for_all_variants<float>(stream, article, boxes, 1.0f,
                            [&](const std::string& name, const Found& found, double allowed) {
                                CAPTURE(name);
                                check(found.mean, found.gradient, allowed);
                            });
}

} // namespace

TEST_CASE("giou loss: without boxes the mean and the gradient are 0") {
    NN_TEST_RANDOM(random);
    auto boxes = random_case<float, float>(random, 19, 7);
    for (auto& row : boxes.targets)
        row.clear();
    for_each_found(boxes, [&](float mean, const std::vector<double>& gradient, double) {
        CHECK(mean == 0.0f);
        CHECK(gradient == std::vector<double>(gradient.size(), 0.0));
    });
    // No rows at all, which is also what a refused result leaves, in memory that held others.
    const Stream stream;
    const sluice::RaggedCapacity room{19, 19 * 7};
    Targets<float> none = random_case<float, float>(random, 19, 7).ragged(stream, room);
    sluice::RaggedPacker<nn::Box<float>, B> packer(room);
    packer.copy_to(stream, none);
    nn::GiouScratch<B> scratch(19);
    const Found found = found_by<float>(stream, boxes, 1.0f, [&](auto predictions, auto result) {
        nn::giou_mean_ragged(stream.ref(), article, predictions, none.view(), result, scratch);
    });
    CHECK(found.mean == 0.0f);
    CHECK(found.gradient == std::vector<double>(found.gradient.size(), 0.0));
}

TEST_CASE("giou loss: rows that are not there, as in a bucket, take no part") {
    NN_TEST_RANDOM(random);
    const Stream stream;
    auto boxes = random_case<float, float>(random, 30, 5);
    auto fewer = boxes;
    fewer.targets.resize(11);
    for (std::size_t r = 11; r < 30; ++r)
        boxes.targets[r].clear();
    // What an earlier, larger batch has left behind is still there.
    const auto before = random_case<float, float>(random, 30, 5);
    const sluice::RaggedCapacity room{30, 30 * 5};
    Targets<float> targets = before.ragged(stream, room);
    sluice::RaggedPacker<nn::Box<float>, B> packer(room);
    packer.pack(fewer.targets);
    packer.copy_to(stream, targets);
    nn::GiouScratch<B> scratch(30);
    const Found found = found_by<float>(stream, boxes, 1.0f, [&](auto predictions, auto result) {
        nn::giou_mean_ragged(stream.ref(), article, predictions, targets.view(), result, scratch);
    });
    const double mean = boxes.mean(article);
    CHECK(std::abs(static_cast<double>(found.mean) - mean) <= 1e-6 * std::max(0.1, std::abs(mean)));
    CHECK(relative_error(found.gradient, boxes.gradient(article, 1.0)) <= 4e-6);
}

TEST_CASE("giou loss: a NaN makes the mean NaN, and the gradient of its own box alone") {
    NN_TEST_RANDOM(random);
    for (const bool in_target : {false, true}) {
        auto boxes = random_case<float, float>(random, 9, 6);
        boxes.targets[4].resize(6, random_box<float>(random, 0.0f));
        const std::size_t hit = random.between(0, 5);
        const auto expected = boxes.gradient(article, 1.0);
        (in_target ? boxes.targets[4][hit].y2 : boxes.predictions[4 * 6 + hit].y2) = NAN;
        for_each_found(boxes, [&](float mean, const std::vector<double>& gradient, double allowed) {
            CHECK(std::isnan(mean));
            std::vector<double> others;
            std::vector<double> expected_others;
            for (std::size_t i = 0; i < gradient.size(); ++i) {
                if (i / 4 == 4 * 6 + hit) {
                    CHECK(std::isnan(gradient[i]));
                } else {
                    others.push_back(gradient[i]);
                    expected_others.push_back(expected[i]);
                }
            }
            CHECK(relative_error(others, expected_others) <= 4 * allowed);
        });
    }
}

TEST_CASE("giou loss: a NaN where there is no box shows nowhere") {
    NN_TEST_RANDOM(random);
    auto boxes = random_case<float, float>(random, 9, 6);
    boxes.targets[4].clear();
    boxes.predictions[4 * 6].x1 = NAN;
    for_each_found(boxes, [&](float mean, const std::vector<double>& gradient, double allowed) {
        const double expected = boxes.mean(article);
        CHECK(std::abs(static_cast<double>(mean) - expected) <= allowed * std::max(0.1, std::abs(expected)));
        CHECK(relative_error(gradient, boxes.gradient(article, 1.0)) <= 4 * allowed);
    });
}

TEST_CASE("giou loss: a row longer than the width makes the mean NaN, and its own gradient 0") {
    NN_TEST_RANDOM(random);
    const Stream stream;
    auto boxes = random_case<float, std::uint8_t>(random, 13, 6);
    boxes.targets[7].clear();
    auto longer = boxes;
    longer.targets[7].resize(7, random_box<std::uint8_t>(random, 0.0f));
    const Targets<std::uint8_t> targets = longer.ragged(stream, longer.capacity());
    nn::GiouScratch<B> scratch(13);
    const auto room = static_cast<std::size_t>(targets.capacity().values);
    Buffer<nn::Box<float>> packed = poisoned<nn::Box<float>>(stream, room);
    Buffer<nn::Box<float>> packed_gradient = poisoned<nn::Box<float>>(stream, room);
    auto expected = boxes.gradient(article, 1.0);
    for (double& slope : expected) // the boxes that do not fit are counted all the same
        slope *= static_cast<double>(boxes.count()) / static_cast<double>(longer.count());
    const auto on = stream.ref();
    const auto check = [&](const auto& variant) {
        const Found found = found_by<float>(stream, boxes, 1.0f, variant);
        CHECK(std::isnan(found.mean));
        CHECK(relative_error(found.gradient, expected) <= 4e-6);
    };
    check([&](auto predictions, auto result) {
        nn::giou_mean_ragged(on, article, predictions, targets.view(), result, scratch);
    });
    check([&](auto predictions, auto result) {
        nn::giou_mean_looped(on, article, predictions, targets.view(), result, scratch);
    });
    check([&](auto predictions, auto result) {
        nn::giou_mean_concatenated(on, article, predictions, targets.view(), packed.span(),
                                   packed_gradient.span(), result, scratch);
    });
}

TEST_CASE("giou loss: ragged predictions of another size make the mean NaN, and the gradient 0") {
    NN_TEST_RANDOM(random);
    const Stream stream;
    auto boxes = random_case<float, float>(random, 13, 6);
    boxes.targets[3].resize(6, random_box<float>(random, 0.0f));
    auto fewer = boxes;
    fewer.targets[3].pop_back();
    const sluice::RaggedCapacity room = boxes.capacity();
    const Targets<float> targets = fewer.ragged(stream, room);
    const Targets<float> predictions = boxes.ragged(stream, room);
    nn::GiouScratch<B> scratch(13);
    Buffer<float> mean = device(std::vector<float>{1.0f});
    Buffer<nn::Box<float>> gradient = poisoned<nn::Box<float>>(stream, static_cast<std::size_t>(room.values));
    nn::giou_mean_ragged(stream.ref(), article, predictions.view(), targets.view(), result_of(mean, gradient),
                         scratch);
    CHECK(std::isnan(host(stream, mean)[0]));
    CHECK(numbers_of(host(stream, gradient)) == std::vector<double>(4 * boxes.count(), 0.0));
}

TEST_CASE("giou loss: one graph serves any rows that fit, and gives the bits of eager runs") {
    NN_TEST_RANDOM(random);
    const Stream stream;
    constexpr std::size_t rows = 70;
    constexpr std::size_t width = 12;
    const sluice::RaggedCapacity room{rows, rows * width};
    Targets<std::uint8_t> targets(room);
    sluice::RaggedPacker<nn::Box<std::uint8_t>, B> packer(room);
    auto boxes = random_case<float, std::uint8_t>(random, rows, width);
    const auto predictions = device(boxes.predictions);
    const nn::PaddedBoxes<const float, B> padded{predictions.span(), rows, width};
    nn::GiouScratch<B> scratch(rows);
    Buffer<float> means = poisoned<float>(stream, 2);
    Buffer<nn::Box<float>> gradient = poisoned<nn::Box<float>>(stream, rows * width);
    const auto work = [&](sluice::BasicStreamRef<B> on) {
        nn::giou_mean_ragged(on, article, padded, targets.view(),
                             nn::GiouResult<float, B>{means.span().subspan(0, 1)}, scratch);
        nn::giou_mean_ragged(on, article, padded, targets.view(),
                             nn::GiouResult<float, B>{means.span().subspan(1, 1), gradient.span()}, scratch);
    };
    sluice::GraphCapture<sluice::NoKey, B> graph;
    for (int batch = 0; batch < 40; ++batch) {
        CAPTURE(batch);
        boxes.targets = random_case<float, std::uint8_t>(random, rows, width).targets;
        if (batch % 8 == 5) { // all empty, or one row with everything
            for (auto& row : boxes.targets)
                row.clear();
            if (batch % 16 == 13)
                boxes.targets[random.between(0, rows - 1)].resize(width, random_box<std::uint8_t>(random, 0));
        }
        packer.pack(boxes.targets);
        packer.copy_to(stream, targets);
        graph.run(stream.ref(), work);
        const auto replayed = host(stream, means);
        const auto replayed_gradient = numbers_of(host(stream, gradient));
        sluice::fill_bytes(stream.ref(), means, 0xFF);
        sluice::fill_bytes(stream.ref(), gradient, 0xFF);
        work(stream);
        CHECK(host(stream, means) == replayed);
        CHECK(numbers_of(host(stream, gradient)) == replayed_gradient);
        const double mean = boxes.mean(article);
        CHECK(replayed[0] == replayed[1]);
        CHECK(std::abs(static_cast<double>(replayed[0]) - mean) <= 1e-6 * std::max(0.1, std::abs(mean)));
        CHECK(relative_error(replayed_gradient, boxes.gradient(article, 1.0)) <= 4e-6);
    }
    CHECK(graph.counters().captures == 1);
    CHECK(graph.counters().replays >= 38);
}

TEST_CASE("giou loss: what does not fit is refused in one sentence") {
    const Stream stream;
    Buffer<nn::Box<float>> boxes(12);
    Buffer<float> mean(1);
    nn::GiouScratch<B> scratch(4);
    const Targets<float> targets(sluice::RaggedCapacity{4, 12});
    const Targets<float> more_rows(sluice::RaggedCapacity{5, 12});
    const nn::PaddedBoxes<float, B> padded{boxes.span(), 4, 3};
    const auto run = [&](const auto& rows, nn::GiouResult<float, B> result, nn::GiouScratch<B>& with,
                         unsigned work = 1) {
        return error_of(
            [&] { nn::giou_mean_ragged(stream.ref(), article, padded, rows.view(), result, with, work); });
    };
    const nn::GiouResult<float, B> wanted{mean.span()};
    CHECK(error_of([&] {
              (void)nn::PaddedBoxes<float, B>{boxes.span(), 4, 4};
          }) == "4 rows of 4 boxes cannot be made of 12 boxes");
    Buffer<float> numbers(49);
    CHECK(error_of([&] {
              (void)nn::PaddedBoxes<float, B>{numbers.span(), 4, 3};
          }) == "4 rows of 3 boxes cannot be made of 49 numbers");
    CHECK(
        error_of([&] {
            (void)nn::PaddedBoxes<float, B>{numbers.span().last(48), 4, 3};
        }) ==
        "boxes cannot be made of numbers that begin in between; expected an address that is a multiple of 16 "
        "bytes");
    CHECK(run(targets, {}, scratch) == "giou_mean: neither the mean nor the gradient is asked for");
    CHECK(run(more_rows, wanted, scratch) ==
          "giou_mean: rows that there is room for in the targets: 5 were given, expected at most 4");
    nn::GiouScratch<B> small(3);
    CHECK(run(targets, wanted, small) ==
          "giou_mean: rows for this scratch memory: 4 were given, expected at most 3");
    CHECK(run(targets, {mean.span(), boxes.span().first(11)}, scratch) ==
          "giou_mean: boxes of the gradient: 11 were given, expected 12");
    CHECK(run(targets, wanted, scratch, 0) == "giou_mean: work is 0, expected at least 1");
    CHECK(run(targets, {{}, boxes.span()}, scratch, 2) ==
          "giou_mean: work is for the mean alone, and a gradient is asked for");
    Buffer<std::uint8_t> mask(11);
    CHECK(error_of([&] {
              nn::giou_mean_fused(stream.ref(), article, padded,
                                  nn::MaskedBoxes<float, B>{padded, mask.span()}, nn::Invalid::skipped,
                                  wanted, scratch);
          }) == "giou_mean: elements of the mask: 11 were given, expected 12");
    nn::GiouSteps<B> steps(11);
    Buffer<std::uint8_t> whole_mask(12);
    CHECK(error_of([&] {
              nn::giou_mean_padded(stream.ref(), article, padded,
                                   nn::MaskedBoxes<float, B>{padded, whole_mask.span()}, wanted, steps,
                                   scratch);
          }) == "giou_mean_padded: boxes for this memory: 12 were given, expected at most 11");
    const Targets<float> fewer(sluice::RaggedCapacity{4, 11});
    CHECK(error_of([&] {
              nn::giou_mean_ragged(stream.ref(), article, targets.view(), fewer.view(), wanted, scratch);
          }) == "giou_mean: boxes that there is room for in the targets: 11 were given, expected 12");
    stream.sync();
}

} // namespace nn_giou_loss_limits
