#include <filesystem>
#include <string>
#include <vector>

#include <common/ppm.hpp>

#include "scratch.hpp"
#include "support/doctest.hpp"

namespace examples_ppm {

using namespace examples;
using sluice_test::Bytes;
using sluice_test::message_of;
using sluice_test::ScratchFolder;

namespace {

Bytes bytes_of(const std::string& text) { return {text.begin(), text.end()}; }

/// A file's header, then pixels 1, 2, 3 …
Bytes ppm(const std::string& header, std::size_t pixel_bytes) {
    Bytes bytes = bytes_of(header);
    for (std::size_t i = 0; i < pixel_bytes; ++i)
        bytes.push_back(static_cast<std::uint8_t>(i + 1));
    return bytes;
}

bool says(const std::string& message, const std::string& expected) {
    return message.find(expected) != std::string::npos;
}

} // namespace

TEST_CASE("a binary PPM file becomes three planes") {
    const ScratchFolder folder;
    const PlanarImage expected{2, 3, {1, 4, 7, 10, 13, 16, 2, 5, 8, 11, 14, 17, 3, 6, 9, 12, 15, 18}};
    CHECK(read_ppm(folder.file("plain.ppm", ppm("P6\n3 2\n255\n", 18))) == expected);
    CHECK(read_ppm(folder.file("spaces.ppm", ppm("P6 \t3\r\n 2 255 ", 18))) == expected);
    CHECK(read_ppm(folder.file("comments.ppm",
                               ppm("P6 # made by hand\n# two rows\n3 2# of three\n255\n", 18))) == expected);
    CHECK(read_ppm(folder.file("last.ppm", ppm("P6 3 2 255# the greatest\n", 18))) == expected);
    // What looks like white space or a comment behind the header is pixels.
    Bytes bytes = ppm("P6 1 1 255\n", 0);
    bytes.insert(bytes.end(), {'\n', '#', ' '});
    CHECK(read_ppm(folder.file("odd.ppm", bytes)).planes == Bytes{'\n', '#', ' '});
}

TEST_CASE("a file that is no binary PPM is refused in one sentence") {
    const ScratchFolder folder;
    const auto refusal = [&](const std::string& header, std::size_t pixel_bytes) {
        const auto path = folder.file("bad.ppm", ppm(header, pixel_bytes));
        const std::string message = message_of([&] { (void)read_ppm(path); });
        CHECK(says(message, path.string()));
        CHECK(says(message, "expected"));
        CHECK_FALSE(says(message, "\n"));
        return message;
    };
    CHECK(says(refusal("", 0), "does not begin with \"P6\""));
    CHECK(says(refusal("P", 0), "does not begin with \"P6\""));
    CHECK(says(refusal("P3\n1 1\n255\n1 2 3\n", 0), "does not begin with \"P6\""));
    CHECK(says(refusal("P61 1 255\n", 3), "no width"));
    CHECK(says(refusal("P6\n", 0), "no width"));
    CHECK(says(refusal("P6\n2", 0), "no height"));
    CHECK(says(refusal("P6\n-2 2 255\n", 12), "no width"));
    CHECK(says(refusal("P6\n2 x 255\n", 12), "no height"));
    CHECK(says(refusal("P6\n2 2\n", 0), "no greatest value"));
    CHECK(says(refusal("P6\n2 2 # and so on", 0), "no greatest value"));
    CHECK(says(refusal("P6\n2 2 255", 0), "does not end"));
    CHECK(says(refusal("P6\n2 2 255x", 12), "does not end"));
    CHECK(says(refusal("P6\n2 2 255# the greatest", 0), "does not end"));
    CHECK(says(refusal("P6\n2 2 65535\n", 24), "greatest value is 65,535; expected 255"));
    CHECK(says(refusal("P6\n2 2 1\n", 12), "greatest value is 1; expected 255"));
    CHECK(says(refusal("P6\n0 2 255\n", 0), "0×2 pixels"));
    CHECK(says(refusal("P6\n2 4097 255\n", 12), "2×4,097 pixels"));
    CHECK(says(refusal("P6\n99999999999999999999999 1 255\n", 3), "expected sides of 1 to 4,096"));
    CHECK(says(refusal("P6\n2 2 255\n", 11), "holds 22 bytes; expected 23"));
    CHECK(says(refusal("P6\n2 2 255\n", 13), "holds 24 bytes; expected 23"));
    CHECK(says(message_of([&] { (void)read_ppm(folder.path() / "none.ppm"); }), "No such file"));
    CHECK(says(message_of([&] { (void)read_ppm(folder.path()); }), "is a folder"));
}

TEST_CASE("all photographs of a folder are read, in the order of their names") {
    const ScratchFolder folder;
    const auto refusal = [&](const std::filesystem::path& path) {
        return message_of([&] { (void)read_photographs(path); });
    };
    CHECK(says(refusal(folder.path() / "nowhere"), "cannot be read"));
    CHECK(says(refusal(folder.path()), "holds no photograph"));
    (void)folder.file("b.ppm", ppm("P6 1 1 255\n", 3));
    (void)folder.file("a.ppm", ppm("P6 2 1 255\n", 6));
    (void)folder.file("notes.txt", bytes_of("nothing"));
    const std::vector<PlanarImage> images = read_photographs(folder.path());
    REQUIRE(images.size() == 2);
    CHECK(images[0].width == 2);
    CHECK(images[1].width == 1);
    (void)folder.file("c.ppm", ppm("P5 1 1 255\n", 3));
    CHECK(says(refusal(folder.path()), "c.ppm"));
}

TEST_CASE("the photographs of the repository are read") {
    const std::vector<PlanarImage> images = read_photographs(SLUICE_PHOTOGRAPHS_DIR);
    REQUIRE(images.size() == 2);
    for (const PlanarImage& image : images) {
        CHECK(image.height == 256);
        CHECK(image.width == 256);
        CHECK(image.planes.size() == 3 * 256 * 256);
    }
    // The temple's first pixel, sky above it, is bluer than it is red.
    CHECK(images[0].planes[2 * 256 * 256] > images[0].planes[0]);
}

} // namespace examples_ppm
