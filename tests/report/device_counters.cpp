// Means of counters by stage: made-up samples, and random ones against a count by ticks.
#include <algorithm>
#include <random>
#include <sstream>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include <sluice/report/device_counters.hpp>

#include "support/error_text.hpp"

namespace report_device_counters {

using namespace sluice;
using namespace sluice::test;

namespace {

DeviceActivity ran(std::uint32_t stage, double begin, double end) {
    DeviceActivity activity;
    activity.stage = stage;
    activity.begin = begin;
    activity.end = end;
    return activity;
}

} // namespace

TEST_CASE("counters are averaged by time, and by stage where it ran alone") {
    DeviceActivities activities;
    activities.stages = {"encode", "train"};
    activities.activities = {ran(0, 0, 20), ran(1, 15, 35), ran(1, 30, 40), ran(0, 50, 60)};
    activities.activities[3].device = 1; // not the one that was sampled
    DeviceCounters counters;
    counters.samples = {
        {0, 10, 0.9, 0.8, 0.1}, {10, 20, 0.7, 0.6, 0.3}, {20, 40, 0.5, 0.0, 0.8}, {40, 80, 0, 0, 0}};
    DeviceCounterReport report = counters_of(counters, activities);
    CHECK(report.all.time == 80);
    CHECK(report.all.sm_active == doctest::Approx((9 + 7 + 10) / 80.0));
    CHECK(report.all.memory == doctest::Approx((1 + 3 + 16) / 80.0));
    REQUIRE(report.stages.size() == 2);
    CHECK(report.stages[0].stage == "encode");
    CHECK(report.stages[0].time == 15);
    CHECK(report.stages[0].tensor_cores == doctest::Approx((8 + 3) / 15.0));
    CHECK(report.stages[1].stage == "train");
    CHECK(report.stages[1].time == 20);
    CHECK(report.stages[1].memory == doctest::Approx(0.8));

    report = counters_of(counters, activities, 5, 25);
    CHECK(report.all.time == 20);
    CHECK(report.stages[0].time == 10);
    CHECK(report.stages[1].time == 5);
}

TEST_CASE("without activities there are means over all of the time, and without samples none") {
    DeviceCounters counters;
    counters.samples = {{0, 1, 0.5, 0.25, 0.125}};
    const DeviceCounterReport report = counters_of(counters, {});
    CHECK(report.all.tensor_cores == 0.25);
    CHECK(report.stages.empty());
    CHECK(counters_of({}, {}).all.time == 0);
    CHECK(counters_of({}, {}).all.sm_active == 0);
}

TEST_CASE("random samples: means are those of a count tick by tick") {
    std::mt19937 random(5);
    const auto draw = [&](int below) { return static_cast<int>(random() % static_cast<unsigned>(below)); };
    for (int round = 0; round < 200; ++round) {
        constexpr int ticks = 40;
        DeviceActivities activities;
        activities.stages = {"0", "1", "2"};
        int running[4][ticks] = {}; // of each stage, and of none that is known
        for (int i = draw(12); i > 0; --i) {
            const int begin = draw(ticks);
            const int end = begin + draw(ticks - begin + 1);
            const auto stage = static_cast<std::uint32_t>(draw(4));
            activities.activities.push_back(ran(stage < 3 ? stage : DeviceActivity::unknown, begin, end));
            for (int tick = begin; tick < end; ++tick)
                ++running[stage][tick];
        }
        DeviceCounters counters;
        double values[ticks] = {};
        double sampled = 0;
        double sum = 0;
        for (int begin = draw(5); begin < ticks;) {
            const int end = std::min(begin + 1 + draw(6), ticks);
            const double value = draw(100) / 100.0;
            counters.samples.push_back({double(begin), double(end), value, 0, 1 - value});
            for (int tick = begin; tick < end; ++tick)
                values[tick] = value;
            sampled += end - begin;
            sum += value * (end - begin);
            begin = end;
        }
        const int first = static_cast<int>(counters.samples.empty() ? ticks : counters.samples[0].begin);
        const DeviceCounterReport report = counters_of(counters, activities);
        CAPTURE(round);
        CHECK(report.all.time == doctest::Approx(sampled));
        CHECK(report.all.sm_active * sampled == doctest::Approx(sum));
        std::size_t seen = 0;
        for (int stage = 0; stage < 3; ++stage) {
            double time = 0;
            double active = 0;
            for (int tick = first; tick < ticks; ++tick) {
                int stages = 0;
                for (const auto& of : running)
                    stages += of[tick] > 0 ? 1 : 0;
                if (stages == 1 && running[stage][tick] > 0) {
                    time += 1;
                    active += values[tick];
                }
            }
            if (time == 0)
                continue;
            REQUIRE(seen < report.stages.size());
            const CounterMeans& means = report.stages[seen++];
            CHECK(means.stage == std::to_string(stage));
            CHECK(means.time == doctest::Approx(time));
            CHECK(means.sm_active * time == doctest::Approx(active));
            CHECK(means.memory == doctest::Approx(1 - means.sm_active));
        }
        CHECK(seen == report.stages.size());
    }
}

TEST_CASE("the table of counters is at most 80 columns wide and says what was lost") {
    DeviceActivities activities;
    activities.stages = {"a stage whose name is rather long"};
    activities.activities = {ran(0, 0, 1e9)};
    DeviceCounters counters;
    counters.samples = {{0, 1e9, 1, 1, 1}};
    counters.overflowed = true;
    const std::string table = to_table(counters_of(counters, activities));
    std::istringstream lines(table);
    for (std::string line; std::getline(lines, line);)
        CHECK(detail::timeline_text::width_of(line) <= 80);
    CHECK(contains(table, "Tensor Cores %"));
    CHECK(contains(table, "ran alone"));
    CHECK(contains(table, "Samples were lost"));
    CHECK(contains(table, "100.0"));
}

} // namespace report_device_counters
