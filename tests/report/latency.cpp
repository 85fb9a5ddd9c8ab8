// How long batches take, and what bounds a pipeline whose source or loop is paced by something else.
#include <chrono>
#include <cstddef>
#include <string>
#include <thread>
#include <vector>

#include <sluice/report.hpp>
#include <sluice/sluice.hpp>

#include "support/doctest.hpp"
#include "support/error_text.hpp"

namespace report_latency {

using namespace sluice;
using namespace sluice::test;
using Clock = std::chrono::steady_clock;

struct Frame {
    int number = 0;
    Clock::time_point taken;
};
Clock::time_point batch_time(const Frame& frame) { return frame.taken; }
struct Other {
    int number = 0;
};

namespace {

// A batch every `period`, which each of two stages works on for `work`; `waited` in submit, and `used` CPU time in all.
PipelineTimes times_of_paced(double period, double work, double submit, double waited, double used) {
    PipelineTimes times;
    times.stage_names = {"load", "infer"};
    times.stage_units = {"GPU 0", "GPU 0"};
    std::vector<StageTime> seconds;
    for (std::size_t batch = 0; batch < 40; ++batch) {
        const double begin = period * static_cast<double>(batch);
        StageTime call{3, batch, begin, begin + submit};
        call.waited = waited;
        call.used = used > 0 ? 1 + used * static_cast<double>(batch) : 0;
        times.submits.push_back(call);
        times.stages.push_back({0, batch, begin + submit, begin + submit + work});
        seconds.push_back({1, batch, begin + submit + work, begin + submit + 2 * work});
    }
    times.stages.insert(times.stages.end(), seconds.begin(), seconds.end());
    return times;
}

void add_fills(PipelineTimes& times, double pace, std::size_t each) {
    times.workers = 1;
    times.drops = true;
    for (std::size_t i = 0; i < 40 * each; ++i) {
        const double end = pace * static_cast<double>(i);
        FillTime fill{i, 0, end - pace, end - pace, end};
        if (i % each == each - 1) {
            fill.asked = end;
            fill.given = end + 1;
        }
        times.fills.push_back(fill);
    }
    times.fills.push_back({40 * each, 0, 0, 0, pace * 40 * static_cast<double>(each)}); // not taken yet
    detail::pipeline_report::note_pace(times);
    detail::pipeline_report::keep_noted_fills(times);
}

} // namespace

TEST_CASE("latency: from submit, or from when a batch came into being, to the end of its last stage") {
    PipelineTimes times = times_of_paced(300, 50, 10, 0, 0);
    times.submits[20].made = times.submits[20].begin - 1000;
    times.stages.erase(times.stages.begin() + 7); // of batch 7 it is not known when the first stage was done
    times.stages.push_back({2, 4, 0, 99999});     // a graph of whole steps is no stage
    const TimelineReport report = report_of(times, "paced");
    CHECK(report.latency.batches == 39);
    CHECK(report.latency.median == doctest::Approx(110));
    CHECK(report.latency.longest == doctest::Approx(1110));
    CHECK(report.latency.p99 == doctest::Approx(1110));
    CHECK(contains(to_table(report),
                   "latency in us: median 110.0, p99 1110, p99.9 1110, max 1110, of 39 batches\n"));
    CHECK(contains(to_json(report), "\"latency\":{\"batches\":39,\"median_us\":110"));
    CHECK(contains(to_html(timeline_of(times, "paced")), "latency in us: median 110.0"));
}

TEST_CASE("latency: of a batch ends with the last stage that ran for it, where stages run at several rates") {
    PipelineTimes times;
    times.stage_names = {"load", "add", "write"};
    times.stage_units = {"GPU 0", "GPU 0", "GPU 0"};
    times.batches_a_run = {1, 1, 4};
    for (std::size_t batch = 0; batch < 10; ++batch) {
        const double begin = 100 * static_cast<double>(batch);
        times.submits.push_back({4, batch, begin, begin + 5});
        times.stages.push_back({0, batch, begin + 5, begin + 10});
        if (batch != 6) // is not known
            times.stages.push_back({1, batch, begin + 10, begin + 20});
        if (batch % 4 == 3 || batch == 9) // the last one of fewer
            times.stages.push_back({2, batch, begin + 20, begin + 70});
    }
    CHECK(timeline_of(times).latencies() == std::vector<double>{20, 20, 20, 70, 20, 20, 70, 20, 70});
    const TimelineReport report = report_of(times, "rates");
    CHECK(contains(to_table(report),
                   "latency in us: median 20.00, p99 70.00, p99.9 70.00, max 70.00, of 9 batches\n"));
    CHECK(contains(to_json(report), "\"latency\":{\"batches\":9,\"median_us\":20,\"p99_us\":70"));
}

TEST_CASE("latency: pictures and traces show it") {
    Timeline timeline("paced");
    (void)timeline.add_row("load", "GPU 0");
    timeline.add({0, 0, 0, 110, SpanKind::compute});
    Timeline other = timeline;
    const std::string words = "latency in us: median 110.0, p99 110.0, p99.9 110.0, max 110.0, of 1 batch";
    CHECK_FALSE(contains(to_svg(timeline), "latency"));
    CHECK_FALSE(contains(to_perfetto(timeline), "latency"));
    timeline.set_latencies({110});
    CHECK(contains(to_svg(timeline), words + ".<"));
    CHECK_FALSE(contains(to_svg(timeline), "paced: latency"));
    CHECK(contains(to_svg({&timeline, &other}), "paced: " + words + ".<"));
    CHECK(contains(to_perfetto(timeline), words));
}

TEST_CASE("latency: percentiles are the shortest that as many do not exceed") {
    Timeline timeline("made");
    std::vector<double> latencies;
    for (int i = 2000; i > 0; --i)
        latencies.push_back(i);
    timeline.set_latencies(latencies);
    const LatencyReport latency = report_of(timeline).latency;
    CHECK(latency.batches == 2000);
    CHECK(latency.median == 1000.5);
    CHECK(latency.p99 == 1980);
    CHECK(latency.p99_9 == 1998);
    CHECK(latency.longest == 2000);
    timeline.set_latencies({-3, -1, -2}); // of batches that come into being after they were submitted
    CHECK(report_of(timeline).latency.longest == -1);
    CHECK(report_of(Timeline("none")).latency.batches == 0);
    CHECK_FALSE(contains(to_table(report_of(Timeline("none"))), "latency"));
}

TEST_CASE("latency: a batch's own time counts, also that of the first of two, under each schedule") {
    for (const Schedule schedule : {Schedule::serial, Schedule::overlapped, Schedule::graphed}) {
        Stage look{"look", [](HostStreamRef, const Zipped<Frame, Other>&) {}};
        Pipeline pipeline{Stages{look}, {.schedule = schedule, .timed_batches = 8}};
        const Frame frame{0, Clock::now() - std::chrono::seconds{100}};
        const Other other;
        const Zipped<Frame, Other> batch{frame, other};
        for (int i = 0; i < 8; ++i)
            pipeline.submit(batch);
        pipeline.finish();
        for (const StageTime& submit : pipeline.submit_times()) {
            CHECK(submit.made == doctest::Approx(submit.begin - 1e8).epsilon(0.01));
            CHECK(submit.used > 0);
        }
        const LatencyReport latency = report_of(pipeline).latency;
        if (schedule != Schedule::graphed || latency.batches > 0)
            CHECK(latency.median >= 1e8);
    }
    Stage look{"look", [](HostStreamRef, const Other&) {}};
    Pipeline pipeline{Stages{look}, {.timed_batches = 8}};
    for (int i = 0; i < 8; ++i)
        pipeline.submit(Other{i});
    pipeline.finish();
    for (const StageTime& submit : pipeline.submit_times())
        CHECK(submit.made == 0);
    CHECK(report_of(pipeline).latency.batches == 8);
}

TEST_CASE("bound: a source that drops sends at its own pace, and more workers would not help") {
    PipelineTimes paced = times_of_paced(300, 50, 10, 0, 0);
    add_fills(paced, 300, 1);
    for (FillTime& fill : paced.fills)
        fill.asked -= 250;
    const Bound bound = bound_of(paced);
    CHECK(bound.part == BoundPart::source);
    CHECK(bound.workers == 0);
    CHECK(bound.sentence ==
          "the source sets the pace: it sends 3,333 batches/s, and the stages need 50 us of 300 us a batch.");
    paced.drops = false;
    CHECK(contains(bound_of(paced).sentence, "one worker fills a batch in 300 us"));
}

TEST_CASE("what was noted says whether the source drops batches") {
    for (const WhenAhead when_ahead : {WhenAhead::wait, WhenAhead::drop_oldest, WhenAhead::drop_newest}) {
        CAPTURE(static_cast<int>(when_ahead));
        Source source{
            [](int) { return PinnedBuffer<float, Host>(1); }, [](std::size_t, PinnedBuffer<float, Host>&) {},
            SourceOptions<Host>{.workers = 1, .slots = 3, .when_ahead = when_ahead, .timed_batches = 16}};
        TwoStreamPipeline pipeline{
            Stage{"first", [](HostStreamRef, const PinnedBuffer<float, Host>&, int&) {}},
            Stage{"second", [](HostStreamRef, const int&) {}},
            [](int) { return 0; },
            {.timed_batches = 16}};
        for (int batch = 0; batch < 20; ++batch)
            pipeline.submit(source.next());
        pipeline.finish();
        const PipelineTimes times = times_of(pipeline, source);
        CHECK(times.drops == (when_ahead != WhenAhead::wait));
        CHECK(times.workers == 1);
        source.stop();
    }
}

TEST_CASE("bound: what a source has dropped stands behind what it was dropped for") {
    PipelineTimes behind = times_of_paced(3000, 2995, 5, 0, 0);
    add_fills(behind, 300, 10);
    CHECK(behind.sent == 400);
    CHECK(behind.dropped == 360);
    CHECK(behind.pace == doctest::Approx(300));
    const Bound bound = bound_of(behind);
    CHECK(bound.part == BoundPart::stage);
    CHECK(contains(bound.sentence, " bounds this: it takes 2995 us of 3000 us a batch"));
    CHECK(contains(bound.sentence, ". The source sends 3,333 batches/s; 360 of 400 were dropped."));
}

TEST_CASE("bound: a loop that sleeps is not blamed, one that works is") {
    const Bound sleeping = bound_of(times_of_paced(300, 50, 10, 0, 20));
    CHECK(sleeping.part == BoundPart::loop);
    CHECK(sleeping.sentence == "what the loop waits for sets the pace: it sleeps 280 us of 300 us a batch.");
    CHECK(sleeping.asleep == doctest::Approx(280));
    const Bound working = bound_of(times_of_paced(300, 50, 10, 0, 290));
    CHECK(working.sentence ==
          "the loop that submits bounds this: it spends 290 us of 300 us a batch outside of submit.");
    const Bound unknown = bound_of(times_of_paced(300, 50, 10, 0, 0));
    CHECK(contains(unknown.sentence, "the loop that submits bounds this"));
}

TEST_CASE("bound: a wait for room within submit is not the loop's") {
    const Bound bound = bound_of(times_of_paced(200, 98, 195, 190, 10));
    CHECK(bound.held == doctest::Approx(190));
    CHECK(bound.submit == doctest::Approx(5));
    CHECK(bound.asleep == doctest::Approx(0));
    CHECK(bound.part != BoundPart::loop);
}

TEST_CASE("bound: a wait for results of run is a wait for the stages, and not the loop's") {
    PipelineTimes times = times_of_paced(300, 140, 10, 0, 20);
    CHECK(bound_of(times).part == BoundPart::loop);
    for (StageTime& submit : times.submits)
        submit.results = 270;
    const Bound bound = bound_of(times);
    CHECK(bound.part == BoundPart::waiting);
    CHECK(bound.results == doctest::Approx(270));
    CHECK(bound.asleep == doctest::Approx(10));
    CHECK(contains(bound.sentence, "stages wait for one another: together they take 280 us"));
}

TEST_CASE("submit_times tells how long a loop over run has waited for results") {
    Stage slow{"slow", [](HostStreamRef stream, const int& in, PinnedBuffer<int, Host>& out) {
                   stream.enqueue([number = in, &out] {
                       std::this_thread::sleep_for(std::chrono::milliseconds(2));
                       out[0] = number;
                   });
               }};
    Pipeline pipeline{Stages{slow},
                      Slots{[](int) { return PinnedBuffer<int, Host>{1}; }},
                      {.slots = 1, .timed_batches = 8}};
    const std::vector<int> batches(8, 3);
    for (const PinnedBuffer<int, Host>& result : pipeline.run(batches))
        CHECK(result[0] == 3);
    double waited = 0;
    for (const StageTime& submit : pipeline.submit_times())
        waited += submit.results;
    CHECK(waited > 1000);           // at least one of seven waits for 2 ms
    for (const int batch : batches) // of what the loop above has waited, nothing is left
        pipeline.submit(batch);
    pipeline.finish();
    const std::vector<StageTime> later = pipeline.submit_times();
    for (std::size_t i = 1; i < later.size(); ++i)
        CHECK(later[i].results == 0);
}

} // namespace report_latency
