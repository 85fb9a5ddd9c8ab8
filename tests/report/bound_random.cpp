// What bounds a pipeline, of random times, compared with the rules as bound.hpp says them. Times are few and small, so that limits are
// met exactly.
#include <cstddef>
#include <initializer_list>
#include <map>
#include <random>
#include <string>
#include <vector>

#include "report/bound_rules.hpp"
#include "support/doctest.hpp"

namespace report_bound_random {

using namespace sluice;

namespace {

using Random = std::mt19937;

std::size_t up_to(Random& random, std::size_t most) { return random() % (most + 1); }
double one_of(Random& random, std::initializer_list<double> of) { return of.begin()[random() % of.size()]; }

PipelineTimes random_times(Random& random) {
    PipelineTimes times;
    const std::size_t stages = 1 + up_to(random, 2), batches = 1 + up_to(random, 8);
    const bool graphs = up_to(random, 3) == 0, inside = up_to(random, 1) == 0;
    for (std::size_t stage = 0; stage < stages; ++stage) {
        times.stage_names.push_back("stage " + std::to_string(stage) + std::string(stage * 12, '.'));
        times.stage_units.emplace_back("GPU 0");
    }
    times.schedule = graphs                  ? Schedule::graphed
                     : up_to(random, 1) == 0 ? Schedule::serial
                                             : Schedule::overlapped;
    const double period = one_of(random, {10, 20, 400});
    for (std::size_t stage = 0; stage < stages + (graphs ? 1 : 0); ++stage) {
        if (graphs && stage < stages && !inside)
            continue;
        const double length = one_of(random, {0, 0.1, 0.5, 0.8, 0.85, 0.9, 1, 1.2}) * period;
        const double delay = one_of(random, {0, 0.25, 0.5, 0.55, 1}) * period;
        for (std::size_t batch = 0; batch < batches; ++batch) {
            const double begin = 1000 + period * static_cast<double>(batch) + delay;
            if (up_to(random, 9) != 0)
                times.stages.push_back({stage, batch, begin, begin + length});
        }
    }
    const double submit = one_of(random, {0, 0.1, 0.3, 0.6, 0.7, 1}) * period;
    const double held = one_of(random, {0, 0, 0.1, 0.5}) * submit,
                 reading = one_of(random, {0, 0, 0.09, 0.1, 0.3}) * period;
    const double results = one_of(random, {0, 0, 0.1, 0.4}) * period,
                 use = one_of(random, {0, 0.2, 0.5, 1}) * period;
    double used = one_of(random, {0, 5});
    for (std::size_t batch = 0; batch < batches; ++batch) {
        const double begin = 1000 + period * static_cast<double>(batch);
        used += up_to(random, 15) == 0 ? -1 : use;
        if (up_to(random, 15) != 0)
            times.submits.push_back(
                {stages + 1, batch, begin, begin + submit, held, reading, 0, used, results});
    }
    times.workers = static_cast<int>(up_to(random, 2));
    const double fill = one_of(random, {0, 0.1, 0.5, 0.85, 1, 2, 5, 40}) * period;
    const double waited = one_of(random, {0, 0.1, 0.3, 0.5, 0.9}) * period;
    for (std::size_t batch = 0; batch < batches && times.workers + fill > 0; ++batch) {
        const double begin = 1000 + period * static_cast<double>(batch);
        FillTime time{.batch = batch, .claimed = begin, .begin = begin, .end = begin + fill};
        if (up_to(random, 7) != 0) {
            time.asked = begin;
            time.given = begin + waited;
        }
        times.fills.push_back(time);
    }
    times.drops = up_to(random, 3) == 0;
    times.pace = times.drops ? one_of(random, {0, 1, 25}) : 0;
    times.sent = 9;
    times.dropped = times.drops ? up_to(random, 2) : 0;
    return times;
}

} // namespace

TEST_CASE("bound: of random times all numbers and the sentence are those of the rules") {
    Random random(3);
    std::map<BoundPart, int> parts;
    int held = 0, slept = 0, graphs = 0;
    for (int round = 0; round < 4000; ++round) {
        CAPTURE(round);
        const PipelineTimes times = random_times(random);
        const Bound bound = bound_of(times), wanted = Rules(times).bound();
        CAPTURE(wanted.sentence);
        REQUIRE(bound.sentence == wanted.sentence);
        REQUIRE(bound.part == wanted.part);
        REQUIRE(bound.stage == wanted.stage);
        REQUIRE(bound.workers == wanted.workers);
        for (double Bound::*const number :
             {&Bound::period, &Bound::fill, &Bound::waited, &Bound::submit, &Bound::held, &Bound::asleep,
              &Bound::reading, &Bound::results, &Bound::longest, &Bound::together, &Bound::expected})
            REQUIRE(bound.*number == doctest::Approx(wanted.*number).epsilon(1e-9));
        ++parts[bound.part];
        held += bound.sentence.find("holds submit up for") != std::string::npos;
        slept += bound.sentence.find("the caller sleeps there") != std::string::npos;
        graphs += bound.part == BoundPart::stage && bound.stage == times.stage_names.size();
    }
    for (const BoundPart part : {BoundPart::unknown, BoundPart::source, BoundPart::submit, BoundPart::loop,
                                 BoundPart::stage, BoundPart::barrier, BoundPart::waiting}) {
        CAPTURE(static_cast<int>(part));
        CHECK(parts[part] > 20);
    }
    CHECK(held > 5);
    CHECK(slept > 5);
    CHECK(graphs > 5);
}

TEST_CASE("bound: numbers in sentences have as many digits as they need") {
    CHECK(time_text(9.94) == "9.9 us");
    CHECK(time_text(9.96) == "10 us");
    CHECK(time_text(0) == "0.0 us");
    CHECK(time_text(123.4) == "123 us");
    CHECK(time_text(99'400) == "99 ms");
    CHECK(rate_text(1e6 / 99.4) == "99.4 batches/s");
    CHECK(rate_text(1e6 / 99.6) == "100 batches/s");
    CHECK(rate_text(1e6 / 999'999) == "999,999 batches/s");
}

TEST_CASE("bound: the latest graph says whether stages are known within graphs") {
    PipelineTimes times;
    times.stage_names = {"only"};
    times.stage_units = {"GPU 0"};
    const auto within = [&](std::vector<StageTime> stages) {
        times.stages = std::move(stages);
        return detail::bound::within_graphs(times);
    };
    CHECK_FALSE(within({}));
    CHECK_FALSE(within({{0, 0, 2, 4}}));
    CHECK_FALSE(within({{1, 0, 0, 10}}));
    CHECK(within({{1, 0, 0, 10}, {0, 0, 2, 4}}));
    CHECK(within({{0, 0, 2, 4}, {1, 0, 0, 10}}));
    CHECK_FALSE(within({{1, 0, 0, 10}, {0, 0, 2, 4}, {1, 1, 10, 20}}));
    CHECK_FALSE(within({{1, 1, 10, 20}, {0, 0, 2, 4}, {1, 0, 0, 10}}));
    CHECK(within({{1, 1, 10, 20}, {0, 0, 12, 14}, {1, 0, 0, 10}}));
    CHECK_FALSE(within({{1, 0, 10, 20}, {0, 0, 8, 12}})); // as much before as within
    CHECK_FALSE(within({{1, 0, 10, 20}, {0, 0, 18, 22}}));
    CHECK(within({{1, 0, 10, 20}, {0, 0, 18, 21}}));
}

} // namespace report_bound_random
