/// \file
/// What the hand-written baselines of the benchmarks share.
#pragma once

#include <benchmark/benchmark.h>
#include <cuda_runtime.h>

#include <cstdio>
#include <cstdlib>
#include <string>

#include <sluice/backend/cuda.hpp>

namespace bench {

[[noreturn]] inline void fail(cudaError_t error, const char* call, const char* file, int line) {
    std::fprintf(stderr, "%s:%d: %s: %s\n", file, line, call, cudaGetErrorString(error));
    std::exit(EXIT_FAILURE);
}

#define CHECK(call)                                                                                          \
    do {                                                                                                     \
        const cudaError_t check_error = (call);                                                              \
        if (check_error != cudaSuccess)                                                                      \
            bench::fail(check_error, #call, __FILE__, __LINE__);                                             \
    } while (false)

/// Adds the device and the versions of CUDA to the context that is printed. False, with a word, where there is no
/// device.
inline bool describe_device() {
    using sluice::Cuda;
    if (Cuda::device_count() == 0) {
        std::fprintf(stderr, "There is no CUDA device: the cuda benchmarks are left out.\n");
        return false;
    }
    int runtime = 0;
    int driver = 0;
    CHECK(cudaRuntimeGetVersion(&runtime));
    CHECK(cudaDriverGetVersion(&driver));
    benchmark::AddCustomContext("device", Cuda::device_name(Cuda::current_device()));
    benchmark::AddCustomContext("cuda_runtime", std::to_string(runtime));
    benchmark::AddCustomContext("cuda_driver", std::to_string(driver));
    return true;
}

static __global__ void empty_kernel() {}

inline cudaStream_t make_stream() {
    cudaStream_t stream = nullptr;
    CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    return stream;
}

inline cudaEvent_t make_event() {
    cudaEvent_t event = nullptr;
    CHECK(cudaEventCreateWithFlags(&event, cudaEventDisableTiming));
    return event;
}

/// Two stages, two streams, two slots, one launch at a time.
class OverlappedBaseline {
public:
    OverlappedBaseline() = default;
    OverlappedBaseline(const OverlappedBaseline&) = delete;
    OverlappedBaseline& operator=(const OverlappedBaseline&) = delete;
    ~OverlappedBaseline() {
        for (int slot = 0; slot < 2; ++slot) {
            cudaEventDestroy(ready_[slot]);
            cudaEventDestroy(free_[slot]);
        }
        cudaStreamDestroy(producer_);
        cudaStreamDestroy(consumer_);
    }

    void step() {
        const int slot = step_ % 2;
        // A wait for an event that was never recorded passes, so the first lap needs no case of its own.
        CHECK(cudaStreamWaitEvent(producer_, free_[slot]));
        empty_kernel<<<1, 1, 0, producer_>>>();
        CHECK(cudaGetLastError());
        CHECK(cudaEventRecord(ready_[slot], producer_));

        CHECK(cudaStreamWaitEvent(consumer_, ready_[slot]));
        empty_kernel<<<1, 1, 0, consumer_>>>();
        CHECK(cudaGetLastError());
        CHECK(cudaEventRecord(free_[slot], consumer_));
        ++step_;
    }
    void sync() {
        CHECK(cudaStreamSynchronize(producer_));
        CHECK(cudaStreamSynchronize(consumer_));
    }

private:
    cudaStream_t producer_ = make_stream();
    cudaStream_t consumer_ = make_stream();
    cudaEvent_t ready_[2] = {make_event(), make_event()};
    cudaEvent_t free_[2] = {make_event(), make_event()};
    int step_ = 0;
};

} // namespace bench
