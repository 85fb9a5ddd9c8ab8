/// \file
/// How well a trained network names held-out images.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include <nn/core/device.hpp>
#include <nn/losses/cross_entropy_wide.hpp>
#include <resnet18/input.hpp>

namespace resnet18 {

/// One batch of `input` on the device, as the network takes it; waits for it.
template <class T, sluice::Backend B>
void load_batch(const Input<B>& input, std::size_t index, std::size_t stored_channels,
                NetworkBatch<T, B>& out) {
    typename Input<B>::Worker worker;
    LoadedBatch<B> loaded = input.make_loaded();
    CopiedBatch<B> copied = input.make_copied();
    Preparation<T, B> preparation(input, stored_channels);
    input.fill(worker, index, 0.0f, loaded);
    nn::on_own_stream<B>([&](sluice::BasicStreamRef<B> stream) {
        copied.copy_from(stream, loaded);
        preparation.run(stream, copied, out);
    });
}

/// The fraction of the images of one epoch of `held_out` that `network` names right, by the running statistics. Takes the
/// batches of `images` that the network was trained on, since cuDNN's algorithms for those have been chosen: images of
/// zeros fill up what is missing.
template <sluice::Backend B, class Network>
double held_out_accuracy(const Input<B>& held_out, Network& network, std::size_t images) {
    const std::size_t classes = network.options().classes;
    const sluice::BasicStream<B> stream;
    NetworkBatch<typename Network::T, B> batch(images, network.image_size());
    sluice::DeviceBuffer<float, B> logits(images * classes);
    sluice::DeviceBuffer<std::int32_t, B> classed(images);
    std::vector<std::int32_t> predicted(images);
    std::vector<std::uint8_t> labels(images);

    std::size_t right = 0;
    std::size_t all = 0;
    for (std::size_t index = 0; index < held_out.batches_per_epoch(); ++index) {
        load_batch(held_out, index, network.plan().stem().shape.in_channels, batch);
        const std::size_t count = batch.size();
        sluice::copy_and_wait(stream.ref(), std::span(labels).first(count), std::as_const(batch).labels());
        batch.resize(images);
        sluice::fill_bytes(stream, batch.images().last((images - count) * network.image_size()), 0);
        network.evaluate(stream, std::as_const(batch).images(), logits);
        nn::predict_classes_wide(stream.ref(), nn::Matrix<const float, B>(logits, images, classes), classed);
        copy_and_wait(stream, predicted, classed);
        for (std::size_t i = 0; i < count; ++i)
            right += predicted[i] == labels[i] ? 1u : 0u;
        all += count;
    }
    return static_cast<double>(right) / static_cast<double>(all);
}

} // namespace resnet18
