/// \file
/// How well a trained classifier names held-out digits.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include <gpu_augment/train.hpp>
#include <nn/models/classifier.hpp>
#include <sluice/sluice.hpp>

namespace gpu_augment {

/// The fraction of the held-out digits that `classifier` names right, with nothing random: `plain` shows them as large,
/// and in the range of numbers, as it was trained on.
template <sluice::Backend B>
double held_out_accuracy(const DigitWorkload& workload, const BatchAugmentation& plain,
                         nn::Classifier<B>& classifier) {
    const Plan& plan = workload.plan();
    const std::size_t batch = plan.amount.batch;
    const sluice::BasicStream<B> stream;
    LoadedBatch<B> loaded(plan);
    RawBatch<B> raw(plan);
    ReadyBatch<B> ready(plan);
    sluice::DeviceBuffer<std::uint8_t, B> predictions(batch);
    std::vector<std::uint8_t> predicted(batch);

    std::size_t right = 0;
    for (std::size_t first = 0; first < workload.held_out(); first += batch) {
        // A last batch that is not full ends with digits that were in one before.
        for (std::size_t i = 0; i < batch; ++i) {
            const auto image = workload.held_out_image((first + i) % workload.held_out());
            std::copy(image.begin(), image.end(), loaded.images.data() + i * plan.image_bytes());
            loaded.samples[i] = {};
        }
        copy(stream, raw.images, loaded.images);
        copy(stream, raw.samples, loaded.samples);
        plain.run(stream.ref(), raw.images, raw.samples, ready.images);
        classifier.predict(stream.ref(), std::as_const(ready.images).span(), predictions);
        copy_and_wait(stream, predicted, predictions);
        for (std::size_t i = 0; i < std::min(batch, workload.held_out() - first); ++i)
            right += predicted[i] == workload.held_out_label(first + i) ? 1u : 0u;
    }
    return static_cast<double>(right) / static_cast<double>(workload.held_out());
}

} // namespace gpu_augment
