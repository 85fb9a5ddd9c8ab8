// Resizing: Pillow's bytes, in every type and layout, on a stream and on the calling thread.
#include <string>

#include <common/safetensors.hpp>

#include "images/support.hpp"

namespace images_resize_test {

using namespace images;
using namespace images_test;

namespace {

struct Reference {
    ImageShape from;
    ImageShape to;
    std::vector<std::uint8_t> in;
    std::vector<std::uint8_t> out;
};

ImageShape shape_of(const examples::Tensor& image) {
    return {3, static_cast<int>(image.shape.at(0)), static_cast<int>(image.shape.at(1))};
}

const std::vector<Reference>& references() {
    static const std::vector<Reference> all = [] {
        const examples::Safetensors file =
            examples::read_safetensors(std::string(SLUICE_TEST_DATA_DIR) + "/pillow_resize.safetensors");
        std::vector<Reference> result;
        while (file.contains(std::to_string(result.size()) + "/in")) {
            const std::string name = std::to_string(result.size());
            const examples::Tensor& in = file.at(name + "/in");
            const examples::Tensor& out = file.at(name + "/out");
            result.push_back({shape_of(in), shape_of(out), in.bytes, out.bytes});
        }
        return result;
    }();
    return all;
}

template <class Out>
std::vector<Out> resized(const Reference& reference, const std::vector<std::uint8_t>& in, Layout layout,
                         std::size_t offset = 0, const Normalize& normalize = {}) {
    const Resize<B> weights(BilinearWeights(reference.from, reference.to.height, reference.to.width));
    const auto device_in = nn::to_device<B>(in);
    const std::size_t count = in.size() / numbers_in(reference.from);
    return written<Out>(count * numbers_in(reference.to), offset, [&](auto stream, auto out) {
        resize(stream, weights, Images<const std::uint8_t, B>(device_in, reference.from, Layout::interleaved),
               Images<Out, B>(out, reference.to, layout), normalize);
        stream.sync();
    });
}

template <class Out>
void check_all(const Normalize& normalize) {
    REQUIRE(references().size() >= 10);
    for (const Reference& reference : references()) {
        CAPTURE(reference.from.height);
        CAPTURE(reference.to.height);
        for (const Layout layout : layouts) {
            const auto expected = in_layout(converted<Out>(reference.out, normalize), reference.to, layout);
            // The second time so that stores of 16 bytes are not aligned.
            for (const std::size_t offset : {0u, 1u}) {
                CHECK(sluice::test::same_bytes(
                    resized<Out>(reference, reference.in, layout, offset, normalize), expected));
            }
        }
    }
}

} // namespace

TEST_CASE("resize: Pillow's bytes") { check_all<std::uint8_t>(Normalize()); }

TEST_CASE("resize: Pillow's bytes, normalised") {
    check_all<float>(Normalize());
    check_all<nn::Half>(Normalize(0.45f, 0.22f));
}

TEST_CASE("resize: each image of a batch by itself") {
    const Reference& reference = references().front();
    constexpr std::size_t count = 5;
    const auto in = sluice::test::random_values<std::uint8_t>(count * reference.in.size(), 3);
    const auto all = resized<nn::Half>(reference, in, Layout::interleaved);
    const std::size_t out_size = reference.out.size();
    for (std::size_t i = 0; i < count; ++i) {
        const auto begin = in.begin() + static_cast<std::ptrdiff_t>(i * reference.in.size());
        const std::vector<std::uint8_t> image(begin,
                                              begin + static_cast<std::ptrdiff_t>(reference.in.size()));
        const auto one = resized<nn::Half>(reference, image, Layout::interleaved);
        CHECK(sluice::test::same_bytes(one, std::span(all).subspan(i * out_size, out_size)));
    }
}

TEST_CASE("resize: on the calling thread, with one scratch for all sizes") {
    ResizeScratch scratch;
    for (const Reference& reference : references()) {
        const BilinearWeights weights(reference.from, reference.to.height, reference.to.width);
        for (const Layout layout : layouts) {
            std::vector<std::uint8_t> bytes(reference.out.size());
            resize_image(weights, scratch, reference.in.data(), bytes.data(), layout);
            CHECK(bytes == in_layout(reference.out, reference.to, layout));
            std::vector<float> floats(reference.out.size());
            resize_image(weights, scratch, reference.in.data(), floats.data(), layout);
            CHECK(floats == in_layout(converted<float>(reference.out, {}), reference.to, layout));
        }
    }
}

TEST_CASE("resize: is captured, and a replay reads what is there then") {
    const Reference& reference = references().front();
    const Resize<B> weights(BilinearWeights(reference.from, reference.to.height, reference.to.width));
    const Stream stream;
    sluice::DeviceBuffer<std::uint8_t, B> in(reference.in.size());
    sluice::DeviceBuffer<std::uint8_t, B> out(reference.out.size());
    sluice::fill_bytes(stream, in, 0);
    sluice::GraphCapture<sluice::NoKey, B> graph;
    for (int run = 0; run < 4; ++run) {
        if (run == 3)
            sluice::copy_and_wait(stream, in, reference.in);
        graph.run(stream, [&](sluice::BasicStreamRef<B> s) {
            resize(s, weights, Images<const std::uint8_t, B>(in, reference.from, Layout::interleaved),
                   Images<std::uint8_t, B>(out, reference.to, Layout::interleaved));
        });
    }
    CHECK(nn::to_host(stream.ref(), out) == reference.out);
    CHECK(graph.counters().replays > 0);
    CHECK(graph.counters().refusals == 0);
}

TEST_CASE("resize: what does not fit is refused") {
    CHECK(error_of([] {
              BilinearWeights({1, 4, 4}, 8, 8);
          }) == "images of 1 channel are to be resized; they must have 3");
    const Resize<B> weights(BilinearWeights({3, 2, 2}, 4, 4));
    const Stream stream;
    sluice::DeviceBuffer<std::uint8_t, B> in(24);
    sluice::DeviceBuffer<float, B> out(96);
    const Images<float, B> room(out, {3, 4, 4}, Layout::planar);
    CHECK(error_of([&] {
              resize(stream.ref(), weights, {in.first(12), {3, 2, 2}, Layout::interleaved}, room);
          }) == "a resize from 3x2x2 to 3x4x4 was given 1 image of 3x2x2 and room for 2 of 3x4x4");
    CHECK(error_of([&] {
              resize(stream.ref(), weights, {in, {3, 1, 4}, Layout::interleaved}, room);
          }) == "a resize from 3x2x2 to 3x4x4 was given 2 images of 3x1x4 and room for 2 of 3x4x4");
    CHECK(error_of([&] {
              resize(stream.ref(), weights, {in, {3, 2, 2}, Layout::planar}, room);
          }) == "a resize was given planar images; it reads interleaved ones");
}

} // namespace images_resize_test
