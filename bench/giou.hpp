/// \file
/// giou: the box losses of the masked GIoU experiment, 1,024 images of up to 256 boxes. See support/main.cpp for how to run
/// it; times are until the work is done. What copies of the targets cost is in the program `ragged`, as `pack:1024`.
///
/// - `cuda/TYPE/VARIANT/PART/HOW`: the article's formula in six variants, over predictions of TYPE; `forward` is the mean
///   alone, `both` the mean and its gradient; one by one (`eager`) or as a replayed graph (`graph`). `ragged` is there
///   with torchvision's formula too. Beside each: the ragged kernel for the same PART, launched by hand as a graph of one
///   node. The ratio says how many times as long as that a variant takes.
/// - `cuda/work:N/VARIANT`: the mean, with a formula N times as heavy, as a graph; the same baseline.
/// - `host/…`: the same on the CPU, without a baseline.
#pragma once

#include <array>
#include <cstdint>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include <nn/losses/boxes/giou_loss.hpp>
#include <sluice/graph/graph_capture.hpp>

#include "ragged.hpp"

namespace bench {

enum class Variant { looped, concatenated, padded, fused, conditional, ragged };
inline constexpr std::array variants{Variant::looped, Variant::concatenated, Variant::padded,
                                     Variant::fused,  Variant::conditional,  Variant::ragged};
constexpr const char* name_of(Variant variant) {
    constexpr std::array names{"looped", "concatenated", "padded", "fused", "conditional", "ragged"};
    return names[static_cast<std::size_t>(variant)];
}

inline constexpr std::size_t giou_rows = 1024;
inline constexpr std::size_t giou_width = 256;

/// A corner anywhere in an image of 256 × 256, a size of 1 to 255, clipped to the image.
inline nn::Box<float> box_in_image(sluice::CountedRandom& random) {
    const auto edge = [&] { return static_cast<float>(random.below(255)); };
    const auto size = [&] { return static_cast<float>(1 + random.below(255)); };
    const float x1 = edge();
    const float y1 = edge();
    return {x1, y1, std::min(255.0f, x1 + size()), std::min(255.0f, y1 + size())};
}

/// Predictions and targets in all forms, and memory for all variants. The gradient is of the predictions' type.
template <class P, class B>
class GiouData {
public:
    using Target = nn::Box<std::uint8_t>;
    using StreamRef = sluice::BasicStreamRef<B>;

    GiouData()
        : targets_(room), predictions_(boxes), padded_(boxes), mask_(boxes),
          packed_(static_cast<std::size_t>(room.values)),
          packed_gradient_(static_cast<std::size_t>(room.values)), gradient_(boxes), mean_(1), steps_(boxes),
          scratch_(giou_rows) {
        sluice::RaggedPacker<Target, B> packer(room);
        std::vector<nn::Box<P>> predictions(boxes);
        std::vector<Target> padded(boxes, Target{});
        std::vector<std::uint8_t> mask(boxes, 0);
        const auto lengths = rows_of_boxes();
        for (std::size_t r = 0; r < giou_rows; ++r) {
            sluice::CountedRandom random(sluice::RandomKey{.seed = 5, .sample = r});
            std::vector<Target> row;
            for (std::size_t p = 0; p < giou_width; ++p) {
                const std::size_t at = r * giou_width + p;
                predictions[at] = nn::box_as<P>(box_in_image(random));
                if (p >= lengths[r].size())
                    continue;
                row.push_back(nn::box_as<std::uint8_t>(box_in_image(random)));
                padded[at] = row.back();
                mask[at] = 1;
            }
            packer.add_row(row);
        }
        const sluice::BasicStream<B> stream;
        packer.copy_to(stream, targets_);
        sluice::copy_and_wait(stream.ref(), predictions_, predictions);
        sluice::copy_and_wait(stream.ref(), padded_, padded);
        sluice::copy_and_wait(stream.ref(), mask_, mask);
    }

