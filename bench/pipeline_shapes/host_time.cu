/// \file
/// Host time of one step of pipelines that are no chains, with an empty kernel a stage. (Two stages and chains:
/// pipeline_overhead; graphs: graph_overhead.)
///
/// The baselines record one event a stage and slot, and leave out the waits that others imply, as sluice does.
#include <cuda_runtime.h>

#include <sluice/sluice.hpp>

#include "pipeline_overhead.hpp"
#include "shapes.hpp"
#include "support/rounds.hpp"
#include "support/two_stages_by_hand.cuh"

bool bench::describe() { return describe_device(); }

namespace {

using bench::EmptyStage;
using bench::Events;
using bench::make_stream;
using sluice::StreamRef;

constexpr int slots = 2;
constexpr int stages = 4;
constexpr bench::Burst burst{.stages = stages, .steps = bench::steps_per_burst(stages), .lead = slots};

/// Streams of the stages, and an event for each and slot.
struct FourStages {
    FourStages() = default;
    FourStages(const FourStages&) = delete;
    FourStages& operator=(const FourStages&) = delete;
    ~FourStages() {
        for (const cudaStream_t stream : streams)
            cudaStreamDestroy(stream);
    }
    void sync() {
        for (const cudaStream_t stream : streams)
            CHECK(cudaStreamSynchronize(stream));
    }
    cudaStream_t streams[stages] = {make_stream(), make_stream(), make_stream(), make_stream()};
    Events done[stages] = {Events(slots), Events(slots), Events(slots), Events(slots)};
    EmptyStage launch;
    int slot = 0;
};

/// The first stage's output goes to two, and theirs to the last one.
struct DiamondByHand : FourStages {
    void step() {
        auto& [top, left, right, bottom] = streams;
        CHECK(cudaStreamWaitEvent(top, done[1][slot])); // of the batch that was in the slot before
        CHECK(cudaStreamWaitEvent(top, done[2][slot]));
        launch(top);
        CHECK(cudaEventRecord(done[0][slot], top));

        CHECK(cudaStreamWaitEvent(left, done[0][slot]));
        CHECK(cudaStreamWaitEvent(left, done[3][slot])); // before
        launch(left);
        CHECK(cudaEventRecord(done[1][slot], left));

        CHECK(cudaStreamWaitEvent(right, done[0][slot]));
        CHECK(cudaStreamWaitEvent(right, done[3][slot])); // before
        launch(right);
        CHECK(cudaEventRecord(done[2][slot], right));

        CHECK(cudaStreamWaitEvent(bottom, done[1][slot]));
        CHECK(cudaStreamWaitEvent(bottom, done[2][slot]));
        launch(bottom);
        CHECK(cudaEventRecord(done[3][slot], bottom));
        slot ^= 1;
    }
};

/// One producer, three readers of its output.
struct FanOutByHand : FourStages {
    void step() {
        for (int reader = 1; reader < stages; ++reader)
            CHECK(cudaStreamWaitEvent(streams[0], done[reader][slot])); // before
        launch(streams[0]);
        CHECK(cudaEventRecord(done[0][slot], streams[0]));
        for (int reader = 1; reader < stages; ++reader) {
            CHECK(cudaStreamWaitEvent(streams[reader], done[0][slot]));
            launch(streams[reader]);
            CHECK(cudaEventRecord(done[reader][slot], streams[reader]));
        }
        slot ^= 1;
    }
};

struct Top {};
struct Left {};
struct Right {};

void launch_empty(StreamRef stream) { bench::empty_kernel<<<1, 1, 0, stream>>>(); }

auto make_diamond(const sluice::PipelineOptions& options) {
    return sluice::Pipeline{
        sluice::Stages{
            sluice::Stage{"top", [](StreamRef s, const int&, Top&) { launch_empty(s); }},
            sluice::Stage{"left", [](StreamRef s, const Top&, Left&) { launch_empty(s); }},
            sluice::Stage{"right", [](StreamRef s, const Top&, Right&) { launch_empty(s); }},
            sluice::Stage{"bottom", [](StreamRef s, const Left&, const Right&) { launch_empty(s); }}},
        sluice::Slots{[](int) { return Top{}; }, [](int) { return Left{}; }, [](int) { return Right{}; }},
        options};
}

auto make_fan_out(const sluice::PipelineOptions& options) {
    const auto read = [](StreamRef s, const Top&) { launch_empty(s); };
    return sluice::Pipeline{
        sluice::Stages{sluice::Stage{"producer", [](StreamRef s, const int&, Top&) { launch_empty(s); }},
                       sluice::Stage{"first", read}, sluice::Stage{"second", read},
                       sluice::Stage{"third", read}},
        sluice::Slots{[](int) { return Top{}; }}, options};
}

template <class ByHand, class Make>
void add_shape(const char* name, Make make) {
    bench::add_rounds(
        name,
        [make](benchmark::State& state) {
            using sluice::Schedule;
            ByHand by_hand;
            bench::PipelineSubject overlapped{
                [&] { return make({.schedule = Schedule::overlapped, .slots = slots}); }};
            bench::PipelineSubject graphed{
                [&] { return make({.schedule = Schedule::graphed, .slots = slots, .steps_per_graph = 16}); }};
            constexpr bench::Burst of_graphs{.stages = stages, .steps = 48, .lead = 32};
            bench::Rounds rounds;
            rounds.add("by_hand", by_hand, burst);
            rounds.add("overlapped", overlapped, burst, bench::Counted::yes);
            rounds.add("graphed:16", graphed, of_graphs, bench::Counted::yes);
            rounds.compare("overlapped", "by_hand", "<= 1.03");
            rounds.compare("graphed:16", "by_hand");
            rounds.run(state, sluice::Cuda::counts());
        },
        50 * bench::rounds_per_repetition);
}

} // namespace

void bench::add_host_time() {
    add_shape<DiamondByHand>("host_time/diamond",
                             [](const sluice::PipelineOptions& o) { return make_diamond(o); });
    add_shape<FanOutByHand>("host_time/fan_out",
                            [](const sluice::PipelineOptions& o) { return make_fan_out(o); });
}
