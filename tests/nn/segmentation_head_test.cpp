// The decoder's end in one kernel, against float64: every border of tiles and images, any number of blocks.
#include "nn/segmentation_head_case.hpp"

namespace nn_segmentation_head {

TEST_CASE("segmentation head: gradients, loss, steps and predictions against float64, in odd shapes") {
    NN_TEST_RANDOM(random);
    const Stream stream;
    check(stream, Case(random, {.height = 48, .width = 48, .levels = 4, .images = 2}, 11), 132);
    check(stream, Case(random, {.height = 64, .width = 96, .levels = 5, .images = 1}, 10), 5);
    check(stream, Case(random, {.height = 2, .width = 2, .levels = 1, .images = 1}, 16), 1);
    // Up to 12 classes a lane has three sums that may be one, beyond that four.
    check(stream, Case(random, {.height = 16, .width = 48, .levels = 3, .images = 1}, 12), 2);
    check(stream, Case(random, {.height = 16, .width = 48, .levels = 3, .images = 1}, 13), 2);
    for (int round = 0; round < 6; ++round) {
        const std::size_t levels = random.between(1, 3);
        const nn::SegmentationHeadShape shape{.height = random.between(1, 40 >> levels) << levels,
                                              .width = random.between(1, 72 >> levels) << levels,
                                              .levels = levels,
                                              .images = random.between(1, 3)};
        check(stream, Case(random, shape, random.between(2, 16)), random.between(1, 6));
    }
}

TEST_CASE("segmentation head: a label that is no class shows in the loss and moves nothing") {
    NN_TEST_RANDOM(random);
    const Stream stream;
    Case data(random, {.height = 20, .width = 36, .levels = 2, .images = 2}, 10);
    for (int i = 0; i < 40; ++i)
        data.labels[random.between(0, data.labels.size() - 1)] =
            static_cast<std::uint8_t>(random.between(10, 255));
    data.labels[0] = 254;
    data.labels[1] = 255;
    data.labels[2] = 10;
    check(stream, data, 3);
}

TEST_CASE("segmentation head: the same bits in every run, and in a graph") {
    NN_TEST_RANDOM(random);
    const Stream stream;
    const Case data(random, {.height = 32, .width = 64, .levels = 3, .images = 2}, 10);
    const std::size_t blocks = nn::segmentation_head_blocks();
    CHECK(blocks >= 1);
    Run one(stream, data, 0.5f, blocks);
    Run two(stream, data, 0.5f, blocks);
    for (int i = 0; i < 3; ++i)
        one.step(stream, data);
    // Sums are written, never added to: a replay finds what the step before left.
    sluice::BasicGraph<B> graph =
        sluice::capture(stream.ref(), [&](sluice::BasicStreamRef<B> on) { two.step(on, data); });
    const sluice::BasicGraphExec<B> executable(graph);
    for (int i = 0; i < 3; ++i)
        executable.launch(stream);
    CHECK(host(stream, one.gradient) == host(stream, two.gradient));
    CHECK(host(stream, one.up) == host(stream, two.up));
    CHECK(host(stream, one.last) == host(stream, two.last));
    CHECK(host(stream, one.loss) == host(stream, two.loss));
}

TEST_CASE("segmentation head: what does not fit is refused in one sentence") {
    NN_TEST_RANDOM(random);
    const Stream stream;
    const Case data(random, {.height = 4, .width = 8, .levels = 2, .images = 1}, 3);
    Run run(stream, data, 0.5f, 2);
    Case wrong = data;
    wrong.shape.height = 6;
    CHECK(error_of([&] {
              nn::segmentation_head_predict(stream.ref(), wrong.shape, run.const_weights(data),
                                            matrix(run.in, data.pixels() / 4, inputs), run.predictions, 2);
          }) == "segmentation_head_predict: images of 6 x 8 pixels in an order of 2 levels; expected sides "
                "up to 2^16 that the "
                "order "
                "halves, at least once");
    wrong.shape.height = 8;
    CHECK(error_of([&] {
              nn::segmentation_head_predict(stream.ref(), wrong.shape, run.const_weights(data),
                                            matrix(run.in, data.pixels() / 4, inputs), run.predictions, 2);
          }) == "segmentation_head_predict: rows of the map: 8 were given, expected 16");
    Buffer<float> shifted(run.in.size() + 1);
    CHECK(error_of([&] {
              nn::segmentation_head_predict(
                  stream.ref(), data.shape, run.const_weights(data),
                  {shifted.span().subspan(1, run.in.size()), data.pixels() / 4, inputs}, run.predictions, 2);
          }) == "segmentation_head_predict: the map begins at an address that is no multiple of 16 bytes");
    CHECK(error_of([&] {
              nn::segmentation_head_gradients(stream.ref(), data.shape, run.const_weights(data),
                                              matrix(run.in, data.pixels() / 4, inputs), run.labels,
                                              shifted.span().subspan(1, run.in.size()), run.sums, 2);
          }) ==
          "segmentation_head_gradients: the gradient begins at an address that is no multiple of 8 bytes");
    run.blocks = 0;
    CHECK(error_of([&] { run.predict(stream, data); }) ==
          "segmentation_head_predict: 1 tiles for 0 blocks; expected 1 to 2^31 - 1 and at least 1");
    run.blocks = 3;
    CHECK(error_of([&] {
              run.step(stream, data);
          }).find("segmentation_head_gradients: elements of the sums") == 0);
}

} // namespace nn_segmentation_head
