/// \file
/// Reads photographs from binary PPM files: `P6`, width, height and 255 as text, then a byte each of red,
/// green and blue for every pixel, row by row (Netpbm's ppm(5)).
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <vector>

namespace examples {

/// A colour image as three planes of bytes: red, green, blue.
struct PlanarImage {
    std::size_t height = 0;
    std::size_t width = 0;
    std::vector<std::uint8_t> planes; ///< 3 × height × width

    friend bool operator==(const PlanarImage&, const PlanarImage&) = default;
};

/// Reads a binary PPM file of one image. Comments in its header are skipped.
/// \throws BadInput, naming the file, when it is missing, no regular file, no binary PPM, has a greatest value
///         other than 255, a side of 0 or above `largest_image_side`, or fewer or more bytes than its sides need
PlanarImage read_ppm(const std::filesystem::path& path);

/// Reads all files of `folder` that end in `.ppm`, in the order of their names.
/// \throws BadInput when there is no such folder, it holds no such file, or one of them is bad
std::vector<PlanarImage> read_photographs(const std::filesystem::path& folder);

} // namespace examples
