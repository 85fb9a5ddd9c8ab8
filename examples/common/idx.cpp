#include <common/idx.hpp>

#include <array>
#include <initializer_list>
#include <limits>
#include <optional>
#include <system_error>
#include <utility>

#include <common/bad_input.hpp>
#include <common/files.hpp>
#include <common/text.hpp>

namespace examples {
namespace {

namespace fs = std::filesystem;

constexpr std::uint8_t unsigned_bytes = 0x08;
constexpr std::uint8_t integers = 0x0C; // of 32 bits

struct Kind {
    std::uint8_t dimensions;
    bool may_hold_integers; // instead of bytes
    const char* what;
    const char* wanted;
};
constexpr Kind images_kind{3, false, "images", "an IDX file of images (magic number 0x00000803)"};
constexpr Kind labels_kind{1, true, "labels",
                           "an IDX file of labels (magic number 0x00000801 or 0x00000c01)"};

std::string element_name(std::uint8_t type) {
    switch (type) {
    case 0x08:
        return "unsigned bytes";
    case 0x09:
        return "signed bytes";
    case 0x0B:
        return "16-bit integers";
    case 0x0C:
        return "32-bit integers";
    case 0x0D:
        return "32-bit floats";
    case 0x0E:
        return "64-bit floats";
    default:
        return {};
    }
}

std::string in_hexadecimal(std::span<const std::uint8_t> bytes) {
    std::string text = "0x";
    for (const std::uint8_t byte : bytes) {
        text += "0123456789abcdef"[byte >> 4];
        text += "0123456789abcdef"[byte & 15];
    }
    return text;
}

void check_magic(const fs::path& path, std::span<const std::uint8_t> header, const Kind& kind) {
    const std::string name = path.string() + ": ";
    if (is_gzip(header))
        throw BadInput(name + "is compressed; unpack it with gunzip");
    if (header.size() < 4) {
        throw BadInput(name + "holds " + counted(header.size(), "byte") + ", too few for " + kind.wanted);
    }
    const std::string found = name + "begins with " + in_hexadecimal(header.first(4));
    if (header[0] != 0 || header[1] != 0 || element_name(header[2]).empty()) {
        throw BadInput(found + ", so it is no IDX file; expected " + kind.wanted);
    }
    if (header[2] != unsigned_bytes && !(header[2] == integers && kind.may_hold_integers)) {
        throw BadInput(found + ", so it holds " + element_name(header[2]) + "; expected unsigned bytes" +
                       (kind.may_hold_integers ? " or 32-bit integers" : ""));
    }
    if (header[3] == kind.dimensions)
        return;
    std::string instead =
        ", so it has " + std::to_string(header[3]) + (header[3] == 1 ? " dimension" : " dimensions");
    if (header[3] == images_kind.dimensions)
        instead = ", so it holds images";
    if (header[3] == labels_kind.dimensions)
        instead = ", so it holds labels";
    throw BadInput(found + instead + "; expected " + kind.wanted);
}

std::uint32_t big_endian(std::span<const std::uint8_t> bytes) {
    return std::uint32_t{bytes[0]} << 24 | std::uint32_t{bytes[1]} << 16 | std::uint32_t{bytes[2]} << 8 |
           std::uint32_t{bytes[3]};
}

/// a × b, or nothing where it does not fit in 64 bits.
std::optional<std::uint64_t> product(std::uint64_t a, std::uint64_t b) {
    if (b != 0 && a > std::numeric_limits<std::uint64_t>::max() / b)
        return std::nullopt;
    return a * b;
}

struct Content {
    std::array<std::uint32_t, 3> sizes{1, 1, 1};
    std::uint8_t type = unsigned_bytes;
    std::vector<std::uint8_t> elements; // as they stand in the file
};

std::string described(const Content& content, const Kind& kind) {
    std::string text = counted(content.sizes[0], kind.dimensions == 3 ? "image" : "label");
    if (kind.dimensions == 3) {
        text += " of " + with_commas(content.sizes[1]) + "×" + with_commas(content.sizes[2]);
    }
    return text;
}

/// The header is believed only as far as the file's own size bears it out, so that a bad one costs no memory.
Content read_content(const fs::path& path, const Kind& kind) {
    const std::uintmax_t found = size_of_file(path, kind.wanted);
    const std::size_t header_bytes = 4 + 4 * std::size_t{kind.dimensions};
    const std::vector<std::uint8_t> header = read_bytes(path, header_bytes, kind.wanted);
    check_magic(path, header, kind);
    const std::string name = path.string() + ": ";
    if (header.size() < header_bytes) {
        throw BadInput(name + "ends within its header: holds " + with_commas(header.size()) +
                       " of at least " + counted(header_bytes, "byte"));
    }
    Content content;
    content.type = header[2];
    const std::uint64_t element_bytes = content.type == integers ? 4 : 1;
    for (std::size_t i = 0; i < kind.dimensions; ++i) {
        content.sizes[i] = big_endian(std::span{header}.subspan(4 + 4 * i, 4));
    }
    const std::string announced = described(content, kind);
    if (content.sizes[0] == 0)
        throw BadInput(name + "announces " + announced + "; expected at least one");
    for (std::size_t i = 1; i < kind.dimensions; ++i) {
        if (content.sizes[i] == 0 || content.sizes[i] > largest_image_side) {
            throw BadInput(name + "announces " + announced + "; expected sides of 1 to " +
                           with_commas(largest_image_side) + " pixels");
        }
    }
    // Two sides of at most 4,096 and a 32-bit count: 2^56, but the check does not lean on those limits.
    const std::optional<std::uint64_t> area = product(content.sizes[1], content.sizes[2]);
    const std::optional<std::uint64_t> count = area ? product(content.sizes[0], *area) : std::nullopt;
    const std::optional<std::uint64_t> bytes = count ? product(*count, element_bytes) : std::nullopt;
    if (!bytes || *bytes > std::numeric_limits<std::uint64_t>::max() - header_bytes) {
        throw BadInput(name + "announces " + announced + ", more than a file can hold");
    }
    const std::uint64_t expected = header_bytes + *bytes;
    if (found < expected) {
        throw BadInput(name + "is cut short: holds " + counted(found, "byte") +
                       ", but its header announces " + announced + ", which take " + with_commas(expected));
    }
    if (found > expected) {
        throw BadInput(name + "has " + counted(found - expected, "byte") + " too many: holds " +
                       with_commas(found) + ", but its header announces " + announced + ", which take " +
                       with_commas(expected));
    }
    content.elements = read_bytes(path, expected, kind.wanted);
    if (content.elements.size() != expected)
        throw BadInput(name + "changed while it was read");
    content.elements.erase(content.elements.begin(),
                           content.elements.begin() + static_cast<std::ptrdiff_t>(header_bytes));
    return content;
}

/// Big-endian integers as the bytes that they fit in.
std::vector<std::uint8_t> bytes_of_integers(const fs::path& path, std::span<const std::uint8_t> elements) {
    std::vector<std::uint8_t> labels(elements.size() / 4);
    for (std::size_t i = 0; i < labels.size(); ++i) {
        const auto label = static_cast<std::int32_t>(big_endian(elements.subspan(4 * i, 4)));
        if (label < 0 || label > std::numeric_limits<std::uint8_t>::max()) {
            throw BadInput(path.string() + ": label " + with_commas(i) + " is " + std::to_string(label) +
                           "; expected 0 to 255");
        }
        labels[i] = static_cast<std::uint8_t>(label);
    }
    return labels;
}

std::string spelled(const std::string& split, const Kind& kind, char separator) {
    return split + '-' + kind.what + separator + "idx" + std::to_string(kind.dimensions) + "-ubyte";
}

/// The first of the accepted names that is in `folder`.
fs::path find_file(const fs::path& folder, std::initializer_list<std::string> splits, const Kind& kind) {
    std::error_code ignored;
    for (const std::string& split : splits) {
        for (const char separator : {'-', '.'}) {
            const fs::path path = folder / spelled(split, kind, separator);
            if (fs::exists(path, ignored))
                return path;
        }
    }
    for (const std::string& split : splits) {
        for (const char separator : {'-', '.'}) {
            const fs::path packed = folder / (spelled(split, kind, separator) + ".gz");
            if (fs::exists(packed, ignored))
                throw BadInput(packed.string() + ": is compressed; unpack it with gunzip");
        }
    }
    std::string message = folder.string() + ": holds no " + spelled(*splits.begin(), kind, '-');
    if (splits.size() > 1)
        message += " (nor " + spelled(*(splits.begin() + 1), kind, '-') + ")";
    throw BadInput(message + "; expected the four IDX files of a digit set");
}

IdxSplit load_split(const fs::path& images_path, const fs::path& labels_path) {
    IdxSplit split{read_idx_images(images_path), read_idx_labels(labels_path)};
    const std::vector<std::uint8_t>& labels = split.labels.values;
    if (split.images.count != labels.size()) {
        throw BadInput(images_path.string() + ": holds " + counted(split.images.count, "image") + " but " +
                       labels_path.filename().string() + " holds " + counted(labels.size(), "label") +
                       "; both must hold the same number");
    }
    for (std::size_t i = 0; i < labels.size(); ++i) {
        if (labels[i] >= digit_classes) {
            throw BadInput(labels_path.string() + ": label " + with_commas(i) + " is " +
                           std::to_string(labels[i]) + "; expected 0 to 9");
        }
    }
    return split;
}

std::string size_text(const IdxImages& images) {
    return std::to_string(images.rows) + "×" + std::to_string(images.columns);
}

} // namespace

IdxImages read_idx_images(const fs::path& path) {
    Content content = read_content(path, images_kind);
    return {content.sizes[0], content.sizes[1], content.sizes[2], std::move(content.elements)};
}

IdxLabels read_idx_labels(const fs::path& path) {
    Content content = read_content(path, labels_kind);
    if (content.type == integers)
        return {bytes_of_integers(path, content.elements)};
    return {std::move(content.elements)};
}

DigitSet load_digit_set(const fs::path& folder) {
    std::error_code ignored;
    if (!fs::is_directory(folder, ignored)) {
        throw BadInput(folder.string() +
                       ": is not a folder; expected one that holds the IDX files of a digit set");
    }
    const fs::path train_images = find_file(folder, {"train"}, images_kind);
    const fs::path train_labels = find_file(folder, {"train"}, labels_kind);
    const fs::path test_images = find_file(folder, {"test", "t10k"}, images_kind);
    const bool as_mnist = test_images.filename().string().starts_with("t10k");
    DigitSet set;
    set.train = load_split(train_images, train_labels);
    set.test = load_split(test_images, find_file(folder, {as_mnist ? "t10k" : "test"}, labels_kind));
    if (set.train.images.rows != set.test.images.rows ||
        set.train.images.columns != set.test.images.columns) {
        throw BadInput(folder.string() + ": the training images are " + size_text(set.train.images) +
                       " but the test images are " + size_text(set.test.images) +
                       "; both must be of one size");
    }
    return set;
}

} // namespace examples
