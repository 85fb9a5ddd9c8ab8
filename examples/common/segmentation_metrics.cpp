#include <common/segmentation_metrics.hpp>

#include <algorithm>
#include <stdexcept>
#include <string>

#include <common/text.hpp>

namespace examples {

ConfusionMatrix::ConfusionMatrix(std::size_t classes) : classes_{classes} {
    if (classes == 0 || classes > 256) {
        throw std::invalid_argument("a confusion matrix of " + counted(classes, "class") +
                                    " was asked for; expected 1 to 256");
    }
    counts_.resize(classes * classes);
}

void ConfusionMatrix::add(std::span<const std::uint8_t> labels, std::span<const std::uint8_t> predictions) {
    if (labels.size() != predictions.size()) {
        throw std::invalid_argument("a confusion matrix was given " + counted(labels.size(), "label") +
                                    " and " + counted(predictions.size(), "prediction") +
                                    "; expected as many of both");
    }
    const auto out_of_range = [this](std::uint8_t value) { return value >= classes_; };
    if (std::any_of(labels.begin(), labels.end(), out_of_range) ||
        std::any_of(predictions.begin(), predictions.end(), out_of_range)) {
        throw std::invalid_argument("a confusion matrix of " + counted(classes_, "class") +
                                    " was given a class beyond them");
    }
    for (std::size_t i = 0; i < labels.size(); ++i)
        ++counts_[labels[i] * classes_ + predictions[i]];
}

double ink_pixel_accuracy(const ConfusionMatrix& matrix, std::size_t background) {
    std::uint64_t ink = 0;
    std::uint64_t right = 0;
    for (std::size_t label = 0; label < matrix.classes(); ++label) {
        if (label == background)
            continue;
        right += matrix.count(label, label);
        for (std::size_t guess = 0; guess < matrix.classes(); ++guess)
            ink += matrix.count(label, guess);
    }
    return ink == 0 ? 0.0 : static_cast<double>(right) / static_cast<double>(ink);
}

double mean_iou(const ConfusionMatrix& matrix) {
    double sum = 0;
    int present = 0;
    for (std::size_t own = 0; own < matrix.classes(); ++own) {
        std::uint64_t labelled = 0;
        std::uint64_t predicted = 0;
        for (std::size_t other = 0; other < matrix.classes(); ++other) {
            labelled += matrix.count(own, other);
            predicted += matrix.count(other, own);
        }
        if (labelled == 0)
            continue;
        const std::uint64_t both = matrix.count(own, own);
        sum += static_cast<double>(both) / static_cast<double>(labelled + predicted - both);
        ++present;
    }
    return present == 0 ? 0.0 : sum / present;
}

} // namespace examples
