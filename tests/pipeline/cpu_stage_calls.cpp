// CPU stages that enqueue work on a stream of their own and wait for it, while streams of the pipeline wait for them.
#include <deque>
#include <string>
#include <vector>

#include <sluice/sluice.hpp>

#include "support/backend.hpp"
#include "support/doctest.hpp"
#include "support/latch.hpp"
#include "support/watchdog.hpp"

namespace sluice::test::pipeline_cpu_stage_calls {
namespace {

using B = TestBackend;
using Ref = BasicStreamRef<B>;
constexpr std::size_t size = 1024;

struct Result {
    PinnedBuffer<float, B> values{size};
};

/// A buffer for each batch, filled with its number.
std::vector<DeviceBuffer<float, B>> numbered(int batches) {
    std::vector<DeviceBuffer<float, B>> buffers;
    const BasicStream<B> stream;
    for (int i = 0; i < batches; ++i) {
        buffers.emplace_back(size);
        fill(stream, buffers.back(), static_cast<float>(i));
    }
    stream.sync();
    return buffers;
}

/// A CPU stage that copies what it is handed to the device and back, on a stream of its own, and waits for it.
struct ThereAndBack {
    const BasicStream<B>& own;
    DeviceBuffer<float, B> there{size};
    PinnedBuffer<float, B> back{size};
    std::vector<float> seen{};

    auto pipeline(Schedule schedule) {
        Stage fetch{"fetch", [](Ref stream, const DeviceBuffer<float, B>& in, Result& out) {
                        copy(stream, out.values, in);
                    }};
        Stage look{"look", [this](const Result& in) {
                       copy(own, there, in.values);
                       copy(own, back, there);
                       own.sync();
                       seen.push_back(back[size - 1]);
                   }};
        return Pipeline{Stages{fetch, look}, Slots{[](int) { return Result{}; }}, {.schedule = schedule}};
    }
    /// Whether it saw all batches of `numbered(batches)`, in order, so many times over.
    bool has_seen(int batches, int times) const {
        bool right = seen.size() == static_cast<std::size_t>(batches * times);
        for (std::size_t i = 0; i < seen.size(); ++i)
            right = right && seen[i] == static_cast<float>(i % static_cast<std::size_t>(batches));
        return right;
    }
};

} // namespace

// A device has fewer queues than a program has streams. Whichever the one that a CPU stage waits for is given, streams that wait for the
// CPU stage must not hold it up: each of so many has its turn.
TEST_CASE("CPU stages: one may wait for its own work on any stream") {
    constexpr int batches = 40;
    const std::vector<DeviceBuffer<float, B>> inputs = numbered(batches);
    std::deque<BasicStream<B>> others; // that were made before
    for (int i = 0; i < 12; ++i) {
        for (const Schedule schedule : {Schedule::serial, Schedule::overlapped, Schedule::graphed}) {
            CAPTURE(std::string(to_string(schedule)));
            const Watchdog watchdog("stream " + std::to_string(i) + ", " + std::string(to_string(schedule)));
            ThereAndBack stage{others.emplace_back()};
            auto pipeline = stage.pipeline(schedule);
            for (const DeviceBuffer<float, B>& input : inputs)
                pipeline.submit(input).stays();
            pipeline.finish();
            CHECK(stage.has_seen(batches, 1));
        }
    }
}

// Each batch is a place of its own, and so a graph: CUDA waits for all streams where it has made some 32 of them.
TEST_CASE("CPU stages: one may wait for its own work while graphs are made") {
    constexpr int batches = 120;
    const std::vector<DeviceBuffer<float, B>> inputs = numbered(batches);
    const BasicStream<B> own;
    const Watchdog watchdog("graphs");
    ThereAndBack stage{own};
    auto pipeline = stage.pipeline(Schedule::graphed);
    for (int run = 0; run < 3; ++run) {
        for (const DeviceBuffer<float, B>& input : inputs)
            pipeline.submit(input).stays();
    }
    pipeline.finish();
    CHECK(stage.has_seen(batches, 3));
    CHECK(pipeline.graph_counters().captures > 0);
}

// What the pipeline's streams still hold then is more than a driver keeps, which lets callers wait, and must not let the CPU stage's
// calls wait behind them.
TEST_CASE("CPU stages: one may wait for its own work far behind the caller") {
    constexpr int batches = 300, copies = 20;
    DeviceBuffer<float, B> input{size};
    BasicStream<B> filler;
    fill(filler, input, 1.0f);
    filler.sync();
    for (const Schedule schedule : {Schedule::serial, Schedule::overlapped, Schedule::graphed}) {
        CAPTURE(std::string(to_string(schedule)));
        const Watchdog watchdog(std::string(to_string(schedule)));
        BasicStream<B> own;
        DeviceBuffer<float, B> there{size};
        int seen = 0;
        Stage fetch{"fetch", [](Ref stream, const DeviceBuffer<float, B>& in, Result& out) {
                        for (int i = 0; i < copies; ++i)
                            copy(stream, out.values, in);
                    }};
        Stage look{"look", [&](const Result& in) {
                       copy(own, there, in.values);
                       own.sync();
                       ++seen;
                   }};
        Pipeline pipeline{Stages{fetch, look}, Slots{[](int) { return Result{}; }}, {.schedule = schedule}};
        for (int batch = 0; batch < batches; ++batch)
            pipeline.submit(input).stays();
        pipeline.finish();
        CHECK(seen == batches);
    }
}

// On CUDA a copy within pinned memory is a host function, and CUDA may call those one after another: the CPU stage's must not come
// behind those of later batches, which wait for it.
TEST_CASE("CPU stages: one may wait for its own host functions, behind those of later batches") {
    constexpr int batches = 24;
    PinnedBuffer<float, B> input{size};
    for (std::size_t i = 0; i < size; ++i)
        input[i] = 1;
    for (const Schedule schedule : {Schedule::serial, Schedule::overlapped, Schedule::graphed}) {
        CAPTURE(std::string(to_string(schedule)));
        const Watchdog watchdog(std::string(to_string(schedule)));
        BasicStream<B> own;
        PinnedBuffer<float, B> back{size};
        int seen = 0;
        const Latch submitted;
        Stage fetch{"fetch", [](Ref stream, const PinnedBuffer<float, B>& in, Result& out) {
                        copy(stream, out.values, in);
                    }};
        Stage look{"look", [&](const Result& in) {
                       submitted.pass();
                       copy(own, back, in.values);
                       own.sync();
                       seen += back[size - 1] == 1 ? 1 : 0;
                       back[size - 1] = 0;
                   }};
        Pipeline pipeline{Stages{fetch, look}, Slots{[](int) { return Result{}; }}, {.schedule = schedule}};
        for (int batch = 0; batch < batches; ++batch)
            pipeline.submit(input).stays();
        submitted.open();
        pipeline.finish();
        CHECK(seen == batches);
    }
}

} // namespace sluice::test::pipeline_cpu_stage_calls
