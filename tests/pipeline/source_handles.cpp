// Sources: batches as handles that own their slots, and what pipelines do with them.
#include <atomic>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <stdexcept>
#include <system_error>
#include <thread>
#include <type_traits>
#include <utility>
#include <vector>

#include "pipeline/chain.hpp"
#include "pipeline/source_case.hpp"
#include "support/alive.hpp"
#include "support/gate.hpp"
#include "support/hooked_backend.hpp"
#include "support/latch.hpp"

namespace pipeline_source_handles {

using namespace sluice;
using namespace sluice::test;
using namespace sluice::test::source_case;

namespace {

constexpr std::size_t words = 16;
using Buffer = PinnedBuffer<Word, B>;

Buffer make_buffer(int) { return Buffer(words); }
void fill_buffer(std::size_t index, Buffer& out) {
    for (std::size_t i = 0; i < words; ++i)
        out[i] = input_word(index, i);
}

struct Sealed final {
    int value = 0;
};

// What `*` gives.
template <class Batch>
using Value = std::remove_cvref_t<decltype(*std::declval<const SourceBatch<Batch, B>&>())>;

} // namespace

static_assert(std::same_as<Value<Buffer>, HeldBatch<Buffer, B>>);
static_assert(std::same_as<Value<std::span<const int>>, HeldBatch<std::span<const int>, B>>);
static_assert(std::same_as<Value<int>, int>);
static_assert(std::same_as<Value<const int*>, const int*>);
static_assert(std::same_as<Value<Sealed>, Sealed>);
static_assert(std::movable<SourceBatch<int, B>> && !std::copyable<SourceBatch<int, B>>);
static_assert(std::is_trivially_copyable_v<SourceHold<B>>);
static_assert(!std::copyable<HeldBatch<Buffer, B>>);

TEST_CASE("Source: two batches in hand are two batches") {
    for_each_crew([](Options options) {
        options.batches = 4;
        options.slots = 3;
        Source source{make_number, fill_number, options};
        const auto first = source.next();
        auto second = source.next();
        REQUIRE(first);
        REQUIRE(second);
        CHECK(*first == 0);
        CHECK(*second == 10);
        CHECK(first.index() == 0);
        CHECK(second.index() == 1);
        second.reset();
        CHECK_FALSE(second);
        second = source.next();
        CHECK(*second == 20);
        second = source.next(); // with all slots but one in hand meanwhile
        CHECK(*second == 30);
        CHECK(*first == 0);
        CHECK_FALSE(source.next());
    });
}

TEST_CASE("Source: an empty batch is false, and refuses to be used as one") {
    Source source{make_number, fill_number, Options{.batches = 1}};
    auto batch = source.next();
    auto moved = std::move(batch);
    CHECK(*moved == 0);
    const auto end = source.next();
    for (const auto* empty : {&std::as_const(batch), &end}) {
        CHECK_FALSE(*empty);
        CHECK(*empty == nullptr);
        CHECK(contains(text_of([&] { (void)**empty; }), "an empty SourceBatch was used as a batch"));
        CHECK(contains(text_of([&] { (void)empty->operator->(); }), "an empty SourceBatch"));
        CHECK(contains(text_of([&] { (void)empty->index(); }), "an empty SourceBatch"));
        CHECK(contains(text_of([&] { (void)empty->hold(); }), "an empty SourceBatch"));
        const BasicStream<B> stream;
        CHECK(contains(text_of([&] { empty->release(stream); }), "an empty SourceBatch"));
    }
}

TEST_CASE("Source: an empty batch is refused by submit, and the pipeline goes on") {
    const Inputs<B> inputs(1, words);
    Source source{make_buffer, [](std::size_t, Buffer&) { return false; }, Options{}};
    Chain<B> chain(2, words, 1);
    auto pipeline = chain.pipeline<2>();
    CHECK(contains(text_of([&] { pipeline.submit(source.next()); }), "submit: the batch is empty"));
    CHECK(contains(text_of([&] { pipeline.submit(*source.next()); }), "an empty SourceBatch"));
    CHECK_FALSE(pipeline.failed());
    pipeline.submit(inputs[0]).stays();
    pipeline.finish();
    CHECK(chain.results(1) == chain_results(2, words, batches_from(0, 1)));
}

TEST_CASE("Source: with all slots in the caller's hands next throws instead of waiting for ever") {
    for (const int workers : {0, 1, 4}) {
        for (const int slots : {1, 2, 5}) {
            CAPTURE(workers);
            CAPTURE(slots);
            Source source{make_number, fill_number, Options{.workers = workers, .slots = slots}};
            std::vector<SourceBatch<int, B>> held;
            for (int slot = 0; slot < slots; ++slot)
                held.push_back(source.next());
            const std::string text = text_of([&] { (void)source.next(); });
            CHECK(contains_all(text,
                               {"batch " + std::to_string(slots) + " has no slot",
                                "the caller holds all " + std::to_string(slots), "SourceOptions::slots"}));
            held.erase(held.begin());
            CHECK(*source.next() == slots * 10);
        }
    }
}

TEST_CASE("Source: a slot that the caller and another thread hold needs both") {
    for (const int workers : {0, 1}) {
        Source source{make_number, fill_number, Options{.workers = workers, .slots = 1}};
        auto batch = source.next();
        const auto mine = batch.hold();
        const auto theirs = mine.hold_elsewhere();
        CHECK(theirs.index() == 0);
        CHECK(theirs.slots() == 1);
        batch.reset();
        CHECK(contains(text_of([&] { (void)source.next(); }), "the caller holds all 1"));
        mine.give_up();
        std::thread other([&] {
            give_it_time();
            theirs.give_up_on_host();
        });
        CHECK(*source.next() == 10); // waits for the other thread
        other.join();
    }
}

TEST_CASE("Source: slots that only another thread holds come back without the caller") {
    for (const int workers : {0, 1, 2}) {
        Source source{make_number, fill_number, Options{.workers = workers, .slots = 2, .batches = 20}};
        std::vector<std::thread> others;
        std::vector<int> values;
        while (auto batch = source.next()) {
            values.push_back(*batch);
            const auto mine = batch.hold();
            others.emplace_back([theirs = mine.hold_elsewhere()] {
                std::this_thread::sleep_for(std::chrono::milliseconds(1));
                theirs.give_up_on_host();
            });
            mine.give_up();
        }
        for (std::thread& other : others)
            other.join();
        CHECK(values == tens(20));
    }
}

TEST_CASE("Source: a batch that is destroyed unsubmitted gives its slot back unread") {
    Source source{make_number, fill_number, Options{.workers = 1, .slots = 1, .batches = 3}};
    for (int batch = 0; batch < 3; ++batch)
        CHECK(*source.next() == batch * 10);
    CHECK_FALSE(source.next());
}

TEST_CASE("Source: says how many batches are ready, and how many slots there are") {
    ScopedLatch latch;
    Source source{make_number,
                  [handle = latch.handle()](std::size_t index, int&) {
                      if (index == 3)
                          handle.pass();
                  },
                  Options{.workers = 2, .slots = 5}};
    CHECK(source.slots() == 5);
    CHECK(source.filled() == 0);
    const auto first = source.next();
    // 4 may be filled, but comes behind 3.
    CHECK(eventually([&] { return source.filled() == 2; }));
    give_it_time();
    CHECK(source.filled() == 2);
    const auto hold = first.hold();
    CHECK(hold.ready_behind() == 2);
    CHECK(hold.slots() == 5);
    const auto second = source.next();
    CHECK(hold.ready_behind() == 1);
    latch.open();
    CHECK(eventually([&] { return source.filled() == 3; }));
    // What is dropped is not there any longer.
    source.stop();
    CHECK(source.filled() == 0);
    CHECK(hold.ready_behind() == 0);
    CHECK_FALSE(source.next());
    hold.give_up();
    source.rewind();
    const auto again = source.next();
    CHECK(eventually([&] { return source.filled() > 0; }));
    // The first batch, too, where none has been taken.
    ScopedLatch first_of_all;
    Source untaken{make_number, [handle = first_of_all.handle()](std::size_t, int&) { handle.pass(); },
                   Options{.workers = 1, .slots = 2, .timeout = std::chrono::milliseconds(1)}};
    CHECK_THROWS_AS((void)untaken.next(), Error);
    first_of_all.open();
    CHECK(eventually([&] { return untaken.filled() == 2; }));
    untaken.stop();
    CHECK(untaken.filled() == 0);
    CHECK_FALSE(untaken.next());
}

TEST_CASE("Contract 1: a slot is not filled before it is done with, and all that was recorded") {
    if (!streams_overlap<B>())
        return;
    const BasicStream<B> one, other;
    for (const int late : {0, 1}) {
        Gate<B> gate;
        std::atomic<int> fills{0};
        Source source{make_number, [&](std::size_t, int&) { ++fills; }, Options{.workers = 1, .slots = 1}};
        auto batch = source.next();
        const auto hold = batch.hold();
        batch.reset(); // the hold outlives it
        gate.hold(late == 0 ? one : other);
        hold.release(one);
        hold.release(other);
        hold.release(one);
        give_it_time();
        CHECK(fills.load() == 1); // not even waited for: more releases may come
        hold.give_up();
        give_it_time();
        CHECK(fills.load() == 1);
        gate.open();
        CHECK(eventually([&] { return fills == 2; }));
    }
}

TEST_CASE("Contract 1: streams that read a batch do not wait for each other") {
    if (!streams_overlap<B>())
        return;
    const BasicStream<B> held, free;
    Gate<B> gate;
    Source source{make_number, fill_number, Options{.workers = 1, .slots = 2}};
    {
        const auto batch = source.next();
        gate.hold(held);
        batch.release(held);
        batch.release(free);
        CHECK(eventually([&] { return free.is_done(); }));
    }
    gate.open();
}

TEST_CASE("Source: a slot that one stream reads at a time has one event, whichever streams those are") {
    const BasicStream<B> one, other;
    Source source{make_number, fill_number, Options{.workers = 1, .slots = 2, .batches = 20}};
    const std::uint64_t before = B::counts().events.created;
    for (const auto& batch : source)
        batch.release(batch.index() % 3 == 0 ? one : other);
    CHECK(B::counts().events.created == before);
}

TEST_CASE("Contract 1: *batch that is submitted holds the slot as batch does") {
    for (const Schedule schedule : {Schedule::serial, Schedule::overlapped}) {
        constexpr std::size_t batches = 10;
        Source source{make_buffer, fill_buffer, Options{.workers = 2, .slots = 2, .batches = batches}};
        Chain<B> chain(2, words, batches);
        chain.before = [](std::size_t stage, BasicStreamRef<B> stream, std::size_t) {
            if (stage == 0)
                ops::spin(stream.get(), 500);
        };
        auto pipeline = chain.pipeline<2>({.schedule = schedule});
        for (const auto& batch : source)
            pipeline.submit(*batch);
        pipeline.finish();
        CHECK(chain.results(batches) == chain_results(2, words, batches_from(0, batches)));
    }
}

TEST_CASE("Source: handles and holds may outlive their source") {
    const Alive before = alive_now<B>();
    {
        std::optional<SourceBatch<Buffer, B>> batch;
        SourceHold<B> hold;
        const BasicStream<B> stream;
        DeviceBuffer<Word, B> to(words);
        {
            Source source{make_buffer, fill_buffer, Options{.workers = 2}};
            batch = source.next();
            hold = source.next().hold();
        }
        copy(stream, to, (*batch)->span());
        batch->release(stream);
        hold.release(stream);
        batch.reset();
        hold.give_up();
        std::vector<Word> seen(words);
        copy_and_wait(stream, seen, to);
        for (std::size_t i = 0; i < words; ++i)
            CHECK(seen[i] == input_word(0, i));
    }
    CHECK(alive_now<B>() == before);
}

TEST_CASE("Source: a batch in hand stays as it is over a rewind") {
    for (const int workers : {0, 1, 3}) {
        Source source{make_number, fill_number, Options{.workers = workers, .slots = 3, .batches = 8}};
        (void)source.next();
        const auto held = source.next();
        source.rewind();
        CHECK(values_of(source) == tens(8));
        CHECK(*held == 10);
    }
}

TEST_CASE("Source: a release on a stream that is being captured is refused in a sentence") {
    const BasicStream<B> stream;
    DeviceBuffer<Word, B> to(words);
    Source source{make_buffer, fill_buffer, Options{.batches = 2}};
    const auto batch = source.next();
    std::string text;
    (void)capture(stream, [&](BasicStreamRef<B> s) {
        copy(s, to, batch->span());
        text = text_of([&] { batch.release(s); });
    });
    CHECK(contains(text, "released on a stream that is being captured"));
}

TEST_CASE("Source: a batch that has been given back is not held") {
    Source source{make_buffer, fill_buffer, Options{.workers = 0, .batches = 2}};
    const auto& value = *source.next();
    CHECK(contains(text_of([&] { (void)detail::HeldBatchAccess::hold(value); }),
                   "the batch has been given back"));
}

} // namespace pipeline_source_handles
