// How to run a pipeline, predicted, measured and chosen.
#include <chrono>
#include <cstddef>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include <sluice/pipeline/two_stream_pipeline.hpp>
#include <sluice/report/advice.hpp>

#include "report/widest_line.hpp"
#include "support/doctest.hpp"
#include "support/error_text.hpp"

namespace report_advice {

using namespace sluice;
using namespace sluice::test;

namespace {

struct Nothing {};

/// What would be noted of 20 batches: two stages of so many microseconds, and a source's fills.
struct Costs {
    double fill, first, second;
};
PipelineTimes made_times(const AdviceTrial& trial, const Costs& costs, double period) {
    PipelineTimes times;
    times.stage_names = {"encode", "train"};
    times.stage_units = {"GPU 0", "GPU 0"};
    times.schedule = trial.schedule;
    times.workers = trial.workers;
    const double waits = costs.fill < period ? 1 : 0.9 * period;
    for (std::size_t batch = 0; batch < 20; ++batch) {
        const double begin = 1000 + period * static_cast<double>(batch);
        times.submits.push_back({3, batch, begin, begin + 10});
        times.stages.push_back({0, batch, begin, begin + costs.first});
        times.stages.push_back({1, batch, begin + costs.first, begin + costs.first + costs.second});
        times.fills.push_back({.batch = batch,
                               .begin = begin,
                               .end = begin + costs.fill,
                               .asked = begin,
                               .given = begin + waits});
    }
    return times;
}

/// Says of each trial what it was asked, and notes what `takes` says.
struct Made {
    Costs costs;
    double (*takes)(const AdviceTrial&, const Costs&);
    std::vector<std::string> runs{};

