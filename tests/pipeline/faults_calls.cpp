// Contract 5: any one call fails, in what pipelines are asked beside submit and finish, in sources and readbacks without one, and
// where times are noted or the schedule is chosen.
#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "pipeline/chain.hpp"
#include "support/fail_each_call.hpp"

namespace pipeline_faults_calls {

using namespace sluice;
using namespace sluice::test;

namespace {

using B = Faulty<TestBackend>;
using Ref = BasicStreamRef<B>;
using Cells = DeviceBuffer<Word, B>;
using Out = PinnedBuffer<Word, B>;
constexpr std::size_t words = 8;
constexpr std::size_t batches = 5;

struct Slot {
    Out words;
};

// Two stages without memory: a result is its batch, each word passed on by `ops::step` twice.
struct Work {
    Cells memory{2 * words};

    void clear(Ref stream) { fill_bytes(stream, memory, 0); }
    auto stages() {
        const auto first = [this](Ref stream, PinnedSpan<const Word, B> in, Cells& to) {
            copy(stream, to, in);
            ops::step(stream.get(), to.data(), to.data(), memory.data(), words);
        };
        const auto last = [this](Ref stream, const Cells& in, Slot& to) {
            ops::step(stream.get(), to.words.data(), in.data(), memory.data() + words, words);
        };
        return Stages{Stage{"first", first}, Stage{"last", last}};
    }
    static auto slots() {
        return Slots{[](int) { return Cells(words); }, [](int) { return Slot{Out(words)}; }};
    }
};

std::vector<Word> expected() {
    auto all = chain_results(2, words, batches_from(0, batches));
    all.resize(batches * words);
    return all;
}

PipelineOptions options_for(Schedule schedule) {
    PipelineOptions options{.schedule = schedule, .timed_batches = 4};
    options.graphs.on_refusal = nullptr;
    return options;
}

using Fill = void (*)(std::size_t, PinnedBuffer<Word, B>&);
void fill_words(std::size_t index, PinnedBuffer<Word, B>& out) {
    for (std::size_t i = 0; i < words; ++i)
        out[i] = input_word(index, i);
}
auto make_source(int workers) {
    return Source<PinnedBuffer<Word, B>, NoState, Fill, B>{
        [](int) { return PinnedBuffer<Word, B>(words); }, &fill_words,
        SourceOptions<B>{.workers = workers, .slots = 4, .batches = batches}};
}

template <class P, class S>
std::vector<Word> results_of(P& pipeline, S& source) {
    std::vector<Word> results;
    for (const Slot& result : pipeline.run(source))
        results.insert(results.end(), result.words.data(), result.words.data() + words);
    return results;
}

} // namespace

TEST_CASE("Contract 5: run, external streams and times, any one call fails: an Error, nothing leaked, usable "
          "again") {
    for (const Schedule schedule :
         {Schedule::serial, Schedule::overlapped, Schedule::graphed, Schedule::automatic}) {
        CAPTURE(std::string(to_string(schedule)));
        fail_each_call<B>(
            [&] {
                Work work;
                const BasicStream<B> mine;
                auto source = make_source(1);
                Pipeline pipeline{work.stages(), Work::slots(), options_for(schedule)};
                std::vector<Word> results;
                std::size_t times = 0;
                again_after_fault(
                    [&] {
                        work.clear(mine);
                        pipeline.wait_for(mine);
                        results = results_of(pipeline, source);
                        pipeline.flush(mine);
                        mine.sync();
                        pipeline.finish();
                        times = pipeline.stage_times().size() + pipeline.submit_times().size();
                    },
                    [&] {
                        pipeline.reset();
                        source.rewind();
                        mine.sync();
                    });
                CHECK(results == expected());
                CHECK(times > 4); // those of submit, and of what ran last
                CHECK(pipeline.submitted() == batches);
            },
            60, schedule == Schedule::overlapped ? 1 : 3);
    }
}

TEST_CASE(
    "Contract 5: AnyPipeline and BatchRead, any one call fails: an Error, nothing leaked, usable again") {
    for (const Schedule schedule : {Schedule::overlapped, Schedule::graphed}) {
        CAPTURE(std::string(to_string(schedule)));
        fail_each_call<B>(
            [&] {
                Work work;
                const BasicStream<B> mine;
                PinnedBuffer<Word, B> batch(words);
                AnyPipeline<PinnedBuffer<Word, B>, B> pipeline{work.stages(), Work::slots(),
                                                               options_for(schedule)};
                again_after_fault(
                    [&] {
                        work.clear(mine);
                        pipeline.wait_for(mine);
                        for (std::size_t number = 0; number < batches; ++number) {
                            fill_words(number, batch); // the one before has been read: its handle has gone
                            BatchRead read = pipeline.submit(batch);
                            if (number % 2 == 0)
                                read.wait();
                        }
                        pipeline.finish();
                    },
                    [&] {
                        pipeline.reset();
                        mine.sync();
                    });
                Fault::disarm();
                std::vector<Word> memory(2 * words);
                copy_and_wait(mine, memory, work.memory);
                const auto all = chain_results(2, words, batches_from(0, batches));
                CHECK(memory == std::vector<Word>(all.end() - 2 * words, all.end()));
            },
            50, schedule == Schedule::overlapped ? 1 : 3);
    }
}

TEST_CASE("Contract 5: a source read by hand, any one call fails: an Error, nothing leaked, usable again") {
    for (const int workers : {0, 2}) {
        fail_each_call<B>(
            [&] {
                const BasicStream<B> stream, other;
                Cells all(batches * words);
                auto source = make_source(workers);
                again_after_fault(
                    [&] {
                        std::size_t end = 0;
                        for (auto& batch : source) {
                            struct Held { // a hold is a plain value
                                ~Held() { hold.give_up(); }
                                const SourceHold<B> hold;
                            } const held{batch.hold()};
                            copy(stream, all.span().subspan(words * end++, words), *batch);
                            batch.release(stream);
                            batch.release(other);
                        }
                        stream.sync();
                        CHECK(end == batches);
                    },
                    [&] {
                        stream.sync();
                        source.rewind();
                    });
                Fault::disarm();
                std::vector<Word> seen(all.size());
                copy_and_wait(stream, seen, all);
                bool same = true;
                for (std::size_t i = 0; i < seen.size(); ++i)
                    same = same && seen[i] == input_word(i / words, i % words);
                CHECK(same);
            },
            20, 2);
    }
}

TEST_CASE("Contract 5: a readback that replays push to, any one call fails: an Error, nothing leaked, usable "
          "again") {
    fail_each_call<B>(
        [&] {
            const BasicStream<B> stream;
            Cells values(words);
            std::vector<Word> results;
            Readback<Word, B> readback(
                words, [&](std::size_t, std::span<const Word> result) { results.push_back(result[0]); }, 3);
            GraphOptions options;
            options.on_refusal = nullptr;
            GraphCapture<int, B> graphs(options);
            again_after_fault(
                [&] {
                    for (int round = 0; round < 5; ++round) {
                        (void)graphs.run(stream, 1, [&](Ref s) {
                            fill_bytes(s, values, 3);
                            readback.push(s, values);
                        });
                        readback.poll();
                    }
                    graphs.finish();
                    readback.finish();
                },
                [&] {
                    stream.sync();
                    readback.reset();
                    results.clear();
                });
            CHECK(results == std::vector<Word>(5, 0x03030303));
            CHECK(readback.pushed() == 5);
        },
        40);
}

} // namespace pipeline_faults_calls
