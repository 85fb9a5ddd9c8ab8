#include <common/detection.hpp>

#include <algorithm>
#include <array>
#include <string>

#include <common/text.hpp>

namespace examples {
namespace {

using namespace canvas;
using sluice::CountedRandom;
using sluice::RandomKey;

constexpr std::size_t most_digits = 64;
constexpr int tries = 64;

struct Square {
    std::size_t top = 0;
    std::size_t left = 0;
    std::size_t side = 0;

    [[nodiscard]] bool overlaps(const Square& other) const {
        return left < other.left + other.side && other.left < left + side && top < other.top + other.side &&
               other.top < top + side;
    }
};

void require_consistent(const IdxSplit& split, const DetectionSpec& spec) {
    require_usable(split, spec.height, spec.width, spec.largest);
    if (spec.height > 255 || spec.width > 255) {
        reject("it is " + std::to_string(spec.height) + "×" + std::to_string(spec.width) +
               "; expected sides of at most 255, so that boxes fit into bytes");
    }
    if (spec.smallest == 0 || spec.smallest > spec.largest) {
        reject("digits of side " + std::to_string(spec.smallest) + " to " + std::to_string(spec.largest) +
               " were asked for; expected the first to be at least 1, and the second at least the first");
    }
    if (spec.most > most_digits) {
        reject(std::to_string(spec.most) + " digits were asked for; expected 0 to " +
               std::to_string(most_digits));
    }
}

/// Draws digit `index` in `square`, and gives the box of its ink.
PixelBox draw(const IdxSplit& split, std::size_t index, const Square& square, std::uint32_t gain,
              std::span<std::uint8_t> image, std::size_t width) {
    const IdxImages& images = split.images;
    ScaledDigit digit(images.image(index), images.rows, images.columns, square.side);
    std::size_t top = square.side;
    std::size_t left = square.side;
    std::size_t bottom = 0;
    std::size_t right = 0;
    for (std::size_t y = 0; y < square.side; ++y) {
        const std::span<const std::uint8_t> greys = digit.row(y);
        for (std::size_t x = 0; x < square.side; ++x) {
            const std::uint8_t grey = greys[x];
            std::uint8_t& pixel = image[(square.top + y) * width + square.left + x];
            pixel = static_cast<std::uint8_t>(std::min<std::uint32_t>(255u, pixel + ((grey * gain) >> 8)));
            if (grey < ink_threshold)
                continue;
            top = std::min(top, y);
            left = std::min(left, x);
            bottom = std::max(bottom, y + 1);
            right = std::max(right, x + 1);
        }
    }
    if (bottom == 0) {
        top = left = 0;
        bottom = right = square.side;
    }
    return {static_cast<std::uint8_t>(square.left + left), static_cast<std::uint8_t>(square.top + top),
            static_cast<std::uint8_t>(square.left + right), static_cast<std::uint8_t>(square.top + bottom)};
}

} // namespace

std::size_t compose_detection(const IdxSplit& split, const DetectionSpec& spec, std::uint64_t seed,
                              std::uint32_t epoch, std::uint64_t sample, std::span<std::uint8_t> image,
                              std::span<PixelBox> boxes) {
    require_consistent(split, spec);
    require_bytes(image.size(), image_bytes(spec), "image");
    if (boxes.size() < spec.most) {
        reject("there is room for " + counted(boxes.size(), "box") + "; expected at least " +
               std::to_string(spec.most));
    }

    draw_noise(CountedRandom{RandomKey{seed, epoch, sample, noise_operation}}, image);
    CountedRandom random{RandomKey{seed, epoch, sample, detection_operation}};
    const std::size_t wanted = below(random, spec.most + 1);
    std::array<Square, most_digits> taken{};
    std::size_t count = 0;
    for (std::size_t i = 0; i < wanted; ++i) {
        const std::size_t index = below(random, split.images.count);
        const std::uint32_t gain = 192 + random.below(65);
        Square square;
        square.side = spec.smallest + below(random, spec.largest - spec.smallest + 1);
        const auto is_free = [&] {
            return std::none_of(taken.begin(), taken.begin() + static_cast<std::ptrdiff_t>(count),
                                [&](const Square& other) { return square.overlaps(other); });
        };
        bool placed = false;
        for (int attempt = 0; attempt < tries && !placed; ++attempt) {
            square.top = below(random, spec.height - square.side + 1);
            square.left = below(random, spec.width - square.side + 1);
            placed = is_free();
        }
        if (!placed)
            continue;
        taken[count] = square;
        boxes[count++] = draw(split, index, square, gain, image, spec.width);
    }
    std::sort(boxes.begin(), boxes.begin() + static_cast<std::ptrdiff_t>(count),
              [](const PixelBox& a, const PixelBox& b) { return a.x1 != b.x1 ? a.x1 < b.x1 : a.y1 < b.y1; });
    return count;
}

} // namespace examples
