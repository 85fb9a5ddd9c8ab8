// Every operator against plain loops in float64, on random images of random sizes.
#include <string>

#include "augment/support.hpp"

namespace augment_operators {

using namespace augment;
using namespace augment_test;

namespace {

constexpr Layout planar = Layout::planar;
constexpr Layout interleaved = Layout::interleaved;

/// Coordinates are in float32, as PyTorch's are: near 170 they are off by up to 1e-5 of a pixel, between values that are up
/// to 255 apart.
constexpr double resize_tolerance = 2 * byte_tolerance;

/// Extents with the awkward ones among them.
int extent(Random& random, int most) {
    const std::size_t kind = random.between(0, 5);
    return kind == 0 ? 1 : static_cast<int>(random.between(1, static_cast<std::size_t>(most)));
}

ImageShape random_shape(Random& random, int most = 60) {
    constexpr int channels[] = {1, 3, 3, 4};
    return {channels[random.between(0, 3)], extent(random, most), extent(random, most)};
}

std::vector<SampleParameters> random_parameters(Random& random, int count, ImageShape shape, int height,
                                                int width) {
    std::vector<SampleParameters> result(static_cast<std::size_t>(count));
    for (SampleParameters& own : result) {
        // The last place too.
        own.top = static_cast<int>(random.between(0, static_cast<std::size_t>(shape.height - height)));
        own.left = static_cast<int>(random.between(0, static_cast<std::size_t>(shape.width - width)));
        own.angle_degrees = static_cast<float>(random.between(0, 3600)) / 10.0f - 180.0f;
        own.sigma = 0.1f + static_cast<float>(random.between(0, 300)) / 100.0f;
        own.flip = static_cast<int>(random.between(0, 1));
        own.brightness = 0.5f + static_cast<float>(random.between(0, 100)) / 100.0f;
        own.contrast = 0.5f + static_cast<float>(random.between(0, 100)) / 100.0f;
    }
    result.back().top = shape.height - height;
    result.back().left = shape.width - width;
    return result;
}

struct Case {
    std::vector<Image> images;
    std::vector<SampleParameters> parameters;
    int height; ///< of a crop that fits
    int width;
};

Case random_case(Random& random, ImageShape shape) {
    const int count = static_cast<int>(random.between(1, 4));
    const int height = static_cast<int>(random.between(1, static_cast<std::size_t>(shape.height)));
    const int width = static_cast<int>(random.between(1, static_cast<std::size_t>(shape.width)));
    return {random_images(random, count, shape), random_parameters(random, count, shape, height, width),
            height, width};
}

/// Checks that each image is what `expected(image, parameters)` gives.
template <class F>
void check(const std::vector<Image>& actual, const Case& given, double allowed, const F& expected) {
    REQUIRE(actual.size() == given.images.size());
    for (std::size_t i = 0; i < actual.size(); ++i) {
        CAPTURE(i);
        CHECK(difference(actual[i], expected(given.images[i], given.parameters[i])) <= allowed);
    }
}

/// Nearest pixels that are in doubt may be either neighbour's.
Image without_ties(Image image, double degrees) {
    for (int c = 0; c < image.shape.channels; ++c) {
        for (int y = 0; y < image.shape.height; ++y) {
            for (int x = 0; x < image.shape.width; ++x) {
                if (near_tie(image.shape, degrees, y, x))
                    image.at(c, y, x) = 0.0;
            }
        }
    }
    return image;
}

template <int Size>
void check_blur(Random& random) {
    const int least = Size / 2 + 1;
    for (int repeat = 0; repeat < 6; ++repeat) {
        const ImageShape shape{repeat % 2 == 0 ? 3 : 2,
                               least + static_cast<int>(random.between(0, repeat == 0 ? 0 : 50)),
                               least + static_cast<int>(random.between(0, repeat == 1 ? 0 : 50))};
        CAPTURE(shape.height);
        CAPTURE(shape.width);
        const Case given = random_case(random, shape);
        const Layouts layouts{planar, repeat < 3 ? planar : interleaved};
        const auto expected = [](const Image& image, const SampleParameters& own) {
            return blur(image, Size, static_cast<double>(own.sigma));
        };
        if constexpr (Size == 7) {
            check(run<float, float>(Chain{Blur<Size>{}}, given.images, given.parameters, layouts), given,
                  byte_tolerance, expected);
        } else {
            check(run<std::uint8_t, float>(Chain{Blur<Size>{}}, given.images, given.parameters, layouts),
                  given, byte_tolerance, expected);
        }
    }
}

} // namespace

TEST_CASE("operators: crops") {
    NN_TEST_RANDOM(random);
    for (int repeat = 0; repeat < 12; ++repeat) {
        const Case given = random_case(random, random_shape(random));
        const Layouts layouts{repeat % 2 == 0 ? planar : interleaved, repeat % 3 == 0 ? planar : interleaved};
        check(run<std::uint8_t, float>(Chain{Crop{given.height, given.width}}, given.images, given.parameters,
                                       layouts),
              given, 0.0, [&](const Image& image, const SampleParameters& own) {
                  return crop(image, own.top, own.left, given.height, given.width);
              });
        check(run<std::uint8_t, float>(Chain{RoiAlignCrop{given.height, given.width}}, given.images,
                                       given.parameters, layouts),
              given, 0.0, [&](const Image& image, const SampleParameters& own) {
                  return roi_align_crop(image, own.top, own.left, given.height, given.width);
              });
    }
}

TEST_CASE("operators: resizes") {
    NN_TEST_RANDOM(random);
    for (int repeat = 0; repeat < 16; ++repeat) {
        const Case given = random_case(random, random_shape(random));
        const int height = extent(random, 70);
        const int width = extent(random, 70);
        CAPTURE(given.images[0].shape.height);
        CAPTURE(given.images[0].shape.width);
        CAPTURE(height);
        CAPTURE(width);
        for (const bool antialias : {true, false}) {
            CAPTURE(antialias);
            check(run<std::uint8_t, float>(Chain{Resize{height, width, antialias}}, given.images,
                                           given.parameters),
                  given, resize_tolerance, [&](const Image& image, const SampleParameters&) {
                      return resize(image, height, width, antialias);
                  });
        }
    }
}

// What a device keeps in shared memory: with weights in eighths, with others, and what does not fit there.
TEST_CASE("operators: resized crops") {
    NN_TEST_RANDOM(random);
    struct Sizes {
        int crop;
        int out;
    };
    for (const Sizes sizes : {Sizes{20, 40}, Sizes{20, 20}, Sizes{21, 84}, Sizes{33, 70}, Sizes{2, 9},
                              Sizes{1, 8}, Sizes{130, 131}, Sizes{170, 171}, Sizes{40, 20}}) {
        CAPTURE(sizes.crop);
        CAPTURE(sizes.out);
        const int more = static_cast<int>(random.between(0, 9));
        const ImageShape shape{3, sizes.crop + more, (sizes.crop + more + 3) / 4 * 4};
        Case given{random_images(random, 2, shape),
                   random_parameters(random, 2, shape, sizes.crop, sizes.crop), sizes.crop, sizes.crop};
        for (const Layout layout : {planar, interleaved}) {
            check(run<std::uint8_t, float>(Chain{Crop{sizes.crop, sizes.crop}, Resize{sizes.out, sizes.out}},
                                           given.images, given.parameters, {layout, planar}),
                  given, resize_tolerance, [&](const Image& image, const SampleParameters& own) {
                      return resize(crop(image, own.top, own.left, sizes.crop, sizes.crop), sizes.out,
                                    sizes.out, true);
                  });
        }
    }
}

TEST_CASE("operators: rotations") {
    NN_TEST_RANDOM(random);
    for (int repeat = 0; repeat < 8; ++repeat) {
        Case given = random_case(random, random_shape(random));
        if (repeat == 0) {
            for (SampleParameters& own : given.parameters)
                own.angle_degrees = 90.0f * static_cast<float>(random.between(0, 8)) - 360.0f;
        }
        auto actual = run<float, float>(Chain{Rotate<Nearest>{3.0f}}, given.images, given.parameters);
        for (std::size_t i = 0; i < actual.size(); ++i)
            actual[i] = without_ties(actual[i], static_cast<double>(given.parameters[i].angle_degrees));
        check(actual, given, 0.0, [&](const Image& image, const SampleParameters& own) {
            const double angle = static_cast<double>(own.angle_degrees);
            return without_ties(rotate_nearest(image, angle, 3.0), angle);
        });
        check(run<float, float>(Chain{Rotate<Bilinear>{3.0f}}, given.images, given.parameters), given,
              0.05, // a coordinate in float32, times a step of 255
              [&](const Image& image, const SampleParameters& own) {
                  return rotate_bilinear(image, static_cast<double>(own.angle_degrees), 3.0);
              });
    }
}

TEST_CASE("operators: quarter turns are exact") {
    NN_TEST_RANDOM(random);
    const auto images = random_images(random, 1, {3, 33, 33});
    std::vector<SampleParameters> own(1);
    own[0].angle_degrees = 90.0f;
    const Image rotated = run<float, float>(NearestChain{Rotate<Nearest>{}}, images, own)[0];
    // Counter-clockwise: what was at the right is at the top.
    CHECK(difference(rotated, Image::make(rotated.shape, [&](int c, int y, int x) {
                         return images[0].at(c, x, 32 - y);
                     })) == 0.0);
}

TEST_CASE("operators: an angle that is none gives the fill") {
    NN_TEST_RANDOM(random);
    const auto images = random_images(random, 4, {3, 9, 12});
    std::vector<SampleParameters> own(4);
    own[0].angle_degrees = NAN;
    own[1].angle_degrees = INFINITY;
    own[2].angle_degrees = -1e15f;
    own[3].angle_degrees = 3e38f;
    for (const auto& results : {run<float, float>(NearestChain{Rotate<Nearest>{5.0f}}, images, own),
                                run<float, float>(BilinearChain{Rotate<Bilinear>{5.0f}}, images, own)}) {
        for (const Image& image : results)
            CHECK(difference(image, Image::make(image.shape, [](int, int, int) { return 5.0; })) == 0.0);
    }
}

TEST_CASE("operators: flip") {
    NN_TEST_RANDOM(random);
    for (int repeat = 0; repeat < 4; ++repeat) {
        const Case given = random_case(random, random_shape(random));
        check(run<std::uint8_t, std::uint8_t>(Chain{Flip{}}, given.images, given.parameters), given, 0.0,
              [](const Image& image, const SampleParameters& own) {
                  return own.flip != 0 ? flip(image) : image;
              });
    }
}

TEST_CASE("operators: blurs") {
    NN_TEST_RANDOM(random);
    check_blur<1>(random);
    check_blur<7>(random);
    check_blur<11>(random);
}

TEST_CASE("operators: blurs of images wider than a tile") {
    NN_TEST_RANDOM(random);
    for (const int width : {255, 256, 257, 248, 249, 500}) {
        CAPTURE(width);
        const Case given = random_case(random, {3, 20, width});
        check(run<float, float>(Chain{Blur<7>{}}, given.images, given.parameters), given, byte_tolerance,
              [](const Image& image, const SampleParameters& own) {
                  return blur(image, 7, static_cast<double>(own.sigma));
              });
    }
}

TEST_CASE("operators: extreme sigmas") {
    NN_TEST_RANDOM(random);
    const auto images = random_images(random, 4, {3, 16, 16});
    std::vector<SampleParameters> own(4);
    own[0].sigma = 1e-20f;
    own[1].sigma = 1e20f;
    own[2].sigma = 0.0f;
    own[3].sigma = -1.0f;
    const auto actual = run<float, float>(BlurChain{Blur<7>{}}, images, own);
    CHECK(difference(actual[0], images[0]) == 0.0);
    CHECK(difference(actual[1], blur(images[1], 7, 1e20)) <= byte_tolerance);
    CHECK(std::isnan(actual[2].values[5]));
    CHECK(std::isnan(actual[3].values[5]));
}

TEST_CASE("operators: values") {
    NN_TEST_RANDOM(random);
    for (int repeat = 0; repeat < 4; ++repeat) {
        const Case given = random_case(random, random_shape(random));
        const int channels = given.images[0].shape.channels;
        std::vector<float> mean, deviation;
        for (int c = 0; c < (repeat == 0 ? 1 : channels); ++c) {
            mean.push_back(static_cast<float>(random.between(0, 255)));
            deviation.push_back(static_cast<float>(random.between(1, 100)));
        }
        check(run<float, float>(Chain{Normalize{mean, deviation}}, given.images, given.parameters), given,
              byte_tolerance, [&](const Image& image, const SampleParameters&) {
                  return Image::make(image.shape, [&](int c, int y, int x) {
                      const std::size_t i = mean.size() == 1 ? 0 : static_cast<std::size_t>(c);
                      return (image.at(c, y, x) - static_cast<double>(mean[i])) /
                             static_cast<double>(deviation[i]);
                  });
              });
        check(run<std::uint8_t, std::uint8_t>(Chain{Brightness{}, Contrast{100.0f}}, given.images,
                                              given.parameters),
              given, 0.51, [&](const Image& image, const SampleParameters& own) {
                  return Image::make(image.shape, [&](int c, int y, int x) {
                      const double light = image.at(c, y, x) * static_cast<double>(own.brightness);
                      const double value = (light - 100.0) * static_cast<double>(own.contrast) + 100.0;
                      return std::clamp(value, 0.0, 255.0);
                  });
              });
    }
}

} // namespace augment_operators
