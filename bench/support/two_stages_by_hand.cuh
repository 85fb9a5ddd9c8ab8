/// \file
/// Baselines of two stages with any number of slots, written by hand on the runtime API: launch by launch, and as graphs
/// of several steps. A stage is called as `stage(cudaStream_t)` and checks its own launches.
#pragma once

#include <cuda_runtime.h>

#include <cstddef>
#include <vector>

#include "cuda_baselines.cuh"

namespace bench {

struct EmptyStage {
    void operator()(cudaStream_t stream) const {
        empty_kernel<<<1, 1, 0, stream>>>();
        CHECK(cudaGetLastError());
    }
};

/// Events without timing.
class Events {
public:
    explicit Events(int count) : events_(static_cast<std::size_t>(count)) {
        for (cudaEvent_t& event : events_)
            event = make_event();
    }
    Events(const Events&) = delete;
    Events& operator=(const Events&) = delete;
    ~Events() {
        for (const cudaEvent_t event : events_)
            cudaEventDestroy(event);
    }
    cudaEvent_t operator[](int slot) const { return events_[static_cast<std::size_t>(slot)]; }

private:
    std::vector<cudaEvent_t> events_;
};

/// A stream each, and two events a slot.
template <class First, class Last>
class LaunchesByHand {
public:
    LaunchesByHand(int slots, First first, Last last)
        : slots_(slots), first_(first), last_(last), ready_(slots), free_(slots) {}
    LaunchesByHand(const LaunchesByHand&) = delete;
    LaunchesByHand& operator=(const LaunchesByHand&) = delete;
    ~LaunchesByHand() {
        cudaStreamDestroy(producer_);
        cudaStreamDestroy(consumer_);
    }

    void step() {
        // A wait for an event that was never recorded passes, so the first lap needs no case of its own.
        CHECK(cudaStreamWaitEvent(producer_, free_[slot_]));
        first_(producer_);
        CHECK(cudaEventRecord(ready_[slot_], producer_));
        CHECK(cudaStreamWaitEvent(consumer_, ready_[slot_]));
        last_(consumer_);
        CHECK(cudaEventRecord(free_[slot_], consumer_));
        slot_ = slot_ + 1 == slots_ ? 0 : slot_ + 1;
    }
    void sync() {
        CHECK(cudaStreamSynchronize(producer_));
        CHECK(cudaStreamSynchronize(consumer_));
    }

private:
    int slots_;
    int slot_ = 0;
    First first_;
    Last last_;
    cudaStream_t producer_ = make_stream();
    cudaStream_t consumer_ = make_stream();
    Events ready_;
    Events free_;
};

/// `steps` steps are one graph, with the waits between them inside, launched when as many have come. There must be a
/// multiple of them before each synchronisation, and of the slots in them.
template <class First, class Last>
class GraphByHand {
public:
    GraphByHand(int slots, int steps, First first, Last last) : steps_(steps) {
        const cudaStream_t consumer = make_stream();
        {
            const Events ready(slots);
            const Events free(slots);
            const cudaEvent_t joined = make_event();
            CHECK(cudaStreamBeginCapture(stream_, cudaStreamCaptureModeThreadLocal));
            for (int step = 0; step < steps; ++step) {
                const int slot = step % slots;
                if (step >= slots)
                    CHECK(cudaStreamWaitEvent(stream_, free[slot]));
                first(stream_);
                CHECK(cudaEventRecord(ready[slot], stream_));
                CHECK(cudaStreamWaitEvent(consumer, ready[slot]));
                last(consumer);
                CHECK(cudaEventRecord(free[slot], consumer));
            }
            CHECK(cudaEventRecord(joined, consumer));
            CHECK(cudaStreamWaitEvent(stream_, joined));
            cudaGraph_t graph = nullptr;
            CHECK(cudaStreamEndCapture(stream_, &graph));
            CHECK(cudaGraphInstantiate(&executable_, graph, 0));
            CHECK(cudaGraphDestroy(graph));
            CHECK(cudaEventDestroy(joined));
        }
        CHECK(cudaStreamDestroy(consumer));
        CHECK(cudaGraphUpload(executable_, stream_));
        CHECK(cudaStreamSynchronize(stream_));
    }
    GraphByHand(const GraphByHand&) = delete;
    GraphByHand& operator=(const GraphByHand&) = delete;
    ~GraphByHand() {
        cudaGraphExecDestroy(executable_);
        cudaStreamDestroy(stream_);
    }

    void step() {
        if (++held_ < steps_)
            return;
        held_ = 0;
        CHECK(cudaGraphLaunch(executable_, stream_));
    }
    void sync() { CHECK(cudaStreamSynchronize(stream_)); }

private:
    int steps_;
    int held_ = 0;
    cudaStream_t stream_ = make_stream();
    cudaGraphExec_t executable_ = nullptr;
};

} // namespace bench
