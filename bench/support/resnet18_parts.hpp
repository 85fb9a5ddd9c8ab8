/// \file
/// What the programs that time and repeat the parts of ResNet-18 share.
#pragma once

#include <cstddef>
#include <cstdlib>
#include <string>

#include <nn/dnn/cudnn.hpp>
#include <nn/models/resnet18.hpp>

#include "parts.hpp"

#if SLUICE_HAS_CUDA && NN_HAS_CUDNN
#include <nn/dnn/cudnn_conv2d.hpp>

namespace bench::resnet18 {

template <class T>
using Buffer = sluice::DeviceBuffer<T, sluice::Cuda>;

/// The network of the experiment, autotuned, with the plans of the environment variable SLUICE_PLANS.
inline nn::ResNet18Options experiment(std::size_t batch, bool is_trained, bool is_fused) {
    const char* plans = std::getenv("SLUICE_PLANS");
    nn::ResNet18Options options;
    options.stored_channels = 4;
    options.batch = batch;
    options.trainable = is_trained;
    options.fuse_statistics = is_fused;
    options.convolution.algorithms = nn::Algorithms::autotune;
    options.convolution.plan_file = plans == nullptr ? "" : plans;
    return options;
}

/// Numbers within ±1.
template <class T>
Buffer<T> random_numbers(std::size_t count) {
    Buffer<float> numbers(count);
    Buffer<T> result(count);
    nn::on_own_stream<sluice::Cuda>([&](sluice::CudaStreamRef stream) {
        nn::fill_uniform(stream, numbers, 1.0f, {.seed = 7});
        nn::fold_weights<T>(stream, {numbers, 1, count}, {}, result);
    });
    return result;
}

/// Registers `function(state, arguments...)`.
template <class Function, class... Arguments>
void add(const std::string& name, int iterations, Function function, Arguments... arguments) {
    benchmark::RegisterBenchmark(name.c_str(), function, arguments...)
        ->UseManualTime()
        ->Unit(benchmark::kMicrosecond)
        ->Iterations(iterations);
}

} // namespace bench::resnet18
#endif
