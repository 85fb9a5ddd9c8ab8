// Single digits: their scaling, and where and how often they are drawn.
#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <set>
#include <vector>

#include <common/digits.hpp>

#include "examples/digits_case.hpp"
#include "support/doctest.hpp"

namespace examples_digit_drawing {

using namespace examples;
using namespace sluice_test::digits_case;

std::uint8_t scaled_grey(const Bytes& digit, std::size_t rows, std::size_t columns, std::size_t side,
                         std::size_t y, std::size_t x) {
    return ScaledDigit(digit, rows, columns, side).row(y)[x];
}

TEST_CASE("a digit is enlarged bilinearly, and shrunk with antialiasing") {
    const Bytes ramp{0, 100, 200, 255};
    // Two pixels to four, half-pixel centres: 0, ¼, ¾, 1 of the way, edges held.
    const std::array<int, 4> top{0, 25, 75, 100};
    const std::array<int, 4> left{0, 50, 150, 200};
    for (std::size_t i = 0; i < 4; ++i) {
        CHECK(scaled_grey(ramp, 2, 2, 4, 0, i) == top[i]);
        CHECK(scaled_grey(ramp, 2, 2, 4, i, 0) == left[i]);
    }
    // The same size is the same image.
    for (std::size_t i = 0; i < 4; ++i)
        CHECK(scaled_grey(ramp, 2, 2, 2, i / 2, i % 2) == ramp[i]);
    // Four to two: a triangle of half width 2 about 0.5: weights 3, 3, 1 of 7 (the fourth would be outside).
    const Bytes row{0, 70, 140, 210, 0, 70, 140, 210, 0, 70, 140, 210, 0, 70, 140, 210};
    CHECK(scaled_grey(row, 4, 4, 2, 0, 0) == (3 * 0 + 3 * 70 + 1 * 140) / 7);
    CHECK(scaled_grey(row, 4, 4, 2, 1, 1) == (1 * 70 + 3 * 140 + 3 * 210) / 7);
    // Not square.
    const Bytes tall{10, 10, 50, 50, 90, 90};
    CHECK(scaled_grey(tall, 3, 2, 3, 1, 2) == 50);
    // What is white stays white, at any size.
    for (const std::size_t side : {1u, 5u, 12u, 28u, 64u}) {
        CHECK(scaled_grey(Bytes(64, 255), 8, 8, side, side / 2, side - 1) == 255);
        CHECK(scaled_grey(Bytes(784, 255), 28, 28, side, 0, side / 3) == 255);
    }
}

// How much of a source pixel's grey place `place` of `side` has, by the triangle filter as it is defined.
double triangle(std::size_t length, std::size_t side, std::size_t place, std::size_t source) {
    const double step = static_cast<double>(length) / static_cast<double>(side);
    const double distance = static_cast<double>(source) + 0.5 - (static_cast<double>(place) + 0.5) * step;
    return std::max(0.0, 1 - std::abs(distance) / std::max(1.0, step));
}

TEST_CASE("a scaled digit is within half a grey of the filter by its definition") {
    const std::size_t rows = 8;
    const std::size_t columns = 11;
    Bytes digit(rows * columns);
    sluice::CountedRandom random{sluice::RandomKey{7, 0, 0, 0}};
    for (std::uint8_t& grey : digit)
        grey = static_cast<std::uint8_t>(random.below(256));
    for (const std::size_t side : {1u, 3u, 8u, 9u, 14u, 40u}) {
        for (std::size_t i = 0; i < side * side; ++i) {
            double sum = 0;
            double weights = 0;
            for (std::size_t source = 0; source < digit.size(); ++source) {
                const double weight = triangle(rows, side, i / side, source / columns) *
                                      triangle(columns, side, i % side, source % columns);
                sum += weight * digit[source];
                weights += weight;
            }
            const double apart = scaled_grey(digit, rows, columns, side, i / side, i % side) - sum / weights;
            CHECK(std::abs(apart) <= 0.5 + 1e-9);
        }
    }
}

TEST_CASE("classification shows every digit once an epoch, in another order each time") {
    const CanvasSpec spec{16, 16, 16, 12, 1.0f};
    // Each image has a label of its own, which tells the images apart.
    constexpr std::size_t count = 10;
    IdxSplit split{{count, 8, 8, {}}, {}};
    for (std::size_t i = 0; i < count; ++i) {
        split.images.pixels.insert(split.images.pixels.end(), 64, 200);
        split.labels.values.push_back(static_cast<std::uint8_t>(i));
    }
    std::set<std::vector<int>> orders;
    Bytes image(image_bytes(spec));
    for (std::uint32_t epoch = 0; epoch < 8; ++epoch) {
        for (std::uint64_t lap = 0; lap < 2; ++lap) {
            std::vector<int> order;
            for (std::uint64_t k = lap * count; k < (lap + 1) * count; ++k)
                order.push_back(compose_classification(split, spec, 9, epoch, k, image));
            orders.insert(order);
            std::sort(order.begin(), order.end());
            CHECK(order == std::vector<int>{0, 1, 2, 3, 4, 5, 6, 7, 8, 9});
        }
    }
    // 16 orders out of 40 that the rule can make.
    CHECK(orders.size() > 8);
}

TEST_CASE("a digit to classify is drawn within the canvas, at many places") {
    const CanvasSpec spec{20, 24, 16, 12, 0.0f};
    const std::size_t plane = spec.height * spec.width;
    std::set<std::size_t> corners;
    Bytes image(image_bytes(spec));
    Bytes again(image_bytes(spec));
    for (std::uint64_t k = 0; k < 300; ++k) {
        CHECK(compose_classification(uniform_split(255, 6), spec, 2, 1, k, image) == 6);
        CHECK(compose_classification(uniform_split(255, 6), spec, 2, 1, k, again) == 6);
        CHECK(image == again);
        std::size_t ink = 0;
        std::size_t first = plane;
        for (std::size_t place = 0; place < plane; ++place) {
            if (image[place] < background_noise)
                continue;
            ++ink;
            first = std::min(first, place);
        }
        CHECK(ink == spec.digit * spec.digit);
        corners.insert(first);
    }
    CHECK(corners.size() > 80); // of 9 × 13
}

TEST_CASE("images of another size serve too") {
    const CanvasSpec spec;
    Sample made{Bytes(image_bytes(spec)), Bytes(label_bytes(spec))};
    compose_segmentation(uniform_split(255, 3, 28), spec, 1, 0, 0, made.image, made.labels);
    CHECK(std::count(made.labels.begin(), made.labels.end(), 3) % (12 * 12) == 0);
}

} // namespace examples_digit_drawing
