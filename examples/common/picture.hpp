/// \file
/// A picture in memory, what examples draw on it, and PNG files.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <vector>

namespace examples {

/// Red, green, blue.
using Colour = std::array<std::uint8_t, 3>;

/// An RGB picture, row by row from the top left corner.
class Picture {
public:
    /// Filled with one colour.
    /// \throws std::invalid_argument when a side is 0 or above 65,535
    Picture(std::size_t width, std::size_t height, Colour fill = {0, 0, 0});

    [[nodiscard]] std::size_t width() const { return width_; }
    [[nodiscard]] std::size_t height() const { return height_; }

    /// width × height × 3 bytes.
    [[nodiscard]] std::span<const std::uint8_t> pixels() const { return pixels_; }

    /// The colour at column `x` of row `y`, both within the picture.
    [[nodiscard]] Colour at(std::size_t x, std::size_t y) const;

    /// Fills a rectangle.
    /// \throws std::invalid_argument when it reaches beyond the picture, as the other drawing functions do
    void fill(std::size_t left, std::size_t top, std::size_t width, std::size_t height, Colour colour);

    /// Draws an image of three planes (red, green, blue), each pixel as a square of `scale` × `scale`.
    /// \param planes 3 × rows × columns bytes
    void draw_image(std::size_t left, std::size_t top, std::span<const std::uint8_t> planes, std::size_t rows,
                    std::size_t columns, std::size_t scale = 1);

    /// Draws a map of classes in the colours of `class_colour`, each pixel as a square of `scale` × `scale`.
    /// \param labels rows × columns classes
    void draw_labels(std::size_t left, std::size_t top, std::span<const std::uint8_t> labels,
                     std::size_t rows, std::size_t columns, std::size_t scale = 1);

private:
    std::size_t width_;
    std::size_t height_;
    std::vector<std::uint8_t> pixels_;
};

/// The colour of a class in pictures: ten that are told apart for 0 to 9, and a dark grey for every other
/// class, which is how background is drawn.
Colour class_colour(std::uint8_t label);

/// The picture as a PNG file's bytes.
/// \throws std::runtime_error when libpng reports an error
std::vector<std::uint8_t> png_bytes(const Picture& picture);

/// Writes a PNG file, whole or not at all.
/// \throws BadInput when it cannot be written
void write_png(const Picture& picture, const std::filesystem::path& path);

} // namespace examples
