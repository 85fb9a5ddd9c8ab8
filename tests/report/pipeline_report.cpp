// A pipeline's last batches as a timeline and in numbers.
#include <chrono>
#include <cstddef>
#include <string>
#include <thread>
#include <vector>

#include <sluice/pipeline/two_stream_pipeline.hpp>
#include <sluice/report.hpp>

#include "support/doctest.hpp"
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

TEST_CASE("of a source's batches those are drawn that the pipeline was given, from the first one on that its "
          "stages show") {
    using Batches = std::vector<std::size_t>;
    // The pipeline's last batch is 11, and was the source's 21.
    PipelineTimes times;
    times.stage_names = {"train"};
    times.stage_units = {"GPU 0"};
    times.workers = 1;
    times.submitted = 12;
    for (const std::size_t batch : {8u, 9u, 10u, 11u}) {
        const double begin = 100 * static_cast<double>(batch);
        times.stages.push_back({0, batch, begin, begin + 90});
    }
    for (const std::size_t batch : {16u, 17u, 18u, 19u, 20u, 21u, 22u}) {
        const double begin = 1000 + 10 * static_cast<double>(batch);
        times.fills.push_back({batch, 0, begin, begin + 1, begin + 2, 0, 0});
        if (batch == 22) // it waits in its slot
            continue;
        times.fills.back().asked = begin + 3;
        times.fills.back().given = begin + 4;
    }
    const auto batches_in = [&](const char* row, SpanKind kind) {
        const Timeline timeline = timeline_of(times, "by hand");
        Batches batches;
        for (const TimelineSpan& span : timeline.spans()) {
            if (timeline.rows()[span.row].name == row && span.kind == kind)
                batches.push_back(span.batch);
        }
        return batches;
    };
    CHECK(batches_in("source 0", SpanKind::source) == Batches{8, 9, 10, 11});
    CHECK(batches_in("source 0", SpanKind::wait) == Batches{8, 9, 10, 11});
    CHECK(batches_in("submit", SpanKind::wait) == Batches{8, 9, 10, 11}); // for the source
    CHECK(batches_in("submit", SpanKind::source).empty());
    // Of the first batch that any stage shows, whichever stage stands first.
    times.stages.insert(times.stages.begin(), {0, 10, 1000, 1090});
    times.stages.erase(times.stages.begin() + 3); // the other one of 10
    CHECK(batches_in("source 0", SpanKind::source) == Batches{8, 9, 10, 11});
    // Without threads the caller fills, and waits for no worker.
    times.workers = 0;
    CHECK(batches_in("submit", SpanKind::source) == Batches{8, 9, 10, 11});
    CHECK(batches_in("submit", SpanKind::wait).empty());
    // Where the number of batches is not known, the last call says it; where that is not either, both count alike.
    times.submitted = 0;
    CHECK(batches_in("submit", SpanKind::source) == Batches{16, 17, 18, 19, 20, 21});
    times.submits.push_back({1, 11, 2000, 2001});
    CHECK(batches_in("submit", SpanKind::source) == Batches{11, 8, 9, 10, 11}); // the call itself first
    // Of those that the source has left out, or dropped, the pipeline knows nothing.
    std::erase_if(times.fills, [](const FillTime& fill) { return fill.batch == 20; });
    times.fills[2].given = 0; // of 18
    CHECK(batches_in("submit", SpanKind::source) == Batches{11, 8, 9, 10, 11});
    CHECK(times.fills.size() == 6);
}

TEST_CASE("of a source's fills those are kept whose batches' submits are noted, or all where none is") {
    const auto kept = [](std::vector<std::size_t> submits) {
        PipelineTimes times;
        times.submitted = 12; // the last batch is 11, and was the source's 21
        for (const std::size_t batch : submits)
            times.submits.push_back({1, batch, 0, 1});
        for (const std::size_t batch : {5u, 17u, 18u, 19u, 20u, 21u, 22u})
            times.fills.push_back({batch, 0, 0, 0, 0, 0, batch == 22 ? 0.0 : 1.0});
        detail::pipeline_report::keep_noted_fills(times);
        std::vector<std::size_t> batches;
        for (const FillTime& fill : times.fills)
            batches.push_back(fill.batch);
        return batches;
    };
    const std::vector<std::size_t> all{5, 17, 18, 19, 20, 21, 22};
    CHECK(kept({8, 9, 10}) == std::vector<std::size_t>{18, 19, 20});
    CHECK(kept({11}) == std::vector<std::size_t>{21});
    CHECK(kept({10, 11, 12}) == std::vector<std::size_t>{20, 21}); // 22 was not given
    CHECK(kept({2, 3}) == all);
    CHECK(kept({}) == all);
}

TEST_CASE("a graphed pipeline whose steps are mostly no graphs says so, and why") {
    const auto sentence_of = [](PipelineOptions options, bool flushes) {
        options.timed_batches = 8;
        Stage first{"first", [](HostStreamRef stream, const int&, Nothing&) { stream.enqueue([] {}); }};
        Stage second{"second", [](HostStreamRef stream, const Nothing&) { stream.enqueue([] {}); }};
        TwoStreamPipeline pipeline{first, second, [](int) { return Nothing{}; }, options};
        for (int i = 0; i < 50; ++i) {
            pipeline.submit(1);
            if (flushes)
                pipeline.flush();
        }
        pipeline.finish();
        return report_of(pipeline).sentence;
    };
    const PipelineOptions graphed{.schedule = Schedule::graphed};
    const std::string why = sentence_of(graphed, true);
    CAPTURE(why);
    CHECK(contains(
        why, "Of 100 runs 100 launched no graph: of 100 a flush, a finish or a wait for a batch came before "
             "the step was whole; graph_each_stage has no such steps."));
    PipelineOptions one_slot = graphed;
    one_slot.slots = 1; // All stages of a step are one graph, which a flush finds whole.
    CHECK(!contains(sentence_of(one_slot, true), "launched no graph"));
    CHECK(!contains(sentence_of(graphed, false), "launched no graph"));
    PipelineOptions each = graphed;
    each.graph_each_stage = true;
    CHECK(!contains(sentence_of(each, true), "launched no graph"));
    PipelineOptions blocking = graphed;
    blocking.launch_blocking = true;
    CHECK(contains(sentence_of(blocking, false), "launch_blocking is set."));
    CHECK(!contains(sentence_of({.schedule = Schedule::overlapped}, true), "launched no graph"));
}

TEST_CASE("a pipeline that notes nothing has no timeline, and says how it would have one") {
    Stage encode{"encode", [](HostStreamRef stream, const int&) { take(stream, 1); }};
    Pipeline pipeline{Stages{encode}};
    CHECK(contains(text_of([&] { (void)timeline_of(pipeline); }), "PipelineOptions::timed_batches"));
}

} // namespace report_pipeline
