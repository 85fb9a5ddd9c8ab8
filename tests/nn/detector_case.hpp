// What the tests of the detector share: small ones of random sizes, 16-bit numbers, and what is asked of
// results.
#pragma once

#include <cstddef>
#include <type_traits>
#include <vector>

#include <nn/core/float16.hpp>
#include <nn/models/detector.hpp>

#include "nn/naive.hpp"
#include "nn/support.hpp"

namespace nn_test {

/// As `precisions`, and bfloat16.
#if SLUICE_TEST_CUDA
inline constexpr nn::Precision all_precisions[] = {nn::Precision::float32, nn::Precision::tf32,
                                                   nn::Precision::bfloat16};
#else
inline constexpr nn::Precision all_precisions[] = {nn::Precision::tf32, nn::Precision::bfloat16};
#endif

inline double forward_tolerance(nn::Precision precision) {
    return precision == nn::Precision::bfloat16 ? 1e-2 : tolerance(precision);
}

/// A small detector. `fused`: of the channels that a device convolves and pools at once in bfloat16.
inline nn::DetectorOptions draw(Random& random, bool fused) {
    nn::DetectorOptions options;
    options.channels = fused ? std::vector<std::size_t>{4, 16, 64} : std::vector<std::size_t>{3, 5};
    const std::size_t step = std::size_t{1} << options.channels.size();
    options.height = step * random.between(2, 4);
    options.width = step * random.between(2, 4);
    options.hidden = random.between(20, 40);
    options.max_boxes = random.between(4, 9);
    options.batch = random.between(3, 5);
    options.image_scale = 1.0f / 64.0f;
    options.box_scale = 4.0f;
    options.learning_rate = 1.0f;
    options.keep_routes = random.between(0, 1) == 1;
    options.seed = random.seed();
    return options;
}

inline std::vector<float> values_of(const std::vector<nn::NamedTensor>& tensors) {
    std::vector<float> result;
    for (const nn::NamedTensor& tensor : tensors)
        result.insert(result.end(), tensor.values.begin(), tensor.values.end());
    return result;
}

template <class T>
std::vector<T> rounded(const std::vector<float>& values) {
    std::vector<T> result;
    for (const float value : values)
        result.push_back(T(value));
    return result;
}

template <class T>
naive::Doubles widened(const std::vector<T>& values) {
    naive::Doubles result;
    for (const T value : values)
        result.push_back(static_cast<double>(static_cast<float>(value)));
    return result;
}

template <class T>
double element_tolerance() {
    return std::is_same_v<T, float> ? 1e-5 : 1e-2;
}

} // namespace nn_test
