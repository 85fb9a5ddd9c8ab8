/// \file
/// Two stages that each keep a whole GPU busy for half a millisecond: on two GPUs, and both on one. A stage between them
/// copies what the second one reads from the first one's GPU to its own.
#include <cuda_runtime.h>

#include <cstddef>
#include <cstdio>
#include <memory>
#include <string>
#include <type_traits>

#include <sluice/sluice.hpp>

#include "pipeline_overhead.hpp"
#include "shapes.hpp"
#include "support/rounds.hpp"
#include "support/two_stages_by_hand.cuh"

namespace {

using sluice::DeviceBuffer;
using sluice::StreamRef;

constexpr unsigned threads = 1024;
constexpr std::size_t each = 4; // elements of a thread
// More than half of a multiprocessor's, so that a block has one to itself: a stage takes all of a GPU.
constexpr int shared_bytes = 120 * 1024;

/// 2 MiB, on a GPU of 132 multiprocessors.
std::size_t count() {
    static const std::size_t elements = [] {
        int multiprocessors = 0;
        CHECK(cudaDeviceGetAttribute(&multiprocessors, cudaDevAttrMultiProcessorCount, 0));
        return static_cast<std::size_t>(multiprocessors) * threads * each;
    }();
    return elements;
}

/// `rounds` multiplications on each element, by one block a multiprocessor.
__global__ void work_kernel(float* values, int rounds) {
    float* const own = values + (std::size_t{blockIdx.x} * blockDim.x + threadIdx.x) * each;
    float value[each];
    for (std::size_t i = 0; i < each; ++i)
        value[i] = own[i];
    for (int round = 0; round < rounds; ++round) {
        for (std::size_t i = 0; i < each; ++i)
            value[i] = value[i] * 0.999f + 0.001f;
    }
    for (std::size_t i = 0; i < each; ++i)
        own[i] = value[i];
}
/// On each device, once.
void let_blocks_have_shared_memory() {
    for (const int device : {1, 0}) {
        CHECK(cudaSetDevice(device));
        CHECK(cudaFuncSetAttribute(work_kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, shared_bytes));
    }
}
void work(cudaStream_t stream, float* values, int rounds) {
    const auto blocks = static_cast<unsigned>(count() / each / threads);
    work_kernel<<<blocks, threads, shared_bytes, stream>>>(values, rounds);
}

/// Rounds that take half a millisecond on the current device.
int rounds_of_half_a_millisecond() {
    constexpr int tried = 10'000;
    DeviceBuffer<float> values(count());
    CHECK(cudaMemset(values.data(), 0, values.bytes()));
    cudaEvent_t start = nullptr;
    cudaEvent_t stop = nullptr;
    CHECK(cudaEventCreate(&start));
    CHECK(cudaEventCreate(&stop));
    float milliseconds = 0;
    for (int time = 0; time < 5; ++time) {
        CHECK(cudaEventRecord(start, nullptr));
        work(nullptr, values.data(), tried);
        CHECK(cudaGetLastError());
        CHECK(cudaEventRecord(stop, nullptr));
        CHECK(cudaEventSynchronize(stop));
        CHECK(cudaEventElapsedTime(&milliseconds, start, stop));
    }
    CHECK(cudaEventDestroy(start));
    CHECK(cudaEventDestroy(stop));
    return static_cast<int>(0.5 / milliseconds * tried);
}

/// Copies between the two devices go directly, where they can.
void let_them_see_each_other() {
    for (const int device : {0, 1}) {
        int can = 0;
        CHECK(cudaDeviceCanAccessPeer(&can, device, 1 - device));
        if (can == 0)
            continue;
        CHECK(cudaSetDevice(device));
        const cudaError_t error = cudaDeviceEnablePeerAccess(1 - device, 0);
        if (error == cudaErrorPeerAccessAlreadyEnabled)
            (void)cudaGetLastError();
        else
            CHECK(error);
    }
    CHECK(cudaSetDevice(0));
}

struct Features {
    DeviceBuffer<float> values{count()};
};
struct Moved {
    DeviceBuffer<float> values{count()};
};

auto make_pipeline(int rounds, int second_device) {
    const sluice::StageOptions<> there{.device = second_device};
    return sluice::Pipeline{
        sluice::Stages{
            sluice::Stage{"first", [rounds](StreamRef s, const int&,
                                            Features& out) { work(s, out.values.data(), rounds); }},
            sluice::Stage{
                "move",
                [](StreamRef s, const Features& in, Moved& out) { sluice::copy(s, out.values, in.values); },
                there},
            sluice::Stage{"second", [rounds](StreamRef s, Moved& in) { work(s, in.values.data(), rounds); },
                          there}},
        sluice::Slots{[](int) { return Features{}; }, [](int) { return Moved{}; }},
        sluice::PipelineOptions{}};
}

/// Device 0, and device 1.
class TwoByHand {
public:
    explicit TwoByHand(int rounds) : rounds_(rounds) {
        for (float*& features : features_)
            CHECK(cudaMalloc(&features, bytes_));
        first_ = bench::make_stream();
        CHECK(cudaSetDevice(1));
        for (float*& moved : moved_)
            CHECK(cudaMalloc(&moved, bytes_));
        there_ = std::make_unique<EventsThere>();
        move_ = bench::make_stream();
        second_ = bench::make_stream();
        CHECK(cudaSetDevice(0));
    }
    TwoByHand(const TwoByHand&) = delete;
    TwoByHand& operator=(const TwoByHand&) = delete;
    ~TwoByHand() {
        for (int slot = 0; slot < 2; ++slot) {
            cudaFree(features_[slot]);
            cudaFree(moved_[slot]);
        }
        cudaStreamDestroy(first_);
        cudaStreamDestroy(move_);
        cudaStreamDestroy(second_);
    }
    void step() {
        CHECK(cudaStreamWaitEvent(first_, there_->moved[slot_]));
        work(first_, features_[slot_], rounds_);
        CHECK(cudaGetLastError());
        CHECK(cudaEventRecord(ready_[slot_], first_));
        CHECK(cudaSetDevice(1));
        CHECK(cudaStreamWaitEvent(move_, ready_[slot_]));
        CHECK(cudaStreamWaitEvent(move_, there_->free[slot_]));
        CHECK(cudaMemcpyAsync(moved_[slot_], features_[slot_], bytes_, cudaMemcpyDeviceToDevice, move_));
        CHECK(cudaEventRecord(there_->moved[slot_], move_));
        CHECK(cudaStreamWaitEvent(second_, there_->moved[slot_]));
        work(second_, moved_[slot_], rounds_);
        CHECK(cudaGetLastError());
        CHECK(cudaEventRecord(there_->free[slot_], second_));
        CHECK(cudaSetDevice(0));
        slot_ ^= 1;
    }
    void sync() {
        CHECK(cudaStreamSynchronize(first_));
        CHECK(cudaStreamSynchronize(second_));
    }

private:
    // Of device 1.
    struct EventsThere {
        bench::Events moved{2};
        bench::Events free{2};
    };
    std::size_t bytes_ = count() * sizeof(float);
    int rounds_;
    int slot_ = 0;
    float* features_[2] = {};
    float* moved_[2] = {};
    cudaStream_t first_ = nullptr;
    cudaStream_t move_ = nullptr;
    cudaStream_t second_ = nullptr;
    bench::Events ready_{2};
    std::unique_ptr<EventsThere> there_;
};

} // namespace

void bench::add_two_gpus() {
    if (sluice::Cuda::device_count() < 2) {
        std::fprintf(stderr, "two_gpus: SKIPPED, since there is one device only.\n");
        return;
    }
    add_rounds("two_gpus/half_a_millisecond_each", [](benchmark::State& state) {
        let_them_see_each_other();
        let_blocks_have_shared_memory();
        const int work_rounds = rounds_of_half_a_millisecond();
        TwoByHand by_hand(work_rounds);
        PipelineSubject one{[=] { return make_pipeline(work_rounds, 0); }};
        PipelineSubject two{[=] { return make_pipeline(work_rounds, 1); }};
        const Burst burst{.stages = 3, .steps = 48, .until = Until::done};
        Rounds rounds;
        rounds.add("by_hand on two", by_hand, burst);
        rounds.add("on one", one, burst, Counted::yes);
        rounds.add("on two", two, burst, Counted::yes);
        rounds.compare("on one", "on two", ">= 1.9");
        rounds.compare("on two", "by_hand on two");
        rounds.run(state, sluice::Cuda::counts());
    });
}
