// Results that are copied back: in order, none lost, none waited for.
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "pipeline/readback_case.hpp"
#include "support/gate.hpp"

namespace pipeline_readback {

using namespace sluice;
using namespace sluice::test;
using namespace sluice::test::readback_case;

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

TEST_CASE("Readback: results of any number of bytes arrive whole, from wherever they begin") {
    Delay::set({.one_in = 0});
    using Byte = unsigned char;
    constexpr std::size_t most = 3000;
    const BasicStream<B> stream;
    DeviceBuffer<Byte, B> values(most + 8);
    DeviceBuffer<std::int64_t, B> length(1);
    std::vector<Byte> bytes(most + 8);
    for (std::size_t i = 0; i < bytes.size(); ++i)
        bytes[i] = static_cast<Byte>(i % 251);
    copy_and_wait(stream, values, bytes);
    std::vector<Byte> result;
    std::size_t results = 0;
    Readback<Byte, B> readback(
        most,
        [&](std::size_t, std::span<const Byte> of) {
            result.assign(of.begin(), of.end());
            ++results;
        },
        1);
    std::size_t pushes = 0;
    for (const std::size_t from : {0u, 1u, 2u, 4u}) {
        for (const std::size_t size :
             {0u, 1u, 3u, 4u, 127u, 128u, 129u, 512u, 516u, 1021u, 1024u, 1025u, 3000u}) {
            CAPTURE(from);
            CAPTURE(size);
            const DeviceSpan<const Byte, B> pushed(values.data() + from, size);
            const auto begin = bytes.begin() + static_cast<std::ptrdiff_t>(from);
            readback.push(stream, pushed);
            readback.finish();
            CHECK(result == std::vector<Byte>(begin, begin + static_cast<std::ptrdiff_t>(size)));

            const std::size_t part = size / 2;
            copy_and_wait(stream, length, std::vector<std::int64_t>{static_cast<std::int64_t>(part)});
            readback.push(stream, pushed, length);
            readback.finish();
            CHECK(result == std::vector<Byte>(begin, begin + static_cast<std::ptrdiff_t>(part)));
            pushes += 2;
        }
    }
    CHECK(results == pushes);
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
    CHECK(text_of([&] { readback.push(stream, DeviceSpan<const Word, B>(nullptr, 8)); }) ==
          "readback: for the values a null pointer to 8 elements was given; expected memory that holds as "
          "many");
    CHECK(contains(
        text_of([&] { readback.push(stream, more.first(8), DeviceSpan<const std::int64_t, B>(nullptr, 1)); }),
        "readback: for the length a null pointer to 1 element was given"));
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

TEST_CASE("Readback: more values than any memory holds are refused in a sentence") {
    for (const std::size_t count : {~std::size_t{0}, ~std::size_t{0} / sizeof(Word), ~std::size_t{0} / 2}) {
        CHECK(text_of([&] { Readback<Word, B>(count, [](auto, auto) {}); }) ==
              "a readback of " + std::to_string(count) + " values of 4 bytes each is larger than any memory");
    }
}

TEST_CASE("Readback: less than one slot, or too many, are refused in a sentence") {
    for (const int slots : {0, -3, std::numeric_limits<int>::max()}) {
        CHECK(text_of([&] {
                  Readback<Word, B>(
                      1, [](auto, auto) {}, slots);
              }) == "readback: the number of slots is " + std::to_string(slots) + "; expected 1 to 1048576");
    }
}

TEST_CASE("Readback: its end waits for copies under way") {
    if (!streams_overlap<B>())
        return;
    Delay::set({.one_in = 0});
    const BasicStream<B> stream;
    Gate<B> gate;
    Pusher<B> push(stream);
    stream.sync();
    std::atomic<bool> opened = false;
    std::thread opener;
    {
        Readback<Word, B> readback(
            words, [](auto, auto) { FAIL("no results were asked for"); }, 4);
        gate.hold(stream);
        for (Word value = 0; value < 3; ++value)
            push(readback, value);
        opener = std::thread([&] {
            std::this_thread::sleep_for(std::chrono::milliseconds(20));
            opened = true;
            gate.open();
        });
    }
    const bool waited = opened;
    opener.join();
    CHECK(waited);
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

} // namespace pipeline_readback
