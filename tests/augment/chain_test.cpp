// Chains: fused as one by one, types and layouts, any place in a batch, graphs, steady state.
#include <numeric>

#include "augment/support.hpp"
#include "support/alive.hpp"
#include "support/heap_count.hpp"

namespace augment_chain {

using namespace augment;
using namespace augment_test;

namespace {

constexpr Layout planar = Layout::planar;
constexpr Layout interleaved = Layout::interleaved;

ParameterRanges all_ranges(ImageShape image, int height, int width) {
    ParameterRanges ranges;
    ranges.angle_degrees = {-45.0f, 45.0f};
    ranges.sigma = {0.1f, 2.0f};
    ranges.flip_probability = 0.5f;
    ranges.brightness = {0.7f, 1.3f};
    ranges.contrast = {0.7f, 1.3f};
    return with_crop(ranges, image, height, width);
}

std::vector<SampleParameters> drawn(const ParameterRanges& ranges, int count, std::uint64_t first = 0) {
    std::vector<SampleParameters> result;
    for (int i = 0; i < count; ++i)
        result.push_back(draw(ranges, 5, {first + static_cast<std::uint64_t>(i), 0, 0}));
    return result;
}

/// What a stream and memory of a test are made of.
struct Batch {
    Batch(const std::vector<Image>& images, const PublishedChain& chain)
        : in(nn_test::device(packed<std::uint8_t>(images, planar))), shape(images.at(0).shape),
          out_shape(chain.output_shape(shape)),
          out(nn_test::poisoned<float>(stream, images.size() * Image(out_shape).values.size())) {}

    augment::Images<const std::uint8_t, B> given() const { return {in.span(), shape}; }
    augment::Images<float, B> result() { return {out.span(), out_shape}; }

