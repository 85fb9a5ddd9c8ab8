/// \file
/// A step with a number that changes from replay to replay, although the graph was captured once.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include <graph_replay/kernels.hpp>
#include <graph_replay/options.hpp>
#include <nn/core/device.hpp>
#include <nn/elementwise/elementwise.hpp>
#include <nn/gemm/gemm.hpp>
#include <sluice/graph/device_scalar.hpp>
#include <sluice/sluice.hpp>

namespace graph_replay {

/// Trains a small linear model on squared error, with a learning rate that falls from step to step.
template <sluice::Backend B>
class LearningRate {
public:
    using StreamRef = sluice::BasicStreamRef<B>;

    explicit LearningRate(const Options& options)
        : batch_(static_cast<std::size_t>(options.batch.value_or(16))), seed_(options.seed),
          gemm_(options.precision), images_(batch_ * inputs), target_(batch_ * outputs),
          scores_(batch_ * outputs), score_gradient_(batch_ * outputs), weights_(inputs * outputs),
          weight_gradient_(inputs * outputs) {
        nn::on_own_stream<B>([&](StreamRef stream) {
            nn::fill_uniform(stream, images_, 1.0f, {.seed = seed_, .operation = 205});
            nn::fill_uniform(stream, target_, 1.0f, {.seed = seed_, .operation = 206});
        });
    }

    std::string name() const { return "rate"; }
    void reset(StreamRef stream) {
        nn::fill_uniform(stream, weights_, 0.1f, {.seed = seed_, .operation = 207});
    }

    // Ordered on the stream, between two steps; the graph reads whatever is there when it runs.
    void prepare(StreamRef stream, std::size_t step) {
        rate_.set(stream, 0.05f / (1.0f + 0.1f * static_cast<float>(step)));
    }

    void work(StreamRef stream) {
        const float factor = 1.0f / static_cast<float>(batch_);
        gemm_.multiply(stream, {images_, batch_, inputs}, {weights_, inputs, outputs},
                       {scores_, batch_, outputs});
        error_gradient(stream, scores_, target_, score_gradient_, factor);
        gemm_.multiply(stream, {images_, batch_, inputs}, {score_gradient_, batch_, outputs},
                       {weight_gradient_, inputs, outputs}, {.transpose_a = true});
        descend(stream, weights_, weight_gradient_, rate_.span());
    }

    std::vector<float> results(StreamRef stream) { return nn::to_host(stream, weights_); }

private:
    static constexpr std::size_t inputs = 256;
    static constexpr std::size_t outputs = 16;

    std::size_t batch_;
    std::uint64_t seed_;
    nn::Gemm<B> gemm_;
    sluice::DeviceScalar<float, B> rate_;
    sluice::DeviceBuffer<float, B> images_;
    sluice::DeviceBuffer<float, B> target_;
    sluice::DeviceBuffer<float, B> scores_;
    sluice::DeviceBuffer<float, B> score_gradient_;
    sluice::DeviceBuffer<float, B> weights_;
    sluice::DeviceBuffer<float, B> weight_gradient_;
};

} // namespace graph_replay
