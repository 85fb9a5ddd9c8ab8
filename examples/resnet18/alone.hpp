/// \file
/// Training on one batch that is on the device already: what a rung could do if its input cost nothing.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <utility>

#include <resnet18/evaluate.hpp>
#include <sluice/graph/graph_capture.hpp>

namespace resnet18 {

/// Samples per second of `steps` steps, after as many for warm-up as capture the step, launched one by one or `graphed`.
template <sluice::Backend B, class Network>
double samples_per_second_alone(const Input<B>& input, Network& network, bool zeroes_gradients, bool graphed,
                                std::size_t steps) {
    using Clock = std::chrono::steady_clock;
    using Stream = sluice::BasicStreamRef<B>;
    const sluice::BasicStream<B> stream;
    NetworkBatch<typename Network::T, B> batch(input.batch(), network.image_size());
    load_batch(input, 0, network.plan().stem().shape.in_channels, batch);
    sluice::DeviceBuffer<float, B> loss(1);
    sluice::GraphCapture<sluice::NoKey, B> graph;
    const auto step = [&](Stream on) {
        if (zeroes_gradients)
            network.zero_gradients(on);
        network.template train_step<std::uint8_t>(on, std::as_const(batch).images(),
                                                  std::as_const(batch).labels(), loss);
    };
    const auto run = [&](std::size_t count) {
        for (std::size_t i = 0; i < count; ++i) {
            if (graphed)
                graph.run(stream.ref(), step);
            else
                step(stream.ref());
        }
        stream.sync();
    };
    run(3);
    const auto start = Clock::now();
    run(steps);
    return static_cast<double>(steps * batch.size()) /
           std::chrono::duration<double>(Clock::now() - start).count();
}

} // namespace resnet18
