// Exactly how many batches a pipeline takes, and how many it knows to be through, for each number that are.
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <mutex>
#include <string>
#include <thread>

#include <sluice/sluice.hpp>

#include "support/apart_backend.hpp"
#include "support/doctest.hpp"
#include "support/hooked_backend.hpp"

namespace pipeline_in_flight_marks {

using namespace sluice;

namespace {

// A number that threads wait for, asleep: one that yields gives whatever else runs on the machine a slice of time each time.
class Count {
public:
    void operator=(int value) {
        const std::lock_guard lock(mutex_);
        value_ = value;
        changed_.notify_all();
    }
    void operator++() {
        const std::lock_guard lock(mutex_);
        ++value_;
        changed_.notify_all();
    }
    operator int() const {
        const std::lock_guard lock(mutex_);
        return value_;
    }
    void await_more_than(int value) const {
        std::unique_lock lock(mutex_);
        changed_.wait(lock, [&] { return value_ > value; });
    }

private:
    mutable std::mutex mutex_;
    mutable std::condition_variable changed_;
    int value_ = 0;
};

// Asks again and again until `holds()`: at first at once, since what ends a task's event comes right behind the task.
template <class Condition>
void poll_until(const Condition& holds) {
    using Clock = std::chrono::steady_clock;
    const Clock::time_point soon = Clock::now() + std::chrono::microseconds(20);
    while (!holds()) {
        if (Clock::now() > soon)
            std::this_thread::sleep_for(std::chrono::microseconds(20));
    }
}

// A stage whose work on batch `number` ends when more than `number` are allowed to, and one that does not wait.
struct Held {
    Count allowed, done;

    // Where its lanes overlap, by the batch's number; otherwise one after the other, which can be replayed.
    auto gated(bool by_number) {
        return [this, by_number](HostStreamRef stream, const int& batch) {
            stream.enqueue([this, of = by_number ? batch : -1] {
                allowed.await_more_than(of < 0 ? done : of);
                ++done;
            });
        };
    }
    static void quick(HostStreamRef stream, const int&) {
        stream.enqueue([] {});
    }
};

// From where nothing is under way: all counts are those of a mark behind every batch, or, of 64 and more, every fourth part of the bound, and
// where none was asked for (0), every half of 128.
template <class Pipeline>
void walk(Pipeline& pipeline, Held& held, std::size_t asked, bool by_number) {
    held.allowed = 0;
    held.done = 0;
    const std::size_t limit = asked == 0 ? 128 : asked;
    const std::size_t base = pipeline.submitted(), stride = asked == 0 ? 64 : limit < 64 ? 1 : limit / 4;
    const auto fill = [&] {
        while (pipeline.try_submit(by_number ? static_cast<int>(pipeline.submitted() - base) : 0)) {
        }
    };
    fill();
    CHECK(pipeline.submitted() == base + limit);
    CHECK(pipeline.completed() == base);
    for (std::size_t through = 1; through <= 2 * limit + 2 * stride; ++through) {
        CAPTURE(through);
        ++held.allowed;
        const std::size_t known = base + through / stride * stride;
        CHECK(pipeline.completed() <= known); // asked while the work may be under way
        held.done.await_more_than(held.allowed - 1);
        poll_until([&] { return pipeline.completed() >= known; });
        CHECK(pipeline.completed() == known);
        fill();
        CHECK(pipeline.completed() == known);
        CHECK(pipeline.submitted() == known + limit);
    }
    held.allowed = 1'000'000;
    pipeline.finish();
    CHECK(pipeline.completed() == pipeline.submitted());
}

// Counts questions that the device is asked.
struct Asked {
    static inline int times = 0;

