// CPU stages: callables without a stream, before, between and after those of streams.
#include <atomic>
#include <chrono>
#include <optional>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "pipeline/capturable.hpp"
#include "pipeline/chain.hpp"
#include "pipeline/cpu_chain.hpp"
#include "pipeline/thrown.hpp"
#include "support/apart_backend.hpp"
#include "support/latch.hpp"

namespace pipeline_cpu_stages {

using namespace sluice;
using namespace sluice::test;

namespace {

#if defined(SLUICE_TEST_APART)
using B = Apart;
#else
using B = TestBackend;
#endif
constexpr std::size_t words = 16;
constexpr std::size_t distinct = 3;

// A slot of a type that no batch is of.
struct Cells {
    PinnedBuffer<Word, B> words, memory;
};
const auto make_cells = [](int) { return Cells{PinnedBuffer<Word, B>(words), PinnedBuffer<Word, B>(words)}; };
const auto pass_on = [](BasicStreamRef<B> stream, PinnedSpan<const Word, B> in, Cells& out) {
    ops::step(stream.get(), out.words.data(), in.data(), out.memory.data(), words);
};

template <class Check>
void for_each_schedule(Check&& check) {
    for (const Schedule schedule : {Schedule::serial, Schedule::overlapped, Schedule::graphed}) {
        for (const int slots : {2, 3, 4}) {
            CAPTURE(std::string(to_string(schedule)));
            CAPTURE(slots);
            static std::uint64_t seed = 0;
            Delay::set({.seed = ++seed, .one_in = 5, .microseconds = 200});
            PipelineOptions options{.schedule = schedule, .slots = slots};
            options.graphs.on_refusal = nullptr;
            check(options);
        }
    }
}

} // namespace

TEST_CASE("CPU stages: those beside streams have no events for their times, and no graphs of whole steps are "
          "timed") {
    CpuChain<B> chain(words, 1);
    const auto events_for_times = [&](PipelineOptions options) {
        const auto before = B::counts().events.created.load();
        const auto without = chain.pipeline<0b010>(options);
        const auto between = B::counts().events.created.load();
        options.timed_batches = 5;
        const auto with = chain.pipeline<0b010>(options);
        return B::counts().events.created.load() - between - (between - before);
    };
#if defined(SLUICE_TEST_APART) || defined(SLUICE_TEST_CUDA)
    constexpr std::size_t stages = 2, rows_with_graphs = 2;
#else
    constexpr std::size_t stages = 3, rows_with_graphs = 4; // The Host backend's streams are threads.
#endif
    CHECK(events_for_times({}) == stages * 20);
    CHECK(events_for_times({.schedule = Schedule::graphed}) == rows_with_graphs * 20);
}

TEST_CASE("CPU stages: first, in the middle and last, and every stage a CPU stage") {
    const Inputs<B> inputs(distinct, words);
    for_each_schedule([&](const PipelineOptions& options) {
        const auto check = [&]<unsigned cpu>(std::integral_constant<unsigned, cpu>) {
            CAPTURE(cpu);
            CpuChain<B> chain(words, 40);
            auto pipeline = chain.template pipeline<cpu>(options);
            for (std::size_t batch = 0; batch < 40; ++batch) {
                pipeline.submit(inputs[batch % distinct]).stays();
                if (batch == 7)
                    pipeline.flush();
                if (batch == 20)
                    pipeline.finish();
            }
            pipeline.finish();
            CHECK(chain.results(40) == chain_results(3, words, repeating(40, distinct)));
        };
        check(std::integral_constant<unsigned, 1>{});
        check(std::integral_constant<unsigned, 2>{});
        check(std::integral_constant<unsigned, 4>{});
        check(std::integral_constant<unsigned, 5>{});
        check(std::integral_constant<unsigned, 7>{});
    });
}

TEST_CASE("CPU stages: lanes work side by side, and what comes after has the results in order") {
    const Inputs<B> inputs(distinct, words);
    for_each_schedule([&](const PipelineOptions& options) {
        std::vector<std::size_t> order;
        std::atomic<int> at_once{0}, most{0};
        const auto slow = [&](const Cells&, Word& out) {
            const int now = ++at_once;
            for (int seen = most; seen < now && !most.compare_exchange_weak(seen, now);) {
            }
            static std::atomic<Word> calls{0};
            std::this_thread::sleep_for(std::chrono::microseconds(100 * (calls++ % 4)));
            out = 0;
            --at_once;
        };
        const auto sink = [&](PinnedSpan<const Word, B> in, const Word&) { order.push_back(in[0]); };
        Pipeline pipeline{Stages{Stage{"first", pass_on}, Stage{"slow", slow, StageOptions<Host>{.lanes = 3}},
                                 Stage{"sink", sink}},
                          Slots{make_cells, [](int) { return Word{}; }}, options};
        for (std::size_t batch = 0; batch < 30; ++batch)
            pipeline.submit(inputs[batch % distinct]).stays();
        pipeline.finish();
        REQUIRE(order.size() == 30);
        for (std::size_t batch = 0; batch < 30; ++batch)
            CHECK(order[batch] == input_word(batch % distinct, 0));
        CHECK(most <= 3);
        if (options.schedule == Schedule::serial)
            CHECK(most == 1);
    });
}

TEST_CASE(
    "CPU stages: what one throws comes back with its stage and batch, and reset makes the pipeline usable") {
    const Inputs<B> inputs(distinct, words);
    for_each_schedule([&](const PipelineOptions& options) {
        const auto check = [&]<std::size_t stage>(std::integral_constant<std::size_t, stage>) {
            for (const std::size_t at : {0u, 4u, 9u}) {
                CAPTURE(stage);
                CAPTURE(at);
                CpuChain<B> chain(words, 10);
                chain.before = [=](std::size_t, std::size_t batch) {
                    if (batch == at)
                        throw std::out_of_range("the image is 3 rows short");
                };
                auto pipeline = chain.template pipeline<1u << stage>(options);
                const auto epoch = [&] {
                    for (std::size_t batch = 0; batch < 10; ++batch)
                        pipeline.submit(inputs[batch % distinct]).stays();
                    pipeline.finish();
                };
                const Caught error(epoch);
                REQUIRE(error);
                CHECK(error->stage() == CpuChain<B>::names[stage]);
                CHECK(error->batch() == at);
                CHECK(contains(error.text(), "the image is 3 rows short"));
                CHECK(error.template nests<std::out_of_range>([](const auto&) { return true; }));
                CHECK(pipeline.failed());
                chain.before = nullptr;
                pipeline.reset();
                chain.clear();
                epoch();
                CHECK(chain.results(10) == chain_results(3, words, repeating(10, distinct)));
            }
        };
        check(std::integral_constant<std::size_t, 0>{});
        check(std::integral_constant<std::size_t, 1>{});
        check(std::integral_constant<std::size_t, 2>{});
    });
}

TEST_CASE("CPU stages: those behind one that threw skip its batch and later ones, and have all before") {
    const Inputs<B> inputs(distinct, words);
    for_each_schedule([&](const PipelineOptions& options) {
        const auto check = [&]<unsigned cpu>(std::integral_constant<unsigned, cpu>) {
            CAPTURE(cpu);
            CpuChain<B> chain(words, 10);
            std::atomic<int> calls_of_last{0};
            chain.before = [&](std::size_t stage, std::size_t batch) {
                if (stage == 0 && batch == 4)
                    throw std::out_of_range("the image is 3 rows short");
                if (stage == 2)
                    ++calls_of_last;
            };
            auto pipeline = chain.template pipeline<cpu>(options);
            const Caught error([&] {
                for (std::size_t batch = 0; batch < 10; ++batch)
                    pipeline.submit(inputs[batch % distinct]).stays();
                pipeline.finish();
            });
            REQUIRE(error);
            CHECK(error->batch() == 4);
            CHECK(calls_of_last.load() == 4);
        };
        check(std::integral_constant<unsigned, 0b101>{}); // the middle one runs on a stream
        check(std::integral_constant<unsigned, 0b111>{});
    });
}

TEST_CASE(
    "CPU stages: of several that throw, the one for the earliest batch is told, and of one batch the first "
    "stage's") {
    struct Made {};
    for (const Schedule schedule : {Schedule::overlapped, Schedule::graphed}) {
        for (const std::size_t late : {std::size_t{2}, std::size_t{5}}) {
            CAPTURE(std::string(to_string(schedule)));
            CAPTURE(late);
            std::atomic<bool> slow_has_begun{
                false}; // Otherwise it would skip the batch that `quick` throws for.
            std::atomic<bool> behind_ran{false};
            std::optional<BasicStreamRef<B>> behind_stream;
            const auto quick_has_failed = [&] {
                try {
                    (void)behind_stream->is_done();
                } catch (const Error&) {
                    return true; // a stream of the Host backend, which waits for a stage that has thrown
                }
                return behind_ran.load();
            };
            Stage slow{"slow", [&](const std::size_t& batch) {
                           if (batch != late)
                               return;
                           slow_has_begun = true;
                           (void)eventually(quick_has_failed);
                           throw std::runtime_error("slow");
                       }};
            Stage quick{"quick", [&](const std::size_t& batch, Made&) {
                            if (batch != 5)
                                return;
                            (void)eventually([&] { return slow_has_begun.load(); });
                            throw std::runtime_error("quick");
                        }};
            Stage behind{"behind", [&](BasicStreamRef<B> stream, const std::size_t& batch, const Made&) {
                             if (batch == 5)
                                 stream.enqueue([&] { behind_ran = true; });
                         }};
            PipelineOptions options{.schedule = schedule};
            options.graphs.on_refusal = nullptr;
            Pipeline pipeline{Stages{slow, quick, behind}, Slots{[](int) { return Made{}; }}, options};
            behind_stream = pipeline.stream(2);
            const Caught error([&] {
                for (std::size_t batch = 0; batch < 8; ++batch)
                    pipeline.submit(batch);
                pipeline.finish();
            });
            REQUIRE(error);
            CHECK(error->batch() == late);
            CHECK(error->stage() == "slow");
            CHECK(contains(error.text(), "its callable threw: slow"));
            pipeline.reset();
            pipeline.submit(std::size_t{0});
            pipeline.finish();
        }
    }
}

TEST_CASE("CPU stages: whichever call meets a fault first, it is reported with the stage and the batch that "
          "failed") {
    const Inputs<B> inputs(distinct, words);
    const auto check = [&](const PipelineOptions& options, bool by_wait) {
        CAPTURE(by_wait);
        CpuChain<B> chain(words, 1009);
        std::atomic<bool> all_submitted{false};
        chain.before = [&](std::size_t, std::size_t batch) {
            if (batch < 4)
                return;
            all_submitted.wait(false);
            throw std::out_of_range("the image is 3 rows short");
        };
        auto pipeline = chain.template pipeline<2>(options);
        std::vector<BatchRead> reads;
        for (std::size_t batch = 0; batch < 9; ++batch)
            reads.push_back(pipeline.submit(inputs[batch % distinct]));
        all_submitted = true;
        all_submitted.notify_all();
        const Caught error([&] {
            if (by_wait) // Its first stage writes where the failed one reads, so that it fails with it.
                reads.back().wait();
            for (int more = 0; more < 1000; ++more) {
                reads.push_back(pipeline.submit(inputs[0]));
                std::this_thread::sleep_for(std::chrono::milliseconds(1));
            }
        });
        REQUIRE(error);
        CHECK(error->stage() == "second");
        CHECK(error->batch() == 4);
        CHECK(contains(error.text(), "the image is 3 rows short"));
        pipeline.reset();
    };
    for_each_schedule([&](const PipelineOptions& options) {
        check(options, true);
        check(options, false);
    });
}

TEST_CASE("CPU stages: a pipeline is destroyed while a CPU stage is behind, or has thrown") {
    const Inputs<B> inputs(distinct, words);
    for_each_schedule([&](const PipelineOptions& options) {
        for (const bool throws : {false, true}) {
            CpuChain<B> chain(words, 6);
            chain.before = [=](std::size_t, std::size_t batch) {
                std::this_thread::sleep_for(std::chrono::microseconds(300));
                if (throws && batch == 2)
                    throw std::runtime_error("no");
            };
            {
                auto pipeline = chain.template pipeline<2>(options);
                try {
                    for (std::size_t batch = 0; batch < 6; ++batch)
                        pipeline.submit(inputs[batch % distinct]).stays();
                } catch (const Error&) {
                    CHECK(throws);
                }
            }
            if (!throws)
                CHECK(chain.results(6) == chain_results(3, words, repeating(6, distinct)));
        }
    });
}

TEST_CASE("CPU stages: one that takes a host stream may enqueue there, and what that throws is reported") {
    const Inputs<B> inputs(distinct, words);
    for_each_schedule([&](const PipelineOptions& options) {
        for (const bool throws : {false, true}) {
            CAPTURE(throws);
            std::vector<Word> seen;
            std::size_t calls = 0;
            const auto sink = [&](HostStreamRef stream, PinnedSpan<const Word, B> in, const Cells&) {
                stream.enqueue([&seen, &calls, in, throws] {
                    if (throws && calls++ == 5)
                        throw std::out_of_range("bad pixel");
                    seen.push_back(in[0]);
                });
            };
            Pipeline pipeline{
                Stages{Stage{"first", pass_on}, Stage{"sink", sink, StageOptions<Host>{.graphed = false}}},
                Slots{make_cells}, options};
            const Caught error([&] {
                for (std::size_t batch = 0; batch < 10; ++batch)
                    pipeline.submit(inputs[batch % distinct]).stays();
                pipeline.finish();
            });
            if (!throws) {
                CHECK(error.text() == "");
                CHECK(seen.size() == 10);
                continue;
            }
            REQUIRE(error);
            CHECK(contains(error.text(), "bad pixel"));
            if (!std::is_same_v<B, Host>) // there it is a stage like any other
                CHECK(error->stage() == "sink");
            pipeline.reset();
            seen.clear();
            for (std::size_t batch = 0; batch < 10; ++batch)
                pipeline.submit(inputs[batch % distinct]).stays();
            pipeline.finish();
            CHECK(seen.size() == 10);
        }
    });
}

TEST_CASE(
    "CPU stages: a slow one holds the others back by as many batches as there are slots, and loses none") {
    const Inputs<B> inputs(distinct, words);
    std::atomic<std::size_t> made{0}, taken{0}, furthest{0};
    const auto first = [&](PinnedSpan<const Word, B> in, Word& out) {
        out = in[0];
        const std::size_t ahead = ++made - taken;
        if (ahead > furthest)
            furthest = ahead;
    };
    std::vector<Word> seen;
    const auto sink = [&](const Word& in) {
        std::this_thread::sleep_for(std::chrono::milliseconds(2));
        seen.push_back(in);
        ++taken;
    };
    Pipeline pipeline{Stages{Stage{"first", first}, Stage{"sink", sink},
                             Stage{"idle", [](BasicStreamRef<B>, PinnedSpan<const Word, B>) {}}},
                      Slots{[](int) { return Word{}; }}, PipelineOptions{.slots = 3}};
    for (std::size_t batch = 0; batch < 40; ++batch)
        pipeline.submit(inputs[batch % distinct]).stays();
    pipeline.finish();
    REQUIRE(seen.size() == 40);
    for (std::size_t batch = 0; batch < 40; ++batch)
        CHECK(seen[batch] == input_word(batch % distinct, 0));
    CHECK(furthest <= 4); // three slots, and the one whose count is not yet up
    CHECK(furthest >= 2);
}

} // namespace pipeline_cpu_stages
