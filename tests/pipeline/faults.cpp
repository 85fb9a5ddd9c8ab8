// Contract 5: the k-th call of the backend fails, for every k.
#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include <sluice/backend/checked.hpp>

#include "pipeline/capturable.hpp"
#include "pipeline/chain.hpp"
#include "support/alive.hpp"
#include "support/delayed_backend.hpp"
#include "support/faulty_backend.hpp"
#include "support/sanitized.hpp"

namespace pipeline_faults {

using namespace sluice;
using namespace sluice::test;

namespace {

using B = Faulty<Delayed<TestBackend>>;
constexpr std::size_t words = 24;
constexpr std::size_t batches = 5;
constexpr long step = sanitized ? 3 : 1; // from call to call

// Under Schedule::graphed the last stage, which counts its batches on the host, is not captured.
PipelineOptions options_for(Schedule schedule) {
    PipelineOptions options{.schedule = schedule};
    options.graphs.on_refusal = nullptr; // a fault within a capture is one
    return options;
}
template <int S>
std::array<StageOptions<B>, std::size_t{S}> stages_for(Schedule schedule) {
    std::array<StageOptions<B>, std::size_t{S}> stages;
    stages[S - 1].graphed = schedule != Schedule::graphed;
    return stages;
}

// A source, a pipeline and a readback, from their making to their end. A failure on the way must be an Error,
// and a second try after it must succeed.
template <int S>
class Run {
public:
    explicit Run(Schedule schedule)
        : pipeline_(chain_.template pipeline<S>(options_for(schedule), stages_for<S>(schedule))) {
        chain_.after = [this](std::size_t stage, BasicStreamRef<B> stream, std::size_t) {
            if (stage + 1 == S)
                readback_.push(stream, chain_.memory(stage));
        };
    }

    void once() {
        try {
            epoch();
        } catch (const Error& error) {
            Fault::disarm();
            CHECK(contains(error.what(), Fault::name));
            pipeline_.reset();
            source_.rewind();
            readback_.finish();
            chain_.clear();
            arrived_.clear();
            epoch();
        }
        const auto expected = chain_results(S, words, batches_from(0, batches));
        const auto results = chain_.results(batches); // may be what fails
        CHECK(results == expected);
        REQUIRE(arrived_.size() == batches * words);
        // What the last stage remembered at the end was read back last.
        CHECK(std::vector<Word>(arrived_.end() - words, arrived_.end()) ==
              std::vector<Word>(expected.end() - words, expected.end()));
    }

private:
    void epoch() {
        for (auto& batch : source_)
            pipeline_.submit(batch);
        pipeline_.finish();
        readback_.finish();
    }
    static PinnedBuffer<Word, B> make_slot(int) { return PinnedBuffer<Word, B>(words); }
    static void fill(std::size_t index, PinnedBuffer<Word, B>& out) {
        for (std::size_t i = 0; i < words; ++i)
            out[i] = input_word(index, i);
    }
    using Fill = void (*)(std::size_t, PinnedBuffer<Word, B>&);