    void operator()(AdviceTrial& trial) {
        runs.push_back(detail::advice::name_of(trial) + ", " + std::to_string(trial.batches) + " batches, " +
                       std::to_string(trial.timed_batches) + " timed");
        trial.measured = takes(trial, costs);
        trial.times = made_times(trial, costs, trial.measured);
    }
};

/// As the model of `predicted` has it, three slots a little faster.
double by_stages(const AdviceTrial& trial, const Costs& costs) {
    const double longest = costs.first > costs.second ? costs.first : costs.second;
    const double stages = trial.schedule == Schedule::serial ? costs.first + costs.second : longest;
    const double fill = trial.workers == 0 ? stages + costs.fill : costs.fill / trial.workers;
    return (stages > fill ? stages : fill) * (trial.slots == 3 ? 0.9 : 1);
}

} // namespace

TEST_CASE("advice: a simpler way is advised within 2 % of the fastest, and no further") {
    const auto trial = [](Schedule schedule, int slots, double measured) {
        AdviceTrial result;
        result.schedule = schedule;
        result.slots = slots;
        result.measured = measured;
        return result;
    };
    const AdviceTrial fastest = trial(Schedule::graphed, 4, 100);
    for (const double measured : {100.0, 101.9, 102.1, 110.0, 119.0}) {
        CAPTURE(measured);
        const std::vector<AdviceTrial> trials{trial(Schedule::overlapped, 2, measured), fastest,
                                              trial(Schedule::overlapped, 4, measured),
                                              trial(Schedule::serial, 2, 0)}; // which was not measured
        const AdviceTrial& best = detail::advice::simplest_of_best(trials);
        CHECK(best.measured == (measured < 102 ? measured : 100));
        CHECK(best.slots == (measured < 102 ? 2 : 4));
    }
}

TEST_CASE("advice: of ways that take as long, eager ones come first, then a graph a stage, then fewer slots "
          "and workers") {
    std::vector<AdviceTrial> trials(6);
    for (AdviceTrial& trial : trials)
        trial.measured = 100;
    trials[0].schedule = trials[1].schedule = Schedule::graphed;
    trials[1].graph_each_stage = true;
    trials[2].slots = trials[3].slots = trials[4].slots = 4;
    trials[5].slots = 5;
    std::vector<AdviceTrial> equal(2);
    equal[0].measured = equal[1].measured = 100;
    CHECK(&detail::advice::simplest_of_best(equal) == &equal[0]);
    trials[0].slots = trials[1].slots = 2;
    trials[2].workers = 3;
    trials[3].workers = 2;
    trials[4].workers = 2;
    trials[5].workers = 0;
    trials[4].measured = 103;
    // The best is taken away each time.
    for (const std::size_t best : {3U, 2U, 5U, 1U, 0U, 4U}) {
        CAPTURE(best);
        CHECK(&detail::advice::simplest_of_best(trials) == &trials[best]);
        trials[best].measured = 0;
    }
}

TEST_CASE("advice: what is predicted is the longest of stages, launches, fills and what the caller does") {
    Bound overlapped, serial;
    overlapped.longest = 50;
    overlapped.submit = 10;
    overlapped.fill = 60;
    overlapped.period = 130;
    overlapped.waited = 20; // so 100 are the caller's own
    serial.together = 95;
    const auto predicted = [&](BoundPart part, Schedule schedule, int workers) {
        overlapped.part = part;
        AdviceTrial trial;
        trial.schedule = schedule;
        trial.workers = workers;
        return detail::advice::predicted(trial, overlapped, serial);
    };
    const auto stage = BoundPart::stage;
    CHECK(predicted(stage, Schedule::overlapped, 2) == doctest::Approx(50));
    CHECK(predicted(stage, Schedule::overlapped, 1) == doctest::Approx(60)); // the worker
    CHECK(predicted(stage, Schedule::serial, 2) == doctest::Approx(95));
    CHECK(predicted(BoundPart::loop, Schedule::overlapped, 2) == doctest::Approx(110));
    CHECK(predicted(BoundPart::submit, Schedule::overlapped, 2) == doctest::Approx(110));
    CHECK(predicted(BoundPart::submit, Schedule::graphed, 2) == doctest::Approx(101));
    CHECK(predicted(stage, Schedule::overlapped, 0) == doctest::Approx(170)); // the caller fills
    overlapped.submit = 70;
    CHECK(predicted(stage, Schedule::overlapped, 2) == doctest::Approx(70));
    CHECK(predicted(stage, Schedule::graphed, 2) == doctest::Approx(50));
    overlapped.held = 5; // of them the caller waits for a copy
    CHECK(predicted(BoundPart::loop, Schedule::overlapped, 2) == doctest::Approx(105));
    overlapped.held = 0;
    overlapped.waited = 59.5; // half a microsecond is left outside
    CHECK(predicted(BoundPart::loop, Schedule::overlapped, 2) == doctest::Approx(70.5));
    overlapped.waited = 100; // nothing is left outside
    CHECK(predicted(BoundPart::loop, Schedule::overlapped, 2) == doctest::Approx(70));
}

TEST_CASE("advice: the sentence compares with the fastest serial way, where there is one") {
    Advice advice;
    advice.best.schedule = Schedule::graphed;
    advice.best.measured = 100;
    advice.first.sentence = "a stage bounds this.";
    advice.bound.sentence = "the loop bounds this.";
    const auto sentence_with = [&](std::vector<double> serial) {
        advice.trials.assign(1, advice.best);
        for (const double measured : serial) {
            advice.trials.emplace_back().schedule = Schedule::serial;
            advice.trials.back().measured = measured;
        }
        detail::advice::say(advice);
        return advice.sentence;
    };
    CHECK(contains(
        sentence_with({300, 250, 0, 270}),
        ": 10,000 batches/s, 2.50 x serial; at first a stage bounds this; now the loop bounds this."));
    CHECK(contains(sentence_with({0}), ": 10,000 batches/s; at first"));
    CHECK(contains(sentence_with({}), ": 10,000 batches/s; at first"));
    advice.best.schedule = Schedule::serial;
    CHECK(contains(sentence_with({300}), ": 10,000 batches/s; at first"));
}

TEST_CASE("advice: what is run, in which order, and what is made of it") {
    using Runs = std::vector<std::string>;
    Made made{{20, 400, 400}, by_stages};
    const Advice advice = advise(made, {.batches = 24, .graphs = false});
    CHECK(made.runs == Runs{"overlapped, 2 slots, 1 worker, 24 batches, 12 timed",
                            "serial, 2 slots, 1 worker, 24 batches, 12 timed",
                            "overlapped, 3 slots, 1 worker, 24 batches, 12 timed"});
    REQUIRE(advice.trials.size() == 4);
    const auto check = [&](std::size_t i, const char* name, double predicted, double measured) {
        CAPTURE(i);
        CHECK(detail::advice::name_of(advice.trials[i]) == name);
        CHECK(advice.trials[i].predicted == doctest::Approx(predicted));
        CHECK(advice.trials[i].measured == doctest::Approx(measured));
        CHECK(advice.trials[i].times.stages.empty() == (measured == 0));
    };
    check(0, "overlapped, 2 slots, 1 worker", 400, 400);
    check(1, "overlapped, 3 slots, 1 worker", 400, 360);
    check(2, "serial, 2 slots, 1 worker", 800, 800);
    check(3, "serial, 3 slots, 1 worker", 800, 0);
    CHECK(advice.best.measured == doctest::Approx(360));
    CHECK(advice.best.slots == 3);
    CHECK(advice.first.sentence == bound_of(made_times({}, made.costs, 400)).sentence);
    CHECK(advice.bound.sentence == bound_of(made_times({}, made.costs, 360)).sentence);
    CHECK(contains(advice.sentence,
                   "use overlapped, 3 slots, 1 worker: 2,778 batches/s, 2.22 x serial; at first "));

    // With graphs, both kinds are run with two slots and with three; a number of batches that is noted is at most 64.
    made.runs.clear();
    const Advice graphs = advise(made, {.batches = 200});
    CHECK(made.runs == Runs{"overlapped, 2 slots, 1 worker, 200 batches, 64 timed",
                            "serial, 2 slots, 1 worker, 200 batches, 64 timed",
                            "graphed, a graph a stage, 2 slots, 1 worker, 200 batches, 64 timed",
                            "graphed, 2 slots, 1 worker, 200 batches, 64 timed",
                            "overlapped, 3 slots, 1 worker, 200 batches, 64 timed",
                            "graphed, a graph a stage, 3 slots, 1 worker, 200 batches, 64 timed",
                            "graphed, 3 slots, 1 worker, 200 batches, 64 timed"});
    CHECK(graphs.trials.size() == 8);
    CHECK(graphs.best.schedule == Schedule::overlapped); // simpler, and as fast
    made.runs.clear();
    (void)advise(made, {.batches = 126, .graphs = false});
    CHECK(made.runs[0] == "overlapped, 2 slots, 1 worker, 126 batches, 63 timed");
    made.runs.clear();
    (void)advise(made, {.batches = 180, .graphs = false});
    CHECK(made.runs[0] == "overlapped, 2 slots, 1 worker, 180 batches, 64 timed");
    made.runs.clear();
    (void)advise(made, {.batches = 8, .workers = 2, .most_workers = 2, .graphs = false});
    CHECK(made.runs[0] == "overlapped, 2 slots, 2 workers, 8 batches, 4 timed");
}

TEST_CASE("advice: where the source bounds, more workers are predicted, and only they are run") {
    using Runs = std::vector<std::string>;
    Made made{{1600, 100, 300}, by_stages};
    const Advice advice = advise(made, {.batches = 24, .most_workers = 3, .graphs = false});
    CHECK(advice.first.part == BoundPart::source);
    CHECK(advice.first.workers == 6);
    CHECK(made.runs == Runs{"overlapped, 2 slots, 1 worker, 24 batches, 12 timed",
                            "serial, 2 slots, 1 worker, 24 batches, 12 timed",
                            "serial, 2 slots, 3 workers, 24 batches, 12 timed",
                            "overlapped, 2 slots, 3 workers, 24 batches, 12 timed",
                            "overlapped, 3 slots, 3 workers, 24 batches, 12 timed"});
    CHECK(advice.trials.size() == 8);
    CHECK(advice.best.workers == 3);
    CHECK(contains(advice.sentence, "at first the source bounds this: one worker fills a batch in 1600 us"));
    // As many as are wanted, where so many are allowed.
    made.runs.clear();
    CHECK(advise(made, {.batches = 24, .graphs = false}).best.workers == 6);
    // None more where none are allowed, or none are wanted.
    made.runs.clear();
    CHECK(advise(made, {.batches = 24, .most_workers = 1, .graphs = false}).trials.size() == 4);
    made.costs.fill = 10;
    CHECK(advise(made, {.batches = 24, .graphs = false}).trials.size() == 4);
    CHECK(advise(made, {.batches = 24, .workers = 0, .graphs = false}).trials.size() == 4);
}

TEST_CASE("advice: what a batch takes is by how much the longer of two runs is longer") {
    using detail::advice::time_a_batch;
    CHECK(time_a_batch(100, 6, 400, 18) == doctest::Approx(25)); // 50 of each are for filling and emptying
    CHECK(time_a_batch(400, 6, 100, 20) == doctest::Approx(5));  // something else came between
    CHECK(time_a_batch(100, 6, 120, 6) == doctest::Approx(20));
    CHECK(time_a_batch(120, 6, 120, 12) == doctest::Approx(10));
    CHECK(time_a_batch(0, 3, 100, 1) == doctest::Approx(100));
}

TEST_CASE("advice: a trial's pipeline comes to rest after a quarter, after a third of what is left, and at "
          "the end") {
    struct Resting : TwoStreamPipeline<Stage<void (*)(HostStreamRef, const Nothing&, Nothing&)>,
                                       Stage<void (*)(HostStreamRef, const Nothing&)>, Nothing (*)(int)> {
        using Base = TwoStreamPipeline<Stage<void (*)(HostStreamRef, const Nothing&, Nothing&)>,
                                       Stage<void (*)(HostStreamRef, const Nothing&)>, Nothing (*)(int)>;
        using Base::Base;
        std::vector<std::size_t> rests;
        std::size_t slow = 0; // when so many batches were submitted, coming to rest takes long
        void finish() {
            if (submitted() == slow)
                std::this_thread::sleep_for(std::chrono::milliseconds(40));
            rests.push_back(submitted());
            Base::finish();
        }
    };
    void (*const first)(HostStreamRef, const Nothing&, Nothing&) = [](HostStreamRef, const Nothing&,
                                                                      Nothing&) {};
    void (*const second)(HostStreamRef, const Nothing&) = [](HostStreamRef, const Nothing&) {};
    Nothing (*const make)(int) = [](int) { return Nothing{}; };
    AdviceTrial trial;
    trial.batches = 26;
    trial.timed_batches = 13;
    Source source{[](int) { return Nothing{}; }, [](std::size_t, Nothing&) {},
                  SourceOptions<Host>{.workers = trial.workers, .timed_batches = trial.timed_batches}};
    Resting pipeline{Stage{"first", first}, Stage{"second", second}, make, trial.options()};
    trial.measure(pipeline, source);
    CHECK(pipeline.rests == std::vector<std::size_t>{6, 12, 26});
    CHECK(trial.measured > 0);
    CHECK(trial.times.stages.size() == 26);
    CHECK(trial.times.submits.size() == 13);
    CHECK(trial.times.workers == 1);
    // 40 ms of the longer part are 40 / 8 ms a batch, since the shorter one has 6 of 14: unless the machine was held up.
    pipeline.slow = 2 * 26;
    for (int attempt = 0; attempt < 50 && !(trial.measured > 4000 && trial.measured < 6000); ++attempt) {
        trial.measure(pipeline, source);
        pipeline.slow += 26;
    }
    CHECK(trial.measured > 4000);
    CHECK(trial.measured < 6000);
    // Options of the pipeline are the trial's.
    trial.graph_each_stage = true;
    trial.schedule = Schedule::graphed;
    trial.slots = 5;
    CHECK(trial.options().schedule == Schedule::graphed);
    CHECK(trial.options().graph_each_stage);
    CHECK(trial.options().slots == 5);
    CHECK(trial.options().timed_batches == 13);
}

TEST_CASE("advice: bad options, short sources and runs without a measurement are told") {
    Made made{{1, 1, 1}, by_stages};
    CHECK(contains(text_of([&] { (void)advise(made, {.batches = 7}); }),
                   "advise: AdviceOptions::batches is 7; expected 8 or more"));
    CHECK(contains(text_of([&] { (void)advise(made, {.workers = 9}); }), "9 workers, at most 8"));
    CHECK(contains(text_of([&] { (void)advise(made, {.workers = -1}); }), "-1 workers, at most 8"));
    CHECK(made.runs.empty());
    const std::string empty =
        "advise: what runs a trial is empty, or was moved from; expected a function to call";
    CHECK(text_of([] { (void)advise(static_cast<void (*)(AdviceTrial&)>(nullptr)); }) == empty);
    CHECK(text_of([] { (void)advise(std::function<void(AdviceTrial&)>()); }) == empty);
    CHECK_NOTHROW((void)advise(made, {.batches = 8, .workers = 0, .most_workers = 0}));
    CHECK(contains(text_of([] { (void)advise([](AdviceTrial&) {}); }), "without a call of trial.measure"));
    const auto brief = [](AdviceTrial& trial) {
        Source source{[](int) { return Nothing{}; }, [](std::size_t, Nothing&) {},
                      SourceOptions<Host>{.batches = 5, .timed_batches = trial.timed_batches}};
        Stage only{"only", [](HostStreamRef, const Nothing&) {}};
        Pipeline pipeline{Stages{only}, trial.options()};
        trial.measure(pipeline, source);
    };
    CHECK(contains(text_of([&] { (void)advise(brief); }),
                   "the source ended after 5 batches, and a trial takes 200"));
}

TEST_CASE("advice: what Schedule::automatic has found, in a sentence") {
    ScheduleChoice choice{.schedule = Schedule::overlapped, .batches = 12};
    CHECK(to_sentence(choice) == "overlapped is being tried: nothing is chosen after 12 batches yet.");
    choice = {.decided = true,
              .schedule = Schedule::graphed,
              .graph_each_stage = true,
              .batches = 321,
              .trials = {{.schedule = Schedule::overlapped, .microseconds = 396},
                         {.schedule = Schedule::graphed, .graph_each_stage = true, .microseconds = 384},
                         {.schedule = Schedule::graphed, .refused = true, .reason = "a batch holds a lock"},
                         {.schedule = Schedule::serial}}};
    CHECK(to_sentence(choice) == "graphed, a graph a stage was chosen after 321 batches: overlapped 396 us; "
                                 "graphed, a graph a stage 384 us; "
                                 "graphed cannot be used (a batch holds a lock); serial was not tried.");
}

} // namespace report_advice
