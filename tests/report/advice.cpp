// How to run a pipeline, predicted, measured and chosen.
#include <chrono>
#include <cstddef>
#include <string>
#include <thread>

#include <doctest/doctest.h>

#include <sluice/pipeline/two_stream_pipeline.hpp>
#include <sluice/report/advice.hpp>

#include "support/error_text.hpp"

namespace report_advice {

using namespace sluice;
using namespace sluice::test;

namespace {

struct Nothing {};

void nap(int microseconds) { std::this_thread::sleep_for(std::chrono::microseconds(microseconds)); }

/// Two stages that sleep, and a source that does.
struct Naps {
    int fill;
    int first;
    int second;
    int runs = 0;

    void operator()(AdviceTrial& trial) {
        ++runs;
        Source source{[](int) { return Nothing{}; }, [this](std::size_t, Nothing&) { nap(fill); },
                      SourceOptions<Host>{.workers = trial.workers, .timed_batches = trial.timed_batches}};
        Stage encode{"encode", [this](HostStreamRef stream, const Nothing&, Nothing&) {
                         stream.enqueue([this] { nap(first); });
                     }};
        Stage train{"train", [this](HostStreamRef stream, const Nothing&) {
                        stream.enqueue([this] { nap(second); });
                    }};
        TwoStreamPipeline pipeline{encode, train, [](int) { return Nothing{}; }, trial.options()};
        trial.measure(pipeline, source);
    }
};

void check_width(const std::string& table) {
    std::size_t begin = 0;
    for (std::size_t at = 0; at <= table.size(); ++at) {
        if (at == table.size() || table[at] == '\n') {
            CHECK(at - begin <= 80);
            begin = at + 1;
        }
    }
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

TEST_CASE("advice: two stages that take as long are overlapped, and the table says what was predicted and "
          "what followed") {
    Naps naps{50, 8000, 8000}; // much longer than a busy machine keeps a thread waiting
    const Advice advice = advise(naps, {.batches = 24, .graphs = false});
    CHECK(naps.runs == 3); // overlapped and serial, then overlapped with three slots
    CHECK(advice.best.schedule == Schedule::overlapped);
    REQUIRE(advice.trials.size() == 4);
    for (const AdviceTrial& trial : advice.trials) {
        CHECK(trial.predicted >= (trial.schedule == Schedule::serial ? 16000 : 8000));
        CHECK((trial.measured > 0) == (trial.schedule != Schedule::serial || trial.slots == 2));
    }
    CHECK(advice.trials.front().schedule == Schedule::overlapped); // predicted to be faster
    CHECK(contains(advice.sentence, "use overlapped, "));
    CHECK(contains(advice.sentence, " x serial; at first "));
    const std::string table = to_table(advice);
    check_width(table);
    CHECK(contains(table, "serial, 2 slots, 1 worker"));
}

TEST_CASE("advice: where the source bounds, more workers are predicted, and tried") {
    Naps naps{6000, 500, 500};
    const Advice advice = advise(naps, {.batches = 24, .most_workers = 3, .graphs = false});
    CHECK(advice.first.part == BoundPart::source);
    CHECK(advice.first.workers > 1);
    CHECK(advice.best.workers == 3);
    CHECK(contains(advice.sentence, "at first the source bounds this: one worker fills a batch in "));
}

TEST_CASE("advice: bad options, short sources and runs without a measurement are told") {
    Naps naps{1, 1, 1};
    CHECK(contains(text_of([&] { (void)advise(naps, {.batches = 7}); }),
                   "advise: AdviceOptions::batches is 7; expected 8 or more"));
    CHECK(contains(text_of([&] { (void)advise(naps, {.workers = 9}); }), "9 workers, at most 8"));
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

TEST_CASE("advice: a share of the device is for a short stage that takes long beside a long one") {
    struct Took {
        double first, second;
    };
    // What was noted of so many batches of two stages on the same device.
    const auto noted = [](Took took) {
        PipelineTimes times;
        times.stage_names = {"heavy", "detect"};
        times.stage_units = {"GPU 0", "GPU 0"};
        times.multiprocessors = 132;
        times.share_unit = 8;
        for (std::size_t batch = 0; batch < 9; ++batch) {
            const double begin = 1000.0 * static_cast<double>(batch), odd = batch == 3 ? 500 : 0;
            times.stages.push_back({0, batch, begin, begin + took.first + odd});
            times.stages.push_back({1, batch, begin, begin + took.second + odd});
        }
        return times;
    };
    const auto advised = [&](Took beside, Took alone) {
        return detail::advice::share_of(noted(beside), noted(alone));
    };
    CHECK(advised({200, 175}, {190, 14}) ==
          "detect takes 14 us alone and 175 us beside heavy; where its kernels wait for that one's, "
          "StageOptions::multiprocessors = 8 gives it some of its own, for a short answer and not for rate: "
          "heavy has "
          "124 of 132 then and takes 6 % longer or more where it fills the device.");
    CHECK(advised({200, 60}, {190, 14}).empty()); // 3 times as long, and what is due to the notes
    CHECK_FALSE(advised({200, 63}, {190, 14}).empty());
    CHECK(advised({200, 175}, {55, 14}).empty()); // neither is long beside the other
    CHECK_FALSE(advised({200, 175}, {57, 14}).empty());
    CHECK(contains(advised({175, 200}, {14, 190}), "heavy takes 14 us alone and 175 us beside detect"));
    CHECK(advised({190, 14}, {190, 14}).empty());

    const PipelineTimes alone = noted({190, 14});
    PipelineTimes beside = noted({200, 175});
    beside.stage_units[0] = "GPU 1";
    CHECK(detail::advice::share_of(beside, alone).empty()); // each has a device to itself
    beside.stage_units = {"CPU", "CPU"};
    CHECK(detail::advice::share_of(beside, alone).empty());
    beside = noted({200, 175});
    beside.shares = "Of the 132 multiprocessors of device 0, detect has 8.";
    CHECK(detail::advice::share_of(beside, alone).empty());
    beside = noted({200, 175});
    beside.share_unit = beside.multiprocessors = 0; // as on Host
    CHECK(detail::advice::share_of(beside, alone).empty());

    // Of several that take long, the one that takes most more than alone.
    for (const bool last : {false, true}) {
        PipelineTimes together = noted({200, 175}), each = noted({190, 14});
        for (PipelineTimes* of : {&together, &each}) {
            of->stage_names.push_back("track");
            of->stage_units.push_back("GPU 0");
            for (std::size_t batch = 0; batch < 9; ++batch) {
                const double begin = 1000.0 * static_cast<double>(batch);
                of->stages.push_back({2, batch, begin, begin + (of == &each ? 10.0 : last ? 190.0 : 120.0)});
            }
        }
        const std::string text = detail::advice::share_of(together, each);
        CHECK(contains(text, last ? "track takes 10 us alone" : "detect takes 14 us alone"));
    }

    Advice advice;
    advice.sentence = "Nothing else.";
    advice.share = advised({200, 175}, {190, 14});
    const std::string table = to_table(advice);
    CHECK(contains(table, "detect takes 14 us alone and 175 us beside heavy"));
    check_width(table);
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