    Stream stream;
    Buffer<std::uint8_t> in;
    ImageShape shape;
    ImageShape out_shape;
    Buffer<float> out;
};

PublishedChain small_chain() {
    return published_chain({.crop_height = 20,
                            .crop_width = 24,
                            .height = 40,
                            .width = 48,
                            .fill = 9.0f,
                            .normalize = Normalize{{100.0f, 120.0f, 140.0f}, {50.0f, 60.0f, 70.0f}}});
}

} // namespace

TEST_CASE("chain: fused equals its operators one by one") {
    NN_TEST_RANDOM(random);
    for (int repeat = 0; repeat < 6; ++repeat) {
        constexpr int channels[] = {3, 1, 3, 2, 3, 3};
        const ImageShape shape{channels[repeat], static_cast<int>(random.between(30, 70)),
                               static_cast<int>(random.between(30, 70))};
        const int height = static_cast<int>(random.between(4, 30));
        const int width = static_cast<int>(random.between(4, 30));
        const int out_height = repeat < 3 ? 2 * height : static_cast<int>(random.between(4, 90));
        const int out_width =
            repeat < 3 ? 2 * width : static_cast<int>(random.between(4, repeat == 5 ? 400 : 90));
        const auto images = random_images(random, 3, shape);
        const auto own = drawn(all_ranges(shape, height, width), 3);
        const Normalize normalize{90.0f, 40.0f};
        const PublishedChain chain{Crop{height, width}, Resize{out_height, out_width}, Rotate<Nearest>{7.0f},
                                   Blur<7>{}, normalize};
        auto expected = run<std::uint8_t, float>(Chain{Crop{height, width}}, images, own);
        expected = run<float, float>(Chain{Resize{out_height, out_width}}, expected, own);
        expected = run<float, float>(Chain{Rotate<Nearest>{7.0f}}, expected, own);
        expected = run<float, float>(Chain{Blur<7>{}}, expected, own);
        expected = run<float, float>(Chain{normalize}, expected, own);
        const auto actual = run<std::uint8_t, float>(chain, images, own);
        const auto from_floats = run<float, float>(chain, images, own);
        for (std::size_t i = 0; i < images.size(); ++i) {
            CHECK(difference(actual[i], expected[i]) <= 255.0 / 40.0 * 1e-5);
            CHECK(difference(from_floats[i], expected[i]) <= 255.0 / 40.0 * 1e-5);
        }
    }
}

TEST_CASE("chain: operators in any order") {
    NN_TEST_RANDOM(random);
    const ImageShape shape{3, 40, 33};
    const auto images = random_images(random, 3, shape);
    const auto own = drawn(all_ranges(shape, 25, 30), 3);
    const LongChain chain{Scale{0.5f},
                          Flip{},
                          RoiAlignCrop{25, 30},
                          Rotate<Bilinear>{40.0f},
                          Resize{17, 41},
                          Brightness{},
                          Blur<5>{},
                          Contrast{50.0f},
                          Normalize{{50, 60, 70}, {20, 30, 40}}};
    const auto actual = run<std::uint8_t, float>(chain, images, own, {interleaved, interleaved});
    for (std::size_t i = 0; i < images.size(); ++i) {
        const auto each = [](const Image& in, const auto& f) {
            return Image::make(in.shape, [&](int c, int y, int x) { return f(in.at(c, y, x), c); });
        };
        Image image = each(images[i], [](double v, int) { return 0.5 * v; });
        image = own[i].flip != 0 ? flip(image) : image;
        image = roi_align_crop(image, own[i].top, own[i].left, 25, 30);
        image = rotate_bilinear(image, static_cast<double>(own[i].angle_degrees), 40.0);
        image = resize(image, 17, 41, true);
        image = each(image, [&](double v, int) { return v * static_cast<double>(own[i].brightness); });
        image = blur(image, 5, static_cast<double>(own[i].sigma));
        image = each(image, [&](double v, int c) {
            const double contrast = (v - 50.0) * static_cast<double>(own[i].contrast) + 50.0;
            return (contrast - (50 + 10 * c)) / (20 + 10 * c);
        });
        CHECK(difference(actual[i], image) <= 1e-3);
    }
}

TEST_CASE_TEMPLATE("chain: every type from and to every type, in every layout", In, std::uint8_t, nn::Half,
                   float) {
    NN_TEST_RANDOM(random);
    for (const int channels : {1, 3, 5}) {
        const auto images = random_images(random, 2, {channels, 7, 13});
        const std::vector<SampleParameters> own(2);
        for (const Layout from : {planar, interleaved}) {
            for (const Layout to : {planar, interleaved}) {
                const Chain chain{Scale{0.25f}};
                const auto bytes = run<In, std::uint8_t>(chain, images, own, {from, to});
                const auto halves = run<In, nn::Half>(chain, images, own, {from, to});
                const auto floats = run<In, float>(chain, images, own, {from, to});
                for (std::size_t i = 0; i < images.size(); ++i) {
                    const auto scaled = [&](bool rounded) {
                        return Image::make(images[i].shape, [&](int c, int y, int x) {
                            const double value = 0.25 * images[i].at(c, y, x);
                            return rounded ? std::nearbyint(value) : value;
                        });
                    };
                    CHECK(difference(bytes[i], scaled(true)) == 0.0);
                    CHECK(difference(halves[i], scaled(false)) == 0.0);
                    CHECK(difference(floats[i], scaled(false)) == 0.0);
                }
            }
        }
    }
}

TEST_CASE("chain: bytes hold what is out of range as 0 or 255, and NaN as 0") {
    std::vector<Image> images{Image({1, 1, 7})};
    images[0].values = {-3.0, -0.4, 254.6, 255.4, 300.0, 1e30, NAN};
    const auto actual =
        run_packed<float, std::uint8_t>(ScaleChain{Scale{1.0f}}, images, {SampleParameters{}});
    CHECK(actual == std::vector<std::uint8_t>{0, 0, 255, 255, 255, 255, 0});
}

TEST_CASE("chain: a sample has the same bits in any batch, at any place") {
    NN_TEST_RANDOM(random);
    const ImageShape shape{3, 64, 48};
    const auto images = random_images(random, 5, shape);
    const auto own = drawn(all_ranges(shape, 20, 24), 5);
    const PublishedChain chain = small_chain();
    const auto all = run_packed<std::uint8_t, float>(chain, images, own);
    const std::size_t each = all.size() / 5;
    for (const std::vector<std::size_t>& order :
         {std::vector<std::size_t>{3}, std::vector<std::size_t>{4, 2, 0, 1, 3, 3, 2}}) {
        std::vector<Image> chosen;
        std::vector<SampleParameters> chosen_own;
        // Enough of them that a device cuts images into other strips than for one.
        for (int repeat = 0; repeat < 40; ++repeat) {
            for (const std::size_t i : order) {
                chosen.push_back(images[i]);
                chosen_own.push_back(own[i]);
            }
        }
        const auto actual = run_packed<std::uint8_t, float>(chain, chosen, chosen_own);
        bool same = true;
        for (std::size_t k = 0; k < chosen.size(); ++k) {
            const std::size_t i = order[k % order.size()];
            same = same && std::equal(all.begin() + static_cast<std::ptrdiff_t>(i * each),
                                      all.begin() + static_cast<std::ptrdiff_t>((i + 1) * each),
                                      actual.begin() + static_cast<std::ptrdiff_t>(k * each));
        }
        CHECK(same);
    }
}

TEST_CASE("chain: the published one gives on this backend what the CPU gives") {
    NN_TEST_RANDOM(random);
    struct Sizes {
        int crop;
        int out;
    };
    for (const Sizes sizes : {Sizes{128, 256}, Sizes{100, 256}, Sizes{60, 300}}) {
        CAPTURE(sizes.crop);
        const PublishedOptions options{
            .crop_height = sizes.crop, .crop_width = sizes.crop, .height = sizes.out, .width = sizes.out};
        const ImageShape shape{3, 140, 152};
        const PublishedChain chain = published_chain(options);
        const auto images = random_images(random, 2, shape);
        const auto own = drawn(published_ranges(shape, options), 2);
        Batch batch(images, chain);
        const auto table = nn_test::device(own);
        apply(batch.stream.ref(), chain, batch.given(), table.span(), batch.result());
        const auto actual = nn_test::host(batch.stream, batch.out);

        const auto bytes = packed<std::uint8_t>(images, planar);
        std::vector<float> expected(actual.size(), NAN);
        using sluice::Host;
        apply(chain,
              augment::Images<const std::uint8_t, Host>(
                  sluice::DeviceSpan<const std::uint8_t, Host>(bytes.data(), bytes.size()), shape),
              sluice::DeviceSpan<const SampleParameters, Host>(own.data(), own.size()),
              augment::Images<float, Host>(sluice::DeviceSpan<float, Host>(expected.data(), expected.size()),
                                           batch.out_shape));
        double worst = 0.0;
        for (std::size_t i = 0; i < actual.size(); ++i) {
            const double error = std::abs(static_cast<double>(actual[i]) - static_cast<double>(expected[i]));
            worst = error <= worst ? worst : (error > worst ? error : INFINITY);
        }
        CHECK(worst <= byte_tolerance);
    }
}

TEST_CASE("chain: a replay draws for the samples that are there then") {
    NN_TEST_RANDOM(random);
    const ImageShape shape{3, 50, 60};
    const PublishedChain chain = small_chain();
    const auto images = random_images(random, 3, shape);
    const ParameterRanges ranges = all_ranges(shape, 20, 24);
    Batch batch(images, chain);
    Buffer<SampleId> ids(1);
    const ParameterSource<B> source(ranges, 5, ids.span());
    const sluice::BasicGraph<B> graph = sluice::capture(batch.stream, [&](sluice::BasicStreamRef<B> s) {
        apply(s, chain, batch.given(), source, batch.result());
    });
    const sluice::BasicGraphExec<B> replay(graph);
    std::vector<float> before;
    for (const std::uint64_t first : {0u, 3u, 70000u}) {
        sluice::copy_and_wait(batch.stream.ref(), ids, std::vector<SampleId>{{first, 0, 0}});
        replay.launch(batch.stream);
        const auto actual = nn_test::host(batch.stream, batch.out);
        CHECK(actual == run_packed<std::uint8_t, float>(chain, images, drawn(ranges, 3, first)));
        CHECK(actual != before);
        before = actual;
    }
}

TEST_CASE("chain: steady calls allocate nothing") {
    NN_TEST_RANDOM(random);
    const PublishedChain chain = small_chain();
    const ImageShape shape{3, 50, 60};
    Batch batch(random_images(random, 2, shape), chain);
    Buffer<SampleId> ids(1);
    sluice::fill_bytes(batch.stream, ids, 0);
    const ParameterSource<B> source(all_ranges(shape, 20, 24), 5, ids.span());
    apply(batch.stream.ref(), chain, batch.given(), source, batch.result());
    batch.stream.sync();
    const auto alive = sluice::test::alive_now<B>();
    const sluice::test::HeapCount heap;
    for (int i = 0; i < 3; ++i)
        apply(batch.stream.ref(), chain, batch.given(), source, batch.result());
    batch.stream.sync();
    CHECK(heap.allocations() == 0);
    CHECK(sluice::test::alive_now<B>() == alive);
}

} // namespace augment_chain
