/// \file
/// The schedule of NVIDIA's sample simpleMultiCopy: frames of 16 MiB are uploaded, incremented and downloaded on four
/// streams, so that both copy directions and the kernel overlap. Until the device is done.
#include <cuda_runtime.h>

#include <cstddef>
#include <vector>

#include <sluice/sluice.hpp>

#include "pipeline_overhead.hpp"
#include "shapes.hpp"
#include "support/rounds.hpp"
#include "support/two_stages_by_hand.cuh"

namespace {

using sluice::DeviceBuffer;
using sluice::PinnedBuffer;
using sluice::StreamRef;

constexpr int lanes = 4;
constexpr std::size_t count = std::size_t{1} << 22;
constexpr int inner_repetitions = 5;

/// The sample's kernel.
__global__ void increment(int* out, const int* in, int size, int repetitions) {
    const int index = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
    if (index < size) {
        for (int i = 0; i < repetitions; ++i)
            out[index] = in[index] + 1;
    }
}
void launch_increment(cudaStream_t stream, int* out, const int* in) {
    increment<<<count / 512, 512, 0, stream>>>(out, in, static_cast<int>(count), inner_repetitions);
}

/// Input frames, filled once; frame i has i everywhere but for a running number.
std::vector<PinnedBuffer<int>> make_frames() {
    std::vector<PinnedBuffer<int>> frames;
    for (int frame = 0; frame < lanes; ++frame) {
        frames.emplace_back(count);
        for (std::size_t i = 0; i < count; ++i)
            frames.back()[i] = frame + static_cast<int>(i * 2654435761u);
    }
    return frames;
}

class MultiCopyByHand {
public:
    explicit MultiCopyByHand(const std::vector<PinnedBuffer<int>>& frames) : frames_(frames) {
        for (int lane = 0; lane < lanes; ++lane) {
            CHECK(cudaMalloc(&in_[lane], bytes));
            CHECK(cudaMalloc(&out_[lane], bytes));
            CHECK(cudaHostAlloc(&results_[lane], bytes, cudaHostAllocDefault));
            streams_[lane] = bench::make_stream();
        }
    }
    MultiCopyByHand(const MultiCopyByHand&) = delete;
    MultiCopyByHand& operator=(const MultiCopyByHand&) = delete;
    ~MultiCopyByHand() {
        for (int lane = 0; lane < lanes; ++lane) {
            cudaFree(in_[lane]);
            cudaFree(out_[lane]);
            cudaFreeHost(results_[lane]);
            cudaStreamDestroy(streams_[lane]);
        }
    }

    /// A stream's order is all that a frame needs: its buffers are the stream's own.
    void step() {
        const cudaStream_t stream = streams_[lane_];
        CHECK(cudaMemcpyAsync(in_[lane_], frames_[static_cast<std::size_t>(lane_)].data(), bytes,
                              cudaMemcpyHostToDevice, stream));
        launch_increment(stream, out_[lane_], in_[lane_]);
        CHECK(cudaGetLastError());
        CHECK(cudaMemcpyAsync(results_[lane_], out_[lane_], bytes, cudaMemcpyDeviceToHost, stream));
        lane_ = (lane_ + 1) % lanes;
    }
    void sync() {
        for (const cudaStream_t stream : streams_)
            CHECK(cudaStreamSynchronize(stream));
    }

private:
    static constexpr std::size_t bytes = count * sizeof(int);
    const std::vector<PinnedBuffer<int>>& frames_;
    int lane_ = 0;
    cudaStream_t streams_[lanes] = {};
    int* in_[lanes] = {};
    int* out_[lanes] = {};
    int* results_[lanes] = {};
};

// The same with sluice, from here
struct Frame {
    DeviceBuffer<int> in{count}, out{count};
    PinnedBuffer<int> result{count};
};

auto make_multi_copy() {
    sluice::Stage round_trip{"round trip",
                             [](StreamRef stream, const PinnedBuffer<int>& input, Frame& frame) {
                                 sluice::copy(stream, frame.in, input);
                                 launch_increment(stream, frame.out.data(), frame.in.data());
                                 sluice::copy(stream, frame.result, frame.out);
                             },
                             sluice::StageOptions<>{.lanes = lanes}};
    return sluice::Pipeline{sluice::Stages{round_trip}, sluice::Slots{[](int) { return Frame{}; }},
                            sluice::PipelineOptions{.slots = lanes}};
}
// to here: 16 lines.

/// And as three stages, each on a stream of its own.
auto make_three_stages() {
    using Uploaded = sluice::Tagged<struct Upload, DeviceBuffer<int>>;
    using Computed = sluice::Tagged<struct Compute, DeviceBuffer<int>>;
    using Result = sluice::Tagged<struct Download, PinnedBuffer<int>>;
    return sluice::Pipeline{
        sluice::Stages{
            sluice::Stage{"upload", [](StreamRef s, const PinnedBuffer<int>& in,
                                       Uploaded& out) { sluice::copy(s, out, in); }},
            sluice::Stage{"compute", [](StreamRef s, const Uploaded& in,
                                        Computed& out) { launch_increment(s, out.data(), in.data()); }},
            sluice::Stage{"download",
                          [](StreamRef s, const Computed& in, Result& out) { sluice::copy(s, out, in); }}},
        sluice::Slots{[](int) { return Uploaded{DeviceBuffer<int>(count)}; },
                      [](int) { return Computed{DeviceBuffer<int>(count)}; },
                      [](int) { return Result{PinnedBuffer<int>(count)}; }},
        sluice::PipelineOptions{.slots = 2}};
}

template <class Pipeline>
class FramesSubject {
public:
    template <class Make>
    FramesSubject(const std::vector<PinnedBuffer<int>>& frames, Make make)
        : frames_(frames), pipeline_(make()) {}
    void step() { pipeline_.submit(frames_[step_++ % lanes]).stays(); }
    void sync() { pipeline_.finish(); }

private:
    const std::vector<PinnedBuffer<int>>& frames_;
    std::size_t step_ = 0;
    Pipeline pipeline_;
};
template <class Make>
FramesSubject(const std::vector<PinnedBuffer<int>>&, Make) -> FramesSubject<std::invoke_result_t<Make>>;

} // namespace

void bench::add_multi_copy() {
    add_rounds("multi_copy/frames_of_16_MiB", [](benchmark::State& state) {
        const auto frames = make_frames();
        MultiCopyByHand by_hand(frames);
        FramesSubject lanes_of_one(frames, [] { return make_multi_copy(); });
        FramesSubject three_stages(frames, [] { return make_three_stages(); });
        const Burst burst{.stages = 1, .steps = 48, .until = Until::done};
        Rounds rounds;
        rounds.add("by_hand", by_hand, burst);
        rounds.add("4 lanes", lanes_of_one, burst, Counted::yes);
        rounds.add("3 stages", three_stages, burst, Counted::yes);
        rounds.compare("4 lanes", "by_hand", "<= 1.02");
        rounds.compare("3 stages", "by_hand");
        rounds.run(state, sluice::Cuda::counts());
    });
}
