/// \file
/// What the experiment trains on, and how large its network is.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include <augment/parameters.hpp>
#include <common/digits.hpp>
#include <common/idx.hpp>
#include <gpu_augment/options.hpp>

namespace gpu_augment {

/// Images in a batch, and how many batches.
struct Amount {
    std::size_t batch = 0;
    std::size_t steps = 0;  ///< timed
    std::size_t warmup = 0; ///< before them
};

/// The sizes of a run.
struct Plan {
    std::size_t height = 0;            ///< pixels of an image, before and after augmentation
    std::size_t width = 0;             ///< pixels of an image
    std::vector<std::size_t> channels; ///< of the encoder's layers, from the 1×1 convolution on
    std::size_t classes = examples::digit_classes;
    float learning_rate = 0.0f;     ///< at the first step
    bool rate_falls = false;        ///< later on, towards 0
    float first_weight_gain = 1.0f; ///< of the first weights over PyTorch's
    Amount amount;

    /// The learning rate at step `step`, warm-up included. Where it falls it is a staircase, with few steps because no
    /// work may be under way when it changes.
    float rate_at(std::size_t step) const;

    std::size_t image_bytes() const { return 3 * height * width; }
    std::size_t steps() const { return amount.warmup + amount.steps; }
};

/// One batch in the caller's memory: images of three planes, their labels, and which samples they are, of which epoch,
/// which augmentation draws its parameters from.
struct BatchView {
    std::span<std::uint8_t> images;
    std::span<std::uint8_t> labels;
    std::span<augment::SampleId> samples;
};

/// Gives batches by number, the same for the same number, to any thread.
class Workload {
public:
    virtual ~Workload() = default;

    virtual const Plan& plan() const = 0;

    /// Fills batch `index`.
    virtual void fill(std::size_t index, BatchView out) const = 0;
};

/// The published workload: random images of 3×256×256 and random labels of 10 classes, eight halvings, learning rate
/// 1e-3. A few batches are drawn beforehand and come round again, so that drawing them costs nothing while the steps
/// are timed. A side of less than 256 has fewer halvings.
class SyntheticWorkload : public Workload {
public:
    SyntheticWorkload(const Options& options, const Amount& amount);

    const Plan& plan() const override { return plan_; }
    void fill(std::size_t index, BatchView out) const override;

private:
    static constexpr std::size_t pool = 4;

    Plan plan_;
    std::vector<std::uint8_t> images_;
    std::vector<std::uint8_t> labels_;
};

/// Handwritten digits, each once on a canvas of its own: a place, a tint and noise that stay as they are, so that only
/// augmentation shows a digit in another way. An epoch shows each once, in an order of its own.
class DigitWorkload : public Workload {
public:
    /// Reads the IDX files of `options.data`. Throws `examples::BadInput`.
    DigitWorkload(const Options& options, const Amount& amount);

    const Plan& plan() const override { return plan_; }
    void fill(std::size_t index, BatchView out) const override;

    /// Digits that no training has seen.
    std::size_t held_out() const { return held_out_.labels.size(); }
    /// The canvas of one of them.
    std::span<const std::uint8_t> held_out_image(std::size_t index) const {
        return std::span(held_out_.images).subspan(index * plan_.image_bytes(), plan_.image_bytes());
    }
    std::uint8_t held_out_label(std::size_t index) const { return held_out_.labels[index]; }

private:
    struct Canvases {
        std::vector<std::uint8_t> images;
        std::vector<std::uint8_t> labels;
    };
    Canvases compose(const examples::IdxSplit& split, std::uint32_t epoch) const;

    std::uint64_t seed_;
    Plan plan_;
    Canvases training_;
    Canvases held_out_;
};

} // namespace gpu_augment
