// StageOptions::multiprocessors on a device: which multiprocessors the stages' kernels run on, and that results stay as they are.
#include <array>
#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "pipeline/capturable.hpp"
#include "pipeline/chain.hpp"
#include "pipeline/places.cuh"
#include "support/alive.hpp"
#include "support/can_share.hpp"
#include "support/error_text.hpp"

namespace pipeline_shares_gpu {

using namespace sluice;
using namespace sluice::test;

namespace {

__global__ void count(unsigned* counter) { ++*counter; }

// Five times a loop.
__global__ void count_and_decide(unsigned* counter, ConditionSetter again) {
    again.set(++*counter % 5 != 0 ? 1 : 0);
}

// Whether this machine can share its device; says where it cannot.
bool is_shared() {
    const bool can = can_share<Cuda>();
    if (!can)
        MESSAGE("not tested: " << text_of([] { (void)Cuda::share_unit(); }));
    return can;
}

struct Way {
    const char* name;
    PipelineOptions options;
};
std::vector<Way> ways() {
    std::vector<Way> all{
        {"overlapped", {.schedule = Schedule::overlapped}},
        {"graphed", {.schedule = Schedule::graphed}},
        {"graphed, 4 steps", {.schedule = Schedule::graphed, .steps_per_graph = 4}},
        {"graphed, each stage", {.schedule = Schedule::graphed, .graph_each_stage = true}},
        {"automatic", {.schedule = Schedule::automatic}},
        {"graphed, checked", {.schedule = Schedule::graphed}},
        {"graphed, each stage, noted",
         {.schedule = Schedule::graphed, .graph_each_stage = true, .timed_batches = 16}},
    };
    all[5].options.graphs.check = true;
    return all;
}

bool has_graphs(const Way& way) { return way.options.schedule == Schedule::graphed; }

} // namespace

TEST_CASE(
    "Shares: kernels of two stages run on different multiprocessors, as many as was said, in graphs too") {
    if (!is_shared())
        return;
    const int unit = Cuda::share_unit(), all = Cuda::multiprocessors();
    for (const Way& way : ways()) {
        for (const int lanes : {1, 2}) {
            const std::string name = way.name;
            CAPTURE(name);
            CAPTURE(lanes);
            Places places(2);
            const auto at = [&](std::size_t stage) {
                return [&places, stage](CudaStreamRef stream, int) { places.note(stream, stage); };
            };
            Pipeline pipeline{
                Stages{Stage{"detect", at(0),
                             StageOptions<Cuda>{.lanes = lanes, .multiprocessors = unit > 1 ? unit - 1 : 1}},
                       Stage{"heavy", at(1)}},
                way.options};
            CHECK(pipeline.multiprocessors(0) == unit);
            CHECK(pipeline.multiprocessors(1) == all - unit);
            CHECK(contains(pipeline.shares(), "detect has " + std::to_string(unit)));
            CHECK(pipeline.stream(0).device() == Cuda::current_device());
            // `automatic` tries its ways on the first.
            const int batches = way.options.schedule == Schedule::automatic ? 400 : 48;
            for (int batch = 0; batch < batches; ++batch)
                pipeline.submit(0);
            pipeline.finish();
            const auto detect = places.of(0), heavy = places.of(1);
            CHECK(size_of(detect) == unit);
            CHECK(size_of(heavy) == all - unit);
            CHECK(are_disjoint(detect, heavy));
            if (has_graphs(way))
                CHECK(pipeline.graph_counters().replays > 0);
            CHECK(pipeline.graph_counters().refusals == 0);
        }
    }
}

TEST_CASE("Shares: several stages that ask, of different sizes, and one that has the rest") {
    if (!is_shared())
        return;
    const int unit = Cuda::share_unit(), all = Cuda::multiprocessors();
    for (const Way& way : ways()) {
        const std::string name = way.name;
        CAPTURE(name);
        Places places(3);
        const auto at = [&](std::size_t stage) {
            return [&places, stage](CudaStreamRef stream, int) { places.note(stream, stage); };
        };
        Pipeline pipeline{
            Stages{Stage{"heavy", at(0)},
                   Stage{"one", at(1), StageOptions<Cuda>{.priority = -1, .multiprocessors = unit}},
                   Stage{"three", at(2), StageOptions<Cuda>{.multiprocessors = 2 * unit + 1}}},
            way.options};
        for (int batch = 0; batch < 64; ++batch)
            pipeline.submit(0);
        pipeline.finish();
        const auto heavy = places.of(0), one = places.of(1), three = places.of(2);
        CHECK(size_of(one) == unit);
        CHECK(size_of(three) == 3 * unit);
        CHECK(size_of(heavy) == all - 4 * unit);
        CHECK(are_disjoint(one, three));
        CHECK(are_disjoint(one, heavy));
        CHECK(are_disjoint(three, heavy));
        CHECK(pipeline.stream(1).priority() <= pipeline.stream(0).priority());
    }
}

TEST_CASE("Shares: serially each stage has the whole device") {
    if (!is_shared())
        return;
    Places places(1);
    Pipeline pipeline{Stages{Stage{"only", [&](CudaStreamRef stream, int) { places.note(stream, 0); },
                                   StageOptions<Cuda>{.multiprocessors = 1}},
                             Stage{"other", [](CudaStreamRef, int) {}}},
                      {.schedule = Schedule::serial}};
    for (int batch = 0; batch < 8; ++batch)
        pipeline.submit(0);
    pipeline.finish();
    CHECK(size_of(places.of(0)) == Cuda::multiprocessors());
    CHECK(pipeline.multiprocessors(0) == 0);
}

TEST_CASE("Contract 3: all schedules give the same results with shares, and nothing is left behind") {
    if (!is_shared())
        return;
    constexpr std::size_t words = 256, batches = 24;
    const Inputs<Cuda> inputs(batches, words);
    const auto expected = chain_results(3, words, batches_from(0, batches));
    const Alive before = alive_now<Cuda>();
    std::vector<Way> all = ways();
    all.push_back({"serial", {.schedule = Schedule::serial}});
    for (const Way& way : all) {
        const std::string name = way.name;
        CAPTURE(name);
        for (std::size_t asks = 0; asks < 3; ++asks) {
            CAPTURE(asks);
            Chain<Cuda> chain(3, words, batches);
            std::array<StageOptions<Cuda>, 3> options;
            options[asks].multiprocessors = 8;
            PipelineOptions pipeline_options = way.options;
            pipeline_options.graphs.on_refusal = nullptr; // the last stage of a chain keeps count on the host
            if (way.options.schedule == Schedule::automatic)
                options[2].graphed = false;
            auto pipeline = chain.pipeline<3>(pipeline_options, options);
            for (std::size_t batch = 0; batch < batches; ++batch) {
                pipeline.submit(inputs[batch]).stays();
                if (batch == 9)
                    pipeline.flush();
            }
            pipeline.finish();
            CHECK(chain.results(batches) == expected);
        }
    }
    CHECK(alive_now<Cuda>() == before);
}

TEST_CASE("Shares: whole steps in graphs, CPU stages and sources give the same results with shares") {
    if (!is_shared())
        return;
    constexpr std::size_t words = 256, count = 60, distinct = 3;
    // It outlives the streams that have read its batches.
    Source source{[](int) { return PinnedBuffer<Word, Cuda>(words); },
                  [](std::size_t index, PinnedBuffer<Word, Cuda>& out) {
                      for (std::size_t i = 0; i < words; ++i)
                          out[i] = input_word(index % distinct, i);
                  },
                  SourceOptions<Cuda>{.workers = 1, .slots = 6, .batches = count}};
    for (const Way& way : ways()) {
        const std::string name = way.name;
        CAPTURE(name);
        CapturableStages<Cuda> stages(words);
        {
            Pipeline pipeline{Stages{Stage{"first",
                                           [first = stages.first()](
                                               CudaStreamRef stream, const PinnedBuffer<Word, Cuda>& in,
                                               DeviceBuffer<Word, Cuda>& out) { first(stream, in, out); },
                                           StageOptions<Cuda>{.multiprocessors = 8}},
                                     Stage{"middle", stages.middle()}, Stage{"last", stages.last(2)}},
                              Slots{stages.make_cells(), stages.make_cells()}, way.options};
            source.rewind();
            for (const auto& batch : source)
                pipeline.submit(batch);
            pipeline.finish();
        }
        CHECK(stages.values() == expected_memories(3, words, repeating(count, distinct)));
    }
    // Streams wait for threads, and threads for streams.
    std::vector<Word> sums;
    PinnedBuffer<Word, Cuda> in(words);
    for (std::size_t i = 0; i < words; ++i)
        in[i] = static_cast<Word>(i);
    struct Out {
        PinnedBuffer<Word, Cuda> words{256};
    };
    {
        Pipeline pipeline{Stages{Stage{"fetch",
                                       [](CudaStreamRef stream, const PinnedBuffer<Word, Cuda>& from,
                                          Out& out) { copy(stream, out.words, from); },
                                       StageOptions<Cuda>{.multiprocessors = 8}},
                                 Stage{"sum",
                                       [&](const Out& out) {
                                           Word sum = 0;
                                           for (std::size_t i = 0; i < words; ++i)
                                               sum += out.words[i];
                                           sums.push_back(sum);
                                       }}},
                          Slots{[](int) { return Out{}; }}};
        for (int batch = 0; batch < 10; ++batch)
            pipeline.submit(in).stays();
        pipeline.finish();
    }
    CHECK(sums == std::vector<Word>(10, words * (words - 1) / 2));
}

TEST_CASE("Shares: captures on a stream of a share keep it") {
    if (!is_shared())
        return;
    const Alive before = alive_now<Cuda>();
    {
        void* shares[2] = {};
        const int counts[] = {2 * Cuda::share_unit()};
        const int rest = Cuda::create_shares(counts, 1, true, shares);
        CHECK(rest == Cuda::multiprocessors() - counts[0]);
        {
            Places places(3);
            const CudaStream mine{StreamOptions{.share = shares[0]}},
                other{StreamOptions{.share = shares[1]}};
            CHECK(Cuda::share_of(mine.get()) == shares[0]);
            CHECK(Cuda::share_of(CudaStream{}.get()) == nullptr);
            GraphCapture<int> graphs;
            for (int run = 0; run < 6; ++run) {
                graphs.run(mine, 0, [&](CudaStreamRef stream) { places.note(stream, 0); });
                graphs.run(other, 1, [&](CudaStreamRef stream) { places.note(stream, 1); });
            }
            // On whatever stream a graph is launched.
            const BasicGraph<Cuda> by_hand =
                capture(mine, [&](CudaStreamRef stream) { places.note(stream, 2); });
            const BasicGraphExec<Cuda> executable(by_hand);
            const CudaStream whole;
            executable.launch(other);
            executable.launch(whole);
            mine.sync();
            other.sync();
            whole.sync();
            CHECK(size_of(places.of(2)) == counts[0]);
            CHECK(are_disjoint(places.of(1), places.of(2)));
            CHECK(graphs.counters().replays > 0);
            CHECK(size_of(places.of(0)) == counts[0]);
            CHECK(size_of(places.of(1)) == rest);
            CHECK(are_disjoint(places.of(0), places.of(1)));
            CHECK(contains(
                text_of([&] { CudaStream blocking(StreamOptions{.blocking = true, .share = shares[0]}); }),
                "such a stream is non-blocking"));
        }
        Cuda::destroy_share(shares[0]);
        Cuda::destroy_share(shares[1]);
    }
    CHECK(alive_now<Cuda>() == before);
}

TEST_CASE("Shares: small results of a stage with a share come back whole") {
    if (!is_shared())
        return;
    for (const Schedule schedule : {Schedule::serial, Schedule::overlapped, Schedule::graphed}) {
        CAPTURE(static_cast<int>(schedule));
        DeviceBuffer<unsigned, Cuda> counter(1);
        const CudaStream stream;
        fill_bytes(stream, counter, 0);
        stream.sync();
        std::vector<unsigned> results;
        Readback<unsigned, Cuda> readback(
            1, [&](std::size_t, std::span<const unsigned> of) { results.push_back(of[0]); }, 4);
        {
            Pipeline pipeline{Stages{Stage{"counts",
                                           [&](CudaStreamRef on, int) {
                                               count<<<1, 1, 0, on.get()>>>(counter.data());
                                               readback.push(on, counter);
                                           },
                                           StageOptions<Cuda>{.multiprocessors = 8}},
                                     Stage{"other", [](CudaStreamRef on, int) { ops::spin(on.get(), 10); }}},
                              {.schedule = schedule}};
            for (int batch = 0; batch < 40; ++batch)
                pipeline.submit(0);
            pipeline.finish();
        }
        readback.finish();
        std::vector<unsigned> expected;
        for (unsigned batch = 1; batch <= 40; ++batch)
            expected.push_back(batch);
        CHECK(results == expected);
    }
}

TEST_CASE("Shares: work with a condition runs eagerly beside graphs") {
    if (!is_shared())
        return;
    DeviceBuffer<unsigned, Cuda> counter(1);
    const CudaStream stream;
    fill_bytes(stream, counter, 0);
    stream.sync();
    Condition again;
    const auto loop = [&](CudaStreamRef on, int) {
        while_nonzero(on, again, [&](CudaStreamRef body) {
            count_and_decide<<<1, 1, 0, body.get()>>>(counter.data(), again.setter(body));
        });
    };
    PipelineOptions options{.schedule = Schedule::graphed};
    options.graphs.on_refusal = nullptr;
    {
        Pipeline pipeline{Stages{Stage{"loop", loop, StageOptions<Cuda>{.multiprocessors = 8}},
                                 Stage{"other", [](CudaStreamRef on, int) { ops::spin(on.get(), 10); }}},
                          options};
        for (int batch = 0; batch < 12; ++batch)
            pipeline.submit(0);
        pipeline.finish();
        CHECK(pipeline.graph_counters().refusals > 0);
    }
    std::vector<unsigned> counted(1);
    copy_and_wait(stream, counted, counter);
    CHECK(counted[0] == 12 * 5);
}

TEST_CASE("Shares: more than the device has is refused in one sentence") {
    if (!is_shared())
        return;
    const int all = Cuda::multiprocessors();
    const auto refusal = [](int asked) {
        return text_of([&] {
            Pipeline pipeline{Stages{
                Stage{"detect", [](CudaStreamRef, int) {}, StageOptions<Cuda>{.multiprocessors = asked}},
                Stage{"heavy", [](CudaStreamRef, int) {}}}};
        });
    };
    const std::string text = refusal(all);
    CHECK(contains(text, "stage 'detect' asks for " + std::to_string(all) + " multiprocessors of its own"));
    CHECK(contains(text, "in groups of " + std::to_string(Cuda::share_unit())));
    CHECK(refusal(Cuda::share_unit()).empty());
}

} // namespace pipeline_shares_gpu
