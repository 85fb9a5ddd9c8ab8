// Collectives as stages: every schedule, batches that are refilled, a short last batch, an early end, a rank that fails.
#include <cstddef>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <tuple>
#include <vector>

#include <sluice/pipeline.hpp>

#include "collective/ranks.hpp"
#include "support/doctest.hpp"

namespace collective_pipelines {

using namespace sluice;
using namespace sluice::test;

namespace {

using B = TestBackend;
using Ref = BasicStreamRef<B>;
constexpr std::size_t size = 3 + 5 + 1; // of the gradient's three parts

struct Batch {
    PinnedBuffer<float, B> values{size};
    PinnedBuffer<float, B> zeros{size};
    std::size_t filled = size;

    // A shorter batch is another graph.
    friend auto graph_key(const Batch& batch) {
        return std::tuple{static_cast<const void*>(batch.values.data()), batch.filled};
    }
};
struct Gradient {
    DeviceBuffer<float, B> values{size};
};

float value(int rank, std::size_t batch, std::size_t i) {
    return static_cast<float>((static_cast<std::size_t>(rank) * 31 + batch * 7 + i * 3) % 50);
}

struct Plan {
    PipelineOptions options;
    std::size_t batches = 12;
    std::size_t stop_after = 12;
    int short_rank = -1;   // whose last batch has 2 elements
    int failing_rank = -1; // whose reduction throws at batch 5
};

// The reduced gradients, one after another, as this rank sees them.
std::vector<float> run_rank(const Comm& rank, const Plan& plan) {
    BucketedReduction<float, B> gradients{rank, {3, 5, 1}, {.bytes = 5 * sizeof(float)}};
    CHECK(gradients.buckets() == 2);
    std::vector<float> result;
    Readback<float, B> readback{size, [&](std::size_t, std::span<const float> reduced) {
                                    result.insert(result.end(), reduced.begin(), reduced.end());
                                }};
    std::size_t calls = 0;

    Stage make{"gradient", [&](Ref stream, const Batch& in, Gradient& out) {
                   copy(stream, out.values.span().first(in.filled), in.values.span().first(in.filled));
                   copy(stream, out.values.span().last(size - in.filled),
                        in.zeros.span().last(size - in.filled));
               }};
    Stage reduce{"reduce", [&](Ref stream, const Gradient& in, DeviceBuffer<float, B>& out) {
                     if (rank.rank() == plan.failing_rank && calls++ == 5)
                         throw std::runtime_error("no gradient");
                     std::size_t begin = 0;
                     for (std::size_t i = 0; i < 3; ++i) {
                         const std::size_t length = gradients.part(i).size();
                         copy(stream, gradients.part(i), in.values.span().subspan(begin, length));
                         gradients.ready(stream, i);
                         begin += length;
                     }
                     gradients.join(stream);
                     copy(stream, out, gradients.all());
                 }};
    Stage report{"report", [&](Ref stream, DeviceBuffer<float, B>& in) { readback.push(stream, in); }};
    Pipeline pipeline{Stages{make, reduce, report},
                      Slots{[](int) { return Gradient{}; }, [](int) { return DeviceBuffer<float, B>(size); }},
                      plan.options};
    Source source{[](int) {
                      Batch batch;
                      for (float& zero : batch.zeros.span())
                          zero = 0;
                      return batch;
                  },
                  [&](std::size_t index, Batch& out) {
                      for (std::size_t i = 0; i < size; ++i)
                          out.values[i] = value(rank.rank(), index, i);
                      const bool is_short = rank.rank() == plan.short_rank && index + 1 == plan.batches;
                      out.filled = is_short ? 2 : size;
                  },
                  SourceOptions<B>{.workers = 1, .slots = 3, .batches = plan.batches}};
    std::size_t submitted = 0;
    for (const auto& batch : source) {
        pipeline.submit(batch);
        if (++submitted == plan.stop_after)
            break;
    }
    pipeline.finish();
    readback.finish();
    return result;
}

std::vector<float> expected(int ranks, const Plan& plan) {
    std::vector<float> result;
    for (std::size_t batch = 0; batch < plan.stop_after; ++batch) {
        for (std::size_t i = 0; i < size; ++i) {
            float sum = 0;
            for (int rank = 0; rank < ranks; ++rank) {
                if (rank != plan.short_rank || batch + 1 != plan.batches || i < 2)
                    sum += value(rank, batch, i);
            }
            result.push_back(sum);
        }
    }
    return result;
}

std::vector<PipelineOptions> all_schedules() {
    return {{.schedule = Schedule::serial},
            {.schedule = Schedule::overlapped},
            {.schedule = Schedule::graphed},
            {.schedule = Schedule::graphed, .graph_each_stage = true}};
}

void check(int ranks, const Plan& plan) {
    std::vector<std::vector<float>> found(static_cast<std::size_t>(ranks));
    const std::vector<std::string> thrown = on_ranks(communicators(ranks), [&](Comm rank) {
        found[static_cast<std::size_t>(rank.rank())] = run_rank(rank, plan);
    });
    for (const std::string& text : thrown)
        CHECK(text == "");
    for (const std::vector<float>& of_rank : found)
        CHECK(of_rank == expected(ranks, plan));
}

} // namespace

TEST_CASE("bucketed reductions in a stage give the same sums under every schedule") {
    for (const PipelineOptions& options : all_schedules()) {
        CAPTURE(std::string(to_string(options.schedule)));
        for (int ranks = 1; ranks <= 4 && enough_devices(ranks); ++ranks) {
            CAPTURE(ranks);
            check(ranks, {.options = options});
        }
        if (B::device_count() < 2)
            continue;
        check(2, {.options = options, .short_rank = 1});
        check(2, {.options = options, .stop_after = 5});
        check(2, {.options = options, .batches = 0, .stop_after = 0});
    }
}

#if !defined(SLUICE_TEST_CUDA) // NCCL waits for the other rank within the call
TEST_CASE("a bucketed reduction belongs to the communicator's device, and wants each part once") {
    if (!enough_devices(2))
        return;
    std::vector<Comm> ends = communicators(2);
    BucketedReduction<float, B> parts{ends[1], {3, 4}, {.bytes = 1 << 10}}; // made on device 0
    const DeviceGuard<B> there(1);
    const BasicStream<B> stream;
    CHECK(parts.stream().device() == 1);
    CHECK_THROWS_WITH_AS(parts.join(stream), "bucketed reduction: join was called before part 0 was ready",
                         Error);
    parts.ready(stream, 1);
    CHECK_THROWS_WITH_AS(
        parts.ready(stream, 1),
        "bucketed reduction: part 1 of 2 is ready; expected each part once between two calls of "
        "join, or reset after a step that ended before its join",
        Error);
    parts.ready(stream, 0);
    parts.join(stream);
    ends[0].abort("over");
    CHECK_THROWS_AS(stream.sync(), Error);
}
#endif

TEST_CASE(
    "a rank that ends early ends the others, whose errors name the stage and the collective that want it") {
    if (!enough_devices(2))
        return;
    for (const PipelineOptions& options : all_schedules()) {
        CAPTURE(std::string(to_string(options.schedule)));
        CAPTURE(options.graph_each_stage);
        const std::vector<std::string> thrown = on_ranks(communicators(2), [&](Comm rank) {
            run_rank(rank, {.options = options, .stop_after = rank.rank() == 1 ? 5u : 12u});
        });
        CAPTURE(thrown[0]);
        CHECK(thrown[1] == "");
        CHECK(thrown[0].find("rank 1 of 2 has left: its communicator was destroyed; rank 0 needs it for ") !=
              std::string::npos);
        CHECK(thrown[0].find(" float32 (sum) in stage 'reduce'") != std::string::npos);
    }
}

TEST_CASE("a rank that fails ends the others, whose errors name stage, batch and rank") {
    if (!enough_devices(2))
        return;
    for (const Schedule schedule : {Schedule::serial, Schedule::overlapped}) {
        for (const bool launch_blocking : {false, true}) {
            CAPTURE(std::string(to_string(schedule)));
            CAPTURE(launch_blocking);
            const PipelineOptions options{.schedule = schedule, .launch_blocking = launch_blocking};
            const std::vector<std::string> thrown = on_ranks(communicators(2), [&](Comm rank) {
                run_rank(rank, {.options = options, .failing_rank = 1});
            });
            CAPTURE(thrown[0]);
            CHECK(thrown[1] == "stage 'reduce', batch 5: its callable threw: no gradient");
            CHECK(thrown[0].find("on rank 0 of 2: rank 1 of 2 has left") != std::string::npos);
            if (launch_blocking)
                CHECK(thrown[0].find("stage 'reduce', batch 5:") != std::string::npos);
        }
    }
}

} // namespace collective_pipelines
