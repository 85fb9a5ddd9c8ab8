#include <images/image_set.hpp>

#include <algorithm>

#include <common/bad_input.hpp>
#include <common/digits.hpp>
#include <common/ppm.hpp>
#include <common/text.hpp>
#include <sluice/backend/error.hpp>
#include <sluice/random/philox.hpp>

namespace images {
namespace {

// What a run of random numbers is for.
enum Purpose : std::uint16_t { pixels_purpose = 301, label_purpose = 302 };

constexpr std::size_t side = image_side;

void require_image(const ImageSet& set, std::size_t index, std::span<const std::uint8_t> pixels) {
    if (index >= set.size()) {
        throw sluice::Error("image " + std::to_string(index) + " was asked for of a set of " +
                            std::to_string(set.size()));
    }
    if (pixels.size() != ImageSet::image_bytes) {
        throw sluice::Error("an image of 32x32 pixels needs room for " +
                            examples::counted(ImageSet::image_bytes, "byte") + ", not " +
                            examples::with_commas(pixels.size()));
    }
}

/// From planes to pixels of three bytes.
std::vector<std::uint8_t> interleaved(std::span<const std::uint8_t> planes) {
    const std::size_t pixels = planes.size() / 3;
    std::vector<std::uint8_t> result(planes.size());
    for (std::size_t i = 0; i < pixels; ++i) {
        for (std::size_t c = 0; c < 3; ++c)
            result[3 * i + c] = planes[c * pixels + i];
    }
    return result;
}

} // namespace

// Random images. -------------------------------------------------------------------------------------------------

RandomImages::RandomImages(std::size_t size, std::uint64_t seed) : size_(size), seed_(seed) {
    if (size == 0)
        throw sluice::Error("a set of no random images was asked for; it must have at least one");
}

std::uint8_t RandomImages::load(std::size_t index, std::span<std::uint8_t> pixels) const {
    require_image(*this, index, pixels);
    sluice::CountedRandom random({.seed = seed_, .sample = index, .operation = pixels_purpose});
    for (std::size_t i = 0; i < pixels.size(); i += 4) {
        const std::uint32_t word = random.next_u32();
        for (std::size_t byte = 0; byte < 4; ++byte)
            pixels[i + byte] = static_cast<std::uint8_t>(word >> (8 * byte));
    }
    sluice::CountedRandom label({.seed = seed_, .sample = index, .operation = label_purpose});
    return static_cast<std::uint8_t>(label.below(10));
}

// Digits. --------------------------------------------------------------------------------------------------------

DigitImages::DigitImages(const std::filesystem::path& folder, Split split, std::uint64_t seed) {
    const examples::DigitSet digits = examples::load_digit_set(folder);
    const examples::IdxSplit& chosen = split == Split::training ? digits.train : digits.test;
    const examples::CanvasSpec canvas{
        .height = side, .width = side, .cell = side, .digit = side - 4, .presence = 1.0f};
    // Samples of two epochs differ, so held-out canvases are no training canvas with another digit.
    const std::uint32_t epoch = split == Split::training ? 0 : 1;
    labels_.resize(chosen.labels.values.size());
    pixels_.reserve(labels_.size() * image_bytes);
    std::vector<std::uint8_t> planes(image_bytes);
    for (std::size_t i = 0; i < labels_.size(); ++i) {
        labels_[i] = examples::compose_classification(chosen, canvas, seed, epoch, i, planes);
        const std::vector<std::uint8_t> image = interleaved(planes);
        pixels_.insert(pixels_.end(), image.begin(), image.end());
    }
}

std::uint8_t DigitImages::load(std::size_t index, std::span<std::uint8_t> pixels) const {
    require_image(*this, index, pixels);
    std::copy_n(pixels_.data() + index * image_bytes, image_bytes, pixels.data());
    return labels_[index];
}

// Photographs. ---------------------------------------------------------------------------------------------------

PhotographTiles::PhotographTiles(const std::filesystem::path& folder) {
    constexpr std::size_t most = 64; // labels are bytes
    for (const examples::PlanarImage& image : examples::read_photographs(folder)) {
        if (image.height < side || image.width < side) {
            throw examples::BadInput(folder.string() + ": a photograph of " + std::to_string(image.width) +
                                     "x" + std::to_string(image.height) +
                                     " pixels was found; tiles need at least 32x32");
        }
        photographs_.push_back({image.height, image.width, (image.height - side) / stride + 1,
                                (image.width - side) / stride + 1, interleaved(image.planes)});
        tiles_ += photographs_.back().rows * photographs_.back().columns;
    }
    if (photographs_.size() > most) {
        throw examples::BadInput(folder.string() + ": " + std::to_string(photographs_.size()) +
                                 " photographs were found; labels suffice for " + std::to_string(most));
    }
}

std::uint8_t PhotographTiles::load(std::size_t index, std::span<std::uint8_t> pixels) const {
    require_image(*this, index, pixels);
    std::size_t number = 0;
    std::size_t tile = index;
    while (tile >= photographs_[number].rows * photographs_[number].columns) {
        tile -= photographs_[number].rows * photographs_[number].columns;
        ++number;
    }
    const Photograph& photograph = photographs_[number];
    const std::size_t top = tile / photograph.columns * stride;
    const std::size_t left = tile % photograph.columns * stride;
    for (std::size_t y = 0; y < side; ++y) {
        std::copy_n(photograph.pixels.data() + 3 * ((top + y) * photograph.width + left), 3 * side,
                    pixels.data() + 3 * side * y);
    }
    const bool lower = 2 * (top + side / 2) >= photograph.height;
    const bool right = 2 * (left + side / 2) >= photograph.width;
    return static_cast<std::uint8_t>(4 * number + (lower ? 2u : 0u) + (right ? 1u : 0u));
}

// By name. -------------------------------------------------------------------------------------------------------

std::unique_ptr<const ImageSet> open_image_set(const std::string& data, std::uint64_t seed) {
    if (data == "synthetic")
        return std::make_unique<RandomImages>(RandomImages::published_size, seed);
    std::error_code ignored; // a folder that cannot be read is one without photographs
    for (const auto& entry : std::filesystem::directory_iterator(data, ignored)) {
        if (entry.path().extension() == ".ppm")
            return std::make_unique<PhotographTiles>(data);
    }
    return std::make_unique<DigitImages>(data, Split::training, seed);
}

} // namespace images
