// Memory and streams that come and go while streams wait for CPU stages: CUDA waits for all streams where it frees memory, and where it
// makes one stream in some thirty.
#include <memory>
#include <string>
#include <vector>

#include <sluice/sluice.hpp>

#include "support/doctest.hpp"
#include "support/watchdog.hpp"

namespace pipeline_cpu_stage_frees_gpu {

using namespace sluice;
using namespace sluice::test;

namespace {

constexpr int words = 1024;
constexpr int batches = 40;

struct Row {
    DeviceBuffer<float> values{words};
    PinnedBuffer<float> there{words};
};
struct Seen {
    PinnedBuffer<float> values{words};
};
const auto make_row = [](int) { return Row{}; };
const auto make_seen = [](int) { return Seen{}; };

void make_values(StreamRef stream, float batch, Row& out) {
    fill(stream, out.values, batch);
    copy(stream, out.there, out.values);
}

// A CPU stage that calls CUDA with buffers of its own, between two stages of streams; the caller has some, too.
void run(Schedule schedule, bool stage_frees, bool caller_frees) {
    const Watchdog watchdog(std::string(to_string(schedule)));
    const CudaStream own, last;
    DeviceBuffer<float> sums{words};
    fill(last, sums, 0.0f);
    last.sync();
    DeviceBuffer<float> there{words};
    Stage make{"make", make_values};
    Stage look{"look", [&](const Row& in, Seen& out) {
                   if (stage_frees) {
                       DeviceBuffer<float> mine{words};
                       PinnedBuffer<float> back{words};
                       copy(own, mine, in.there);
                       copy(own, back, mine);
                       own.sync();
                       out.values[0] = back[words - 1] + 1;
                   } else {
                       copy(own, there, in.there);
                       copy(own, out.values, there);
                       own.sync();
                       out.values[0] += 1;
                   }
               }};
    double sum = 0;
    Stage add{"add", [&](StreamRef stream, const Seen& in) {
                  stream.enqueue([&sum, &in] { sum += in.values[0]; });
              }};
    Pipeline pipeline{Stages{make, look, add}, Slots{make_row, make_seen}, {.schedule = schedule}};
    for (int batch = 0; batch < batches; ++batch) {
        pipeline.submit(static_cast<float>(batch));
        if (caller_frees) {
            const DeviceBuffer<float> device{words};
            const PinnedBuffer<float> pinned{words};
            const CudaStream another;
        }
    }
    pipeline.finish();
    CHECK(sum == batches * (batches - 1) / 2.0 + batches);
}

} // namespace

TEST_CASE("CPU stages: one that makes and frees buffers") {
    for (const Schedule schedule : {Schedule::overlapped, Schedule::serial, Schedule::graphed})
        run(schedule, true, false);
}

TEST_CASE("CPU stages: the caller makes and frees buffers and streams beside them") {
    for (const Schedule schedule : {Schedule::overlapped, Schedule::serial, Schedule::graphed})
        run(schedule, false, true);
}

TEST_CASE("CPU stages: both do") { run(Schedule::overlapped, true, true); }

TEST_CASE("CPU stages: many streams are made beside them") {
    const Watchdog watchdog("streams");
    const CudaStream own;
    DeviceBuffer<float> there{words};
    Stage make{"make", make_values};
    Stage look{"look", [&](const Row& in, Seen& out) {
                   copy(own, there, in.there);
                   copy(own, out.values, there);
                   own.sync();
               }};
    Stage end{"end", [](StreamRef, const Seen&) {}};
    Pipeline pipeline{Stages{make, look, end}, Slots{make_row, make_seen}};
    std::vector<std::unique_ptr<CudaStream>> streams;
    for (int batch = 0; batch < batches; ++batch) {
        pipeline.submit(static_cast<float>(batch));
        for (int i = 0; i < 4; ++i)
            streams.push_back(std::make_unique<CudaStream>());
    }
    pipeline.finish();
    CHECK(streams.size() == 4 * batches);
}

} // namespace pipeline_cpu_stage_frees_gpu
