#include <common/digits.hpp>

#include <algorithm>
#include <array>
#include <numeric>
#include <stdexcept>
#include <string>

#include <common/text.hpp>

namespace examples {
namespace canvas {

void reject(const std::string& what) { throw std::invalid_argument("digit canvas: " + what); }

void require_bytes(std::size_t found, std::size_t expected, const char* what) {
    if (found == expected)
        return;
    reject(std::string{"the "} + what + " span holds " + counted(found, "byte") + "; expected " +
           with_commas(expected));
}

void require_usable(const IdxSplit& split, std::size_t height, std::size_t width, std::size_t digit) {
    if (height == 0 || width == 0 || height > largest_canvas_side || width > largest_canvas_side) {
        reject("it is " + std::to_string(height) + "×" + std::to_string(width) +
               "; expected sides of 1 to 512");
    }
    if (digit == 0 || digit > std::min(height, width)) {
        reject("a digit of side " + std::to_string(digit) + " does not fit; expected 1 to the canvas's side");
    }
    if (split.images.count == 0 || split.images.count != split.labels.values.size()) {
        reject("the split holds " + counted(split.images.count, "image") + " and " +
               counted(split.labels.values.size(), "label") + "; expected as many of both, at least one");
    }
}

void draw_noise(sluice::CountedRandom random, std::span<std::uint8_t> image) {
    for (std::size_t begin = 0; begin < image.size(); begin += 4) {
        const std::uint32_t bits = random.next_u32();
        const std::size_t end = std::min(begin + 4, image.size());
        for (std::size_t i = begin; i < end; ++i)
            image[i] = static_cast<std::uint8_t>(((bits >> 8 * (i - begin) & 0xFFu) * background_noise) >> 8);
    }
}

std::size_t shuffled(std::uint64_t seed, std::uint32_t epoch, std::uint64_t sample, std::size_t count) {
    const std::uint64_t lap = sample / count;
    sluice::CountedRandom random{sluice::RandomKey{seed, epoch, lap, order_operation}};
    const std::uint64_t offset = below(random, count);
    std::uint64_t stride = 1 + below(random, count);
    while (std::gcd(stride, static_cast<std::uint64_t>(count)) != 1)
        ++stride;
    return static_cast<std::size_t>((offset + stride * (sample % count)) % count);
}

} // namespace canvas

namespace {

using namespace canvas;
using sluice::CountedRandom;
using sluice::RandomKey;

struct Canvas {
    const CanvasSpec& spec;
    std::span<std::uint8_t> image;
    std::span<std::uint8_t> labels; // empty where they are not asked for
};

/// Draws digit `index` at a random place, in a random colour, within the rectangle that begins at (top,
/// left).
void draw_digit(const Canvas& canvas, const IdxSplit& split, std::size_t index, CountedRandom& random,
                std::size_t top, std::size_t left, std::size_t height, std::size_t width) {
    const std::size_t side = canvas.spec.digit;
    top += below(random, height - side + 1);
    left += below(random, width - side + 1);
    const std::uint32_t gain = 192 + random.below(65);
    std::array<std::uint32_t, 3> strength{};
    for (std::uint32_t& channel : strength)
        channel = gain * (128 + random.below(129));

    const IdxImages& images = split.images;
    ScaledDigit digit(images.image(index), images.rows, images.columns, side);
    const std::size_t plane = canvas.spec.height * canvas.spec.width;
    for (std::size_t y = 0; y < side; ++y) {
        const std::span<const std::uint8_t> greys = digit.row(y);
        const std::size_t begin = (top + y) * canvas.spec.width + left;
        for (std::size_t channel = 0; channel < 3; ++channel) {
            std::uint8_t* const pixels = canvas.image.data() + channel * plane + begin;
            const std::uint32_t factor = strength[channel];
            for (std::size_t x = 0; x < side; ++x) {
                pixels[x] = static_cast<std::uint8_t>(
                    std::min<std::uint32_t>(255u, pixels[x] + ((greys[x] * factor) >> 16)));
            }
        }
        for (std::size_t x = 0; x < side && !canvas.labels.empty(); ++x) {
            if (greys[x] >= ink_threshold)
                canvas.labels[begin + x] = split.labels.values[index];
        }
    }
}

} // namespace

void compose_segmentation(const IdxSplit& split, const CanvasSpec& spec, std::uint64_t seed,
                          std::uint32_t epoch, std::uint64_t sample, std::span<std::uint8_t> image,
                          std::span<std::uint8_t> labels) {
    require_usable(split, spec.height, spec.width, spec.digit);
    if (spec.cell < spec.digit || spec.height % spec.cell != 0 || spec.width % spec.cell != 0) {
        reject(
            "cells of side " + std::to_string(spec.cell) +
            " do not serve; expected at least the digit's side, and a divisor of both sides of the canvas");
    }
    require_bytes(image.size(), image_bytes(spec), "image");
    require_bytes(labels.size(), label_bytes(spec), "label");

    draw_noise(CountedRandom{RandomKey{seed, epoch, sample, noise_operation}}, image);
    std::fill(labels.begin(), labels.end(), background_label);
    CountedRandom random{RandomKey{seed, epoch, sample, layout_operation}};
    const std::size_t cells_across = spec.width / spec.cell;
    const std::size_t cells = spec.height / spec.cell * cells_across;
    const std::size_t never_empty = below(random, cells);
    for (std::size_t cell = 0; cell < cells; ++cell) {
        const bool present = random.uniform() < spec.presence;
        if (!present && cell != never_empty)
            continue;
        const std::size_t index = below(random, split.images.count);
        draw_digit({spec, image, labels}, split, index, random, cell / cells_across * spec.cell,
                   cell % cells_across * spec.cell, spec.cell, spec.cell);
    }
}

std::uint8_t compose_classification(const IdxSplit& split, const CanvasSpec& spec, std::uint64_t seed,
                                    std::uint32_t epoch, std::uint64_t sample,
                                    std::span<std::uint8_t> image) {
    require_usable(split, spec.height, spec.width, spec.digit);
    require_bytes(image.size(), image_bytes(spec), "image");
    draw_noise(CountedRandom{RandomKey{seed, epoch, sample, noise_operation}}, image);
    CountedRandom random{RandomKey{seed, epoch, sample, layout_operation}};
    const std::size_t index = shuffled(seed, epoch, sample, split.images.count);
    draw_digit({spec, image, {}}, split, index, random, 0, 0, spec.height, spec.width);
    return split.labels.values[index];
}

} // namespace examples
