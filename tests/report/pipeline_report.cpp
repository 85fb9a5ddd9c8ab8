// A pipeline's last batches as a timeline and in numbers.
#include <chrono>
#include <cstddef>
#include <string>
#include <thread>
#include <vector>

#include <doctest/doctest.h>

#include <sluice/pipeline/two_stream_pipeline.hpp>
#include <sluice/report.hpp>

#include "support/error_text.hpp"

namespace report_pipeline {

using namespace sluice;
using namespace sluice::test;

namespace {

struct Nothing {};

void take(HostStreamRef stream, int milliseconds) {
    stream.enqueue([=] { std::this_thread::sleep_for(std::chrono::milliseconds(milliseconds)); });
}

TimelineReport reported(Schedule schedule, Timeline* kept = nullptr) {
    Stage encode{"encode", [](HostStreamRef stream, const int&, Nothing&) { take(stream, 5); }};
    Stage train{"train", [](HostStreamRef stream, const Nothing&) { take(stream, 15); }};
    TwoStreamPipeline pipeline{
        encode, train, [](int) { return Nothing{}; }, {.schedule = schedule, .timed_batches = 40}};
    for (int i = 0; i < 20; ++i)
        pipeline.submit(i);
    pipeline.finish();
    if (kept != nullptr)
        *kept = timeline_of(pipeline, "kept");
    return report_of(pipeline, "two stages");
}

} // namespace

TEST_CASE("a pipeline's timeline has a row a stage, with the device it works on, and all its batches") {
    Timeline timeline;
    (void)reported(Schedule::overlapped, &timeline);
    CHECK(timeline.title() == "kept");
    REQUIRE(timeline.rows().size() == 3);
    CHECK(timeline.rows()[0].name == "encode");
    CHECK(timeline.rows()[1].name == "train");
    CHECK(timeline.rows()[2].name == "submit");
    CHECK(timeline.rows()[2].unit == "CPU");
    CHECK(timeline.rows()[0].unit == "host 0");
    REQUIRE(timeline.spans().size() >= 40);
    CHECK(timeline.begin() == 0);
    for (std::size_t i = 0; i < 40; ++i) {
        CHECK(timeline.spans()[i].row == i / 20);
        CHECK(timeline.spans()[i].batch == i % 20);
        CHECK(timeline.spans()[i].kind == SpanKind::compute);
    }
}

TEST_CASE("a pipeline's report says which stage set the pace, and whether stages overlapped") {
    const TimelineReport overlapped = reported(Schedule::overlapped);
    CHECK(overlapped.title == "two stages");
    CHECK(overlapped.batches == 20);
    CHECK(overlapped.pace_row == 1);
    CHECK(overlapped.rows[1].share > overlapped.rows[0].share);
    CHECK(overlapped.rows[0].median >= 5000);
    CHECK(overlapped.rows[1].median >= 15000);
    // However slow the machine, the first stage's work is hidden behind the second's.
    CHECK(overlapped.overlap > 0.05);

    const TimelineReport serial = reported(Schedule::serial);
    CHECK(serial.overlap == doctest::Approx(0));
    CHECK(serial.rows[0].share + serial.rows[1].share <= doctest::Approx(1));
}

TEST_CASE("a CPU stage of a pipeline on a device stands with the CPU") {
    // The Host backend's own CPU stages are tasks of its streams.
    Stage encode{"encode", [](HostStreamRef stream, const int&, Nothing&) { take(stream, 2); }};
    Stage look{"look", [](const Nothing&) {}};
    Pipeline pipeline{Stages{encode, look}, Slots{[](int) { return Nothing{}; }}, {.timed_batches = 4}};
    pipeline.submit(1);
    pipeline.finish();
    const Timeline timeline = timeline_of(pipeline);
    REQUIRE(timeline.rows().size() == 3); // and one for calls of submit
    CHECK(timeline.rows()[1].unit == (pipeline.is_cpu_stage(1) ? "CPU" : "host 0"));
}

TEST_CASE("a pipeline whose type says only what it takes is reported as well, and says what it has chosen") {
    Stage encode{"encode", [](HostStreamRef stream, const int&, Nothing&) { take(stream, 1); }};
    Stage train{"train", [](HostStreamRef stream, const Nothing&) { take(stream, 2); }};
    AnyPipeline<int, Host> pipeline{
        encode, train, [](int) { return Nothing{}; }, {.schedule = Schedule::automatic, .timed_batches = 8}};
    for (const int batch : {0, 1, 2, 3, 4, 5})
        pipeline.submit(batch);
    pipeline.finish();
    CHECK(pipeline.choice().schedule == Schedule::overlapped);
    CHECK(pipeline.choice().batches == 6);
    CHECK(pipeline.stages() == 2);
    const Timeline timeline = timeline_of(pipeline, "any");
    REQUIRE(timeline.rows().size() == 3);
    CHECK(timeline.rows()[1].name == "train");
    CHECK(report_of(pipeline).batches == 6);
}

TEST_CASE("a pipeline that notes nothing has no timeline, and says how it would have one") {
    Stage encode{"encode", [](HostStreamRef stream, const int&) { take(stream, 1); }};
    Pipeline pipeline{Stages{encode}};
    CHECK(contains(text_of([&] { (void)timeline_of(pipeline); }), "PipelineOptions::timed_batches"));
}

} // namespace report_pipeline
