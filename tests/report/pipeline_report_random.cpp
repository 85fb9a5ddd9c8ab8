// What a pipeline's report makes of noted times, compared with plain searches: of random times that often are equal, or 0.
#include <algorithm>
#include <cstddef>
#include <map>
#include <optional>
#include <random>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include <sluice/report/pipeline_report.hpp>

#include "support/doctest.hpp"

namespace report_pipeline_random {

using namespace sluice;
namespace parts = detail::pipeline_report;

namespace {

using Random = std::mt19937;

std::size_t up_to(Random& random, std::size_t most) { return random() % (most + 1); }
double time_up_to(Random& random, std::size_t most) { return static_cast<double>(up_to(random, most)) / 2; }

/// A row, a batch, a begin, an end and a kind.
using Span = std::tuple<std::string, std::size_t, double, double, SpanKind>;

PipelineTimes random_times(Random& random) {
    PipelineTimes times;
    const std::size_t stages = 1 + up_to(random, 2);
    for (std::size_t stage = 0; stage < stages; ++stage) {
        times.stage_names.push_back("stage " + std::to_string(stage));
        times.stage_units.push_back(stage == 1 ? "CPU" : "GPU " + std::to_string(stage));
        if (stages < 3)
            times.batches_a_run.push_back(1 + (up_to(random, 3) == 0 ? 1 : 0));
    }
    times.workers = static_cast<int>(up_to(random, 2));
    const std::size_t first = up_to(random, 2), batches = up_to(random, 5);
    const bool graphs = up_to(random, 3) == 0;
    for (std::size_t batch = first; batch < first + batches; ++batch) {
        for (std::size_t stage = 0; stage < stages + (graphs ? 1 : 0); ++stage) {
            const double begin = 10 * static_cast<double>(batch) + time_up_to(random, 12);
            if (up_to(random, 5) != 0)
                times.stages.push_back({stage, batch, begin, begin + time_up_to(random, 12)});
        }
        StageTime submit{stages + 1, batch, 10 * static_cast<double>(batch) + time_up_to(random, 4)};
        submit.end = submit.begin + time_up_to(random, 6);
        submit.waited = up_to(random, 1) == 0 ? 0 : (submit.end - submit.begin) / 2;
        submit.made = up_to(random, 2) != 0 ? 0 : up_to(random, 1) == 0 ? 1 : submit.begin / 2;
        if (up_to(random, 5) != 0)
            times.submits.push_back(submit);
    }
    std::shuffle(times.stages.begin(), times.stages.end(), random);
    std::size_t source_batch = up_to(random, 3);
    for (std::size_t i = up_to(random, 8); i > 0; --i, source_batch += 1 + up_to(random, 1)) {
        FillTime fill{source_batch, static_cast<int>(up_to(random, times.workers == 0 ? 0 : 2))};
        fill.claimed =
            10 * static_cast<double>(first + batches - std::min(batches, i)) + time_up_to(random, 4);
        fill.begin = fill.claimed + time_up_to(random, 4);
        fill.end = fill.begin + time_up_to(random, 4);
        if (up_to(random, 2) != 0) {
            fill.given = up_to(random, 4) == 0 ? 0.5 : fill.end + time_up_to(random, 4);
            fill.asked = std::min(fill.given, fill.claimed + time_up_to(random, 2));
        }
        times.fills.push_back(fill);
    }
    if (up_to(random, 2) != 0)
        times.submitted = first + batches + up_to(random, 1);
    return times;
}

/// By the fill's number: the pipeline's batch. From the last one on, each that was given is one batch earlier.
std::map<std::size_t, std::size_t> batches_of(const PipelineTimes& times) {
    std::optional<std::size_t> last;
    if (times.submitted > 0)
        last = times.submitted - 1;
    else if (!times.submits.empty())
        last = times.submits.back().batch;
    std::vector<std::size_t> given;
    for (std::size_t i = 0; i < times.fills.size(); ++i) {
        if (times.fills[i].given > 0)
            given.push_back(i);
    }
    if (!last)
        last = given.empty() ? 0 : times.fills[given.back()].batch;
    std::map<std::size_t, std::size_t> batches;
    for (std::size_t from_end = 0; from_end < given.size() && from_end <= *last; ++from_end)
        batches[given[given.size() - 1 - from_end]] = *last - from_end;
    return batches;
}

/// Whether the stage's times are known within the graph that ends last, the first of those that do.
bool known_within(const PipelineTimes& times) {
    std::optional<std::pair<double, double>> graph;
    for (const StageTime& time : times.stages) {
        if (time.stage == times.stage_names.size() && (!graph || time.end > graph->second))
            graph = {time.begin, time.end};
    }
    return graph && std::any_of(times.stages.begin(), times.stages.end(), [&](const StageTime& time) {
               return time.stage < times.stage_names.size() && (time.begin + time.end) / 2 > graph->first &&
                      (time.begin + time.end) / 2 < graph->second;
           });
}

std::multiset<Span> expected_spans(const PipelineTimes& times) {
    std::multiset<Span> spans;
    std::vector<StageTime> shown;
    for (const StageTime& time : times.stages) {
        if (time.stage < times.stage_names.size() || !known_within(times))
            shown.push_back(time);
    }
    double zero = shown.front().begin;
    std::size_t first = shown.front().batch;
    for (const StageTime& time : shown) {
        zero = std::min(zero, time.begin);
        first = std::min(first, time.batch);
    }
    const auto add = [&](const std::string& row, std::size_t batch, double begin, double end, SpanKind kind) {
        if (end >= zero)
            spans.emplace(row, batch, std::max(begin, zero) - zero, end - zero, kind);
    };
    for (const StageTime& time : shown)
        add(time.stage < times.stage_names.size() ? times.stage_names[time.stage] : "graphs", time.batch,
            time.begin, time.end, SpanKind::compute);
    for (const StageTime& time : times.submits) {
        if (time.batch < first)
            continue;
        add("submit", time.batch, time.begin, time.end - time.waited, SpanKind::source);
        if (time.waited > 0)
            add("submit", time.batch, time.end - time.waited, time.end, SpanKind::wait);
    }
    for (const auto& [number, batch] : batches_of(times)) {
        if (batch < first)
            continue;
        const FillTime& fill = times.fills[number];
        if (fill.worker < times.workers) {
            const std::string row = "source " + std::to_string(fill.worker);
            add(row, batch, fill.claimed, fill.begin, SpanKind::wait);
            add(row, batch, fill.begin, fill.end, SpanKind::source);
            add("submit", batch, fill.asked, fill.given, SpanKind::wait);
        } else {
            add("submit", batch, fill.begin, fill.end, SpanKind::source);
        }
    }
    return spans;
}

/// Of batches whose submission is known and all of whose work is, but for that of stages that run once for several.
std::vector<double> expected_latencies(const PipelineTimes& times) {
    std::vector<double> latencies;
    for (const StageTime& submit : times.submits) {
        std::optional<double> end;
        std::size_t missing = 0;
        for (std::size_t stage = 0; stage < times.stage_names.size(); ++stage) {
            const bool always = times.batches_a_run.empty() || times.batches_a_run[stage] == 1;
            std::size_t found = 0;
            for (const StageTime& time : times.stages) {
                if (time.stage == stage && time.batch == submit.batch) {
                    end = std::max(end.value_or(0), time.end);
                    ++found;
                }
            }
            missing += always && found == 0 ? 1U : 0U;
        }
        if (missing == 0)
            latencies.push_back(end.value_or(0) - (submit.made > 0 ? submit.made : submit.begin));
    }
    return latencies;
}

} // namespace

TEST_CASE("a pipeline's timeline has the spans and the latencies that a plain search finds in its times") {
    Random random(5);
    std::size_t graphs = 0, within = 0, fills = 0, cut = 0;
    for (int round = 0; round < 3000; ++round) {
        CAPTURE(round);
        PipelineTimes times = random_times(random);
        const Timeline timeline = timeline_of(times, "random");
        REQUIRE(timeline.title() == "random");
        REQUIRE(timeline.rows().size() >= times.stage_names.size());
        for (std::size_t stage = 0; stage < times.stage_names.size(); ++stage) {
            REQUIRE(timeline.rows()[stage].name == times.stage_names[stage]);
            REQUIRE(timeline.rows()[stage].unit == times.stage_units[stage]);
        }
        if (times.stages.empty()) {
            REQUIRE(timeline.rows().size() == times.stage_names.size());
            REQUIRE(timeline.spans().empty());
            continue;
        }
        const bool has_graphs =
            std::any_of(times.stages.begin(), times.stages.end(),
                        [&](const StageTime& time) { return time.stage == times.stage_names.size(); });
        const bool hidden = known_within(times);
        graphs += has_graphs && !hidden;
        within += hidden;
        if (hidden && std::all_of(times.stages.begin(), times.stages.end(), [&](const StageTime& time) {
                return time.stage == times.stage_names.size();
            }))
            continue;
        std::vector<std::string> names = times.stage_names;
        if (has_graphs && !hidden)
            names.push_back("graphs");
        names.push_back("submit");
        for (int worker = 0; worker < times.workers && !times.fills.empty(); ++worker)
            names.push_back("source " + std::to_string(worker));
        REQUIRE(timeline.rows().size() == names.size());
        for (std::size_t row = 0; row < names.size(); ++row) {
            REQUIRE(timeline.rows()[row].name == names[row]);
            if (row >= times.stage_names.size())
                REQUIRE(timeline.rows()[row].unit == (names[row] == "graphs" ? times.stage_units[0] : "CPU"));
        }
        std::multiset<Span> spans;
        for (const TimelineSpan& span : timeline.spans()) {
            spans.emplace(timeline.rows()[span.row].name, span.batch, span.begin, span.end, span.kind);
            fills += names[span.row].starts_with("source") ? 1U : 0U;
            cut += span.begin == 0 ? 1U : 0U;
        }
        REQUIRE(spans == expected_spans(times));
        double zero = 1e9;
        for (const StageTime& time : times.stages) {
            if (time.stage < times.stage_names.size() || !hidden)
                zero = std::min(zero, time.begin);
        }
        REQUIRE(timeline.clock_zero() == zero);
        REQUIRE(timeline.latencies() == expected_latencies(times));
    }
    CHECK(graphs > 100);
    CHECK(within > 100);
    CHECK(fills > 1000);
    CHECK(cut > 1000);
}

TEST_CASE("the pace of a source that drops is that of its fills, and what waits behind the last one is "
          "neither sent nor dropped") {
    Random random(6);
    std::size_t paced = 0;
    for (int round = 0; round < 1000; ++round) {
        CAPTURE(round);
        PipelineTimes times = random_times(random);
        parts::note_pace(times);
        std::size_t sent = 0, given = 0;
        for (std::size_t i = 0; i < times.fills.size(); ++i) {
            if (times.fills[i].given > 0) {
                sent = i + 1;
                ++given;
            }
        }
        REQUIRE(times.sent == sent);
        REQUIRE(times.dropped == sent - given);
        const double batches =
            times.fills.size() < 2
                ? 0
                : static_cast<double>(times.fills.back().batch - times.fills.front().batch);
        REQUIRE(times.pace ==
                (batches > 0 ? (times.fills.back().end - times.fills.front().end) / batches : 0));
        paced += batches > 0;
    }
    CHECK(paced > 500);
}

TEST_CASE(
    "of a source's fills those are kept whose batches the pipeline has noted, or all where there are none") {
    Random random(8);
    std::size_t fewer = 0, all = 0;
    for (int round = 0; round < 2000; ++round) {
        CAPTURE(round);
        PipelineTimes times = random_times(random);
        std::vector<double> wanted;
        if (!times.submits.empty()) {
            for (const auto& [number, batch] : batches_of(times)) {
                if (batch >= times.submits.front().batch && batch <= times.submits.back().batch)
                    wanted.push_back(times.fills[number].begin);
            }
        }
        if (wanted.empty()) {
            for (const FillTime& fill : times.fills)
                wanted.push_back(fill.begin);
            ++all;
        }
        fewer += wanted.size() < times.fills.size();
        parts::keep_noted_fills(times);
        std::vector<double> kept;
        for (const FillTime& fill : times.fills)
            kept.push_back(fill.begin);
        REQUIRE(kept == wanted);
    }
    CHECK(fewer > 500);
    CHECK(all > 100);
}

} // namespace report_pipeline_random
