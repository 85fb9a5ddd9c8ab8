// The numbers of small timelines, worked out by hand.
#include <limits>
#include <utility>

#include <sluice/report/timeline_report.hpp>

#include "support/doctest.hpp"
#include "support/self_move.hpp"

namespace report_timeline_report {

using namespace sluice;

namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();
constexpr double nan = std::numeric_limits<double>::quiet_NaN();
constexpr std::size_t no_row = TimelineReport::no_row;

doctest::Approx near_to(double value) { return doctest::Approx(value).epsilon(1e-12); }

void check_sum(const DeviceShares& device) {
    CHECK(device.compute_only + device.copy_only + device.both + device.neither == near_to(1));
}

} // namespace

TEST_CASE("an empty timeline gives zeros, and no row") {
    const TimelineReport report = report_of(Timeline("nothing"));
    CHECK(report.title == "nothing");
    CHECK(report.rows.empty());
    CHECK(report.wall == 0);
    CHECK(report.batches == 0);
    CHECK(report.batches_per_second == 0);
    CHECK(report.device.neither == 1);
    check_sum(report.device);
    CHECK(report.pace_row == no_row);
    CHECK(report.next_row == no_row);
}

TEST_CASE("a row without spans has zeros") {
    Timeline timeline;
    timeline.add_row("idle", "GPU 3");
    const TimelineReport report = report_of(timeline);
    REQUIRE(report.rows.size() == 1);
    CHECK(report.rows[0].name == "idle");
    CHECK(report.rows[0].unit == "GPU 3");
    CHECK(report.rows[0].spans == 0);
    CHECK(report.rows[0].share == 0);
    CHECK(report.rows[0].longest == 0);
    CHECK(report.pace_row == no_row);
}

TEST_CASE("one span is all of its timeline") {
    Timeline timeline;
    timeline.add({.row = timeline.add_row("a", "GPU 0"), .batch = 7, .begin = -3, .end = 5});
    const TimelineReport report = report_of(timeline);
    CHECK(report.begin == -3);
    CHECK(report.end == 5);
    CHECK(report.wall == 8);
    CHECK(report.batches == 1);
    CHECK(report.steady_begin == 5);
    CHECK(report.steady_end == 5);
    CHECK(report.batches_per_second == 0);
    CHECK(report.busy_share == 1);
    CHECK(report.device.compute_only == 1);
    CHECK(report.overlap == 0);
    CHECK(report.serial_sum == 1);
    CHECK(report.pace_row == 0);
    CHECK(report.next_row == no_row);
    const RowReport& row = report.rows[0];
    CHECK(row.spans == 1);
    CHECK(row.busy == 8);
    for (const double duration : {row.mean, row.median, row.p99, row.shortest, row.longest})
        CHECK(duration == 8);
    CHECK(row.gaps == 0);
}

TEST_CASE("spans without length are counted and take no time") {
    Timeline timeline;
    const std::size_t row = timeline.add_row("a");
    timeline.add({.row = row, .batch = 0, .begin = 4, .end = 4});
    SUBCASE("alone") {
        const TimelineReport report = report_of(timeline);
        CHECK(report.rows[0].spans == 1);
        CHECK(report.rows[0].share == 0);
        CHECK(report.wall == 0);
        CHECK(report.device.neither == 1);
        CHECK(report.pace_row == no_row);
    }
    SUBCASE("between others, where one parts a gap in two") {
        timeline.add({.row = row, .batch = 1, .begin = 0, .end = 1});
        timeline.add({.row = row, .batch = 2, .begin = 9, .end = 10});
        const TimelineReport report = report_of(timeline);
        CHECK(report.rows[0].spans == 3);
        CHECK(report.rows[0].busy == 2);
        CHECK(report.rows[0].shortest == 0);
        CHECK(report.rows[0].gaps == 2);
        CHECK(report.rows[0].gap_time == 8);
        CHECK(report.rows[0].longest_gap == 5);
        CHECK(report.device.compute_only == near_to(0.2));
        CHECK(report.device.neither == near_to(0.8));
    }
}

