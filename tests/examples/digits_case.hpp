// What the tests of digit canvases share: digits to draw, and canvases drawn.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include <common/digits.hpp>

namespace sluice_test::digits_case {

using namespace examples;

using Bytes = std::vector<std::uint8_t>;

struct Sample {
    Bytes image;
    Bytes labels;
    bool operator==(const Sample&) const = default;
};

inline const DigitSet& digits() {
    static const DigitSet set = load_digit_set(SLUICE_DIGITS_DIR);
    return set;
}

inline Sample segmentation(const CanvasSpec& spec, std::uint64_t seed, std::uint32_t epoch,
                           std::uint64_t sample) {
    // What was in the slot before must not show.
    Sample made{Bytes(image_bytes(spec), 0xAA), Bytes(label_bytes(spec), 0xAA)};
    compose_segmentation(digits().train, spec, seed, epoch, sample, made.image, made.labels);
    return made;
}

/// One image of one class, every pixel as given.
inline IdxSplit uniform_split(std::uint8_t grey, std::uint8_t label, std::size_t side = 8) {
    return {{1, side, side, Bytes(side * side, grey)}, {{label}}};
}

} // namespace sluice_test::digits_case
