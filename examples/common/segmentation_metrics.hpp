/// \file
/// How good a map of classes is.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace examples {

/// Counts pixels by their label and their prediction.
class ConfusionMatrix {
public:
    /// For classes 0 to classes-1.
    /// \throws std::invalid_argument when `classes` is 0 or above 256
    explicit ConfusionMatrix(std::size_t classes);

    /// Adds pixels; both spans hold the same number.
    /// \throws std::invalid_argument when they do not, or a class is out of range; nothing is added then
    void add(std::span<const std::uint8_t> labels, std::span<const std::uint8_t> predictions);

    [[nodiscard]] std::size_t classes() const { return classes_; }

    /// Pixels with this label and this prediction.
    [[nodiscard]] std::uint64_t count(std::size_t label, std::size_t prediction) const {
        return counts_[label * classes_ + prediction];
    }

private:
    std::size_t classes_;
    std::vector<std::uint64_t> counts_;
};

/// Of the pixels whose label is not `background`, the fraction whose prediction is their label; 0 without
/// such pixels.
double ink_pixel_accuracy(const ConfusionMatrix& matrix, std::size_t background);

/// The mean of intersection over union over the classes present, background among them. A class is present
/// when at least one pixel has it as its label; its intersection is the pixels with it as label and
/// prediction, its union those with it as either. A class that is only predicted lowers the others' values,
/// not the number of classes. 0 without pixels.
double mean_iou(const ConfusionMatrix& matrix);

} // namespace examples
