// Stages that make one output for several batches, and those behind them.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <sluice/report.hpp>

#include "pipeline/rates_case.hpp"
#include "pipeline/thrown.hpp"
#include "support/apart_backend.hpp"
#include "support/sanitized.hpp"

namespace pipeline_rates {

using namespace sluice;
using namespace sluice::test;

TEST_CASE("rates: run gives one result for several batches, and the last one of as many as there are") {
    for_each_way([](const PipelineOptions& options) {
        for (const int every : {1, 2, 5}) {
            CAPTURE(every);
            auto pipeline = make_pipeline(every, options);
            const auto size = static_cast<std::size_t>(every);
            std::size_t first = 0;
            for (const std::size_t count : {13u, 10u, 1u, 27u}) {
                CAPTURE(count);
                const Batches batches(count);
                std::size_t seen = 0;
                for (const Sum& sum : pipeline.run<Sum>(batches.all)) {
                    const std::size_t of = std::min(size, count - seen);
                    CHECK(sum.words[0] == sum_of(seen, of));
                    CHECK(sum.turn[0] == 100 * (of - 1) + size);
                    seen += of;
                }
                CHECK(seen == count);
                first += count;
                CHECK(pipeline.submitted() == first);
            }
            pipeline.finish();
            CHECK(pipeline.completed() == first);
        }
    });
}

TEST_CASE("rates: what the last stage makes of several batches is one result") {
    for_each_way([](const PipelineOptions& options) {
        const Stage add{"add",
                        [](Ref stream, const PinnedSpan<const Word, B>& batch, Sum& out, const Turn& turn) {
                            if (turn.first())
                                copy(stream, out.words, batch);
                            else
                                ops::add_words(stream.get(), out.words.data(), batch.data(), 1);
                        },
                        StageOptions<B>{.every = 4}};
        Pipeline pipeline{Stages{add}, Slots{make_sum}, options};
        for (const std::size_t count : {18u, 8u, 3u}) {
            CAPTURE(count);
            const Batches batches(count);
            std::size_t seen = 0;
            for (const Sum& sum : pipeline.run(batches.all)) {
                const std::size_t of = std::min<std::size_t>(4, count - seen);
                CHECK(sum.words[0] == sum_of(seen, of));
                seen += of;
            }
            CHECK(seen == count);
        }
    });
}

TEST_CASE("rates: a break loses nothing, and what is not whole yet goes on") {
    const Batches batches(22);
    auto pipeline = make_pipeline(4, {});
    std::vector<Word> seen;
    for (const Sum& sum : pipeline.run<Sum>(batches.all)) {
        seen.push_back(sum.words[0]);
        if (seen.size() == 2)
            break;
    }
    const std::size_t submitted = pipeline.submitted();
    for (const Sum& sum : pipeline.drain<Sum>())
        seen.push_back(sum.words[0]);
    CHECK(seen.size() == submitted / 4);
    std::vector<PinnedSpan<const Word, B>> rest(batches.all.begin() + static_cast<std::ptrdiff_t>(submitted),
                                                batches.all.end());
    for (const Sum& sum : pipeline.run<Sum>(rest))
        seen.push_back(sum.words[0]);
    REQUIRE(seen.size() == 6);
    for (std::size_t i = 0; i < 6; ++i)
        CHECK(seen[i] == sum_of(4 * i, i < 5 ? 4 : 2));
}

TEST_CASE("rates: results that loops have left come in order, however many ended with fewer batches") {
    for_each_way([](const PipelineOptions& options) {
        const Batches batches(5);
        auto pipeline = make_pipeline(4, options);
        std::vector<Word> seen;
        for (int loop = 0; loop < 8; ++loop) {
            for (const Sum& sum : pipeline.run<Sum>(batches.all)) {
                seen.push_back(sum.words[0]);
                if (loop < 7)
                    break;
            }
        }
        // With one slot, a loop that is left has not come to the fifth batch.
        const bool ends = options.slots > 1;
        REQUIRE(seen.size() == (ends ? 10 : 9));
        for (std::size_t i = 0; i < seen.size(); ++i)
            CHECK(seen[i] == ((ends ? i % 2 == 0 : i < 8) ? sum_of(0, 4) : sum_of(4, 1)));
    });
}

TEST_CASE("rates: after an error of the source, or a reset, all begin anew") {
    auto pipeline = make_pipeline(4, {.schedule = Schedule::graphed, .graphs = {.on_refusal = nullptr}});
    Source source{[](int) { return PinnedBuffer<Word, B>(1); },
                  [](std::size_t index, PinnedBuffer<Word, B>& out) {
                      if (index == 10)
                          throw std::runtime_error("no more");
                      out[0] = input_word(index, 0);
                  },
                  SourceOptions<B>{.workers = 1, .slots = 2}};
    Stage load{"load", [](Ref stream, const PinnedBuffer<Word, B>& batch, Block& out) {
                   copy(stream, out.words, batch);
               }};
    Stage give{"give", [](Ref stream, const Sum& sum, Block& out) { copy(stream, out.words, sum.words); }};
    Pipeline failing{Stages{load, add_blocks(4), give}, Slots{make_block, make_sum, make_block}};
    std::vector<Word> seen;
    const std::string text = text_of([&] {
        for (const Block& block : failing.run(source))
            seen.push_back(block.words[0]);
    });
    CHECK(contains(text, "batch 10"));
    CHECK(seen == std::vector<Word>{sum_of(0, 4), sum_of(4, 4), sum_of(8, 2)});

    const Batches batches(9);
    for (std::size_t time = 0; time < 3; ++time) {
        for (std::size_t batch = 0; batch < 5; ++batch)
            pipeline.submit(batches.all[batch]).stays();
        pipeline.reset(); // in the middle of the second four
        std::vector<Word> all;
        for (const Sum& sum : pipeline.run<Sum>(batches.all))
            all.push_back(sum.words[0]);
        CHECK(all == std::vector<Word>{sum_of(0, 4), sum_of(4, 4), sum_of(8, 1)});
    }
}

TEST_CASE("rates: what was made of several batches is taken with that before it") {
    for_each_way([](const PipelineOptions& options) {
        const Stage both{"both", [](Ref stream, const Last<2, Sum>& sums, Block& out) {
                             copy(stream, out.words, sums[0].words);
                             if (sums.size() == 2)
                                 ops::add_words(stream.get(), out.words.data(), sums[1].words.data(), 1);
                         }};
        Pipeline pipeline{Stages{load_blocks(), add_blocks(3), both}, Slots{make_block, make_sum, make_block},
                          options};
        const Batches batches(25);
        for (int time = 0; time < 2; ++time) {
            std::size_t result = 0;
            const Word before = time == 0 ? 0 : sum_of(24, 1); // the last one, of one batch
            for (const Block& block : pipeline.run(batches.all)) {
                const Word last = result == 0 ? before : sum_of(3 * (result - 1), 3);
                CHECK(block.words[0] == sum_of(3 * result, result < 8 ? 3 : 1) + last);
                ++result;
            }
            CHECK(result == 9);
        }
    });
}

namespace {

// That a CPU stage finds what was made of every second batch, where some stages run for each.
template <class A>
void check_cpu_stage_behind() {
    for (const Schedule schedule : {Schedule::serial, Schedule::overlapped, Schedule::graphed}) {
        CAPTURE(std::string(to_string(schedule)));
        struct Loaded {
            PinnedBuffer<Word, A> words{1};
        };
        struct Kept {
            PinnedBuffer<Word, A> words{1};
        };
        const Inputs<A> inputs(16, 1);
        std::vector<Word> seen, expected;
        Pipeline pipeline{
            Stages{Stage{"load", [](BasicStreamRef<A> stream, const PinnedSpan<const Word, A>& batch,
                                    Loaded& out) { copy(stream, out.words, batch); }},
                   Stage{"keep",
                         [](BasicStreamRef<A> stream, const Loaded& in, Kept& out, const Turn&) {
                             copy(stream, out.words, in.words);
                         },
                         StageOptions<A>{.every = 2}},
                   Stage{"look", [&](const Kept& kept) { seen.push_back(kept.words[0]); }}},
            Slots{[](int) { return Loaded{}; }, [](int) { return Kept{}; }},
            PipelineOptions{.schedule = schedule, .graphs = {.on_refusal = nullptr}}};
        for (std::size_t batch = 0; batch < 16; ++batch) {
            pipeline.submit(inputs[batch]).stays();
            if (batch % 2 == 1)
                expected.push_back(input_word(batch, 0));
        }
        pipeline.finish();
        CHECK(seen == expected);
    }
}

} // namespace

TEST_CASE("rates: a CPU stage reads what was made of several batches") {
    check_cpu_stage_behind<B>();
#if !defined(SLUICE_TEST_CUDA)
    check_cpu_stage_behind<Apart>(); // on a thread of its own, as beside a device's streams
#endif
}

TEST_CASE("rates: notes and reports are of the batches for which a stage ran") {
    for (const Schedule schedule : {Schedule::serial, Schedule::overlapped, Schedule::graphed}) {
        CAPTURE(std::string(to_string(schedule)));
        PipelineOptions options{.schedule = schedule, .timed_batches = 16};
        options.graphs.on_refusal = nullptr;
        auto pipeline = make_pipeline(4, options);
        const Batches batches(64);
        for (const auto& batch : batches.all)
            pipeline.submit(batch).stays();
        pipeline.finish();
        std::size_t runs[3] = {};
        for (const StageTime& time : pipeline.stage_times()) {
            if (time.stage >= 3)
                continue;
            ++runs[time.stage];
            CHECK(time.end >= time.begin);
            if (time.stage == 2)
                CHECK(time.batch % 4 == 3);
        }
        CHECK(runs[0] == 16); // all that are noted, also those for which `give` does not run
        CHECK(runs[1] == 16);
        CHECK(runs[2] == 4);
        const TimelineReport report = report_of(pipeline);
        CHECK(contains(to_table(report), "give"));
        CHECK(report.latency.batches == 16); // until the last stage that ran for each
    }
}

// Each turn in each slot is a graph.
TEST_CASE("rates: a stage of many turns has a graph for each, or says how many there would be") {
    static std::vector<std::string> told;
    const auto run = [](int every, std::size_t capacity) {
        told.clear();
        PipelineOptions options{.schedule = Schedule::graphed};
        options.graphs.on_refusal = [](const char* reason) { told.emplace_back(reason); };
        options.graphs.capacity = capacity;
        const Stage load{"load", [](Ref stream, const int&, Block& out) {
                             ops::add_racing(stream.get(), out.words.data(), zero(), 1, 1);
                         }};
        const Stage give{"give",
                         [](Ref stream, const Sum& sum, Sum& out) { copy(stream, out.words, sum.words); }};
        AnyPipeline<int, B> pipeline(Stages{load, add_blocks(every), give},
                                     Slots{make_block, make_sum, make_sum}, options);
        for (int batch = 0; batch < 6 * every; ++batch)
            pipeline.submit(0);
        pipeline.finish();
        return pipeline.graph_counters();
    };
    {
        const GraphCounters counters = run(100, 256);
        CHECK(told.empty());
        CHECK(counters.refusals == 0);
        CHECK(counters.eager.no_place == 0);
        CHECK(counters.replays >= 2 * 600 / 2);
    }
    {
        const GraphCounters counters = run(100, 199);
        REQUIRE(told.size() == 1);
        CHECK(told[0] ==
              "capture refused: stage 'add' meets turns and slots in 200 ways, each a graph of its own, "
              "and 199 are kept; expected no more (GraphOptions::capacity), or "
              "StageOptions{.graphed = false}");
        CHECK(counters.refusals == 1);
        CHECK(counters.eager.no_place == 600);
        CHECK(counters.replays >= 500); // The other stages' work is replayed.
    }
}

TEST_CASE("rates: what does not go together is refused") {
    const Stage load{"load", [](Ref, const int&, Block&) {}};
    const auto with = [&](int every, int lanes) {
        return Stage{"add", [](Ref, const Block&, Sum&) {}, StageOptions<B>{.lanes = lanes, .every = every}};
    };
    const Stage give{"give", [](Ref, const Sum&) {}};
    const auto text = [&](auto... stages) {
        return text_of([&] { Pipeline pipeline{Stages{stages...}, Slots{make_block, make_sum}}; });
    };
    CHECK(text(load, with(0, 1), give) == "stage 'add': StageOptions::every is 0; expected 1 to 16777216");
    CHECK(text(load, with(4, 2), give) ==
          "stage 'add': a stage with StageOptions::every, or one behind it, cannot have lanes, got 2");
    CHECK(text(load, with(4, 1), Stage{"give", [](Ref, const Sum&) {}, StageOptions<B>{.lanes = 3}}) ==
          "stage 'give': a stage with StageOptions::every, or one behind it, cannot have lanes, got 3");
    CHECK(text(load, with(4, 1), Stage{"give", [](Ref, const Sum&, const int&) {}}) ==
          "stage 'give': it runs once for 4 batches, and cannot take the batch itself; let an earlier stage "
          "hand on "
          "what it needs");
    CHECK(text(load, with(1, 1), Stage{"give", [](Ref, const Sum&) {}, StageOptions<B>{.every = 2}}) ==
          "stage 'give': StageOptions::every is for a stage that makes something of its own; this one makes "
          "nothing");
    CHECK(text_of([&] {
              const Stage change{"change", [](Ref, InPlace<Block>&) {}, StageOptions<B>{.every = 2}};
              Pipeline pipeline{Stages{load, change}, Slots{make_block}};
          }) == "stage 'change': StageOptions::every is for a stage that makes something of its own; this "
                "one changes "
                "what another one makes");
}

TEST_CASE(
    "rates: serially the first stage comes behind one elsewhere that was the last for the batch before") {
    std::atomic<std::size_t> looked{0};
    std::vector<std::size_t> looked_at_load;
    const Stage load{"load", [&](Ref stream, const int&, Block&) {
                         stream.enqueue([&] { looked_at_load.push_back(looked); });
                     }};
    const Stage add{"add",
                    [](Ref stream, const Block& block, Sum& out) { copy(stream, out.words, block.words); },
                    StageOptions<B>{.every = 4}};
    const Stage look{"look",
                     [&](Ref stream, const Block&) {
                         stream.enqueue([&] {
                             std::this_thread::sleep_for(
                                 std::chrono::milliseconds(2)); // so that others may come before
                             ++looked;
                         });
                     },
                     StageOptions<B>{.device = B::device_count() > 1 ? 1 : 0}};
    const Stage give{"give", [](Ref, const Sum&) {}};
    Pipeline pipeline{
        Stages{load, add, look, give}, Slots{make_block, make_sum}, {.schedule = Schedule::serial}};
    for (int batch = 0; batch < 8; ++batch)
        (void)pipeline.submit(batch);
    pipeline.finish();
    CHECK(looked == 8);
    CHECK(looked_at_load == std::vector<std::size_t>{0, 1, 2, 3, 4, 5, 6, 7});
}

TEST_CASE("rates: a Turn without StageOptions::every is the only one") {
    Turn seen{7, 7};
    const Stage load{"load", [&](Ref, const int&, Turn turn) { seen = turn; }};
    Pipeline pipeline{Stages{load}};
    (void)pipeline.submit(1);
    pipeline.finish();
    CHECK(seen.first());
    CHECK(seen.last());
    CHECK(seen.count == 1);
}

} // namespace pipeline_rates
