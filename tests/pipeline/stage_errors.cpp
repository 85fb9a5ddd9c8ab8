// Contract 5: a stage that throws leaves the pipeline drained and failed, and reset makes it usable.
#include <chrono>
#include <functional>
#include <stdexcept>
#include <string>
#include <vector>

#include "pipeline/chain.hpp"
#include "pipeline/thrown.hpp"
#include "support/latch.hpp"

namespace pipeline_stage_errors {

using namespace sluice;
using namespace sluice::test;

namespace {

using B = TestBackend;
constexpr std::size_t words = 32;
constexpr std::size_t batches = 6;
constexpr int stages = 3;

struct Thrown {
    int number;
};

// Throws from one stage, for one batch, before or after its work is enqueued, with work still under way.
template <class Throw>
void arrange_throw(Chain<B>& chain, std::size_t stage, std::size_t batch, bool with_work, Throw&& throw_it) {
    auto hook = [=](std::size_t at_stage, BasicStreamRef<B> stream, std::size_t at_batch) {
        if (at_stage == stage && at_batch == batch) {
            ops::spin(stream.get(), 2000);
            throw_it();
        }
    };
    chain.before = chain.after = nullptr;
    (with_work ? chain.after : chain.before) = hook;
}

template <class P>
void submit_all(P& pipeline, const Inputs<B>& inputs) {
    for (std::size_t batch = 0; batch < batches; ++batch)
        pipeline.submit(inputs[batch]).stays();
}

template <class P>
bool all_streams_done(P& pipeline) {
    for (std::size_t stage = 0; stage < P::stage_count; ++stage) {
        if (!pipeline.stream(stage).is_done())
            return false;
    }
    return true;
}

// Each place in which a stage may throw.
template <class Check>
void for_each_place(Check&& check) {
    for (const Schedule schedule : {Schedule::serial, Schedule::overlapped, Schedule::graphed}) {
        for (std::size_t stage = 0; stage < stages; ++stage) {
            for (const std::size_t batch : {std::size_t{0}, batches / 2, batches - 1}) {
                for (const bool with_work : {false, true}) {
                    CAPTURE(std::string(to_string(schedule)));
                    CAPTURE(stage);
                    CAPTURE(batch);
                    CAPTURE(with_work);
                    check(schedule, stage, batch, with_work);
                }
            }
        }
    }
}

// With half as many slots as batches, each stage is called for each batch: eagerly in the first lap, to be captured in the
// second.
PipelineOptions options_for(Schedule schedule) {
    return {.schedule = schedule, .slots = schedule == Schedule::graphed ? static_cast<int>(batches) / 2 : 2};
}

void throw_standard() { throw std::out_of_range("the image is 3 rows short"); }
void throw_error() { throw Error("cudaFoo(7)", "cudaErrorFoo", "no foo is left", "foo.cu", 12); }
void throw_other() { throw Thrown{42}; }

} // namespace

TEST_CASE("Contract 5: a stage that throws fails the pipeline, drained, and reset makes it usable") {
    const Inputs<B> inputs(batches, words);
    Chain<B> chain(stages, words, batches);
    for_each_place([&](Schedule schedule, std::size_t stage, std::size_t batch, bool with_work) {
        chain.clear();
        arrange_throw(chain, stage, batch, with_work, throw_standard);
        auto pipeline = chain.pipeline<stages>(options_for(schedule));

        const Caught error([&] { submit_all(pipeline, inputs); });
        REQUIRE(error);
        CHECK(all_streams_done(pipeline));
        CHECK(pipeline.failed());
        CHECK(pipeline.submitted() == batch);
        CHECK(error->stage() == Chain<B>::names[stage]);
        CHECK(error->batch() == batch);
        CHECK(error->what() == "stage '" + std::string(Chain<B>::names[stage]) + "', batch " +
                                   std::to_string(batch) + ": its callable threw: the image is 3 rows short");

        // The batches before it have passed all stages.
        auto expected = chain_results(stages, words, batches_from(0, batch));
        expected.resize(batch * words);
        auto results = chain.results(batch);
        results.resize(batch * words);
        CHECK(results == expected);

        chain.clear();
        chain.before = chain.after = nullptr;
        pipeline.reset();
        CHECK_FALSE(pipeline.failed());
        CHECK(pipeline.submitted() == 0);
        submit_all(pipeline, inputs);
        pipeline.finish();
        CHECK(chain.results(batches) == chain_results(stages, words, batches_from(0, batches)));
    });
}

TEST_CASE("Contract 5: what a stage threw is nested, whatever its type") {
    const Inputs<B> inputs(batches, words);
    Chain<B> chain(stages, words, batches);
    for_each_place([&](Schedule schedule, std::size_t stage, std::size_t batch, bool with_work) {
        const std::string place =
            std::string("stage '") + Chain<B>::names[stage] + "', batch " + std::to_string(batch) + ": ";
        const auto run = [&](auto throw_it) {
            chain.clear();
            arrange_throw(chain, stage, batch, with_work, throw_it);
            auto pipeline = chain.pipeline<stages>(options_for(schedule));
            submit_all(pipeline, inputs);
        };
        CHECK(Caught([&] { run(throw_standard); }).nests<std::out_of_range>([](const auto& nested) {
            return std::string(nested.what()) == "the image is 3 rows short";
        }));
        CHECK(Caught([&] { run(throw_other); }).nests<Thrown>([](const Thrown& nested) {
            return nested.number == 42;
        }));
        const Caught error([&] { run(throw_error); });
        CHECK(error.nests<Error>(
            [](const Error& nested) { return nested.name() == "cudaErrorFoo" && nested.stage().empty(); }));

        REQUIRE(error);
        CHECK(error->call() == "cudaFoo(7)");
        CHECK(error->name() == "cudaErrorFoo");
        CHECK(error->what() == place + "cudaFoo(7) failed: cudaErrorFoo (no foo is left) at foo.cu:12");
        CHECK(text_of([&] { run(throw_other); }) ==
              place + "its callable threw: an exception of an unknown type");
    });
}

namespace {

// Batches of which something cannot always be told.
struct Asked {
    PinnedBuffer<int, B> values{4};
    bool throws = false;
};
struct WithKey : Asked {};
int graph_key(const WithKey& batch) {
    if (batch.throws)
        throw_standard();
    return 1;
}
struct WithTime : Asked {};
int graph_key(const WithTime&) { return 1; }
std::chrono::steady_clock::time_point batch_time(const WithTime& batch) {
    if (batch.throws)
        throw_standard();
    return {};
}

template <class Batch>
void check_asked(const PipelineOptions& options, const char* text) {
    DeviceBuffer<int, B> values{4};
    Pipeline pipeline{
        Stages{Stage{"load", [&](BasicStreamRef<B> s, const Batch& in) { copy(s, values, in.values); }}},
        options};
    Batch given[4];
    given[3].throws = true;
    const Caught caught([&] {
        for (const Batch& batch : given)
            pipeline.submit(batch).stays();
    });
    REQUIRE(caught);
    CHECK(caught->batch() == 3);
    CHECK(caught->stage().empty());
    CHECK(caught.text() == text);
    CHECK(caught.nests_directly<std::out_of_range>());
    pipeline.reset();
    pipeline.submit(given[0]).wait();
}

} // namespace

TEST_CASE("Contract 5: what a graph_key throws is nested in an error that names the batch") {
    for (const bool each_stage : {false, true}) {
        check_asked<WithKey>({.schedule = Schedule::graphed, .graph_each_stage = each_stage},
                             "batch 3: its graph_key threw: the image is 3 rows short");
    }
}

TEST_CASE("Contract 5: what a batch_time throws is nested in an error that names the batch") {
    for (const Schedule schedule : {Schedule::serial, Schedule::overlapped, Schedule::graphed})
        check_asked<WithTime>({.schedule = schedule, .timed_batches = 8},
                              "batch 3: its batch_time threw: the image is 3 rows short");
}

TEST_CASE("Contract 5: what a slot maker throws is nested in an error that names the stage and the slot") {
    const auto make_pipeline = [](auto throw_it) {
        const auto make = [=](int slot) {
            if (slot == 1)
                throw_it();
            return slot;
        };
        Pipeline pipeline{Stages{Stage{"first", [](BasicStreamRef<B>, int, int&) {}},
                                 Stage{"last", [](BasicStreamRef<B>, int&) {}}},
                          Slots{make}};
    };
    const Caught standard([&] { make_pipeline(throw_standard); });
    REQUIRE(standard);
    CHECK(standard->stage() == "first");
    CHECK_FALSE(standard->batch());
    CHECK(standard.text() == "stage 'first': making slot 1 failed: the image is 3 rows short");
    CHECK(standard.nests<std::out_of_range>(
        [](const auto& nested) { return std::string(nested.what()) == "the image is 3 rows short"; }));

    const Caught other([&] { make_pipeline(throw_other); });
    CHECK(other.text() == "stage 'first': making slot 1 failed: an exception of an unknown type");
    CHECK(other.nests<Thrown>([](const Thrown& nested) { return nested.number == 42; }));

    const Caught error([&] { make_pipeline(throw_error); });
    REQUIRE(error);
    CHECK(error->name() == "cudaErrorFoo");
    CHECK(error->stage() == "first");
    CHECK(error.nests<Error>([](const Error& nested) { return nested.stage().empty(); }));
}

TEST_CASE("Contract 5: a failed pipeline refuses every call and says why") {
    const Inputs<B> inputs(batches, words);
    const BasicStream<B> stream;
    for (const Schedule schedule : {Schedule::serial, Schedule::overlapped, Schedule::graphed}) {
        Chain<B> chain(stages, words, batches);
        arrange_throw(chain, 1, 2, true, throw_standard);
        auto pipeline = chain.pipeline<stages>(options_for(schedule));
        CHECK_THROWS_AS(submit_all(pipeline, inputs), Error);

        const auto refuses = [](const char* name, auto call) {
            return contains_all(text_of(call),
                                {name, ": the pipeline has failed before and needs a reset() first",
                                 "stage 'second', batch 2", "the image is 3 rows short"});
        };
        CHECK(refuses("submit", [&] { pipeline.submit(inputs[3]).stays(); }));
        CHECK(refuses("flush", [&] { pipeline.flush(); }));
        CHECK(refuses("flush", [&] { pipeline.flush(stream); }));
        CHECK(refuses("wait_for", [&] { pipeline.wait_for(stream); }));
        CHECK(refuses("finish", [&] { pipeline.finish(); }));
        CHECK(pipeline.failed());
        CHECK(chain.calls(0) == 3);
        const Caught refused([&] { pipeline.finish(); });
        REQUIRE(refused);
        CHECK(refused->stage() == "second");
        CHECK(refused->batch() == 2);
    }
}

TEST_CASE("Contract 5: a pipeline may fail and be reset again and again") {
    const Inputs<B> inputs(batches, words);
    Chain<B> chain(stages, words, batches);
    for (const Schedule schedule : {Schedule::overlapped, Schedule::graphed}) {
        CAPTURE(std::string(to_string(schedule)));
        auto pipeline = chain.pipeline<stages>(options_for(schedule));
        for (std::size_t batch = 0; batch < batches; ++batch) {
            chain.clear();
            // Graphs of the rounds before call a stage no longer; the last one is called always.
            const std::size_t stage = schedule == Schedule::graphed && batch > 2 ? 2 : batch % 3;
            arrange_throw(chain, stage, batch, batch % 2 == 0, throw_other);
            CHECK_THROWS_AS(submit_all(pipeline, inputs), Error);
            chain.before = chain.after = nullptr;
            pipeline.reset();
            pipeline.reset();
        }
        chain.clear();
        submit_all(pipeline, inputs);
        pipeline.finish();
        CHECK(chain.results(batches) == chain_results(stages, words, batches_from(0, batches)));
    }
}

TEST_CASE("Contract 5: a source whose batch a stage refused goes on with the next one") {
    Chain<B> chain(stages, words, batches);
    Source source{[](int) { return PinnedBuffer<Word, B>(words); },
                  [](std::size_t index, PinnedBuffer<Word, B>& out) {
                      for (std::size_t i = 0; i < words; ++i)
                          out[i] = input_word(index, i);
                  },
                  SourceOptions<B>{.workers = 2, .slots = 2, .batches = batches}};
    auto pipeline = chain.pipeline<stages>();
    for (const bool with_work : {false, true}) {
        chain.clear();
        arrange_throw(chain, 0, 2, with_work, throw_standard);
        for (auto& batch : source) {
            if (batch.index() == 2) {
                CHECK_THROWS_AS(pipeline.submit(batch), Error);
                chain.before = chain.after = nullptr;
                pipeline.reset();
                chain.clear();
            } else {
                pipeline.submit(batch);
            }
        }
        pipeline.finish();
        CHECK(chain.results(batches - 3) == chain_results(stages, words, batches_from(3, batches - 3)));
        source.rewind();
    }
}

TEST_CASE("a callable that is empty is refused when the pipeline is made") {
    void (*none)(BasicStreamRef<B>, const int&) = nullptr;
    const auto made = [](auto stage) {
        return text_of([&] {
            Pipeline pipeline{Stages{Stage{"before", [](BasicStreamRef<B>, const int&) {}}, stage}};
        });
    };
    CHECK(made(Stage{"empty", none}) ==
          "stage 'empty': its callable is empty, or was moved from; expected a function to call");
    using Function = std::function<void(BasicStreamRef<B>, const int&)>;
    CHECK(contains(made(Stage{"empty", Function()}), "stage 'empty': its callable is empty"));
    Stage moved{"moved", Function([](BasicStreamRef<B>, const int&) {})};
    const Stage taken = std::move(moved);
    CHECK(contains(made(moved), "its callable is empty, or was moved from"));
    CHECK(made(taken).empty());
}

TEST_CASE("CPU stages: one that throws for a batch before the one that another stage throws for is told") {
    const ScopedLatch latch;
    Stage cpu{"cpu", [passes = latch.handle()](const std::size_t& batch) {
                  if (batch == 3) {
                      passes.pass();
                      throw std::runtime_error("the earlier one");
                  }
              }};
    Stage later{"later", [&](BasicStreamRef<B>, const std::size_t& batch) {
                    if (batch == 5) {
                        latch.open();
                        throw std::runtime_error("the later one");
                    }
                }};
    Pipeline pipeline{Stages{cpu, later}};
    const Caught error([&] {
        for (std::size_t batch = 0; batch < 8; ++batch)
            pipeline.submit(batch);
    });
    REQUIRE(error);
    CHECK(error->batch() == 3);
    CHECK(error->stage() == "cpu");
    CHECK(contains(error.text(), "its callable threw: the earlier one"));
    CHECK_FALSE(latch.timed_out());
}

} // namespace pipeline_stage_errors
