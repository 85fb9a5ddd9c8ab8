#include <algorithm>

#include <common/idx.hpp>

#include "scratch.hpp"
#include "support/doctest.hpp"

namespace examples_idx {

using namespace examples;
using sluice_test::Bytes;
using sluice_test::message_of;
using sluice_test::ScratchFolder;

namespace {

void append_big_endian(Bytes& bytes, std::uint32_t number) {
    for (int shift = 24; shift >= 0; shift -= 8)
        bytes.push_back(static_cast<std::uint8_t>(number >> shift));
}

Bytes idx_bytes(std::uint32_t magic, const std::vector<std::uint32_t>& sizes, std::size_t elements) {
    Bytes bytes;
    append_big_endian(bytes, magic);
    for (const std::uint32_t size : sizes)
        append_big_endian(bytes, size);
    for (std::size_t i = 0; i < elements; ++i)
        bytes.push_back(static_cast<std::uint8_t>(i % 10));
    return bytes;
}

Bytes images_bytes(std::uint32_t count, std::uint32_t side = 2) {
    return idx_bytes(0x803, {count, side, side}, std::size_t{count} * side * side);
}

Bytes labels_bytes(std::uint32_t count) { return idx_bytes(0x801, {count}, count); }

/// Labels as 32-bit integers.
Bytes integers_bytes(const std::vector<std::int32_t>& labels) {
    Bytes bytes = idx_bytes(0xC01, {static_cast<std::uint32_t>(labels.size())}, 0);
    for (const std::int32_t label : labels)
        append_big_endian(bytes, static_cast<std::uint32_t>(label));
    return bytes;
}

/// What reading `bytes` as images says, after the file's name.
std::string images_error(const Bytes& bytes) {
    const ScratchFolder folder;
    const auto path = folder.file("images", bytes);
    const std::string message = message_of([&] { read_idx_images(path); });
    const std::string name = path.string() + ": ";
    return message.starts_with(name) ? message.substr(name.size()) : message;
}

std::string labels_error(const Bytes& bytes) {
    const ScratchFolder folder;
    const auto path = folder.file("labels", bytes);
    const std::string message = message_of([&] { read_idx_labels(path); });
    const std::string name = path.string() + ": ";
    return message.starts_with(name) ? message.substr(name.size()) : message;
}

/// Writes a good digit set; tests then spoil one file of it.
void write_set(const ScratchFolder& folder) {
    (void)folder.file("train-images-idx3-ubyte", images_bytes(5));
    (void)folder.file("train-labels-idx1-ubyte", labels_bytes(5));
    (void)folder.file("test-images-idx3-ubyte", images_bytes(3));
    (void)folder.file("test-labels-idx1-ubyte", labels_bytes(3));
}

std::string set_error(const ScratchFolder& folder) {
    const std::string message = message_of([&] { load_digit_set(folder.path()); });
    const std::string name = folder.path().string();
    return message.starts_with(name) ? message.substr(name.size()) : message;
}

} // namespace

TEST_CASE("images and labels are read") {
    const ScratchFolder folder;
    Bytes bytes = idx_bytes(0x803, {2, 2, 3}, 12);
    bytes.back() = 255;
    const IdxImages images = read_idx_images(folder.file("images", bytes));
    CHECK(images.count == 2);
    CHECK(images.rows == 2);
    CHECK(images.columns == 3);
    CHECK(images.pixels == Bytes{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 0, 255});
    CHECK(images.image(1).front() == 6);
    CHECK(images.image(1).size() == 6);
    CHECK(read_idx_labels(folder.file("labels", labels_bytes(4))).values == Bytes{0, 1, 2, 3});
}

TEST_CASE("labels may be 32-bit integers") {
    const ScratchFolder folder;
    CHECK(read_idx_labels(folder.file("labels", integers_bytes({7, 0, 255}))).values == Bytes{7, 0, 255});
    CHECK(labels_error(integers_bytes({7, 256})) == "label 1 is 256; expected 0 to 255");
    CHECK(labels_error(integers_bytes({-1, 2})) == "label 0 is -1; expected 0 to 255");
    CHECK(labels_error(idx_bytes(0xC01, {2}, 7)) ==
          "is cut short: holds 15 bytes, but its header announces 2 labels, which take 16");
    CHECK(labels_error(idx_bytes(0xB01, {2}, 4)) ==
          "begins with 0x00000b01, so it holds 16-bit integers; expected unsigned bytes or 32-bit integers");
    CHECK(images_error(idx_bytes(0xC03, {1, 1, 1}, 4)) ==
          "begins with 0x00000c03, so it holds 32-bit integers; expected unsigned bytes");
}

TEST_CASE("a file that is missing or no file") {
    const ScratchFolder folder;
    const auto nowhere = folder.path() / "nowhere";
    CHECK(message_of([&] { read_idx_images(nowhere); }) ==
          nowhere.string() +
              ": cannot be read: No such file or directory; expected an IDX file of images (magic "
              "number 0x00000803)");
    CHECK(message_of([&] { read_idx_labels(folder.path()); }) ==
          folder.path().string() +
              ": is a folder; expected an IDX file of labels (magic number 0x00000801 or 0x00000c01)");
    CHECK(message_of([] { read_idx_labels("/dev/null"); }) ==
          "/dev/null: is not a regular file; expected an IDX file of labels (magic number 0x00000801 or "
          "0x00000c01)");
}

TEST_CASE("a file that is cut short or too long") {
    Bytes bytes = images_bytes(1500, 8);
    bytes.pop_back();
    CHECK(images_error(bytes) ==
          "is cut short: holds 96,015 bytes, but its header announces 1,500 images of 8×8, "
          "which take 96,016");
    bytes.insert(bytes.end(), 3, 0);
    CHECK(images_error(bytes) ==
          "has 2 bytes too many: holds 96,018, but its header announces 1,500 images of "
          "8×8, which take 96,016");
    CHECK(labels_error(idx_bytes(0x801, {4}, 3)) ==
          "is cut short: holds 11 bytes, but its header announces 4 labels, which take 12");
    CHECK(images_error({}) == "holds 0 bytes, too few for an IDX file of images (magic number 0x00000803)");
    CHECK(images_error({0, 0, 8}) ==
          "holds 3 bytes, too few for an IDX file of images (magic number 0x00000803)");
    CHECK(images_error(idx_bytes(0x803, {5, 5}, 0)) ==
          "ends within its header: holds 12 of at least 16 bytes");
}

TEST_CASE("a file of another type") {
    CHECK(images_error(labels_bytes(4)) ==
          "begins with 0x00000801, so it holds labels; expected an IDX file of "
          "images (magic number 0x00000803)");
    CHECK(labels_error(images_bytes(4)) ==
          "begins with 0x00000803, so it holds images; expected an IDX file of "
          "labels (magic number 0x00000801 or 0x00000c01)");
    CHECK(images_error(idx_bytes(0x802, {2, 2}, 4)) ==
          "begins with 0x00000802, so it has 2 dimensions; expected an IDX file of images (magic number "
          "0x00000803)");
    CHECK(images_error(idx_bytes(0xD03, {1, 1, 1}, 4)) ==
          "begins with 0x00000d03, so it holds 32-bit floats; expected unsigned bytes");
    CHECK(images_error({'P', '6', '\n', '8', ' '}) ==
          "begins with 0x50360a38, so it is no IDX file; expected an "
          "IDX file of images (magic number 0x00000803)");
    CHECK(labels_error(idx_bytes(0x701, {1}, 1)) ==
          "begins with 0x00000701, so it is no IDX file; expected an IDX "
          "file of labels (magic number 0x00000801 or 0x00000c01)");
    CHECK(images_error({0x1f, 0x8b, 8, 0, 0, 0}) == "is compressed; unpack it with gunzip");
}

TEST_CASE("sizes that cannot be") {
    CHECK(images_error(images_bytes(0)) == "announces 0 images of 2×2; expected at least one");
    CHECK(labels_error(labels_bytes(0)) == "announces 0 labels; expected at least one");
    CHECK(images_error(idx_bytes(0x803, {2, 0, 8}, 0)) ==
          "announces 2 images of 0×8; expected sides of 1 to 4,096 pixels");
    CHECK(images_error(idx_bytes(0x803, {1, 8, 5000}, 40000)) ==
          "announces 1 image of 8×5,000; expected sides of 1 to 4,096 pixels");
    // 2^96: the product of the sizes is 0 in 64 bits.
    CHECK(
        images_error(idx_bytes(0x803, {0x80000000, 0x80000000, 0x80000000}, 0)) ==
        "announces 2,147,483,648 images of 2,147,483,648×2,147,483,648; expected sides of 1 to 4,096 pixels");
    // Much more than memory holds, in 16 bytes: refused by the file's size, before anything is allocated.
    CHECK(images_error(idx_bytes(0x803, {0xFFFFFFFF, 4096, 4096}, 0)) ==
          "is cut short: holds 16 bytes, but its header announces 4,294,967,295 images of 4,096×4,096, which "
          "take "
          "72,057,594,021,150,736");
}

TEST_CASE("the digits of this project") {
    const DigitSet set = load_digit_set(SLUICE_DIGITS_DIR);
    CHECK(set.train.images.count == 1500);
    CHECK(set.train.labels.values.size() == 1500);
    CHECK(set.test.images.count == 297);
    CHECK(set.test.labels.values.size() == 297);
    CHECK(set.train.images.rows == 8);
    CHECK(set.train.images.columns == 8);
    const auto [least, most] =
        std::minmax_element(set.train.images.pixels.begin(), set.train.images.pixels.end());
    CHECK(*least == 0);
    CHECK(*most == 255);
    for (std::uint8_t digit = 0; digit < digit_classes; ++digit) {
        CHECK(std::count(set.train.labels.values.begin(), set.train.labels.values.end(), digit) > 100);
        CHECK(std::count(set.test.labels.values.begin(), set.test.labels.values.end(), digit) > 20);
    }
}

TEST_CASE("MNIST's names serve too") {
    const ScratchFolder folder;
    (void)folder.file("train-images.idx3-ubyte", images_bytes(5));
    (void)folder.file("train-labels.idx1-ubyte", labels_bytes(5));
    (void)folder.file("t10k-images-idx3-ubyte", images_bytes(3));
    (void)folder.file("t10k-labels-idx1-ubyte", labels_bytes(3));
    const DigitSet set = load_digit_set(folder.path());
    CHECK(set.train.images.count == 5);
    CHECK(set.test.images.count == 3);
}

TEST_CASE("a digit set with a fault") {
    const ScratchFolder folder;
    SUBCASE("no folder") {
        CHECK(message_of([&] { load_digit_set(folder.path() / "digits"); }) ==
              (folder.path() / "digits").string() +
                  ": is not a folder; expected one that holds the IDX files of a digit set");
    }
    SUBCASE("no files") {
        CHECK(set_error(folder) ==
              ": holds no train-images-idx3-ubyte; expected the four IDX files of a digit set");
    }
    SUBCASE("no test files") {
        write_set(folder);
        std::filesystem::remove(folder.path() / "test-images-idx3-ubyte");
        CHECK(set_error(folder) ==
              ": holds no test-images-idx3-ubyte (nor t10k-images-idx3-ubyte); expected the "
              "four IDX files of a digit set");
    }
    SUBCASE("still packed") {
        write_set(folder);
        std::filesystem::rename(folder.path() / "train-labels-idx1-ubyte",
                                folder.path() / "train-labels-idx1-ubyte.gz");
        CHECK(set_error(folder) == "/train-labels-idx1-ubyte.gz: is compressed; unpack it with gunzip");
    }
    SUBCASE("counts that differ") {
        write_set(folder);
        (void)folder.file("train-labels-idx1-ubyte", labels_bytes(4));
        CHECK(set_error(folder) ==
              "/train-images-idx3-ubyte: holds 5 images but train-labels-idx1-ubyte holds 4 "
              "labels; both must hold the same number");
    }
    SUBCASE("a label that is no digit") {
        write_set(folder);
        Bytes labels = labels_bytes(3);
        labels.back() = 11;
        (void)folder.file("test-labels-idx1-ubyte", labels);
        CHECK(set_error(folder) == "/test-labels-idx1-ubyte: label 2 is 11; expected 0 to 9");
    }
    SUBCASE("images of two sizes") {
        write_set(folder);
        (void)folder.file("test-images-idx3-ubyte", idx_bytes(0x803, {3, 4, 2}, 24));
        CHECK(set_error(folder) ==
              ": the training images are 2×2 but the test images are 4×2; both must be of one size");
        (void)folder.file("test-images-idx3-ubyte", idx_bytes(0x803, {3, 2, 4}, 24));
        CHECK(set_error(folder) ==
              ": the training images are 2×2 but the test images are 2×4; both must be of one size");
    }
    SUBCASE("a bad file") {
        write_set(folder);
        (void)folder.file("test-images-idx3-ubyte", {1, 2, 3, 4});
        CHECK(set_error(folder) ==
              "/test-images-idx3-ubyte: begins with 0x01020304, so it is no IDX file; expected "
              "an IDX file of images (magic number 0x00000803)");
    }
}

} // namespace examples_idx
