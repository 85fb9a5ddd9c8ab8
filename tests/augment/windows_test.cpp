// Images that are rotated or made smaller, which a device does from windows of them: against plain loops in float64.
#include "augment/support.hpp"

namespace augment_windows {

using namespace augment;
using namespace augment_test;

namespace {

constexpr Layout every_layout[] = {Layout::planar, Layout::interleaved};

/// Whole degrees, quarter turns, and what is no angle.
constexpr float angles[] = {0.0f,  -0.0f,  45.0f,  -45.0f, 90.0f, 180.0f, -90.0f,
                            13.7f, -31.0f, 101.5f, 1e7f,   NAN,   1e16f};

std::vector<SampleParameters> turns() {
    std::vector<SampleParameters> own(std::size(angles));
    for (std::size_t i = 0; i < own.size(); ++i)
        own[i].angle_degrees = angles[i];
    return own;
}

/// The difference where the nearest pixel is not in doubt; all is, that comes from an angle which is none.
double difference_beside_ties(Image actual, Image expected, double degrees) {
    for (int y = 0; y < actual.shape.height; ++y) {
        for (int x = 0; x < actual.shape.width; ++x) {
            if (!near_tie(actual.shape, degrees, y, x))
                continue;
            for (int c = 0; c < actual.shape.channels; ++c)
                actual.at(c, y, x) = expected.at(c, y, x);
        }
    }
    return difference(actual, expected);
}

template <class In>
void check_shrunk(Random& random, ImageShape shape, int height, int width) {
    CAPTURE(shape.channels);
    CAPTURE(shape.height);
    CAPTURE(shape.width);
    CAPTURE(height);
    CAPTURE(width);
    const auto images = random_images(random, 2, shape);
    const std::vector<SampleParameters> own(images.size());
    std::vector<Image> expected;
    for (const Image& image : images)
        expected.push_back(resize(image, height, width, true));
    for (const Layout from : every_layout) {
        for (const Layout to : every_layout) {
            const auto actual = run<In, float>(ResizeChain{Resize{height, width}}, images, own, {from, to});
            for (std::size_t i = 0; i < images.size(); ++i)
                CHECK(difference(actual[i], expected[i]) <= 2 * byte_tolerance);
        }
    }
}

} // namespace

TEST_CASE("windows: bytes that are rotated, by any angle, in every layout") {
    NN_TEST_RANDOM(random);
    const auto own = turns();
    // Widths that are multiples of four, and not; less than a tile, one, and several.
    for (ImageShape shape : {ImageShape{3, 130, 136}, ImageShape{3, 64, 64}, ImageShape{3, 67, 129},
                             ImageShape{3, 1, 200}, ImageShape{3, 90, 1}, ImageShape{2, 30, 40}}) {
        if (!nn_test::on_device)
            shape = {shape.channels, (shape.height + 2) / 3, (shape.width + 2) / 3};
        CAPTURE(shape.height);
        CAPTURE(shape.width);
        const auto images = random_images(random, static_cast<int>(own.size()), shape);
        const Normalize normalize{40.0f, 2.0f};
        for (const Layout from : every_layout) {
            for (const Layout to : every_layout) {
                const auto nearest =
                    run<std::uint8_t, float>(NearestChain{Rotate<Nearest>{7.0f}}, images, own, {from, to});
                const auto smooth = run<std::uint8_t, nn::Half>(
                    RotatedChain{Rotate<Bilinear>{7.0f}, normalize}, images, own, {from, to});
                for (std::size_t i = 0; i < images.size(); ++i) {
                    CAPTURE(angles[i]);
                    const bool turns = std::abs(angles[i]) < 1e15f;
                    const double angle = turns ? static_cast<double>(angles[i]) : 0.0;
                    const Image fill = Image::make(shape, [](int, int, int) { return 7.0; });
                    const Image from_nearest = turns ? rotate_nearest(images[i], angle, 7.0) : fill;
                    CHECK(difference_beside_ties(nearest[i], from_nearest, angle) == 0.0);
                    const Image from_smooth = turns ? rotate_bilinear(images[i], angle, 7.0) : fill;
                    // Coordinates are in float32, times steps of 255; and a half's last digit.
                    CHECK(difference(smooth[i], Image::make(shape, [&](int c, int y, int x) {
                                         return (from_smooth.at(c, y, x) - 40.0) / 2.0;
                                     })) <= 0.1);
                }
            }
        }
    }
}

TEST_CASE("windows: images made smaller, of every type, in every layout") {
    NN_TEST_RANDOM(random);
    check_shrunk<std::uint8_t>(random, {3, 64, 256}, 32, 128);
    check_shrunk<std::uint8_t>(random, {3, 67, 301}, 31, 140);
    check_shrunk<nn::Half>(random, {3, 40, 44}, 17, 40);
    check_shrunk<float>(random, {3, 50, 37}, 49, 5);
    // One channel, several, one row or column, what grows along one side, and what does not fit a block.
    check_shrunk<std::uint8_t>(random, {1, 33, 40}, 20, 20);
    check_shrunk<float>(random, {4, 33, 40}, 11, 39);
    check_shrunk<std::uint8_t>(random, {3, 90, 1}, 7, 1);
    check_shrunk<nn::Half>(random, {3, 1, 90}, 1, 7);
    check_shrunk<std::uint8_t>(random, {3, 20, 200}, 130, 20);
    check_shrunk<std::uint8_t>(random, {3, 300, 12}, 3, 30);
    check_shrunk<std::uint8_t>(random, {3, 1300, 8}, 2, 4);
    check_shrunk<std::uint8_t>(random, {3, 4, 5000}, 2, 2);
}

TEST_CASE("windows: crops made smaller, wherever they begin") {
    NN_TEST_RANDOM(random);
    const ImageShape shape{3, 70, 84};
    const auto images = random_images(random, 6, shape);
    std::vector<SampleParameters> own(images.size());
    for (SampleParameters& one : own) {
        one.top = static_cast<int>(random.between(0, 20));
        one.left = static_cast<int>(random.between(0, 23));
    }
    own.back().top = 20;
    own.back().left = 23;
    for (const Layout layout : every_layout) {
        const auto actual = run<std::uint8_t, float>(CropResizeChain{Crop{50, 61}, Resize{21, 33}}, images,
                                                     own, {layout, layout});
        for (std::size_t i = 0; i < images.size(); ++i) {
            const Image part = crop(images[i], own[i].top, own[i].left, 50, 61);
            CHECK(difference(actual[i], resize(part, 21, 33, true)) <= 2 * byte_tolerance);
        }
    }
}

// Where a size is halved, many a number is half-way between two bytes.
TEST_CASE("windows: halved bytes are the same as the CPU's, ties too") {
    NN_TEST_RANDOM(random);
    const ImageShape shape{3, 96, 104};
    const ResizeChain chain{Resize{48, 52}};
    const auto images = random_images(random, 2, shape);
    const std::vector<SampleParameters> own(images.size());
    const auto actual = run_packed<std::uint8_t, std::uint8_t>(chain, images, own);
    const auto bytes = packed<std::uint8_t>(images, Layout::planar);
    std::vector<std::uint8_t> expected(actual.size(), 0xee);
    using sluice::Host;
    apply(chain,
          augment::Images<const std::uint8_t, Host>(
              sluice::DeviceSpan<const std::uint8_t, Host>(bytes.data(), bytes.size()), shape),
          sluice::DeviceSpan<const SampleParameters, Host>(own.data(), own.size()),
          augment::Images<std::uint8_t, Host>(
              sluice::DeviceSpan<std::uint8_t, Host>(expected.data(), expected.size()), {3, 48, 52}));
    CHECK(actual == expected);
}

TEST_CASE("windows: a sample has the same bits alone") {
    NN_TEST_RANDOM(random);
    const ImageShape shape{3, 100, 132};
    const auto images = random_images(random, 40, shape);
    std::vector<SampleParameters> own(images.size());
    for (SampleParameters& one : own)
        one.angle_degrees = static_cast<float>(random.between(0, 3600)) / 10.0f;
    const auto check = [&](const auto& chain) {
        const auto all = run_packed<std::uint8_t, float>(chain, images, own);
        const std::size_t each = all.size() / images.size();
        for (const std::size_t i : {std::size_t{0}, images.size() - 1}) {
            const auto alone = run_packed<std::uint8_t, float>(chain, {images[i]}, {own[i]});
            CHECK(
                std::equal(alone.begin(), alone.end(), all.begin() + static_cast<std::ptrdiff_t>(i * each)));
        }
    };
    check(NearestChain{Rotate<Nearest>{7.0f}});
    check(ResizeChain{Resize{41, 60}});
}

} // namespace augment_windows
