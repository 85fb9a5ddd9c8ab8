/// \file
/// What the experiment trains on, and how large its network is.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include <common/digits.hpp>
#include <common/idx.hpp>
#include <frozen_encoder/options.hpp>

namespace frozen_encoder {

/// The sizes of a run.
struct Plan {
    std::size_t height = 0;            ///< pixels of an image
    std::size_t width = 0;             ///< pixels of an image
    std::vector<std::size_t> channels; ///< of the encoder's layers, from the 1×1 convolution on
    std::size_t classes = 0;           ///< that the decoder tells apart
    float image_scale = 1.0f;          ///< what a byte of an image is multiplied with
    float learning_rate = 0.0f;        ///< of the decoder, at the first step
    float rate_decay = 0.0f;           ///< fraction by which the rate has fallen, evenly, at the last step
    float first_weight_gain = 1.0f;    ///< of the decoder's first weights over PyTorch's
    std::size_t batch = 0;             ///< images in a batch
    std::size_t steps = 0;             ///< timed steps
    std::size_t warmup = 0;            ///< steps before them
    std::size_t distinct = 0;          ///< batch i is batch i + distinct again; 0: no batch comes twice

    /// The decoder's learning rate at step `step`, warm-up included.
    float rate_at(std::size_t step) const {
        const auto part = static_cast<float>(step) / static_cast<float>(warmup + steps);
        return learning_rate * (1.0f - rate_decay * part);
    }

    /// What `rate_at` gives, as text.
    std::string rates_text() const;

    /// Bytes of one image, and of its map of labels.
    std::size_t image_bytes() const { return 3 * height * width; }
    std::size_t label_bytes() const { return height * width; }
};

/// Gives batches by number, the same for the same number, to any thread.
class Workload {
public:
    virtual ~Workload() = default;

    virtual const Plan& plan() const = 0;

    /// Fills batch `index`: images [batch, 3, height, width] and labels [batch, height, width].
    virtual void fill(std::size_t index, std::span<std::uint8_t> images,
                      std::span<std::uint8_t> labels) const = 0;
};

/// The hash of the first batch: data that differ from the start are told apart by it.
std::string hash_of_data(const Workload& workload);

/// The published workload, unless the options say otherwise: random images of 3×256×256 and random labels of 10
/// classes, eight halvings, batch 8, learning rate 1e-3. A few batches are drawn beforehand and come round again, so that
/// drawing them costs nothing while the steps are timed.
class SyntheticWorkload : public Workload {
public:
    explicit SyntheticWorkload(const Options& options);

    /// Draws the batches. Apart from the constructor, since it takes long where batches are large, perhaps too large.
    void draw();

    const Plan& plan() const override { return plan_; }
    void fill(std::size_t index, std::span<std::uint8_t> images,
              std::span<std::uint8_t> labels) const override;

private:
    static constexpr std::size_t pool = 4;

    std::uint64_t seed_;
    Plan plan_;
    std::vector<std::uint8_t> images_;
    std::vector<std::uint8_t> labels_;
};

/// Several handwritten digits on a canvas; a pixel's label is the digit's class where there is ink, and background
/// elsewhere. Canvases are composed while the steps run.
class DigitWorkload : public Workload {
public:
    /// Reads the IDX files of `options.data`. Throws `examples::BadInput`.
    explicit DigitWorkload(const Options& options);

    const Plan& plan() const override { return plan_; }
    void fill(std::size_t index, std::span<std::uint8_t> images,
              std::span<std::uint8_t> labels) const override;

    const examples::DigitSet& digits() const { return digits_; }
    const examples::CanvasSpec& canvas() const { return canvas_; }

    /// Canvas `index` of the held-out digits.
    void fill_held_out(std::size_t index, std::span<std::uint8_t> image,
                       std::span<std::uint8_t> labels) const;

private:
    examples::DigitSet digits_;
    examples::CanvasSpec canvas_;
    std::uint64_t seed_;
    Plan plan_;
};

} // namespace frozen_encoder
