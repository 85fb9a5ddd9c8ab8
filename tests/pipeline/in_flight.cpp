// How many batches a pipeline has under way, and what is known of them.
#include <atomic>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "pipeline/capturable.hpp"
#include "pipeline/dag.hpp"
#include "support/delayed_backend.hpp"
#include "support/error_text.hpp"
#include "support/gate.hpp"
#include "support/latch.hpp"
#include "support/waits.hpp"

namespace pipeline_in_flight {

using namespace sluice;
using namespace sluice::test;

namespace {

using B = TestBackend;
using Ref = BasicStreamRef<B>;

constexpr Schedule schedules[] = {Schedule::serial, Schedule::overlapped, Schedule::graphed,
                                  Schedule::automatic};

PinnedBuffer<Word, B> make_word(int) { return PinnedBuffer<Word, B>(1); }

// Two stages, of which the second waits at a gate and then counts.
struct Counted {
    PinnedBuffer<Word, B> done{1};
    Gate<B> gate;
    bool held = true;

    auto pipeline(PipelineOptions options) {
        done[0] = 0;
        Stage first{"first", [this](Ref stream, const int&, PinnedBuffer<Word, B>& out) {
                        ops::add_racing(stream.get(), out.data(), done.data(), 0, 1);
                    }};
        Stage last{"last", [this](Ref stream, const PinnedBuffer<Word, B>&) {
                       if (held)
                           gate.hold(stream);
                       ops::add_racing(stream.get(), done.data(), done.data(), 1, 1);
                   }};
        return AnyPipeline<int, B>(Stages{first, last}, Slots{make_word}, options);
    }
    std::size_t count() { return std::atomic_ref<Word>(done[0]).load(); }
};

template <class Check>
void for_each_way(Check&& check) {
    for (const Schedule schedule : schedules) {
        for (const int steps : {0, 4}) {
            if (steps > 0 && schedule != Schedule::graphed)
                continue;
            for (const int limit : {1, 2, 3, 7}) {
                CAPTURE(std::string(to_string(schedule)));
                CAPTURE(steps);
                CAPTURE(limit);
                check(PipelineOptions{.schedule = schedule,
                                      .in_flight = limit,
                                      .graphs = {.on_refusal = nullptr},
                                      .steps_per_graph = steps});
            }
        }
    }
}

} // namespace

TEST_CASE("in_flight: submit waits for room, try_submit does not, and each batch is counted") {
    if (!streams_overlap<B>())
        return;
    for_each_way([](const PipelineOptions& options) {
        Counted counted;
        auto pipeline = counted.pipeline(options);
        const auto limit = static_cast<std::size_t>(options.in_flight);
        for (std::size_t batch = 0; batch < limit; ++batch)
            CHECK(pipeline.try_submit(1));
        CHECK_FALSE(pipeline.try_submit(1));
        CHECK_FALSE(pipeline.try_submit(1));
        CHECK(pipeline.submitted() == limit);
        CHECK(pipeline.completed() == 0);
        CHECK(pipeline.dropped() == 2);
        CHECK(returns_after_opening(counted.gate, [&] { pipeline.wait_for_room(); }));
        CHECK(pipeline.completed() >= 1);
        CHECK(pipeline.submitted() == limit);
        CHECK(pipeline.try_submit(1));
        pipeline.finish();
        CHECK(pipeline.submitted() == limit + 1);
        CHECK(pipeline.completed() == limit + 1);
        CHECK(counted.count() == limit + 1);

        std::size_t most = 0; // The gate stays open.
        for (std::size_t batch = limit + 1; batch < 60; ++batch) {
            const std::size_t under_way = batch - counted.count(); // before this one
            most = std::max(most, under_way);
            (void)pipeline.submit(1);
            const std::size_t completed = pipeline.completed();
            CHECK(completed <= counted.count());
        }
        CHECK(most <= limit);
        pipeline.finish();
        CHECK(counted.count() == 60);
        CHECK(pipeline.completed() == 60);
        pipeline.reset();
        CHECK(pipeline.completed() == 0);
        CHECK(pipeline.dropped() == 0);
        while (pipeline.try_submit(1))
            if (pipeline.submitted() > 500)
                break;
        pipeline.finish();
        CHECK(pipeline.completed() == pipeline.submitted());
    });
}

TEST_CASE("in_flight: submit waits for room each time that there is none, also of a caller that asks nothing "
          "else") {
    for (const Schedule schedule : {Schedule::serial, Schedule::overlapped, Schedule::graphed}) {
        CAPTURE(std::string(to_string(schedule)));
        std::atomic<int> allowed{0}, done{0};
        Stage only{"only", [&](HostStreamRef stream, const int&) {
                       stream.enqueue([&] {
                           while (done >= allowed)
                               std::this_thread::yield();
                           ++done;
                       });
                   }};
        Pipeline pipeline{
            Stages{only}, Slots{}, {.schedule = schedule, .in_flight = 3, .steps_per_graph = 1}};
        for (int batch = 0; batch < 12; ++batch) {
            if (batch < 3) {
                pipeline.submit(batch);
                continue;
            }
            std::thread other([&] {
                give_it_time();
                ++allowed;
            });
            pipeline.submit(batch);
            CHECK(done >= batch - 2); // of the three batches before, one is through
            other.join();
        }
        allowed = 12;
        pipeline.finish();
        CHECK(done == 12);
    }
}

TEST_CASE("in_flight: a loop that asks until all batches are through ends, though some were held") {
    if (!streams_overlap<B>())
        return;
    for (const Schedule schedule : schedules) {
        for (const int steps : {0, 4}) {
            for (const int limit : {0, 1, 2, 7}) {
                CAPTURE(std::string(to_string(schedule)));
                CAPTURE(steps);
                CAPTURE(limit);
                Counted counted;
                counted.held = false;
                auto pipeline = counted.pipeline({.schedule = schedule,
                                                  .in_flight = limit,
                                                  .graphs = {.on_refusal = nullptr},
                                                  .steps_per_graph = steps});
                for (int batch = 0; batch < 12; ++batch) {
                    pipeline.submit(0);
                    for (int asked = 0; asked < 1'000'000 && pipeline.completed() < pipeline.submitted();
                         ++asked)
                        std::this_thread::yield();
                    REQUIRE(pipeline.completed() == pipeline.submitted());
                    CHECK(counted.count() == pipeline.submitted());
                }
                CHECK(pipeline.completed() == 12);
                pipeline.finish();
            }
        }
    }
}

TEST_CASE("in_flight: completed lets held batches wait for others of their graph at first") {
    Counted counted;
    counted.held = false;
    auto pipeline = counted.pipeline(
        {.schedule = Schedule::graphed, .graphs = {.on_refusal = nullptr}, .steps_per_graph = 4});
    for (int batch = 0; batch < 40; ++batch) {
        pipeline.submit(0);
        (void)pipeline.completed();
    }
    CHECK(pipeline.graph_counters().replays >= 6);
    pipeline.finish();
}

TEST_CASE("in_flight: there is a bound where none is asked for") {
    if (!streams_overlap<B>())
        return;
    for (const Schedule schedule : schedules) {
        CAPTURE(std::string(to_string(schedule)));
        Counted counted;
        auto pipeline = counted.pipeline({.schedule = schedule, .graphs = {.on_refusal = nullptr}});
        while (pipeline.submitted() < 1000 && pipeline.try_submit(1)) {
        }
        CHECK(pipeline.submitted() == 128);
        CHECK(returns_after_opening(counted.gate, [&] { (void)pipeline.submit(1); }));
        pipeline.finish();
        CHECK(counted.count() == 129);
    }
}

TEST_CASE("in_flight: try_submit of pinned memory returns what is to be kept, and waits for nothing") {
    if (!streams_overlap<B>())
        return;
    Gate<B> gate;
    PinnedBuffer<Word, B> to(1);
    const Stage copies{"copy", [&](Ref stream, const PinnedSpan<const Word, B>& batch) {
                           gate.hold(stream);
                           copy(stream, to, batch);
                       }};
    AnyPipeline<PinnedSpan<const Word, B>, B> pipeline(Stages{copies}, Slots<>{},
                                                       PipelineOptions{.in_flight = 1});
    const Inputs<B> inputs(2, 1);
    auto taken = pipeline.try_submit(inputs[0]);
    REQUIRE(taken.has_value());
    CHECK_FALSE(taken->is_ready()); // The gate is shut, and the call is back.
    const auto refused = pipeline.try_submit(inputs[1]);
    CHECK_FALSE(refused.has_value());
    gate.open();
    taken->wait();
    pipeline.finish();
    CHECK(to[0] == inputs[0][0]);
}

TEST_CASE("in_flight: by default a caller may signal what a stage waits for behind many batches") {
    if (!streams_overlap<B>())
        return;
    for (const Schedule schedule : schedules) {
        CAPTURE(std::string(to_string(schedule)));
        BasicSemaphore<B> go;
        PinnedBuffer<Word, B> done(1);
        done[0] = 0;
        const Stage waits{"waits", [&](Ref stream, const int& batch) {
                              if (batch == 0)
                                  go.wait(stream, 1);
                              ops::add_racing(stream.get(), done.data(), done.data(), 1, 1);
                          }};
        AnyPipeline<int, B> pipeline(
            Stages{waits}, Slots<>{},
            PipelineOptions{.schedule = schedule, .graphs = {.on_refusal = nullptr}});
        for (int batch = 0; batch < 300; ++batch)
            (void)pipeline.submit(batch == 0 ? 0 : 1);
        CHECK(std::atomic_ref<Word>(done[0]).load() == 0);
        go.signal(1);
        for (int batch = 0; batch < 300; ++batch)
            (void)pipeline.submit(1);
        pipeline.finish();
        CHECK(done[0] == 600);
        CHECK(pipeline.completed() == 600);
    }
}

TEST_CASE("in_flight: any number, with lanes, CPU stages and slots, gives the bits of a plain loop") {
    using D = Delayed<TestBackend>;
    using Late = Dag<D, DagStage{0, true}, DagStage{1}, DagStage{2}, DagStage{5, true, false}>;
    using Cpu = Dag<D, DagStage{0, true}, DagStage{1, false, true, true}, DagStage{2},
                    DagStage{4, true, false, true}>;
    const Inputs<D> inputs(40, 8);
    std::uint64_t seed = 7;
    const auto run = [&]<class Shape>(std::type_identity<Shape>, PipelineOptions options) {
        Delay::set({.seed = ++seed, .one_in = 6, .microseconds = 300});
        Shape dag(8);
        dag.lanes[1] = options.schedule == Schedule::serial ? 1 : 2;
        options.slots = slots_for(dag, options);
        auto pipeline = dag.pipeline(options);
        for (std::size_t batch = 0; batch < 40; ++batch) {
            pipeline.submit(inputs[batch]).stays();
            CHECK(pipeline.completed() + static_cast<std::size_t>(options.in_flight) >= batch + 1);
        }
        pipeline.finish();
        CHECK(dag.memories() == dag.expected(batches_from(0, 40)));
    };
    for (const Schedule schedule : schedules) {
        for (const int limit : {1, 2, 5, 64, 100}) {
            CAPTURE(std::string(to_string(schedule)));
            CAPTURE(limit);
            PipelineOptions options = dag_options(schedule, 2, 0);
            options.in_flight = limit;
            run(std::type_identity<Late>{}, options);
            run(std::type_identity<Cpu>{}, options);
        }
    }
}

TEST_CASE("in_flight: a graph is no longer than the bound, and is replayed") {
    for (const int limit : {1, 2, 4}) {
        CAPTURE(limit);
        Counted counted;
        counted.held = false;
        auto pipeline =
            counted.pipeline({.schedule = Schedule::graphed, .in_flight = limit, .steps_per_graph = 16});
        for (int batch = 0; batch < 80; ++batch)
            (void)pipeline.submit(1);
        pipeline.finish();
        CHECK(counted.count() == 80);
        CHECK(pipeline.graph_counters().replays >= 80u / static_cast<unsigned>(limit) - 6);
    }
}

TEST_CASE("in_flight: a call that looks for room, or for a batch that was read, reports a fault") {
    for (const Schedule schedule : {Schedule::serial, Schedule::overlapped, Schedule::graphed}) {
        CAPTURE(std::string(to_string(schedule)));
        int calls = 0;
        Stage fails{"fails", [&](Ref stream, const int&) {
                        if (++calls == 3)
                            stream.enqueue([] { throw Error("no more"); });
                    }};
        const PipelineOptions options{
            .schedule = schedule, .in_flight = 2, .graphs = {.on_refusal = nullptr}};
        AnyPipeline<int, B> trying(Stages{fails}, Slots<>{}, options);
        const std::string tried = text_of([&] {
            while (trying.submitted() < 1000000)
                (void)trying.try_submit(static_cast<int>(trying.submitted()));
        });
        CHECK(contains(tried, "no more"));
        if (schedule ==
            Schedule::overlapped) { // What is known to be through is no earlier one that may have failed.
            CHECK(contains(tried, "stage 'fails'"));
            CHECK_FALSE(contains(tried, "or earlier"));
        }
        CHECK(contains(text_of([&] { (void)trying.try_submit(1); }), "has failed before"));
        CHECK(contains(text_of([&] { trying.wait_for_room(); }), "has failed before"));
        trying.reset();
        calls = 2;
        CHECK(contains(text_of([&] {
                           (void)trying.submit(1);
                           for (std::size_t time = 0; time < 100000000; ++time)
                               trying.wait_for_room();
                       }),
                       "no more"));
        calls = 0;
        AnyPipeline<int, B> asking(Stages{fails}, Slots<>{}, options);
        const std::string asked = text_of([&] {
            BatchRead read;
            for (int batch = 0; batch < 3; ++batch)
                read = asking.submit(batch);
            asking.flush();
            for (std::size_t time = 0; time < 100000000; ++time)
                (void)read.is_ready();
        });
        CHECK(contains_all(asked, {"no more"}));
        CHECK(asking.failed());
        CHECK(contains(text_of([&] { (void)asking.completed(); }),
                       "completed: the pipeline has failed before"));

        // A loop until all are through ends, also where a handle has met the fault before it began, and could not throw it.
        calls = 0;
        AnyPipeline<PinnedBuffer<int, B>, B> dropped(
            Stages{Stage{"fails",
                         [&](Ref stream, const PinnedBuffer<int, B>&) {
                             if (++calls == 3)
                                 stream.enqueue([] { throw Error("no more"); });
                         }}},
            Slots<>{}, options);
        const PinnedBuffer<int, B> batch(1);
        CHECK(contains(text_of([&] {
                           for (int number = 0; number < 3; ++number) {
                               const BatchRead gone = dropped.submit(batch);
                           }
                           for (int time = 0; time < 1000; ++time)
                               (void)dropped.completed();
                       }),
                       "no more"));
    }
}

TEST_CASE("in_flight: less than none is refused") {
    Counted counted;
    CHECK(text_of([&] { (void)counted.pipeline({.in_flight = -1}); }) ==
          "PipelineOptions::in_flight is -1; expected 0 (as many as is good) to 2147483647");
}

} // namespace pipeline_in_flight
