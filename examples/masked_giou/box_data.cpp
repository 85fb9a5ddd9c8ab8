#include <masked_giou/box_data.hpp>

#include <algorithm>
#include <cmath>
#include <numbers>

#include <sluice/random/philox.hpp>

namespace masked_giou {
namespace {

// What a run of random numbers is for.
enum Purpose : std::uint16_t { lengths_purpose = 301, boxes_purpose = 302, predictions_purpose = 303 };

/// Of mean 0 and variance 1, after G. Box and M. Muller, 1958.
double normal(sluice::CountedRandom& random) {
    const double u = 1.0 - static_cast<double>(random.uniform()); // not 0
    const double v = static_cast<double>(random.uniform());
    return std::sqrt(-2.0 * std::log(u)) * std::cos(2.0 * std::numbers::pi * v);
}

TargetBox random_box(sluice::CountedRandom& random) {
    const std::uint32_t x1 = random.below(256);
    const std::uint32_t y1 = random.below(256);
    const auto end = [&](std::uint32_t begin) {
        return static_cast<std::uint8_t>(std::min(begin + 1 + random.below(255), 255u));
    };
    const std::uint8_t x2 = end(x1);
    const std::uint8_t y2 = end(y1);
    return {static_cast<std::uint8_t>(x1), static_cast<std::uint8_t>(y1), x2, y2};
}

/// The box with each corner moved by up to a quarter of its side.
nn::Box<float> moved(const TargetBox& box, sluice::CountedRandom& random) {
    const float width = static_cast<float>(box.x2 - box.x1);
    const float height = static_cast<float>(box.y2 - box.y1);
    const auto by = [&](float side) { return side * (0.5f * random.uniform() - 0.25f); };
    const float x1 = static_cast<float>(box.x1) + by(width);
    const float y1 = static_cast<float>(box.y1) + by(height);
    const float x2 = static_cast<float>(box.x2) + by(width);
    const float y2 = static_cast<float>(box.y2) + by(height);
    return {x1, y1, x2, y2};
}

nn::Box<float> unbounded_box(sluice::CountedRandom& random) {
    const float x1 = 256.0f * random.uniform();
    const float y1 = 256.0f * random.uniform();
    const float x2 = x1 + 1.0f + 254.0f * random.uniform();
    const float y2 = y1 + 1.0f + 254.0f * random.uniform();
    return {x1, y1, x2, y2};
}

std::vector<TargetBox> random_row(std::size_t length, std::size_t row, std::uint64_t seed) {
    sluice::CountedRandom random({.seed = seed, .sample = row, .operation = boxes_purpose});
    std::vector<TargetBox> boxes(length);
    std::generate(boxes.begin(), boxes.end(), [&] { return random_box(random); });
    return boxes;
}

} // namespace

std::size_t BoxRows::boxes() const {
    std::size_t count = 0;
    for (const auto& row : rows)
        count += row.size();
    return count;
}

std::size_t BoxRows::longest() const {
    std::size_t length = 0;
    for (const auto& row : rows)
        length = std::max(length, row.size());
    return length;
}

BoxRows published_boxes(std::size_t rows, std::size_t width, std::uint64_t seed) {
    BoxRows result;
    for (std::size_t row = 0; row < rows; ++row) {
        sluice::CountedRandom random({.seed = seed, .sample = row, .operation = lengths_purpose});
        const double drawn = std::floor(std::abs(3.0 * normal(random)));
        const auto length = static_cast<std::size_t>(std::min(drawn, 255.0));
        result.rows.push_back(random_row(std::min(length, width), row, seed));
    }
    return result;
}

BoxRows boxes_by_fill(std::size_t rows, std::size_t width, double fill, std::uint64_t seed) {
    BoxRows result;
    const auto total = static_cast<std::size_t>(std::llround(fill * static_cast<double>(rows * width)));
    for (std::size_t row = 0; row < rows; ++row) {
        // Spread evenly: what the rows before have left over comes to this one.
        const std::size_t length = total * (row + 1) / rows - total * row / rows;
        result.rows.push_back(random_row(length, row, seed));
    }
    return result;
}

std::vector<nn::Box<float>> predictions_for(const BoxRows& boxes, std::size_t width, std::uint64_t seed) {
    std::vector<nn::Box<float>> predictions;
    predictions.reserve(boxes.rows.size() * width);
    for (std::size_t row = 0; row < boxes.rows.size(); ++row) {
        sluice::CountedRandom random({.seed = seed, .sample = row, .operation = predictions_purpose});
        const std::vector<TargetBox>& truth = boxes.rows[row];
        for (std::size_t position = 0; position < width; ++position) {
            predictions.push_back(position < truth.size() ? moved(truth[position], random)
                                                          : unbounded_box(random));
        }
    }
    return predictions;
}

} // namespace masked_giou
