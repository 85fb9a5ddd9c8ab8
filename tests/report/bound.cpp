// What bounds a pipeline: named from times that a model of a pipeline gives, and right if the model runs faster without it.
#include <algorithm>
#include <array>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include <sluice/report/bound.hpp>
#include <sluice/report/pipeline_report.hpp>

#include "report/bound_model.hpp"
#include "support/doctest.hpp"
#include "support/error_text.hpp"

namespace report_bound {

using namespace sluice;
using namespace sluice::test;

TEST_CASE("bound: the part is named without which the pipeline is faster") {
    struct Case {
        Costs costs;
        BoundPart part;
        std::size_t stage;
    };
    const std::array<Case, 12> cases{
        {{{.fill = 480, .first = 40, .second = 80}, BoundPart::source, 0},
         {{.fill = 480, .workers = 4, .first = 40, .second = 80}, BoundPart::source, 0},
         {{.fill = 480, .workers = 0, .submit = 10, .first = 40, .second = 80}, BoundPart::source, 0},
         {{.fill = 200, .workers = 4, .submit = 8, .first = 40, .second = 300}, BoundPart::stage, 1},
         {{.fill = 20, .submit = 8, .first = 400, .second = 30}, BoundPart::stage, 0},
         {{.fill = 5, .submit = 80, .first = 20, .second = 20}, BoundPart::submit, 0},
         {{.fill = 5, .workers = 2, .submit = 80, .first = 60, .second = 20}, BoundPart::submit, 0},
         {{.fill = 5, .loop = 300, .submit = 10, .first = 60, .second = 20}, BoundPart::loop, 0},
         {{.fill = 5, .submit = 10, .first = 100, .second = 100, .schedule = Schedule::serial},
          BoundPart::waiting,
          0},
         {{.fill = 5, .submit = 10, .first = 60, .second = 100, .schedule = Schedule::serial},
          BoundPart::waiting,
          0},
         {{.fill = 5, .submit = 10, .first = 5, .second = 100, .schedule = Schedule::serial},
          BoundPart::stage,
          1},
         {{.fill = 90, .submit = 10, .first = 100, .second = 50}, BoundPart::stage, 0}}};
    for (const Case& one : cases) {
        const Bound bound = bound_of(model(one.costs));
        CAPTURE(bound.sentence);
        CHECK(bound.part == one.part);
        CHECK(bound.stage == one.stage);
        CHECK(gain_without(one.costs, bound.part, bound.stage) > 1.05);
        CHECK(bound.period == doctest::Approx(period(one.costs)).epsilon(0.02));
    }
}

TEST_CASE("bound: of random costs nearly all are named right, and no advice is far off") {
    std::mt19937 random(7);
    const auto cost = [&](std::initializer_list<double> of) { return of.begin()[random() % of.size()]; };
    int right = 0, all = 0;
    for (int i = 0; i < 400; ++i) {
        const Costs costs{.fill = cost({1, 20, 100, 400, 1500}),
                          .workers = static_cast<int>(cost({0, 1, 2, 4, 8})),
                          .loop = cost({0, 0, 5, 40, 300}),
                          .submit = cost({2, 10, 70}),
                          .first = cost({1, 10, 60, 200, 700}),
                          .second = cost({1, 15, 80, 300, 900}),
                          .schedule = random() % 3 == 0 ? Schedule::serial : Schedule::overlapped,
                          .slots = 2 + static_cast<int>(random() % 2)};
        const double most = most_gain(costs);
        if (most < 1.1)
            continue; // several parts bound it to the same extent: there is no right answer
        ++all;
        const Bound bound = bound_of(model(costs));
        right += gain_without(costs, bound.part, bound.stage) - 1 >= 0.5 * (most - 1);
        if (bound.part == BoundPart::source && bound.workers > 0) {
            Costs more = costs;
            more.workers = bound.workers;
            CHECK(period(more) < 1.35 * std::max(bound.expected, costs.submit + costs.loop));
        }
    }
    CHECK(all > 200);
    CHECK(right >= 0.92 * all);
    MESSAGE(right << " of " << all << " named right");
}

TEST_CASE("bound: of stages that take as long the first one is named") {
    Costs costs;
    costs.first = costs.second = 200;
    CHECK(contains(bound_of(model(costs)).sentence, "first bounds this"));
}

TEST_CASE("bound: two submits are enough to say how often batches come") {
    PipelineTimes times;
    times.stage_names = {"first"};
    times.stage_units = {"GPU 0"};
    for (std::size_t batch = 0; batch < 2; ++batch) {
        const double begin = 1000 * static_cast<double>(batch);
        times.submits.push_back({1, batch, begin, begin + 10});
        times.stages.push_back({0, batch, begin + 20, begin + 30});
    }
    times.stages[1].begin = times.stages[1].end = 40; // which says another period
    CHECK(bound_of(times).period == 1000);
}

TEST_CASE("bound: what a loop waits for its source is none of what it spends itself") {
    PipelineTimes times = model({.fill = 5, .loop = 900, .submit = 20, .first = 30, .second = 30});
    CHECK(contains(bound_of(times).sentence, "it spends 900 us of 920 us a batch outside of submit."));
    for (FillTime& fill : times.fills)
        fill.asked = fill.given > 0 ? fill.given - 64 : 0;
    CHECK(contains(bound_of(times).sentence, "it spends 836 us of 920 us a batch outside of submit."));
}

TEST_CASE("bound: a loop that waits for its batch to be read is told so, and what to do") {
    for (const double reading : {5.0, 250.0}) {
        PipelineTimes times = model({.fill = 5, .loop = 300, .submit = 10, .first = 60, .second = 20});
        for (StageTime& submit : times.submits)
            submit.reading = reading;
        const Bound bound = bound_of(times);
        CHECK(bound.part == BoundPart::loop);
        CHECK(bound.reading == doctest::Approx(reading));
        CHECK((bound.sentence.find("It waits 250 us of ") != std::string::npos) == (reading == 250));
        CHECK((bound.sentence.find(
                   "keep what submit returns and fill several batches in turns, or use a Source.") !=
               std::string::npos) == (reading == 250));
    }
}

TEST_CASE("bound: what submit waits for results is no launching") {
    PipelineTimes times = model({.fill = 5, .submit = 80, .first = 20, .second = 20});
    for (StageTime& submit : times.submits)
        submit.waited = 75;
    const Bound bound = bound_of(times);
    CHECK(bound.submit == doctest::Approx(5));
    CHECK(bound.part != BoundPart::submit);
}

TEST_CASE("bound: a submission that is held up by a copy is no launching") {
    const Costs costs{
        .fill = 5, .submit = 1800, .first = 2400, .second = 4100, .schedule = Schedule::serial, .held = true};
    const Bound bound = bound_of(model(costs));
    CAPTURE(bound.sentence);
    CHECK(bound.part == BoundPart::waiting);
    CHECK(bound.submit > 0.9 * bound.period);
    CHECK(bound.expected == doctest::Approx(4100));
    CHECK(contains(bound.sentence, "what a stage calls holds submit up"));
    CHECK(gain_without(costs, bound.part, bound.stage) > 1.3);

    // Tiny stages end long after their submission, in periods, though launches are all that there is.
    PipelineTimes tiny =
        model({.fill = 5, .submit = 80, .first = 20, .second = 20, .schedule = Schedule::serial});
    for (StageTime& time : tiny.stages) {
        time.begin += 30;
        time.end += 30;
    }
    CHECK(bound_of(tiny).part == BoundPart::submit);
}

TEST_CASE("bound: a stage that waits for its own work holds submit up, and is no launching") {
    const auto sentence = [](double used) {
        PipelineTimes times = model({.fill = 5, .submit = 800, .first = 20, .second = 700});
        double sum = 0;
        for (StageTime& submit : times.submits)
            submit.used = sum += used;
        const Bound bound = bound_of(times);
        CHECK(bound.part == BoundPart::submit);
        return bound.sentence;
    };
    CHECK(sentence(60) ==
          "what a stage calls holds submit up: the caller sleeps there for 740 us of 800 us a batch; stages "
          "overlap where each enqueues its work and does not wait for it.");
    CHECK(contains(sentence(790), "launches bound this"));
}

TEST_CASE("bound: graphs of whole steps, whose stages are known or not") {
    const auto graphs = [](double first, double second, bool known) {
        PipelineTimes times;
        times.stage_names = {"first", "second"};
        times.stage_units = {"GPU 0", "GPU 0"};
        times.schedule = Schedule::graphed;
        for (std::size_t batch = 0; batch < 20; ++batch) {
            const double at = 100 * static_cast<double>(batch);
            times.submits.push_back({3, batch, at, at + 5, 0});
            if (known && batch >= 12) {
                times.stages.push_back({0, batch, at + 2, at + 2 + first, 0});
                times.stages.push_back({1, batch, at + 97 - second, at + 97, 0});
            }
            times.stages.push_back({2, batch, at + 1, at + 99, 0});
        }
        return times;
    };
    const Bound barrier = bound_of(graphs(60, 55, true));
    CHECK(barrier.part == BoundPart::barrier);
    CHECK(barrier.sentence ==
          "the steps' graphs bound this: each waits for all stages of the one before, and first, the longest "
          "stage, works 60 us of 100 us a batch; more steps a graph, or a graph for each stage "
          "(graph_each_stage), wait less.");
    const Bound stage = bound_of(graphs(20, 93, true));
    CHECK(stage.part == BoundPart::stage);
    CHECK(stage.stage == 1);
    const Bound whole = bound_of(graphs(60, 55, false));
    CHECK(whole.part == BoundPart::stage);
    CHECK(contains(whole.sentence, "the steps' graph bounds this"));

    const Timeline known = timeline_of(graphs(60, 55, true));
    CHECK(known.rows().size() == 3); // the stages, and the calls of submit
    CHECK(known.spans().front().batch == 12);
    const Timeline unknown = timeline_of(graphs(60, 55, false));
    REQUIRE(unknown.rows().size() == 4);
    CHECK(unknown.rows()[2].name == "graphs");
}

TEST_CASE("bound: sentences say what, how much, and what helps") {
    CHECK(bound_of(model({.fill = 480, .submit = 9, .first = 40, .second = 80})).sentence ==
          "the source bounds this: one worker fills a batch in 480 us, the stages need 80 us; with 7 workers "
          "expect "
          "12,500 batches/s.");
    CHECK(bound_of(model({.fill = 20, .submit = 8, .first = 400, .second = 30})).sentence ==
          "first bounds this: it takes 400 us of 400 us a batch, second 30 us.");
    CHECK(bound_of(model({.fill = 20, .submit = 8, .first = 30, .second = 400})).sentence ==
          "second bounds this: it takes 400 us of 400 us a batch, first 30 us.");
    CHECK(bound_of(model({.fill = 5, .submit = 80, .first = 20, .second = 20})).sentence ==
          "launches bound this: submit takes 80 us of 80 us a batch, the longest stage 40 us; "
          "Schedule::graphed spares "
          "most of that.");
    CHECK(bound_of(PipelineTimes{}).sentence == "too few batches were noted to say what bounds this.");
}

TEST_CASE("bound: what lasts no time says nothing") {
    PipelineTimes times = model({.fill = 20, .submit = 8, .first = 400, .second = 30});
    for (std::vector<StageTime>* const noted : {&times.stages, &times.submits}) {
        for (StageTime& time : *noted)
            time.begin = time.end = 100;
    }
    times.fills.clear();
    CHECK(bound_of(times).sentence == "too few batches were noted to say what bounds this.");
}

TEST_CASE("bound: as many workers are advised as keep up with the stages, and at most 64") {
    const auto workers = [](double fill, int now) {
        return bound_of(model({.fill = fill, .workers = now, .submit = 1, .first = 10, .second = 40}))
            .workers;
    };
    CHECK(workers(100, 1) == 3);
    CHECK(workers(190, 2) == 5);
    CHECK(workers(2'510, 1) == 63);
    CHECK(workers(2'550, 1) == 64);
    CHECK(workers(10'000, 1) == 64);
}

TEST_CASE("bound: rates have a comma after each three digits, and decimals where there are few") {
    using detail::bound::rate_text;
    CHECK(rate_text(1e6 / 1234567) == "1,234,567 batches/s");
    CHECK(rate_text(1e6 / 123456) == "123,456 batches/s");
    CHECK(rate_text(1e6 / 1000) == "1,000 batches/s");
    CHECK(rate_text(1e6 / 999) == "999 batches/s");
    CHECK(rate_text(1e6 / 12.5) == "12.5 batches/s");
}

TEST_CASE("a pipeline's timeline has rows for submit and for the source's workers, on the stages' batches") {
    PipelineTimes times = model({.fill = 300, .workers = 2, .submit = 9, .first = 40, .second = 80});
    for (FillTime& fill : times.fills)
        fill.batch += 1000; // the source has been counting for longer
    const Timeline timeline = timeline_of(times, "modelled");
    REQUIRE(timeline.rows().size() == 5);
    CHECK(timeline.rows()[2].name == "submit");
    CHECK(timeline.rows()[3].name == "source 0");
    CHECK(timeline.rows()[4].name == "source 1");
    CHECK(timeline.begin() == 0);
    CHECK(timeline.sentence() == bound_of(times).sentence);
    std::size_t filled = 0;
    std::size_t waited[5] = {};
    for (const TimelineSpan& span : timeline.spans()) {
        CHECK(span.batch >= 20);
        CHECK(span.batch < 60);
        filled += span.row >= 3 && span.kind == SpanKind::source ? 1U : 0U;
        waited[span.row] += span.kind == SpanKind::wait ? 1U : 0U;
    }
    CHECK(waited[2] >= 38); // in submit, for the source
    CHECK(waited[3] >= 10); // each worker, for a slot
    CHECK(waited[4] >= 10);
    CHECK(filled >= 38);
    CHECK(filled <= 40);
    CHECK(contains(to_table(report_of(timeline)),
                   "the source bounds this: each of 2 workers fills a batch in 300 us"));
}

TEST_CASE(
    "a pipeline's timeline has the fills of batches that a source has not dropped on the right batches") {
    const PipelineTimes times = model({.fill = 300, .workers = 1, .submit = 9, .first = 40, .second = 80});
    PipelineTimes dropping = times;
    dropping.fills.clear();
    for (const FillTime& fill : times.fills) {
        FillTime dropped = fill;
        dropped.batch = 3 * fill.batch;
        dropped.asked = dropped.given = 0;
        dropping.fills.push_back(dropped);
        FillTime given = fill;
        given.batch = 3 * fill.batch + 1;
        dropping.fills.push_back(given);
    }
    const auto fills_of = [](const PipelineTimes& noted) {
        std::vector<std::pair<std::size_t, double>> fills;
        const Timeline timeline = timeline_of(noted);
        for (const TimelineSpan& span : timeline.spans()) {
            if (span.row >= 3 && span.kind == SpanKind::source)
                fills.emplace_back(span.batch, span.begin);
        }
        return fills;
    };
    CHECK(fills_of(dropping).size() >= 38);
    CHECK(fills_of(dropping) == fills_of(times));
}

TEST_CASE("bound: a stage that runs once for several batches costs each of them a part") {
    PipelineTimes times;
    times.stage_names = {"load", "write"};
    times.stage_units = {"GPU 0", "GPU 0"};
    for (std::size_t batch = 0; batch < 32; ++batch) {
        const double begin = 100 * static_cast<double>(batch);
        times.submits.push_back({3, batch, begin, begin + 5, 0});
        times.stages.push_back({0, batch, begin, begin + 98, 0});
        if (batch % 16 == 15)
            times.stages.push_back({1, batch, begin + 100, begin + 900, 0}); // 50 a batch
    }
    const Bound bound = bound_of(times);
    CHECK(bound.longest == doctest::Approx(98));
    CHECK(bound.together == doctest::Approx(148));
    CHECK(bound.part == BoundPart::stage);
    CHECK(bound.stage == 0);
}

} // namespace report_bound
