/// \file
/// What the detector trains on: handwritten digits, several or none on a canvas, with a box each.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include <common/detection.hpp>
#include <common/idx.hpp>
#include <masked_giou/options.hpp>
#include <nn/losses/boxes/box.hpp>

namespace masked_giou {

/// The sizes of a training.
struct TrainingPlan {
    std::vector<std::size_t> channels; ///< of the detector's convolutions
    std::size_t hidden = 0;            ///< features between its linear layers
    float learning_rate = 0.0f;        ///< at its height
    float rate_decay = 0.0f;           ///< fraction by which the rate has fallen, evenly, at the last step
    std::size_t batch = 0;             ///< canvases in a batch
    std::size_t steps = 0;             ///< timed steps
    std::size_t warmup = 0;            ///< steps before them

    /// The learning rate at step `step`, warm-up included. It rises over the first tenth of the steps: from
    /// first weights, full steps now and then make boxes so large that no gradient leads back.
    float rate_at(std::size_t step) const {
        const auto part = static_cast<float>(step + 1) / static_cast<float>(warmup + steps);
        return learning_rate * std::min(1.0f, 10.0f * part) * (1.0f - rate_decay * part);
    }
};

/// Gives canvases and their boxes by number, the same for the same number, to any thread.
class DetectionWorkload {
public:
    using Box = nn::Box<std::uint8_t>;

    /// Reads the IDX files of `options.data`; takes `steps` steps unless the options say otherwise. Throws
    /// `examples::BadInput`.
    DetectionWorkload(const Options& options, std::size_t steps);

    const TrainingPlan& plan() const { return plan_; }
    const examples::DetectionSpec& spec() const { return spec_; }
    std::size_t image_bytes() const { return examples::image_bytes(spec_); }

    /// Boxes that one canvas may have.
    static constexpr std::size_t most_boxes = 16;

    /// Composes canvas `index` of the training. Returns the part of `boxes` that its boxes were written to,
    /// from left to right: the order in which predictions are theirs.
    std::span<const Box> compose(std::size_t index, std::span<std::uint8_t> image,
                                 std::span<Box, most_boxes> boxes) const {
        return compose_from(digits_.train, training_epoch, index, image, boxes);
    }
    /// The same with digits that no training has seen.
    std::span<const Box> compose_held_out(std::size_t index, std::span<std::uint8_t> image,
                                          std::span<Box, most_boxes> boxes) const {
        return compose_from(digits_.test, held_out_epoch, index, image, boxes);
    }

private:
    // Two sets of samples that never meet.
    static constexpr std::uint32_t training_epoch = 0;
    static constexpr std::uint32_t held_out_epoch = 1;

    std::span<const Box> compose_from(const examples::IdxSplit& split, std::uint32_t epoch, std::size_t index,
                                      std::span<std::uint8_t> image, std::span<Box, most_boxes> boxes) const {
        std::array<examples::PixelBox, most_boxes> found{};
        const std::size_t count =
            examples::compose_detection(split, spec_, seed_, epoch, index, image, found);
        for (std::size_t i = 0; i < count; ++i)
            boxes[i] = {found[i].x1, found[i].y1, found[i].x2, found[i].y2};
        return boxes.first(count);
    }

    examples::DigitSet digits_;
    examples::DetectionSpec spec_;
    std::uint64_t seed_;
    TrainingPlan plan_;
};

} // namespace masked_giou
