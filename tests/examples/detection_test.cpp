#include <algorithm>
#include <array>
#include <atomic>
#include <limits>
#include <map>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include <common/box_metrics.hpp>
#include <common/detection.hpp>

#include "support/doctest.hpp"
#include "support/heap_count.hpp"

namespace examples_detection {

using namespace examples;

namespace {

using Bytes = std::vector<std::uint8_t>;

struct Sample {
    Bytes image;
    std::vector<PixelBox> boxes;
    bool operator==(const Sample&) const = default;
};

const DigitSet& digits() {
    static const DigitSet set = load_digit_set(SLUICE_DIGITS_DIR);
    return set;
}

Sample detection(const IdxSplit& split, const DetectionSpec& spec, std::uint64_t seed, std::uint32_t epoch,
                 std::uint64_t sample) {
    // What was in the slot before must not show.
    Sample made{Bytes(image_bytes(spec), 0xAA),
                std::vector<PixelBox>(spec.most, PixelBox{0xAA, 0xAA, 0xAA, 0xAA})};
    made.boxes.resize(compose_detection(split, spec, seed, epoch, sample, made.image, made.boxes));
    return made;
}

/// One image, full ink in the rectangle of rows [top, bottom) and columns [left, right), nothing elsewhere.
IdxSplit rectangle(std::size_t top, std::size_t bottom, std::size_t left, std::size_t right) {
    IdxSplit split{{1, 8, 8, Bytes(64, 0)}, {{3}}};
    for (std::size_t y = top; y < bottom; ++y) {
        for (std::size_t x = left; x < right; ++x)
            split.images.pixels[y * 8 + x] = 255;
    }
    return split;
}

bool overlap(const PixelBox& a, const PixelBox& b) {
    return a.x1 < b.x2 && b.x1 < a.x2 && a.y1 < b.y2 && b.y1 < a.y2;
}

} // namespace

TEST_CASE("every number of digits comes up about as often, none and the most among them") {
    const DetectionSpec spec;
    std::map<std::size_t, int> counts;
    constexpr int samples = 1000;
    for (std::uint64_t k = 0; k < samples; ++k)
        ++counts[detection(digits().train, spec, 1, 0, k).boxes.size()];
    REQUIRE(counts.size() == spec.most + 1);
    for (const auto& entry : counts) {
        const int times = entry.second;
        INFO(entry.first, " digits");
        // A fifth each; a digit that finds no place shifts a few.
        CHECK(times > samples / 5 - 60);
        CHECK(times < samples / 5 + 60);
    }
}

TEST_CASE("boxes lie on the canvas, from left to right, and do not overlap") {
    const DetectionSpec spec{.height = 48, .width = 80, .most = 9, .smallest = 10, .largest = 20};
    for (std::uint64_t k = 0; k < 300; ++k) {
        const Sample made = detection(digits().train, spec, 5, 1, k);
        for (std::size_t i = 0; i < made.boxes.size(); ++i) {
            const PixelBox& box = made.boxes[i];
            REQUIRE(box.x1 < box.x2);
            REQUIRE(box.y1 < box.y2);
            REQUIRE(box.x2 <= spec.width);
            REQUIRE(box.y2 <= spec.height);
            REQUIRE(static_cast<std::size_t>(box.x2 - box.x1) <= spec.largest);
            REQUIRE(static_cast<std::size_t>(box.y2 - box.y1) <= spec.largest);
            if (i > 0) {
                const PixelBox& before = made.boxes[i - 1];
                REQUIRE((before.x1 < box.x1 || (before.x1 == box.x1 && before.y1 <= box.y1)));
            }
            for (std::size_t j = 0; j < i; ++j)
                REQUIRE_FALSE(overlap(box, made.boxes[j]));
        }
    }
}

TEST_CASE("a box holds its digit's ink, and no row or column too many") {
    const DetectionSpec spec;
    int boxes = 0;
    for (std::uint64_t k = 0; k < 100; ++k) {
        const Sample made = detection(digits().train, spec, 3, 0, k);
        for (const PixelBox& box : made.boxes) {
            ++boxes;
            const auto any = [&](std::size_t y1, std::size_t y2, std::size_t x1, std::size_t x2) {
                for (std::size_t y = y1; y < y2; ++y) {
                    for (std::size_t x = x1; x < x2; ++x) {
                        // The faintest gain takes a quarter off what counts as ink.
                        if (made.image[y * spec.width + x] >= ink_threshold * 3 / 4)
                            return true;
                    }
                }
                return false;
            };
            CHECK(any(box.y1, box.y1 + 1u, box.x1, box.x2));
            CHECK(any(box.y2 - 1u, box.y2, box.x1, box.x2));
            CHECK(any(box.y1, box.y2, box.x1, box.x1 + 1u));
            CHECK(any(box.y1, box.y2, box.x2 - 1u, box.x2));
        }
        for (std::size_t y = 0; y < spec.height; ++y) {
            for (std::size_t x = 0; x < spec.width; ++x) {
                const bool boxed =
                    std::any_of(made.boxes.begin(), made.boxes.end(), [&](const PixelBox& box) {
                        return box.x1 <= x && x < box.x2 && box.y1 <= y && y < box.y2;
                    });
                // Noise can lift a grey just below the threshold by less than its own strength.
                if (made.image[y * spec.width + x] >= ink_threshold + background_noise)
                    REQUIRE(boxed);
            }
        }
    }
    CHECK(boxes > 100);
}

TEST_CASE("a box is cut to the ink's own rectangle") {
    // Scaled to its own size, a digit's pixels stay what they are.
    const DetectionSpec spec{.height = 8, .width = 8, .most = 1, .smallest = 8, .largest = 8};
    const auto box_of = [&](const IdxSplit& split) {
        for (std::uint64_t k = 0;; ++k) {
            const Sample made = detection(split, spec, 1, 0, k);
            if (!made.boxes.empty())
                return made.boxes[0];
        }
    };
    CHECK(box_of(rectangle(2, 5, 1, 7)) == PixelBox{1, 2, 7, 5});
    CHECK(box_of(rectangle(7, 8, 0, 1)) == PixelBox{0, 7, 1, 8});
    CHECK(box_of(rectangle(0, 0, 0, 0)) == PixelBox{0, 0, 8, 8}); // no ink at all
}

TEST_CASE("a canvas for detection is the same in any order and on any thread") {
    const DetectionSpec spec;
    constexpr std::uint64_t samples = 64;
    std::vector<Sample> forward;
    for (std::uint64_t k = 0; k < samples; ++k)
        forward.push_back(detection(digits().train, spec, 7, 2, k));

    std::vector<Sample> threaded(samples);
    std::atomic<std::uint64_t> next{samples};
    std::vector<std::thread> workers;
    for (int worker = 0; worker < 4; ++worker) {
        workers.emplace_back([&] {
            for (std::uint64_t k = --next; k < samples; k = --next)
                threaded[k] = detection(digits().train, spec, 7, 2, k);
        });
    }
    for (std::thread& worker : workers)
        worker.join();
    CHECK(forward == threaded);
}

TEST_CASE("seed, epoch, sample and split each make another canvas to detect on") {
    const DetectionSpec spec;
    const Sample made = detection(digits().train, spec, 1, 0, 0);
    CHECK(made == detection(digits().train, spec, 1, 0, 0));
    CHECK_FALSE(made == detection(digits().train, spec, 2, 0, 0));
    CHECK_FALSE(made == detection(digits().train, spec, 1, 1, 0));
    CHECK_FALSE(made == detection(digits().train, spec, 1, 0, 1));
    int different = 0;
    for (std::uint64_t k = 0; k < 16; ++k)
        different +=
            detection(digits().train, spec, 1, 0, k) == detection(digits().test, spec, 1, 0, k) ? 0 : 1;
    CHECK(different > 8); // empty canvases show no digits of either
}

TEST_CASE("a crowded canvas leaves digits out instead of piling them up") {
    const DetectionSpec spec{.height = 20, .width = 20, .most = 8, .smallest = 12, .largest = 16};
    for (std::uint64_t k = 0; k < 50; ++k)
        CHECK(detection(digits().train, spec, 1, 0, k).boxes.size() <= 1);
}

TEST_CASE("composing for detection takes nothing from the heap") {
    const DetectionSpec spec;
    Sample made{Bytes(image_bytes(spec)), std::vector<PixelBox>(spec.most)};
    const IdxSplit& split = digits().train;
    const sluice::test::HeapCount heap;
    for (std::uint64_t k = 0; k < 8; ++k)
        compose_detection(split, spec, 1, 0, k, made.image, made.boxes);
    const std::uint64_t taken = heap.allocations();
    CHECK(sluice::test::HeapCount::total() > 0); // it does count
    CHECK(taken == 0);
}

TEST_CASE("a canvas for detection that cannot be is refused with what was expected") {
    const IdxSplit& split = digits().train;
    const auto text_of = [&](const DetectionSpec& spec, std::size_t image, std::size_t room) {
        Bytes pixels(image);
        std::vector<PixelBox> boxes(room);
        try {
            compose_detection(split, spec, 1, 0, 0, pixels, boxes);
        } catch (const std::invalid_argument& error) {
            return std::string(error.what());
        }
        return std::string("nothing was thrown");
    };
    const auto has = [](const std::string& text, const char* part) {
        INFO(text);
        CHECK(text.find(part) != std::string::npos);
    };
    const DetectionSpec good;
    has(text_of(good, 64 * 64 - 1, 4), "4,095 bytes; expected 4,096");
    has(text_of(good, 64 * 64, 3), "room for 3 boxes; expected at least 4");
    has(text_of({.height = 256}, 256 * 64, 4), "at most 255");
    has(text_of({.width = 0}, 0, 4), "expected sides of 1");
    has(text_of({.smallest = 0}, 64 * 64, 4), "at least 1");
    has(text_of({.smallest = 25}, 64 * 64, 4), "at least the first");
    has(text_of({.largest = 65}, 64 * 64, 4), "does not fit");
    has(text_of({.most = 65}, 64 * 64, 65), "expected 0 to 64");
}

TEST_CASE("intersection over union of a found and a true box") {
    const PixelBox truth{10, 20, 30, 30};
    CHECK(intersection_over_union({10, 20, 30, 30}, truth) == doctest::Approx(1.0));
    CHECK(intersection_over_union({20, 20, 40, 30}, truth) == doctest::Approx(100.0 / 300.0));
    CHECK(intersection_over_union({10, 20, 20, 25}, truth) == doctest::Approx(0.25));
    CHECK(intersection_over_union({30, 20, 50, 30}, truth) == 0.0); // they touch
    CHECK(intersection_over_union({-50, -50, -20, -20}, truth) == 0.0);
    CHECK(intersection_over_union({30, 30, 10, 20}, truth) == 0.0); // inverted on both axes: a positive area
    CHECK(intersection_over_union({10, 20, 10, 30}, truth) == 0.0);
    const double nan = std::numeric_limits<double>::quiet_NaN();
    for (std::size_t corner = 0; corner < 4; ++corner) {
        BoxCorners found{10, 20, 30, 30};
        found[corner] = nan;
        CHECK(intersection_over_union(found, truth) == 0.0);
    }
    const double infinity = std::numeric_limits<double>::infinity();
    CHECK(intersection_over_union({-infinity, 0, infinity, 40}, truth) == 0.0);

    MeanIou mean;
    CHECK(mean.mean() == 0.0);
    mean.add({10, 20, 30, 30}, truth);
    mean.add({10, 20, 20, 25}, truth);
    CHECK(mean.count() == 2);
    CHECK(mean.mean() == doctest::Approx(0.625));
}

} // namespace examples_detection
