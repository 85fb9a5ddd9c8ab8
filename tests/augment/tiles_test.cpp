// How a device cuts images into parts, and what each part stages: the same pixels.
#include "augment/support.hpp"

namespace augment_tiles {

using namespace augment;
using namespace augment_test;

namespace {

std::vector<SampleParameters> drawn(const PublishedOptions& options, ImageShape shape, int count) {
    std::vector<SampleParameters> result;
    for (int i = 0; i < count; ++i)
        result.push_back(draw(published_ranges(shape, options), 5, {static_cast<std::uint64_t>(i), 0, 0}));
    return result;
}

} // namespace

TEST_CASE("tiles: any angle reads only what is there") {
    NN_TEST_RANDOM(random);
    const ImageShape shape{3, 150, 160};
    constexpr float angles[] = {0.0f,   -0.0f,  90.0f, -90.0f, 180.0f, 270.0f, 44.9f,
                                135.0f, 1e-20f, 1e7f,  NAN,    60.5f,  -30.0f};
    constexpr int count = static_cast<int>(std::size(angles));
    for (const int width : {128, 130}) { // weights are eighths, and are not
        CAPTURE(width);
        const PublishedOptions options{
            .crop_height = 128, .crop_width = width, .height = 256, .width = 256, .fill = 9.0f};
        auto own = drawn(options, shape, count);
        for (int i = 0; i < count; ++i)
            own[static_cast<std::size_t>(i)].angle_degrees = angles[i];
        const auto images = random_images(random, count, shape);
        const auto together = run<std::uint8_t, float>(published_chain(options), images, own);
        auto expected = run<std::uint8_t, float>(Chain{Crop{128, width}, Resize{256, 256}}, images, own);
        expected = run<float, float>(Chain{Rotate<Nearest>{9.0f}}, expected, own);
        expected = run<float, float>(Chain{Blur<7>{}}, expected, own);
        for (std::size_t i = 0; i < images.size(); ++i) {
            CAPTURE(i);
            CHECK(difference(together[i], expected[i]) <= byte_tolerance);
        }
    }
}

} // namespace augment_tiles
