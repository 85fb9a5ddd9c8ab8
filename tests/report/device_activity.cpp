// Activities of devices in numbers: made-up records.
#include <string>
#include <vector>

#include <sluice/report/device_activity.hpp>

#include "made_activities.hpp"
#include "report/widest_line.hpp"
#include "support/doctest.hpp"
#include "support/error_text.hpp"

namespace report_device_activity {

using namespace sluice;
using namespace sluice::test;

namespace {

double sum(const TimeByCause& causes) {
    return causes.kernel + causes.copy + causes.set + causes.communication + causes.runtime + causes.source +
           causes.other;
}

} // namespace

TEST_CASE("each instant counts for the first cause that holds, in their order") {
    Timeline timeline("causes");
    timeline.set_clock_zero(zero);
    timeline.add_row("source", "CPU");
    timeline.add({0, 0, 0, 100, SpanKind::source});
    DeviceActivities activities;
    activities.names = {"k"};
    activities.activities = {
        made(ActivityKind::kernel, 10, 20),        made(ActivityKind::copy, 15, 30),
        made(ActivityKind::set, 25, 35),           made(ActivityKind::communication, 0, 12),
        made(ActivityKind::communication, 34, 40),
    };
    activities.calls = {{zero + 38, zero + 50, 1, 0}, {zero + 45, zero + 55, 2, 0}};
    ActivityReport report = report_of(activities, {.timeline = &timeline});
    CHECK(report.begin == zero);
    CHECK(report.end == zero + 100);
    CHECK(report.wall == 100);
    CHECK(report.causes.kernel == 10);
    CHECK(report.causes.copy == 10);
    CHECK(report.causes.set == 5);
    CHECK(report.causes.communication == 15);
    CHECK(report.causes.runtime == 15);
    CHECK(report.causes.source == 45);
    CHECK(report.causes.other == 0);
    CHECK(report.device.both == doctest::Approx(0.06));
    CHECK(report.device.copy_only == doctest::Approx(0.14));
    CHECK(report.device.compute_only == doctest::Approx(0.20));
    CHECK(report.busy_share == doctest::Approx(0.40));

    // Without the timeline, the time is that of the activities, and no worker is known to fill batches.
    report = report_of(activities);
    CHECK(report.wall == 40);
    CHECK(report.causes.source == 0);
    CHECK(sum(report.causes) == doctest::Approx(40));
}

TEST_CASE("in a pipeline's timeline, what the submitting thread waits for the source is the cause source") {
    Timeline timeline("pipeline");
    timeline.set_clock_zero(zero);
    timeline.add_row("train", "GPU 0");
    timeline.add_row("submit", "CPU");
    timeline.add({0, 0, 0, 10});
    timeline.add({1, 1, 10, 30, SpanKind::wait});   // for the source
    timeline.add({1, 1, 30, 35, SpanKind::source}); // a call of submit, or a fill of the caller's
    timeline.add({0, 1, 35, 100});
    DeviceActivities activities;
    activities.names = {"k"};
    activities.activities = {made(ActivityKind::kernel, 0, 10), made(ActivityKind::kernel, 35, 100)};
    CHECK(report_of(activities, {.timeline = &timeline}).causes.source == 25);

    const std::size_t worker = timeline.add_row("source 0", "CPU");
    timeline.add({worker, 1, 0, 20, SpanKind::source});
    timeline.add({worker, 2, 20, 40, SpanKind::wait}); // for a slot
    const ActivityReport report = report_of(activities, {.timeline = &timeline});
    CHECK(report.causes.source == 20);
    CHECK(report.causes.other == 5);
}

TEST_CASE("a whole graph counts as a kernel does") {
    DeviceActivities activities;
    activities.names = {"graph 3"};
    activities.activities = {made(ActivityKind::graph, 0, 30), made(ActivityKind::copy, 20, 40)};
    const ActivityReport report = report_of(activities);
    CHECK(report.causes.kernel == 30);
    CHECK(report.causes.copy == 10);
    CHECK(report.device.both == doctest::Approx(0.25));
}

TEST_CASE("kernels are summed by stage and name, the longest first") {
    DeviceActivities activities;
    activities.names = {"void gemm<float>(int)", "relu", "copy, host to device"};
    activities.stages = {"encode", "train"};
    activities.activities = {
        made(ActivityKind::kernel, 0, 10, 7, 1), made(ActivityKind::kernel, 10, 40, 7, 0),
        made(ActivityKind::kernel, 40, 60, 7, 0), made(ActivityKind::kernel, 60, 70, 7, 1),
        made(ActivityKind::copy, 70, 100, 7, 2)};
    activities.activities[0].stage = 1;
    activities.activities[1].stage = activities.activities[2].stage = activities.activities[3].stage = 0;
    activities.activities[4].bytes = 4096;
    const ActivityReport report = report_of(activities);
    REQUIRE(report.kernels.size() == 4);
    CHECK(report.count == 5);
    CHECK(report.kernels[0].stage == "encode");
    CHECK(report.kernels[0].name == "void gemm<float>(int)");
    CHECK(report.kernels[0].count == 2);
    CHECK(report.kernels[0].total == 50);
    CHECK(report.kernels[0].mean == 25);
    CHECK(report.kernels[0].share == doctest::Approx(0.5));
    CHECK(report.kernels[1].name == "relu");
    CHECK(report.kernels[1].stage == "encode");
    CHECK(report.kernels[2].stage == "train");
    CHECK(report.kernels[3].stage.empty());
    CHECK(report.kernels[3].bytes == 4096);
}

TEST_CASE("a stage of one kernel is reported, and each stage has its own longest kernels in the table") {
    DeviceActivities activities;
    activities.names = {"alpha", "beta", "gamma", "delta"};
    activities.stages = {"encode", "train", "idle"};
    activities.activities = {
        made(ActivityKind::kernel, 0, 40, 7, 0), made(ActivityKind::kernel, 40, 70, 7, 1),
        made(ActivityKind::kernel, 70, 90, 7, 2), made(ActivityKind::kernel, 90, 100, 7, 3)};
    activities.activities[0].stage = activities.activities[1].stage = activities.activities[2].stage = 0;
    activities.activities[3].stage = 1;
    const ActivityReport report = report_of(activities);
    REQUIRE(report.stages.size() == 2); // not the one that has done nothing
    CHECK(report.stages[1].name == "train");
    CHECK(report.stages[1].activities == 1);
    const std::string table = to_table(report, 2);
    for (const char* const shown : {"alpha", "beta", "delta"})
        CHECK(contains(table, shown));
    CHECK(!contains(table, "gamma"));
    CHECK(contains(table, "and 1 more names"));
}

TEST_CASE(
    "a stage is at work from its batch's first activity to its last, in whatever order they were noted") {
    DeviceActivities activities;
    activities.names = {"kernel"};
    activities.stages = {"encode"};
    activities.activities = {made(ActivityKind::kernel, 30, 40), made(ActivityKind::kernel, 80, 90),
                             made(ActivityKind::kernel, 0, 10), made(ActivityKind::kernel, 50, 60)};
    for (DeviceActivity& activity : activities.activities)
        activity.stage = 0;
    activities.activities[0].batch = activities.activities[2].batch = 4;
    activities.activities[1].batch = activities.activities[3].batch = 5;
    const ActivityReport report = report_of(activities);
    REQUIRE(report.stages.size() == 1);
    CHECK(report.stages[0].busy == 40);
    CHECK(report.stages[0].at_work == 80);
}

TEST_CASE("what lasts no time has no share of it") {
    DeviceActivities activities;
    activities.names = {"mark"};
    activities.stages = {"encode"};
    activities.activities = {made(ActivityKind::kernel, 5, 5, 7, 0)};
    activities.activities[0].stage = 0;
    const ActivityReport report = report_of(activities);
    CHECK(report.wall == 0);
    CHECK(report.count == 1);
    for (const double share :
         {report.busy_share, report.overlap, report.at_work_overlap, report.noted_overlap, report.device.both,
          report.device.copy_only, report.device.compute_only})
        CHECK(share == 0);
    CHECK(report.device.neither == 1);
    CHECK(sum(report.causes) == 0);
    REQUIRE(report.stages.size() == 1);
    CHECK(report.stages[0].share == 0);
    CHECK(report.stages[0].at_work_share == 0);
    REQUIRE(report.kernels.size() == 1);
    CHECK(report.kernels[0].share == 0);
    CHECK(report.kernels[0].mean == 0);
    CHECK(!contains(to_table(report), "nan"));
}

TEST_CASE("the share of Tensor Cores is of all kernels' time, and says of how much it is not known") {
    DeviceActivities activities;
    activities.names = {"gemm", "relu", "compiled", "copy, host to device", "all-reduce"};
    activities.tensor_cores = {TensorCores::present, TensorCores::absent};
    activities.activities = {
        made(ActivityKind::kernel, 0, 50, 7, 0), made(ActivityKind::kernel, 50, 80, 7, 1),
        made(ActivityKind::kernel, 60, 70, 8, 0), made(ActivityKind::copy, 0, 500, 9, 3)};
    ActivityReport report = report_of(activities);
    CHECK(report.tensor_core_share == doctest::Approx(60.0 / 90)); // what overlaps counts each time
    CHECK(report.tensor_core_unknown == 0);
    CHECK(contains(to_table(report), "took 66.7 % of all kernels' time.\n"));
    CHECK(contains(to_table(report), "gemm                             yes"));
    CHECK(widest_line(to_table(report)) <= 80);
    CHECK(contains(to_json(report), "\"bytes\":0,\"tensor_cores\":true}"));
    CHECK(contains(to_json(report), "\"bytes\":0,\"tensor_cores\":false}"));
    CHECK(contains(to_json(report), "\"tensor_cores\":null}")); // the copy

    // A kernel whose code was not seen, and one of NCCL's.
    activities.activities.push_back(made(ActivityKind::kernel, 80, 100, 7, 2));
    activities.activities.push_back(made(ActivityKind::communication, 100, 110, 7, 4));
    report = report_of(activities);
    CHECK(report.tensor_core_share == doctest::Approx(0.5));
    CHECK(report.tensor_core_unknown == doctest::Approx(0.25));
    CHECK(contains(to_table(report), "of 25.0 %"));
    CHECK(widest_line(to_table(report)) <= 80);

    // Nothing is said where nothing is known.
    activities.tensor_cores.clear();
    report = report_of(activities);
    CHECK(report.tensor_core_unknown == 1);
    CHECK(!contains(to_table(report), "Tensor"));
    CHECK(!contains(to_table(report), "TC"));
    CHECK(report_of(DeviceActivities{}).tensor_core_unknown == 1);
    CHECK(report_of(DeviceActivities{}).tensor_core_share == 0);
}

TEST_CASE("the table is at most 80 columns wide, and says what is missing or distorted") {
    DeviceActivities activities;
    activities.names = {
        "void a_namespace::a_kernel_with_a_long_name<float, 128, (anonymous namespace)::Epilogue>(int, "
        "void (*)(float))",
        "b", "c"};
    activities.stages = {"a stage with a long name, too"};
    activities.activities = {made(ActivityKind::kernel, 0, 9e9), made(ActivityKind::kernel, 0, 2, 7, 1),
                             made(ActivityKind::kernel, 0, 1, 7, 2)};
    for (DeviceActivity& activity : activities.activities)
        activity.stage = 0;
    activities.dropped = 3;
    activities.silent_graphs = 4;
    const std::string table = to_table(report_of(activities, {.title = "a title", .slowdown = 1.25}), 2);
    CHECK(widest_line(table) <= 80);
    CHECK(contains(table, "a title"));
    CHECK(contains(table, "1.250 x as long"));
    CHECK(contains(table, "3 records were lost"));
    CHECK(contains(table, "before the graphs"));
    CHECK(contains(table, " a_namespace::a_kernel_with_a_lo"));
    CHECK(contains(table, "and 1 more names"));
    CHECK(!contains(to_table(report_of(activities), 3), "more names"));
    CHECK(widest_line(to_table(report_of(DeviceActivities{}))) <= 80);
    CHECK(contains(to_table(report_of(DeviceActivities{})), "0 kernels and copies"));
}

TEST_CASE("a kernel's name is shown without its arguments") {
    const auto shown = detail::device_activity_text::short_name;
    CHECK(shown("void gemm<float, 4>(int, float*)") == "gemm<float, 4>");
    CHECK(shown("void f<(Kind)1>(void (*)(int))") == "f<(Kind)1>");
    CHECK(shown("a::(anonymous namespace)::f(int)") == "a::f");
    CHECK(shown("sm90_xmma_gemm_f16") == "sm90_xmma_gemm_f16");
    CHECK(shown("voided(int)") == "voided");
    CHECK(shown("void f(decltype(a->b))") == "f");
    CHECK(shown("T::operator->(int)") == "T::operator->");
    CHECK(shown("") == "");
}

TEST_CASE("the JSON object has all kernels and names the unit of times") {
    DeviceActivities activities;
    activities.names = {"say \"k\"", "copy"};
    activities.activities = {made(ActivityKind::kernel, 0, 1), made(ActivityKind::copy, 1, 4, 7, 1)};
    const std::string json = to_json(report_of(activities, {.title = "t"}));
    CHECK(json.starts_with("{\"title\":\"t\""));
    CHECK(contains(json, "\"wall_us\":4"));
    CHECK(contains(json, "\"causes\":{\"kernel_us\":1,\"copy_us\":3,\"set_us\":0,"));
    CHECK(contains(json, "\"name\":\"say \\\"k\\\"\""));
    CHECK(contains(json, "\"kind\":\"copy\""));
    CHECK(json.ends_with("\"silent_graphs\":0}"));
}

TEST_CASE("the totals of kernels are in a unit that suits the longest") {
    ActivityReport report;
    report.wall = 1e6;
    for (const double total : {40.0, 500000.0, 300.0}) {
        KernelTotal kernel;
        kernel.name = "gemm";
        kernel.count = 1;
        kernel.total = kernel.mean = total;
        report.kernels.push_back(kernel);
    }
    CHECK(contains(to_table(report), "total ms"));
    report.kernels[1].total = 50;
    CHECK(contains(to_table(report), "total us"));
}

} // namespace report_device_activity
