// Schedule::graphed: lanes of a stage work side by side.
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include <sluice/sluice.hpp>

#include "support/doctest.hpp"
#include "support/latch.hpp"

namespace pipeline_graphed_lanes {

using namespace sluice;

namespace {

/// Each thread waits until as many are there as meet, until that fails once.
class Meeting {
public:
    explicit Meeting(std::size_t size) : size_(size) {}
    void come() {
        std::unique_lock lock(mutex_);
        const std::size_t meeting = came_++ / size_;
        changed_.notify_all();
        if (!failed_)
            failed_ = !changed_.wait_for(lock, test::patience,
                                         [&] { return failed_ || came_ >= (meeting + 1) * size_; });
        changed_.notify_all();
    }
    bool failed() {
        const std::lock_guard lock(mutex_);
        return failed_;
    }

private:
    std::size_t size_;
    std::mutex mutex_;
    std::condition_variable changed_;
    std::size_t came_ = 0;
    bool failed_ = false;
};

} // namespace

TEST_CASE("graphed: the lanes of a stage work side by side, alone and beside other stages") {
    constexpr std::size_t lanes = 4;
    const std::vector<std::size_t> values{0, 1, 2, 3};
    {
        Meeting meeting(lanes);
        Stage only{"only",
                   [&](HostStreamRef stream, std::size_t) { stream.enqueue([&] { meeting.come(); }); },
                   StageOptions<Host>{.lanes = lanes}};
        Pipeline pipeline{Stages{only}, Slots{}, {.schedule = Schedule::graphed, .slots = 4}};
        for (std::size_t batch = 0; batch < 40; ++batch)
            pipeline.submit(values[batch % 4]);
        pipeline.finish();
        CHECK_FALSE(meeting.failed());
        CHECK(pipeline.graph_counters().replays > 20);
    }
    {
        Meeting meeting(lanes);
        Stage make{"make",
                   [&](HostStreamRef stream, std::size_t, int&) { stream.enqueue([&] { meeting.come(); }); },
                   StageOptions<Host>{.lanes = lanes}};
        Stage use{"use", [&](HostStreamRef stream, const int&) { stream.enqueue([] {}); }};
        TwoStreamPipeline pipeline{
            make, use, [](int) { return 0; }, {.schedule = Schedule::graphed, .slots = 4}};
        for (std::size_t batch = 0; batch < 40; ++batch)
            pipeline.submit(values[batch % 4]);
        pipeline.finish();
        CHECK_FALSE(meeting.failed());
        CHECK(pipeline.graph_counters().replays > 40);
    }
}

TEST_CASE("lanes: a slot's number tells the lane, of which a workspace is used by one batch at a time") {
    constexpr int lanes = 3;
    struct Numbered {
        int lane;
    };
    struct Workspaces {
        std::atomic<bool> busy[lanes];
        std::atomic<int> uses[lanes];
        std::atomic<bool> shared{false};
        void use(int lane) {
            shared = shared || busy[lane].exchange(true);
            ++uses[lane];
            std::this_thread::sleep_for(std::chrono::microseconds(200));
            busy[lane] = false;
        }
    };
    for (const Schedule schedule : {Schedule::serial, Schedule::overlapped, Schedule::graphed}) {
        for (const int steps : {0, 6}) {
            for (const bool on_cpu : {false, true}) {
                CAPTURE(std::string(to_string(schedule)));
                CAPTURE(steps);
                CAPTURE(on_cpu);
                Workspaces of_make, of_use;
                Stage make{"make",
                           [&](HostStreamRef stream, std::size_t, Numbered& out) {
                               stream.enqueue([&, lane = out.lane] { of_make.use(lane); });
                           },
                           StageOptions<Host>{.lanes = lanes}};
                const auto check = [&](auto use) {
                    Pipeline pipeline{Stages{make, use},
                                      Slots{[](int slot) { return Numbered{slot % lanes}; }},
                                      {.schedule = schedule, .slots = 2 * lanes, .steps_per_graph = steps}};
                    for (std::size_t batch = 0; batch < 60; ++batch)
                        pipeline.submit(batch % 6);
                    pipeline.finish();
                    for (const Workspaces* all : {&of_make, &of_use}) {
                        CHECK_FALSE(all->shared);
                        for (const auto& uses : all->uses)
                            CHECK(uses == 60 / lanes);
                    }
                };
                if (on_cpu)
                    check(Stage{"use", [&](const Numbered& in) { of_use.use(in.lane); },
                                StageOptions<Host>{.lanes = lanes}});
                else
                    check(Stage{"use",
                                [&](HostStreamRef stream, const Numbered& in) {
                                    stream.enqueue([&, lane = in.lane] { of_use.use(lane); });
                                },
                                StageOptions<Host>{.lanes = lanes}});
            }
        }
    }
}

} // namespace pipeline_graphed_lanes
