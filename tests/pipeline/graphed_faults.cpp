// Contract 5 where all stages are one graph, and where work is in flight that will fail. On the host a task throws.
#include <atomic>
#include <chrono>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include <sluice/backend/detail/host/queue.hpp>

#include "pipeline/chain.hpp"
#include "pipeline/dag.hpp"
#include "pipeline/thrown.hpp"
#include "support/faulty_backend.hpp"
#include "support/latch.hpp"
#include "support/waits.hpp"

namespace pipeline_graphed_faults {

using namespace sluice;
using namespace sluice::test;

namespace {

using B = Host;

// What the tasks of the last stage do, whichever graph they are in.
struct Task {
    std::atomic<bool> throws{false};
    std::atomic<const Latch*> waits{nullptr};
    std::atomic<int> done{0};

    void operator()() {
        if (const Latch* const latch = waits; latch != nullptr)
            latch->pass();
        if (throws.exchange(false))
            throw std::range_error("bad pixel");
        ++done;
    }
};

auto make_pipeline(Task& task, const PipelineOptions& options) {
    return Pipeline{
        Stages{Stage{"first", [](HostStreamRef stream, const int&, int&) { stream.enqueue([] {}); }},
               Stage{"last", [&task](HostStreamRef stream, int&) { stream.enqueue([&task] { task(); }); }}},
        Slots{[](int) { return 0; }}, options};
}

template <class P>
void submit(P& pipeline, int count) {
    for (int batch = 0; batch < count; ++batch)
        pipeline.submit(7);
}

template <class Check>
void for_each_way(Check&& check) {
    for (const Schedule schedule : {Schedule::serial, Schedule::overlapped, Schedule::graphed}) {
        for (const bool each_stage : {false, true}) {
            if (each_stage && schedule != Schedule::graphed)
                continue;
            CAPTURE(std::string(to_string(schedule)));
            CAPTURE(each_stage);
            check(
                PipelineOptions{.schedule = schedule, .steps_per_graph = 1, .graph_each_stage = each_stage});
        }
    }
}

} // namespace

TEST_CASE("Contract 5: a fault of a replay that is known is thrown by the next call, whatever it is") {
    for_each_way([](const PipelineOptions& options) {
        for (const std::string call : {"submit", "flush", "finish"}) {
            CAPTURE(call);
            Task task;
            auto pipeline = make_pipeline(task, options);
            submit(pipeline, 12);
            pipeline.finish();
            CHECK(task.done == 12);
            submit(pipeline, 8); // replays, where there are any
            pipeline.stream(0).sync();
            pipeline.stream(1).sync();
            task.throws = true;
            submit(pipeline, 1);
            if (options.schedule == Schedule::graphed && !options.graph_each_stage)
                CHECK(pipeline.graph_counters().replays > 4);
            const auto fails = [&](std::size_t stage) {
                return pipeline.stream(stage).get()->failure() != nullptr;
            };
            REQUIRE(eventually([&] { return fails(0) || fails(1); }));
            const Caught error([&] {
                if (call == "submit")
                    pipeline.submit(7);
                if (call == "flush")
                    pipeline.flush();
                if (call == "finish")
                    pipeline.finish();
            });
            REQUIRE(error);
            CHECK(contains(error.text(), "bad pixel"));
            CHECK(error.nests_directly<std::range_error>());
            CHECK(pipeline.failed());
            CHECK(pipeline.submitted() == 21);

            pipeline.reset();
            task.done = 0;
            submit(pipeline, 6);
            pipeline.finish();
            CHECK(task.done == 6);
        }
    });
}

TEST_CASE("Contract 5: reset waits for work that is about to fail, and forgets that, too") {
    for_each_way([](const PipelineOptions& options) {
        for (const int before : {0, 12}) {
            CAPTURE(before);
            Task task;
            const Latch latch;
            auto pipeline = make_pipeline(task, options);
            submit(pipeline, before);
            pipeline.flush();
            pipeline.stream(1).sync();
            task.waits = &latch;
            task.throws = true;
            submit(pipeline, 2);
            pipeline.flush();
            REQUIRE(latch.wait_until_reached());
            std::thread opener([&] {
                std::this_thread::sleep_for(std::chrono::milliseconds(15));
                latch.open();
            });
            CHECK_NOTHROW(pipeline.reset());
            opener.join();
            CHECK_FALSE(task.throws);
            task.waits = nullptr;
            task.done = 0;
            submit(pipeline, 6);
            pipeline.finish();
            CHECK(task.done == 6);
        }
    });
}

TEST_CASE("Contract 5: a stage that throws fails the pipeline when all that is under way is over") {
    for_each_way([](const PipelineOptions& options) {
        Task task;
        const Latch latch;
        task.waits = &latch;
        const auto first = [](HostStreamRef stream, const int& batch, int&) {
            if (batch == 99)
                throw std::logic_error("no weights");
            stream.enqueue([] {});
        };
        const auto last = [&task](HostStreamRef stream, int&) { stream.enqueue([&task] { task(); }); };
        Pipeline pipeline{Stages{Stage{"first", first}, Stage{"last", last}}, Slots{[](int) { return 0; }},
                          options};
        submit(pipeline, 3);
        std::atomic<bool> opened{false};
        std::thread opener([&] {
            std::this_thread::sleep_for(std::chrono::milliseconds(15));
            opened = true;
            latch.open();
        });
        const Caught error([&] { pipeline.submit(99); });
        CHECK(opened);
        opener.join();
        REQUIRE(error);
        CHECK(error->stage() == "first");
        CHECK(contains(error.text(), "no weights"));
    });
}

TEST_CASE("Contract 5: a pipeline whose last batches fail as it goes gives their slots back when they have "
          "been read") {
    std::atomic<int> fills{0};
    constexpr int slots = 8;
    Source source{[](int) { return PinnedBuffer<Word, B>(1); },
                  [&](std::size_t, PinnedBuffer<Word, B>&) { ++fills; },
                  SourceOptions<B>{.workers = 1, .slots = slots, .batches = 100}};
    const Latch latch;
    std::atomic<int> filled_meanwhile{0};
    std::thread opener;
    {
        int calls = 0;
        DeviceBuffer<Word, B> to(1);
        const auto first = [&](HostStreamRef stream, const PinnedBuffer<Word, B>& in, int&) {
            stream.enqueue([latch] { latch.pass(); });
            copy(stream, to, in);
        };
        const auto last = [&](HostStreamRef stream, int&) {
            if (++calls == 2)
                throw std::logic_error("no weights");
            stream.enqueue([] {});
        };
        Pipeline pipeline{Stages{Stage{"first", first}, Stage{"last", last}}, Slots{[](int) { return 0; }},
                          dag_options(Schedule::graphed, 4, 4)};
        for (int batch = 0; batch < 3; ++batch) {
            const auto next = source.next();
            pipeline.submit(next);
        }
        CHECK(calls == 0); // all are held
        REQUIRE(eventually([&] { return fills == slots; }));
        opener = std::thread([&] {
            (void)latch.wait_until_reached();
            give_it_time();
            filled_meanwhile = fills - slots;
            latch.open();
        });
    }
    opener.join();
    CHECK(filled_meanwhile == 0);
    CHECK(eventually([&] { return fills == slots + 3; }));
}

TEST_CASE("Contract 5: a pipeline that fails gives held batches back to their source at once") {
    std::atomic<int> fills{0};
    Source source{[](int) { return PinnedBuffer<Word, B>(1); },
                  [&](std::size_t, PinnedBuffer<Word, B>&) { ++fills; },
                  SourceOptions<B>{.workers = 1, .slots = 8, .batches = 100}};
    DeviceBuffer<Word, B> to(1);
    const auto only = [&](HostStreamRef, const PinnedBuffer<Word, B>&) {
        throw std::logic_error("no weights");
    };
    Pipeline pipeline{Stages{Stage{"only", only}}, Slots{}, dag_options(Schedule::graphed, 4, 4)};
    for (int batch = 0; batch < 3; ++batch) {
        const auto next = source.next();
        pipeline.submit(next);
    }
    REQUIRE(eventually([&] { return fills == 8; }));
    CHECK(contains(text_of([&] { pipeline.flush(); }), "no weights"));
    CHECK(eventually([&] { return fills == 8 + 3; })); // before any reset
}

TEST_CASE("BatchRead: a handle that another one is assigned to waits for its own batch first") {
    for (const Schedule schedule : {Schedule::serial, Schedule::overlapped}) {
        CAPTURE(std::string(to_string(schedule)));
        PinnedBuffer<Word, B> batch(1);
        DeviceBuffer<Word, B> to(1);
        const Latch latch;
        const auto only = [&](HostStreamRef stream, const PinnedBuffer<Word, B>& in) {
            stream.enqueue([latch] { latch.pass(); });
            copy(stream, to, in);
        };
        Pipeline pipeline{Stages{Stage{"only", only}}, Slots{}, {.schedule = schedule}};
        BatchRead read = pipeline.submit(batch);
        CHECK(returns_after_opening(latch, [&] { read = BatchRead(); }));
        pipeline.finish();
    }
}

TEST_CASE(
    "BatchRead: a handle whose wait cannot begin waits for what is under way, and the next call throws") {
    using F = Faulty<Host>;
    for (const Schedule schedule : {Schedule::serial, Schedule::overlapped}) {
        CAPTURE(std::string(to_string(schedule)));
        PinnedBuffer<Word, F> batch(1);
        DeviceBuffer<Word, F> to(1);
        const Latch latch;
        const auto only = [&](BasicStreamRef<F> stream, const PinnedBuffer<Word, F>& in) {
            HostStreamRef(stream.get()).enqueue([latch] { latch.pass(); });
            copy(stream, to, in);
        };
        Pipeline pipeline{Stages{Stage{"only", only}}, Slots{}, {.schedule = schedule}};
        BatchRead read = pipeline.submit(batch);
        Fault::arm(1);
        CHECK(returns_after_opening(latch, [&] { read = BatchRead(); }));
        Fault::disarm();
        CHECK(contains(text_of([&] { pipeline.submit(batch).wait(); }), Fault::name));
        pipeline.reset();
        pipeline.submit(batch).wait();
        pipeline.finish();
    }
}

} // namespace pipeline_graphed_faults
