// Contract 9: one thread drives a pipeline; separate pipelines are independent.
#include <exception>
#include <functional>
#include <latch>
#include <string>
#include <thread>
#include <type_traits>
#include <vector>

#include "pipeline/capturable.hpp"
#include "pipeline/chain.hpp"
#include "support/apart_backend.hpp"

namespace pipeline_threads {

using namespace sluice;
using namespace sluice::test;

namespace {

using B = TestBackend;
constexpr std::size_t words = 32;

// Calls every function of a pipeline that drives it, and returns what each is refused with.
template <class P, class Backend>
std::vector<std::string> refusals(P& pipeline, const Inputs<Backend>& inputs,
                                  const BasicStream<Backend>& stream) {
    return {text_of([&] { pipeline.submit(inputs[0]).stays(); }),
            text_of([&] { pipeline.flush(); }),
            text_of([&] { pipeline.flush(stream); }),
            text_of([&] { pipeline.wait_for(stream); }),
            text_of([&] { pipeline.finish(); }),
            text_of([&] { pipeline.reset(); })};
}

void check_refusals(const std::vector<std::string>& texts) {
    const char* names[] = {"submit", "flush", "flush", "wait_for", "finish", "reset"};
    REQUIRE(texts.size() == std::size(names));
    for (std::size_t i = 0; i < texts.size(); ++i)
        CHECK(texts[i] == std::string(names[i]) +
                              ": the pipeline is in use, by another thread or by this call's own stage; "
                              "drive a pipeline from one thread, and not from within its stages");
}

// Its thread does not drive the pipeline, and would wait for itself, or for the stages behind it.
template <class Backend>
void check_own_cpu_stage(Schedule schedule) {
    CAPTURE(std::string(to_string(schedule)));
    struct Made {
        PinnedBuffer<Word, Backend> words{pipeline_threads::words};
    };
    struct Seen {
        Word word = 0;
    };
    const Inputs<Backend> inputs(1, words);
    const BasicStream<Backend> stream;
    std::vector<std::string> texts;
    std::function<void()> call;
    std::latch called(1);
    Stage load{"load", [](BasicStreamRef<Backend> on, PinnedSpan<const Word, Backend> in, Made& out) {
                   copy(on, out.words, in);
               }};
    Stage look{"look", [&](const Made& in, Seen& out) {
                   out.word = in.words[0];
                   call();
                   called.count_down();
               }};
    Word last = 0;
    Stage keep{"keep", [&](const Seen& in) { last = in.word; }};
    Pipeline pipeline{Stages{load, look, keep},
                      Slots{[](int) { return Made{}; }, [](int) { return Seen{}; }},
                      {.schedule = schedule, .in_flight = 1}};
    call = [&] { texts = refusals(pipeline, inputs, stream); };
    pipeline.submit(inputs[0]).stays();
    pipeline.flush();
    called.wait(); // meanwhile no other thread is in a call
    pipeline.finish();
    check_refusals(texts);
    CHECK(last == inputs[0][0]);

    call = [&] { pipeline.finish(); };
    const Caught error([&] {
        pipeline.submit(inputs[0]).stays();
        pipeline.finish();
    });
    CHECK(contains_all(error.text(), {"stage 'look', batch 1: finish: the pipeline is in use"}));
}

} // namespace

TEST_CASE("of faults that threads meet at the same time one is kept whole") {
    for (int round = 0; round < 200; ++round) {
        detail::ThreadFault fault;
        std::latch both(2);
        std::vector<std::thread> threads;
        for (std::size_t stage = 0; stage < 2; ++stage) {
            threads.emplace_back([&fault, &both, stage] {
                const std::exception_ptr thrown = std::make_exception_ptr(stage);
                both.arrive_and_wait();
                fault.set(thrown, stage, stage);
            });
        }
        for (std::thread& thread : threads)
            thread.join();
        REQUIRE(fault.known());
        CHECK(fault.stage() == fault.batch());
    }
}

TEST_CASE("Contract 9: pipelines, sources and readbacks of several threads do not disturb each other") {
    constexpr std::size_t batches = 60;
    constexpr std::size_t threads = 4;
    std::vector<std::vector<Word>> results(threads);
    std::vector<std::size_t> read_back(threads);
    const auto drive = [&](std::size_t thread) {
        Source source{[](int) { return PinnedBuffer<Word, B>(words); },
                      [](std::size_t index, PinnedBuffer<Word, B>& out) {
                          for (std::size_t i = 0; i < words; ++i)
                              out[i] = input_word(index, i);
                      },
                      SourceOptions<B>{.workers = static_cast<int>(thread % 3), .batches = batches}};
        Chain<B> chain(3, words, batches);
        Readback<Word, B> readback(
            words, [&](auto, auto) { ++read_back[thread]; }, 3);
        chain.after = [&](std::size_t stage, BasicStreamRef<B> stream, std::size_t) {
            if (stage == 2)
                readback.push(stream, chain.memory(2));
        };
        auto pipeline =
            chain.pipeline<3>({.schedule = thread % 2 == 0 ? Schedule::overlapped : Schedule::serial});
        for (auto& batch : source)
            pipeline.submit(batch);
        pipeline.finish();
        readback.finish();
        results[thread] = chain.results(batches);
    };
    std::vector<std::thread> drivers;
    for (std::size_t thread = 0; thread < threads; ++thread)
        drivers.emplace_back(drive, thread);
    for (std::thread& driver : drivers)
        driver.join();
    for (std::size_t thread = 0; thread < threads; ++thread) {
        CHECK(results[thread] == chain_results(3, words, batches_from(0, batches)));
        CHECK(read_back[thread] == batches);
    }
}

TEST_CASE("Contract 9: graphed pipelines of several threads do not disturb each other's captures") {
    constexpr std::size_t rounds = 10; // each with captures of its own
    constexpr std::size_t distinct = 3;
    constexpr std::size_t batches = 40;
    constexpr std::size_t threads = 4;
    std::vector<std::vector<std::vector<Word>>> results(threads);
    std::vector<GraphCounters> counters(threads);
    std::latch together(threads);
    const auto drive = [&](std::size_t thread) {
        const Inputs<B> inputs(distinct, words);
        together.arrive_and_wait();
        for (std::size_t round = 0; round < rounds; ++round) {
            CapturableStages<B> memories(words);
            // Threads 1 and 3 have work beside their graphs, which a capture of another thread must not take in.
            TwoStreamPipeline pipeline{
                Stage{"first", memories.first()},
                Stage{"last", memories.last(1), StageOptions<B>{.graphed = thread % 2 == 0}},
                memories.make_cells(),
                PipelineOptions{.schedule = Schedule::graphed, .slots = thread == 2 ? 1 : 2}};
            for (std::size_t batch = 0; batch < batches; ++batch)
                pipeline.submit(inputs[batch % distinct]).stays();
            pipeline.finish();
            results[thread].push_back(memories.values());
            counters[thread].replays += pipeline.graph_counters().replays;
            counters[thread].refusals += pipeline.graph_counters().refusals;
        }
    };
    std::vector<std::thread> drivers;
    for (std::size_t thread = 0; thread < threads; ++thread)
        drivers.emplace_back(drive, thread);
    for (std::thread& driver : drivers)
        driver.join();
    const auto expected = expected_memories(2, words, repeating(batches, distinct));
    for (std::size_t thread = 0; thread < threads; ++thread) {
        CAPTURE(thread);
        CHECK(results[thread] == std::vector<std::vector<Word>>(rounds, expected));
        // On a device, another thread's calls may wait on the default stream, and a capture that sees that is refused.
        if (std::is_same_v<B, Host>) {
            CHECK(counters[thread].replays > rounds * batches / 2);
            CHECK(counters[thread].refusals == 0);
        }
    }
}

TEST_CASE("Contract 9: a second thread is refused while the pipeline is in use, and does no harm") {
    const Inputs<B> inputs(3, words);
    const BasicStream<B> stream;
    Chain<B> chain(2, words, 3);
    std::vector<std::string> texts;
    auto pipeline = chain.pipeline<2>();
    chain.before = [&](std::size_t stage, BasicStreamRef<B>, std::size_t batch) {
        if (stage == 1 && batch == 1)
            std::thread([&] { texts = refusals(pipeline, inputs, stream); }).join();
    };
    for (std::size_t batch = 0; batch < 3; ++batch)
        pipeline.submit(inputs[batch]).stays();
    pipeline.finish();
    check_refusals(texts);
    CHECK(chain.results(3) == chain_results(2, words, batches_from(0, 3)));
}

TEST_CASE("Contract 9: a stage is refused its own pipeline") {
    const Inputs<B> inputs(3, words);
    const BasicStream<B> stream;
    Chain<B> chain(2, words, 3);
    std::vector<std::string> texts;
    auto pipeline = chain.pipeline<2>();
    chain.before = [&](std::size_t stage, BasicStreamRef<B>, std::size_t batch) {
        if (stage == 0 && batch == 0)
            texts = refusals(pipeline, inputs, stream);
        if (stage == 1 && batch == 1)
            pipeline.finish();
    };
    pipeline.submit(inputs[0]).stays();
    check_refusals(texts);

    const Caught error([&] { pipeline.submit(inputs[1]).stays(); });
    CHECK(contains_all(error.text(), {"stage 'second', batch 1: finish: the pipeline is in use"}));
    CHECK(pipeline.failed());
    chain.before = nullptr;
    pipeline.reset();
    chain.clear();
    for (std::size_t batch = 0; batch < 3; ++batch)
        pipeline.submit(inputs[batch]).stays();
    pipeline.finish();
    CHECK(chain.results(3) == chain_results(2, words, batches_from(0, 3)));
}

TEST_CASE("Contract 9: a CPU stage is refused its own pipeline") {
    for (const Schedule schedule : {Schedule::serial, Schedule::overlapped, Schedule::graphed}) {
        check_own_cpu_stage<B>(schedule);
        check_own_cpu_stage<Apart>(schedule);
    }
}

TEST_CASE("Contract 9: one thread after another may drive a pipeline") {
    const Inputs<B> inputs(8, words);
    Chain<B> chain(3, words, 8);
    auto pipeline = chain.pipeline<3>();
    for (std::size_t batch = 0; batch < 8; ++batch)
        std::thread([&] { pipeline.submit(inputs[batch]).stays(); }).join();
    std::thread([&] { pipeline.finish(); }).join();
    CHECK(chain.results(8) == chain_results(3, words, batches_from(0, 8)));
}

} // namespace pipeline_threads
