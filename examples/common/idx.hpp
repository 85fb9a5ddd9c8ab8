/// \file
/// Reads IDX files, the format of MNIST, Fashion-MNIST and this project's own digits: a magic number,
/// big-endian 32-bit sizes, then the elements. Unsigned bytes are read, as labels (one size) or images
/// (three), and labels that are 32-bit integers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

namespace examples {

/// Grey images of one size, one after another, row by row; 0 is background, 255 full ink.
struct IdxImages {
    std::size_t count = 0;
    std::size_t rows = 0;
    std::size_t columns = 0;
    std::vector<std::uint8_t> pixels; ///< count × rows × columns

    /// The pixels of image `index`, rows × columns of them.
    [[nodiscard]] std::span<const std::uint8_t> image(std::size_t index) const {
        return std::span{pixels}.subspan(index * rows * columns, rows * columns);
    }
};

/// One class per image.
struct IdxLabels {
    std::vector<std::uint8_t> values;
};

/// Images and the classes that belong to them.
struct IdxSplit {
    IdxImages images;
    IdxLabels labels;
};

/// What an example trains on, and what it is judged on.
struct DigitSet {
    IdxSplit train;
    IdxSplit test;
};

/// Classes a digit set may hold: labels 0 to 9.
inline constexpr std::uint8_t digit_classes = 10;

/// The longest side of an image that is believed.
inline constexpr std::size_t largest_image_side = 4096;

/// Reads an IDX file of images.
/// \throws BadInput, naming the file, when it is missing, no regular file, compressed with gzip, of another
/// type,
///         empty, of sizes that cannot be, or when it holds fewer or more bytes than its header announces
IdxImages read_idx_images(const std::filesystem::path& path);

/// Reads an IDX file of labels, unsigned bytes or 32-bit integers.
/// \throws BadInput as `read_idx_images` does, and for an integer outside 0 to 255
IdxLabels read_idx_labels(const std::filesystem::path& path);

/// Reads `train-images-idx3-ubyte`, `train-labels-idx1-ubyte`, `test-images-idx3-ubyte` and
/// `test-labels-idx1-ubyte` from `folder`. `t10k-…` serves for `test-…`, and `….idx3-ubyte` for
/// `…-idx3-ubyte`, as MNIST's files are called. \throws BadInput when a file is missing or bad, images and
/// labels differ in number, a label is above 9, or the
///         two splits hold images of different sizes
DigitSet load_digit_set(const std::filesystem::path& folder);

} // namespace examples
