// What the host waits for where CPU stages run on threads beside a device's streams, and a device that answers no longer.
#include <array>
#include <atomic>
#include <cstddef>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "pipeline/chain.hpp"
#include "support/apart_backend.hpp"
#include "support/latch.hpp"
#include "support/waits.hpp"

namespace pipeline_apart_waits {

using namespace sluice;
using namespace sluice::test;

namespace {

// When it is lost, streams signal nothing any longer, and each query of one reports it.
struct Losable : Apart {
    static constexpr const char* name = "losable";
    static inline std::atomic<bool> lost{false};

    static void signal_semaphore(NativeStream stream, NativeSemaphore semaphore, std::uint32_t value) {
        if (!lost)
            Apart::signal_semaphore(stream, semaphore, value);
    }
    static void signal_semaphore(NativeSemaphore semaphore, std::uint32_t value) {
        Apart::signal_semaphore(semaphore, value);
    }
    // Streams look late at a semaphore, for as long as they are to.
    static inline std::atomic<bool> dawdles{false};
    static void wait_semaphore(NativeStream stream, NativeSemaphore semaphore, std::uint32_t value) {
        if (dawdles)
            Host::enqueue(stream, [] { give_it_time(); });
        Apart::wait_semaphore(stream, semaphore, value);
    }
    static bool stream_done(NativeStream stream) {
        if (lost)
            throw Error("the device is lost");
        return Apart::stream_done(stream);
    }
};
using B = Losable;
using Ref = BasicStreamRef<B>;
// What streams change lies behind a pointer: a slot's own members are looked at before each replay.
struct Half {
    int* value = nullptr;
};
struct Number {
    int value = 0;
};

// A GPU stage, and a CPU stage that reads the batch as well and gives the result.
struct Work {
    std::atomic<const Latch*> holds{nullptr}; // the GPU stage
    std::atomic<const Latch*> keeps{nullptr}; // the CPU stage

