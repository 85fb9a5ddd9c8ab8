// What is refused, each with one sentence.
#include <limits>

#include "augment/support.hpp"
#include "support/error_text.hpp"

namespace augment_refusals {

using namespace augment;
using namespace augment_test;
using nn_test::error_of;
using sluice::test::contains;

namespace {

constexpr ImageShape shape{3, 20, 30};

template <class C>
std::string shape_error(const C& chain, ImageShape in = shape) {
    return error_of([&] { (void)chain.output_shape(in); });
}

} // namespace

TEST_CASE("refusals: what an operator cannot do") {
    CHECK(contains(shape_error(Chain{Crop{21, 30}}), "a crop of 21x30 was asked for, from images of 20x30"));
    CHECK(contains(shape_error(Chain{Crop{20, 0}}), "a crop of 20x0"));
    CHECK(contains(shape_error(Chain{RoiAlignCrop{20, 31}}), "a crop of 20x31"));
    CHECK(contains(shape_error(Chain{Crop{20, 20}, Crop{20, 21}}), "from images of 20x20"));
    CHECK(contains(shape_error(Chain{Resize{0, 5}}), "a resize to images of 3x0x5"));
    CHECK(contains(shape_error(Chain{Resize{1 << 20, 1 << 20}}), "fewer than 2^31"));
    CHECK(contains(shape_error(Chain{Blur<11>{}}, {3, 5, 30}),
                   "a blur of 11x11 was asked for on images of 5x30"));
    CHECK(shape_error(Chain{Blur<11>{}}, {3, 6, 6}) == "(no sluice::Error was thrown)");
    CHECK(contains(shape_error(Chain{Normalize{{1, 2}, {1, 2}}}), "for 2 channels was given images of 3"));
}

TEST_CASE("refusals: normalisations") {
    CHECK(contains(error_of([] { Normalize({1.0f, 2.0f}, {1.0f, 0.0f}); }), "the deviation not 0"));
    CHECK(contains(error_of([] { Normalize(NAN, 1.0f); }), "must be finite"));
    CHECK(contains(error_of([] { Normalize({1.0f}, {1.0f, 2.0f}); }), "1 mean and 2 standard deviations"));
    CHECK(
        contains(error_of([] { Normalize(std::span<const float>{}, std::span<const float>{}); }), "0 means"));
}

TEST_CASE("refusals: parameters") {
    const auto valid = [](auto change) {
        ParameterRanges ranges;
        change(ranges);
        return error_of([&] { require_valid(ranges); });
    };
    CHECK(contains(valid([](auto& r) { r.sigma = {0.0f, 1.0f}; }), "sigma must be positive"));
    CHECK(contains(valid([](auto& r) { r.sigma = {-1.0f, 1.0f}; }), "sigma must be positive"));
    CHECK(contains(valid([](auto& r) { r.angle_degrees = {NAN, 1.0f}; }), "an angle from nan"));
    CHECK(contains(valid([](auto& r) { r.angle_degrees = {2.0f, 1.0f}; }), "an angle from 2"));
    CHECK(contains(valid([](auto& r) { r.brightness = {0.0f, INFINITY}; }), "a brightness"));
    CHECK(contains(valid([](auto& r) { r.contrast = {0.0f, NAN}; }), "a contrast"));
    CHECK(contains(valid([](auto& r) { r.flip_probability = 1.5f; }), "a probability of 1.5"));
    CHECK(contains(valid([](auto& r) { r.last_top = -1; }), "row -1"));
    CHECK(contains(error_of([] { (void)with_crop({}, shape, 21, 5); }), "a crop of 21x5"));
    CHECK(contains(error_of([] { (void)published_ranges({3, 100, 200}); }), "a crop of 128x128"));
}

TEST_CASE("refusals: a crop that is out of its image is moved into it") {
    NN_TEST_RANDOM(random);
    const auto images = random_images(random, 2, shape);
    std::vector<SampleParameters> own(2);
    own[0] = {.top = std::numeric_limits<int>::max(), .left = std::numeric_limits<int>::min()};
    own[1] = {.top = -5, .left = 26};
    const auto actual = run<std::uint8_t, float>(CropChain{Crop{15, 5}}, images, own);
    CHECK(difference(actual[0], crop(images[0], 5, 0, 15, 5)) == 0.0);
    CHECK(difference(actual[1], crop(images[1], 0, 25, 15, 5)) == 0.0);
}

TEST_CASE("refusals: batches") {
    Buffer<std::uint8_t> in(2 * 3 * 20 * 30);
    Buffer<float> out(2 * 3 * 10 * 10);
    Buffer<SampleParameters> table(2);
    Buffer<SampleId> ids(3);
    const Stream stream;
    using In = augment::Images<const std::uint8_t, B>;
    using Out = augment::Images<float, B>;
    CHECK(contains(error_of([&] { In(in.span().first(0), shape); }), "a batch of images is empty"));
    CHECK(contains(error_of([&] { In(in.span().first(100), shape); }), "no number of images of 3x20x30"));
    CHECK(contains(error_of([&] { In(in.span(), {3, 0, 30}); }), "3x0x30"));

    const Chain chain{Crop{10, 10}};
    const auto refused = [&](auto parameters, Out result) {
        return error_of([&] {
            run_chain<B, CropChain>(stream, chain, In(in.span(), shape),
                                    augment::ParameterSource<B>(parameters), result);
        });
    };
    const Out fits(out.span(), {3, 10, 10});
    CHECK(contains(refused(table.span(), Out(out.span().first(300), {3, 10, 10})), "room for 1 of 3x10x10"));
    CHECK(contains(refused(table.span(), Out(out.span(), {3, 5, 20})), "room for 2 of 3x5x20"));
    CHECK(contains(refused(table.span().first(1), fits),
                   "sample parameters for 1 image were given for a batch of 2; expected 2"));
    CHECK(contains(
        error_of([&] {
            run_chain<B, CropChain>(stream, chain, In(in.span(), shape),
                                    augment::ParameterSource<B>(ParameterRanges{}, 0, ids.span()), fits);
        }),
        "sample ids for 3 images were given for a batch of 2; expected 2, or the first one's alone"));
    stream.sync();
}

} // namespace augment_refusals
