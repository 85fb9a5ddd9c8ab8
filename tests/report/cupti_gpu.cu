// Kernels and copies as CUPTI records them: under their stages, when the stages ran, eagerly and from graphs.
#include <algorithm>
#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include <cuda_fp16.h>
#include <mma.h>

#include <sluice/graph.hpp>
#include <sluice/pipeline/pipeline.hpp>
#include <sluice/report/cupti.hpp>
#include <sluice/report/pipeline_report.hpp>

#include "support/doctest.hpp"
#include "support/error_text.hpp"

namespace report_cupti {

using namespace sluice;
using namespace sluice::test;

namespace {

__device__ void spin(unsigned microseconds) {
    unsigned long long begin = 0;
    unsigned long long now = 0;
    asm volatile("mov.u64 %0, %globaltimer;" : "=l"(begin));
    do {
        asm volatile("mov.u64 %0, %globaltimer;" : "=l"(now));
    } while (now - begin < 1000ull * microseconds);
}

__global__ void make_kernel(unsigned* out, unsigned microseconds) {
    spin(microseconds);
    *out = 1;
}
__global__ void use_kernel(const unsigned* in, unsigned* sum, unsigned microseconds) {
    spin(microseconds);
    *sum += *in;
}
__global__ void count_down_kernel(ConditionSetter setter, unsigned* left) {
    *left -= 1;
    setter.set(*left);
}

/// A product of 16 x 16 matrices of ones, by one warp.
__global__ void tensor_core_kernel(float* out) {
    namespace wmma = nvcuda::wmma;
    wmma::fragment<wmma::matrix_a, 16, 16, 16, __half, wmma::row_major> a;
    wmma::fragment<wmma::matrix_b, 16, 16, 16, __half, wmma::col_major> b;
    wmma::fragment<wmma::accumulator, 16, 16, 16, float> product;
    wmma::fill_fragment(a, __float2half(1));
    wmma::fill_fragment(b, __float2half(1));
    wmma::fill_fragment(product, 0);
    wmma::mma_sync(product, a, b, product);
    wmma::store_matrix_sync(out, product, 16, wmma::mem_row_major);
}

using Cells = DeviceBuffer<unsigned, Cuda>;
constexpr std::size_t batches = 16;
constexpr double tolerance = 60; // of the two clocks, in microseconds

struct Recorded {
    DeviceActivities activities;
    Timeline timeline;
};

/// A copy and two kernels, then a fill and a kernel, for each batch.
Recorded run(PipelineOptions options, KernelTraceOptions trace_options = {}) {
    options.timed_batches = static_cast<int>(batches);
    const Cells input(1024);
    Cells sum(1);
    CudaStream stream;
    fill_bytes(stream, sum, 0);
    stream.sync();
    KernelTrace trace(trace_options);
    Stage make{"make", [&](CudaStreamRef on, std::size_t, Cells& out) {
                   copy(on, out, input);
                   make_kernel<<<1, 1, 0, on.get()>>>(out.data(), 200);
                   make_kernel<<<1, 1, 0, on.get()>>>(out.data(), 100);
               }};
    Stage use{"use", [&](CudaStreamRef on, Cells& in) {
                  use_kernel<<<1, 1, 0, on.get()>>>(in.data(), sum.data(), 400);
                  fill_bytes(on, in, 0);
              }};
    Pipeline pipeline{Stages{make, use}, Slots{[](int) { return Cells(1024); }}, options};
    for (std::size_t batch = 0; batch < batches; ++batch)
        pipeline.submit(std::size_t{0});
    pipeline.finish();
    Recorded recorded{trace.stop(), timeline_of(pipeline)};
    assign_to_stages(recorded.activities, recorded.timeline);
    return recorded;
}

std::size_t count(const DeviceActivities& activities, const std::string& stage, ActivityKind kind,
                  const std::string& name) {
    std::size_t found = 0;
    for (const DeviceActivity& activity : activities.activities) {
        if (activity.kind == kind && activity.stage != DeviceActivity::unknown &&
            activities.stages[activity.stage] == stage && contains(activities.names[activity.name], name))
            ++found;
    }
    return found;
}

/// All of the work is there, under the stage that launched it.
void check_stages(const Recorded& recorded) {
    const DeviceActivities& got = recorded.activities;
    CHECK(count(got, "make", ActivityKind::kernel, "make_kernel") == 2 * batches);
    CHECK(count(got, "make", ActivityKind::copy, "copy") == batches);
    CHECK(count(got, "use", ActivityKind::kernel, "use_kernel") == batches);
    CHECK(count(got, "use", ActivityKind::set, "set") + count(got, "use", ActivityKind::kernel, "memset") ==
          batches); // in a graph CUDA may turn fills into kernels
    CHECK(count(got, "use", ActivityKind::kernel, "make_kernel") == 0);
    CHECK(count(got, "make", ActivityKind::kernel, "use_kernel") == 0);
    CHECK(got.dropped == 0);
    CHECK(got.silent_graphs == 0);
}

/// Each activity of a stage lies in that stage's span for the batch.
void check_times(const Recorded& recorded) {
    const double zero = recorded.timeline.clock_zero();
    std::size_t outside = 0;
    std::size_t looked_at = 0;
    for (const DeviceActivity& activity : recorded.activities.activities) {
        if (activity.batch == DeviceActivity::unknown)
            continue;
        ++looked_at;
        bool inside = false;
        for (const TimelineSpan& span : recorded.timeline.spans()) {
            const std::string& row = recorded.timeline.rows()[span.row].name;
            if (span.batch == activity.batch &&
                (row == "graphs" || row == recorded.activities.stages[activity.stage]))
                inside = inside || (activity.begin >= zero + span.begin - tolerance &&
                                    activity.end <= zero + span.end + tolerance);
        }
        outside += inside ? 0 : 1;
    }
    CHECK(outside == 0);
    CHECK(looked_at >= 4 * batches);
}

/// What events say of stages is what their kernels say.
void check_shares(const Recorded& recorded) {
    const TimelineReport by_events = report_of(recorded.timeline);
    const ActivityReport by_kernels = report_of(recorded.activities, {.timeline = &recorded.timeline});
    REQUIRE(by_kernels.stages.size() == 2);
    for (const StageActivity& stage : by_kernels.stages) {
        for (const RowReport& row : by_events.rows) {
            if (row.name == stage.name)
                CHECK(stage.at_work_share == doctest::Approx(row.share).epsilon(0.1));
        }
    }
    CHECK(by_kernels.at_work_overlap == doctest::Approx(by_events.overlap).epsilon(0.1));
    const TimeByCause& causes = by_kernels.causes;
    CHECK(causes.kernel + causes.copy + causes.set + causes.communication + causes.runtime + causes.source +
              causes.other ==
          doctest::Approx(by_kernels.wall));
    CHECK(causes.kernel > 0.5 * by_kernels.wall);
}

} // namespace

// First, since what is asked for are kernels that are not loaded yet.
TEST_CASE("kernels with instructions of Tensor Cores are told from others, eagerly and in graphs") {
    if (!KernelTrace::available())
        return;
    KernelTrace::note_tensor_cores();
    KernelTrace::note_tensor_cores(); // once is enough
    CudaStream stream;
    DeviceBuffer<float, Cuda> product(256);
    Cells cells(1);
    tensor_core_kernel<<<1, 32, 0, stream.get()>>>(product.data()); // loads both before the trace begins
    std::vector<float> seen(256);
    copy_and_wait(stream, seen, product);
    CHECK(seen == std::vector<float>(256, 16));
    for (const bool as_graph : {false, true}) {
        CAPTURE(as_graph);
        KernelTrace trace;
        const auto work = [&](CudaStreamRef on) {
            tensor_core_kernel<<<1, 32, 0, on.get()>>>(product.data());
            make_kernel<<<1, 1, 0, on.get()>>>(cells.data(), 100);
        };
        std::optional<GraphExec> exec;
        if (as_graph) {
            exec.emplace(capture(stream, work));
            exec->launch(stream);
        } else {
            work(stream);
        }
        const ActivityReport report = report_of(trace.stop());
        REQUIRE(report.kernels.size() == 2);
        for (const KernelTotal& kernel : report.kernels)
            CHECK(kernel.tensor_cores ==
                  (contains(kernel.name, "tensor_core_kernel") ? TensorCores::present : TensorCores::absent));
        CHECK(report.tensor_core_unknown == 0);
        CHECK(report.tensor_core_share > 0);
        CHECK(report.tensor_core_share < 0.5);
    }
}

TEST_CASE("kernels, copies and fills are found under the stages that enqueued them, and when these ran") {
    if (!KernelTrace::available()) {
        MESSAGE("skipped: " << KernelTrace::why_unavailable());
        return;
    }
    CHECK(KernelTrace::version() >= 19);
    for (const Schedule schedule : {Schedule::serial, Schedule::overlapped}) {
        CAPTURE(static_cast<int>(schedule));
        const Recorded recorded = run({.schedule = schedule});
        check_stages(recorded);
        check_times(recorded);
        check_shares(recorded);
        CHECK(!recorded.activities.calls.empty());
    }
}

TEST_CASE("the nodes of stages' graphs are found under the stages") {
    if (!KernelTrace::available())
        return;
    const Recorded recorded = run({.schedule = Schedule::graphed, .graph_each_stage = true});
    check_stages(recorded);
    check_times(recorded);
    check_shares(recorded);
    CHECK(std::any_of(recorded.activities.activities.begin(), recorded.activities.activities.end(),
                      [](const DeviceActivity& activity) { return activity.graph_node != 0; }));
}

TEST_CASE("the nodes of graphs of whole steps are found under the stages") {
    if (!KernelTrace::available())
        return;
    const Recorded recorded = run({.schedule = Schedule::graphed});
    check_stages(recorded);
    check_times(recorded);
}

TEST_CASE("whole graphs are recorded as one activity each where that is asked for") {
    if (!KernelTrace::available())
        return;
    const Recorded recorded =
        run({.schedule = Schedule::graphed, .graph_each_stage = true}, {.whole_graphs = true});
    const auto& got = recorded.activities.activities;
    const auto graphs = std::count_if(got.begin(), got.end(), [](const DeviceActivity& activity) {
        return activity.kind == ActivityKind::graph;
    });
    CHECK(graphs > 0);
    CHECK(std::none_of(got.begin(), got.end(),
                       [](const DeviceActivity& activity) { return activity.graph_node != 0; }));
}

TEST_CASE("without host calls, stages are found by their times and streams") {
    if (!KernelTrace::available())
        return;
    const Recorded recorded = run({.schedule = Schedule::serial}, {.host_calls = false});
    CHECK(recorded.activities.calls.empty());
    CHECK(count(recorded.activities, "make", ActivityKind::kernel, "make_kernel") == 2 * batches);
    CHECK(count(recorded.activities, "use", ActivityKind::kernel, "use_kernel") == batches);
}

TEST_CASE("a graph that loops on the device is recorded, or at least runs") {
    if (!KernelTrace::available())
        return;
    KernelTrace trace;
    CudaStream stream;
    Cells left(1);
    Condition again;
    const std::vector<unsigned> start{5};
    copy_and_wait(stream, left, start);
    std::optional<Graph> graph;
    const std::string refused = text_of([&] {
        graph.emplace(capture(stream, [&](CudaStreamRef on) {
            while_nonzero(on, again, [&](CudaStreamRef s) {
                count_down_kernel<<<1, 1, 0, s.get()>>>(again.setter(s), left.data());
            });
        }));
    });
    if (!graph) {
        MESSAGE("skipped: " << refused);
        CHECK(contains(refused, "needs CUDA"));
        return;
    }
    GraphExec exec(*graph);
    exec.launch(stream);
    stream.sync();
    std::vector<unsigned> seen{99};
    copy_and_wait(stream, seen, left);
    CHECK(seen[0] == 0);
    const DeviceActivities activities = trace.stop();
    std::size_t runs = 0;
    for (const DeviceActivity& activity : activities.activities)
        runs += contains(activities.names[activity.name], "count_down_kernel") ? 1U : 0U;
    MESSAGE("the body ran 5 times, and was recorded " << runs << " times");
    CHECK(runs <= 5);
}

TEST_CASE("kernels that begin before the one ahead of them has ended count once in shares") {
    if (!KernelTrace::available())
        return;
    int major = 0;
    SLUICE_CUDA_CHECK(cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, 0));
    if (major < 9) {
        MESSAGE("skipped: programmatic launches need compute capability 9.0");
        return;
    }
    Cells out(1);
    CudaStream stream;
    KernelTrace trace;
    for (int i = 0; i < 4; ++i) {
        cudaLaunchAttribute attribute{};
        attribute.id = cudaLaunchAttributeProgrammaticStreamSerialization;
        attribute.val.programmaticStreamSerializationAllowed = 1;
        cudaLaunchConfig_t config{};
        config.gridDim = 1;
        config.blockDim = 1;
        config.stream = stream.get();
        config.attrs = &attribute;
        config.numAttrs = 1;
        SLUICE_CUDA_CHECK(cudaLaunchKernelEx(&config, make_kernel, out.data(), 100u));
    }
    stream.sync();
    const DeviceActivities activities = trace.stop();
    REQUIRE(activities.activities.size() == 4);
    const ActivityReport report = report_of(activities);
    CHECK(report.busy_share <= 1.0 + 1e-9);
    CHECK(report.kernels.at(0).count == 4);
    CHECK(report.causes.kernel <= report.wall * (1 + 1e-9));
}

