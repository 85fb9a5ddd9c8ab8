/// \file
/// A step of one large kernel: a graph has little to gain here.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include <graph_replay/options.hpp>
#include <nn/core/device.hpp>
#include <nn/elementwise/elementwise.hpp>
#include <nn/gemm/gemm.hpp>
#include <sluice/sluice.hpp>

namespace graph_replay {

/// The forward pass of a linear model.
template <sluice::Backend B>
class Linear {
public:
    using StreamRef = sluice::BasicStreamRef<B>;

    explicit Linear(const Options& options)
        : batch_(static_cast<std::size_t>(options.batch.value_or(16))), options_(options),
          gemm_(options.precision), images_(batch_ * options.inputs),
          weights_(options.inputs * options.outputs), bias_(options.outputs),
          scores_(batch_ * options.outputs) {
        nn::on_own_stream<B>([&](StreamRef stream) {
            nn::fill_uniform(stream, images_, 1.0f, {.seed = options.seed, .operation = 201});
            nn::fill_uniform(stream, weights_, 0.01f, {.seed = options.seed, .operation = 202});
            nn::fill_uniform(stream, bias_, 0.01f, {.seed = options.seed, .operation = 203});
        });
    }

    std::string name() const { return "linear"; }
    void reset(StreamRef stream) { sluice::fill_bytes(stream, scores_, 0); }
    void prepare(StreamRef, std::size_t) {}

    void work(StreamRef stream) {
        gemm_.multiply(stream, {images_, batch_, options_.inputs},
                       {weights_, options_.inputs, options_.outputs}, {scores_, batch_, options_.outputs},
                       {.bias = bias_});
    }

    std::vector<float> results(StreamRef stream) { return nn::to_host(stream, scores_); }

private:
    std::size_t batch_;
    Options options_;
    nn::Gemm<B> gemm_;
    sluice::DeviceBuffer<float, B> images_;
    sluice::DeviceBuffer<float, B> weights_;
    sluice::DeviceBuffer<float, B> bias_;
    sluice::DeviceBuffer<float, B> scores_;
};

} // namespace graph_replay
