// Label maps and boxes that move with their images.
#include "augment/support.hpp"

namespace augment_annotations {

using namespace augment;
using namespace augment_test;

namespace {

const RotatedCropChain rotated_crop{Crop{20, 30}, Resize{40, 45}, Flip{}, Rotate<Nearest>{},
                                    Normalize{0.0f, 1.0f}};

std::vector<SampleParameters> parameters(Random& random, int count) {
    std::vector<SampleParameters> result(static_cast<std::size_t>(count));
    for (SampleParameters& own : result) {
        own.top = static_cast<int>(random.between(0, 10));
        own.left = static_cast<int>(random.between(0, 20));
        own.angle_degrees = static_cast<float>(random.between(0, 900)) / 10.0f - 45.0f;
        own.flip = static_cast<int>(random.between(0, 1));
    }
    return result;
}

constexpr ImageShape shape{3, 30, 50};

template <class L, class C>
std::vector<L> moved_labels(const C& chain, const std::vector<L>& labels,
                            const std::vector<SampleParameters>& own, L outside) {
    const Stream stream;
    const ImageShape after = chain.output_shape(shape);
    const auto in = nn_test::device(labels);
    const auto table = nn_test::device(own);
    Buffer<L> out(own.size() * static_cast<std::size_t>(after.height * after.width));
    sluice::fill_bytes(stream, out, 0xee);
    run_labels<B, C, L>(stream, chain, shape, table.span(), in.span(), outside, out.span());
    return nn_test::host(stream, out);
}

template <class C>
std::vector<nn::Box<float>> moved_boxes(const C& chain, const std::vector<nn::Box<float>>& boxes,
                                        std::size_t each, const std::vector<SampleParameters>& own) {
    const Stream stream;
    const auto in = nn_test::device(boxes);
    const auto table = nn_test::device(own);
    Buffer<nn::Box<float>> out(boxes.size());
    sluice::fill_bytes(stream, out, 0xee);
    run_boxes<B>(stream, chain, shape, table.span(),
                 nn::PaddedBoxes<const float, B>(in.span(), own.size(), each),
                 nn::PaddedBoxes<float, B>(out.span(), own.size(), each));
    return nn_test::host(stream, out);
}

} // namespace

TEST_CASE("annotations: labels come from where their pixels come from") {
    NN_TEST_RANDOM(random);
    const int count = 3;
    const auto own = parameters(random, count);
    const auto labels = random.bytes(static_cast<std::size_t>(count * shape.height * shape.width), 200);
    const auto actual = moved_labels<std::uint8_t>(rotated_crop, labels, own, 250);
    std::size_t outside = 0;
    for (int i = 0; i < count; ++i) {
        const SampleParameters& p = own[static_cast<std::size_t>(i)];
        for (int y = 0; y < 40; ++y) {
            for (int x = 0; x < 45; ++x) {
                if (near_tie({3, 40, 45}, static_cast<double>(p.angle_degrees), y, x))
                    continue;
                const From from = rotate_back({3, 40, 45}, static_cast<double>(p.angle_degrees), y, x);
                const int ty = static_cast<int>(std::nearbyint(from.y));
                int tx = static_cast<int>(std::nearbyint(from.x));
                int expected = 250;
                if (ty >= 0 && tx >= 0 && ty < 40 && tx < 45) {
                    tx = p.flip != 0 ? 44 - tx : tx;
                    const int row = p.top + static_cast<int>((ty + 0.5) * 20 / 40);
                    const int column = p.left + static_cast<int>((tx + 0.5) * 30 / 45);
                    expected =
                        labels[static_cast<std::size_t>((i * shape.height + row) * shape.width + column)];
                } else {
                    ++outside;
                }
                const int found = actual[static_cast<std::size_t>((i * 40 + y) * 45 + x)];
                REQUIRE(found == expected);
            }
        }
    }
    CHECK(outside > 0);
}

TEST_CASE("annotations: labels of 32 bits, through operators that leave them alone") {
    NN_TEST_RANDOM(random);
    const LongChain chain{Scale{0.5f},  Flip{},    RoiAlignCrop{20, 30}, Rotate<Bilinear>{},   Resize{40, 30},
                          Brightness{}, Blur<5>{}, Contrast{},           Normalize{0.0f, 1.0f}};
    std::vector<SampleParameters> own(1);
    own[0] = {.top = 5, .left = 7, .angle_degrees = 0.0f, .flip = 1};
    std::vector<std::int32_t> labels;
    for (int i = 0; i < shape.height * shape.width; ++i)
        labels.push_back(1000000 + i);
    const auto actual = moved_labels<std::int32_t>(chain, labels, own, -1);
    for (int y = 0; y < 40; ++y) {
        for (int x = 0; x < 30; ++x) {
            const int row = 5 + y / 2;
            const int column = shape.width - 1 - (7 + x);
            REQUIRE(actual[static_cast<std::size_t>(y * 30 + x)] == 1000000 + row * shape.width + column);
        }
    }
}

// The box around a moved rectangle of pixels is within a pixel of the box that the rectangle's box becomes, unless rotated.
TEST_CASE("annotations: boxes move with what they enclose") {
    NN_TEST_RANDOM(random);
    const auto own = parameters(random, 4);
    constexpr std::size_t each = 5;
    std::vector<nn::Box<float>> boxes;
    for (std::size_t i = 0; i < own.size() * each; ++i) {
        const auto x = static_cast<float>(random.between(0, 40));
        const auto y = static_cast<float>(random.between(0, 20));
        boxes.push_back({x, y, x + static_cast<float>(random.between(0, 10)),
                         y + static_cast<float>(random.between(0, 10))});
    }
    const auto actual = moved_boxes(rotated_crop, boxes, each, own);
    for (std::size_t i = 0; i < boxes.size(); ++i) {
        const SampleParameters& p = own[i / each];
        const double angle = static_cast<double>(p.angle_degrees) * 3.14159265358979323846 / 180.0;
        // Cropped and clipped, then enlarged and flipped, then rotated and clipped.
        double x1 = std::clamp(static_cast<double>(boxes[i].x1) - p.left, 0.0, 30.0) * 1.5;
        double x2 = std::clamp(static_cast<double>(boxes[i].x2) - p.left, 0.0, 30.0) * 1.5;
        const double y1 = std::clamp(static_cast<double>(boxes[i].y1) - p.top, 0.0, 20.0) * 2.0;
        const double y2 = std::clamp(static_cast<double>(boxes[i].y2) - p.top, 0.0, 20.0) * 2.0;
        if (p.flip != 0) {
            std::swap(x1, x2);
            x1 = 45.0 - x1;
            x2 = 45.0 - x2;
        }
        double low_x = 1e9, low_y = 1e9, high_x = -1e9, high_y = -1e9;
        for (const double x : {x1, x2}) {
            for (const double y : {y1, y2}) {
                const double u = std::cos(angle) * (x - 22.5) + std::sin(angle) * (y - 20.0) + 22.5;
                const double v = -std::sin(angle) * (x - 22.5) + std::cos(angle) * (y - 20.0) + 20.0;
                low_x = std::min(low_x, u);
                high_x = std::max(high_x, u);
                low_y = std::min(low_y, v);
                high_y = std::max(high_y, v);
            }
        }
        CHECK(std::abs(static_cast<double>(actual[i].x1) - std::clamp(low_x, 0.0, 45.0)) <= 1e-4);
        CHECK(std::abs(static_cast<double>(actual[i].x2) - std::clamp(high_x, 0.0, 45.0)) <= 1e-4);
        CHECK(std::abs(static_cast<double>(actual[i].y1) - std::clamp(low_y, 0.0, 40.0)) <= 1e-4);
        CHECK(std::abs(static_cast<double>(actual[i].y2) - std::clamp(high_y, 0.0, 40.0)) <= 1e-4);
    }
}

TEST_CASE("annotations: a rotated box encloses the labels that it held") {
    NN_TEST_RANDOM(random);
    const auto own = parameters(random, 6);
    std::vector<std::uint8_t> labels(own.size() * static_cast<std::size_t>(shape.height * shape.width));
    std::vector<nn::Box<float>> boxes;
    for (std::size_t i = 0; i < own.size(); ++i) {
        const int x = static_cast<int>(random.between(5, 35));
        const int y = static_cast<int>(random.between(5, 20));
        boxes.push_back({static_cast<float>(x), static_cast<float>(y), static_cast<float>(x + 9),
                         static_cast<float>(y + 6)});
        for (int v = y; v < y + 6; ++v) {
            for (int u = x; u < x + 9; ++u)
                labels[(i * static_cast<std::size_t>(shape.height) + static_cast<std::size_t>(v)) *
                           static_cast<std::size_t>(shape.width) +
                       static_cast<std::size_t>(u)] = 1;
        }
    }
    const auto moved = moved_labels<std::uint8_t>(rotated_crop, labels, own, 0);
    const auto around = moved_boxes(rotated_crop, boxes, 1, own);
    for (std::size_t i = 0; i < own.size(); ++i) {
        for (int y = 0; y < 40; ++y) {
            for (int x = 0; x < 45; ++x) {
                if (moved[(i * 40 + static_cast<std::size_t>(y)) * 45 + static_cast<std::size_t>(x)] == 0)
                    continue;
                // Labels move in whole pixels, up to one to the side.
                CHECK(static_cast<double>(x) + 0.5 >= static_cast<double>(around[i].x1) - 1.5);
                CHECK(static_cast<double>(x) + 0.5 <= static_cast<double>(around[i].x2) + 1.5);
                CHECK(static_cast<double>(y) + 0.5 >= static_cast<double>(around[i].y1) - 1.5);
                CHECK(static_cast<double>(y) + 0.5 <= static_cast<double>(around[i].y2) + 1.5);
            }
        }
    }
}

} // namespace augment_annotations