    Chain<B> chain_{S, words, batches};
    std::vector<Word> arrived_;
    Readback<Word, B> readback_{words,
                                [this](std::size_t, std::span<const Word> values) {
                                    arrived_.insert(arrived_.end(), values.begin(), values.end());
                                },
                                2};
    Source<PinnedBuffer<Word, B>, NoState, Fill, B> source_{
        make_slot, fill, SourceOptions<B>{.workers = 1, .slots = 2, .batches = batches}};
    decltype(chain_.template pipeline<S>()) pipeline_;
};

// Calls `attempt()` again and again, and has the k-th call of the k-th time fail, until there is none left.
template <class Attempt>
void fail_each_call_of(Attempt&& attempt, std::uint32_t one_delay_in = 8) {
    const Alive before = alive_now<B>();
    bool reached = true;
    long call = 1 - step;
    int failed = 0;
    while (reached && call < 5000) {
        call += step;
        CAPTURE(call);
        Delay::set({.seed = static_cast<std::uint64_t>(call), .one_in = one_delay_in, .microseconds = 200});
        Fault::arm(call);
        try {
            attempt();
        } catch (const Error& error) { // while it was made, or its results were read
            CHECK(error.name() == Fault::name);
            ++failed;
        }
        reached = Fault::calls_made() >= call;
        Fault::disarm();
        CHECK(alive_now<B>() == before);
    }
    CHECK_FALSE(reached);
    CHECK(call > 50);
    CHECK(failed > 10 / step);
}

template <int S>
void fail_each_call(Schedule schedule) {
    CAPTURE(S);
    CAPTURE(std::string(to_string(schedule)));
    fail_each_call_of([=] { Run<S>(schedule).once(); });
}

} // namespace

TEST_CASE("Contract 5: one stage, any one call fails: an Error, nothing leaked, usable after reset") {
    fail_each_call<1>(Schedule::serial);
    fail_each_call<1>(Schedule::overlapped);
    fail_each_call<1>(Schedule::graphed);
}

TEST_CASE("Contract 5: two stages, any one call fails: an Error, nothing leaked, usable after reset") {
    fail_each_call<2>(Schedule::serial);
    fail_each_call<2>(Schedule::overlapped);
    fail_each_call<2>(Schedule::graphed);
}

TEST_CASE("Contract 5: three stages, any one call fails: an Error, nothing leaked, usable after reset") {
    fail_each_call<3>(Schedule::serial);
    fail_each_call<3>(Schedule::overlapped);
    fail_each_call<3>(Schedule::graphed);
}

TEST_CASE("Contract 5: all stages captured, any one call fails: an Error or an eager run, nothing leaked") {
    constexpr std::size_t distinct = 2;
    constexpr std::size_t steps = 7;
    for (const int slots : {1, 2}) {
        CAPTURE(slots);
        int refused = 0;
        fail_each_call_of(
            [&] {
                const Inputs<B> inputs(distinct, words);
                CapturableStages<B> memories(words);
                PipelineOptions options = options_for(Schedule::graphed);
                options.slots = slots;
                TwoStreamPipeline pipeline{Stage{"first", memories.first()}, Stage{"last", memories.last(1)},
                                           memories.make_cells(), options};
                const auto epoch = [&] {
                    for (std::size_t batch = 0; batch < steps; ++batch)
                        pipeline.submit(inputs[batch % distinct]).stays();
                    pipeline.finish();
                };
                try {
                    epoch();
                    if (pipeline.graph_counters().refusals > 0)
                        ++refused;
                } catch (const Error& error) {
                    Fault::disarm();
                    CHECK(contains(error.what(), Fault::name));
                    CHECK(pipeline.graph_counters().refusals == 0); // one fault is one or the other
                    pipeline.reset();
                    memories.clear();
                    epoch();
                }
                const auto values = memories.values(); // may be what fails
                CHECK(values == expected_memories(2, words, repeating(steps, distinct)));
            },
            2); // late side streams
        CHECK(refused > 5 / step);
    }
}

TEST_CASE("Contract 5: every call from the k-th on fails: an Error, nothing leaked, reset says it is lost") {
    const Alive before = alive_now<B>();
    const Inputs<B> inputs(batches, words);
    const Alive with_inputs = alive_now<B>();
    Delay::set({.one_in = 0});
    for (const Schedule schedule : {Schedule::serial, Schedule::overlapped, Schedule::graphed}) {
        CAPTURE(std::string(to_string(schedule)));
        Chain<B> chain(3, words, batches);
        bool reached = true;
        for (long call = 1; reached && call < 5000; ++call) {
            CAPTURE(call);
            Fault::disarm();
            chain.clear();
            Fault::arm(call, true);
            const Caught error([&] {
                auto pipeline = chain.pipeline<3>(options_for(schedule), stages_for<3>(schedule));
                const Caught inner([&] {
                    for (std::size_t batch = 0; batch < batches; ++batch)
                        pipeline.submit(inputs[batch]).stays();
                    pipeline.finish();
                });
                if (inner) {
                    // A checked pipeline captures again before each replay, and tells of that as of a refusal.
                    CHECK_MESSAGE((inner->name() == Fault::name ||
                                   (is_checked<B> && contains(inner.text(), Fault::name))),
                                  std::string(inner->what()));
                    const Caught lost([&] { pipeline.reset(); });
                    REQUIRE(lost);
                    CHECK(contains(lost.text(), Fault::name));
                }
            });
            reached = Fault::calls_made() >= call;
            Fault::disarm();
            if (error)
                CHECK(error->name() == Fault::name);
        }
        CHECK_FALSE(reached);
    }
    CHECK(with_inputs == alive_now<B>());
    CHECK(before.streams == alive_now<B>().streams);
}

} // namespace pipeline_faults
