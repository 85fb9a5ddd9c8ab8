// Results on their way back: in order, none lost, none waited for.
#include <algorithm>
#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <stdexcept>
#include <vector>

#include "pipeline/chain.hpp"
#include "support/alive.hpp"
#include "support/delayed_backend.hpp"
#include "support/faulty_backend.hpp"
#include "support/gate.hpp"

namespace pipeline_readback {

using namespace sluice;
using namespace sluice::test;

namespace {

using B = Delayed<TestBackend>;
constexpr std::size_t words = 8;

// Pushes the words value, value, …, made on the stream; what is pushed is overwritten at once.
template <Backend Any>
class Pusher {
public:
    explicit Pusher(BasicStreamRef<Any> stream) : stream_(stream), zeros_(words), values_(words) {
        fill_bytes(stream, zeros_, 0);
        fill_bytes(stream, values_, 0xFF);
    }
    Pusher(const Pusher&) = delete;
    Pusher& operator=(const Pusher&) = delete;
    ~Pusher() { stream_.sync(); }

    void operator()(Readback<Word, Any>& readback, Word value) {
        ops::add_racing(stream_.get(), values_.data(), zeros_.data(), value, words);
        readback.push(stream_, values_);
        fill_bytes(stream_, values_, 0xFF);
    }

private:
    BasicStreamRef<Any> stream_;
    DeviceBuffer<Word, Any> zeros_, values_;
};

// Notes results, and checks that they come in order and whole.
struct Notes {
    std::vector<Word> values;
    std::size_t first_index = 0;