    template <class>
    static void before(const char*) {}
    template <class, class Native>
    static void before(const char* function, Native) {
        times += std::string(function) == "event_done" || std::string(function) == "synchronize_event";
    }
};

} // namespace

TEST_CASE("in_flight: stages that keep up are not asked about before a batch is on its way") {
    using B = test::Hooked<Host, Asked>;
    for (const Schedule schedule : {Schedule::serial, Schedule::overlapped, Schedule::graphed}) {
        for (const bool each_stage : {false, true}) {
            CAPTURE(std::string(to_string(schedule)));
            CAPTURE(each_stage);
            Count done;
            int before = 0, late = 0;
            const auto work = [&](BasicStreamRef<B> stream, const int&) {
                late += Asked::times != before;
                stream.enqueue([&] { ++done; });
            };
            Pipeline pipeline{
                Stages{Stage{"work", work}},
                Slots{},
                {.schedule = schedule, .slots = 1, .steps_per_graph = 1, .graph_each_stage = each_stage}};
            for (int batch = 0; batch < 1000; ++batch) {
                before = Asked::times;
                pipeline.submit(0);
                done.await_more_than(batch);
            }
            CHECK(late == 0);
            CHECK(Asked::times > 0);
        }
    }
}

TEST_CASE("in_flight: what is known to be through, and what is taken, for each batch that is") {
    struct Way {
        Schedule schedule;
        int lanes;
    };
    for (const Way way : {Way{Schedule::serial, 1}, Way{Schedule::overlapped, 1},
                          Way{Schedule::overlapped, 3}, Way{Schedule::graphed, 1}}) {
        for (const int limit : {0, 1, 2, 3, 5, 63, 64, 65, 67, 68, 128}) {
            for (const bool gated_first : {true, false}) {
                CAPTURE(std::string(to_string(way.schedule)));
                CAPTURE(way.lanes);
                CAPTURE(limit);
                CAPTURE(gated_first);
                Held held;
                const bool by_number = way.lanes > 1;
                const PipelineOptions options{.schedule = way.schedule,
                                              .in_flight = limit,
                                              .graphs = {.on_refusal = nullptr},
                                              .steps_per_graph = 1};
                const auto check = [&](auto first, auto second, int of_first, int of_second) {
                    Pipeline pipeline{Stages{Stage{"first", first, StageOptions<Host>{.lanes = of_first}},
                                             Stage{"second", second, StageOptions<Host>{.lanes = of_second}}},
                                      Slots{}, options};
                    const auto most = static_cast<std::size_t>(limit);
                    walk(pipeline, held, most, by_number);
                    walk(pipeline, held, most, by_number);
                    pipeline.reset();
                    CHECK(pipeline.submitted() == 0);
                    walk(pipeline, held, most, by_number);
                };
                if (gated_first)
                    check(held.gated(by_number), &Held::quick, way.lanes, 1);
                else
                    check(&Held::quick, held.gated(by_number), 1, way.lanes);
            }
        }
    }
}

TEST_CASE("in_flight: the same of one stage with a slot, and of batches that are held for a longer graph") {
    for (const Schedule schedule : {Schedule::serial, Schedule::overlapped, Schedule::graphed}) {
        for (const int steps : {1, 4}) {
            CAPTURE(std::string(to_string(schedule)));
            CAPTURE(steps);
            if (steps > 1 && schedule != Schedule::graphed)
                continue;
            Held held;
            Stage only{"only", [&](HostStreamRef stream, const int& batch, int&) {
                           held.gated(false)(stream, batch);
                       }};
            Pipeline pipeline{Stages{only},
                              Slots{[](int) { return 0; }},
                              {.schedule = schedule,
                               .in_flight = 8,
                               .graphs = {.on_refusal = nullptr},
                               .steps_per_graph = steps}};
            if (steps == 1) {
                walk(pipeline, held, 8, false);
                continue;
            }
            for (int batch = 0; batch < 3; ++batch)
                CHECK(pipeline.try_submit(0));
            held.allowed = 3;
            CHECK(pipeline.completed() == 0); // Asked again, it would send them on their way.
            CHECK(held.done == 0);            // They are held.
            CHECK(pipeline.try_submit(0));
            held.done.await_more_than(2);
            CHECK(pipeline.completed() < 4);
            held.allowed = 4;
            poll_until([&] { return pipeline.completed() >= 4; });
            CHECK(held.done == 4);
        }
    }
}

TEST_CASE("in_flight: a batch is not through before a CPU stage on a thread of its own is done with it") {
    Count allowed;
    int seen = 0;
    Pipeline pipeline{Stages{Stage{"device", [](BasicStreamRef<test::Apart>, const int&,
                                                PinnedBuffer<int, test::Apart>&) {}},
                             Stage{"host",
                                   [&](const PinnedBuffer<int, test::Apart>&) {
                                       allowed.await_more_than(seen);
                                       ++seen;
                                   }}},
                      Slots{[](int) { return PinnedBuffer<int, test::Apart>(1); }},
                      PipelineOptions{.in_flight = 2}};
    for (int batch = 0; batch < 6; ++batch) {
        CAPTURE(batch);
        poll_until([&] { return pipeline.try_submit(batch).has_value(); });
        if (batch == 0)
            CHECK(pipeline.try_submit(batch));
        CHECK_FALSE(pipeline.try_submit(batch));
        CHECK(pipeline.completed() == static_cast<std::size_t>(batch));
        ++allowed;
        poll_until([&] { return pipeline.completed() > static_cast<std::size_t>(batch); });
    }
    ++allowed;
    pipeline.finish();
    CHECK(seen == 7);
}

} // namespace pipeline_in_flight_marks
