// What bounds a pipeline, of random times, compared with the rules as bound.hpp says them. Times are few and small, so that limits are
// met exactly.
#include <algorithm>
#include <cstddef>
#include <map>
#include <random>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include <sluice/report/bound.hpp>
#include <sluice/report/pipeline_report.hpp>

namespace report_bound_random {

using namespace sluice;
using detail::bound::rate_text;
using detail::bound::time_text;

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

/// A stage's notes, or those of graphs.
struct Work {
    std::size_t count = 0;
    double sum = 0, share = 0, period = 0;
};

Work work_of(const PipelineTimes& times, std::size_t stage) {
    std::map<std::size_t, StageTime> own; // here a later batch begins later
    for (const StageTime& time : times.stages) {
        if (time.stage == stage)
            own[time.batch] = time;
    }
    Work work;
    work.count = own.size();
    if (own.empty())
        return work;
    double busy = 0, end = own.begin()->second.begin;
    for (const auto& [batch, time] : own) {
        work.sum += time.end - time.begin;
        busy += std::max(time.end - std::max(end, time.begin), 0.0);
        end = std::max(end, time.end);
    }
    const StageTime &first = own.begin()->second, &last = own.rbegin()->second;
    work.share = end > first.begin ? busy / (end - first.begin) : 0;
    if (own.size() > 1)
        work.period = (last.end - first.end) / static_cast<double>(last.batch - first.batch);
    return work;
}

double later_middle(std::vector<double> values) {
    std::sort(values.begin(), values.end());
    return values.empty() ? 0 : values[values.size() / 2];
}

/// The rules of bound.hpp.
Bound expected(const PipelineTimes& times) {
    Bound bound;
    const std::size_t stages = times.stage_names.size();
    std::vector<Work> works;
    std::size_t noted = 0;
    for (std::size_t stage = 0; stage <= stages; ++stage) {
        works.push_back(work_of(times, stage));
        bound.period = std::max(bound.period, works[stage].period);
        noted = stage < stages ? std::max(noted, works[stage].count) : noted;
    }
    std::vector<double> means; // a batch
    std::size_t slowest = 0;
    for (std::size_t stage = 0; stage <= stages; ++stage) {
        const double of = static_cast<double>(stage < stages ? noted : works[stage].count);
        means.push_back(works[stage].count == 0 ? 0 : works[stage].sum / of);
        if (stage < stages) {
            bound.together += means[stage];
            slowest = means[stage] > means[slowest] ? stage : slowest;
        }
    }
    bound.longest = means[slowest];
    const std::vector<StageTime>& submits = times.submits;
    const auto calls = static_cast<double>(submits.size());
    if (submits.size() > 1)
        bound.period = std::max(bound.period, (submits.back().begin - submits.front().begin) / (calls - 1));
    double length = 0;
    for (const StageTime& submit : submits) {
        length += submit.end - submit.begin;
        bound.held += submit.waited / calls;
        bound.reading += submit.reading / calls;
        bound.results += submit.results / calls;
    }
    bound.submit = submits.empty() ? 0 : length / calls - bound.held;
    double given = 0;
    for (const FillTime& fill : times.fills) {
        bound.fill += (fill.end - fill.begin) / static_cast<double>(times.fills.size());
        given += fill.given > 0;
        bound.waited += fill.given - fill.asked;
    }
    bound.waited = given > 0 ? bound.waited / given : 0;
    double elapsed = 0, used = 0, pairs = 0;
    for (std::size_t i = 0; i + 1 < submits.size(); ++i) {
        if (submits[i + 1].batch - submits[i].batch == 1 && submits[i].used > 0 &&
            submits[i + 1].used >= submits[i].used) {
            elapsed += submits[i + 1].end - submits[i].end;
            used += submits[i + 1].used - submits[i].used;
            ++pairs;
        }
    }
    if (pairs > 0)
        bound.asleep = std::max(0.0, (elapsed - used) / pairs - bound.held - bound.waited - bound.reading -
                                         bound.results);

    if (submits.size() < 4 || times.stages.size() < 2 || bound.period == 0) {
        bound.sentence = "too few batches were noted to say what bounds this.";
        return bound;
    }
    // Behind: half a period, or graphs that fill 85 % of the time. Trailing: a quarter, and what a launch takes.
    std::vector<double> delays, trails;
    for (const StageTime& submit : submits) {
        double end = submit.end;
        bool any = false;
        for (const StageTime& time : times.stages) {
            if (time.batch != submit.batch)
                continue;
            end = std::max(end, time.end);
            if (time.stage == times.stages.front().stage && !any)
                delays.push_back(time.begin - submit.begin);
            any = any || time.stage == times.stages.front().stage;
        }
        trails.push_back(end - submit.end);
    }
    const bool behind =
        works[stages].count > 0 ? works[stages].share >= 0.85 : later_middle(delays) > 0.5 * bound.period;
    const bool serial = times.schedule == Schedule::serial;
    const bool trailing = serial && later_middle(trails) > 0.25 * bound.period + 50;
    const bool inside = detail::bound::within_graphs(times);
    std::size_t busiest = 0;
    for (std::size_t stage = 0; stage < (inside ? stages : stages + 1); ++stage)
        busiest = works[stage].share > works[busiest].share ? stage : busiest;
    const double share = works[busiest].share;
    const double need = std::max(serial ? bound.together : bound.longest, bound.submit);
    const double outside = bound.period - bound.submit - bound.held - bound.waited - bound.results;
    const double filling = times.workers > 0 ? bound.fill / (times.workers * bound.period) : 0;
    const bool fills =
        times.workers > 0 ? filling >= 0.85 && filling >= share : bound.fill >= 0.5 * bound.period;
    const std::string of_batch = " of " + time_text(bound.period) + " a batch";
    const auto name = [&](std::size_t stage) {
        return stage == stages ? std::string("the steps' graph")
                               : detail::timeline_text::shortened(times.stage_names[stage], 24);
    };
    const std::string reading =
        bound.reading < 0.1 * bound.period
            ? std::string()
            : " It waits " + time_text(bound.reading) + " of " + time_text(bound.period) +
                  " for its batch to be read: keep what submit returns and fill several batches in "
                  "turns, or use a Source.";
    std::string& text = bound.sentence;
    if (!times.fills.empty() && fills && bound.waited >= (behind ? 0.5 : 0.1) * bound.period) {
        bound.part = BoundPart::source;
        if (times.drops) {
            text = "the source sets the pace: it sends " +
                   rate_text(times.pace > 0 ? times.pace : bound.period) + ", and the stages need " +
                   time_text(need) + of_batch + ".";
        } else {
            text = "the source bounds this: ";
            text += times.workers == 0   ? "the caller fills"
                    : times.workers == 1 ? "one worker fills"
                                         : "each of " + std::to_string(times.workers) + " workers fills";
            text += " a batch in " + time_text(bound.fill) + ", the stages need " + time_text(need);
            const int workers = need > 0 ? std::min(static_cast<int>(bound.fill / need), 63) + 1 : 1;
            if (workers > times.workers) {
                bound.workers = workers;
                bound.expected = std::max(bound.fill / workers, need);
                text += "; with " + std::to_string(workers) + (workers == 1 ? " worker" : " workers") +
                        " expect " + rate_text(bound.expected);
            }
            text += ".";
        }
    } else if (outside >= 0.6 * bound.period && !behind && share < 0.9) {
        bound.part = BoundPart::loop;
        text = bound.asleep >= 0.75 * outside ? "what the loop waits for sets the pace: it sleeps " +
                                                    time_text(bound.asleep) + of_batch + "."
                                              : "the loop that submits bounds this: it spends " +
                                                    time_text(outside) + of_batch + " outside of submit.";
        text += reading;
    } else if (bound.submit >= 0.6 * bound.period && !behind && !trailing &&
               bound.submit >= share * bound.period) {
        bound.part = BoundPart::submit;
        text = "launches bound this: submit takes " + time_text(bound.submit) + of_batch +
               ", the longest stage " + time_text(bound.longest) +
               (times.schedule == Schedule::graphed ? "." : "; Schedule::graphed spares most of that.");
    } else if (share >= 0.8) {
        bound.part = BoundPart::stage;
        bound.stage = busiest;
        text = name(busiest) + " bounds this: it takes " + time_text(means[busiest]) + of_batch;
        std::size_t next = stages;
        for (std::size_t stage = 0; stage < stages; ++stage) {
            if (stage != busiest && works[stage].count > 0 && (next == stages || means[stage] > means[next]))
                next = stage;
        }
        text += (next == stages ? "" : ", " + name(next) + ' ' + time_text(means[next])) + ".";
    } else if (inside && works[stages].share >= 0.8) {
        bound.part = BoundPart::barrier;
        text = "the steps' graphs bound this: each waits for all stages of the one before, and " +
               name(slowest) + ", the longest stage, works " + time_text(bound.longest) + of_batch +
               "; more steps a graph, or a graph for each stage (graph_each_stage), wait less.";
    } else {
        bound.part = BoundPart::waiting;
        text = "stages wait for one another: together they take " + time_text(bound.together) + ", " +
               name(slowest) + " alone " + time_text(bound.longest) + ", and a batch comes every " +
               time_text(bound.period);
        if (serial) {
            const bool holds = trailing && bound.submit >= 0.6 * bound.period;
            bound.expected = holds ? bound.longest : std::max(bound.longest, bound.submit);
            text += holds ? "; what a stage calls holds submit up for " + time_text(bound.submit) +
                                ", as copies from memory that is not pinned do; without that, and"
                          : ";";
            text += " overlapped, expect up to " + rate_text(bound.expected);
        }
        text += "." + reading;
    }
    if (times.dropped > 0 && times.pace > 0)
        text += " The source sends " + rate_text(times.pace) + "; " + std::to_string(times.dropped) +
                " of 9 were dropped.";
    return bound;
}

} // namespace

TEST_CASE("bound: of random times all numbers and the sentence are those of the rules") {
    Random random(3);
    std::map<BoundPart, int> parts;
    int held = 0, graphs = 0;
    for (int round = 0; round < 4000; ++round) {
        CAPTURE(round);
        const PipelineTimes times = random_times(random);
        const Bound bound = bound_of(times), wanted = expected(times);
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
        held += bound.sentence.find("holds submit up") != std::string::npos;
        graphs += bound.part == BoundPart::stage && bound.stage == times.stage_names.size();
    }
    for (const BoundPart part : {BoundPart::unknown, BoundPart::source, BoundPart::submit, BoundPart::loop,
                                 BoundPart::stage, BoundPart::barrier, BoundPart::waiting}) {
        CAPTURE(static_cast<int>(part));
        CHECK(parts[part] > 20);
    }
    CHECK(held > 5);
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
