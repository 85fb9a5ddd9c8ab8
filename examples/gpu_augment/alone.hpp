/// \file
/// What each part of a step takes by itself.
#pragma once

#include <chrono>
#include <cstddef>

#include <gpu_augment/train.hpp>

namespace gpu_augment {

/// The seconds that `work(stream)` takes, one after another, `amount.steps` times.
template <sluice::Backend B, class Work>
double seconds_of(const Amount& amount, Work work) {
    using Clock = std::chrono::steady_clock;
    const sluice::BasicStream<B> stream;
    for (std::size_t step = 0; step < amount.warmup; ++step)
        work(stream.ref());
    stream.sync();
    const auto start = Clock::now();
    for (std::size_t step = 0; step < amount.steps; ++step)
        work(stream.ref());
    stream.sync();
    return std::chrono::duration<double>(Clock::now() - start).count();
}

/// Of copying a batch of bytes to the device.
template <sluice::Backend B>
double seconds_of_copying(const Workload& workload) {
    LoadedBatch<B> loaded(workload.plan());
    RawBatch<B> raw(workload.plan());
    workload.fill(0, loaded.view());
    return seconds_of<B>(workload.plan().amount,
                         [&](sluice::BasicStreamRef<B> stream) { copy_batch(stream, raw, loaded); });
}

/// Of augmenting a batch on the device.
template <sluice::Backend B>
double seconds_of_augmenting(const Workload& workload, const BatchAugmentation& augmentation) {
    LoadedBatch<B> loaded(workload.plan());
    RawBatch<B> raw(workload.plan());
    ReadyBatch<B> ready(workload.plan());
    workload.fill(0, loaded.view());
    nn::on_own_stream<B>([&](sluice::BasicStreamRef<B> stream) { copy_batch(stream, raw, loaded); });
    return seconds_of<B>(workload.plan().amount, [&](sluice::BasicStreamRef<B> stream) {
        augmentation.run(stream, raw.images, raw.samples, ready.images);
    });
}

/// Of workers that augment batches without a training.
template <sluice::Backend B>
double seconds_of_workers(const Workload& workload, const BatchAugmentation& augmentation, int workers) {
    using Clock = std::chrono::steady_clock;
    const Plan& plan = workload.plan();
    auto source = source_of_augmented<B>(workload, augmentation, workers);
    const auto start = Clock::now(); // and that of the workers, which begin when the first batch is asked for
    while (source.next() != nullptr) {
    }
    const double seconds = std::chrono::duration<double>(Clock::now() - start).count();
    return seconds * static_cast<double>(plan.amount.steps) / static_cast<double>(plan.steps());
}

} // namespace gpu_augment
