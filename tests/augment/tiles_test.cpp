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

TEST_CASE("tiles: two images of a large batch, which is cut into larger parts, have the same bits alone") {
    NN_TEST_RANDOM(random);
    struct Case {
        int crop_height;
        int crop_width;
        int height;
        int width;
        int images;
    };
    // 300 columns are several tiles.
    for (Case c : {Case{64, 64, 128, 128, 80}, Case{50, 30, 75, 41, 90}, Case{30, 60, 90, 300, 70},
                   Case{40, 45, 70, 90, 150}, Case{20, 24, 40, 48, 300}}) {
        if (!nn_test::on_device)
            c.images = 5;
        CAPTURE(c.width);
        const PublishedOptions options{.crop_height = c.crop_height,
                                       .crop_width = c.crop_width,
                                       .height = c.height,
                                       .width = c.width,
                                       .fill = 9.0f};
        const ImageShape shape{3, 71, 68};
        const PublishedChain chain = published_chain(options);
        auto own = drawn(options, shape, c.images);
        own[0].angle_degrees = 90.0f;
        own[1].angle_degrees = -180.0f;
        const Stream stream;
        const auto in =
            nn_test::device(packed<std::uint8_t>(random_images(random, c.images, shape), Layout::planar));
        const auto table = nn_test::device(own);
        const auto made = [&](std::size_t count) {
            const ImageShape out_shape = chain.output_shape(shape);
            Buffer<float> out = nn_test::poisoned<float>(stream, count * Image(out_shape).values.size());
            apply(stream.ref(), chain,
                  Images<const std::uint8_t, B>(in.span().first(count * Image(shape).values.size()), shape),
                  table.span().first(count), Images<float, B>(out.span(), out_shape));
            return nn_test::host(stream, out);
        };
        const auto all = made(static_cast<std::size_t>(c.images));
        const auto two = made(2);
        CHECK(std::equal(two.begin(), two.end(), all.begin()));
    }
}

TEST_CASE("tiles: any angle reads only what is there") {
    NN_TEST_RANDOM(random);
    const int side = nn_test::on_device ? 128 : 32; // of the crop
    const ImageShape shape{3, side + 22, side + 32};
    constexpr float angles[] = {0.0f,   -0.0f, 90.0f, -90.0f, 180.0f, 270.0f, 44.9f,    135.0f,
                                1e-20f, 1e7f,  NAN,   60.5f,  -30.0f, 1e19f,  -2.4e21f, 3e38f};
    constexpr int count = static_cast<int>(std::size(angles));
    for (const int width : {side, side + 2}) { // weights are eighths, and are not
        CAPTURE(width);
        const PublishedOptions options{
            .crop_height = side, .crop_width = width, .height = 2 * side, .width = 2 * side, .fill = 9.0f};
        auto own = drawn(options, shape, count);
        for (int i = 0; i < count; ++i)
            own[static_cast<std::size_t>(i)].angle_degrees = angles[i];
        const auto images = random_images(random, count, shape);
        const auto together = run<std::uint8_t, float>(published_chain(options), images, own);
        auto expected =
            run<std::uint8_t, float>(Chain{Crop{side, width}, Resize{2 * side, 2 * side}}, images, own);
        const auto enlarged = expected;
        expected = run<float, float>(Chain{Rotate<Nearest>{9.0f}}, enlarged, own);
        expected = run<float, float>(Chain{Blur<7>{}}, expected, own);
        for (std::size_t i = 0; i < images.size(); ++i) {
            CAPTURE(i);
            CHECK(difference(together[i], expected[i]) <= byte_tolerance);
        }
        // Four pixels for each, up to one row further away. A float32 coordinate is multiplied by steps of up to 255.
        const auto smooth = run<std::uint8_t, float>(
            Chain{Crop{side, width}, Resize{2 * side, 2 * side}, Rotate<Bilinear>{9.0f}, Blur<7>{}}, images,
            own);
        expected = run<float, float>(Chain{Rotate<Bilinear>{9.0f}}, enlarged, own);
        expected = run<float, float>(Chain{Blur<7>{}}, expected, own);
        for (std::size_t i = 0; i < images.size(); ++i) {
            CAPTURE(i);
            CHECK(difference(smooth[i], expected[i]) <= 0.05);
        }
    }
}

TEST_CASE("tiles: images without a blur, wider than a tile and not, by fours and not") {
    NN_TEST_RANDOM(random);
    for (const int width : {1028, 1101, 36, 7}) {
        for (const Layout layout : {Layout::planar, Layout::interleaved}) {
            CAPTURE(width);
            CAPTURE(static_cast<int>(layout));
            const ImageShape shape{3, 21, width};
            const auto images = random_images(random, 3, shape);
            std::vector<SampleParameters> own(images.size());
            for (std::size_t i = 0; i < own.size(); ++i) {
                own[i].flip = i == 1 ? 1 : 0;
                own[i].angle_degrees = 180.0f * static_cast<float>(i);
            }
            const Layouts layouts{layout, layout};
            const Normalize normalize{{100.0f, 110.0f, 120.0f}, {50.0f, 60.0f, 70.0f}};
            const auto values = run<float, float>(Chain{normalize}, images, own, layouts);
            const auto flipped = run<std::uint8_t, std::uint8_t>(Chain{Flip{}}, images, own, layouts);
            const auto rotated = run<float, float>(Chain{Rotate<Nearest>{}}, images, own, layouts);
            for (std::size_t i = 0; i < images.size(); ++i) {
                CAPTURE(i);
                const Image normalized = Image::make(shape, [&](int c, int y, int x) {
                    return (images[i].at(c, y, x) - (100.0 + 10.0 * c)) / (50.0 + 10.0 * c);
                });
                CHECK(difference(values[i], normalized) <= 1e-5);
                CHECK(difference(flipped[i], i == 1 ? flip(images[i]) : images[i]) == 0.0);
                CHECK(difference(rotated[i],
                                 rotate_nearest(images[i], 180.0 * static_cast<double>(i), 0.0)) == 0.0);
            }
        }
    }
}

} // namespace augment_tiles