    template <class Formula>
    void enqueue(StreamRef stream, Formula formula, Variant variant, bool backward, unsigned work) {
        const auto predictions = this->predictions();
        const auto targets = this->targets();
        nn::GiouResult<P, B> result{mean_.span()};
        if (backward)
            result.gradient = gradient_.span();
        const nn::MaskedBoxes<std::uint8_t, B> masked{{padded_.span(), giou_rows, giou_width},
                                                      std::as_const(mask_).span()};
        switch (variant) {
        case Variant::looped:
            return nn::giou_mean_looped(stream, formula, predictions, targets, result, scratch_);
        case Variant::concatenated:
            return nn::giou_mean_concatenated(stream, formula, predictions, targets, packed_.span(),
                                              packed_gradient_.span(), result, scratch_);
        case Variant::padded:
            return nn::giou_mean_padded(stream, formula, predictions, masked, result, steps_, scratch_);
        case Variant::fused:
            return nn::giou_mean_fused(stream, formula, predictions, masked, nn::Invalid::computed, result,
                                       scratch_, work);
        case Variant::conditional:
            return nn::giou_mean_fused(stream, formula, predictions, masked, nn::Invalid::skipped, result,
                                       scratch_, work);
        case Variant::ragged:
            return nn::giou_mean_ragged(stream, formula, predictions, targets, result, scratch_, work);
        }
    }

    nn::PaddedBoxes<P, B> predictions() { return {predictions_.span(), giou_rows, giou_width}; }
    sluice::RaggedView<const Target> targets() const { return targets_.view(); }
    nn::Box<P>* gradient() { return gradient_.data(); }
    float* mean() { return mean_.data(); }
    nn::GiouScratch<B>& scratch() { return scratch_; }

private:
    static constexpr std::size_t boxes = giou_rows * giou_width;
    /// The bucket of the boxes that there are.
    static constexpr sluice::RaggedCapacity room{giou_rows, 2 * giou_rows};

    sluice::RaggedBatch<Target, B> targets_;
    sluice::DeviceBuffer<nn::Box<P>, B> predictions_;
    sluice::DeviceBuffer<Target, B> padded_;
    sluice::DeviceBuffer<std::uint8_t, B> mask_;
    sluice::DeviceBuffer<nn::Box<P>, B> packed_;
    sluice::DeviceBuffer<nn::Box<P>, B> packed_gradient_;
    sluice::DeviceBuffer<nn::Box<P>, B> gradient_;
    sluice::DeviceBuffer<float, B> mean_;
    nn::GiouSteps<B> steps_;
    nn::GiouScratch<B> scratch_;
};

/// One variant of the loss, eagerly or replayed.
template <class P, class B, class Formula>
class GiouSubject {
public:
    struct Plan {
        Variant variant;
        bool backward;
        bool as_graph;
        unsigned work = 1;
    };

    explicit GiouSubject(const Plan& plan) : plan_(plan) {
        step(); // by itself
        step(); // captured
        sync();
        if (plan_.as_graph && graph_.counters().replays == 0)
            throw sluice::Error("there is nothing to measure, since the loss was not replayed as a graph");
    }
    void step() {
        const auto work = [this](sluice::BasicStreamRef<B> stream) {
            data_.enqueue(stream, Formula{}, plan_.variant, plan_.backward, plan_.work);
        };
        if (plan_.as_graph) {
            graph_.run(stream_.ref(), work);
        } else {
            work(stream_.ref());
        }
    }
    void sync() { stream_.sync(); }

private:
    Plan plan_;
    GiouData<P, B> data_;
    sluice::BasicStream<B> stream_;
    sluice::GraphCapture<sluice::NoKey, B> graph_;
};

/// Registers a loss; `make_baseline(backward)` makes what stands beside it.
template <class P, class B, class Formula, class MakeBaseline>
void add_giou(const std::string& name, const typename GiouSubject<P, B, Formula>::Plan& plan,
              const Effort& effort, MakeBaseline make_baseline) {
    add_timed(
        name, effort, B::counts(), [plan] { return GiouSubject<P, B, Formula>{plan}; },
        [plan, make_baseline] { return make_baseline(plan.backward); });
}

} // namespace bench
