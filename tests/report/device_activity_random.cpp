// Activities of devices in numbers: random ones against a count by ticks.
#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <random>
#include <set>

#include <sluice/report/device_activity.hpp>

#include "made_activities.hpp"
#include "support/doctest.hpp"

namespace report_device_activity_random {

using namespace sluice;
using namespace sluice::test;

namespace {

/// Random activities, calls and spans, and the ticks that they cover.
struct Round {
    static constexpr int ticks = 60;
    std::array<std::set<int>, 6> held; // the ticks of each cause
    std::array<std::set<int>, 3> ran;  // the ticks in which each stage ran something
    std::array<int, 3> counts{};
    Timeline timeline{"random"};
    DeviceActivities activities;
    int from, to;

    explicit Round(std::mt19937& random) {
        const auto draw = [&](int below) {
            return static_cast<int>(random() % static_cast<unsigned>(below));
        };
        timeline.set_clock_zero(zero);
        timeline.add_row("source", "CPU");
        from = draw(20);
        to = from + 1 + draw(30);
        timeline.add({0, 0, double(from), double(from), SpanKind::source}); // the time that is looked at
        timeline.add({0, 0, double(to), double(to), SpanKind::source});
        activities.names = {"n"};
        activities.stages = {"a", "b", "c"};
        for (int i = draw(14); i > 0; --i) {
            const int begin = draw(ticks);
            const int end = begin + draw(12);
            const int cause = draw(6);
            mark(held[static_cast<std::size_t>(cause)], begin, end);
            if (cause == 4) {
                activities.calls.push_back({zero + begin, zero + end, 0, 0});
            } else if (cause == 5) {
                // A timeline's span must lie in its time to keep it as it was drawn.
                const int low = std::clamp(begin, from, to);
                timeline.add({0, 0, double(low), double(std::clamp(end, low, to)),
                              draw(2) == 0 ? SpanKind::source : SpanKind::wait});
            } else {
                constexpr ActivityKind kinds[] = {ActivityKind::kernel, ActivityKind::copy, ActivityKind::set,
                                                  ActivityKind::communication};
                DeviceActivity activity = made(kinds[cause], begin, end);
                if (draw(4) > 0) {
                    activity.stage = static_cast<std::uint32_t>(draw(3));
                    mark(ran[activity.stage], begin, end);
                    counts[activity.stage] += end >= from && begin <= to ? 1 : 0;
                }
                activities.activities.push_back(activity);
            }
        }
    }
    void mark(std::set<int>& set, int begin, int end) const {
        for (int tick = std::max(begin, from); tick < std::min(end, to); ++tick)
            set.insert(tick);
    }
};

/// Ticks by cause, and by what the device and the stages did.
struct Ticks {
    std::array<int, 7> causes{};
    int both = 0, compute_only = 0, copy_only = 0, together = 0;

    explicit Ticks(const Round& of) {
        for (int tick = of.from; tick < of.to; ++tick) {
            const auto& held = of.held;
            const auto& ran = of.ran;
            std::size_t cause = 0;
            while (cause < 6 && !held[cause].contains(tick))
                ++cause;
            ++causes[cause];
            const bool computes = held[0].contains(tick) || held[3].contains(tick);
            const bool copies = held[1].contains(tick) || held[2].contains(tick);
            both += computes && copies ? 1 : 0;
            compute_only += computes && !copies ? 1 : 0;
            copy_only += copies && !computes ? 1 : 0;
            together += ran[0].contains(tick) + ran[1].contains(tick) + ran[2].contains(tick) >= 2 ? 1 : 0;
        }
    }
};

} // namespace

TEST_CASE("random activities: causes, shares and stages are those of a count tick by tick") {
    std::mt19937 random(11);
    for (int number = 0; number < 200; ++number) {
        const Round round(random);
        const Ticks ticks(round);
        const ActivityReport report = report_of(round.activities, {.timeline = &round.timeline});
        const double wall = round.to - round.from;
        CAPTURE(number);
        REQUIRE(report.wall == doctest::Approx(wall));
        CHECK(report.causes.kernel == doctest::Approx(ticks.causes[0]));
        CHECK(report.causes.copy == doctest::Approx(ticks.causes[1]));
        CHECK(report.causes.set == doctest::Approx(ticks.causes[2]));
        CHECK(report.causes.communication == doctest::Approx(ticks.causes[3]));
        CHECK(report.causes.runtime == doctest::Approx(ticks.causes[4]));
        CHECK(report.causes.source == doctest::Approx(ticks.causes[5]));
        CHECK(report.causes.other == doctest::Approx(ticks.causes[6]));
        CHECK(report.device.both * wall == doctest::Approx(ticks.both));
        CHECK(report.device.compute_only * wall == doctest::Approx(ticks.compute_only));
        CHECK(report.device.copy_only * wall == doctest::Approx(ticks.copy_only));
        CHECK(report.device.neither * wall ==
              doctest::Approx(wall - ticks.both - ticks.compute_only - ticks.copy_only));
        CHECK(report.overlap * wall == doctest::Approx(ticks.together));
        for (const StageActivity& stage : report.stages) {
            const auto i = static_cast<std::size_t>(stage.name[0] - 'a');
            CHECK(stage.busy == doctest::Approx(double(round.ran[i].size())));
            CHECK(stage.activities == static_cast<std::size_t>(round.counts[i]));
        }
    }
}

} // namespace report_device_activity_random
