/// \file
/// Host time of one step of a pipeline on CUDA, with one empty kernel a stage, beside the same step written
/// by hand on the runtime API. See support/main.cpp for how to run it.
///
/// The baselines are what a careful author writes: non-blocking streams, two events a slot without timing, every
/// result compared with `cudaSuccess`, and `cudaGetLastError` after each launch, since `<<<…>>>` returns
/// none. They do not join a caller's stream, name ranges for a profiler, look after the current device, or
/// notice a wrong order of calls; what sluice pays for that is what is measured.
#include "pipeline_overhead.hpp"

#include <cuda_runtime.h>

#include <cstdio>
#include <vector>

#include "support/cuda_baselines.cuh"

namespace {

using bench::empty_kernel;
using bench::make_event;
using bench::make_stream;
using bench::OverlappedBaseline;

struct LaunchKernel {
    static void enqueue(cudaStream_t stream) { empty_kernel<<<1, 1, 0, stream>>>(); }
};

/// Two stages on one stream, which needs no event.
class SerialBaseline {
public:
    SerialBaseline() = default;
    SerialBaseline(const SerialBaseline&) = delete;
    SerialBaseline& operator=(const SerialBaseline&) = delete;
    ~SerialBaseline() { cudaStreamDestroy(stream_); }

    void step() {
        empty_kernel<<<1, 1, 0, stream_>>>();
        CHECK(cudaGetLastError());
        empty_kernel<<<1, 1, 0, stream_>>>();
        CHECK(cudaGetLastError());
    }
    void sync() { CHECK(cudaStreamSynchronize(stream_)); }

private:
    cudaStream_t stream_ = make_stream();
};

/// Any number of stages, a stream each, and any number of slots between neighbours.
class ChainBaseline {
public:
    ChainBaseline(int stages, int slots)
        : streams_(static_cast<std::size_t>(stages)), joints_(streams_.size() - 1) {
        for (cudaStream_t& stream : streams_)
            stream = make_stream();
        for (std::vector<Slot>& joint : joints_)
            joint.assign(static_cast<std::size_t>(slots), {});
        for (std::vector<Slot>& joint : joints_)
            for (Slot& slot : joint)
                slot = {make_event(), make_event()};
    }
    ChainBaseline(const ChainBaseline&) = delete;
    ChainBaseline& operator=(const ChainBaseline&) = delete;
    ~ChainBaseline() {
        for (const std::vector<Slot>& joint : joints_) {
            for (const Slot& slot : joint) {
                cudaEventDestroy(slot.ready);
                cudaEventDestroy(slot.free);
            }
        }
        for (const cudaStream_t stream : streams_)
            cudaStreamDestroy(stream);
    }

    void step() {
        const std::size_t slot = step_ % joints_[0].size();
        for (std::size_t stage = 0; stage < streams_.size(); ++stage) {
            const cudaStream_t stream = streams_[stage];
            Slot* in = stage > 0 ? &joints_[stage - 1][slot] : nullptr;
            Slot* out = stage < joints_.size() ? &joints_[stage][slot] : nullptr;
            if (out != nullptr)
                CHECK(cudaStreamWaitEvent(stream, out->free));
            if (in != nullptr)
                CHECK(cudaStreamWaitEvent(stream, in->ready));
            empty_kernel<<<1, 1, 0, stream>>>();
            CHECK(cudaGetLastError());
            if (in != nullptr)
                CHECK(cudaEventRecord(in->free, stream));
            if (out != nullptr)
                CHECK(cudaEventRecord(out->ready, stream));
        }
        ++step_;
    }
    void sync() {
        for (const cudaStream_t stream : streams_)
            CHECK(cudaStreamSynchronize(stream));
    }

private:
    struct Slot {
        cudaEvent_t ready = nullptr;
        cudaEvent_t free = nullptr;
    };
    std::vector<cudaStream_t> streams_;
    std::vector<std::vector<Slot>> joints_;
    std::size_t step_ = 0;
};

} // namespace

void bench::add_cuda_benchmarks() {
    using sluice::Cuda;
    using sluice::Schedule;
    if (!describe_device())
        return;

    add_two_stage<Cuda, LaunchKernel>("cuda/two_stage/overlapped", Schedule::overlapped,
                                      [] { return OverlappedBaseline{}; });
    add_two_stage<Cuda, LaunchKernel>("cuda/two_stage/serial", Schedule::serial,
                                      [] { return SerialBaseline{}; });
    add_curve<Cuda, LaunchKernel>("cuda", [](int stages, int slots) { return ChainBaseline{stages, slots}; });
}
