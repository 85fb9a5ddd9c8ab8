/// \file
/// Graphs on CUDA through sluice, beside the same written by hand on the runtime API. See graph_overhead.hpp.
///
/// The baselines are what a careful author writes: every result is compared with `cudaSuccess`, graphs are made and
/// uploaded once. They capture without a guard, know one key only, do not look after the current device, and
/// notice no wrong order of calls.
#include "graph_overhead.hpp"

#include <cuda_runtime.h>

#include "support/cuda_baselines.cuh"
#include "support/two_stages_by_hand.cuh"

namespace {

using bench::empty_kernel;
using bench::make_event;
using bench::make_stream;

struct LaunchKernel {
    static void enqueue(cudaStream_t stream) { empty_kernel<<<1, 1, 0, stream>>>(); }
};

/// One more of `limit` steps; see WhileWork.
__global__ void count_kernel(unsigned* counted, unsigned limit, sluice::ConditionSetter again) {
    if (again.get() == 0)
        return;
    const bool more = *counted + 1 < limit;
    *counted = more ? *counted + 1 : 0;
    again.set(more);
}

struct LaunchCount {
    static void enqueue(cudaStream_t stream, unsigned* counted, unsigned limit,
                        sluice::ConditionSetter again) {
        count_kernel<<<1, 1, 0, stream>>>(counted, limit, again);
    }
};

/// An executable that is launched on a stream of its own.
class GraphBaseline {
public:
    /// Takes the graph over.
    explicit GraphBaseline(cudaGraph_t graph) {
        CHECK(cudaGraphInstantiate(&executable_, graph, 0));
        CHECK(cudaGraphDestroy(graph));
        CHECK(cudaGraphUpload(executable_, stream_));
        CHECK(cudaStreamSynchronize(stream_));
    }
    GraphBaseline(const GraphBaseline&) = delete;
    GraphBaseline& operator=(const GraphBaseline&) = delete;
    ~GraphBaseline() {
        cudaGraphExecDestroy(executable_);
        cudaStreamDestroy(stream_);
    }

    void step() { CHECK(cudaGraphLaunch(executable_, stream_)); }
    void sync() { CHECK(cudaStreamSynchronize(stream_)); }

private:
    cudaStream_t stream_ = make_stream();
    cudaGraphExec_t executable_ = nullptr;
};

/// What `work(stream)` enqueues.
template <class Work>
cudaGraph_t captured(Work work) {
    const cudaStream_t stream = make_stream();
    CHECK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
    work(stream);
    cudaGraph_t graph = nullptr;
    CHECK(cudaStreamEndCapture(stream, &graph));
    CHECK(cudaStreamDestroy(stream));
    return graph;
}

cudaGraph_t chain_graph(int length) {
    return captured([length](cudaStream_t stream) {
        for (int link = 0; link < length; ++link) {
            empty_kernel<<<1, 1, 0, stream>>>();
            CHECK(cudaGetLastError());
        }
    });
}

/// Two stages and two slots: a step is one graph, in which the first stage fills one slot while the last stage reads
/// the other, which the step before has filled.
class TwoGraphsBaseline {
public:
    TwoGraphsBaseline() {
        for (cudaGraphExec_t& executable : executables_) {
            const cudaGraph_t graph = forked_graph();
            CHECK(cudaGraphInstantiate(&executable, graph, 0));
            CHECK(cudaGraphDestroy(graph));
            CHECK(cudaGraphUpload(executable, stream_));
        }
        CHECK(cudaStreamSynchronize(stream_));
    }
    TwoGraphsBaseline(const TwoGraphsBaseline&) = delete;
    TwoGraphsBaseline& operator=(const TwoGraphsBaseline&) = delete;
    ~TwoGraphsBaseline() {
        for (const cudaGraphExec_t executable : executables_)
            cudaGraphExecDestroy(executable);
        cudaStreamDestroy(stream_);
    }

    void step() {
        CHECK(cudaGraphLaunch(executables_[step_ % 2], stream_));
        ++step_;
    }
    void sync() { CHECK(cudaStreamSynchronize(stream_)); }

private:
    static cudaGraph_t forked_graph() {
        const cudaStream_t consumer = make_stream();
        const cudaEvent_t forked = make_event();
        const cudaEvent_t joined = make_event();
        const cudaGraph_t graph = captured([&](cudaStream_t producer) {
            CHECK(cudaEventRecord(forked, producer));
            CHECK(cudaStreamWaitEvent(consumer, forked));
            empty_kernel<<<1, 1, 0, producer>>>();
            CHECK(cudaGetLastError());
            empty_kernel<<<1, 1, 0, consumer>>>();
            CHECK(cudaGetLastError());
            CHECK(cudaEventRecord(joined, consumer));
            CHECK(cudaStreamWaitEvent(producer, joined));
        });
        CHECK(cudaEventDestroy(forked));
        CHECK(cudaEventDestroy(joined));
        CHECK(cudaStreamDestroy(consumer));
        return graph;
    }

    cudaStream_t stream_ = make_stream();
    cudaGraphExec_t executables_[2] = {};
    unsigned step_ = 0;
};

/// The memory that counting needs.
struct Counter {
    Counter() {
        CHECK(cudaMalloc(&counted, sizeof(unsigned)));
        CHECK(cudaMalloc(&again, sizeof(unsigned)));
        CHECK(cudaMemset(counted, 0, sizeof(unsigned)));
        CHECK(cudaDeviceSynchronize());
    }
    Counter(const Counter&) = delete;
    Counter& operator=(const Counter&) = delete;
    ~Counter() {
        cudaFree(counted);
        cudaFree(again);
    }
    unsigned* counted = nullptr;
    unsigned* again = nullptr;
};

/// Asks the device after every `unroll` kernels whether to go on.
class ReadbackBaseline {
public:
    ReadbackBaseline(unsigned limit, int unroll) : limit_(limit), unroll_(unroll) {
        CHECK(cudaHostAlloc(&seen_, sizeof(unsigned), cudaHostAllocDefault));
    }
    ReadbackBaseline(const ReadbackBaseline&) = delete;
    ReadbackBaseline& operator=(const ReadbackBaseline&) = delete;
    ~ReadbackBaseline() {
        cudaFreeHost(seen_);
        cudaStreamDestroy(stream_);
    }

