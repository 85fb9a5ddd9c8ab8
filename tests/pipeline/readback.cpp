// Results on their way back: in order, none lost, none waited for.
#include <chrono>
#include <memory>
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
    ~Pusher() { stream_.synchronize(); }

    void operator()(Readback<Word, Any>& readback, Word value) {
        ops::add_racing(stream_.native(), values_.data(), zeros_.data(), value, words);
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
    ops::spin(stream.native(), 5000);
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
          "readback: 9 values were pushed; this one takes 8 at a time");
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
    CHECK(contains_all(text,
                       {"capture refused", "readback: a push was being captured", "StageOptions::graphed"}));
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
    stream.synchronize();
    Clock::time_point start;
    {
        Readback<Word, B> readback(
            words, [](auto, auto) { FAIL("nobody asked for results"); }, 4);
        start = Clock::now();
        for (Word value = 0; value < 3; ++value) {
            ops::spin(stream.native(), 2000);
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
                    ops::spin(stream.native(), 500);
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
    B::clear_failure(stream.native());
    readback.reset();
    notes.values.clear();
    for (Word value = 0; value < 5; ++value)
        push(readback, value);
    readback.finish();
    CHECK(notes.values == numbers(5));
}
#endif

} // namespace pipeline_readback