    auto stages(int lanes_of_device = 1, int lanes_of_host = 1) {
        return Stages{Stage{"device",
                            [this](Ref stream, const int& batch, Half& out) {
                                if (batch == 99)
                                    throw Error("no weights");
                                Host::enqueue(stream.get(), [this, batch, &out] {
                                    if (const Latch* const latch = holds; latch != nullptr)
                                        latch->pass();
                                    *out.value = batch;
                                });
                            },
                            StageOptions<B>{.lanes = lanes_of_device}},
                      Stage{"host",
                            [this](const int& batch, const Half& in, Number& out) {
                                if (const Latch* const latch = keeps; latch != nullptr)
                                    latch->pass();
                                if (batch == 97)
                                    give_it_time();
                                if (batch == 97 || batch == 98)
                                    throw Error("no room");
                                out.value = 10 * *in.value + batch;
                            },
                            StageOptions<Host>{.lanes = lanes_of_host}}};
    }
    static auto slots() {
        return Slots{[](int slot) {
                         static std::array<int, 16> values{};
                         return Half{&values[static_cast<std::size_t>(slot)]};
                     },
                     [](int) { return Number{}; }};
    }
};

constexpr Schedule schedules[] = {Schedule::serial, Schedule::overlapped, Schedule::graphed};

} // namespace

TEST_CASE("CPU stages apart: a handle's wait, and a result, wait for the thread") {
    for (const Schedule schedule : schedules) {
        CAPTURE(std::string(to_string(schedule)));
        {
            Work work;
            const Latch latch;
            Pipeline pipeline{work.stages(), Work::slots(), {.schedule = schedule}};
            work.keeps = &latch;
            BatchRead read = pipeline.submit(3);
            CHECK(returns_after_opening(latch, [&] { read.wait(); }));
            pipeline.finish();
        }
        Work work;
        const Latch latch;
        Pipeline pipeline{work.stages(), Work::slots(), {.schedule = schedule}};
        work.keeps = &latch;
        const std::vector<int> batches{1, 2, 3, 4, 5};
        std::vector<int> results;
        auto all = pipeline.run(batches);
        CHECK(returns_after_opening(latch, [&] {
            auto at = all.begin();
            results.push_back((*at).value);
            for (++at; at != all.end(); ++at)
                results.push_back((*at).value);
        }));
        CHECK(results == std::vector{11, 22, 33, 44, 55});
    }
}

TEST_CASE("CPU stages apart: a thread that waits for a device that is lost is told, and waits no longer") {
    for (const Schedule schedule : schedules) {
        CAPTURE(std::string(to_string(schedule)));
        Work work;
        std::optional<Pipeline<decltype(work.stages()), decltype(Work::slots())>> pipeline;
        pipeline.emplace(work.stages(), Work::slots(), PipelineOptions{.schedule = schedule});
        pipeline->submit(1);
        pipeline->finish();
        Losable::lost = true;
        const auto text = text_of([&] {
            pipeline->submit(2);
            pipeline->finish();
        });
        CHECK(contains(text, "the device is lost"));
        CHECK(contains(text, "stage 'host', batch 1"));
        Losable::lost = false;
        pipeline.reset();
    }
}

TEST_CASE("CPU stages apart: no stream waits for one's first batch, but the caller, and not for long") {
    for (const Schedule schedule : schedules) {
        CAPTURE(std::string(to_string(schedule)));
        std::atomic<int> seen{0};
        std::atomic<const Latch*> keeps{nullptr};
        const Stage look{"look", [&](const int& batch, Number& out) {
                             if (const Latch* const latch = keeps; latch != nullptr)
                                 latch->pass();
                             else
                                 give_it_time();
                             out.value = batch;
                             ++seen;
                         }};
        const Stage behind{"behind", [](Ref, const Number&) {}};
        const auto make = [](int) { return Number{}; };
        int waited = 0;
        for (int attempt = 0; attempt < 10 && waited == 0;
             ++attempt) { // "Not for long" may be too short on a busy machine.
            seen = 0;
            Pipeline pipeline{Stages{look, behind}, Slots{make}, {.schedule = schedule}};
            pipeline.submit(1);
            waited += seen;
            pipeline.finish();
        }
        CHECK(waited == 1);
        {
            Pipeline pipeline{Stages{look, behind}, Slots{make}, {.schedule = schedule}};
            pipeline.submit(1);
            pipeline.finish();
            seen = 1;
            const Latch latch;
            keeps = &latch;
            pipeline.submit(2); // later ones are waited for by the stream
            CHECK(seen == 1);
            latch.open();
            pipeline.finish();
            CHECK(seen == 2);
            keeps = nullptr;
        }
        const Latch latch;
        keeps = &latch;
        Pipeline pipeline{Stages{look, behind}, Slots{make}, {.schedule = schedule}};
        pipeline.submit(1); // whose CPU stage waits for the caller
        CHECK(seen == 2);
        latch.open();
        pipeline.finish();
        CHECK(seen == 3);
    }
}

TEST_CASE("run: a pipeline that has failed meanwhile gives no further result") {
    Work work;
    Pipeline pipeline{work.stages(), Work::slots(), {.slots = 2}};
    const std::vector<int> batches{1, 2};
    auto all = pipeline.run(batches);
    auto at = all.begin();
    CHECK((*at).value == 11);
    CHECK_THROWS_AS(pipeline.submit(99), Error);
    CHECK(contains(text_of([&] { ++at; }), "run: the pipeline has failed before"));
}

TEST_CASE("CPU stages apart: what one throws is told by a handle's wait, and instead of the result") {
    for (const Schedule schedule : schedules) {
        CAPTURE(std::string(to_string(schedule)));
        Work work;
        Pipeline pipeline{work.stages(), Work::slots(), {.schedule = schedule}};
        BatchRead read = pipeline.submit(98);
        CHECK(contains(text_of([&] { read.wait(); }), "stage 'host', batch 0: no room"));
        CHECK(pipeline.failed());
        pipeline.reset();
        const std::vector<int> batches{98, 2};
        auto all = pipeline.run(batches);
        CHECK(contains(text_of([&] { (void)all.begin(); }), "stage 'host', batch 0: no room"));
        CHECK(pipeline.failed());
    }
}

TEST_CASE("CPU stages apart: what fails, drains, blocks or tells of times waits for the threads") {
    for (const Schedule schedule : schedules) {
        CAPTURE(std::string(to_string(schedule)));
        // A stage that throws: all that is under way is over when the call returns.
        {
            Work work;
            const Latch latch;
            Pipeline pipeline{work.stages(), Work::slots(), {.schedule = schedule}};
            work.keeps = &latch;
            pipeline.submit(1);
            std::string text;
            CHECK(returns_after_opening(latch, [&] { text = text_of([&] { pipeline.submit(99); }); }));
            CHECK(contains(text, "no weights"));
        }
        {
            Work work;
            const Latch latch;
            Pipeline pipeline{work.stages(), Work::slots(), {.schedule = schedule, .launch_blocking = true}};
            work.keeps = &latch;
            CHECK(returns_after_opening(latch, [&] { pipeline.submit(1); }));
            pipeline.finish();
        }
        Work work;
        const Latch latch;
        Pipeline pipeline{work.stages(), Work::slots(), {.schedule = schedule, .timed_batches = 4}};
        work.keeps = &latch;
        pipeline.submit(1);
        CHECK(returns_after_opening(latch, [&] { (void)pipeline.stage_times(); }));
        pipeline.finish();
    }
}

TEST_CASE(
    "CPU stages apart: a source's slot that a thread reads is given back, also where a reset comes before") {
    for (const Schedule schedule : schedules) {
        CAPTURE(std::string(to_string(schedule)));
        Work work;
        Source source{[](int) { return 0; },
                      [](std::size_t index, int& out) { out = static_cast<int>(index); },
                      SourceOptions<B>{.workers = 1, .slots = 2, .batches = 12}};
        Pipeline pipeline{work.stages(), Work::slots(), {.schedule = schedule, .slots = 3}};
        Losable::dawdles = true;
        for (int batch = 0; batch < 2; ++batch) {
            const auto next = source.next();
            pipeline.submit(next);
        }
        pipeline.reset(); // semaphores count from 0 again: no thread may wait for them any longer
        Losable::dawdles = false;
        int batches = 2;
        for (const auto& batch : source) {
            pipeline.submit(batch);
            ++batches;
        }
        pipeline.finish();
        CHECK(batches == 12);
    }
}

TEST_CASE("Stages with no lane, and stages that are not there, are refused in a sentence") {
    Work work;
    const auto make = [&](int of_device, int of_host) {
        return text_of([&] { Pipeline pipeline{work.stages(of_device, of_host), Work::slots()}; });
    };
    CHECK(make(0, 1) == "stage 'device': StageOptions::lanes is 0; expected 1 to 65536");
    CHECK(make(1, 0) == "stage 'host': StageOptions::lanes is 0; expected 1 to 65536");
    Pipeline pipeline{work.stages(), Work::slots()};
    const auto missing = [&](const char* what, auto call) {
        CHECK(contains(text_of(call),
                       std::string("the ") + what + " of stage 2 was asked for, of a pipeline of 2"));
    };
    missing("name", [&] { (void)pipeline.stage_name(2); });
    missing("kind", [&] { (void)pipeline.is_cpu_stage(2); });
    missing("device", [&] { (void)pipeline.device_of(2); });
    missing("stream", [&] { (void)pipeline.stream(2); });
    CHECK(pipeline.is_cpu_stage(1));
    CHECK_FALSE(pipeline.is_cpu_stage(0));
}

TEST_CASE("Schedule::automatic: what a thread throws in the last batch of a trial is told before the next "
          "trial begins") {
    int told = 0;
    for (int before = 2; before < 8; ++before) {
        Work work;
        Pipeline pipeline{work.stages(), Work::slots(), {.schedule = Schedule::automatic, .slots = 3}};
        for (int batch = 0; batch < before; ++batch)
            pipeline.submit(batch);
        // It throws so late that only a call that waits is told.
        if (contains(text_of([&] { pipeline.submit(97); }), "no room"))
            ++told;
        else
            CHECK(contains(text_of([&] { pipeline.finish(); }), "no room"));
    }
    CHECK(told > 0);
}

} // namespace pipeline_apart_waits
