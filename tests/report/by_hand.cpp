// Reports and notes that a program has filled itself, with numbers that none of sluice's has: what is shown is at most 80 columns
// wide unless the numbers have no meaning, and text in any case, and what cannot be shown is refused in a sentence.
#include <cstddef>
#include <limits>
#include <string>
#include <vector>

#include <sluice/report.hpp>

#include "support/doctest.hpp"
#include "support/error_text.hpp"
#include "widest_line.hpp"

namespace report_by_hand {

using namespace sluice;
using namespace sluice::test;

namespace {

constexpr double infinite = std::numeric_limits<double>::infinity();
constexpr double none = std::numeric_limits<double>::quiet_NaN();
const std::vector<double> odd_numbers{none, -none, infinite, -infinite, -1,    -1e18,
                                      1e18, 1e19,  1e20,     -1e300,    1e300, 1e-300};

TimelineReport report_with(double x) {
    TimelineReport report;
    report.title = "title";
    report.begin = report.end = report.wall = x;
    report.batches = 3;
    report.batches_per_second = report.busy_share = report.overlap = report.serial_sum = x;
    report.device = {x, x, x, x};
    report.latency = {2, x, x, x, x};
    report.rows.resize(2);
    for (RowReport& row : report.rows) {
        row.name = "a";
        row.unit = "GPU 0";
        row.spans = row.gaps = row.waits = 1;
        row.busy = row.share = row.mean = row.median = row.p99 = row.shortest = row.longest = x;
        row.gap_time = row.longest_gap = row.waited = x;
    }
    report.counters.push_back({"c", "B", 3, x, x, x});
    report.pace_row = 0;
    report.next_row = 1;
    return report;
}

/// Whether all of `text` is what these reports' tables are written with.
bool is_printed(const std::string& text) {
    for (const char c : text) {
        if (c != '\n' && (c < ' ' || c > '~') && static_cast<unsigned char>(c) < 0x80)
            return false;
    }
    return true;
}

PipelineTimes noted(double begin, double end) {
    PipelineTimes times;
    times.stage_names = {"one", "two"};
    times.stage_units = {"GPU 0", "GPU 0"};
    for (std::size_t batch = 0; batch < 8; ++batch) {
        const double at = 10.0 * static_cast<double>(batch);
        times.stages.push_back({0, batch, at, at + 5});
        times.stages.push_back({1, batch, at + 5, at + 9});
        times.submits.push_back({3, batch, at - 1, at});
    }
    times.stages[5].begin = begin;
    times.stages[5].end = end;
    return times;
}

} // namespace

TEST_CASE("by hand: tables are shown whatever the numbers are") {
    for (const double x : odd_numbers) {
        CAPTURE(x);
        const std::size_t columns = x < 1e9 && x > -1e9 ? 80 : 96;
        const TimelineReport report = report_with(x);
        const std::string table = to_table(report);
        CHECK(widest_line(table) <= columns);
        CHECK(is_printed(table));
        CHECK(contains(to_json(report), "\"wall_us\":"));
        const Comparison comparison = compare(report_with(1), report);
        CHECK(is_printed(comparison_sentence(comparison)));
        ActivityReport activities;
        activities.wall = activities.slowdown = activities.busy_share = activities.at_work_overlap = x;
        activities.device = {x, x, x, x};
        activities.causes = {x, x, x, x, x, x, x};
        activities.stages.push_back({"stage", 1, x, x, x, x, x});
        activities.kernels.push_back(
            {"kernel", "stage", ActivityKind::kernel, 1, x, x, x, 1, TensorCores::present});
        const std::string kernels = to_table(activities);
        CHECK(widest_line(kernels) <= 96);
        CHECK(is_printed(kernels));
        for (const HtmlTable& of : tables_of(activities)) {
            for (const auto& row : of.rows) {
                for (const std::string& cell : row)
                    CHECK(is_printed(cell));
            }
        }
        Advice advice;
        advice.trials.push_back({.slots = -4, .predicted = x, .measured = x});
        CHECK(widest_line(to_table(advice)) <= 96);
        CHECK(is_printed(to_table(advice)));
        CHECK(is_printed(to_sentence(ScheduleChoice{.decided = true, .trials = {{.microseconds = x}}})));
    }
}

TEST_CASE("by hand: the sentence has a share that is no number as it is") {
    TimelineReport report = report_with(0.5);
    report.busy_share = 0;
    report.rows[0].share = none;
    CHECK(contains(pace_sentence(report), "no stage was busy more than nan % of the time"));
    report.rows[0].share = -0.25;
    CHECK(contains(pace_sentence(report), "no stage was busy more than -25 % of the time"));
}

TEST_CASE("by hand: a row that sets the pace is one of the report's") {
    TimelineReport report = report_with(1);
    report.pace_row = 7;
    const std::string words =
        "TimelineReport::pace_row is row 7, and the report has 2 rows; expected one of them, or "
        "TimelineReport::no_row";
    CHECK(text_of([&] { (void)pace_sentence(report); }) == words);
    CHECK(text_of([&] { (void)to_table(report); }) == words);
    CHECK(text_of([&] { (void)to_json(report); }) == words);
    report.pace_row = 1;
    report.next_row = 2;
    CHECK(contains(text_of([&] { (void)to_table(report); }), "TimelineReport::next_row is row 2"));
    report.rows.clear();
    CHECK(contains(text_of([&] { (void)to_table(report); }), "has 0 rows"));
    report.sentence = "nothing of these is asked for.";
    CHECK(contains(to_table(report), report.sentence));
}

TEST_CASE("by hand: latencies are finite") {
    Timeline timeline("title");
    CHECK(text_of([&] {
              timeline.set_latencies({1, none});
          }) == "Timeline::set_latencies: a latency is nan us; expected finite times");
    CHECK(contains(text_of([&] { timeline.set_latencies({-infinite}); }), "-inf us"));
    CHECK(timeline.latencies().empty());
    timeline.set_latencies({-1, 2, 1e300});
    CHECK(is_printed(to_table(report_of(timeline))));
    timeline.set_clock_zero(1);
    CHECK(is_printed(to_html(timeline)));
}

TEST_CASE("by hand: a timeline's zero is finite") {
    Timeline timeline;
    timeline.set_clock_zero(-5);
    CHECK(text_of([&] { timeline.set_clock_zero(none); }) ==
          "Timeline::set_clock_zero: the zero is nan us; expected a finite time");
    for (const double zero : {infinite, -infinite})
        CHECK(contains(text_of([&] { timeline.set_clock_zero(zero); }), "inf us; expected a finite time"));
    CHECK(timeline.clock_zero() == -5);
}

TEST_CASE("by hand: times that are refused are told in a few digits") {
    Timeline timeline;
    const std::size_t row = timeline.add_row("encode");
    CHECK(text_of([&] {
              timeline.add({row, 0, 1e308, -0.5});
          }) == "Timeline::add: a span on row 'encode' ends at -0.5 us, before it begins at 1e+308 us");
    CHECK(text_of([&] {
              timeline.add({row, 0, none, 1e308});
          }) ==
          "Timeline::add: a span on row 'encode' lasts from nan us to 1e+308 us; expected finite times");
    timeline.add({row, 0, -1e308, 1e308});
    CHECK(text_of([&] { (void)report_of(timeline); }) ==
          "report_of: the timeline goes from -1e+308 us to 1e+308 us; expected a finite time between them");
    CHECK(contains(text_of([&] { (void)to_svg(timeline); }), "lasts from -1e+308 to 1e+308"));
}

TEST_CASE("by hand: notes of a pipeline have tables of one length, and finite times") {
    CHECK(text_of([] { (void)timeline_of(noted(20, 25)); }).empty());
    for (const double x : {none, infinite, -infinite}) {
        CHECK(contains(text_of([&] { (void)bound_of(noted(x, 25)); }),
                       "bound_of: PipelineTimes::stages has a time of batch 2 whose 'begin' is "));
        CHECK(contains(text_of([&] { (void)timeline_of(noted(20, x)); }), "us; expected finite times"));
        PipelineTimes times = noted(20, 25);
        times.submits[1].waited = x;
        CHECK(contains(text_of([&] { (void)report_of(times); }),
                       "timeline_of: PipelineTimes::submits has a time of batch 1"));
        times = noted(20, 25);
        times.fills.push_back({.batch = 6, .end = x});
        CHECK(
            contains(text_of([&] { (void)bound_of(times); }), "PipelineTimes::fills has a time of batch 6"));
        for (const auto member :
             {&StageTime::reading, &StageTime::made, &StageTime::used, &StageTime::results}) {
            times = noted(20, 25);
            times.submits[2].*member = x;
            CHECK(contains(text_of([&] { (void)timeline_of(times); }),
                           "PipelineTimes::submits has a time of batch 2"));
        }
        for (const auto member : {&FillTime::claimed, &FillTime::asked, &FillTime::given}) {
            times = noted(20, 25);
            times.fills.push_back({.batch = 6});
            times.fills.back().*member = x;
            CHECK(contains(text_of([&] { (void)bound_of(times); }),
                           "PipelineTimes::fills has a time of batch 6"));
        }
        times = noted(20, 25);
        times.pace = x;
        CHECK(contains(text_of([&] { (void)bound_of(times); }), "bound_of: PipelineTimes::pace is "));
    }
    PipelineTimes times = noted(20, 25);
    times.stage_units.pop_back();
    CHECK(text_of([&] { (void)timeline_of(times); }) ==
          "timeline_of: PipelineTimes::stage_units has 1 entry, and there are 2 stages; expected one for "
          "each");
    times = noted(20, 25);
    times.batches_a_run = {1, 1, 1};
    CHECK(contains(text_of([&] { (void)timeline_of(times); }), "batches_a_run has 3 entries"));
    times = noted(20, 25);
    times.stages[0].stage = 3;
    CHECK(contains(text_of([&] { (void)timeline_of(times); }),
                   "has a time of stage 3, and there are 2 stages"));
    times = {};
    times.stages.push_back({});
    CHECK(contains(text_of([&] { (void)timeline_of(times); }),
                   "has a time of stage 0, and there are 0 stages"));
}

TEST_CASE("by hand: activities have stages that are named, and finite times") {
    DeviceActivities activities;
    activities.activities.push_back({.begin = 1, .end = 2, .stage = 5});
    Timeline timeline;
    timeline.set_clock_zero(1);
    timeline.add({timeline.add_row("a", "GPU 0"), 0, 0, 9});
    CHECK(text_of([&] { assign_to_stages(activities, timeline); }) ==
          "assign_to_stages: an activity is of stage 5, and DeviceActivities::stages has 0 names; expected "
          "one of them, or "
          "DeviceActivity::unknown");
    CHECK(report_of(activities).kernels.front().stage.empty());
    activities.activities[0].begin = none;
    CHECK(text_of([&] { (void)report_of(activities); }) ==
          "report_of: an activity lasts from nan us to 2 us; expected finite times");
    CHECK(contains(text_of([&] { add_rows(timeline, activities); }), "add_rows: an activity lasts from"));
    activities.activities[0].stage = DeviceActivity::unknown;
    CHECK(text_of([&] { assign_to_stages(activities, timeline); }) ==
          "assign_to_stages: an activity lasts from nan us to 2 us; expected finite times");
    activities.activities[0].begin = 1;
    for (const double tolerance : {none, infinite, -infinite, -1.0}) {
        CHECK(contains(text_of([&] { assign_to_stages(activities, timeline, tolerance); }),
                       "assign_to_stages: the tolerance is "));
    }
    CHECK(text_of([&] { assign_to_stages(activities, timeline, -0.5); }) ==
          "assign_to_stages: the tolerance is -0.5 us; expected a finite time of 0 or more");
    activities.activities.clear();
    activities.calls.push_back({.begin = 0, .end = infinite});
    CHECK(contains(text_of([&] { (void)report_of(activities); }),
                   "a call of the host's lasts from 0 us to inf us"));
}

} // namespace report_by_hand
