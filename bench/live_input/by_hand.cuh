/// \file
/// The rows of live_input by hand on the runtime API. In one file only.
#pragma once

#include <cuda_runtime.h>

#include <cstddef>
#include <cstdint>
#include <vector>

#include "cuda_kit.cuh"

namespace bench::live {

namespace {

cudaStream_t make_stream() {
    cudaStream_t stream = nullptr;
    check(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    return stream;
}

/// Events without timing.
class Events {
public:
    explicit Events(std::size_t count) : events_(count) {
        for (cudaEvent_t& event : events_)
            check(cudaEventCreateWithFlags(&event, cudaEventDisableTiming));
    }
    Events(const Events&) = delete;
    Events& operator=(const Events&) = delete;
    ~Events() {
        for (const cudaEvent_t event : events_)
            (void)cudaEventDestroy(event);
    }
    cudaEvent_t operator[](std::size_t place) const { return events_[place]; }

private:
    std::vector<cudaEvent_t> events_;
};

/// Two streams, two slots, and an event behind each of as many batches as may be under way.
class OverloadedByHand final : public Subject {
public:
    OverloadedByHand(const CudaKit& kit, std::size_t bound, bool tries)
        : kit_(kit), bound_(bound), tries_(tries), done_(bound) {
        for (std::uint32_t*& slot : slots_)
            check(cudaMalloc(&slot, sizeof *slot));
    }
    OverloadedByHand(const OverloadedByHand&) = delete;
    OverloadedByHand& operator=(const OverloadedByHand&) = delete;
    ~OverloadedByHand() override {
        finish();
        for (const cudaStream_t stream : {grab_, infer_})
            (void)cudaStreamDestroy(stream);
        for (std::uint32_t* slot : slots_)
            (void)cudaFree(slot);
    }
    bool take(const Frame& frame) override {
        const std::size_t place = bound_ > 0 ? counts_.submitted % bound_ : 0;
        // Of an event that was never recorded all is done.
        if (tries_) {
            const cudaError_t room = cudaEventQuery(done_[place]);
            if (room == cudaErrorNotReady) {
                ++counts_.dropped;
                return false;
            }
            check(room);
        } else if (bound_ > 0) {
            check(cudaEventSynchronize(done_[place]));
        }
        const std::size_t slot = counts_.submitted % 2;
        check(cudaStreamWaitEvent(grab_, free_[slot]));
        kit_.grab(grab_, frame, slots_[slot]);
        check(cudaGetLastError());
        check(cudaEventRecord(ready_[slot], grab_));
        check(cudaStreamWaitEvent(infer_, ready_[slot]));
        kit_.infer(infer_, slots_[slot]);
        check(cudaGetLastError());
        check(cudaEventRecord(free_[slot], infer_));
        if (bound_ > 0)
            check(cudaEventRecord(done_[place], infer_));
        ++counts_.submitted;
        return true;
    }
    void finish() override {
        check(cudaStreamSynchronize(grab_));
        check(cudaStreamSynchronize(infer_));
        counts_.completed = counts_.submitted;
    }
    Counts counts() override { return counts_; }

private:
    const CudaKit& kit_;
    std::size_t bound_;
    bool tries_;
    cudaStream_t grab_ = make_stream(), infer_ = make_stream();
    Events ready_{2}, free_{2}, done_;
    std::uint32_t* slots_[2] = {};
    Counts counts_;
};

/// A chain of small stages: on one stream, on a stream each with two events a slot, or as graphs. With two slots and one batch under
/// way, a slot has a graph of its own, and an event behind the last launch says when the next may begin.
class PacedByHand final : public Subject {
public:
    enum Way : std::size_t { serial, overlapped, one_graph, graph_a_slot, graph_each_stage };

    PacedByHand(const CudaKit& kit, std::size_t stages, Way way) : kit_(kit), way_(way), stages_(stages) {
        for (std::size_t stage = 0; stage < (way == overlapped || way == graph_each_stage ? stages : 1);
             ++stage)
            streams_.push_back(make_stream());
        if (way == one_graph || way == graph_a_slot) {
            for (std::size_t slot = 0; slot < (way == one_graph ? 1 : 2); ++slot)
                graphs_.push_back(capture(0, stages));
        } else if (way == graph_each_stage) {
            for (std::size_t stage = 0; stage < stages; ++stage)
                graphs_.push_back(capture(stage, stage + 1));
        }
    }
    PacedByHand(const PacedByHand&) = delete;
    PacedByHand& operator=(const PacedByHand&) = delete;
    ~PacedByHand() override {
        finish();
        for (const cudaGraphExec_t graph : graphs_)
            (void)cudaGraphExecDestroy(graph);
        for (const cudaStream_t stream : streams_)
            (void)cudaStreamDestroy(stream);
    }
    bool take(const Frame& /*frame*/) override {
        if (way_ == one_graph)
            check(cudaGraphLaunch(graphs_[0], streams_[0]));
        if (way_ == graph_a_slot) {
            check(cudaEventSynchronize(free_[0]));
            check(cudaGraphLaunch(graphs_[counts_.submitted % 2], streams_[0]));
            check(cudaEventRecord(free_[0], streams_[0]));
        }
        for (std::size_t stage = 0; way_ == serial && stage < stages_; ++stage)
            launch(stage, streams_[0]);
        for (std::size_t stage = 0; streams_.size() > 1 && stage < stages_; ++stage) {
            const cudaStream_t stream = streams_[stage];
            const std::size_t slot = 2 * stage + counts_.submitted % 2;
            if (stage + 1 < stages_)
                check(cudaStreamWaitEvent(stream, free_[slot]));
            if (stage > 0)
                check(cudaStreamWaitEvent(stream, ready_[slot - 2]));
            if (way_ == graph_each_stage)
                check(cudaGraphLaunch(graphs_[stage], stream));
            else
                launch(stage, stream);
            if (stage > 0)
                check(cudaEventRecord(free_[slot - 2], stream));
            if (stage + 1 < stages_)
                check(cudaEventRecord(ready_[slot], stream));
        }
        ++counts_.submitted;
        return true;
    }
    void finish() override {
        for (const cudaStream_t stream : streams_)
            check(cudaStreamSynchronize(stream));
        counts_.completed = counts_.submitted;
    }
    Counts counts() override { return counts_; }

private:
    void launch(std::size_t stage, cudaStream_t stream) const {
        kit_.tiny(stream, stage, stage + 1 == stages_);
        check(cudaGetLastError());
    }
    cudaGraphExec_t capture(std::size_t begin, std::size_t end) const {
        const cudaStream_t stream = streams_[0];
        check(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
        for (std::size_t stage = begin; stage < end; ++stage)
            launch(stage, stream);
        cudaGraph_t graph = nullptr;
        cudaGraphExec_t executable = nullptr;
        check(cudaStreamEndCapture(stream, &graph));
        check(cudaGraphInstantiate(&executable, graph, 0));
        check(cudaGraphDestroy(graph));
        return executable;
    }

    const CudaKit& kit_;
    Way way_;
    std::size_t stages_;
    std::vector<cudaStream_t> streams_;
    std::vector<cudaGraphExec_t> graphs_;
    Events ready_{8}, free_{8};
    Counts counts_;
};

/// Two empty stages, as in pipeline_overhead.
class StepsByHand {
public:
    explicit StepsByHand(const CudaKit& kit) : kit_(kit) {}
    StepsByHand(const StepsByHand&) = delete;
    StepsByHand& operator=(const StepsByHand&) = delete;
    ~StepsByHand() {
        (void)cudaStreamDestroy(first_);
        (void)cudaStreamDestroy(last_);
    }
    void step() {
        const std::size_t slot = step_++ % 2;
        check(cudaStreamWaitEvent(first_, free_[slot]));
        kit_.empty(first_);
        check(cudaGetLastError());
        check(cudaEventRecord(ready_[slot], first_));
        check(cudaStreamWaitEvent(last_, ready_[slot]));
        kit_.empty(last_);
        check(cudaGetLastError());
        check(cudaEventRecord(free_[slot], last_));
    }
    void sync() {
        check(cudaStreamSynchronize(first_));
        check(cudaStreamSynchronize(last_));
    }

private:
    const CudaKit& kit_;
    cudaStream_t first_ = make_stream(), last_ = make_stream();
    Events ready_{2}, free_{2};
    std::size_t step_ = 0;
};

} // namespace

} // namespace bench::live