TEST_CASE("one trace at a time, which stops once") {
    if (!KernelTrace::available())
        return;
    KernelTrace trace;
    CHECK(contains(text_of([] { const KernelTrace other; }), "another trace records in this process"));
    const DeviceActivities nothing = trace.stop();
    CHECK(nothing.activities.empty());
    CHECK(contains(text_of([&] { (void)trace.stop(); }), "has stopped already"));
    { const KernelTrace forgotten; }
    KernelTrace next;
    Cells cells(1);
    CudaStream stream;
    make_kernel<<<1, 1, 0, stream.get()>>>(cells.data(), 10);
    const DeviceActivities one = next.stop();
    REQUIRE(one.activities.size() == 1);
    CHECK(one.activities[0].stage == DeviceActivity::unknown);
    CHECK(one.activities[0].end - one.activities[0].begin >= 9);
}

TEST_CASE("a graph that was instantiated before the trace is told of where nothing of it is recorded") {
    if (!KernelTrace::available())
        return;
    Cells cells(1);
    CudaStream stream;
    const Graph graph =
        capture(stream, [&](CudaStreamRef on) { make_kernel<<<1, 1, 0, on.get()>>>(cells.data(), 50); });
    GraphExec exec(graph);
    exec.launch(stream);
    stream.sync();
    KernelTrace trace;
    exec.launch(stream);
    const DeviceActivities activities = trace.stop();
    CHECK(activities.activities.size() + activities.silent_graphs >= 1);
}

} // namespace report_cupti
