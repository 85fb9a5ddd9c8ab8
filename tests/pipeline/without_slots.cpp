// Pipelines whose stages make nothing, made without Slots{}.
#include <atomic>
#include <utility>

#include <sluice/pipeline/two_stream_pipeline.hpp>

#include "support/backend.hpp"
#include "support/doctest.hpp"

namespace pipeline_without_slots {

using namespace sluice;
using namespace sluice::test;

namespace {

using B = TestBackend;
using Ref = BasicStreamRef<B>;

/// Adds each batch to a sum when its stream gets there.
struct Add {
    std::atomic<int>* sum;
    void operator()(Ref stream, const int& batch) const {
        stream.enqueue([to = sum, batch] { *to += batch; });
    }
};

} // namespace

TEST_CASE("a pipeline of stages that make nothing needs no slots") {
    std::atomic<int> sum{0};
    std::atomic<int> other{0};
    for (const Schedule schedule : {Schedule::serial, Schedule::overlapped, Schedule::graphed}) {
        sum = 0;
        other = 0;
        Pipeline alone{Stages{Stage{"add", Add{&sum}}}, {.schedule = schedule}};
        Pipeline both{Stages{Stage{"add", Add{&sum}}, Stage{"add too", Add{&other}}},
                      PipelineOptions{.schedule = schedule}};
        for (int batch = 1; batch <= 10; ++batch) {
            alone.submit(batch);
            both.submit(batch);
        }
        alone.finish();
        both.finish();
        CHECK(sum == 110);
        CHECK(other == 55);
    }
    Pipeline plain{Stages{Stage{"add", Add{&sum}}}};
    plain.submit(1);
    plain.finish();
    CHECK(sum == 111);
    CHECK(plain.options().schedule == Schedule::overlapped);
}

TEST_CASE("two stages that exchange nothing need no slot maker") {
    std::atomic<int> sum{0};
    std::atomic<int> other{0};
    TwoStreamPipeline pipeline{Stage{"add", Add{&sum}}, Stage{"add too", Add{&other}}};
    TwoStreamPipeline serial{
        Stage{"add", Add{&sum}}, Stage{"add too", Add{&other}}, {.schedule = Schedule::serial}};
    const PipelineOptions options{.schedule = Schedule::graphed};
    TwoStreamPipeline graphed{Stage{"add", Add{&sum}}, Stage{"add too", Add{&other}}, options};
    CHECK(serial.options().schedule == Schedule::serial);
    CHECK(graphed.options().schedule == Schedule::graphed);
    for (int batch = 1; batch <= 10; ++batch) {
        pipeline.submit(batch);
        serial.submit(batch);
        graphed.submit(batch);
    }
    pipeline.finish();
    serial.finish();
    graphed.finish();
    CHECK(sum == 165);
    CHECK(other == 165);
}

} // namespace pipeline_without_slots
