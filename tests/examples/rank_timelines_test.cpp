/// \file
/// Timelines of ranks: as bytes, in numbers, and drawn.
#include <cstdint>
#include <sstream>
#include <string>
#include <vector>

#include <common/rank_timelines.hpp>
#include <common/timelines.hpp>

#include "scratch.hpp"
#include "support/doctest.hpp"

namespace examples_rank_timelines {

using examples::costs_of;
using examples::RankCost;
using examples::RankTimeline;

namespace {

/// Trains for 30 us on each of the batches 5 to `end`, which begins every 100 us, and once `late` us later.
RankTimeline rank(int number, const std::string& host, double zero, std::size_t end, double late) {
    sluice::Timeline timeline("overlapped");
    timeline.set_clock_zero(zero);
    timeline.add_row("copy", "host 0");
    timeline.add_row("train", "host 0");
    for (std::size_t batch = 5; batch < end; ++batch) {
        const double begin = 100 * static_cast<double>(batch - 5) + (batch == 6 ? late : 0);
        timeline.add({0, batch, begin, begin + 1, sluice::SpanKind::copy});
        timeline.add({1, batch, begin, begin + 30, sluice::SpanKind::compute});
    }
    return {number, host, timeline};
}

std::string error_of(const std::vector<std::uint8_t>& bytes) {
    try {
        (void)examples::rank_timeline_of(bytes);
    } catch (const sluice::Error& error) {
        return error.what();
    }
    return {};
}

} // namespace

TEST_CASE("a rank's timeline comes through bytes as it was") {
    RankTimeline sent = rank(3, "a host", 1e6, 8, 0);
    sent.timeline.set_sentence("train bounds this.");
    sent.timeline.add_value(sent.timeline.add_counter("device memory", "B"), 7, 4096);
    sent.timeline.add_missing_edge({0, 5, 1, 6, "a race"});
    std::vector<std::uint8_t> bytes = to_bytes(sent);
    const RankTimeline got = examples::rank_timeline_of(bytes);

    CHECK(got.rank == 3);
    CHECK(got.host == "a host");
    CHECK(got.timeline.title() == "overlapped");
    CHECK(got.timeline.sentence() == "train bounds this.");
    CHECK(got.timeline.clock_zero() == 1e6);
    REQUIRE(got.timeline.rows().size() == 2);
    CHECK(got.timeline.rows()[1].name == "train");
    CHECK(got.timeline.rows()[1].unit == "host 0");
    REQUIRE(got.timeline.spans().size() == 6);
    CHECK(got.timeline.spans()[4].row == 0);
    CHECK(got.timeline.spans()[4].kind == sluice::SpanKind::copy);
    CHECK(got.timeline.spans()[5].batch == 7);
    CHECK(got.timeline.spans()[5].begin == 200);
    CHECK(got.timeline.spans()[5].end == 230);
    REQUIRE(got.timeline.values().size() == 1);
    CHECK(got.timeline.counters()[0].name == "device memory");
    CHECK(got.timeline.counters()[0].unit == "B");
    CHECK(got.timeline.values()[0].time == 7);
    CHECK(got.timeline.values()[0].value == 4096);
    REQUIRE(got.timeline.missing_edges().size() == 1);
    CHECK(got.timeline.missing_edges()[0].to_batch == 6);
    CHECK(got.timeline.missing_edges()[0].text == "a race");

    bytes.push_back(0);
    CHECK(error_of(bytes) == "a rank's timeline is too long; expected all ranks to run one program");
    bytes.resize(bytes.size() - 2);
    CHECK(error_of(bytes) == "a rank's timeline ends too early; expected all ranks to run one program");
}

TEST_CASE("a rank's cost is a step, its stage, and how long it was ahead of the last rank") {
    // On the clock rank 1 begins 20 us after rank 0, and batch 6, one of three, 50 us earlier than that.
    const std::vector<RankTimeline> ranks = {rank(0, "a", 1000, 9, 50), rank(1, "a", 1020, 8, 0)};
    const std::vector<RankCost> costs = costs_of(ranks, "train");
    REQUIRE(costs.size() == 2);
    CHECK(costs[0].rank == 0);
    CHECK(costs[1].rank == 1);
    for (const RankCost& cost : costs) {
        CHECK(cost.step == doctest::Approx(100));
        CHECK(cost.stage == doctest::Approx(30));
    }
    CHECK(costs[0].ahead == doctest::Approx(40. / 3)); // 20, 0, 20
    CHECK(costs[1].ahead == doctest::Approx(10));      // 0, 30, 0

    CHECK(costs_of(ranks, "no such stage").empty());
    CHECK(costs_of({ranks[0], rank(1, "a", 1000, 6, 0)}, "train").empty()); // one batch in common
    CHECK(costs_of({}, "train").empty());

    examples::RunResult run;
    add_costs(run, {});
    CHECK(run.extra.empty());
    add_costs(run, costs);
    REQUIRE(run.extra.size() == 3);
    CHECK(run.extra[0].first == "rank_step_us");
    CHECK(std::get<std::vector<double>>(run.extra[2].second)[1] == doctest::Approx(10));
}

TEST_CASE("ranks of one host are drawn together, and those of others named") {
    const sluice_test::ScratchFolder scratch;
    const std::string file = (scratch.path() / "ranks.svg").string();
    examples::Timelines timelines({.report = true, .kernels = false, .file = file});
    CHECK(timelines.for_rank().timed_batches() == timelines.timed_batches());
    const std::vector<RankCost> costs = timelines.add_ranks(
        {rank(0, "a", 1000, 9, 0), rank(1, "a", 1020, 9, 0), rank(2, "b", 7, 9, 0)}, "train");
    CHECK(costs.size() == 2);
    REQUIRE(timelines.all().size() == 1);
    CHECK(timelines.all()[0].rows()[1].name == "train");

    std::ostringstream out;
    examples::Report report;
    timelines.show(out, report);
    REQUIRE(report.timelines.size() == 1);
    CHECK(report.timelines[0].find("\"rank 1") == std::string::npos);
    const std::string table = "       rank    step us   train us   ahead us\n"
                              "          0      100.0       30.0       20.0\n"
                              "          1      100.0       30.0        0.0\n"
                              "ahead: how long before the last rank it began train";
    CHECK(out.str().find(table) != std::string::npos);
    CHECK(out.str().find("since their hosts' clocks are others: rank 2 on b\n") != std::string::npos);
    const sluice_test::Bytes bytes = sluice_test::contents(file);
    const std::string drawn(bytes.begin(), bytes.end());
    CHECK(drawn.find("rank 0: train") != std::string::npos);
    CHECK(drawn.find("rank 1: train") != std::string::npos);
    CHECK(drawn.find("rank 2: train") == std::string::npos);
}

} // namespace examples_rank_timelines
