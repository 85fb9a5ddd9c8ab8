// Counters that streams and host threads signal and wait for.
#include <chrono>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>

#include <sluice/backend/semaphore.hpp>

#include "support/alive.hpp"
#include "support/backend.hpp"
#include "support/delayed_backend.hpp"
#include "support/doctest.hpp"
#include "support/error_text.hpp"
#include "support/faulty_backend.hpp"
#include "support/gate.hpp"
#include "support/heap_count.hpp"
#include "support/latch.hpp"
#include "support/on_stream.hpp"

namespace backend_semaphore {

using namespace sluice;
using namespace sluice::test;
using namespace std::chrono_literals;

namespace {

using B = TestBackend;
using TestSemaphore = BasicSemaphore<B>;

static_assert(SemaphoreBackend<B>);
static_assert(SemaphoreBackend<Faulty<Delayed<B>>>);

} // namespace

TEST_CASE("a semaphore starts at 0 and is raised by the host") {
    const std::uint64_t alive = B::counts().semaphores.alive;
    {
        TestSemaphore semaphore;
        CHECK(B::counts().semaphores.alive == alive + 1);
        CHECK(semaphore.value() == 0);
        CHECK(semaphore.wait_for(0, 0ns));
        CHECK_FALSE(semaphore.wait_for(1, 0ns));
        semaphore.signal(3);
        CHECK(semaphore.value() == 3);
        CHECK(semaphore.wait_for(2, 0ns));
        CHECK(semaphore.wait_for(3, 0ns));
        CHECK_FALSE(semaphore.reached(4));
        TestSemaphore moved(std::move(semaphore));
        CHECK(moved.value() == 3);
        moved.reset();
        CHECK(moved.value() == 0);
    }
    CHECK(B::counts().semaphores.alive == alive);
}

TEST_CASE("a semaphore that is assigned to has the other one's counter, and its own is gone") {
    const std::uint64_t alive = B::counts().semaphores.alive;
    {
        TestSemaphore first, second;
        first.signal(3);
        second.signal(7);
        first = std::move(second);
        CHECK(B::counts().semaphores.alive == alive + 1);
        CHECK(first.value() == 7);
        TestSemaphore& itself = first;
        first = std::move(itself);
        CHECK(first.value() == 7);
        second = TestSemaphore();
        CHECK(second.value() == 0);
        CHECK(B::counts().semaphores.alive == alive + 2);
    }
    CHECK(B::counts().semaphores.alive == alive);
}

TEST_CASE("waiting on the host gives up in time") {
    const TestSemaphore semaphore;
    const auto start = std::chrono::steady_clock::now();
    CHECK_FALSE(semaphore.wait_for(1, 20ms));
    const auto waited = std::chrono::steady_clock::now() - start;
    CHECK(waited >= 20ms);
}

TEST_CASE("a stream raises a semaphore after its earlier work, whose writes a thread then sees") {
    if (!streams_overlap<B>())
        return;
    const BasicStream<B> stream;
    TestSemaphore semaphore;
    PinnedBuffer<Word, B> out(1), in(1), memory(1);
    out[0] = memory[0] = 0;
    for (std::uint32_t i = 1; i <= 200; ++i) {
        in[0] = i;
        const Word expected = next_word(memory[0], i);
        ops::step(stream.get(), out.data(), in.data(), memory.data(), 1);
        semaphore.signal(stream, i);
        REQUIRE(semaphore.wait_for(i, patience));
        REQUIRE(out[0] == expected);
    }
    CHECK(semaphore.value() == 200);
    stream.sync();
}

TEST_CASE("a stream waits for the host, and others do not") {
    if (!streams_overlap<B>())
        return;
    const BasicStream<B> stream;
    const BasicStream<B> other;
    TestSemaphore semaphore;
    TestSemaphore passed;
    semaphore.wait(stream, 2);
    passed.signal(stream, 1);
    passed.signal(other, 0);
    other.sync();
    give_it_time();
    CHECK(passed.value() == 0);
    semaphore.signal(1);
    give_it_time();
    CHECK(passed.value() == 0);
    CHECK_FALSE(stream.is_done());
    semaphore.signal(7); // above is as good
    CHECK(passed.wait_for(1, patience));
    stream.sync();
}

TEST_CASE("two streams and the host keep their order over a pair of semaphores") {
    if (!streams_overlap<B>())
        return;
    const BasicStream<B> first;
    const BasicStream<B> second;
    TestSemaphore forth;
    TestSemaphore back;
    PinnedBuffer<Word, B> word(1), memory(2);
    word[0] = memory[0] = memory[1] = 0;
    Word expected = 0;
    Word memories[2] = {0, 0};
    for (std::uint32_t i = 1; i <= 100; ++i) {
        back.wait(first, i - 1);
        ops::step(first.get(), word.data(), word.data(), memory.data(), 1);
        forth.signal(first, i);
        forth.wait(second, i);
        ops::step(second.get(), word.data(), word.data(), memory.data() + 1, 1);
        back.signal(second, i);
        for (Word& each : memories) {
            const Word in = expected;
            expected = next_word(each, in);
            each = next_memory(each, in);
        }
    }
    REQUIRE(back.wait_for(100, patience));
    CHECK(word[0] == expected);
    first.sync();
    second.sync();
}

TEST_CASE("values are compared round the end of 32 bits") {
    const BasicStream<B> stream;
    TestSemaphore semaphore;
    semaphore.signal(0x7fffffffu);
    semaphore.signal(0xfffffff0u);
    CHECK(semaphore.value() == 0xfffffff0u);
    CHECK_FALSE(semaphore.reached(3));
    semaphore.wait(stream, 0xfffffff0u);
    stream.sync();
    semaphore.signal(stream, 3);
    semaphore.wait(stream, 0xfffffff1u);
    stream.sync();
    CHECK(semaphore.wait_for(0xfffffff5u, 0ns));
    CHECK(semaphore.value() == 3);
}

TEST_CASE("a thread that waits long still sees the value") {
    TestSemaphore semaphore;
    std::thread late([&] {
        std::this_thread::sleep_for(5ms);
        semaphore.signal(1);
    });
    CHECK(semaphore.wait_for(1, patience));
    late.join();
}

TEST_CASE("signals and waits take no heap memory") {
    const BasicStream<B> stream;
    TestSemaphore semaphore;
    TestSemaphore gate;
    std::uint32_t value = 0;
    const auto enqueue = [&] {
        for (int i = 0; i < 100; ++i) {
            semaphore.signal(stream, ++value);
            semaphore.wait(stream, value);
        }
    };
    const auto await = [&] {
        CHECK(semaphore.wait_for(value, patience));
        stream.sync();
    };
    // Behind a gate all are outstanding at once, as many as the list of waits has to hold later, however fast the stream is.
    gate.wait(stream, 1);
    enqueue();
    gate.signal(1);
    await();
    const HeapCount heap;
    enqueue();
    await();
    CHECK(heap.allocations() == 0);
}

#if !defined(SLUICE_TEST_CUDA)
TEST_CASE("a failed stream still signals, and who waits for that value fails with the same cause") {
    const HostStream failed;
    const HostStream waiting;
    const HostStream earlier;
    HostSemaphore semaphore;
    semaphore.signal(failed, 1);
    failed.enqueue([] { throw std::runtime_error("the tape ran out"); });
    semaphore.signal(failed, 2);
    semaphore.wait(waiting, 2);
    bool ran = false;
    waiting.enqueue([&ran] { ran = true; });
    CHECK(contains(text_of([&] { waiting.sync(); }), "the tape ran out"));
    CHECK_FALSE(ran);
    semaphore.wait(earlier, 1);
    earlier.sync();

    Host::clear_failure(failed.get());
    Host::clear_failure(waiting.get());
    semaphore.signal(failed, 3);
    semaphore.wait(waiting, 3);
    waiting.sync();
    CHECK(contains(text_of([&] {
                       semaphore.wait(waiting, 2);
                       waiting.sync();
                   }),
                   "the tape ran out"));
    semaphore.reset();
    Host::clear_failure(waiting.get());
    semaphore.wait(waiting, 0);
    waiting.sync();
}

TEST_CASE("of failed streams that signal in turn, a value has the failure of the one that raised the counter "
          "to it") {
    const auto fail = [](const HostStream& stream, const char* why) {
        stream.enqueue([why] { throw std::runtime_error(why); });
    };
    const auto text_at = [](HostSemaphore& semaphore, std::uint32_t value) {
        const HostStream waiting;
        semaphore.wait(waiting, value);
        return text_of([&] { waiting.sync(); });
    };
    const HostStream first;
    const HostStream second;
    HostSemaphore semaphore;
    fail(first, "the first went wrong");
    semaphore.signal(first, 1); // from 0 on
    CHECK(contains(text_at(semaphore, 1), "the first went wrong"));
    semaphore.signal(3);
    fail(second, "the second went wrong");
    semaphore.signal(second, 5);
    CHECK(contains(text_at(semaphore, 5), "the second went wrong"));
    CHECK(contains(text_at(semaphore, 4), "the second went wrong"));
    CHECK(text_at(semaphore, 3).empty()); // by the host, between the two
    semaphore.signal(first, 6);           // right behind: what failed first is what the others are told
    CHECK(contains(text_at(semaphore, 6), "the second went wrong"));
    CHECK(contains(text_at(semaphore, 4), "the second went wrong"));
}

TEST_CASE("a captured stream takes neither signals nor waits") {
    const HostStream stream;
    HostSemaphore semaphore;
    for (const bool waits : {true, false}) {
        Host::begin_capture(stream.get(), CaptureMode::this_thread);
        const std::string text = text_of([&] {
            if (waits)
                semaphore.wait(stream, 7);
            else
                semaphore.signal(stream, 8); // which would end that wait
        });
        CHECK(contains(text, "being captured"));
        CHECK_THROWS_AS((void)Host::end_capture(stream.get()), Error);
        CHECK_FALSE(detail::SemaphoreWaits::instance().give_up(stream.get())); // of what was refused
    }
    CHECK(semaphore.value() == 0);
}
#endif

TEST_CASE("destroying a semaphore ends the waits that cannot be signalled any more") {
    if (!streams_overlap<B>())
        return;
    const BasicStream<B> stream;
    {
        TestSemaphore semaphore;
        semaphore.wait(stream, 1);
        semaphore.wait(stream, 2);
    }
    if constexpr (!KernelGraphBackend<B>)
        CHECK(contains(text_of([&] { stream.sync(); }),
                       "semaphore: a stream waits for the value 1, which was not signalled"));
    else
        stream.sync();
}

TEST_CASE("destroying a semaphore ends such a wait, too, behind many that have been signalled") {
    if (!streams_overlap<B>())
        return;
    const BasicStream<B> stream, other;
    {
        TestSemaphore never, semaphore;
        never.wait(stream, 1);
        for (std::uint32_t value = 1; value <= 300; ++value) {
            semaphore.signal(other, value);
            semaphore.wait(other, value);
            if (value % 50 == 0)
                other.sync();
        }
    }
    if constexpr (!KernelGraphBackend<B>)
        CHECK(contains(text_of([&] { stream.sync(); }), "waits for the value 1, which was not signalled"));
    else
        stream.sync();
}

TEST_CASE("a stream that an exception destroys does not wait for what will not be signalled") {
    if (!streams_overlap<B>())
        return;
    TestSemaphore semaphore;
    const auto throwing = [&] {
        const BasicStream<B> stream;
        semaphore.wait(stream, 3);
        throw std::runtime_error("as asked");
    };
    CHECK_THROWS_WITH(throwing(), "as asked");
    CHECK(semaphore.value() == 3);
}

TEST_CASE("only waits for what no stream will signal are given up") {
    if (!streams_overlap<B>())
        return;
    auto& waits = detail::SemaphoreWaits::instance();
    TestSemaphore semaphore;
    Gate<B> gate;
    const BasicStream<B> stream;
    const BasicStream<B> other;
    gate.hold(other);
    semaphore.signal(other, 2);
    semaphore.wait(stream, 1);
    semaphore.wait(stream, 2);
    CHECK_FALSE(waits.give_up(stream.get())); // returns at once
    CHECK(semaphore.value() == 0);
    CHECK_FALSE(waits.give_up(other.get()));
    CHECK(semaphore.value() == 0);
    semaphore.wait(stream, 3);
    CHECK(waits.give_up(stream.get()));
    CHECK(semaphore.value() == 3);
    if constexpr (KernelGraphBackend<B>)
        stream.sync();
    else
        CHECK_FALSE(text_of([&] { stream.sync(); }).empty());
    gate.open();
    other.sync();
}

TEST_CASE("waits that are over are forgotten, also round the end of 32 bits") {
    TestSemaphore semaphore;
    const BasicStream<B> stream;
    const auto wait_and_signal = [&](std::uint32_t value) {
        semaphore.signal(value);
        semaphore.wait(stream, value);
    };
    for (std::uint32_t value = 1; value <= 200; ++value)
        wait_and_signal(value);
    stream.sync();
    semaphore.reset();
    semaphore.signal(0x70000000U);
    semaphore.signal(0xD0000000U);
    for (std::uint32_t value = 0xFFFFFFE0U; value != 2; ++value)
        wait_and_signal(value);
    CHECK_FALSE(detail::SemaphoreWaits::instance().give_up(stream.get()));
    CHECK(semaphore.value() == 1);
    stream.sync();
}

} // namespace backend_semaphore
