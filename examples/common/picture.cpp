#include <common/picture.hpp>

#include <png.h>

#include <stdexcept>
#include <string>

#include <common/files.hpp>
#include <common/text.hpp>

namespace examples {
namespace {

constexpr std::size_t largest_side = 65535;

void require_size(std::size_t found, std::size_t expected, const char* what) {
    if (found == expected)
        return;
    throw std::invalid_argument(std::string{what} + ": " + counted(found, "byte") + " given, expected " +
                                with_commas(expected));
}

} // namespace

Picture::Picture(std::size_t width, std::size_t height, Colour colour) : width_{width}, height_{height} {
    if (width == 0 || height == 0 || width > largest_side || height > largest_side) {
        throw std::invalid_argument("a picture of " + std::to_string(width) + "×" + std::to_string(height) +
                                    " was asked for; expected sides of 1 to 65,535");
    }
    pixels_.resize(width * height * 3);
    fill(0, 0, width, height, colour);
}

Colour Picture::at(std::size_t x, std::size_t y) const {
    const std::size_t place = (y * width_ + x) * 3;
    return {pixels_[place], pixels_[place + 1], pixels_[place + 2]};
}

void Picture::fill(std::size_t left, std::size_t top, std::size_t width, std::size_t height, Colour colour) {
    if (left > width_ || width > width_ - left || top > height_ || height > height_ - top) {
        throw std::invalid_argument("a picture of " + std::to_string(width_) + "×" + std::to_string(height_) +
                                    " was drawn on beyond its edge");
    }
    for (std::size_t y = top; y < top + height; ++y) {
        for (std::size_t x = left; x < left + width; ++x) {
            for (std::size_t channel = 0; channel < 3; ++channel) {
                pixels_[(y * width_ + x) * 3 + channel] = colour[channel];
            }
        }
    }
}

void Picture::draw_image(std::size_t left, std::size_t top, std::span<const std::uint8_t> planes,
                         std::size_t rows, std::size_t columns, std::size_t scale) {
    const std::size_t plane = rows * columns;
    require_size(planes.size(), 3 * plane, "draw_image");
    for (std::size_t row = 0; row < rows; ++row) {
        for (std::size_t column = 0; column < columns; ++column) {
            const std::size_t place = row * columns + column;
            fill(left + column * scale, top + row * scale, scale, scale,
                 {planes[place], planes[plane + place], planes[2 * plane + place]});
        }
    }
}

void Picture::draw_labels(std::size_t left, std::size_t top, std::span<const std::uint8_t> labels,
                          std::size_t rows, std::size_t columns, std::size_t scale) {
    require_size(labels.size(), rows * columns, "draw_labels");
    for (std::size_t row = 0; row < rows; ++row) {
        for (std::size_t column = 0; column < columns; ++column) {
            fill(left + column * scale, top + row * scale, scale, scale,
                 class_colour(labels[row * columns + column]));
        }
    }
}

Colour class_colour(std::uint8_t label) {
    // P. Tol's "muted" qualitative scheme, which most colour-blind readers can tell apart, and white as the
    // tenth.
    static constexpr std::array<Colour, 10> colours{{{0x33, 0x22, 0x88},
                                                     {0x88, 0xcc, 0xee},
                                                     {0x44, 0xaa, 0x99},
                                                     {0x11, 0x77, 0x33},
                                                     {0x99, 0x99, 0x33},
                                                     {0xdd, 0xcc, 0x77},
                                                     {0xcc, 0x66, 0x77},
                                                     {0x88, 0x22, 0x55},
                                                     {0xaa, 0x44, 0x99},
                                                     {0xff, 0xff, 0xff}}};
    return label < colours.size() ? colours[label] : Colour{0x18, 0x18, 0x18};
}

std::vector<std::uint8_t> png_bytes(const Picture& picture) {
    png_image image{};
    image.version = PNG_IMAGE_VERSION;
    image.width = static_cast<png_uint_32>(picture.width());
    image.height = static_cast<png_uint_32>(picture.height());
    image.format = PNG_FORMAT_RGB;
    const auto fail = [&image]() -> std::runtime_error {
        const std::string message = image.message;
        png_image_free(&image);
        return std::runtime_error("libpng could not encode a picture: " + message);
    };
    // The first call only counts the bytes.
    png_alloc_size_t size = 0;
    const void* pixels = picture.pixels().data();
    if (png_image_write_to_memory(&image, nullptr, &size, 0, pixels, 0, nullptr) == 0)
        throw fail();
    std::vector<std::uint8_t> bytes(size);
    if (png_image_write_to_memory(&image, bytes.data(), &size, 0, pixels, 0, nullptr) == 0)
        throw fail();
    bytes.resize(size);
    return bytes;
}

void write_png(const Picture& picture, const std::filesystem::path& path) {
    write_whole_file(path, png_bytes(picture));
}

} // namespace examples
