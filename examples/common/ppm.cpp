#include <common/ppm.hpp>

#include <algorithm>
#include <cstdint>
#include <limits>
#include <span>
#include <string>
#include <system_error>

#include <common/bad_input.hpp>
#include <common/files.hpp>
#include <common/idx.hpp>
#include <common/text.hpp>

namespace examples {
namespace {

namespace fs = std::filesystem;

const std::string wanted = "a binary PPM file (P6)";
constexpr std::uintmax_t longest_header = 4096; // comments included

bool is_space(std::uint8_t byte) { return byte == ' ' || (byte >= '\t' && byte <= '\r'); }

/// Reads the header's numbers, one after another.
class Header {
public:
    Header(const fs::path& path, std::span<const std::uint8_t> bytes) : path_(path), bytes_(bytes) {}

    /// The next number: what separates it from what came before is skipped, comments included.
    std::size_t number(const char* what) {
        const std::size_t before = place_;
        while (place_ < bytes_.size() && (is_space(bytes_[place_]) || bytes_[place_] == '#')) {
            skip_comment();
            if (place_ < bytes_.size())
                ++place_;
        }
        const std::size_t first = place_;
        std::size_t number = 0;
        for (; place_ < bytes_.size() && bytes_[place_] >= '0' && bytes_[place_] <= '9'; ++place_)
            number = std::min(number * 10 + (bytes_[place_] - std::size_t{'0'}), most);
        if (place_ == first || first == before)
            throw BadInput(path_.string() + ": has no " + what + " in its header; expected " + wanted);
        return number;
    }

    /// Where the pixels begin: behind one byte of white space after the last number, or after a comment that follows the
    /// number at once.
    std::size_t end() {
        skip_comment();
        if (place_ == bytes_.size() || !is_space(bytes_[place_]))
            throw BadInput(path_.string() + ": its header does not end; expected " + wanted);
        return place_ + 1;
    }

private:
    /// Goes to the end of the line where a comment begins here.
    void skip_comment() {
        if (place_ == bytes_.size() || bytes_[place_] != '#')
            return;
        while (place_ < bytes_.size() && bytes_[place_] != '\n' && bytes_[place_] != '\r')
            ++place_;
    }

    static constexpr std::size_t most =
        std::numeric_limits<std::uint32_t>::max(); // far above what is believed

    const fs::path& path_;
    std::span<const std::uint8_t> bytes_;
    std::size_t place_ = 2; // behind the magic number
};

} // namespace

PlanarImage read_ppm(const fs::path& path) {
    const std::vector<std::uint8_t> start = read_bytes(path, longest_header, wanted);
    if (start.size() < 2 || start[0] != 'P' || start[1] != '6')
        throw BadInput(path.string() + ": does not begin with \"P6\"; expected " + wanted);
    Header header(path, start);
    PlanarImage image;
    image.width = header.number("width");
    image.height = header.number("height");
    const std::size_t greatest = header.number("greatest value");
    if (greatest != 255) {
        throw BadInput(path.string() + ": its greatest value is " + with_commas(greatest) + "; expected 255");
    }
    if (image.width == 0 || image.height == 0 || image.width > largest_image_side ||
        image.height > largest_image_side) {
        throw BadInput(path.string() + ": is of " + with_commas(image.width) + "×" +
                       with_commas(image.height) + " pixels; expected sides of 1 to " +
                       with_commas(largest_image_side));
    }
    const std::size_t begin = header.end();
    const std::size_t plane = image.height * image.width;
    const std::uintmax_t size = size_of_file(path, wanted);
    std::vector<std::uint8_t> bytes;
    if (size == begin + 3 * plane)
        bytes = read_bytes(path, size, wanted);
    if (bytes.size() != begin + 3 * plane) {
        throw BadInput(path.string() + ": holds " + counted(size, "byte") + "; expected " +
                       with_commas(begin + 3 * plane) + " for " + with_commas(image.width) + "×" +
                       with_commas(image.height) + " pixels");
    }
    image.planes.resize(3 * plane);
    for (std::size_t pixel = 0; pixel < plane; ++pixel) {
        for (std::size_t channel = 0; channel < 3; ++channel)
            image.planes[channel * plane + pixel] = bytes[begin + 3 * pixel + channel];
    }
    return image;
}

std::vector<PlanarImage> read_photographs(const fs::path& folder) {
    const std::string expected = "; expected a folder of photographs, binary PPM files (*.ppm)";
    std::error_code error;
    std::vector<fs::path> files;
    for (fs::directory_iterator entry(folder, error); !error && entry != fs::directory_iterator();
         entry.increment(error)) {
        if (entry->path().extension() == ".ppm")
            files.push_back(entry->path());
    }
    if (error)
        throw BadInput(folder.string() + ": cannot be read: " + error.message() + expected);
    if (files.empty())
        throw BadInput(folder.string() + ": holds no photograph" + expected);
    std::sort(files.begin(), files.end());
    std::vector<PlanarImage> images;
    images.reserve(files.size());
    for (const fs::path& file : files)
        images.push_back(read_ppm(file));
    return images;
}

} // namespace examples
