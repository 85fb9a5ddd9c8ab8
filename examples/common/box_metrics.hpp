/// \file
/// How well boxes are found.
#pragma once

#include <array>
#include <cstdint>

#include <common/detection.hpp>

namespace examples {

/// A box with any corners: x1, y1, x2, y2, in pixels.
using BoxCorners = std::array<double, 4>;

/// Intersection over union of a found box and a true one. 0 where the found box is inverted or empty, or not
/// a number.
double intersection_over_union(const BoxCorners& found, const PixelBox& truth);

/// The mean of intersection over union over pairs.
class MeanIou {
public:
    void add(const BoxCorners& found, const PixelBox& truth) {
        sum_ += intersection_over_union(found, truth);
        ++count_;
    }
    /// Pairs so far.
    [[nodiscard]] std::int64_t count() const { return count_; }
    /// 0 without pairs.
    [[nodiscard]] double mean() const { return count_ == 0 ? 0.0 : sum_ / static_cast<double>(count_); }

private:
    double sum_ = 0;
    std::int64_t count_ = 0;
};

} // namespace examples
