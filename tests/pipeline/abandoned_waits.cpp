// Contract 5: nothing hangs behind an exception, also where a stage waits for a semaphore that will not be signalled.
#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include <sluice/sluice.hpp>

#include "pipeline/thrown.hpp"
#include "support/backend.hpp"
#include "support/doctest.hpp"
#include "support/error_text.hpp"

namespace pipeline_abandoned_waits {

using namespace sluice;
using namespace sluice::test;

namespace {

using B = TestBackend;
using Batch = PinnedBuffer<int, B>;
using Slot = DeviceBuffer<int, B>;
constexpr Schedule schedules[] = {Schedule::serial, Schedule::overlapped, Schedule::graphed};

// Two stages, of which the first waits for `semaphore` before it copies, and the second throws for one batch.
auto pipeline_that_waits(BasicSemaphore<B>& semaphore, Schedule schedule, int throwing = -1) {
    Stage load{"load",
               [&semaphore, number = 0U](BasicStreamRef<B> stream, const Batch& in, Slot& out) mutable {
                   semaphore.wait(stream, ++number);
                   copy(stream, out, in);
               }};
    Stage train{"train", [throwing, number = 0](BasicStreamRef<B>, const Slot&) mutable {
                    if (number++ == throwing)
                        throw std::runtime_error("as asked");
                }};
    return AnyPipeline<Batch, B>(Stages{std::move(load), std::move(train)},
                                 Slots{[](int) { return Slot(1); }}, PipelineOptions{.schedule = schedule});
}

} // namespace

TEST_CASE("a pipeline goes, when its caller throws before it signals what stages wait for") {
    for (const Schedule schedule : schedules) {
        Batch batch(1);
        BasicSemaphore<B> semaphore;
        const auto throwing = [&] {
            auto pipeline = pipeline_that_waits(semaphore, schedule);
            for (int i = 0; i < 3; ++i)
                pipeline.submit(batch).stays();
            throw std::runtime_error("the caller's");
        };
        CHECK_THROWS_WITH(throwing(), "the caller's");
        CHECK(semaphore.value() == 3);
    }
}

#if !defined(SLUICE_TEST_CUDA) // one of some 30 new streams waits for all others there
TEST_CASE("a pipeline that goes ends the waits of its own streams, and those of others go on") {
    BasicSemaphore<B> outside;
    const BasicStream<B> other;
    outside.wait(other, 5);
    const auto throwing = [&] {
        BasicSemaphore<B> semaphore;
        Batch batch(1);
        auto pipeline = pipeline_that_waits(semaphore, Schedule::overlapped);
        pipeline.submit(batch).stays();
        throw std::runtime_error("the caller's");
    };
    CHECK_THROWS_WITH(throwing(), "the caller's");
    CHECK(outside.value() == 0);
    CHECK_FALSE(other.is_done());
    outside.signal(5);
    other.sync();
}
#endif

TEST_CASE("the same, where the semaphore goes first, and so does the handle of a batch") {
    const auto handle_first = [] {
        Batch batch(1);
        BasicSemaphore<B> semaphore;
        auto pipeline = pipeline_that_waits(semaphore, Schedule::overlapped);
        const BatchRead read = pipeline.submit(batch);
        throw std::runtime_error("the caller's");
    };
    CHECK_THROWS_WITH(handle_first(), "the caller's");
    const auto semaphore_first = [] {
        Batch batch(1);
        BasicSemaphore<B>* late = nullptr;
        Stage load{"load", [&late](BasicStreamRef<B> stream, const Batch& in, Slot& out) {
                       late->wait(stream, 1);
                       copy(stream, out, in);
                   }};
        Stage train{"train", [](BasicStreamRef<B>, const Slot&) {}};
        TwoStreamPipeline pipeline{load, train, [](int) { return Slot(1); }};
        BasicSemaphore<B> semaphore;
        late = &semaphore;
        pipeline.submit(batch).stays();
        throw std::runtime_error("the caller's");
    };
    CHECK_THROWS_WITH(semaphore_first(), "the caller's");
}

TEST_CASE(
    "a source goes before its pipeline, while what reads its slots waits for a signal that never comes") {
    struct Way {
        Schedule schedule;
        bool later_stage; // whose wait the first stage is behind
        int slots;        // of the source; with 2 a worker waits for one, too
    };
    for (const Way& way : {Way{Schedule::serial, true, 2}, Way{Schedule::overlapped, true, 2},
                           Way{Schedule::overlapped, false, 4}, Way{Schedule::graphed, true, 4}}) {
        CAPTURE(std::string(to_string(way.schedule)));
        const auto throwing = [&] {
            BasicSemaphore<B> semaphore;
            unsigned number = 0;
            const auto wait_in = [&](bool later, BasicStreamRef<B> stream) {
                if (later == way.later_stage)
                    semaphore.wait(stream, ++number);
            };
            Stage load{"load", [&](BasicStreamRef<B> stream, const Batch& in, Slot& out) {
                           wait_in(false, stream);
                           copy(stream, out, in);
                       }};
            Stage train{"train", [&](BasicStreamRef<B> stream, const Slot&) { wait_in(true, stream); }};
            TwoStreamPipeline pipeline{
                load, train, [](int) { return Slot(1); }, {.schedule = way.schedule, .slots = 1}};
            Source source{[](int) { return Batch(1); }, [](std::size_t, Batch&) {},
                          SourceOptions<B>{.workers = 1, .slots = way.slots}};
            for (int i = 0; i < 2; ++i)
                pipeline.submit(source.next());
            throw std::runtime_error("the caller's");
        };
        CHECK_THROWS_WITH(throwing(), "the caller's");
    }
}

TEST_CASE("a source goes, while any of the streams that read its slots waits for a signal that never comes") {
    for (const std::size_t waiting : {0u, 1u, 2u}) {
        CAPTURE(waiting);
        const auto throwing = [&] {
            BasicSemaphore<B> semaphore;
            const BasicStream<B> streams[3];
            Source source{[](int) { return Batch(1); }, [](std::size_t, Batch&) {},
                          SourceOptions<B>{.workers = 1, .slots = 2}};
            const auto batch = source.next();
            semaphore.wait(streams[waiting], 1);
            for (const BasicStream<B>& stream : streams)
                batch.release(stream);
            throw std::runtime_error("the caller's");
        };
        CHECK_THROWS_WITH(throwing(), "the caller's");
    }
}

TEST_CASE("a source goes, and ends no waits of streams that are through with its slots") {
    BasicSemaphore<B> semaphore;
    const BasicStream<B> stream;
    const auto throwing = [&] {
        Source source{[](int) { return Batch(1); }, [](std::size_t, Batch&) {},
                      SourceOptions<B>{.workers = 1, .slots = 2}};
        source.next().release(stream);
        stream.sync();
        semaphore.wait(stream, 1);
        throw std::runtime_error("the caller's");
    };
    CHECK_THROWS_WITH(throwing(), "the caller's");
    CHECK(semaphore.value() == 0);
    semaphore.signal(1);
    stream.sync();
}

TEST_CASE("a source goes, whose last handle goes later, and a stream that reads it waits in vain") {
    const BasicStream<B> stream;
    const auto throwing = [&] {
        BasicSemaphore<B> semaphore;
        SourceBatch<Batch, B> batch;
        Source source{[](int) { return Batch(1); }, [](std::size_t, Batch&) {},
                      SourceOptions<B>{.workers = 1, .slots = 2}};
        batch = source.next();
        semaphore.wait(stream, 1);
        batch.release(stream);
        throw std::runtime_error("the caller's");
    };
    CHECK_THROWS_WITH(throwing(), "the caller's");
}

TEST_CASE("whatever waits for a stream in its destructor goes, when the stream waits for a signal that never "
          "comes") {
    // Each is declared behind the stream, and goes before it.
    const auto executable = [] {
        BasicSemaphore<B> semaphore;
        const BasicStream<B> stream;
        BasicGraphBuilder<B> builder;
        builder.host([] {}); // which it owns
        auto owner = builder.instantiate();
        semaphore.wait(stream, 1);
        owner.launch(stream);
        throw std::runtime_error("the caller's");
    };
    CHECK_THROWS_WITH(executable(), "the caller's");
    const auto scalar = [] {
        BasicSemaphore<B> semaphore;
        const BasicStream<B> stream;
        DeviceScalar<int, B> rate{1};
        semaphore.wait(stream, 1);
        rate.set(stream, 2);
        throw std::runtime_error("the caller's");
    };
    CHECK_THROWS_WITH(scalar(), "the caller's");
    for (const bool replayed : {false, true}) {
        CAPTURE(replayed);
        const auto readback = [replayed] {
            BasicSemaphore<B> semaphore;
            const BasicStream<B> stream;
            Slot value(1);
            fill_bytes(stream, value, 0);
            Readback<int, B> results(1, [](auto, auto) {});
            GraphCapture<NoKey, B> graph;
            for (int run = 0; replayed && run < 2; ++run)
                graph.run(stream.ref(), [&](BasicStreamRef<B> s) { results.push(s, value); });
            results.finish();
            semaphore.wait(stream, 1);
            if (replayed)
                graph.run(stream.ref(), [&](BasicStreamRef<B> s) { results.push(s, value); });
            else
                results.push(stream, value);
            throw std::runtime_error("the caller's");
        };
        CHECK_THROWS_WITH(readback(), "the caller's");
    }
}

TEST_CASE("a pipeline that outlives the exception says at its next call that it has given a wait up") {
    for (const Schedule schedule : schedules) {
        Batch batch(1);
        BasicSemaphore<B> semaphore;
        auto pipeline = pipeline_that_waits(semaphore, schedule);
        try {
            const BatchRead read = pipeline.submit(batch);
            throw std::runtime_error("the caller's");
        } catch (const std::runtime_error&) {
        }
        const Caught caught([&] { pipeline.submit(batch).stays(); });
        CHECK(contains(caught.text(), "semaphore")); // as the stream's fault, where it has one
        CHECK(contains(caught.text(), "not signalled"));
        pipeline.reset();
        semaphore.signal(100);
        pipeline.submit(batch).wait();
        pipeline.finish();
    }
}

TEST_CASE("a stage's fault comes out of submit, although an earlier stage waits for the caller's signal") {
    Batch batch(1);
    BasicSemaphore<B> semaphore;
    auto pipeline = pipeline_that_waits(semaphore, Schedule::overlapped, 1);
    pipeline.submit(batch).stays();
    const Caught caught([&] { pipeline.submit(batch).stays(); });
    CHECK(caught.text() == "stage 'train', batch 1: its callable threw: as asked");
    // The callable goes on counting.
    semaphore.signal(100);
    pipeline.reset();
    pipeline.submit(batch).wait();
    pipeline.finish();
}

TEST_CASE("reset ends such waits, too") {
    Batch batch(1);
    BasicSemaphore<B> semaphore;
    auto pipeline = pipeline_that_waits(semaphore, Schedule::overlapped);
    pipeline.submit(batch).stays();
    pipeline.reset();
    CHECK(semaphore.value() == 1);
    semaphore.signal(2);
    pipeline.submit(batch).wait();
    pipeline.finish();
}

TEST_CASE("a semaphore of which reset has given a wait up serves again once it is reset itself") {
    for (const Schedule schedule : schedules) {
        Batch batch(1);
        BasicSemaphore<B> semaphore;
        Stage load{"load", [&](BasicStreamRef<B> stream, const Batch& in, Slot& out) {
                       semaphore.wait(stream, 1);
                       copy(stream, out, in);
                   }};
        Stage train{"train", [](BasicStreamRef<B>, const Slot&) {}};
        TwoStreamPipeline pipeline{load, train, [](int) { return Slot(1); }, {.schedule = schedule}};
        pipeline.submit(batch).stays();
        pipeline.reset();
        CHECK(semaphore.value() == 1);
        semaphore.reset();
        pipeline.submit(batch).stays();
        semaphore.signal(1);
        CHECK(text_of([&] { pipeline.finish(); }).empty());
    }
}

TEST_CASE("what another thread signals in time is waited for: the batches before a fault pass all stages") {
    Batch batch(1);
    batch[0] = 7;
    std::vector<int> seen(1);
    BasicSemaphore<B> semaphore;
    BasicSemaphore<B> passed;
    Stage load{"load", [&](BasicStreamRef<B> stream, const Batch& in, Slot& out) {
                   semaphore.wait(stream, 1);
                   copy(stream, out, in);
               }};
    int number = 0;
    const BasicStream<B> reader;
    Slot kept(1);
    Stage train{"train", [&](BasicStreamRef<B> stream, const Slot& in) {
                    if (number++ == 1)
                        throw std::runtime_error("as asked");
                    copy(stream, kept, in);
                    passed.signal(stream, 1);
                }};
    TwoStreamPipeline pipeline{load, train, [](int) { return Slot(1); }};
    pipeline.submit(batch).stays();
    std::thread other([&] { semaphore.signal(1); });
    const Caught caught([&] { pipeline.submit(batch).stays(); });
    CHECK(caught.text() == "stage 'train', batch 1: its callable threw: as asked");
    CHECK(passed.value() == 1);
    copy_and_wait(reader, seen, kept);
    CHECK(seen[0] == 7);
    other.join();
}

} // namespace pipeline_abandoned_waits
