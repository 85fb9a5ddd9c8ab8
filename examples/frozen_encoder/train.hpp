/// \file
/// The experiment's heart: a frozen encoder and a trained decoder as the stages of a pipeline.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include <common/checkpoint.hpp>
#include <common/timelines.hpp>
#include <common/training.hpp>
#include <frozen_encoder/device_memory.hpp>
#include <frozen_encoder/options.hpp>
#include <frozen_encoder/workload.hpp>
#include <nn/core/device.hpp>
#include <nn/models/decoder.hpp>
#include <nn/models/encoder.hpp>
#include <sluice/sluice.hpp>

namespace frozen_encoder {

/// A batch on the host. The learning rate is a part of it: what changes from step to step travels as data, in memory
/// that stays where it is, so that a step that is captured once serves for all of them.
template <sluice::Backend B>
struct Batch {
    sluice::PinnedBuffer<std::uint8_t, B> images;
    sluice::PinnedBuffer<std::uint8_t, B> labels;
    sluice::PinnedBuffer<float, B> rate;
    std::optional<std::size_t> content; ///< of the workload's distinct batches, the one that is here

    explicit Batch(const Plan& plan)
        : images(plan.batch * plan.image_bytes()), labels(plan.batch * plan.label_bytes()), rate(1) {}

    /// All that a captured step reads of it on the host: where the buffers lie.
    friend auto graph_key(const Batch& batch) {
        return std::array<const void*, 3>{batch.images.data(), batch.labels.data(), batch.rate.data()};
    }
};

/// The same on the device, where the encoder reads it.
template <sluice::Backend B>
struct DeviceBatch {
    sluice::DeviceBuffer<std::uint8_t, B> images;
    sluice::DeviceBuffer<std::uint8_t, B> labels;
    sluice::DeviceBuffer<float, B> rate;

    explicit DeviceBatch(const Plan& plan)
        : images(plan.batch * plan.image_bytes()), labels(plan.batch * plan.label_bytes()), rate(1) {}
};

/// What the encoder hands to the decoder. The labels come along, since by then the next batch but one lies where these
/// were.
template <sluice::Backend B>
struct Features {
    sluice::DeviceBuffer<float, B> values;
    sluice::DeviceBuffer<std::uint8_t, B> labels;
    sluice::DeviceBuffer<float, B> rate;

