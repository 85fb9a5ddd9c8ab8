// CPU stages and stages behind them whose kernels CUDA loads when they are first used, for which it waits for all streams.
#include <string>
#include <vector>

#include <sluice/sluice.hpp>

#include "support/doctest.hpp"
#include "support/watchdog.hpp"

namespace pipeline_cpu_stage_kernels_gpu {

using namespace sluice;
using namespace sluice::test;

namespace {

constexpr int words = 32;

// Each `kind` is a kernel of its own, which nothing else uses.
template <int kind>
__global__ void add(const float* in, float value, float* out) {
    out[threadIdx.x] = (in == nullptr ? 0.0f : in[threadIdx.x]) + value;
}

template <int kind>
__global__ void add_up(const float* in, float* out) {
    out[threadIdx.x] += in[threadIdx.x];
}

struct Row {
    DeviceBuffer<float> values{words};
    PinnedBuffer<float> there{words};
};
struct Seen {
    PinnedBuffer<float> values{words};
};

// A CPU stage between two others, each of the three with a kernel that comes for the first time.
template <int kind>
void run(Schedule schedule) {
    const Watchdog watchdog(std::string(to_string(schedule)));
    constexpr int batches = 40;
    const CudaStream own, last;
    DeviceBuffer<float> there{words}, sums{words};
    fill(own, sums, 0.0f);
    own.sync();
    Stage make{"make", [](StreamRef stream, float batch, Row& out) {
                   add<kind><<<1, words, 0, stream.get()>>>(nullptr, batch, out.values.data());
                   copy(stream, out.there, out.values);
               }};
    Stage look{"look", [&](const Row& in, Seen& out) {
                   copy(own, there, in.there);
                   add<kind + 1><<<1, words, 0, own.get()>>>(there.data(), 1, there.data());
                   copy(own, out.values, there);
                   own.sync();
               }};
    float* const to = sums.data();
    Stage sum{"sum", [to](StreamRef stream, const Seen& in) {
                  add<kind + 2><<<1, words, 0, stream.get()>>>(to, 1, to);
                  add_up<kind><<<1, words, 0, stream.get()>>>(in.values.data(), to);
              }};
    Pipeline pipeline{Stages{make, look, sum},
                      Slots{[](int) { return Row{}; }, [](int) { return Seen{}; }},
                      {.schedule = schedule}};
    for (int batch = 0; batch < batches; ++batch)
        pipeline.submit(static_cast<float>(batch));
    pipeline.finish();
    std::vector<float> seen(words);
    copy_and_wait(last, seen, sums);
    CHECK(seen[words - 1] == batches * (batches - 1) / 2.0f + 2 * batches);
}

} // namespace

TEST_CASE("CPU stages: one whose work, and what comes behind it, uses kernels for the first time") {
    run<0>(Schedule::overlapped);
    run<10>(Schedule::serial);
    run<20>(Schedule::graphed);
}

} // namespace pipeline_cpu_stage_kernels_gpu
