/// \file
/// What stands beside augmentation on CUDA: a copy of as many bytes, and the published chain in three plain kernels.
#pragma once

#include <cuda_runtime.h>

#include <cmath>
#include <string>
#include <vector>

#include "augment.hpp"
#include "support/copy_of_bytes.cuh"
#include "support/cuda_baselines.cuh"

namespace bench {

// Square images of `by_hand_size`, a crop of half of that; a thread a number, but for the first kernel's three.
inline constexpr int by_hand_size = 256;
inline constexpr int by_hand_crop = 128;

/// Crop, enlarge and turn.
static __global__ void turned_by_hand(const std::uint8_t* images, const augment::SampleParameters* samples,
                                      float* out) {
    constexpr int size = by_hand_size;
    constexpr int plane = size * size;
    const int x = static_cast<int>(threadIdx.x);
    const int y = static_cast<int>(blockIdx.x);
    const augment::SampleParameters sample = samples[blockIdx.y];
    const float middle = 0.5f * (size - 1);
    __shared__ float sine;
    __shared__ float cosine;
    if (x == 0)
        sincospif(sample.angle_degrees / 180.0f, &sine, &cosine);
    __syncthreads();
    const float right = static_cast<float>(x) - middle;
    const float down = static_cast<float>(y) - middle;
    const float column = rintf(cosine * right - sine * down + middle);
    const float row = rintf(sine * right + cosine * down + middle);
    const bool inside = column >= 0 && column < size && row >= 0 && row < size;
    const auto source = [](float place) { // in the crop
        const float found = (place + 0.5f) * (1.0f * by_hand_crop / size) - 0.5f;
        return fminf(fmaxf(found, 0.0f), by_hand_crop - 1.0f);
    };
    const float from_x = source(inside ? column : 0.0f);
    const float from_y = source(inside ? row : 0.0f);
    const int x0 = static_cast<int>(from_x);
    const int y0 = static_cast<int>(from_y);
    const int x1 = min(x0 + 1, by_hand_crop - 1);
    const int y1 = min(y0 + 1, by_hand_crop - 1);
    const float part_x = from_x - static_cast<float>(x0);
    const float part_y = from_y - static_cast<float>(y0);
    for (int c = 0; c < 3; ++c) {
        const std::size_t at =
            (static_cast<std::size_t>(blockIdx.y) * 3 + static_cast<std::size_t>(c)) * plane;
        const std::uint8_t* const image = images + at + sample.top * size + sample.left;
        const auto value = [&](int i, int j) { return static_cast<float>(image[i * size + j]); };
        const float above = value(y0, x0) + part_x * (value(y0, x1) - value(y0, x0));
        const float below = value(y1, x0) + part_x * (value(y1, x1) - value(y1, x0));
        out[at + static_cast<std::size_t>(y * size + x)] = inside ? above + part_y * (below - above) : 0.0f;
    }
}

/// One direction of the blur, reflected at the edges. The second also normalises.
template <bool along_rows>
static __global__ void blurred_by_hand(const float* in, const augment::SampleParameters* samples, float mean,
                                       float deviation, float* out) {
    constexpr int size = by_hand_size;
    constexpr int half = 3;
    const int x = static_cast<int>(threadIdx.x);
    const int y = static_cast<int>(blockIdx.x);
    const std::size_t plane = static_cast<std::size_t>(blockIdx.y) * size * size;
    __shared__ float weights[2 * half + 1];
    if (x <= 2 * half) {
        const float distance = static_cast<float>(x - half) / samples[blockIdx.y / 3].sigma;
        weights[x] = expf(-0.5f * distance * distance);
    }
    __syncthreads();
    const auto reflected = [](int i) { return i < 0 ? -i : (i < size ? i : 2 * (size - 1) - i); };
    float sum = 0.0f;
    float total = 0.0f;
#pragma unroll
    for (int k = -half; k <= half; ++k) {
        const float weight = weights[k + half];
        const int from = along_rows ? y * size + reflected(x + k) : reflected(y + k) * size + x;
        sum += weight * in[plane + static_cast<std::size_t>(from)];
        total += weight;
    }
    out[plane + static_cast<std::size_t>(y * size + x)] = (sum / total - mean) / deviation;
}

/// The published chain on as many images as its baseline has, with the parameters that it draws.
class ChainByHand {
public:
    /// Throws `sluice::Error` unless it gives what `augment::apply` gives, ties of the rotation aside.
    explicit ChainByHand(int images)
        : expected_(images, augment::published_chain()), parameters_(expected_.batch().count),
          turned_(expected_.results().size()), rows_(turned_.size()), results_(turned_.size()) {
        augment::write_parameters(expected_.stream(), expected_.batch().parameters(), parameters_.span());
        expected_.step();
        expected_.sync();
        step();
        sync();
        std::vector<float> own(results_.size());
        std::vector<float> wanted(results_.size());
        sluice::copy_and_wait(expected_.stream(), own, results_);
        sluice::copy_and_wait(expected_.stream(), wanted, expected_.results());
        double error = 0.0;
        for (std::size_t i = 0; i < own.size(); ++i)
            error += std::abs(static_cast<double>(own[i]) - static_cast<double>(wanted[i]));
        error /= static_cast<double>(own.size());
        if (!(error < 0.05)) // of 0 … 255
            throw sluice::Error("the chain by hand is off by " + std::to_string(error) + " on average");
    }
    ChainByHand(const ChainByHand&) = delete;
    ChainByHand& operator=(const ChainByHand&) = delete;
    ~ChainByHand() { cudaStreamDestroy(stream_); }

    void step() {
        const auto images = static_cast<unsigned>(parameters_.size());
        const augment::SampleParameters* const samples = parameters_.data();
        turned_by_hand<<<dim3(by_hand_size, images), by_hand_size, 0, stream_>>>(
            expected_.batch().bytes.data(), samples, turned_.data());
        const dim3 planes(by_hand_size, 3 * images);
        blurred_by_hand<true>
            <<<planes, by_hand_size, 0, stream_>>>(turned_.data(), samples, 0.0f, 1.0f, rows_.data());
        blurred_by_hand<false>
            <<<planes, by_hand_size, 0, stream_>>>(rows_.data(), samples, 0.0f, 1.0f, results_.data());
        CHECK(cudaGetLastError());
    }
    void sync() { CHECK(cudaStreamSynchronize(stream_)); }

private:
    AugmentSubject<sluice::Cuda, float, augment::PublishedChain> expected_;
    sluice::DeviceBuffer<augment::SampleParameters, sluice::Cuda> parameters_;
    sluice::DeviceBuffer<float, sluice::Cuda> turned_;
    sluice::DeviceBuffer<float, sluice::Cuda> rows_;
    sluice::DeviceBuffer<float, sluice::Cuda> results_;
    cudaStream_t stream_ = make_stream();
};

} // namespace bench