    Features(const Plan& plan, std::size_t features_size)
        : values(plan.batch * features_size), labels(plan.batch * plan.label_bytes()), rate(1) {}
};

/// Writes batch `index` of the workload to `out`, unless it is there already.
template <sluice::Backend B>
void fill(const Workload& workload, std::size_t index, Batch<B>& out) {
    const Plan& plan = workload.plan();
    out.rate[0] = plan.rate_at(index);
    const std::size_t content = plan.distinct > 0 ? index % plan.distinct : index;
    if (out.content == content)
        return;
    workload.fill(index, {out.images.data(), out.images.size()}, {out.labels.data(), out.labels.size()});
    out.content = content;
}

/// Copies a batch's features, as between devices.
template <sluice::Backend B>
void copy_features(sluice::BasicStreamRef<B> stream, Features<B>& to, const Features<B>& from) {
    copy(stream, to.values, from.values);
    copy(stream, to.labels, from.labels);
    copy(stream, to.rate, from.rate);
}

/// How many slots a source has. Where batches come round again, each slot holds the same one each time, and is filled once.
inline int source_slots(const Plan& plan, int workers) {
    const int slots = workers + 3;
    if (plan.distinct == 0)
        return slots;
    return slots + static_cast<int>((plan.distinct - static_cast<std::size_t>(slots) % plan.distinct) %
                                    plan.distinct);
}

/// What `train` gives: the training, and how much of the device's memory was taken while it ran.
struct MeasuredTraining : examples::Training {
    std::optional<std::size_t> memory_taken;
};

/// The device that trains the decoder.
template <sluice::Backend B>
int device_of_decoder(const Placement& placement) {
    return placement.decoder_device >= 0 ? placement.decoder_device : B::current_device();
}

/// What the decoder's tensors are called in a state: this, then their names.
inline constexpr const char* decoder_prefix = "decoder.";

/// What is trained, after `step` steps: the decoder's weights, since its gradient descent has no velocities and the encoder
/// is frozen. Waits. No step may be under way.
template <sluice::Backend B>
examples::TrainingState state_of(nn::Decoder<B>& decoder, const Placement& placement, std::size_t step) {
    const sluice::DeviceGuard<B> device(device_of_decoder<B>(placement));
    examples::TrainingState state{.step = step, .losses = {}, .tensors = {}};
    nn::on_own_stream<B>(
        [&](sluice::BasicStreamRef<B> stream) { state.add(decoder_prefix, decoder.weights(stream)); });
    return state;
}

/// Trains `decoder` from its present weights on the workload's batches, in order, from the first that `checkpoints` has not
/// seen on. While batch N trains it, batch N+1 is
/// encoded and batch N+2 copied to the device, as far as `schedule` allows. `timelines` keeps what ran when.
///
/// Where a checkpoint is due, no further batch is submitted before all work is done, so that the weights are those after
/// that step under every schedule, and nothing of a captured step is about checkpoints. The source fills batches meanwhile.
template <sluice::Backend B>
MeasuredTraining train(const Workload& workload, nn::Encoder<B>& encoder, nn::Decoder<B>& decoder,
                       sluice::Schedule schedule, const Placement& placement, int workers,
                       examples::Timelines& timelines, const examples::Checkpoints& checkpoints = {}) {
    using StreamRef = sluice::BasicStreamRef<B>;
    using Loss = sluice::DeviceBuffer<float, B>;
    const Plan& plan = workload.plan();
    const std::size_t steps = plan.warmup + plan.steps, first = checkpoints.first_step();
    MeasuredTraining training;
    training.losses.reserve(steps);
    if (checkpoints.resumed() != nullptr)
        training.losses = checkpoints.resumed()->losses;
    sluice::Readback<float, B> losses{
        1, [&](std::size_t, std::span<const float> loss) { training.losses.push_back(loss[0]); }};

    sluice::Stage upload{"copy", [&](StreamRef stream, const Batch<B>& in, DeviceBatch<B>& out) {
                             copy(stream, out.images, in.images);
                             copy(stream, out.labels, in.labels);
                             copy(stream, out.rate, in.rate);
                         }};
    sluice::Stage encode{"encode", [&](StreamRef stream, DeviceBatch<B>& in, Features<B>& out) {
                             copy(stream, out.labels, in.labels);
                             copy(stream, out.rate, in.rate);
                             if (placement.only != Network::decoder)
                                 encoder.forward(stream, in.images, out.values);
                         }};
    // The decoder reads the features where it is.
    const sluice::StageOptions<B> with_decoder{.device = placement.decoder_device};
    std::optional<Features<B>> there;
    if (placement.decoder_device >= 0) {
        const sluice::DeviceGuard<B> device(placement.decoder_device);
        there.emplace(plan, encoder.features_size());
    }
    sluice::Stage train{"train",
                        [&](StreamRef stream, Features<B>& in, Loss& loss) {
                            if (there)
                                copy_features(stream, *there, in);
                            Features<B>& features = there ? *there : in;
                            if (placement.only == Network::encoder)
                                fill_bytes(stream, loss, 0);
                            else
                                decoder.step(stream, features.values, features.labels, features.rate, loss);
                        },
                        with_decoder};
    // Apart, so that the next step of training does not wait for the copy to the host.
    sluice::Stage report{"report", [&](StreamRef stream, Loss& loss) { losses.push(stream, loss); },
                         with_decoder};

    sluice::Pipeline pipeline{sluice::Stages{upload, encode, train, report},
                              sluice::Slots{[&](int) { return DeviceBatch<B>(plan); },
                                            [&](int) { return Features<B>(plan, encoder.features_size()); },
                                            [](int) { return Loss(1); }},
                              {.schedule = schedule,
                               .graph_each_stage = schedule == sluice::Schedule::graphed,
                               .timed_batches = timelines.timed_batches()}};
    sluice::Source source{[&](int) { return Batch<B>(plan); },
                          [&](std::size_t index, Batch<B>& out) { fill(workload, first + index, out); },
                          sluice::SourceOptions<B>{.workers = workers,
                                                   .slots = source_slots(plan, workers),
                                                   .batches = steps - first,
                                                   .timed_batches = examples::noted_fills}};
    const auto save_if_due = [&](std::size_t step) {
        if (!checkpoints.is_due(step))
            return;
        pipeline.finish();
        losses.finish();
        examples::TrainingState state = state_of(decoder, placement, step);
        state.losses = training.losses;
        checkpoints.write(std::move(state));
    };

    const std::size_t warmup = std::min(plan.warmup, steps - first - 1);
    training.pace =
        examples::run_batches(source, pipeline, to_string(schedule), warmup, steps - first - warmup,
                              [&](std::size_t index) { save_if_due(first + index); });
    timelines.add(pipeline, source, to_string(schedule));
    losses.finish();
    save_if_due(steps);
    training.memory_taken = device_memory_taken<B>();
    return training;
}

} // namespace frozen_encoder
