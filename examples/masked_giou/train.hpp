/// \file
/// A detector that learns by a ragged loss: batch N + 1 is packed and copied while batch N is computed.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <tuple>
#include <vector>

#include <common/timelines.hpp>
#include <common/training.hpp>
#include <masked_giou/workload.hpp>
#include <nn/losses/boxes/giou_loss.hpp>
#include <nn/models/detector.hpp>
#include <sluice/ragged/packer.hpp>
#include <sluice/sluice.hpp>

namespace masked_giou {

/// Rows and values of a batch, at most.
inline sluice::RaggedCapacity capacity_of(const DetectionWorkload& workload) {
    const auto rows = static_cast<std::int64_t>(workload.plan().batch);
    return {.rows = rows, .values = rows * static_cast<std::int64_t>(workload.spec().most)};
}

/// A batch on the host: canvases, their boxes packed as rows, and the learning rate. What changes from step
/// to step travels as data, so that a step that is captured once serves for all of them.
template <sluice::Backend B>
struct HostBatch {
    sluice::PinnedBuffer<std::uint8_t, B> images;
    sluice::RaggedPacker<DetectionWorkload::Box, B> targets;
    sluice::PinnedBuffer<float, B> rate;

    explicit HostBatch(const DetectionWorkload& workload)
        : images(workload.plan().batch * workload.image_bytes()), targets(capacity_of(workload)), rate(1) {}

    /// Composes batch `index`.
    void fill(const DetectionWorkload& workload, std::size_t index) {
        const std::size_t batch = workload.plan().batch;
        std::array<DetectionWorkload::Box, DetectionWorkload::most_boxes> boxes;
        targets.clear();
        for (std::size_t i = 0; i < batch; ++i) {
            const std::span image(images.data() + i * workload.image_bytes(), workload.image_bytes());
            targets.add_row(workload.compose(index * batch + i, image, boxes));
        }
        rate[0] = workload.plan().rate_at(index);
    }

    /// All that a captured step reads of it on the host: where the buffers and the packed rows lie.
    friend auto graph_key(const HostBatch& batch) {
        return std::tuple(batch.images.data(), graph_key(batch.targets), batch.rate.data());
    }
};

/// The same on the device: a slot between the stages.
template <sluice::Backend B>
struct DeviceBatch {
    sluice::DeviceBuffer<std::uint8_t, B> images;
    sluice::RaggedBatch<DetectionWorkload::Box, B> targets;
    sluice::DeviceBuffer<float, B> rate;

    explicit DeviceBatch(const DetectionWorkload& workload)
        : images(workload.plan().batch * workload.image_bytes()), targets(capacity_of(workload)), rate(1) {}
};

/// Trains `detector` from its present weights on the workload's batches, in order. `timelines` keeps what ran when.
template <sluice::Backend B>
examples::Training train(const DetectionWorkload& workload, nn::Detector<B>& detector,
                         sluice::Schedule schedule, int workers, examples::Timelines& timelines) {
    using StreamRef = sluice::BasicStreamRef<B>;
    using Loss = sluice::DeviceBuffer<float, B>;
    const TrainingPlan& plan = workload.plan();
    const std::size_t width = detector.options().max_boxes;
    const std::size_t steps = plan.warmup + plan.steps;

    examples::Training training;
    training.losses.reserve(steps);
    sluice::Readback<float, B> losses{
        1, [&](std::size_t, std::span<const float> loss) { training.losses.push_back(loss[0]); }};

    sluice::DeviceBuffer<float, B> predictions(plan.batch * detector.predictions_size());
    sluice::DeviceBuffer<nn::Box<float>, B> gradient(plan.batch * width);
    nn::GiouScratch<B> scratch(plan.batch);

    sluice::Stage copy_in{"copy", [](StreamRef stream, const HostBatch<B>& in, DeviceBatch<B>& out) {
                              copy(stream, out.images, in.images);
                              in.targets.copy_to(stream, out.targets);
                              copy(stream, out.rate, in.rate);
                          }};
    Loss loss(1);
    sluice::Stage train{
        "train", [&](StreamRef stream, DeviceBatch<B>& in) {
            detector.forward(stream, in.images.span(), predictions.span());
            const nn::PaddedBoxes<const float, B> boxes(std::as_const(predictions).span(), plan.batch, width);
            // The formula whose gradient leads boxes that miss each other together.
            giou_mean_ragged(stream, nn::TorchvisionGiouLoss{}, boxes, std::as_const(in.targets).view(),
                             nn::GiouResult<float, B>{.mean = loss.span(), .gradient = gradient.span()},
                             scratch);
            const sluice::DeviceSpan<const float, B> numbers(reinterpret_cast<const float*>(gradient.data()),
                                                             4 * gradient.size());
            detector.backward_and_update(stream, numbers, in.rate.span());
            losses.push(stream, loss);
        }};

    sluice::Pipeline pipeline{sluice::Stages{copy_in, train},
                              sluice::Slots{[&](int) { return DeviceBatch<B>(workload); }},
                              {.schedule = schedule, .timed_batches = timelines.timed_batches()}};
    sluice::Source source{[&](int) { return HostBatch<B>(workload); },
                          [&](std::size_t index, HostBatch<B>& out) { out.fill(workload, index); },
                          sluice::SourceOptions<B>{.workers = workers,
                                                   .slots = workers + 3,
                                                   .batches = steps,
                                                   .timed_batches = examples::noted_fills}};

    training.pace = examples::run_batches(source, pipeline, to_string(schedule), plan.warmup, plan.steps);
    timelines.add(pipeline, source, std::string("train, ") + to_string(schedule));
    losses.finish();
    return training;
}

} // namespace masked_giou
