// Sources feeding pipelines: a pinned slot is not filled again while it is being read, and contract 8.
#include <atomic>
#include <optional>
#include <vector>

#include "pipeline/chain.hpp"
#include "support/delayed_backend.hpp"
#include "support/gate.hpp"
#include "support/latch.hpp"

namespace pipeline_source_slots {

using namespace sluice;
using namespace sluice::test;

namespace {

using B = Delayed<TestBackend>;
using Ref = BasicStreamRef<B>;
using Options = SourceOptions<B>;
constexpr std::size_t words = 32;

// A batch in pinned memory that scribbles over itself at its end, so that late reads show.
struct Batch {
    PinnedBuffer<Word, B> buffer{words};

    Batch() = default;
    Batch(const Batch&) = delete;
    Batch& operator=(const Batch&) = delete;
    ~Batch() {
        for (Word& word : buffer)
            word = 0xDEADDEAD;
    }
    operator PinnedSpan<const Word, B>() const { return buffer; }
};

const void* graph_key(const Batch& batch) { return batch.buffer.data(); }

Batch make_batch(int) { return Batch{}; }
void fill_batch(std::size_t index, Batch& out) {
    for (std::size_t i = 0; i < words; ++i)
        out.buffer[i] = input_word(index, i);
}

// The first stage's copy of each batch is late.
void make_copies_late(Chain<B>& chain, unsigned microseconds) {
    chain.before = [=](std::size_t stage, Ref stream, std::size_t) {
        if (stage == 0)
            ops::spin(stream.get(), microseconds);
    };
}

template <class Check>
void for_each_crew(Check&& check) {
    std::uint64_t seed = 100;
    for (const int workers : {0, 1, 2, 8}) {
        for (const int slots : {1, 2, 3}) {
            CAPTURE(workers);
            CAPTURE(slots);
            Delay::set({.seed = ++seed, .one_in = 3, .microseconds = 300});
            check(Options{.workers = workers, .slots = slots});
        }
    }
}

} // namespace

TEST_CASE("Contract 1: a pinned slot is not filled again before its copy is done") {
    constexpr std::size_t batches = 12;
    for_each_crew([](Options options) {
        options.batches = batches;
        for (const Schedule schedule : {Schedule::serial, Schedule::overlapped, Schedule::graphed}) {
            Source source{make_batch, fill_batch, options};
            Chain<B> chain(2, words, batches);
            make_copies_late(chain, 300);
            auto pipeline = chain.pipeline<2>({.schedule = schedule});
            for (const auto& batch : source)
                pipeline.submit(batch);
            pipeline.finish();
            if (schedule == Schedule::graphed)
                CHECK(pipeline.graph_counters().replays > 0); // the slots come again
            CHECK(chain.results(batches) == chain_results(2, words, batches_from(0, batches)));
        }
    });
}

TEST_CASE("Contract 1: filling waits for the one slot that is still being copied, and for nothing else") {
    if (!streams_overlap<B>())
        return;
    Delay::set({.one_in = 0});
    Gate<B> gate;
    std::atomic<int> fills{0};
    Source source{make_batch,
                  [&](std::size_t index, Batch& out) {
                      fill_batch(index, out);
                      ++fills;
                  },
                  Options{.workers = 1, .slots = 3, .batches = 5}};
    Chain<B> chain(2, words, 5);
    chain.before = [&](std::size_t stage, Ref stream, std::size_t batch) {
        if (stage == 0 && batch == 0)
            gate.hold(stream);
    };
    auto pipeline = chain.pipeline<2>();
    pipeline.submit(source.next());
    pipeline.submit(source.next()); // waits for nothing either, though the first copy has not begun
    CHECK(eventually([&] { return fills == 3; }));
    give_it_time();
    CHECK(fills.load() == 3);
    gate.open();
    CHECK(eventually([&] { return fills == 5; }));
    for (auto& batch : source)
        pipeline.submit(batch);
    pipeline.finish();
    CHECK(chain.results(5) == chain_results(2, words, batches_from(0, 5)));
}

TEST_CASE("Contract 1: a batch that is submitted twice stays until both have read it") {
    constexpr std::size_t batches = 8;
    for_each_crew([](Options options) {
        options.batches = batches;
        for (const std::size_t late : {0u, 1u}) {
            Source source{make_batch, fill_batch, options};
            Chain<B> first(2, words, 2 * batches), second(2, words, batches);
            make_copies_late(late == 0 ? first : second, 1000);
            auto one = first.pipeline<2>();
            auto other = second.pipeline<2>();
            std::vector<std::size_t> twice;
            for (auto& batch : source) {
                one.submit(batch);
                other.submit(batch);
                one.submit(batch);
                twice.insert(twice.end(), 2, batch.index());
            }
            one.finish();
            other.finish();
            CHECK(first.results(2 * batches) == chain_results(2, words, twice));
            CHECK(second.results(batches) == chain_results(2, words, batches_from(0, batches)));
        }
    });
}

TEST_CASE("Contract 4: a batch that is skipped goes back unread, and the others are as they should be") {
    for_each_crew([](Options options) {
        options.batches = 15;
        Source source{make_batch, fill_batch, options};
        Chain<B> chain(2, words, 15);
        make_copies_late(chain, 200);
        auto pipeline = chain.pipeline<2>();
        std::vector<std::size_t> passed;
        for (auto& batch : source) {
            if (batch.index() % 3 == 1)
                continue;
            pipeline.submit(batch);
            passed.push_back(batch.index());
        }
        pipeline.finish();
        CHECK(chain.results(passed.size()) == chain_results(2, words, passed));
    });
}

TEST_CASE("Contract 1: work outside a pipeline holds a slot with release") {
    constexpr std::size_t batches = 6;
    const BasicStream<B> stream;
    for_each_crew([&](Options options) {
        options.batches = batches;
        Source source{make_batch, fill_batch, options};
        DeviceBuffer<Word, B> all(batches * words);
        std::size_t end = 0;
        for (auto& batch : source) {
            ops::spin(stream.get(), 500);
            copy(stream, all.span().subspan(words * end++, words), batch->buffer);
            batch.release(stream);
        }
        std::vector<Word> seen(all.size());
        copy_and_wait(stream, seen, all);
        for (std::size_t i = 0; i < seen.size(); ++i)
            REQUIRE(seen[i] == input_word(i / words, i % words));
    });
}

TEST_CASE("Contract 5: a source that ends in the middle waits for the work that reads its slots") {
    for_each_crew([](Options options) {
        for (const bool rewind : {false, true}) {
            Chain<B> chain(2, words, 4);
            make_copies_late(chain, 2000);
            auto pipeline = chain.pipeline<2>();
            {
                Source source{make_batch, fill_batch, options};
                for (int batch = 0; batch < 2; ++batch)
                    pipeline.submit(source.next());
                if (rewind) {
                    source.rewind();
                    for (int batch = 0; batch < 2; ++batch)
                        pipeline.submit(source.next());
                }
            }
            pipeline.finish();
            const std::vector<std::size_t> passed =
                rewind ? std::vector<std::size_t>{0, 1, 0, 1} : std::vector<std::size_t>{0, 1};
            CHECK(chain.results(passed.size()) == chain_results(2, words, passed));
        }
    });
}

TEST_CASE("Contract 8: counted random batches are the same for any workers, slots and schedule") {
    constexpr std::size_t batches = 20;
    const auto random_word = [](std::uint32_t epoch, std::size_t batch, std::size_t index) {
        CountedRandom random({.seed = 11, .epoch = epoch, .sample = batch * words + index, .operation = 2});
        return random.next_u32();
    };
    for_each_crew([&](Options options) {
        options.batches = batches;
        for (const Schedule schedule : {Schedule::serial, Schedule::overlapped, Schedule::graphed}) {
            std::atomic<std::uint32_t> epoch{0};
            Source source{make_batch,
                          [&](std::size_t batch, Batch& out) {
                              for (std::size_t i = 0; i < words; ++i)
                                  out.buffer[i] = random_word(epoch, batch, i);
                          },
                          options};
            Chain<B> chain(2, words, batches);
            auto pipeline = chain.pipeline<2>({.schedule = schedule});
            for (; epoch < 2; ++epoch) {
                for (auto& batch : source)
                    pipeline.submit(batch);
                pipeline.finish();
                const auto word = [&](std::size_t batch, std::size_t i) {
                    return random_word(epoch, batch, i);
                };
                CHECK(chain.results(batches) == chain_results(2, words, batches_from(0, batches), 0, word));
                chain.clear();
                source.rewind();
            }
        }
    });
}

} // namespace pipeline_source_slots
