/// \file
/// What is done to the images: the published chain for random ones and photographs, a gentler one for digits.
#pragma once

#include <cstddef>
#include <cstdint>
#include <variant>

#include <augment/chain.hpp>
#include <augment/published.hpp>
#include <sluice/sluice.hpp>

namespace gpu_augment {

enum class ChainName : std::uint8_t {
    published,    ///< crop, enlarge, turn, blur, normalise
    digits,       ///< the same, so little that every digit can still be told
    plain_digits, ///< that with nothing random: the middle, as large and in the same range of numbers
};

using DigitChain = augment::Chain<augment::Crop, augment::Resize, augment::Rotate<augment::Bilinear>,
                                  augment::Blur<3>, augment::Contrast, augment::Normalize>;

/// The crop that is in the middle, whatever was drawn.
struct MiddleCrop : augment::Crop {
    SLUICE_HOST_DEVICE Prepared prepare(const augment::SampleParameters& /*drawn*/,
                                        augment::ImageShape in) const {
        return {(in.height - height) / 2, (in.width - width) / 2};
    }
};
using PlainDigitChain = augment::Chain<MiddleCrop, augment::Resize, augment::Normalize>;

/// A chain, and what is drawn for its samples.
struct ChosenChain {
    std::variant<augment::PublishedChain, DigitChain, PlainDigitChain> chain;
    augment::ParameterRanges ranges;
};

/// The chain for images of three planes of this size, which stay of this size. Throws `sluice::Error` for images that are
/// too small for it.
ChosenChain choose_chain(ChainName name, std::size_t height, std::size_t width);

} // namespace gpu_augment
