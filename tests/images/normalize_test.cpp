// Normalising: its arithmetic, and every type, layout, size and alignment against it.
#include <cmath>

#include "images/support.hpp"

namespace images_normalize_test {

using namespace images;
using namespace images_test;

namespace {

template <class Out>
void check(ImageShape shape, Layout in_order, Layout out_order, std::size_t offset) {
    constexpr std::size_t count = 3;
    const Normalize with(0.4f, 0.3f);
    const auto bytes = sluice::test::random_values<std::uint8_t>(count * numbers_in(shape), 5);
    const auto in = nn::to_device<B>(in_layout(bytes, shape, in_order));
    const auto found = written<Out>(bytes.size(), offset, [&](auto stream, auto out) {
        normalize(stream, with, Images<const std::uint8_t, B>(in, shape, in_order),
                  Images<Out, B>(out, shape, out_order));
        stream.sync();
    });
    CAPTURE(shape.height);
    CAPTURE(shape.channels);
    CAPTURE(offset);
    CHECK(sluice::test::same_bytes(found, in_layout(converted<Out>(bytes, with), shape, out_order)));
}

} // namespace

TEST_CASE("normalize: divides by 255, subtracts the mean, divides by the deviation") {
    for (const auto& [mean, deviation] : {std::pair{0.5f, 0.5f}, {0.485f, 0.229f}, {0.0f, 1.0f}}) {
        const Normalize with(mean, deviation);
        for (int byte = 0; byte < 256; ++byte) {
            const double expected =
                (byte / 255.0 - static_cast<double>(mean)) / static_cast<double>(deviation);
            const auto found = static_cast<double>(with(static_cast<float>(byte)));
            CHECK(std::abs(found - expected) <= 7.5e-8 / static_cast<double>(deviation));
        }
    }
    CHECK(Normalize()(0.0f) == -1.0f);
    CHECK(Normalize()(255.0f) == 1.0f);
}

TEST_CASE("normalize: every type and layout") {
    for (const ImageShape shape : {ImageShape{3, 32, 32}, {3, 5, 7}, {1, 3, 3}, {4, 8, 8}, {3, 40, 120}}) {
        for (const std::size_t offset : {0u, 1u}) {
            for (const Layout layout : layouts) {
                check<float>(shape, layout, layout, offset);
                check<nn::Half>(shape, layout, layout, offset);
            }
            check<float>(shape, Layout::interleaved, Layout::planar, offset);
            check<nn::Half>(shape, Layout::interleaved, Layout::planar, offset);
        }
    }
}

template <class Out>
void check_padded(ImageShape shape, int stored, std::size_t offset) {
    constexpr std::size_t count = 3;
    const Normalize with(0.4f, 0.3f);
    const auto bytes = sluice::test::random_values<std::uint8_t>(count * numbers_in(shape), 5);
    const auto in = nn::to_device<B>(bytes);
    const ImageShape padded{stored, shape.height, shape.width};
    const auto found = written<Out>(count * numbers_in(padded), offset, [&](auto stream, auto out) {
        normalize(stream, with, Images<const std::uint8_t, B>(in, shape, Layout::interleaved),
                  Images<Out, B>(out, padded, Layout::interleaved));
        stream.sync();
    });
    const std::vector<Out> narrow = converted<Out>(bytes, with);
    std::vector<Out> expected(found.size(), Out(0.0f));
    const auto channels = static_cast<std::size_t>(shape.channels);
    for (std::size_t i = 0; i < narrow.size(); ++i)
        expected[i / channels * static_cast<std::size_t>(stored) + i % channels] = narrow[i];
    CAPTURE(shape.height);
    CAPTURE(shape.channels);
    CAPTURE(stored);
    CAPTURE(offset);
    CHECK(sluice::test::same_bytes(found, expected));
}

TEST_CASE("normalize: pixels of more channels end in zeros") {
    for (const ImageShape shape : {ImageShape{3, 32, 32}, {3, 5, 7}, {1, 3, 3}}) {
        for (const int stored : {4, 5, 8}) {
            for (const std::size_t offset : {0u, 1u}) {
                check_padded<float>(shape, stored, offset);
                check_padded<nn::Half>(shape, stored, offset);
            }
        }
    }
}

TEST_CASE("normalize: what does not fit is refused") {
    const Stream stream;
    sluice::DeviceBuffer<std::uint8_t, B> in(24);
    sluice::DeviceBuffer<float, B> out(24);
    const Images<float, B> room(out, {3, 2, 2}, Layout::interleaved);
    CHECK(error_of([&] {
              normalize(stream.ref(), {}, {in.first(12), {3, 2, 2}, Layout::interleaved}, room);
          }) == "normalising 1 image of 3x2x2 gives as many of the same shape, not 2 of 3x2x2");
    CHECK(error_of([&] {
              normalize(stream.ref(), {}, {in, {3, 2, 2}, Layout::planar}, room);
          }) == "normalising planar images gives planar images, not interleaved ones");
    // More channels only where both are interleaved, and never fewer.
    const auto from_to = [&](int from, int to, Layout order) {
        const auto numbers_of = [](int channels) { return static_cast<std::size_t>(4 * channels); };
        return error_of([&] {
            normalize(stream.ref(), {}, {in.first(numbers_of(from)), {from, 2, 2}, order},
                      Images<float, B>(out.first(numbers_of(to)), {to, 2, 2}, order));
        });
    };
    CHECK(from_to(3, 2, Layout::interleaved) ==
          "normalising 1 image of 3x2x2 gives as many of the same shape, not 1 of 2x2x2");
    CHECK(from_to(2, 3, Layout::planar) ==
          "normalising 1 image of 2x2x2 gives as many of the same shape, not 1 of 3x2x2");
    CHECK(error_of([] { Normalize(0.5f, 0.0f); }) ==
          "images are to be normalised with a deviation of 0.000000; it must be above 0");
    CHECK(error_of([] { Normalize(0.5f, NAN); }).starts_with("images are to be normalised with a deviation"));
}

} // namespace images_normalize_test
