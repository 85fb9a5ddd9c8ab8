// detail::ScheduleTuner: what Schedule::automatic makes of the times that it is told, on a clock of the test's own.
#include <cstdint>
#include <functional>
#include <vector>

#include <sluice/pipeline/detail/core/schedule_tuner.hpp>

#include "support/doctest.hpp"

namespace pipeline_schedule_tuner {

using namespace sluice;

namespace {

std::vector<ScheduleTrial> all_ways() {
    return {{.schedule = Schedule::overlapped},
            {.schedule = Schedule::graphed, .graph_each_stage = true},
            {.schedule = Schedule::graphed},
            {.schedule = Schedule::serial}};
}

/// A pipeline whose batches take so many microseconds under each way, and come to rest in `rest`.
struct Clock {
    std::vector<double> batch;
    double rest = 300;
    double now = 0;
    GraphCounters graphs{};
    std::string refusal{};
    /// Called with the way, and how many batches it has had since it was switched to: more microseconds of this batch.
    std::function<double(std::size_t, std::size_t)> extra = [](std::size_t, std::size_t) { return 0.0; };

    /// Batches until it has decided, at most `most`.
    std::size_t run(detail::ScheduleTuner& tuner, std::size_t most = 20000, std::size_t finish_every = 0) {
        std::size_t count = 0, since = 0, last = 0;
        while (!tuner.choice().decided && count < most) {
            const std::vector<ScheduleTrial>& trials = tuner.choice().trials;
            std::size_t way = 0;
            while (trials[way].schedule != tuner.current().schedule ||
                   trials[way].graph_each_stage != tuner.current().graph_each_stage)
                ++way;
            const auto begun = static_cast<std::int64_t>(now * 1000);
            since = way == last ? since + 1 : 0;
            last = way;
            now += batch[way] + extra(way, since);
            ++graphs.replays;
            ++count;
            if (tuner.count(begun)) {
                now += rest;
                tuner.at_rest(static_cast<std::int64_t>(now * 1000), graphs, refusal);
            } else if (finish_every != 0 && count % finish_every == 0) {
                now += 50'000;
                tuner.interrupted();
            }
        }
        return count;
    }
};

} // namespace

TEST_CASE("schedule tuner: the fastest way is chosen, and what filling and emptying takes is left out") {
    const std::vector<std::vector<double>> cases{
        {100, 200, 300, 400},  {400, 100, 200, 300},   {300, 400, 100, 200}, {200, 300, 400, 100},
        {5, 4, 3, 6},          {30'000, 1, 1, 20'000}, {100, 99, 101, 120},  {9000, 8000, 8500, 9900},
        {2e6, 1e6, 1e6, 1.5e6}};
    for (const std::vector<double>& batch : cases) {
        detail::ScheduleTuner tuner(all_ways());
        Clock clock{batch};
        const std::size_t taken = clock.run(tuner);
        REQUIRE(tuner.choice().decided);
        CHECK(taken == tuner.choice().batches);
        double best = 1e9;
        for (std::size_t way = 0; way < 4; ++way) {
            const ScheduleTrial& trial = tuner.choice().trials[way];
            const bool graphs = trial.schedule == Schedule::graphed;
            if (graphs && batch[0] > 20'000) {
                CHECK(trial.microseconds == 0); // launches are nothing beside such batches
                continue;
            }
            CHECK(trial.microseconds == doctest::Approx(batch[way]).epsilon(0.001));
            best = batch[way] < best ? batch[way] : best;
        }
        // The fastest, or a simpler one within 2 %.
        CHECK(tuner.current().microseconds <= 1.0205 * best);
        if (batch[0] <= 1.015 * best)
            CHECK(tuner.current().schedule == Schedule::overlapped);
        CHECK(taken < (batch[0] > 20'000 ? 60U : 2200U));
    }
}

TEST_CASE("schedule tuner: ways that cannot be captured, or do not stay the same, are left out") {
    for (const bool change : {false, true}) {
        detail::ScheduleTuner tuner(all_ways());
        Clock clock{{100, 10, 10, 150}};
        (change ? clock.graphs.later_changes : clock.graphs.refusals) = 1;
        clock.refusal = "it is captured elsewhere";
        // Counted from the start, overlapped's trial included, which has no graphs.
        detail::ScheduleTuner eager({{.schedule = Schedule::overlapped}});
        CHECK(eager.choice().decided);
        clock.run(tuner);
        REQUIRE(tuner.choice().decided);
        CHECK(tuner.choice().trials[1].refused);
        CHECK(tuner.choice().trials[2].refused);
        CHECK(tuner.choice().trials[2].reason == clock.refusal);
        CHECK(tuner.choice().trials[0].reason.empty());
    }
}

TEST_CASE(
    "schedule tuner: a run in which a graph is captured or compared does not count, however late that is") {
    for (const std::size_t late : {20u, 70u, 100u, 200u, 300u}) {
        CAPTURE(late);
        detail::ScheduleTuner tuner(all_ways());
        Clock clock{{127, 48, 33, 126}};
        clock.extra = [&](std::size_t way, std::size_t since) {
            const bool captures = way == 2 && since == late;
            const bool compares = way == 2 && (since == late + 16 || since == late + 32);
            clock.graphs.captures += captures ? 1 : 0;
            clock.graphs.comparisons += compares ? 1 : 0;
            return captures || compares ? 4000.0 : 0.0;
        };
        const std::size_t taken = clock.run(tuner);
        REQUIRE(tuner.choice().decided);
        CHECK(tuner.choice().trials[2].microseconds == doctest::Approx(33).epsilon(0.001));
        CHECK(tuner.choice().schedule == Schedule::graphed);
        CHECK_FALSE(tuner.choice().graph_each_stage);
        CHECK(taken < 2600);
    }
}

TEST_CASE("schedule tuner: more runs with captures than a middle time hides do not count either") {
    detail::ScheduleTuner tuner(all_ways());
    Clock clock{{127, 48, 33, 126}};
    clock.extra = [&](std::size_t way, std::size_t since) {
        const bool captures = way == 2 && since < 300 && since % 50 == 25;
        clock.graphs.captures += captures ? 1 : 0;
        return captures ? 4000.0 : 0.0;
    };
    clock.run(tuner);
    REQUIRE(tuner.choice().decided);
    CHECK(tuner.choice().trials[2].microseconds == doctest::Approx(33).epsilon(0.001));
    CHECK_FALSE(tuner.choice().graph_each_stage);
}

TEST_CASE("schedule tuner: few batches are tried where each takes long, and many where they are short") {
    const auto taken = [](const std::vector<double>& batch) {
        detail::ScheduleTuner tuner(all_ways());
        Clock clock{batch};
        return clock.run(tuner);
    };
    CHECK(taken({18'000, 17'000, 16'500, 19'000}) <= 64); // two at a time until it is known what they take
    CHECK(taken({18'000, 17'000, 16'500, 19'000}) >= 32);
    CHECK(taken({10, 9, 8, 11}) >= 4 * 384); // where a clock's steps count
}

TEST_CASE("schedule tuner: ways within 5 % of the best are measured twice, each of them, and no others") {
    const std::vector<double> batch{100, 104, 98, 110};
    detail::ScheduleTuner tuner(all_ways());
    Clock clock{batch};
    std::size_t last = 4;
    std::vector<int> visits(4);
    clock.extra = [&](std::size_t way, std::size_t) {
        visits[way] += way != last ? 1 : 0;
        last = way;
        return visits[way] > 1 ? 2.0 : 0.0;
    };
    clock.run(tuner);
    REQUIRE(tuner.choice().decided);
    for (std::size_t way = 0; way < 4; ++way) {
        const bool is_close = batch[way] < 1.05 * 98;
        CHECK(tuner.choice().trials[way].microseconds ==
              doctest::Approx(batch[way] + (is_close ? 1 : 0)).epsilon(0.001));
    }
}

TEST_CASE("schedule tuner: a first way that is ruled out is not the best one") {
    const ScheduleTrial graphed{.schedule = Schedule::graphed}, overlapped{.schedule = Schedule::overlapped},
        serial{.schedule = Schedule::serial};
    detail::ScheduleTuner tuner({graphed, serial, overlapped});
    Clock clock{{10, 100, 80}};
    clock.graphs.refusals = 1;
    clock.run(tuner);
    REQUIRE(tuner.choice().decided);
    CHECK(tuner.choice().trials[0].refused);
    CHECK(tuner.choice().schedule == Schedule::overlapped);
}

TEST_CASE("schedule tuner: each way has its own time to settle") {
    for (const std::size_t until : {100u, 200u, 310u}) {
        CAPTURE(until);
        detail::ScheduleTuner tuner(all_ways());
        Clock clock{{127, 48, 33, 126}};
        clock.extra = [&](std::size_t way, std::size_t since) {
            const bool captures = (way == 1 || way == 2) && since < until && since % 10 == 5;
            clock.graphs.captures += captures ? 1 : 0;
            return captures ? 4000.0 : 0.0;
        };
        CHECK(clock.run(tuner) < 2600);
        REQUIRE(tuner.choice().decided);
        CHECK(tuner.choice().trials[1].microseconds == doctest::Approx(48).epsilon(0.001));
        CHECK(tuner.choice().trials[2].microseconds == doctest::Approx(33).epsilon(0.001));
    }
}

TEST_CASE("schedule tuner: more runs with comparisons than a middle time hides do not count either") {
    detail::ScheduleTuner tuner(all_ways());
    Clock clock{{127, 48, 33, 126}};
    clock.extra = [&](std::size_t way, std::size_t since) {
        const bool compares = way == 2 && since < 300 && since % 50 == 25;
        clock.graphs.comparisons += compares ? 1 : 0;
        return compares ? 4000.0 : 0.0;
    };
    clock.run(tuner);
    REQUIRE(tuner.choice().decided);
    CHECK(tuner.choice().trials[2].microseconds == doctest::Approx(33).epsilon(0.001));
    CHECK_FALSE(tuner.choice().graph_each_stage);
}

TEST_CASE("schedule tuner: a run that was too short changes nothing, whichever it is") {
    for (std::size_t at = 50; at < 1500; at += 30) {
        CAPTURE(at);
        detail::ScheduleTuner tuner(all_ways());
        Clock clock{{100, 130, 90, 110}};
        std::size_t batches = 0;
        clock.extra = [&](std::size_t, std::size_t) { return ++batches == at ? -80.0 : 0.0; };
        clock.run(tuner);
        REQUIRE(tuner.choice().decided);
        const std::vector<ScheduleTrial>& trials = tuner.choice().trials;
        for (std::size_t way = 0; way < 4; ++way)
            CHECK(trials[way].microseconds == doctest::Approx(clock.batch[way]).epsilon(0.001));
    }
}

TEST_CASE("schedule tuner: graphs that are captured again and again have what that takes counted in") {
    detail::ScheduleTuner tuner(all_ways());
    Clock clock{{127, 48, 33, 126}};
    clock.extra = [&](std::size_t way, std::size_t since) {
        const bool captures = way == 2 && since % 16 == 0;
        clock.graphs.captures += captures ? 1 : 0;
        return captures ? 800.0 : 0.0;
    };
    CHECK(clock.run(tuner) < 5500); // 4,096, and the way that is measured then
    REQUIRE(tuner.choice().decided);
    CHECK(tuner.choice().trials[2].microseconds == doctest::Approx(83).epsilon(0.01));
    CHECK(tuner.choice().graph_each_stage);
}

TEST_CASE("schedule tuner: a pause of the thread that submits changes nothing") {
    for (std::size_t at = 50; at < 1500; at += 90) {
        CAPTURE(at);
        detail::ScheduleTuner tuner(all_ways());
        Clock clock{{100, 130, 90, 110}};
        std::size_t batches = 0;
        clock.extra = [&](std::size_t, std::size_t) { return ++batches == at ? 8000.0 : 0.0; };
        clock.run(tuner);
        REQUIRE(tuner.choice().decided);
        const std::vector<ScheduleTrial>& trials = tuner.choice().trials;
        for (std::size_t way = 0; way < 4; ++way)
            CHECK(trials[way].microseconds == doctest::Approx(clock.batch[way]).epsilon(0.001));
        CHECK(tuner.choice().schedule == Schedule::graphed);
    }
}

TEST_CASE("schedule tuner: a caller that finishes now and then, and goes on much later, changes nothing") {
    for (const std::size_t every : {100u, 170u, 400u}) {
        CAPTURE(every);
        detail::ScheduleTuner tuner(all_ways());
        Clock clock{{100, 130, 90, 110}};
        clock.run(tuner, 20000, every);
        REQUIRE(tuner.choice().decided);
        const std::vector<ScheduleTrial>& trials = tuner.choice().trials;
        for (std::size_t way = 0; way < 4; ++way)
            CHECK(trials[way].microseconds == doctest::Approx(clock.batch[way]).epsilon(0.001));
    }
}

TEST_CASE("schedule tuner: a change of the work that shows while graphs are measured rules them out") {
    detail::ScheduleTuner tuner(all_ways());
    Clock clock{{100, 40, 30, 110}};
    clock.extra = [&](std::size_t way, std::size_t since) {
        clock.graphs.changes = way == 2 && since >= 30 ? 1 : 0; // what a first capture alone had is none
        clock.graphs.later_changes = way == 2 && since >= 90 ? 1 : 0;
        return 0.0;
    };
    clock.run(tuner);
    REQUIRE(tuner.choice().decided);
    CHECK(tuner.choice().trials[2].refused);
    CHECK(tuner.choice().trials[2].microseconds == 0);
    CHECK(tuner.choice().graph_each_stage);
}

TEST_CASE("schedule tuner: graphs whose work changed after its first capture, and then no more, are as good "
          "as any") {
    detail::ScheduleTuner tuner(all_ways());
    Clock clock{{100, 40, 30, 110}};
    clock.graphs.changes = 3;
    clock.run(tuner);
    REQUIRE(tuner.choice().decided);
    CHECK_FALSE(tuner.choice().trials[2].refused);
    CHECK(tuner.choice().trials[2].microseconds == doctest::Approx(30).epsilon(0.001));
}

TEST_CASE("schedule tuner: a caller that finishes every few batches is not measured, and not for ever") {
    detail::ScheduleTuner tuner(all_ways());
    Clock clock{{100, 50, 60, 150}};
    const std::size_t taken = clock.run(tuner, 20000, 3);
    CHECK(tuner.choice().decided);
    CHECK(taken < 5000);
    CHECK(tuner.current().schedule == Schedule::overlapped);
}

} // namespace pipeline_schedule_tuner
