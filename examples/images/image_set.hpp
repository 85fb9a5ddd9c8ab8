/// \file
/// Small images with labels, by number: random ones, handwritten digits, tiles of photographs. Image i of a set depends on the
/// seed and i alone, so it is the same whichever thread asks for it, and when.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include <augment/images.hpp>

namespace images {

/// The side of an image of every set here, in pixels.
inline constexpr int image_side = 32;

/// RGB images of 32×32 bytes, interleaved, with a class each.
class ImageSet {
public:
    virtual ~ImageSet() = default;

    /// Images, at least 1.
    virtual std::size_t size() const = 0;
    /// Labels are 0 to before this.
    virtual std::size_t classes() const = 0;
    /// Writes image `index`, which is below `size()`, to `pixels`, 3,072 bytes, and returns its label. Any thread may call it,
    /// several at a time. Allocates nothing.
    virtual std::uint8_t load(std::size_t index, std::span<std::uint8_t> pixels) const = 0;

    augment::ImageShape shape() const { return {3, image_side, image_side}; }
    static constexpr std::size_t image_bytes = std::size_t{3} * image_side * image_side;
};

/// The published data: images of random bytes, and random labels of 10 classes. Drawn when they are loaded; nothing is stored.
class RandomImages : public ImageSet {
public:
    static constexpr std::size_t published_size = 10'000;

    /// Throws `sluice::Error` for no images.
    explicit RandomImages(std::size_t size = published_size, std::uint64_t seed = 1);

    std::size_t size() const override { return size_; }
    std::size_t classes() const override { return 10; }
    std::uint8_t load(std::size_t index, std::span<std::uint8_t> pixels) const override;

private:
    std::size_t size_;
    std::uint64_t seed_;
};

/// Which half of a set of digits.
enum class Split : std::uint8_t {
    training, ///< to train on
    held_out, ///< that no training has seen
};

/// Handwritten digits, each once on a dark canvas, at a place and in a tint of its own.
class DigitImages : public ImageSet {
public:
    /// Reads the IDX files of `folder`, and composes all images. Throws `examples::BadInput` for a file that is missing or
    /// bad.
    DigitImages(const std::filesystem::path& folder, Split split, std::uint64_t seed = 1);

    std::size_t size() const override { return labels_.size(); }
    std::size_t classes() const override { return 10; }
    std::uint8_t load(std::size_t index, std::span<std::uint8_t> pixels) const override;

private:
    std::vector<std::uint8_t> pixels_;
    std::vector<std::uint8_t> labels_;
};

/// Overlapping tiles of photographs, 8 pixels from each other. A tile's label says which photograph it is from, and which
/// quarter of it the tile's middle is in: `4 * photograph + 2 * (lower half) + (right half)`.
class PhotographTiles : public ImageSet {
public:
    static constexpr std::size_t stride = 8;

    /// Reads the `.ppm` files of `folder`, in the order of their names. Throws `examples::BadInput` for a bad file, for none,
    /// for more than 64, and for a photograph with a side of less than 32 pixels.
    explicit PhotographTiles(const std::filesystem::path& folder);

    std::size_t size() const override { return tiles_; }
    std::size_t classes() const override { return 4 * photographs_.size(); }
    std::uint8_t load(std::size_t index, std::span<std::uint8_t> pixels) const override;

private:
    struct Photograph {
        std::size_t height;
        std::size_t width;
        std::size_t rows;    ///< of tiles
        std::size_t columns; ///< of tiles
        std::vector<std::uint8_t> pixels;
    };
    std::vector<Photograph> photographs_;
    std::size_t tiles_ = 0;
};

/// The set that `--data` names: `synthetic`, `RandomImages` of the published size; a folder with `.ppm` files,
/// `PhotographTiles`; any other folder, the training digits. Throws as their constructors do.
std::unique_ptr<const ImageSet> open_image_set(const std::string& data, std::uint64_t seed);

} // namespace images
