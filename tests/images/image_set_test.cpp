// Sets of images: what each holds, and that an image depends on the seed and its number alone.
#include <algorithm>
#include <array>
#include <filesystem>
#include <fstream>
#include <memory>
#include <numeric>

#include <common/bad_input.hpp>
#include <common/idx.hpp>
#include <common/ppm.hpp>
#include <images/image_set.hpp>

#include "examples/scratch.hpp"
#include "images/support.hpp"

namespace images_image_set_test {

using namespace images;
using images_test::error_of;

namespace {

using Image = std::vector<std::uint8_t>;

struct Sample {
    Image pixels;
    std::uint8_t label;
    friend bool operator==(const Sample&, const Sample&) = default;
};

Sample load(const ImageSet& set, std::size_t index) {
    Image pixels(ImageSet::image_bytes);
    const std::uint8_t label = set.load(index, pixels);
    return {pixels, label};
}

std::vector<Sample> load_all(const ImageSet& set) {
    std::vector<Sample> result;
    for (std::size_t i = 0; i < set.size(); ++i)
        result.push_back(load(set, i));
    return result;
}

/// How many images have each label.
std::vector<std::size_t> label_counts(const std::vector<Sample>& samples, std::size_t classes) {
    std::vector<std::size_t> counts(classes);
    for (const Sample& sample : samples)
        ++counts.at(sample.label);
    return counts;
}

} // namespace

TEST_CASE("random images: 10,000 of bytes and labels that are uniform") {
    const RandomImages set;
    CHECK(set.size() == 10'000);
    CHECK(set.classes() == 10);
    const auto samples = load_all(set);
    for (const std::size_t count : label_counts(samples, 10))
        CHECK(std::abs(static_cast<double>(count) - 1000.0) < 5 * 30); // 5 standard deviations
    std::array<double, 256> bytes{};
    for (const Sample& sample : samples) {
        for (const std::uint8_t byte : sample.pixels)
            ++bytes[byte];
    }
    for (const double count : bytes)
        CHECK(std::abs(count - 120'000.0) < 6 * 346);
}

TEST_CASE("random images: of the seed and the number alone") {
    const RandomImages set(100, 9);
    const Sample sample = load(set, 42);
    CHECK(load(set, 42) == sample);
    CHECK(load(RandomImages(43, 9), 42) == sample);
    CHECK(load(set, 41).pixels != sample.pixels);
    CHECK(load(RandomImages(100, 10), 42).pixels != sample.pixels);
}

TEST_CASE("digits: each once, in a tint and at a place of its own") {
    const DigitImages training(SLUICE_DIGITS_DIR, Split::training, 3);
    const DigitImages held_out(SLUICE_DIGITS_DIR, Split::held_out, 3);
    const examples::DigitSet files = examples::load_digit_set(SLUICE_DIGITS_DIR);
    const auto counts_of = [](const examples::IdxLabels& labels) {
        std::vector<std::size_t> counts(10);
        for (const std::uint8_t label : labels.values)
            ++counts[label];
        return counts;
    };
    const auto samples = load_all(training);
    CHECK(samples.size() == 1500);
    CHECK(held_out.size() == 297);
    CHECK(label_counts(samples, 10) == counts_of(files.train.labels));
    CHECK(label_counts(load_all(held_out), 10) == counts_of(files.test.labels));
    for (const Sample& sample : samples) { // ink, and mostly paper
        CHECK(std::ranges::count_if(sample.pixels, [](auto byte) { return byte >= 96; }) > 30);
        CHECK(std::ranges::count_if(sample.pixels, [](auto byte) { return byte < 24; }) > 1000);
    }
    CHECK(load_all(DigitImages(SLUICE_DIGITS_DIR, Split::training, 3)) == samples);
    CHECK(load(DigitImages(SLUICE_DIGITS_DIR, Split::training, 4), 0).pixels != samples[0].pixels);
}

TEST_CASE("photographs: tiles are what the file holds there, with a label for photograph and quarter") {
    const PhotographTiles set(SLUICE_PHOTOGRAPHS_DIR);
    CHECK(set.size() == 2 * 29 * 29);
    CHECK(set.classes() == 8);
    const auto files = examples::read_photographs(SLUICE_PHOTOGRAPHS_DIR);
    const auto samples = load_all(set);
    int wrong = 0;
    for (std::size_t i = 0; i < samples.size(); ++i) {
        const examples::PlanarImage& file = files[i / 841];
        const std::size_t top = i % 841 / 29 * 8;
        const std::size_t left = i % 841 % 29 * 8;
        for (std::size_t k = 0; k < ImageSet::image_bytes; ++k) {
            const std::size_t pixel = (top + k / 96) * 256 + left + k % 96 / 3;
            wrong += samples[i].pixels[k] != file.planes[k % 3 * 256 * 256 + pixel];
        }
        const std::size_t quarter = (top + 16 >= 128 ? 2u : 0u) + (left + 16 >= 128 ? 1u : 0u);
        wrong += samples[i].label != 4 * (i / 841) + quarter;
    }
    CHECK(wrong == 0);
}

TEST_CASE("open_image_set: by what --data names") {
    CHECK(open_image_set("synthetic", 5)->size() == 10'000);
    CHECK(load(*open_image_set("synthetic", 5), 7) == load(RandomImages(10'000, 5), 7));
    CHECK(open_image_set(SLUICE_DIGITS_DIR, 5)->size() == 1500);
    CHECK(open_image_set(SLUICE_PHOTOGRAPHS_DIR, 5)->classes() == 8);
    CHECK_THROWS_AS(open_image_set("/no/such/folder", 1), examples::BadInput);
}

TEST_CASE("image sets: what cannot be is refused") {
    CHECK(error_of([] { RandomImages(0); }) ==
          "a set of no random images was asked for; it must have at least one");
    const RandomImages set(3);
    CHECK(error_of([&] { load(set, 3); }) == "image 3 was asked for of a set of 3");
    Image small(12);
    CHECK(error_of([&] { set.load(0, small); }) ==
          "an image of 32x32 pixels needs room for 3,072 bytes, not 12");

    const sluice_test::ScratchFolder folder;
    std::ofstream(folder.path() / "small.ppm", std::ios::binary) << "P6 31 40 255\n"
                                                                 << std::string(3 * 31 * 40, 'x');
    try {
        PhotographTiles tiles(folder.path());
        FAIL("a photograph that is too small was taken");
    } catch (const examples::BadInput& error) {
        CHECK(std::string(error.what())
                  .ends_with("a photograph of 31x40 pixels was found; tiles need at least 32x32"));
    }
}

} // namespace images_image_set_test
