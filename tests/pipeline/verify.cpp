// Contract 3: verify_schedules finds what differs, and says so.
#include <array>
#include <cmath>
#include <limits>
#include <span>
#include <vector>

#include <sluice/sluice.hpp>

#include "pipeline/thrown.hpp"
#include "support/backend.hpp"
#include "support/doctest.hpp"
#include "support/gate.hpp"
#include "support/stream_ops.hpp"

namespace pipeline_verify {

using namespace sluice;
using namespace sluice::test;

namespace {

using B = TestBackend;
using Ref = BasicStreamRef<B>;
constexpr std::size_t words = 32;

struct Nothing {};

// Two stages that share memory beside their slots: the first counts batches in it, the second notes the
// count. Under Schedule::serial it notes 1, 2, 3 …; when the first stage runs ahead, it notes more.
std::vector<Word> run_with_shared_memory(Schedule schedule) {
    constexpr std::size_t batches = 6;
    const BasicStream<B> stream;
    DeviceBuffer<Word, B> shared(words);
    DeviceBuffer<Word, B> noted(words * batches);
    fill_bytes(stream, shared, 0);
    fill_bytes(stream, noted, 0);
    stream.sync();

    std::size_t batch = 0;
    Stage count{"count", [&](Ref on, int, Nothing&) {
                    ops::add_racing(on.get(), shared.data(), shared.data(), 1, words);
                }};
    Stage note{"note", [&](Ref on, Nothing&) {
                   ops::spin(on.get(), 3000);
                   ops::add_racing(on.get(), noted.data() + words * batch++, shared.data(), 0, words);
               }};
    TwoStreamPipeline pipeline{
        count, note, [](int) { return Nothing{}; }, {.schedule = schedule, .slots = 4}};
    for (std::size_t i = 0; i < batches; ++i)
        pipeline.submit(0);
    pipeline.finish();
    std::vector<Word> result(noted.size());
    copy_and_wait(stream, result, noted);
    return result;
}

} // namespace

TEST_CASE("Contract 3: verify_schedules finds memory that stages share without a slot") {
    if (!streams_overlap<B>())
        return;
    const ScheduleVerdict verdict = verify_schedules(run_with_shared_memory);
    CHECK_FALSE(verdict);
    CHECK(
        contains_all(verdict.difference, {"schedule overlapped differs from serial", "result ", " of 192"}));
}

TEST_CASE("Contract 3: verify_schedules names the first result that has other bits") {
    const auto run = [](Schedule schedule) {
        return schedule == Schedule::serial ? std::vector<float>{1, 2, 3, 4} : std::vector<float>{1, 2, 7, 8};
    };
    CHECK(verify_schedules(run).difference == "schedule overlapped differs from serial: result 2 of 4 is the "
                                              "first that has other bits");
}

TEST_CASE("Contract 3: verify_schedules compares bits, not values") {
    const auto zeros = [](Schedule schedule) {
        return std::vector<double>{schedule == Schedule::serial ? 0.0 : -0.0};
    };
    CHECK_FALSE(verify_schedules(zeros));
    const auto nans = [](Schedule) { return std::vector<double>{std::numeric_limits<double>::quiet_NaN()}; };
    CHECK(verify_schedules(nans));
}

TEST_CASE("Contract 3: verify_schedules takes any contiguous range, an array too") {
    const auto zero = [](Schedule schedule) {
        return std::array{0.0, schedule == Schedule::serial ? 0.0 : -0.0};
    };
    CHECK(contains(verify_schedules(zero).difference, "result 1 of 2 is the first that has other bits"));
    CHECK(verify_schedules([](Schedule) { return std::string("same"); }).identical);
}

TEST_CASE("Contract 3: verify_schedules counts the results") {
    const auto run = [](Schedule schedule) { return std::vector<int>(schedule == Schedule::serial ? 3 : 2); };
    CHECK(verify_schedules(run).difference ==
          "schedule overlapped differs from serial: 2 results instead of 3");
}

TEST_CASE("Contract 3: verify_schedules compares all schedules unless it is told which") {
    const auto graphed_differs = [](Schedule schedule) {
        return std::vector<int>{schedule == Schedule::graphed ? 1 : 0};
    };
    CHECK(verify_schedules(graphed_differs).difference ==
          "schedule graphed differs from serial: result 0 of 1 is the first that has other bits");
}

TEST_CASE("Contract 3: verify_schedules repeats each schedule, the first one too") {
    std::vector<Schedule> runs;
    const auto run = [&](Schedule schedule) {
        runs.push_back(schedule);
        return std::vector<std::size_t>{7};
    };
    CHECK(verify_schedules(run, {Schedule::serial, Schedule::overlapped}, 2));
    CHECK(runs ==
          std::vector{Schedule::serial, Schedule::serial, Schedule::overlapped, Schedule::overlapped});

    int calls = 0;
    const auto third_differs = [&](Schedule) { return std::vector<int>{++calls == 3 ? 1 : 0}; };
    CHECK(verify_schedules(third_differs, {Schedule::serial}, 3).difference ==
          "schedule serial differs from serial: result 0 of 1 is the first that has other bits");
    CHECK(calls == 3);
}

TEST_CASE("Contract 3: verify_schedules compares what a run left in memory of its own with the next run's") {
    std::vector<int> kept{0, 0};
    const auto view_of_kept = [&](Schedule) {
        ++kept[1];
        return std::span<const int>(kept);
    };
    CHECK(verify_schedules(view_of_kept).difference ==
          "schedule overlapped differs from serial: result 1 of 2 is the first that has other bits");
    bool kept_flag = false;
    const auto view_of_flag = [&](Schedule) {
        kept_flag = !kept_flag;
        return std::span<const bool>(&kept_flag, 1);
    };
    CHECK_FALSE(verify_schedules(view_of_flag));
}

TEST_CASE("Contract 3: verify_schedules runs a schedule as often as it is named") {
    int calls = 0;
    const auto counts = [&](Schedule) { return std::vector<int>{calls++}; };
    CHECK_FALSE(verify_schedules(counts, {Schedule::serial, Schedule::serial}));
    CHECK(calls == 2);
}

TEST_CASE("Contract 3: verify_schedules speaks of poison only where there was some") {
    int calls = 0;
    const auto counts_down = [&](Schedule) { return std::vector<int>{1 - 2 * calls++}; };
    CHECK(verify_schedules(counts_down).difference ==
          "schedule overlapped differs from serial: result 0 of 1 is the first that has other bits");
    calls = 0;
    CHECK(verify_schedules(counts_down, StressRuns{.seeds = 1}).difference ==
          "schedule serial under stress with seed 1 differs from serial: result 0 of 1 is the first that has "
          "other bits");
}

TEST_CASE("Contract 3: verify_schedules passes on what the run throws") {
    const auto run = [](Schedule) -> std::vector<int> { throw std::logic_error("no data"); };
    CHECK_THROWS_WITH_AS(verify_schedules(run), "no data", std::logic_error);
}

TEST_CASE("Contract 3: verify_schedules refuses what would compare nothing") {
    const auto run = [](Schedule) { return std::vector<int>{1}; };
    CHECK(text_of([&] { (void)verify_schedules(run, {}); }) ==
          "verify_schedules: there is no schedule to run; expected one at least");
    CHECK(text_of([&] { (void)verify_schedules(run, {Schedule::serial}, 0); }) ==
          "verify_schedules: the repeats must be 1 or more, got 0");
    CHECK(text_of([&] { (void)verify_schedules(run, {Schedule::serial}); }) ==
          "verify_schedules: one run of one schedule has nothing to be compared with; expected another "
          "schedule, or 2 repeats or more");
    CHECK(contains(text_of([&] {
                       (void)verify_schedules(run, {Schedule::serial, static_cast<Schedule>(9)});
                   }),
                   "verify_schedules: the schedule is 9, which has no name"));
    CHECK(contains(text_of([&] { (void)verify_schedules(run, StressRuns{}, {}); }), "there is no schedule"));

    const std::string no_results =
        "verify_schedules: there are no results, expected at least one to be compared";
    CHECK(text_of([&] { (void)verify_schedules([](Schedule) { return std::vector<float>{}; }); }) ==
          no_results);
    CHECK(text_of([&] { (void)verify_schedules([](Schedule) { return std::array<int, 0>{}; }); }) ==
          no_results);
    const auto later = [](Schedule schedule) {
        return std::vector<int>(schedule == Schedule::graphed ? 2 : 0);
    };
    CHECK(verify_schedules(later).difference ==
          "schedule graphed differs from serial: 2 results instead of 0");
}

TEST_CASE("Contract 3: schedules have names") {
    CHECK(std::string(to_string(Schedule::serial)) == "serial");
    CHECK(std::string(to_string(Schedule::overlapped)) == "overlapped");
    CHECK(std::string(to_string(Schedule::graphed)) == "graphed");
}

} // namespace pipeline_verify
