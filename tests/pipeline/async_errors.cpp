// Contract 5: work that fails after its stage has returned. On the host a task throws; what a device's fault
// does is in device_fault.cpp.
#include <atomic>
#include <chrono>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include <sluice/backend/detail/host/queue.hpp>

#include "pipeline/chain.hpp"
#include "pipeline/thrown.hpp"
#include "support/latch.hpp"

namespace pipeline_async_errors {

using namespace sluice;
using namespace sluice::test;

namespace {

using B = Host;
constexpr std::size_t words = 16;
constexpr std::size_t batches = 5;
constexpr int stages = 3;

// The work of one stage for one batch throws, a little after it was enqueued, and once: a graph that it was captured into may
// be replayed after a reset.
void arrange_fault(Chain<B>& chain, std::size_t stage, std::size_t batch) {
    chain.before = [=](std::size_t at_stage, HostStreamRef stream, std::size_t at_batch) {
        if (at_stage == stage && at_batch == batch) {
            stream.enqueue([thrown = std::make_shared<std::atomic<bool>>(false)] {
                std::this_thread::sleep_for(std::chrono::milliseconds(2));
                if (!thrown->exchange(true))
                    throw std::range_error("bad pixel");
            });
        }
    };
}

// With three slots, each stage is called for each of the first batches: eagerly in the first lap, to be captured in the
// second.
PipelineOptions options_for(Schedule schedule) {
    return {.schedule = schedule, .slots = schedule == Schedule::graphed ? 3 : 2};
}

template <class P>
void submit_all(P& pipeline, const Inputs<B>& inputs) {
    for (std::size_t batch = 0; batch < batches; ++batch)
        pipeline.submit(inputs[batch]).stays();
}

template <class P>
void await_known_fault(P& pipeline, std::size_t stage) {
    while (pipeline.stream(stage).get()->failure() == nullptr)
        std::this_thread::sleep_for(std::chrono::microseconds(100));
}

// Each schedule, and each stage whose work fails.
template <class Check>
void for_each_place(Check&& check) {
    for (const Schedule schedule : {Schedule::serial, Schedule::overlapped, Schedule::graphed}) {
        for (std::size_t stage = 0; stage < stages; ++stage) {
            CAPTURE(std::string(to_string(schedule)));
            CAPTURE(stage);
            check(schedule, stage);
        }
    }
}

// What is said of the fault of a stage's work in the last batch. Under Schedule::serial all stages share a stream, and it is unknown
// whose work it was.
std::string text_for(Schedule schedule, std::size_t stage, std::size_t batch) {
    const std::string text = "work on a host stream failed: bad pixel";
    if (schedule == Schedule::serial) {
        return "batch " + std::to_string(batch) +
               " or earlier (PipelineOptions::launch_blocking tells which, and the stage): " + text;
    }
    return "stage '" + std::string(Chain<B>::names[stage]) + "', batch " + std::to_string(batch) + ": " +
           text;
}

bool is_bad_pixel(const std::range_error& error) { return std::string(error.what()) == "bad pixel"; }

} // namespace

TEST_CASE("Contract 5: a fault that is known is reported at the next submit, flush or finish") {
    const Inputs<B> inputs(batches, words);
    Chain<B> chain(stages, words, batches);
    const HostStream stream;
    for_each_place([&](Schedule schedule, std::size_t stage) {
        for (const std::string call : {"submit", "flush", "flush(stream)", "finish"}) {
            CAPTURE(call);
            chain.clear();
            arrange_fault(chain, stage, 1);
            auto pipeline = chain.pipeline<stages>(options_for(schedule));
            pipeline.submit(inputs[0]).stays();
            pipeline.submit(inputs[1]).stays();
            await_known_fault(pipeline, stage);
            const Caught error([&] {
                if (call == "submit")
                    pipeline.submit(inputs[2]).stays();
                if (call == "flush")
                    pipeline.flush();
                if (call == "flush(stream)")
                    pipeline.flush(stream);
                if (call == "finish")
                    pipeline.finish();
            });
            CHECK(error.text() == text_for(schedule, stage, 1));
            CHECK(error.nests<std::range_error>(is_bad_pixel));
            CHECK(error.nests_directly<std::range_error>());
            CHECK(pipeline.failed());
            CHECK(contains_all(text_of([&] { pipeline.submit(inputs[2]).stays(); }),
                               {"needs a reset()", "bad pixel"}));
        }
    });
}

TEST_CASE("Contract 5: finish waits for a fault and reports it; reset makes the pipeline usable") {
    const Inputs<B> inputs(batches, words);
    Chain<B> chain(stages, words, batches);
    for_each_place([&](Schedule schedule, std::size_t stage) {
        chain.clear();
        arrange_fault(chain, stage, batches - 1);
        auto pipeline = chain.pipeline<stages>(options_for(schedule));
        submit_all(pipeline, inputs);
        const Caught error([&] { pipeline.finish(); });
        CHECK(error.text() == text_for(schedule, stage, batches - 1));
        CHECK(error.nests<std::range_error>(is_bad_pixel));
        CHECK(error.nests_directly<std::range_error>());
        CHECK(pipeline.failed());

        pipeline.reset();
        chain.before = nullptr;
        chain.clear();
        CHECK_FALSE(pipeline.failed());
        submit_all(pipeline, inputs);
        pipeline.finish();
        CHECK(chain.results(batches) == chain_results(stages, words, batches_from(0, batches)));
    });
}

TEST_CASE("Contract 5: with launch_blocking a fault is reported with its stage and batch") {
    const Inputs<B> inputs(batches, words);
    Chain<B> chain(stages, words, batches);
    for_each_place([&](Schedule schedule, std::size_t stage) {
        chain.clear();
        arrange_fault(chain, stage, 3);
        auto pipeline = chain.pipeline<stages>({.schedule = schedule, .launch_blocking = true});
        const Caught error([&] { submit_all(pipeline, inputs); });
        REQUIRE(error);
        CHECK(error->stage() == Chain<B>::names[stage]);
        CHECK(error->batch() == std::size_t{3});
        CHECK(error.text() == "stage '" + std::string(Chain<B>::names[stage]) +
                                  "', batch 3: work on a host stream failed: bad pixel");
        CHECK(pipeline.submitted() == 3);
        CHECK(error.nests_directly<std::range_error>());
    });
}

TEST_CASE(
    "Contract 5: a fault of an earlier stage that a push meets is not blamed on the stage that pushes") {
    const Inputs<B> inputs(batches, words);
    for (const Schedule schedule : {Schedule::serial, Schedule::overlapped}) {
        CAPTURE(std::string(to_string(schedule)));
        Chain<B> chain(stages, words, batches);
        Readback<Word, B> readback(
            words, [](std::size_t, std::span<const Word>) {}, 1);
        const Latch pushes; // so that nothing before that push can meet the fault
        chain.before = [&](std::size_t stage, HostStreamRef stream, std::size_t batch) {
            if (stage == 0 && batch == 1) {
                stream.enqueue([=] {
                    pushes.pass();
                    throw std::range_error("bad pixel");
                });
            }
        };
        chain.after = [&](std::size_t stage, HostStreamRef stream, std::size_t batch) {
            if (stage != 1)
                return;
            if (batch == 2)
                pushes.open();
            readback.push(stream, chain.memory(1)); // waits for that of the batch before
        };
        auto pipeline = chain.pipeline<stages>({.schedule = schedule});
        const Caught error([&] {
            submit_all(pipeline, inputs);
            pipeline.finish();
        });
        REQUIRE(error);
        // It was batch 1; as of a late error of a device, no more is known.
        CHECK(error->stage().empty());
        CHECK(error.text() == "batch 2 or earlier (PipelineOptions::launch_blocking tells which, and the "
                              "stage): work on a host stream failed: bad pixel");
        CHECK(error.nests_directly<std::range_error>());
    }
}

TEST_CASE("Contract 5: a fault that was not asked for does not trouble the destructor") {
    const Inputs<B> inputs(batches, words);
    Chain<B> chain(stages, words, batches);
    for_each_place([&](Schedule schedule, std::size_t stage) {
        chain.clear();
        arrange_fault(chain, stage, 1);
        auto pipeline = chain.pipeline<stages>(options_for(schedule));
        pipeline.submit(inputs[0]).stays();
        pipeline.submit(inputs[1]).stays();
    });
}

TEST_CASE("Contract 5: a stage that throws is reported before an earlier fault of its stream") {
    const Inputs<B> inputs(batches, words);
    Chain<B> chain(stages, words, batches);
    chain.before = [](std::size_t stage, HostStreamRef stream, std::size_t) {
        if (stage == 1) {
            stream.enqueue([] { throw std::range_error("bad pixel"); });
            throw std::logic_error("no weights");
        }
    };
    auto pipeline = chain.pipeline<stages>();
    CHECK(text_of([&] { pipeline.submit(inputs[0]).stays(); }) ==
          "stage 'second', batch 0: its callable threw: no weights");
    pipeline.reset();
    chain.before = nullptr;
    chain.clear();
    submit_all(pipeline, inputs);
    pipeline.finish();
    CHECK(chain.results(batches) == chain_results(stages, words, batches_from(0, batches)));
}

TEST_CASE("Contract 5: a fault of the caller's own work on a stage's stream is not blamed on the stage that "
          "failed last") {
    const Inputs<B> inputs(batches, words);
    Chain<B> chain(stages, words, batches);
    chain.before = [](std::size_t stage, HostStreamRef, std::size_t) {
        if (stage == 1)
            throw std::logic_error("no weights");
    };
    auto pipeline = chain.pipeline<stages>();
    CHECK_THROWS_AS(pipeline.submit(inputs[0]).stays(), Error);
    pipeline.reset();
    pipeline.stream(0).enqueue([] { throw std::range_error("bad pixel"); });
    await_known_fault(pipeline, 0);
    const Caught error([&] { pipeline.submit(inputs[0]).stays(); });
    REQUIRE(error);
    CHECK(error->stage() == "first");
    CHECK_FALSE(error->batch());
}

TEST_CASE("Contract 5: after a fault and resets, a source and a readback go on") {
    Chain<B> chain(stages, words, 3 * batches);
    std::size_t results = 0;
    Readback<Word, B> readback(
        words, [&](auto, auto) { ++results; }, 2);
    Source source{[](int) { return PinnedBuffer<Word, B>(words); },
                  [](std::size_t index, PinnedBuffer<Word, B>& out) {
                      for (std::size_t i = 0; i < words; ++i)
                          out[i] = input_word(index, i);
                  },
                  SourceOptions<B>{.workers = 2, .slots = 2, .batches = 3 * batches}};
    for_each_place([&](Schedule schedule, std::size_t stage) {
        chain.clear();
        arrange_fault(chain, stage, 2);
        chain.after = [&](std::size_t at_stage, HostStreamRef stream, std::size_t) {
            if (at_stage + 1 == stages)
                readback.push(stream, chain.memory(at_stage));
        };
        auto pipeline = chain.pipeline<stages>(options_for(schedule));
        const auto epoch = [&] {
            for (auto& batch : source)
                pipeline.submit(batch);
            pipeline.finish();
            readback.finish();
        };
        CHECK_THROWS_AS(epoch(), Error);

        // The source goes on with the batch after those that were submitted.
        const auto next = source.next();
        REQUIRE(next != nullptr);
        const std::size_t first = next.index();
        CHECK(first >= 3);
        pipeline.reset();
        readback.reset();
        chain.before = nullptr;
        chain.clear();
        results = 0;
        pipeline.submit(*next);
        epoch();
        CHECK(results == 3 * batches - first);
        CHECK(chain.results(results) == chain_results(stages, words, batches_from(first, results)));

        source.rewind();
        readback.reset();
        chain.clear();
        results = 0;
        epoch();
        CHECK(results == 3 * batches);
        CHECK(chain.results(results) == chain_results(stages, words, batches_from(0, results)));
        source.rewind();
    });
}

TEST_CASE(
    "Contract 5: under graphed, a fault of a run that is not replayed is reported, and reset forgets it") {
    for (const int slots : {1, 2}) {
        CAPTURE(slots);
        bool faulty = true;
        std::atomic<int> done{0};
        TwoStreamPipeline pipeline{
            Stage{"first", [](HostStreamRef stream, const int&, int&) { stream.enqueue([] {}); }},
            Stage{"last",
                  [&](HostStreamRef stream, int&) {
                      stream.enqueue([&done, faulty] {
                          if (faulty)
                              throw std::range_error("bad pixel");
                          ++done;
                      });
                  }},
            [](int) { return 0; }, PipelineOptions{.schedule = Schedule::graphed, .slots = slots}};
        pipeline.submit(7);
        CHECK(contains(text_of([&] { pipeline.finish(); }), "bad pixel"));
        faulty = false;
        pipeline.reset();
        // Another batch, and so another capture: what was captured before throws again in each replay.
        for (int batch = 0; batch < 6; ++batch)
            pipeline.submit(8);
        pipeline.finish();
        CHECK(done == 6);
    }
}

} // namespace pipeline_async_errors
