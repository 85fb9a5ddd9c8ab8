/// \file
/// The experiment's heart: a frozen encoder and a trained decoder as the stages of a pipeline.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include <common/training.hpp>
#include <frozen_encoder/workload.hpp>
#include <nn/decoder.hpp>
#include <nn/encoder.hpp>
#include <sluice/sluice.hpp>

namespace frozen_encoder {

/// A batch on the host. The learning rate is a part of it: what changes from step to step travels as data, in memory
/// that stays where it is, so that a step that is captured once serves for all of them.
template <sluice::Backend B>
struct Batch {
    sluice::PinnedBuffer<std::uint8_t, B> images;
    sluice::PinnedBuffer<std::uint8_t, B> labels;
    sluice::PinnedBuffer<float, B> rate;

    explicit Batch(const Plan& plan)
        : images(plan.batch * plan.image_bytes()), labels(plan.batch * plan.label_bytes()), rate(1) {}
};

/// What the encoder hands to the decoder.
template <sluice::Backend B>
struct Features {
    sluice::DeviceBuffer<float, B> values;
    sluice::DeviceBuffer<std::uint8_t, B> labels;
    sluice::DeviceBuffer<float, B> rate;

    Features(const Plan& plan, std::size_t features_size)
        : values(plan.batch * features_size), labels(plan.batch * plan.label_bytes()), rate(1) {}
};

/// Trains `decoder` from its present weights on the workload's batches, in order.
template <sluice::Backend B>
examples::Training train(const Workload& workload, nn::Encoder<B>& encoder, nn::Decoder<B>& decoder,
                         sluice::Schedule schedule, int workers) {
    using StreamRef = sluice::BasicStreamRef<B>;
    using Loss = sluice::DeviceBuffer<float, B>;
    const Plan& plan = workload.plan();
    const std::size_t steps = plan.warmup + plan.steps;

    examples::Training training;
    training.losses.reserve(steps);
    sluice::Readback<float, B> losses{
        1, [&](std::size_t, std::span<const float> loss) { training.losses.push_back(loss[0]); }};

    sluice::DeviceBuffer<std::uint8_t, B> images(plan.batch * plan.image_bytes());

    sluice::Stage encode{"encode", [&](StreamRef stream, const Batch<B>& in, Features<B>& out) {
                             copy(stream, images, in.images);
                             copy(stream, out.labels, in.labels);
                             copy(stream, out.rate, in.rate);
                             encoder.forward(stream, images, out.values);
                         }};
    sluice::Stage train{"train", [&](StreamRef stream, Features<B>& in, Loss& loss) {
                            decoder.step(stream, in.values, in.labels, in.rate, loss);
                        }};
    // Handing losses over is the host's work as much as the device's, and so is never captured.
    sluice::Stage report{"report", [&](StreamRef stream, Loss& loss) { losses.push(stream, loss); },
                         sluice::StageOptions<B>{.graphed = false}};

    sluice::Pipeline pipeline{sluice::Stages{encode, train, report},
                              sluice::Slots{[&](int) { return Features<B>(plan, encoder.features_size()); },
                                            [](int) { return Loss(1); }},
                              {.schedule = schedule}};
    sluice::Source source{
        [&](int) { return Batch<B>(plan); },
        [&](std::size_t index, Batch<B>& out) {
            workload.fill(index, {out.images.data(), out.images.size()},
                          {out.labels.data(), out.labels.size()});
            out.rate[0] = plan.rate_at(index);
        },
        sluice::SourceOptions<B>{.workers = workers, .slots = workers + 3, .batches = steps}};

    training.seconds = examples::run_batches(source, pipeline, to_string(schedule), plan.warmup, plan.steps);
    losses.finish();
    return training;
}

} // namespace frozen_encoder
