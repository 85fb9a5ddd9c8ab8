#include <algorithm>
#include <stdexcept>

#include <png.h>

#include <common/picture.hpp>

#include "scratch.hpp"
#include "support/doctest.hpp"

namespace examples_picture {

using namespace examples;
using sluice_test::Bytes;
using sluice_test::message_of;
using sluice_test::ScratchFolder;

namespace {

struct Decoded {
    std::size_t width = 0;
    std::size_t height = 0;
    Bytes pixels;
};

Decoded read_png(const std::filesystem::path& path) {
    png_image image{};
    image.version = PNG_IMAGE_VERSION;
    REQUIRE(png_image_begin_read_from_file(&image, path.c_str()) != 0);
    image.format = PNG_FORMAT_RGB;
    Decoded decoded{image.width, image.height, Bytes(PNG_IMAGE_SIZE(image))};
    REQUIRE(png_image_finish_read(&image, nullptr, decoded.pixels.data(), 0, nullptr) != 0);
    return decoded;
}

} // namespace

TEST_CASE("a picture is written and read back") {
    Picture picture{7, 5, {1, 2, 3}};
    picture.fill(2, 1, 3, 2, {200, 100, 0});
    const ScratchFolder folder;
    const auto path = folder.path() / "picture.png";
    write_png(picture, path);
    write_png(picture, path); // over the first one
    CHECK(folder.files() == 1);
    const Decoded decoded = read_png(path);
    CHECK(decoded.width == 7);
    CHECK(decoded.height == 5);
    CHECK(std::equal(decoded.pixels.begin(), decoded.pixels.end(), picture.pixels().begin(),
                     picture.pixels().end()));
    CHECK(picture.at(2, 1) == Colour{200, 100, 0});
    CHECK(picture.at(4, 2) == Colour{200, 100, 0});
    CHECK(picture.at(5, 2) == Colour{1, 2, 3});
    CHECK(picture.at(4, 3) == Colour{1, 2, 3});
}

TEST_CASE("images and labels are drawn enlarged") {
    Picture picture{8, 4};
    const Bytes planes{10, 11, 12, 13, 20, 21, 22, 23, 30, 31, 32, 33};
    picture.draw_image(0, 0, planes, 2, 2, 2);
    CHECK(picture.at(0, 0) == Colour{10, 20, 30});
    CHECK(picture.at(1, 1) == Colour{10, 20, 30});
    CHECK(picture.at(2, 1) == Colour{11, 21, 31});
    CHECK(picture.at(1, 2) == Colour{12, 22, 32});
    CHECK(picture.at(3, 3) == Colour{13, 23, 33});
    picture.draw_labels(4, 0, Bytes{0, 10, 9, 3}, 2, 2, 2);
    CHECK(picture.at(4, 0) == class_colour(0));
    CHECK(picture.at(7, 1) == class_colour(10));
    CHECK(picture.at(5, 3) == class_colour(9));
    CHECK(picture.at(6, 2) == class_colour(3));
}

TEST_CASE("every class has a colour of its own") {
    for (std::uint8_t a = 0; a <= 10; ++a)
        for (std::uint8_t b = 0; b < a; ++b)
            CHECK(class_colour(a) != class_colour(b));
}

TEST_CASE("a picture refuses what does not fit") {
    Picture picture{4, 4};
    CHECK_THROWS_WITH_AS(picture.fill(2, 0, 3, 1, {}), "a picture of 4×4 was drawn on beyond its edge",
                         std::invalid_argument);
    CHECK_THROWS_AS(picture.fill(5, 0, 0, 0, {}), std::invalid_argument);
    CHECK_THROWS_WITH_AS(picture.draw_image(0, 0, Bytes(11), 2, 2), "draw_image: 11 bytes given, expected 12",
                         std::invalid_argument);
    CHECK_THROWS_AS(picture.draw_labels(0, 0, Bytes(3), 2, 2), std::invalid_argument);
    CHECK_THROWS_AS(Picture(0, 4), std::invalid_argument);
    CHECK_THROWS_AS(Picture(4, 65536), std::invalid_argument);
}

TEST_CASE("a picture that cannot be written leaves nothing behind") {
    const Picture picture{4, 4};
    const ScratchFolder folder;
    const auto path = folder.path() / "no" / "picture.png";
    CHECK(message_of([&] { write_png(picture, path); }) ==
          path.string() + ": cannot be written: No such file or directory");
    CHECK(message_of([&] { write_png(picture, folder.path()); }) ==
          folder.path().string() + ": cannot be written: Is a directory");
    CHECK(message_of([&] { write_png(picture, "/dev/full"); }) ==
          "/dev/full: cannot be written: No space left on device");
    CHECK(folder.files() == 0);
}

} // namespace examples_picture
