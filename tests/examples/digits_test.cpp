// Canvases of digits with a label for each pixel.
#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <map>
#include <set>
#include <stdexcept>
#include <thread>
#include <vector>

#include <common/digits.hpp>

#include "examples/digits_case.hpp"
#include "support/doctest.hpp"
#include "support/heap_count.hpp"

namespace examples_digits {

using namespace examples;
using namespace sluice_test::digits_case;

TEST_CASE("a sample is the same in any order and on any thread") {
    const CanvasSpec spec;
    constexpr std::uint64_t samples = 64;
    std::vector<Sample> forward;
    for (std::uint64_t k = 0; k < samples; ++k)
        forward.push_back(segmentation(spec, 7, 2, k));

    std::vector<Sample> threaded(samples);
    std::atomic<std::uint64_t> next{samples};
    std::vector<std::thread> workers;
    for (int worker = 0; worker < 4; ++worker) {
        workers.emplace_back([&] {
            for (std::uint64_t k = --next; k < samples; k = --next)
                threaded[k] = segmentation(spec, 7, 2, k);
        });
    }
    for (std::thread& worker : workers)
        worker.join();
    CHECK(forward == threaded);
}

TEST_CASE("composing takes nothing from the heap") {
    const CanvasSpec spec;
    Sample made{Bytes(image_bytes(spec)), Bytes(label_bytes(spec))};
    const IdxSplit& split = digits().train;
    const sluice::test::HeapCount heap;
    compose_segmentation(split, spec, 1, 0, 0, made.image, made.labels);
    compose_classification(split, spec, 1, 0, 0, made.image);
    const std::uint64_t taken = heap.allocations();
    CHECK(sluice::test::HeapCount::total() > 0); // it does count
    CHECK(taken == 0);
}

TEST_CASE("seed, epoch, sample and split each make another canvas") {
    const CanvasSpec spec;
    const Sample base = segmentation(spec, 7, 2, 5);
    CHECK(base == segmentation(spec, 7, 2, 5));
    for (const Sample& other :
         {segmentation(spec, 8, 2, 5), segmentation(spec, 7, 3, 5), segmentation(spec, 7, 2, 6)}) {
        CHECK(base.image != other.image);
        CHECK(base.labels != other.labels);
        // The noise differs as well, wherever both are background: one value in 24 is the same by chance.
        std::size_t background = 0;
        std::size_t same = 0;
        for (std::size_t place = 0; place < base.labels.size(); ++place) {
            if (base.labels[place] == background_label && other.labels[place] == background_label) {
                ++background;
                same += base.image[place] == other.image[place] ? 1u : 0u;
            }
        }
        CHECK(background > 1000);
        CHECK(same * 5 < background);
    }
    Sample held_out = base;
    compose_segmentation(digits().test, spec, 7, 2, 5, held_out.image, held_out.labels);
    CHECK(base.image != held_out.image);
}

TEST_CASE("labels belong to the ink of one digit a cell") {
    const CanvasSpec spec;
    std::map<int, std::size_t> pixels;
    std::size_t cells = 0;
    std::size_t filled = 0;
    for (std::uint64_t k = 0; k < 200; ++k) {
        const Sample made = segmentation(spec, 1, 0, k);
        std::size_t on_canvas = 0;
        for (std::size_t top = 0; top < spec.height; top += spec.cell) {
            for (std::size_t left = 0; left < spec.width; left += spec.cell) {
                std::set<int> classes;
                std::size_t first_row = spec.cell, last_row = 0, first_column = spec.cell, last_column = 0;
                for (std::size_t y = 0; y < spec.cell; ++y) {
                    for (std::size_t x = 0; x < spec.cell; ++x) {
                        const std::uint8_t label = made.labels[(top + y) * spec.width + left + x];
                        ++pixels[label];
                        if (label == background_label)
                            continue;
                        classes.insert(label);
                        first_row = std::min(first_row, y);
                        last_row = std::max(last_row, y);
                        first_column = std::min(first_column, x);
                        last_column = std::max(last_column, x);
                    }
                }
                ++cells;
                filled += classes.size();
                on_canvas += classes.size();
                CHECK(classes.size() <= 1);
                if (!classes.empty()) {
                    CHECK(last_row - first_row < spec.digit);
                    CHECK(last_column - first_column < spec.digit);
                }
            }
        }
        CHECK(on_canvas >= 1);
    }
    REQUIRE(pixels.size() == segmentation_classes);
    CHECK(pixels.rbegin()->first == background_label);
    // Three standard deviations of 3,200 draws about the presence, which one cell a canvas raises a little.
    const double presence = static_cast<double>(filled) / static_cast<double>(cells);
    CHECK(presence > 0.75 + 0.25 / 16 - 0.023);
    CHECK(presence < 0.75 + 0.25 / 16 + 0.023);
}

TEST_CASE("ink is brighter than background, in every channel") {
    const CanvasSpec spec;
    const std::size_t plane = spec.height * spec.width;
    for (std::uint64_t k = 0; k < 20; ++k) {
        const Sample made = segmentation(spec, 3, 0, k);
        for (std::size_t place = 0; place < plane; ++place) {
            if (made.labels[place] == background_label)
                continue;
            for (std::size_t channel = 0; channel < 3; ++channel) {
                // The darkest ink: gain 0.75, tint 0.5, no noise.
                REQUIRE(made.image[channel * plane + place] >= ink_threshold * 3 / 8);
            }
        }
    }
}

TEST_CASE("the threshold decides what is ink") {
    const CanvasSpec spec{16, 16, 16, 16, 1.0f};
    for (const std::uint8_t grey : {std::uint8_t{ink_threshold - 1}, ink_threshold}) {
        CAPTURE(int{grey});
        Sample made{Bytes(image_bytes(spec)), Bytes(label_bytes(spec))};
        compose_segmentation(uniform_split(grey, 4), spec, 1, 0, 0, made.image, made.labels);
        const int expected = grey >= ink_threshold ? 4 : background_label;
        CHECK(std::all_of(made.labels.begin(), made.labels.end(),
                          [&](int label) { return label == expected; }));
        // Drawn in any case: brighter than noise alone, within gain, tint and noise.
        const auto [least, most] = std::minmax_element(made.image.begin(), made.image.end());
        CHECK(*least >= grey * 3 / 8);
        CHECK(*most < grey + background_noise);
    }
}

TEST_CASE("without presence one cell still holds a digit, and not always the same") {
    CanvasSpec spec;
    spec.presence = 0.0f;
    std::set<std::size_t> places;
    for (std::uint64_t k = 0; k < 100; ++k) {
        const Sample made = segmentation(spec, 1, 0, k);
        std::set<std::size_t> cells;
        for (std::size_t place = 0; place < made.labels.size(); ++place) {
            if (made.labels[place] != background_label)
                cells.insert(place / spec.width / spec.cell * 4 + place % spec.width / spec.cell);
        }
        CHECK(cells.size() == 1);
        places.insert(cells.begin(), cells.end());
    }
    CHECK(places.size() > 12);
}

TEST_CASE("colour says nothing about the class") {
    // The mean of each channel over ink, by class, must be about the same for all channels.
    const CanvasSpec spec;
    const std::size_t plane = spec.height * spec.width;
    std::map<int, std::array<double, 4>> sums;
    for (std::uint64_t k = 0; k < 300; ++k) {
        const Sample made = segmentation(spec, 5, 0, k);
        for (std::size_t place = 0; place < plane; ++place) {
            std::array<double, 4>& sum = sums[made.labels[place]];
            for (std::size_t channel = 0; channel < 3; ++channel)
                sum[channel] += made.image[channel * plane + place];
            sum[3] += 1;
        }
    }
    for (const auto& entry : sums) {
        CAPTURE(entry.first);
        const std::array<double, 4>& sum = entry.second;
        const double mean = (sum[0] + sum[1] + sum[2]) / 3;
        for (std::size_t channel = 0; channel < 3; ++channel)
            CHECK(sum[channel] == doctest::Approx(mean).epsilon(0.05));
    }
}

TEST_CASE("a canvas refuses what contradicts itself") {
    const IdxSplit& split = digits().train;
    const auto compose = [&](const IdxSplit& from, const CanvasSpec& spec, std::size_t image,
                             std::size_t labels) {
        Sample made{Bytes(image), Bytes(labels)};
        compose_segmentation(from, spec, 1, 0, 0, made.image, made.labels);
    };
    const CanvasSpec good{32, 32, 16, 12, 0.5f};
    CHECK_NOTHROW(compose(split, good, 3072, 1024));
    CHECK_THROWS_WITH_AS(compose(split, good, 3071, 1024),
                         "digit canvas: the image span holds 3,071 bytes; expected 3,072",
                         std::invalid_argument);
    CHECK_THROWS_WITH_AS(compose(split, good, 3072, 0),
                         "digit canvas: the label span holds 0 bytes; expected 1,024", std::invalid_argument);
    CHECK_THROWS_WITH_AS(
        compose(split, {32, 32, 12, 14, 0.5f}, 3072, 1024),
        "digit canvas: cells of side 12 do not serve; expected at least the digit's side, and a "
        "divisor of both sides of the canvas",
        std::invalid_argument);
    CHECK_THROWS_AS(compose(split, {32, 40, 16, 12, 0.5f}, 3840, 1280), std::invalid_argument);
    CHECK_THROWS_AS(compose(split, {32, 32, 0, 12, 0.5f}, 3072, 1024), std::invalid_argument);
    CHECK_THROWS_AS(compose(split, {32, 32, 16, 0, 0.5f}, 3072, 1024), std::invalid_argument);
    CHECK_THROWS_AS(compose(split, {0, 32, 16, 12, 0.5f}, 0, 0), std::invalid_argument);
    CHECK_THROWS_AS(compose(split, {528, 16, 16, 12, 0.5f}, 3 * 528 * 16, 528 * 16), std::invalid_argument);
    CHECK_THROWS_AS(compose({}, good, 3072, 1024), std::invalid_argument);
}

} // namespace examples_digits
