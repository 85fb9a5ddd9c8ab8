// What the host waits for where CPU stages run on threads beside a device's streams, and a device that answers no longer.
#include <atomic>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "pipeline/chain.hpp"
#include "support/apart_backend.hpp"
#include "support/latch.hpp"

namespace pipeline_apart_waits {

using namespace sluice;
using namespace sluice::test;

namespace {

// When it is lost, streams signal nobody any longer, and whoever asks one is told.
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
    static bool stream_done(NativeStream stream) {
        if (lost)
            throw Error("the device is lost");
        return Apart::stream_done(stream);
    }
};
using B = Losable;
using Ref = BasicStreamRef<B>;
struct Half {
    int value = 0;
};
struct Number {
    int value = 0;
};

// A GPU stage, and a CPU stage that reads the batch as well and gives the result.
struct Work {
    std::atomic<const Latch*> holds{nullptr}; // the GPU stage
    std::atomic<const Latch*> keeps{nullptr}; // the CPU stage

    auto stages() {
        return Stages{Stage{"device",
                            [this](Ref stream, const int& batch, Half& out) {
                                if (batch == 99)
                                    throw Error("no weights");
                                Host::enqueue(stream.get(), [this, batch, &out] {
                                    if (const Latch* const latch = holds; latch != nullptr)
                                        latch->pass();
                                    out.value = batch;
                                });
                            }},
                      Stage{"host", [this](const int& batch, const Half& in, Number& out) {
                                if (const Latch* const latch = keeps; latch != nullptr)
                                    latch->pass();
                                if (batch == 98)
                                    throw Error("no room");
                                out.value = 10 * in.value + batch;
                            }}};
    }
    static auto slots() {
        return Slots{[](int) { return Half{}; }, [](int) { return Number{}; }};
    }
};

// Whether `call()` returns after the latch is opened, a little later.
template <class Call>
bool returns_after(const Latch& latch, Call&& call) {
    std::atomic<bool> opened{false};
    std::thread opener([&] {
        std::this_thread::sleep_for(std::chrono::milliseconds(15));
        opened = true;
        latch.open();
    });
    call();
    const bool after = opened;
    opener.join();
    return after;
}

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
            CHECK(returns_after(latch, [&] { read.wait(); }));
            pipeline.finish();
        }
        Work work;
        const Latch latch;
        Pipeline pipeline{work.stages(), Work::slots(), {.schedule = schedule}};
        work.keeps = &latch;
        const std::vector<int> batches{1, 2, 3, 4, 5};
        std::vector<int> results;
        auto all = pipeline.run(batches);
        CHECK(returns_after(latch, [&] {
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

} // namespace pipeline_apart_waits
