/// \file
/// Choosing, by trial, how a product is computed on a device.
#pragma once

#include <algorithm>
#include <array>
#include <limits>
#include <map>
#include <mutex>
#include <utility>
#include <vector>

#include <nn/gemm/detail/gemm_cublaslt.hpp>
#include <sluice/memory/buffer.hpp>
#include <sluice/memory/copy.hpp>

namespace nn::detail {

/// A choice, and what cuBLASLt needs for it.
struct GemmPlan {
    GemmChoice choice;
    LtPlan lt;
};

/// An event that takes the time.
class TimingEvent {
public:
    TimingEvent() { SLUICE_CUDA_CHECK(cudaEventCreate(&native_)); }
    TimingEvent(TimingEvent&&) = delete;
    ~TimingEvent() { (void)cudaEventDestroy(native_); }

    void record(sluice::CudaStreamRef stream) { SLUICE_CUDA_CHECK(cudaEventRecord(native_, stream.get())); }
    float milliseconds_since(const TimingEvent& begin) const {
        float result = 0.0f;
        SLUICE_CUDA_CHECK(cudaEventElapsedTime(&result, begin.native_, native_));
        return result;
    }

private:
    cudaEvent_t native_ = nullptr;
};

/// Lets this thread allocate while another thread captures.
class RelaxedCapture {
public:
    RelaxedCapture() { SLUICE_CUDA_CHECK(cudaThreadExchangeStreamCaptureMode(&mode_)); }
    RelaxedCapture(RelaxedCapture&&) = delete;
    ~RelaxedCapture() { (void)cudaThreadExchangeStreamCaptureMode(&mode_); }

private:
    cudaStreamCaptureMode mode_ = cudaStreamCaptureModeRelaxed;
};

/// The median time of `work(stream)` when nothing that it reads is in the cache.
template <class Work>
float cold_milliseconds(sluice::CudaStreamRef stream,
                        sluice::DeviceBuffer<unsigned char, sluice::Cuda>& flush, const Work& work) {
    TimingEvent begin;
    TimingEvent end;
    std::array<float, 5> times{};
    work(stream);
    for (float& time : times) {
        sluice::fill_bytes(stream, flush, 0);
        begin.record(stream);
        work(stream);
        end.record(stream);
        stream.sync();
        time = end.milliseconds_since(begin);
    }
    std::nth_element(times.begin(), times.begin() + 2, times.end());
    return times[2];
}

/// The fastest of `choices`, each run by `run(stream, plan)`. Those that fail are passed over.
template <class Run>
GemmChoice fastest(const GemmKey& key, const std::vector<GemmChoice>& choices, const Run& run) {
    const sluice::CudaStream stream;
    sluice::DeviceBuffer<unsigned char, sluice::Cuda> flush(std::size_t{128} << 20);
    const GemmChoice* best = &choices.front();
    float least = std::numeric_limits<float>::max();
    for (const GemmChoice& choice : choices) {
        GemmPlan plan{choice, lt_plan(key, choice)};
        try {
            const float time =
                cold_milliseconds(stream.ref(), flush, [&](sluice::CudaStreamRef on) { run(on, plan); });
            if (time < least) {
                least = time;
                best = &choice;
            }
        } catch (const sluice::Error&) {
            stream.sync();
        }
    }
    return *best;
}

/// The algorithms that this process has tuned, so that all objects of a device use the same.
struct AutotunedChoices {
    std::mutex mutex;
    std::map<std::pair<int, GemmKey>, GemmChoice> choices;

    static AutotunedChoices& instance() {
        static AutotunedChoices shared;
        return shared;
    }
};

} // namespace nn::detail