TEST_CASE("spans that touch leave no gap, and overlapping ones count once") {
    Timeline timeline;
    const std::size_t row = timeline.add_row("a");
    timeline.add({.row = row, .batch = 1, .begin = 2, .end = 6});
    timeline.add({.row = row, .batch = 0, .begin = 0, .end = 2});
    timeline.add({.row = row, .batch = 2, .begin = 3, .end = 4});
    timeline.add({.row = row, .batch = 3, .begin = 5, .end = 9});
    const TimelineReport report = report_of(timeline);
    const RowReport& numbers = report.rows[0];
    CHECK(numbers.spans == 4);
    CHECK(numbers.busy == 9);
    CHECK(numbers.share == 1);
    CHECK(numbers.gaps == 0);
    CHECK(numbers.gap_time == 0);
    CHECK(numbers.mean == 11.0 / 4);
    CHECK(numbers.median == 3); // of 1, 2, 4, 4
    CHECK(numbers.shortest == 1);
    CHECK(numbers.longest == 4);
    CHECK(report.overlap == 0); // two rows would be needed
    // Batches are done at 2, 4, 6 and 9.
    CHECK(report.steady_begin == 2);
    CHECK(report.steady_end == 9);
    CHECK(report.batches_per_second == near_to(3 / 7e-6));
}

TEST_CASE("a gap is between batches, not within one") {
    Timeline timeline;
    const std::size_t row = timeline.add_row("a");
    timeline.add({.row = row, .batch = 0, .begin = 0, .end = 1});
    timeline.add({.row = row, .batch = 0, .begin = 3, .end = 4}); // idle before it, but with the same batch
    timeline.add({.row = row, .batch = 1, .begin = 6, .end = 7});
    timeline.add({.row = row, .batch = 2, .begin = 7.5, .end = 8});
    const RowReport numbers = report_of(timeline).rows[0];
    CHECK(numbers.busy == 3.5);
    CHECK(numbers.gaps == 2);
    CHECK(numbers.gap_time == 2.5);
    CHECK(numbers.longest_gap == 2);
}

TEST_CASE("the 99th percentile is the rank of 99 %, rounded up") {
    for (const std::size_t spans : {1u, 2u, 99u, 100u, 101u, 200u, 201u}) {
        CAPTURE(spans);
        Timeline timeline;
        const std::size_t row = timeline.add_row("a");
        for (std::size_t i = spans; i > 0; --i) // durations 1, 2, …, spans, in another order
            timeline.add({.row = row, .batch = i, .begin = 0, .end = static_cast<double>(i)});
        const RowReport numbers = report_of(timeline).rows[0];
        const std::size_t rank = (99 * spans + 99) / 100;
        CHECK(numbers.p99 == static_cast<double>(rank));
        CHECK(numbers.median == static_cast<double>(spans + 1) / 2);
        CHECK(numbers.mean == static_cast<double>(spans + 1) / 2);
    }
}

TEST_CASE("a pipeline of three rows: device, overlap and pace") {
    Timeline timeline("pipeline");
    const std::size_t source = timeline.add_row("source", "CPU");
    const std::size_t encode = timeline.add_row("encode", "GPU 0");
    const std::size_t train = timeline.add_row("train", "GPU 0");
    for (std::size_t batch = 0; batch < 2; ++batch) {
        const double at = 10.0 * static_cast<double>(batch);
        timeline.add({source, batch, at, at + 3, SpanKind::source});
        timeline.add({encode, batch, at + 3, at + 5, SpanKind::copy});
        timeline.add({encode, batch, at + 5, at + 13, SpanKind::compute});
        timeline.add({train, batch, at + 13, at + 18, SpanKind::compute});
    }
    // Copies at [3, 5] and [13, 15], encode's kernels at [5, 13] and [15, 23], train's at [13, 18] and [23, 28].
    const TimelineReport report = report_of(timeline);
    CHECK(report.wall == 28);
    CHECK(report.batches == 2);
    CHECK(report.steady_begin == 18);
    CHECK(report.steady_end == 28);
    CHECK(report.batches_per_second == near_to(1e5));
    CHECK(report.rows[encode].busy == 20);
    CHECK(report.rows[train].busy == 10);
    CHECK(report.rows[source].busy == 6);
    CHECK(report.busy_share == 1);
    CHECK(report.serial_sum == near_to(30.0 / 28));
    CHECK(report.overlap == near_to(3.0 / 28)); // [15, 18]
    CHECK(report.device.both == near_to(2.0 / 28));
    CHECK(report.device.copy_only == near_to(2.0 / 28));
    CHECK(report.device.compute_only == near_to(21.0 / 28));
    CHECK(report.device.neither == near_to(3.0 / 28));
    check_sum(report.device);
    CHECK(report.pace_row == encode);
    CHECK(report.next_row == train);
    CHECK(report.rows[source].gap_time == 7);
    CHECK(report.rows[encode].gap_time == 0);
    CHECK(report.rows[train].gap_time == 5);
}

