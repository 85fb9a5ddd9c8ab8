/// \file
/// Where the frozen encoder comes from: a short training on digit classification, or a file.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include <common/digits.hpp>
#include <common/progress.hpp>
#include <frozen_encoder/workload.hpp>
#include <nn/models/classifier.hpp>
#include <sluice/sluice.hpp>

namespace frozen_encoder {

/// An encoder's weights, and how well it told digits apart.
struct Pretraining {
    std::vector<nn::NamedTensor> weights;
    double held_out_accuracy = 0; ///< of the held-out digits, the fraction that got its class
};

namespace detail {

/// What pretraining and its evaluation take: digits on canvases of one cell, `batch` of them at a time.
template <sluice::Backend B>
struct PretrainingData {
    static constexpr std::size_t batch = 64;

    struct Batch {
        sluice::PinnedBuffer<std::uint8_t, B> images;
        sluice::PinnedBuffer<std::uint8_t, B> labels;
    };

    PretrainingData(const DigitWorkload& workload, const Options& options)
        : digits(workload.digits()), canvas(workload.canvas()), seed(options.seed) {
        canvas.height = canvas.width = canvas.cell;
    }

    std::size_t image_bytes() const { return examples::image_bytes(canvas); }

    Batch make_batch() const {
        return {sluice::PinnedBuffer<std::uint8_t, B>(batch * image_bytes()),
                sluice::PinnedBuffer<std::uint8_t, B>(batch)};
    }

    /// Composes batch `index` of an epoch.
    void compose(const examples::IdxSplit& split, std::uint32_t epoch, std::size_t index, Batch& out) const {
        for (std::size_t i = 0; i < batch; ++i) {
            out.labels[i] = examples::compose_classification(
                split, canvas, seed, epoch, index * batch + i,
                std::span(out.images.data() + i * image_bytes(), image_bytes()));
        }
    }

    const examples::DigitSet& digits;
    examples::CanvasSpec canvas;
    std::uint64_t seed;
};

/// Of the held-out digits, the fraction that `classifier` gets right.
template <sluice::Backend B>
double held_out_accuracy(sluice::BasicStreamRef<B> stream, nn::Classifier<B>& classifier,
                         const PretrainingData<B>& data) {
    constexpr std::uint32_t held_out_epoch = 3;
    constexpr std::size_t batch = PretrainingData<B>::batch;
    const examples::IdxSplit& split = data.digits.test;
    auto host = data.make_batch();
    sluice::DeviceBuffer<std::uint8_t, B> images(host.images.size());
    sluice::DeviceBuffer<std::uint8_t, B> predictions(batch);
    std::vector<std::uint8_t> predicted(batch);
    const std::size_t digits = split.labels.values.size();
    std::size_t right = 0;
    // Every held-out digit counts once: an epoch shows each before it shows any again.
    for (std::size_t first = 0; first < digits; first += batch) {
        data.compose(split, held_out_epoch, first / batch, host);
        copy(stream, images, host.images);
        classifier.predict(stream, std::as_const(images).span(), predictions);
        copy_and_wait(stream, predicted, predictions);
        for (std::size_t i = 0; i < batch && first + i < digits; ++i)
            right += predicted[i] == host.labels[i] ? 1u : 0u;
    }
    return static_cast<double>(right) / static_cast<double>(digits);
}

} // namespace detail

/// Trains an encoder of the plan's channels and a linear head to name the digit on a canvas of one cell.
template <sluice::Backend B>
Pretraining pretrain_encoder(const DigitWorkload& workload, const Options& options) {
    constexpr float learning_rate = 0.3f; // falls evenly to a tenth
    constexpr std::uint32_t training_epoch = 2;
    using StreamRef = sluice::BasicStreamRef<B>;
    using Data = detail::PretrainingData<B>;
    using Batch = typename Data::Batch;

    const Data data(workload, options);
    nn::Encoder<B> encoder({.height = data.canvas.height,
                            .width = data.canvas.width,
                            .channels = workload.plan().channels,
                            .batch = Data::batch,
                            .image_scale = workload.plan().image_scale,
                            .trainable = true,
                            .precision = options.gemm.of_trained(),
                            .seed = options.seed});
    nn::Classifier<B> classifier(
        encoder, {.classes = examples::digit_classes, .learning_rate = learning_rate, .seed = options.seed});
    sluice::DeviceBuffer<std::uint8_t, B> images(Data::batch * data.image_bytes());
    sluice::DeviceBuffer<std::uint8_t, B> labels(Data::batch);
    sluice::DeviceBuffer<float, B> loss(1);

    // A pipeline of one stage: the source still composes the next batches meanwhile.
    const auto steps = static_cast<std::size_t>(options.encoder_steps);
    const auto rate_at = [&](std::size_t at) {
        return learning_rate * (1.0f - 0.9f * static_cast<float>(at) / static_cast<float>(steps));
    };
    std::size_t done = 0;
    sluice::Stage step{"pretrain", [&](StreamRef stream, const Batch& in) {
                           copy(stream, images, in.images);
                           copy(stream, labels, in.labels);
                           classifier.set_learning_rate(stream, rate_at(done++));
                           classifier.step(stream, std::as_const(images).span(), labels, loss);
                       }};
    sluice::Pipeline pipeline{sluice::Stages{step}, sluice::Slots{}};
    sluice::Source source{
        [&](int) { return data.make_batch(); },
        [&](std::size_t index, Batch& out) { data.compose(data.digits.train, training_epoch, index, out); },
        sluice::SourceOptions<B>{.workers = options.worker_count(std::is_same_v<B, sluice::Host>),
                                 .batches = steps}};
    examples::Progress progress("encoder", static_cast<std::int64_t>(steps));
    for (auto& batch_of_digits : source) {
        pipeline.submit(batch_of_digits);
        progress.update(static_cast<std::int64_t>(batch_of_digits.index() + 1));
    }
    pipeline.finish();

    sluice::BasicStream<B> stream;
    const double accuracy = detail::held_out_accuracy<B>(stream, classifier, data);
    return {encoder.weights(stream), accuracy};
}

} // namespace frozen_encoder
