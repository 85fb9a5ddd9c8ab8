/// \file
/// Batches on their way from the loader to the classifier.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include <augment/parameters.hpp>
#include <gpu_augment/workload.hpp>
#include <sluice/sluice.hpp>

namespace gpu_augment {

/// Images as they are loaded, on the host. Which samples they are is a part of the batch: what changes from step to step
/// travels as data, so that a step that is captured once draws new parameters in each replay.
template <sluice::Backend B>
struct LoadedBatch {
    sluice::PinnedBuffer<std::uint8_t, B> images;
    sluice::PinnedBuffer<std::uint8_t, B> labels;
    sluice::PinnedBuffer<augment::SampleId, B> samples;

    explicit LoadedBatch(const Plan& plan)
        : images(plan.amount.batch * plan.image_bytes()), labels(plan.amount.batch), samples(labels.size()) {}

    BatchView view() {
        return {
            {images.data(), images.size()}, {labels.data(), labels.size()}, {samples.data(), samples.size()}};
    }

    /// All that a captured step reads of it on the host: where the buffers lie.
    friend auto graph_key(const LoadedBatch& batch) {
        return std::array<const void*, 3>{batch.images.data(), batch.labels.data(), batch.samples.data()};
    }
};

/// The same on the device.
template <sluice::Backend B>
struct RawBatch {
    sluice::DeviceBuffer<std::uint8_t, B> images;
    sluice::DeviceBuffer<std::uint8_t, B> labels;
    sluice::DeviceBuffer<augment::SampleId, B> samples;

    explicit RawBatch(const Plan& plan)
        : images(plan.amount.batch * plan.image_bytes()), labels(plan.amount.batch), samples(labels.size()) {}
};

template <sluice::Backend B>
void copy_batch(sluice::BasicStreamRef<B> stream, RawBatch<B>& to, const LoadedBatch<B>& from) {
    copy(stream, to.images, from.images);
    copy(stream, to.labels, from.labels);
    copy(stream, to.samples, from.samples);
}

/// Augmented images on the host, of a loader that augments.
template <sluice::Backend B>
struct AugmentedBatch {
    sluice::PinnedBuffer<float, B> images;
    sluice::PinnedBuffer<std::uint8_t, B> labels;

    explicit AugmentedBatch(const Plan& plan)
        : images(plan.amount.batch * plan.image_bytes()), labels(plan.amount.batch) {}

    /// All that a captured step reads of it on the host: where the buffers lie.
    friend auto graph_key(const AugmentedBatch& batch) {
        return std::array<const void*, 2>{batch.images.data(), batch.labels.data()};
    }
};

/// What the classifier trains on: augmented images on the device.
template <sluice::Backend B>
struct ReadyBatch {
    sluice::DeviceBuffer<float, B> images;
    sluice::DeviceBuffer<std::uint8_t, B> labels;

    explicit ReadyBatch(const Plan& plan)
        : images(plan.amount.batch * plan.image_bytes()), labels(plan.amount.batch) {}
};

} // namespace gpu_augment
