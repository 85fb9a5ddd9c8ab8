// Each option of a pipeline: what is out of range is refused in one sentence, under every schedule, and what has no effect has none.
#include <algorithm>
#include <atomic>
#include <climits>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include <sluice/sluice.hpp>

#include "support/backend.hpp"
#include "support/doctest.hpp"
#include "support/error_text.hpp"
#include "support/latch.hpp"

namespace pipeline_options {

using namespace sluice;
using namespace sluice::test;

namespace {

using B = TestBackend;
using Ref = BasicStreamRef<B>;
constexpr Schedule schedules[] = {Schedule::serial, Schedule::overlapped, Schedule::graphed,
                                  Schedule::automatic};

struct Slot {
    DeviceBuffer<std::uint8_t, B> bytes{4};
};
struct Later {};
const auto make_slot = [](int) { return Slot{}; };
const auto write = [](Ref stream, const int&, Slot& out) { fill_bytes(stream, out.bytes, 1); };
const auto read = [](Ref stream, Slot& in) { fill_bytes(stream, in.bytes, 2); };

// What making such a pipeline says; empty where it is made, and runs.
std::string refusal(const PipelineOptions& options, const StageOptions<B>& of_stage = {}) {
    return text_of([&] {
        Pipeline pipeline{Stages{Stage{"write", write, of_stage}, Stage{"read", read}}, Slots{make_slot},
                          options};
        for (int batch = 0; batch < 9; ++batch)
            pipeline.submit(batch);
        pipeline.finish();
    });
}

} // namespace

TEST_CASE("options: a schedule that has no name is refused") {
    CHECK(refusal({.schedule = static_cast<Schedule>(77)}) ==
          "PipelineOptions::schedule is 77, which has no name; expected serial, overlapped, graphed or "
          "automatic");
    CHECK(contains(refusal({.schedule = static_cast<Schedule>(-1)}), "PipelineOptions::schedule is -1,"));
    CHECK(contains(refusal({.schedule = static_cast<Schedule>(4)}), "PipelineOptions::schedule is 4,"));
}

TEST_CASE("options: what is out of range is refused under every schedule") {
    for (const Schedule schedule : schedules) {
        CAPTURE(std::string(to_string(schedule)));
        const auto said = [&](auto set) {
            PipelineOptions options{.schedule = schedule};
            options.graphs.on_refusal = nullptr;
            set(options);
            return refusal(options);
        };
        for (const int wrong : {0, -1, INT_MIN, (1 << 20) + 1, INT_MAX}) {
            CHECK(said([&](auto& o) { o.slots = wrong; }) ==
                  "PipelineOptions::slots is " + std::to_string(wrong) + "; expected 1 to 1048576");
            if (wrong != 0) {
                CHECK(said([&](auto& o) { o.timed_batches = wrong; }) ==
                      "PipelineOptions::timed_batches is " + std::to_string(wrong) +
                          "; expected 0 to 1048576");
            }
        }
        CHECK(said([](auto& o) { o.in_flight = -1; }) ==
              "PipelineOptions::in_flight is -1; expected 0 (as many as is good) to 2147483647");
        CHECK(said([](auto& o) { o.steps_per_graph = -1; }) ==
              "PipelineOptions::steps_per_graph is -1; expected 0 (as many as is good) to 2147483647");
        CHECK(said([](auto& o) { o.graphs.capacity = 0; }) ==
              "a GraphCapture needs a capacity of 1 to 1048576 executables, got 0");
        CHECK(
            contains(said([](auto& o) { o.graphs.capacity = SIZE_MAX; }), "1 to 1048576 executables, got "));
        CHECK(said([](auto& o) { o.graphs.warmup = -1; }) ==
              "a GraphCapture needs a warm-up of at least 0 runs, got -1");
        CHECK(said([](auto& o) { o.graphs.comparisons = -1; }) ==
              "a GraphCapture needs 0 comparisons or more, got -1");
        CHECK(said([](auto& o) { o.graphs.capture.mode = static_cast<CaptureMode>(77); }) ==
              "CaptureOptions::mode is 77, which has no name; expected this_thread, global or relaxed");
        // As many as they say, or as there may be.
        CHECK(said([](auto& o) { o.in_flight = INT_MAX; }).empty());
        CHECK(said([](auto& o) { o.in_flight = 1; }).empty());
        CHECK(said([](auto& o) { o.steps_per_graph = INT_MAX; }).empty());
        CHECK(said([](auto& o) { o.graphs.warmup = INT_MAX; }).empty());
        CHECK(said([](auto& o) { o.graphs.give_up_after = SIZE_MAX; }).empty());
    }
}

TEST_CASE("options: those of a stage that are out of range are refused under every schedule") {
    for (const Schedule schedule : schedules) {
        CAPTURE(std::string(to_string(schedule)));
        PipelineOptions options{.schedule = schedule};
        options.graphs.on_refusal = nullptr;
        const std::string devices =
            "; " + detail::there_are(B::device_count(), "device") + ", counted from 0";
        for (const int device : {-2, INT_MIN, INT_MAX}) {
            CHECK(refusal(options, {.device = device}) ==
                  "stage 'write': there is no device " + std::to_string(device) + devices);
        }
        for (const int lanes : {0, -1, INT_MIN, (1 << 16) + 1, INT_MAX}) {
            CHECK(refusal(options, {.lanes = lanes}) ==
                  "stage 'write': StageOptions::lanes is " + std::to_string(lanes) + "; expected 1 to 65536");
        }
        for (const int every : {0, -1, INT_MIN, (1 << 24) + 1, INT_MAX}) {
            CHECK(refusal(options, {.every = every}) == "stage 'write': StageOptions::every is " +
                                                            std::to_string(every) +
                                                            "; expected 1 to 16777216");
        }
        options.slots = 1000;
        CHECK(refusal(options, {.every = 1 << 24}) ==
              "a pipeline of 1000 slots: with StageOptions::every, lanes that are told, and "
              "PipelineOptions::slots, work repeats after more than 67108864 batches; expected fewer of one");
        options.slots = 2;
        CHECK(contains(refusal(options, {.multiprocessors = -1}), "StageOptions::multiprocessors is -1;"));
        for (const int priority : {INT_MIN, INT_MAX})
            CHECK(refusal(options, {.priority = priority}).empty());
    }
}

TEST_CASE("options: rates that come together too seldom are refused") {
    const auto made = [](int first, int second) {
        return text_of([&] {
            Pipeline pipeline{Stages{Stage{"first", write, {.every = first}},
                                     Stage{"second", [](Ref, const Slot&, Later&) {}, {.every = second}},
                                     Stage{"third", [](Ref, const Later&) {}}},
                              Slots{make_slot, [](int) { return Later{}; }}};
        });
    };
    CHECK(made(3, 5).empty());
    CHECK(made(5000, 5000) ==
          "stage 'second': with StageOptions::every, of it and the stages before, work repeats after "
          "25000000 batches; expected 16777216 at most");
    CHECK(contains(made(1 << 24, 1 << 24), "stage 'second': with StageOptions::every"));
    // Beside each other: each alone would do.
    CHECK(contains(
        text_of([] {
            Pipeline pipeline{Stages{Stage{"first", write, {.every = 4099}},
                                     Stage{"second", [](Ref, const int&, Later&) {}, {.every = 4111}},
                                     Stage{"third", [](Ref, const Slot&, const Later&) {}}},
                              Slots{make_slot, [](int) { return Later{}; }}};
        }),
        "stage 'second': with StageOptions::every, of it and the stages before, work repeats after "
        "16850989 batches"));
}

TEST_CASE("options: what is said of graphs has no effect under schedules that make none") {
    for (const Schedule schedule : {Schedule::serial, Schedule::overlapped}) {
        for (const bool each : {false, true}) {
            CAPTURE(std::string(to_string(schedule)));
            CAPTURE(each);
            int calls = 0;
            Pipeline pipeline{Stages{Stage{"write", write}, Stage{"read",
                                                                  [&](Ref stream, Slot& in) {
                                                                      read(stream, in);
                                                                      ++calls;
                                                                  }}},
                              Slots{make_slot},
                              {.schedule = schedule,
                               .graphs = {.warmup = 0},
                               .steps_per_graph = 5,
                               .graph_each_stage = each}};
            for (int batch = 0; batch < 7; ++batch) {
                pipeline.submit(batch);
                CHECK(calls == batch + 1); // Nothing is held back.
            }
            pipeline.finish();
            CHECK(pipeline.graph_counters().captures == 0);
            CHECK(pipeline.graph_counters().eager.total() == 0);
        }
    }
}

TEST_CASE("options: the steps of a graph have no effect where each stage has graphs of its own") {
    int calls = 0;
    Pipeline pipeline{Stages{Stage{"write", write}, Stage{"read",
                                                          [&](Ref stream, Slot& in) {
                                                              read(stream, in);
                                                              ++calls;
                                                          }}},
                      Slots{make_slot},
                      {.schedule = Schedule::graphed,
                       .graphs = {.warmup = 1000},
                       .steps_per_graph = 5,
                       .graph_each_stage = true}};
    for (int batch = 0; batch < 7; ++batch) {
        pipeline.submit(batch);
        CHECK(calls == batch + 1);
    }
    pipeline.finish();
}

TEST_CASE("options: no more lanes work at the same time than there are slots, with an output or without") {
    constexpr int slots = 3;
    std::atomic<int> at_work{0}, most{0}, ran{0}, arrived{0}, met{0};
    const auto work = [&] {
        const int now = ++at_work;
        int before = most.load();
        while (before < now && !most.compare_exchange_weak(before, now)) {
        }
        // The first ones wait for each other: so many lanes do work at the same time.
        if (++arrived <= slots && eventually([&] { return arrived.load() >= slots; }))
            ++met;
        ++ran;
        --at_work;
    };
    const auto check = [&](auto& pipeline) {
        at_work = most = ran = arrived = met = 0;
        for (int batch = 0; batch < 200; ++batch)
            pipeline.submit(batch);
        pipeline.finish();
        CHECK(ran.load() == 200);
        CHECK(most.load() == slots);
        CHECK(met.load() == slots);
    };
    const StageOptions<Host> lanes{.lanes = 7};
    Pipeline makes{Stages{Stage{"makes", [&](const int&, Later&) { work(); }, lanes},
                          Stage{"read", [](const Later&) {}}},
                   Slots{[](int) { return Later{}; }},
                   {.slots = slots}};
    check(makes);
    Pipeline only{Stages{Stage{"only", [&](const int&) { work(); }, lanes}}, PipelineOptions{.slots = slots}};
    check(only);
}

} // namespace pipeline_options
