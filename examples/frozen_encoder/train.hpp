/// \file
/// The experiment's heart: a frozen encoder and a trained decoder as the two stages of a pipeline.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include <common/progress.hpp>
#include <frozen_encoder/workload.hpp>
#include <nn/decoder.hpp>
#include <nn/encoder.hpp>
#include <sluice/sluice.hpp>

namespace frozen_encoder {

/// What training under one schedule gave.
struct Training {
    std::vector<float> losses; ///< one a step, warm-up included
    double seconds = 0;        ///< of the timed steps
};

/// A batch on the host.
template <sluice::Backend B>
struct Batch {
    sluice::PinnedBuffer<std::uint8_t, B> images;
    sluice::PinnedBuffer<std::uint8_t, B> labels;

    explicit Batch(const Plan& plan)
        : images(plan.batch * plan.image_bytes()), labels(plan.batch * plan.label_bytes()) {}
};

/// What the encoder hands to the decoder.
template <sluice::Backend B>
struct Features {
    sluice::DeviceBuffer<float, B> values;
    sluice::DeviceBuffer<std::uint8_t, B> labels;

    Features(const Plan& plan, std::size_t features_size)
        : values(plan.batch * features_size), labels(plan.batch * plan.label_bytes()) {}
};

/// Trains `decoder` from its present weights on the workload's batches, in order.
template <sluice::Backend B>
Training train(const Workload& workload, nn::Encoder<B>& encoder, nn::Decoder<B>& decoder,
               sluice::Schedule schedule, int workers) {
    using StreamRef = sluice::BasicStreamRef<B>;
    const Plan& plan = workload.plan();
    const std::size_t steps = plan.warmup + plan.steps;

    Training training;
    training.losses.reserve(steps);
    sluice::Readback<float, B> losses{
        1, [&](std::size_t, std::span<const float> loss) { training.losses.push_back(loss[0]); }};

    sluice::DeviceBuffer<std::uint8_t, B> images(plan.batch * plan.image_bytes());
    sluice::DeviceBuffer<float, B> loss(1);

    sluice::Stage encode{"encode", [&](StreamRef stream, const Batch<B>& in, Features<B>& out) {
                             copy(stream, images, in.images);
                             copy(stream, out.labels, in.labels);
                             encoder.forward(stream, images, out.values);
                         }};
    sluice::Stage train{"train", [&](StreamRef stream, Features<B>& in) {
                            decoder.set_learning_rate(plan.rate_at(losses.pushed()));
                            decoder.step(stream, in.values, in.labels, loss);
                            losses.push(stream, loss);
                        }};

    sluice::TwoStreamPipeline pipeline{encode,
                                       train,
                                       [&](int) { return Features<B>(plan, encoder.features_size()); },
                                       {.schedule = schedule}};
    sluice::Source source{
        [&](int) { return Batch<B>(plan); },
        [&](std::size_t index, Batch<B>& out) {
            workload.fill(index, {out.images.data(), out.images.size()},
                          {out.labels.data(), out.labels.size()});
        },
        sluice::SourceOptions<B>{.workers = workers, .slots = workers + 3, .batches = steps}};

    examples::Progress progress(to_string(schedule), static_cast<std::int64_t>(steps));
    auto start = std::chrono::steady_clock::now();
    for (auto& batch : source) {
        if (batch.index() == plan.warmup) {
            pipeline.finish();
            start = std::chrono::steady_clock::now();
        }
        pipeline.submit(batch);
        progress.update(static_cast<std::int64_t>(batch.index() + 1));
    }
    pipeline.finish();
    training.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    losses.finish();
    return training;
}

} // namespace frozen_encoder
