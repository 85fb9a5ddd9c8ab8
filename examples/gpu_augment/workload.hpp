/// \file
/// What the experiment trains on, and how large its network is.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include <augment/parameters.hpp>
#include <common/digits.hpp>
#include <common/idx.hpp>
#include <gpu_augment/options.hpp>
#include <sluice/random/philox.hpp>

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

// ---------------------------------------------------------------------------------------------------------------

namespace detail {

// What a run of random numbers is for.
enum Purpose : std::uint16_t { images_purpose = 201, labels_purpose = 202 };

// Parts of a training with a rate each, and in how many of them, the last ones, it falls to 0.
inline constexpr std::size_t rate_stages = 20;
inline constexpr std::size_t falling_stages = 14;

// The epochs of the composed digits: two sets of samples that never meet.
inline constexpr std::uint32_t training_epoch = 0;
inline constexpr std::uint32_t held_out_epoch = 1;

template <class T>
void copy_part(const std::vector<T>& from, std::size_t part, std::span<T> to) {
    std::copy_n(from.begin() + static_cast<std::ptrdiff_t>(part * to.size()), to.size(), to.begin());
}

} // namespace detail

inline float Plan::rate_at(std::size_t step) const {
    if (!rate_falls)
        return learning_rate;
    const std::size_t left = detail::rate_stages - detail::rate_stages * step / steps();
    return learning_rate * static_cast<float>(std::min(left, detail::falling_stages)) /
           static_cast<float>(detail::falling_stages);
}

inline SyntheticWorkload::SyntheticWorkload(const Options& options, const Amount& amount) {
    plan_.height = plan_.width = options.side.value_or(256);
    // 1×1 pixels are left, whatever the side.
    std::size_t channels = 16;
    for (std::size_t side = plan_.width; side > 0; side /= 2, channels *= 2)
        plan_.channels.push_back(channels);
    plan_.learning_rate = 1e-3f;
    plan_.amount = amount;

    images_.resize(pool * amount.batch * plan_.image_bytes());
    labels_.resize(pool * amount.batch);
    const auto draw = [&](std::vector<std::uint8_t>& bytes, std::uint16_t purpose, std::size_t bound) {
        constexpr std::size_t chunk = 4096; // numbers of one key, far fewer than a key holds
        for (std::size_t begin = 0; begin < bytes.size(); begin += chunk) {
            sluice::CountedRandom random({.seed = options.seed, .sample = begin, .operation = purpose});
            const std::size_t end = std::min(begin + chunk, bytes.size());
            for (std::size_t i = begin; i < end; ++i)
                bytes[i] = static_cast<std::uint8_t>(random.below(static_cast<std::uint32_t>(bound)));
        }
    };
    draw(images_, detail::images_purpose, 256);
    draw(labels_, detail::labels_purpose, plan_.classes);
}

inline void SyntheticWorkload::fill(std::size_t index, BatchView out) const {
    detail::copy_part(images_, index % pool, out.images);
    detail::copy_part(labels_, index % pool, out.labels);
    for (std::size_t i = 0; i < out.samples.size(); ++i)
        out.samples[i] = {.sample = index * out.samples.size() + i};
}

inline DigitWorkload::DigitWorkload(const Options& options, const Amount& amount) : seed_(options.seed) {
    const examples::DigitSet digits = examples::load_digit_set(options.data);
    plan_.height = plan_.width = 32;
    plan_.channels = {16, 32, 64, 128, 256};
    // At 0.2, one training in ten or so without augmentation ends with all units dead.
    plan_.learning_rate = 0.15f;
    plan_.rate_falls = true;
    // Without momentum, first weights as small as PyTorch's leave the network on a plateau for hundreds of steps.
    plan_.first_weight_gain = 1.5f;
    plan_.amount = amount;
    training_ = compose(digits.train, detail::training_epoch);
    held_out_ = compose(digits.test, detail::held_out_epoch);
}

inline DigitWorkload::Canvases DigitWorkload::compose(const examples::IdxSplit& split,
                                                      std::uint32_t epoch) const {
    const examples::CanvasSpec canvas{
        .height = plan_.height, .width = plan_.width, .cell = plan_.height, .digit = 28, .presence = 1.0f};
    Canvases canvases;
    canvases.labels.resize(split.labels.values.size());
    canvases.images.resize(canvases.labels.size() * plan_.image_bytes());
    for (std::size_t i = 0; i < canvases.labels.size(); ++i) {
        canvases.labels[i] = examples::compose_classification(
            split, canvas, seed_, epoch, i,
            std::span(canvases.images).subspan(i * plan_.image_bytes(), plan_.image_bytes()));
    }
    return canvases;
}

inline void DigitWorkload::fill(std::size_t index, BatchView out) const {
    const std::size_t digits = training_.labels.size();
    for (std::size_t i = 0; i < out.samples.size(); ++i) {
        const std::size_t shown = index * out.samples.size() + i;
        const std::size_t digit = examples::canvas::shuffled(seed_, detail::training_epoch, shown, digits);
        out.samples[i] = {.sample = digit, .epoch = static_cast<std::uint32_t>(shown / digits)};
        out.labels[i] = training_.labels[digit];
        detail::copy_part(training_.images, digit,
                          out.images.subspan(i * plan_.image_bytes(), plan_.image_bytes()));
    }
}

} // namespace gpu_augment
