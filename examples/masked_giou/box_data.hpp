/// \file
/// Random boxes as the published experiment draws them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include <nn/losses/boxes/box.hpp>

namespace masked_giou {

using TargetBox = nn::Box<std::uint8_t>;

/// The true boxes of a batch, row by row.
struct BoxRows {
    std::vector<std::vector<TargetBox>> rows;

    [[nodiscard]] std::size_t boxes() const;
    [[nodiscard]] std::size_t longest() const;
};

/// ⌊|N(0, 3)|⌋ boxes a row, at most 255 and at most `width`; each with a corner uniform in 0 … 255 and sides
/// uniform in 1 … 255, clipped to the image. The same for the same numbers, row by row.
BoxRows published_boxes(std::size_t rows, std::size_t width, std::uint64_t seed);

/// Rows of which every one is filled to the same part of `width`, up to a box: as many boxes in all as
/// `fill * rows * width`, rounded. Boxes as above.
BoxRows boxes_by_fill(std::size_t rows, std::size_t width, double fill, std::uint64_t seed);

/// Predictions [rows, width] as a detector gives them that has learnt a little: where there is a true box,
/// that one with each corner moved by up to a quarter of its side, so that the two overlap; elsewhere a
/// corner and sides as above, but any numbers and not clipped. (Of boxes that miss each other the article's
/// formula makes numbers of any size.)
std::vector<nn::Box<float>> predictions_for(const BoxRows& boxes, std::size_t width, std::uint64_t seed);

} // namespace masked_giou
