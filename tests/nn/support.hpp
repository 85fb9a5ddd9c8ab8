// What the tests of examples/nn share: fresh random data, poisoned outputs, and a measure of error.
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <random>
#include <span>
#include <string>
#include <type_traits>
#include <vector>

#include <nn/core/device.hpp>
#include <nn/gemm/gemm.hpp>
#include <nn/gemm/matrix.hpp>
#include <sluice/sluice.hpp>

#include "support/backend.hpp"
#include "support/doctest.hpp"

namespace nn_test {

using B = sluice::test::TestBackend;
template <class T>
using Buffer = sluice::DeviceBuffer<T, B>;
using Stream = sluice::BasicStream<B>;

/// Whether sizes matter that fill a device's blocks and tiles: the Host backend shows the same with less.
inline constexpr bool on_device = !std::is_same_v<B, sluice::Host>;

/// Both precisions; the Host backend computes the same in either.
#if SLUICE_TEST_CUDA
inline constexpr nn::Precision precisions[] = {nn::Precision::float32, nn::Precision::tf32};
#else
inline constexpr nn::Precision precisions[] = {nn::Precision::tf32};
#endif

/// What is asked of results in float32, and of TF32 products on a device.
inline double tolerance(nn::Precision precision) {
    return precision == nn::Precision::tf32 && std::string(B::name) != "host" ? 1e-2 : 1e-5;
}

/// Random data, new in each run; SLUICE_TEST_SEED repeats a run.
class Random {
public:
    Random() : seed_(chosen_seed()), engine_(seed_) {}

    std::uint64_t seed() const { return seed_; }
    std::size_t between(std::size_t least, std::size_t most) {
        return std::uniform_int_distribution<std::size_t>(least, most)(engine_);
    }
    std::vector<float> numbers(std::size_t count, float scale = 1.0f) {
        std::normal_distribution<float> normal(0.0f, scale);
        std::vector<float> result(count);
        for (float& value : result)
            value = normal(engine_);
        return result;
    }
    std::vector<std::uint8_t> bytes(std::size_t count, std::size_t below = 256) {
        std::vector<std::uint8_t> result(count);
        for (std::uint8_t& value : result)
            value = static_cast<std::uint8_t>(between(0, below - 1));
        return result;
    }

private:
    static std::uint64_t chosen_seed() {
        const char* named = std::getenv("SLUICE_TEST_SEED");
        if (named != nullptr && *named != '\0')
            return std::strtoull(named, nullptr, 10);
        return std::random_device{}();
    }
    std::uint64_t seed_;
    std::mt19937_64 engine_;
};

/// Makes `random`, whose seed is printed when a check fails.
#define NN_TEST_RANDOM(random)                                                                               \
    nn_test::Random random;                                                                                  \
    INFO("SLUICE_TEST_SEED=" << random.seed())

/// Device memory of all ones, which are NaN in floating point: what is not written shows.
template <class T>
Buffer<T> poisoned(const Stream& stream, std::size_t count) {
    Buffer<T> buffer(count);
    sluice::fill_bytes(stream, buffer, 0xFF);
    return buffer;
}

template <class T>
Buffer<T> device(const std::vector<T>& values) {
    return nn::to_device<B>(values);
}

template <class T>
std::vector<T> host(const Stream& stream, const Buffer<T>& values) {
    return nn::to_host(stream.ref(), values);
}

inline nn::Matrix<float, B> matrix(Buffer<float>& buffer, std::size_t rows, std::size_t columns) {
    return {buffer, rows, columns};
}

/// ‖actual - expected‖ / ‖scale‖; NaN where a NaN is.
template <class Actual, class Expected>
double relative_error(const std::vector<Actual>& actual, const std::vector<Expected>& expected,
                      const std::vector<Expected>& scale) {
    REQUIRE(actual.size() == expected.size());
    REQUIRE(scale.size() == expected.size());
    double difference = 0.0;
    double norm = 0.0;
    for (std::size_t i = 0; i < actual.size(); ++i) {
        const double error = static_cast<double>(actual[i]) - static_cast<double>(expected[i]);
        difference += error * error;
        norm += static_cast<double>(scale[i]) * static_cast<double>(scale[i]);
    }
    return norm == 0.0 ? std::sqrt(difference) : std::sqrt(difference / norm);
}

/// ‖actual - expected‖ / ‖expected‖; NaN where a NaN is.
template <class Actual, class Expected>
double relative_error(const std::vector<Actual>& actual, const std::vector<Expected>& expected) {
    return relative_error(actual, expected, expected);
}

/// The text of the sluice::Error that `work` throws.
template <class Work>
std::string error_of(Work&& work) {
    try {
        work();
    } catch (const sluice::Error& error) {
        return error.what();
    }
    return "(no sluice::Error was thrown)";
}

} // namespace nn_test