TEST_CASE("waits are no work, and rows on the CPU are not the device's") {
    Timeline timeline;
    const std::size_t cpu = timeline.add_row("augment", "CPU");
    const std::size_t gpu = timeline.add_row("train", "GPU 0");
    timeline.add({cpu, 0, 0, 4, SpanKind::compute});
    timeline.add({cpu, 1, 4, 8, SpanKind::copy});
    timeline.add({gpu, 5, 0, 6, SpanKind::wait});
    timeline.add({gpu, 9, 4, 10, SpanKind::wait});
    timeline.add({gpu, 0, 6, 8, SpanKind::compute});
    const TimelineReport report = report_of(timeline);
    CHECK(report.wall == 10);
    CHECK(report.batches == 2); // 0 and 1
    CHECK(report.rows[gpu].spans == 1);
    CHECK(report.rows[gpu].waits == 2);
    CHECK(report.rows[gpu].waited == 10);
    CHECK(report.rows[gpu].busy == 2);
    CHECK(report.rows[gpu].gaps == 0);
    CHECK(report.busy_share == near_to(0.8));
    CHECK(report.overlap == 0);
    CHECK(report.device.compute_only == near_to(0.2));
    CHECK(report.device.copy_only == 0);
    check_sum(report.device);
    CHECK(report.pace_row == cpu);
}

TEST_CASE("of equally busy rows the first one sets the pace") {
    Timeline timeline;
    for (const char* name : {"a", "b", "c"})
        timeline.add_row(name);
    timeline.add({.row = 2, .begin = 0, .end = 5});
    timeline.add({.row = 1, .begin = 5, .end = 10});
    const TimelineReport report = report_of(timeline);
    CHECK(report.pace_row == 1);
    CHECK(report.next_row == 2);
}

TEST_CASE("a steady part runs from the first batch that is done to the last, whatever their numbers") {
    Timeline timeline;
    const std::size_t row = timeline.add_row("a");
    const std::size_t other = timeline.add_row("b");
    timeline.add({.row = row, .batch = 4, .begin = 0, .end = 9});
    timeline.add({.row = row, .batch = 1000000000000, .begin = 1, .end = 3});
    timeline.add({.row = other, .batch = 1000000000000, .begin = 1, .end = 4});
    timeline.add({.row = other, .batch = 0, .begin = 5, .end = 6});
    const TimelineReport report = report_of(timeline);
    CHECK(report.batches == 3);
    CHECK(report.steady_begin == 4);
    CHECK(report.steady_end == 9);
    CHECK(report.batches_per_second == near_to(2 / 5e-6));
}

TEST_CASE("a timeline without a finite length is refused") {
    for (const auto& [begin, end] :
         {std::pair{0.0, infinity}, {-infinity, 0.0}, {infinity, infinity}, {nan, 0.0}, {0.0, nan}}) {
        Timeline timeline;
        const std::size_t row = timeline.add_row("a");
        CHECK_THROWS_WITH_AS(timeline.add({.row = row, .begin = begin, .end = end}),
                             doctest::Contains("row 'a' lasts from "), Error);
        CHECK(timeline.spans().empty());
    }
    Timeline timeline;
    timeline.add({.row = timeline.add_row("a"), .begin = -1.7e308, .end = 1.7e308});
    CHECK_THROWS_WITH_AS(report_of(timeline), doctest::Contains("expected a finite time"), Error);
}

TEST_CASE("values of counters that are not there, or not finite, are refused") {
    Timeline timeline;
    CHECK_THROWS_WITH_AS(timeline.add_value(0, 0, 1), doctest::Contains("there are 0 counters"), Error);
    CHECK(timeline.add_counter("memory", "B") == 0);
    for (const double wrong : {infinity, -infinity, nan}) {
        CHECK_THROWS_WITH_AS(timeline.add_value(0, wrong, 1), doctest::Contains("counter 'memory'"), Error);
        CHECK_THROWS_WITH_AS(timeline.add_value(0, 1, wrong), doctest::Contains("finite"), Error);
    }
    CHECK(timeline.values().empty());
    timeline.add_value(0, -3, 5);
    CHECK(timeline.values().size() == 1);
    CHECK(timeline.begin() == 0); // of spans
}

TEST_CASE("a timeline stays what it is when moved into itself, and is replaced by another") {
    sluice::Timeline timeline("first"), other("second");
    timeline.add({.row = timeline.add_row("stage"), .begin = 1, .end = 2});
    sluice::test::move_into_itself(timeline);
    CHECK(timeline.title() == "first");
    REQUIRE(timeline.rows().size() == 1);
    CHECK(timeline.rows()[0].name == "stage");
    CHECK(timeline.spans().size() == 1);
    other = std::move(timeline);
    CHECK(other.title() == "first");
    CHECK(other.spans().size() == 1);
    timeline = other;
    CHECK(timeline.spans().size() == 1);
}

} // namespace report_timeline_report
