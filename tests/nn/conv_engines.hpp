// The implementations of convolutions that a backend has, for tests that run on each of them.
#pragma once

#include <nn/conv/conv2d.hpp>
#if SLUICE_TEST_CUDA && NN_HAS_CUDNN
#include <nn/dnn/cudnn_conv2d.hpp>
#endif

#include "nn/support.hpp"

namespace nn_test {

/// What an implementation is asked for: a plain name, its options, and how exact it is.
template <class Conv_>
struct Engine {
    using Conv = Conv_;
    using T = typename Conv::value_type;

    const char* name;
    nn::Precision precision;
    double allowed;
    bool uses_heap = false; ///< cuDNN makes a descriptor for each call
};

/// Calls `work(engine)` for each. cuDNN without Tensor Cores is not among them: it may have no plan for channels last.
template <class Work>
void for_each_engine(const Work& work) {
    using Patches = nn::PatchConv2d<B>;
    work(Engine<Patches>{"patches, float32", nn::Precision::float32, 1e-5});
#if SLUICE_TEST_CUDA
    work(Engine<Patches>{"patches, tf32", nn::Precision::tf32, 5e-3});
#if NN_HAS_CUDNN
    work(Engine<nn::CudnnConv2d<float>>{"cuDNN, tf32", nn::Precision::tf32, 5e-3, true});
    work(Engine<nn::CudnnConv2d<nn::Half>>{"cuDNN, float16", nn::Precision::tf32, 5e-3, true});
#endif
#endif
}

/// Numbers rounded to an implementation's type.
template <class T>
std::vector<T> rounded(const std::vector<float>& values) {
    std::vector<T> result;
    for (const float value : values)
        result.push_back(static_cast<T>(value));
    return result;
}

/// As floats, which doctest can print.
template <class T>
std::vector<float> floats(const std::vector<T>& values) {
    std::vector<float> result;
    for (const T value : values)
        result.push_back(static_cast<float>(value));
    return result;
}

} // namespace nn_test
