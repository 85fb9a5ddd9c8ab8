// Which stage and batch made-up records are of, and the rows that they become in a timeline.
#include <limits>
#include <string>

#include <sluice/report/device_activity.hpp>

#include "made_activities.hpp"
#include "support/doctest.hpp"
#include "support/error_text.hpp"

namespace report_activity_stages {

using namespace sluice;
using namespace sluice::test;

namespace {

Timeline two_stages() {
    Timeline timeline("two stages");
    timeline.set_clock_zero(zero);
    timeline.add_row("encode", "GPU 0");
    timeline.add_row("train", "GPU 0");
    timeline.add({0, 0, 0, 10});
    timeline.add({0, 1, 10, 20});
    timeline.add({1, 0, 10, 30});
    timeline.add({1, 1, 30, 50});
    return timeline;
}

} // namespace

TEST_CASE("activities find their batch, and those without a stage the one they can be of") {
    const Timeline timeline = two_stages();
    DeviceActivities activities;
    activities.names = {"k"};
    activities.stages = {"train", "encode"};
    activities.activities = {
        made(ActivityKind::kernel, 2, 5, 7),      // in encode's first span alone
        made(ActivityKind::kernel, 12, 14, 8),    // stage known: train
        made(ActivityKind::kernel, 15, 18, 8),    // in spans of both, on train's stream
        made(ActivityKind::kernel, 16, 17, 9),    // in spans of both, on another stream
        made(ActivityKind::kernel, 35, 40, 7),    // in train's alone
        made(ActivityKind::kernel, 20.5, 21, 10), // encode is known, its span ended just before
        made(ActivityKind::kernel, 9.2, 9.8, 11)  // in encode's, just before train's
    };
    activities.activities[1].stage = 0;
    activities.activities[5].stage = 1;
    assign_to_stages(activities, timeline, 1);
    const auto& got = activities.activities;
    CHECK(activities.stages[got[0].stage] == "encode");
    CHECK(got[0].batch == 0);
    CHECK(got[1].batch == 0);
    CHECK(got[2].stage == 0);
    CHECK(got[2].batch == 0);
    CHECK(got[3].stage == DeviceActivity::unknown);
    CHECK(got[3].batch == DeviceActivity::unknown);
    CHECK(activities.stages[got[4].stage] == "train");
    CHECK(got[4].batch == 1);
    CHECK(got[5].batch == 1);
    CHECK(activities.stages[got[6].stage] == "encode");
    CHECK(got[6].batch == 0);
    CHECK(activities.stages.size() == 2);

    const ActivityReport report = report_of(activities, {.timeline = &timeline});
    REQUIRE(report.stages.size() == 2);
    CHECK(report.stages[0].name == "train");
    CHECK(report.stages[0].busy == 2 + 3 + 5);
    CHECK(report.stages[0].at_work == (18 - 12) + 5); // with the gap between its kernels
    CHECK(report.stages[0].noted_share == doctest::Approx(0.8));
    CHECK(report.stages[1].noted_share == doctest::Approx(0.4));
    CHECK(report.noted_overlap == doctest::Approx(0.2));
    CHECK(contains(to_table(report), "by events %"));
    CHECK(!contains(to_table(report_of(activities)), "by events %"));
}

TEST_CASE(
    "on a stream of one stage an activity is that stage's, whatever its row, and of no other row's time") {
    Timeline timeline("three");
    timeline.set_clock_zero(zero);
    for (const char* const name : {"load", "encode", "train"})
        timeline.add_row(name, "GPU 0");
    for (const std::size_t row : {0u, 1u, 2u})
        timeline.add({row, 7, 0, 10});
    DeviceActivities activities;
    activities.names = {"k"};
    activities.stages = {"train", "load"};
    activities.activities = {made(ActivityKind::kernel, 1, 2, 8), made(ActivityKind::kernel, 3, 4, 8),
                             made(ActivityKind::kernel, 1, 2, 9), made(ActivityKind::kernel, 3, 4, 9),
                             made(ActivityKind::kernel, 12, 14, 9)};
    activities.activities[0].stage = 0;
    activities.activities[2].stage = 1;
    assign_to_stages(activities, timeline, 1);
    CHECK(activities.activities[1].stage == 0);
    CHECK(activities.activities[3].stage == 1);
    CHECK(activities.activities[1].batch == 7);
    CHECK(activities.activities[4].stage == DeviceActivity::unknown); // when no stage was at work
    CHECK(activities.stages.size() == 2);
}

TEST_CASE("a stream on which several stages worked says nothing of whose an activity is") {
    for (const bool several : {false, true}) {
        CAPTURE(several);
        DeviceActivities activities;
        activities.names = {"k"};
        activities.stages = {"train", "encode"};
        activities.activities = {made(ActivityKind::kernel, 12, 14, 8), made(ActivityKind::kernel, 2, 5, 8),
                                 made(ActivityKind::kernel, 15, 18, 8)}; // in spans of both
        activities.activities[0].stage = 0;
        activities.activities[1].stage = several ? 1 : 0;
        assign_to_stages(activities, two_stages(), 1);
        CHECK(activities.activities[2].stage == (several ? DeviceActivity::unknown : 0U));
    }
}

TEST_CASE("activities of another device are not given to a stage") {
    const Timeline timeline = two_stages();
    DeviceActivities activities;
    activities.names = {"k"};
    activities.activities = {made(ActivityKind::kernel, 2, 5)};
    activities.activities[0].device = 1;
    assign_to_stages(activities, timeline);
    CHECK(activities.activities[0].stage == DeviceActivity::unknown);
}

TEST_CASE("kernels of a graph of whole steps get the batch of the step") {
    Timeline timeline("graphed");
    timeline.set_clock_zero(zero);
    timeline.add_row("encode", "GPU 0");
    timeline.add_row("graphs", "GPU 0");
    timeline.add({1, 4, 0, 10});
    DeviceActivities activities;
    activities.names = {"k"};
    activities.stages = {"encode"};
    activities.activities = {made(ActivityKind::kernel, 2, 5), made(ActivityKind::kernel, 6, 7)};
    activities.activities[0].stage = 0;
    assign_to_stages(activities, timeline);
    CHECK(activities.activities[0].batch == 4);
    CHECK(activities.activities[1].stage == DeviceActivity::unknown);
}

TEST_CASE("activities become rows of a timeline, by stream, kernels apart from copies") {
    Timeline timeline = two_stages();
    DeviceActivities activities;
    activities.names = {"k"};
    activities.activities = {made(ActivityKind::kernel, 2, 5, 7), made(ActivityKind::copy, 3, 8, 7),
                             made(ActivityKind::set, 9, 10, 7), made(ActivityKind::kernel, 12, 14, 9),
                             made(ActivityKind::kernel, 60, 70, 11)}; // after the timeline's end
    activities.activities[3].batch = 1;
    add_rows(timeline, activities);
    REQUIRE(timeline.rows().size() == 5);
    CHECK(timeline.rows()[2].name == "kernels, stream 7");
    CHECK(timeline.rows()[2].unit == "GPU 0");
    CHECK(timeline.rows()[3].name == "copies, stream 7");
    CHECK(timeline.rows()[4].name == "kernels, stream 9");
    REQUIRE(timeline.spans().size() == 8);
    CHECK(timeline.spans()[4].row == 2);
    CHECK(timeline.spans()[4].begin == 2);
    CHECK(timeline.spans()[4].batch == 0); // which is not known
    CHECK(timeline.spans()[5].kind == SpanKind::copy);
    CHECK(timeline.spans()[6].row == 3);
    CHECK(timeline.spans()[7].batch == 1);

    // A timeline of nothing else begins with the first of them.
    Timeline alone;
    add_rows(alone, activities);
    CHECK(alone.clock_zero() == zero + 2);
    CHECK(alone.begin() == 0);
    CHECK(alone.end() == 68);

    // Values stay at their times.
    Timeline counted;
    counted.add_value(counted.add_counter("device memory", "B"), 5, 1);
    CHECK(contains(text_of([&] { add_rows(counted, activities); }),
                   "add_rows: the timeline '' does not say where its zero is"));
    counted.set_clock_zero(zero);
    add_rows(counted, activities);
    CHECK(counted.clock_zero() == zero);
    CHECK(counted.begin() == 2);
}

TEST_CASE("a slowdown that is none, and a kind of span that has no name, are refused") {
    for (const double slowdown :
         {-1.0, std::numeric_limits<double>::quiet_NaN(), std::numeric_limits<double>::infinity()}) {
        CHECK(contains(text_of([&] { (void)report_of(DeviceActivities{}, {.slowdown = slowdown}); }),
                       "ActivityReportOptions::slowdown is "));
    }
    Timeline timeline;
    timeline.add_row("row");
    CHECK(text_of([&] { timeline.add({.begin = 0, .end = 1, .kind = static_cast<SpanKind>(4)}); }) ==
          "Timeline::add: the span's kind is 4, which has no name; expected compute, copy, source or wait");
}

TEST_CASE("a timeline without the steady clock is refused in one sentence") {
    Timeline timeline("drawn by hand");
    timeline.add_row("row");
    timeline.add({0, 0, 0, 1});
    DeviceActivities activities;
    activities.names = {"k"};
    activities.activities = {made(ActivityKind::kernel, 0, 1)};
    for (const std::string& text : {text_of([&] { assign_to_stages(activities, timeline); }),
                                    text_of([&] { add_rows(timeline, activities); }),
                                    text_of([&] { (void)report_of(activities, {.timeline = &timeline}); })}) {
        CHECK(contains(text, "'drawn by hand'"));
        CHECK(contains(text, "set_clock_zero"));
    }
}

TEST_CASE("a row's span is the one that a time lies in, or of those near it the one that ends nearest") {
    detail::device_activity::RowSpans spans;
    spans.add({0, 0, 0, 10});
    spans.add({0, 1, 20, 25});
    spans.add({0, 2, 2, 11});
    spans.sort();
    const auto batch_at = [&](double time, double tolerance) {
        const TimelineSpan* const span = spans.at(time, tolerance);
        return span == nullptr ? -1 : static_cast<int>(span->batch);
    };
    CHECK(batch_at(22, 0) == 1);
    CHECK(batch_at(20, 0) == 1); // where it begins
    CHECK(batch_at(18, 2) == 1);
    CHECK(batch_at(17.9, 2) == -1);
    CHECK(batch_at(14, 2) == -1);
    CHECK(batch_at(13, 8) == 2);
    CHECK(batch_at(17, 8) == 1);
    CHECK(batch_at(1, 0) == 0);
    CHECK(batch_at(30, 5) == 1);
    CHECK(batch_at(30, 4.9) == -1);
}

} // namespace report_activity_stages