    void step() {
        CHECK(cudaMemsetAsync(counter_.again, 1, sizeof(unsigned), stream_));
        do {
            for (int time = 0; time < unroll_; ++time) {
                count_kernel<<<1, 1, 0, stream_>>>(counter_.counted, limit_, {counter_.again, 0});
                CHECK(cudaGetLastError());
            }
            CHECK(cudaMemcpyAsync(seen_, counter_.again, sizeof(unsigned), cudaMemcpyDeviceToHost, stream_));
            CHECK(cudaStreamSynchronize(stream_));
        } while (*seen_ != 0);
    }
    void sync() { CHECK(cudaStreamSynchronize(stream_)); }

private:
    unsigned limit_;
    int unroll_;
    cudaStream_t stream_ = make_stream();
    Counter counter_;
    unsigned* seen_ = nullptr;
};

#if CUDART_VERSION >= 12040

/// A graph of two nodes: one that sets the word, and a loop of `unroll` kernels.
cudaGraph_t while_graph(const Counter& counter, unsigned limit, int unroll) {
    cudaGraph_t graph = nullptr;
    CHECK(cudaGraphCreate(&graph, 0));
    cudaGraphConditionalHandle handle = 0;
    CHECK(cudaGraphConditionalHandleCreate(&handle, graph, 1, cudaGraphCondAssignDefault));

    cudaMemsetParams fill{};
    fill.dst = counter.again;
    fill.value = 1;
    fill.elementSize = sizeof(unsigned);
    fill.width = 1;
    fill.height = 1;
    cudaGraphNode_t filled = nullptr;
    CHECK(cudaGraphAddMemsetNode(&filled, graph, nullptr, 0, &fill));

    cudaGraphNodeParams loop{};
    loop.type = cudaGraphNodeTypeConditional;
    loop.conditional.handle = handle;
    loop.conditional.type = cudaGraphCondTypeWhile;
    loop.conditional.size = 1;
    cudaGraphNode_t node = nullptr;
#if CUDART_VERSION >= 13000
    CHECK(cudaGraphAddNode(&node, graph, &filled, nullptr, 1, &loop));
#else
    CHECK(cudaGraphAddNode(&node, graph, &filled, 1, &loop));
#endif

    cudaGraph_t body = loop.conditional.phGraph_out[0];
    const cudaStream_t stream = make_stream();
    CHECK(cudaStreamBeginCaptureToGraph(stream, body, nullptr, nullptr, 0, cudaStreamCaptureModeThreadLocal));
    for (int time = 0; time < unroll; ++time) {
        count_kernel<<<1, 1, 0, stream>>>(counter.counted, limit, {counter.again, handle});
        CHECK(cudaGetLastError());
    }
    CHECK(cudaStreamEndCapture(stream, &body));
    CHECK(cudaStreamDestroy(stream));
    return graph;
}

class WhileBaseline {
public:
    WhileBaseline(unsigned limit, int unroll) : graph_(while_graph(counter_, limit, unroll)) {}
    void step() { graph_.step(); }
    void sync() { graph_.sync(); }

private:
    Counter counter_;
    GraphBaseline graph_;
};

#endif

} // namespace

void bench::add_cuda_benchmarks() {
    using sluice::Cuda;
    using sluice::Schedule;
    if (!describe_device())
        return;

    for (const int length : {100, 1000})
        add_chain<Cuda, LaunchKernel>("cuda", length,
                                      [](int links) { return GraphBaseline{chain_graph(links)}; });
    add_two_stage<Cuda, LaunchKernel>("cuda/two_stage/graphed/beside_launches", Schedule::graphed,
                                      [] { return OverlappedBaseline{}; });
    add_two_stage<Cuda, LaunchKernel>("cuda/two_stage/graphed/beside_graphs", Schedule::graphed,
                                      [] { return TwoGraphsBaseline{}; });
    const EmptyStage empty;
    add_two_stage<Cuda, LaunchKernel>(
        "cuda/two_stage/graphed:16/beside_launches", Schedule::graphed, [] { return OverlappedBaseline{}; },
        16);
    add_two_stage<Cuda, LaunchKernel>(
        "cuda/two_stage/graphed:16/beside_graphs", Schedule::graphed,
        [empty] {
            return GraphByHand{2, 16, empty, empty};
        },
        16);
#if CUDART_VERSION >= 12040
    int driver = 0;
    CHECK(cudaDriverGetVersion(&driver));
    if (driver < 12040) {
        std::fprintf(stderr, "The driver knows no conditional nodes: the loops are left out.\n");
        return;
    }
    for (const int unroll : {1, 4}) {
        add_while<Cuda, LaunchCount>("cuda", "/beside_readback", 1000, unroll, [](unsigned limit, int each) {
            return ReadbackBaseline{limit, each};
        });
        add_while<Cuda, LaunchCount>("cuda", "/beside_graph", 1000, unroll, [](unsigned limit, int each) {
            return WhileBaseline{limit, each};
        });
    }
#endif
}