    auto handler() {
        return [this](std::size_t index, std::span<const Word> result) {
            CHECK(index == first_index + values.size());
            CHECK(result.size() == words);
            CHECK(std::vector<Word>(result.begin(), result.end()) == std::vector<Word>(words, result[0]));
            values.push_back(result[0]);
        };
    }
};

std::vector<Word> numbers(Word count) {
    std::vector<Word> result;
    for (Word i = 0; i < count; ++i)
        result.push_back(i);
    return result;
}

} // namespace

TEST_CASE("Readback: results come in order and whole, however many are pushed") {
    for (const int slots : {1, 2, 3, 16}) {
        for (const Word count : {0u, 1u, 2u, 3u, 40u}) {
            CAPTURE(slots);
            CAPTURE(count);
            Delay::set({.seed = count, .one_in = 3, .microseconds = 200});
            const BasicStream<B> stream;
            Notes notes;
            Pusher<B> push(stream);
            Readback<Word, B> readback(words, notes.handler(), slots);
            for (Word value = 0; value < count; ++value) {
                push(readback, value);
                CHECK(readback.pushed() == value + 1);
                CHECK(readback.pushed() - notes.values.size() <= static_cast<std::size_t>(slots));
                if (value % 5 == 2)
                    readback.poll();
                if (value % 11 == 7)
                    readback.finish();
            }
            readback.finish();
            readback.finish();
            readback.poll();
            CHECK(notes.values == numbers(count));
        }
    }
}

TEST_CASE("Readback: pushing waits only when all slots are on their way, and polling never") {
    if (!streams_overlap<B>())
        return;
    Delay::set({.one_in = 0});
    const BasicStream<B> stream;
    Gate<B> gate;
    Notes notes;
    Pusher<B> push(stream);
    Readback<Word, B> readback(words, notes.handler(), 4);
    gate.hold(stream);
    for (Word value = 0; value < 4; ++value) {
        push(readback, value);
        readback.poll();
    }
    CHECK(notes.values.empty());
    gate.open();
    push(readback, 4); // the oldest is handed over first
    CHECK_FALSE(notes.values.empty());
    readback.finish();
    CHECK(notes.values == numbers(5));
}

TEST_CASE("Readback: a handler that throws is not called for the same result again, and no other is lost") {
    Delay::set({.one_in = 0});
    const BasicStream<B> stream;
    Pusher<B> push(stream);
    std::vector<Word> seen;
    Readback<Word, B> readback(
        words,
        [&](std::size_t, std::span<const Word> result) {
            seen.push_back(result[0]);
            if (result[0] % 3 == 1)
                throw std::domain_error("loss is not a number");
        },
        2);
    int thrown = 0;
    const auto count = [&](auto call) {
        try {
            call();
        } catch (const std::domain_error&) {
            ++thrown;
        }
    };
    for (Word value = 0; value < 12; ++value) {
        // What throws is an earlier result: this one has to be pushed again.
        const std::size_t pushed = readback.pushed();
        while (readback.pushed() == pushed)
            count([&] { push(readback, value); });
        count([&] { readback.poll(); });
    }
    for (int tries = 0; tries < 5; ++tries)
        count([&] { readback.finish(); });
    CHECK(seen == numbers(12));
    CHECK(thrown == 4);
}

TEST_CASE("Contract 5: a handler that throws within a stage fails the pipeline, and reset makes it usable") {
    Delay::set({.one_in = 0});
    const Inputs<B> inputs(4, words);
    Chain<B> chain(2, words, 4);
    bool broken = true;
    std::size_t results = 0;
    Readback<Word, B> readback(
        words,
        [&](std::size_t, std::span<const Word>) {
            ++results;
            if (broken)
                throw std::domain_error("loss is not a number");
        },
        1);
    chain.after = [&](std::size_t stage, BasicStreamRef<B> stream, std::size_t) {
        if (stage == 1)
            readback.push(stream, chain.memory(1));
    };
    auto pipeline = chain.pipeline<2>();
    pipeline.submit(inputs[0]);
    const Caught error([&] { pipeline.submit(inputs[1]); });
    CHECK(error.text() == "stage 'second', batch 1: its callable threw: loss is not a number");
    CHECK(error.nests<std::domain_error>([](const auto&) { return true; }));
    CHECK(results == 1);

    broken = false;
    pipeline.reset();
    readback.reset();
    CHECK(readback.pushed() == 0);
    chain.clear();
    results = 0;
    for (std::size_t batch = 0; batch < 4; ++batch)
        pipeline.submit(inputs[batch]);
    pipeline.finish();
    readback.finish();
    CHECK(results == 4);
    CHECK(chain.results(4) == chain_results(2, words, batches_from(0, 4)));
}

TEST_CASE("Readback: reset drops what is on its way, and counts from 0 again") {
    Delay::set({.one_in = 0});
    const BasicStream<B> stream;
    Notes notes;
    Pusher<B> push(stream);
    Readback<Word, B> readback(words, notes.handler(), 8);
    ops::spin(stream.get(), 5000);
    for (Word value = 90; value < 95; ++value)
        push(readback, value);
    readback.reset();
    CHECK(notes.values.empty());
    CHECK(readback.pushed() == 0);
    for (Word value = 0; value < 20; ++value)
        push(readback, value);
    readback.finish();
    CHECK(notes.values == numbers(20));
}

TEST_CASE("Readback: a push of another size is refused in a sentence, and changes nothing") {
    Delay::set({.one_in = 0});
    const BasicStream<B> stream;
    Notes notes;
    Pusher<B> push(stream);
    Readback<Word, B> readback(words, notes.handler(), 2);
    DeviceBuffer<Word, B> more(words + 1);
    push(readback, 0);
    CHECK(text_of([&] { readback.push(stream, more); }) ==
          "readback: 9 values were pushed; this one takes 8 at most");
    CHECK(readback.pushed() == 1);
    push(readback, 1);
    readback.finish();
    CHECK(notes.values == numbers(2));
}

TEST_CASE("Readback: a push is not captured, also as the first one, and changes nothing") {
    Delay::set({.one_in = 0});
    const BasicStream<B> stream;
    Notes notes;
    Readback<Word, B> readback(words, notes.handler(), 2);
    DeviceBuffer<Word, B> values(words);
    const std::string text =
        text_of([&] { (void)capture(stream, [&](BasicStreamRef<B> s) { readback.push(s, values); }); });
    CHECK(contains_all(text, {"readback: a push was being captured", "StageOptions::graphed"}));
    CHECK(readback.pushed() == 0);
}

TEST_CASE("Readback: less than one slot is refused in a sentence") {
    for (const int slots : {0, -3}) {
        CHECK(text_of([&] {
                  Readback<Word, B>(
                      1, [](auto, auto) {}, slots);
              }) == "a readback needs at least 1 slot, got " + std::to_string(slots));
    }
}

TEST_CASE("Readback: its end waits for copies under way") {
    Delay::set({.one_in = 0});
    using Clock = std::chrono::steady_clock;
    const BasicStream<B> stream;
    Pusher<B> push(stream);
    stream.sync();
    Clock::time_point start;
    {
        Readback<Word, B> readback(
            words, [](auto, auto) { FAIL("nobody asked for results"); }, 4);
        start = Clock::now();
        for (Word value = 0; value < 3; ++value) {
            ops::spin(stream.get(), 2000);
            push(readback, value);
        }
    }
    CHECK(Clock::now() - start >= std::chrono::milliseconds(5));
}

TEST_CASE("Contract 5: any one call of a readback fails: an Error, and no copy outlives its memory") {
    using F = Faulty<TestBackend>;
    const Alive before = alive_now<F>();
    {
        const BasicStream<F> stream;
        Pusher<F> push(stream);
        bool reached = true;
        for (long call = 1; reached && call < 1000; ++call) {
            CAPTURE(call);
            Fault::arm(call);
            try {
                Notes notes;
                Readback<Word, F> readback(words, notes.handler(), 2);
                for (Word value = 0; value < 5; ++value) {
                    ops::spin(stream.get(), 500);
                    push(readback, value);
                }
                readback.finish();
                CHECK(notes.values == numbers(5));
            } catch (const Error& error) {
                CHECK(error.name() == Fault::name);
            }
            reached = Fault::calls_made() >= call;
            Fault::disarm();
        }
        CHECK_FALSE(reached);
    }
    CHECK(alive_now<F>() == before);
}

TEST_CASE("Readback: a handler that pushes leaves the values that it was given as they are") {
    Delay::set({.one_in = 0});
    for (const int slots : {1, 2, 4}) {
        CAPTURE(slots);
        const BasicStream<B> stream;
        Pusher<B> push(stream), push_within(stream);
        std::vector<Word> seen;
        std::string refused;
        Readback<Word, B>* self = nullptr;
        Readback<Word, B> readback(
            words,
            [&](std::size_t, std::span<const Word> values) {
                const std::vector<Word> before(values.begin(), values.end());
                if (values[0] < 100) {
                    refused = text_of([&] { push_within(*self, values[0] + 100); });
                    self->poll(); // calls no handler within this one
                    CHECK(contains(text_of([&] { self->finish(); }),
                                   "finish was called from within the handler"));
                }
                stream.sync();
                CHECK(std::vector<Word>(values.begin(), values.end()) == before);
                seen.push_back(values[0]);
            },
            slots);
        self = &readback;
        Gate<B> gate; // so that nothing arrives before both are pushed, where there is room for both
        if (slots > 1)
            gate.hold(stream);
        push(readback, 1);
        push(readback, 2);
        gate.open();
        readback.finish();
        if (slots == 1) {
            CHECK(seen == std::vector<Word>{1, 2});
            CHECK(contains(refused, "a push from within the handler found no free slot, since all 1"));
        } else if (slots == 4) {
            CHECK(seen == std::vector<Word>{1, 2, 101, 102});
        } else {
            CHECK(std::count(seen.begin(), seen.end(), 1) == 1);
            CHECK(std::count(seen.begin(), seen.end(), 2) == 1);
        }
    }
}

TEST_CASE("Readback: a reset within the handler leaves the values that it was given as they are") {
    Delay::set({.one_in = 0});
    const BasicStream<B> stream;
    Pusher<B> push(stream);
    Readback<Word, B>* self = nullptr;
    std::vector<Word> seen;
    Readback<Word, B> readback(
        words,
        [&](std::size_t index, std::span<const Word> values) {
            CHECK(index == 0);
            seen.push_back(values[0]);
            if (values[0] == 1) {
                self->reset();
                push(*self, 3);
                push(*self, 4);
                CHECK(contains(text_of([&] { push(*self, 5); }), "found no free slot"));
                self->reset();
                CHECK(values[0] == 1);
            }
        },
        3);
    self = &readback;
    Gate<B> gate; // so that nothing arrives before both are pushed
    gate.hold(stream);
    push(readback, 1);
    push(readback, 2);
    gate.open();
    readback.finish();
    push(readback, 6);
    readback.finish();
    CHECK(seen == std::vector<Word>{1, 6});
}

TEST_CASE("Readback: a shorter result is handed over as long as it is") {
    Delay::set({.one_in = 0});
    const BasicStream<B> stream;
    std::vector<std::vector<Word>> seen;
    Readback<Word, B> readback(
        words, [&](auto, std::span<const Word> values) { seen.emplace_back(values.begin(), values.end()); },
        2);
    DeviceBuffer<Word, B> values(words);
    fill_bytes(stream, values, 0x11);
    for (const std::size_t size : {words, std::size_t{3}, std::size_t{0}, std::size_t{1}})
        readback.push(stream, values.span().first(size));
    readback.finish();
    REQUIRE(seen.size() == 4);
    CHECK(seen[0] == std::vector<Word>(words, 0x11111111));
    CHECK(seen[1] == std::vector<Word>(3, 0x11111111));
    CHECK(seen[2].empty());
    CHECK(seen[3] == std::vector<Word>(1, 0x11111111));
}

TEST_CASE("Readback: a result whose length the device knows is handed over as long as it says") {
    Delay::set({.one_in = 0});
    const BasicStream<B> stream;
    std::vector<std::size_t> sizes;
    Readback<Word, B> readback(
        words, [&](auto, std::span<const Word> values) { sizes.push_back(values.size()); }, 2);
    DeviceBuffer<Word, B> values(words);
    fill_bytes(stream, values, 0);
    DeviceBuffer<std::int64_t, B> length(1), two(2);
    PinnedBuffer<std::int64_t, B> from(6);
    const std::int64_t lengths[] = {3, 0, 8, 9, -1, 1};
    std::copy(std::begin(lengths), std::end(lengths), from.begin());
    std::string text;
    const auto note = [&](auto call) {
        const std::string thrown = text_of(call);
        if (!thrown.empty())
            text += thrown + "; ";
    };
    for (std::size_t i = 0; i < 6; ++i) {
        copy(stream, length, from.span().subspan(i, 1));
        const std::size_t pushed = readback.pushed();
        while (readback.pushed() == pushed)
            note([&] { readback.push(stream, values, length); });
    }
    for (int tries = 0; tries < 3; ++tries)
        note([&] { readback.finish(); });
    CHECK(sizes == std::vector<std::size_t>{3, 0, 8, 1});
    CHECK(contains_all(text, {"result 3 has a length of 9 values; expected 0 to the 8 that were pushed",
                              "result 4 has a length of -1 values"}));
    CHECK(contains(text_of([&] { readback.push(stream, values, two); }),
                   "2 lengths were pushed with a result; expected 1"));
}

namespace {

// A captured executable whose replays tell the hooks, as GraphCapture's do.
template <Backend Any>
class Replayable {
public:
    template <class Work>
    Replayable(const BasicStream<Any>& stream, Work&& work) {
        const auto graph = capture(stream, [&](BasicStreamRef<Any> s) {
            hooks_.clear(); // of an attempt before
            auto& place = detail::replay_hooks<Any>();
            struct Scope {
                detail::ReplayHooks<Any>*& place;
                ~Scope() { place = nullptr; }
            } const scope{place};
            place = &hooks_;
            work(s);
        });
        executable_.emplace(graph);
    }
    void launch(BasicStreamRef<Any> stream) {
        for (const auto& hook : hooks_)
            hook->before_replay();
        executable_->launch(stream);
        for (const auto& hook : hooks_)
            hook->after_replay(stream);
    }
    std::size_t hooks() const { return hooks_.size(); }

private:
    detail::ReplayHooks<Any> hooks_;
    std::optional<BasicGraphExec<Any>> executable_;
};

// A number on the device that each replay raises, and pushes.
template <Backend Any>
class Counter {
public:
    explicit Counter(BasicStreamRef<Any> stream) : stream_(stream), value_(words), one_(words) {
        fill_bytes(stream, value_, 0);
        set(0);
    }
    Counter(const Counter&) = delete;
    Counter& operator=(const Counter&) = delete;
    ~Counter() {
        try {
            stream_.sync();
        } catch (...) {
        }
    }
    void set(Word value) {
        fill_bytes(stream_, one_, 0);
        ops::add_racing(stream_.get(), value_.data(), one_.data(), value, words);
    }
    // value += 1, without the host's knowing what it was.
    void raise_and_push(BasicStreamRef<Any> stream, Readback<Word, Any>& readback) {
        ops::add_racing(stream.get(), value_.data(), value_.data(), 1, words);
        readback.push(stream, value_);
    }

private:
    BasicStreamRef<Any> stream_;
    DeviceBuffer<Word, Any> value_, one_;
};

} // namespace

TEST_CASE("Readback: replays push, in the order of the launches among the others, each once") {
    for (const int slots : {1, 2, 16}) {
        for (const int pushes : {1, 3}) {
            CAPTURE(slots);
            CAPTURE(pushes);
            if (slots == 1 && pushes == 3)
                continue;
            Delay::set({.one_in = 0});
            const BasicStream<B> stream;
            Notes notes;
            Counter<B> counter(stream);
            Readback<Word, B> readback(words, notes.handler(), slots);
            const auto work = [&](BasicStreamRef<B> s) {
                for (int i = 0; i < pushes; ++i)
                    counter.raise_and_push(s, readback);
            };
            Replayable<B> one(stream, work), other(stream, work);
            CHECK(one.hooks() == 1);
            CHECK(readback.pushed() == 0);
            Word expected = 0;
            for (int round = 0; round < 40; ++round) {
                switch (round % 5) {
                case 0:
                case 1:
                    one.launch(stream);
                    break;
                case 2:
                    other.launch(stream);
                    break;
                case 3:
                    work(stream);
                    break;
                default:
                    one.launch(stream);
                    readback.poll();
                }
                expected += static_cast<Word>(pushes);
                CHECK(readback.pushed() == expected);
                if (round == 25)
                    readback.finish();
            }
            readback.finish();
            std::vector<Word> all;
            for (Word value = 1; value <= expected; ++value)
                all.push_back(value);
            CHECK(notes.values == all);
        }
    }
}

TEST_CASE("Readback: a graph that is evicted with results under way loses none, nor one that outlives the "
          "readback") {
    Delay::set({.one_in = 0});
    const Alive before = alive_now<B>();
    {
        const BasicStream<B> stream;
        Counter<B> counter(stream);
        std::optional<Replayable<B>> late;
        {
            Notes notes;
            Readback<Word, B> readback(words, notes.handler(), 2);
            const auto work = [&](BasicStreamRef<B> s) { counter.raise_and_push(s, readback); };
            {
                Replayable<B> evicted(stream, work);
                ops::spin(stream.get(), 3000);
                evicted.launch(stream);
            }
            Replayable<B> next(stream, work);
            next.launch(stream);
            readback.finish();
            CHECK(notes.values == std::vector<Word>{1, 2});
            // Places that went with their graphs come back: far more captures than there are places.
            for (int i = 0; i < 200; ++i) {
                Replayable<B> another(stream, work);
                another.launch(stream);
                readback.finish();
            }
            CHECK(notes.values.size() == 202);
            late.emplace(stream, work);
            ops::spin(stream.get(), 3000);
            late->launch(stream);
        }
        late->launch(stream);
        late->launch(stream);
    }
    CHECK(alive_now<B>() == before);
}

TEST_CASE("Readback: reset drops what replays have pushed, and they go on") {
    Delay::set({.one_in = 0});
    const BasicStream<B> stream;
    Notes notes;
    Counter<B> counter(stream);
    Readback<Word, B> readback(words, notes.handler(), 2);
    Replayable<B> graph(stream, [&](BasicStreamRef<B> s) { counter.raise_and_push(s, readback); });
    graph.launch(stream);
    readback.reset();
    CHECK(readback.pushed() == 0);
    graph.launch(stream);
    graph.launch(stream);
    readback.finish();
    CHECK(notes.values == std::vector<Word>{2, 3});
}

TEST_CASE("Readback: a handler that throws before a replay loses no result, and the replay is not made") {
    Delay::set({.one_in = 0});
    const BasicStream<B> stream;
    std::vector<Word> seen;
    Counter<B> counter(stream);
    Readback<Word, B> readback(
        words,
        [&](auto, std::span<const Word> values) {
            seen.push_back(values[0]);
            if (values[0] == 1)
                throw std::domain_error("loss is not a number");
        },
        2);
    Replayable<B> graph(stream, [&](BasicStreamRef<B> s) { counter.raise_and_push(s, readback); });
    graph.launch(stream);
    CHECK_THROWS_AS(graph.launch(stream), std::domain_error);
    CHECK(readback.pushed() == 1);
    graph.launch(stream);
    readback.finish();
    CHECK(seen == std::vector<Word>{1, 2});
}

TEST_CASE("Readback: a captured push whose length the device knows") {
    Delay::set({.one_in = 0});
    const BasicStream<B> stream;
    std::vector<std::size_t> sizes;
    Readback<Word, B> readback(
        words, [&](auto, std::span<const Word> values) { sizes.push_back(values.size()); }, 2);
    DeviceBuffer<Word, B> values(words);
    fill_bytes(stream, values, 0);
    DeviceBuffer<std::int64_t, B> length(1);
    PinnedBuffer<std::int64_t, B> from(1);
    Replayable<B> graph(stream, [&](BasicStreamRef<B> s) {
        copy(s, length, from);
        readback.push(s, values, length);
    });
    for (const std::int64_t size : {5, 0, 8}) {
        from[0] = size;
        graph.launch(stream);
        stream.sync(); // before `from` changes
    }
    readback.finish();
    CHECK(sizes == std::vector<std::size_t>{5, 0, 8});
}

TEST_CASE("Readback: more captured pushes than there is pinned memory for are refused in a sentence") {
    Delay::set({.one_in = 0});
    const BasicStream<B> stream;
    constexpr std::size_t large = 1 << 16;
    DeviceBuffer<Word, B> values(large);
    fill_bytes(stream, values, 0);
    std::size_t handed = 0;
    Readback<Word, B> readback(
        large, [&](auto, auto) { ++handed; }, 2);
    const auto work = [&](int pushes) {
        return [&, pushes](BasicStreamRef<B> s) {
            for (int i = 0; i < pushes; ++i)
                readback.push(s, values);
        };
    };
    CHECK(contains(text_of([&] { Replayable<B>(stream, work(3)); }),
                   "no pinned memory is left for a captured push"));
    for (int graph = 0; graph < 2; ++graph) {
        work(2)(stream); // an eager run makes room for the next capture
        Replayable<B> captured(stream, work(2));
        captured.launch(stream);
        readback.finish();
    }
    CHECK(handed == 8);
}

#if !defined(SLUICE_TEST_CUDA)
TEST_CASE("Contract 5: after a fault of the work that was read back, reset makes a readback usable") {
    Delay::set({.one_in = 0});
    const BasicStream<B> stream;
    Notes notes;
    Pusher<B> push(stream);
    Readback<Word, B> readback(words, notes.handler(), 2);
    push(readback, 0);
    stream.enqueue([] { throw std::range_error("bad pixel"); });
    push(readback, 1);
    CHECK(contains(text_of([&] { readback.finish(); }), "bad pixel"));
    CHECK(notes.values == numbers(1));
    B::clear_failure(stream.get());
    readback.reset();
    notes.values.clear();
    for (Word value = 0; value < 5; ++value)
        push(readback, value);
    readback.finish();
    CHECK(notes.values == numbers(5));
}
#endif

} // namespace pipeline_readback
