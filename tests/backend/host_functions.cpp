// Callables of the host's in the order of a stream, at once and captured, on every backend.
#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>

#include <sluice/backend/stream.hpp>

#include "support/backend.hpp"
#include "support/doctest.hpp"
#include "support/error_text.hpp"
#include "support/gate.hpp"
#include "support/heap_count.hpp"
#include "support/latch.hpp"
#include "support/stream_ops.hpp"

namespace backend_host_functions {

using namespace sluice;
using namespace sluice::test;

namespace {

using B = TestBackend;

// An executable of what `work()` gives to `stream`.
class Recorded {
public:
    template <class F>
    Recorded(const BasicStream<B>& stream, F&& work) {
        B::begin_capture(stream.get(), CaptureMode::this_thread);
        work();
        graph_ = B::end_capture(stream.get());
        executable_ = B::instantiate(*graph_);
    }
    Recorded(const Recorded&) = delete;
    Recorded& operator=(const Recorded&) = delete;
    ~Recorded() {
        drop_graph();
        B::destroy_graph_exec(executable_);
    }
    void drop_graph() {
        if (graph_)
            B::destroy_graph(*graph_);
        graph_.reset();
    }
    void launch(const BasicStream<B>& stream) const { B::launch(executable_, stream.get()); }

private:
    std::optional<typename B::NativeGraph> graph_;
    typename B::NativeGraphExec executable_{};
};

} // namespace

TEST_CASE("a callable runs in stream order, between other work") {
    const BasicStream<B> stream;
    PinnedBuffer<Word, B> word(1), memory(1);
    word[0] = 5;
    memory[0] = 0;
    Word seen = 0;
    ops::step(stream.get(), word.data(), word.data(), memory.data(), 1);
    stream.enqueue([&seen, from = word.data()] {
        seen = *from;
        *from = 7;
    });
    ops::step(stream.get(), word.data(), word.data(), memory.data(), 1);
    stream.sync();
    CHECK(seen == next_word(0, 5));
    CHECK(word[0] == next_word(next_memory(0, 5), 7));
}

TEST_CASE("callables keep their order, may be move-only, and go when they have run") {
    const BasicStream<B> stream;
    auto life = std::make_shared<int>(0);
    unsigned sum = 0;
    for (unsigned i = 0; i < 2000; ++i)
        stream.enqueue([&sum, life, owned = std::make_unique<unsigned>(i)] { sum = sum * 3 + *owned; });
    stream.sync();
    unsigned expected = 0;
    for (unsigned i = 0; i < 2000; ++i)
        expected = expected * 3 + i;
    CHECK(sum == expected);
    CHECK(eventually([&] { return life.use_count() == 1; }));
}

TEST_CASE("small callables take no heap memory once some have run") {
    const BasicStream<B> stream;
    std::array<double, 8> numbers{};
    double sum = 0;
    const auto enqueue = [&] {
        for (int i = 0; i < 100; ++i)
            stream.enqueue([&sum, numbers] { sum += numbers[3] + 1; });
        stream.sync();
        give_it_time(); // the last one's memory comes back behind it
    };
    {
        const ScopedLatch latch; // all at once, so that later ones find as many places
        stream.enqueue([handle = latch.handle()] { handle.pass(); });
        for (int i = 0; i < 100; ++i)
            stream.enqueue([] {});
    }
    enqueue();
    const HeapCount heap;
    enqueue();
    CHECK(heap.allocations() == 0);
    CHECK(sum == 200);
}

TEST_CASE("a captured callable runs once a replay, and lives as long as what replays it") {
    const BasicStream<B> stream;
    auto life = std::make_shared<int>(0);
    int runs = 0;
    {
        Recorded recorded(stream, [&] {
            stream.enqueue([&runs, life] { ++runs; });
            stream.enqueue([&runs, life] { runs *= 2; });
        });
        stream.sync();
        CHECK(runs == 0);
        for (int i = 0; i < 3; ++i)
            recorded.launch(stream);
        stream.sync();
        CHECK(runs == 14); // 2, 6, 14
        recorded.drop_graph();
        CHECK(life.use_count() > 1);
        recorded.launch(stream);
        stream.sync();
        CHECK(runs == 30);
    }
    CHECK(eventually([&] { return life.use_count() == 1; }));
}

TEST_CASE("what a capture that fails was handed goes with it") {
    const BasicStream<B> stream;
    const BasicStream<B> side;
    BasicEvent<B> event;
    auto life = std::make_shared<int>(0);
    B::begin_capture(stream.get(), CaptureMode::this_thread);
    stream.enqueue([life] { ++*life; });
    event.record(stream);
    side.wait(event);
    side.enqueue([life] { ++*life; }); // never joined
    CHECK_THROWS_AS((void)B::end_capture(stream.get()), Error);
    BasicEvent<B> fresh; // the other one may still hold the capture
    event = std::move(fresh);
    CHECK(eventually([&] { return life.use_count() == 1; }));
    CHECK(*life == 0);
    stream.sync();
}

TEST_CASE("what a callable throws is reported by its stream, which skips callables until it is cleared") {
    const BasicStream<B> stream;
    const BasicStream<B> other;
    int ran = 0;
    stream.enqueue([&ran] { ran += 1; });
    stream.enqueue([] { throw std::runtime_error("the tape ran out"); });
    stream.enqueue([&ran] { ran += 10; });
    const std::string text = text_of([&] { stream.sync(); });
    CHECK(contains(text, "the tape ran out"));
    CHECK(contains(text_of([&] { (void)stream.is_done(); }), "the tape ran out"));
    CHECK(contains(text_of([&] { B::throw_if_failed(stream.get()); }), "the tape ran out"));
    CHECK(ran == 1);
    other.enqueue([&ran] { ran += 100; });
    other.sync();
    B::throw_if_failed(other.get());
    CHECK(ran == 101);

    B::clear_failure(stream.get());
    B::throw_if_failed(stream.get());
    stream.enqueue([&ran] { ran += 1000; });
    stream.sync();
    CHECK(ran == 1101);
}

TEST_CASE("the exception itself is inside the error, whatever its type") {
    const BasicStream<B> stream;
    stream.enqueue([] { throw 42; });
    int nested = 0;
    try {
        stream.sync();
    } catch (const Error& error) {
        CHECK(contains(error.what(), "an exception of an unknown type"));
        try {
            std::rethrow_if_nested(error);
        } catch (int number) {
            nested = number;
        }
    }
    CHECK(nested == 42);
    B::clear_failure(stream.get());
}

TEST_CASE("a captured callable that throws fails the stream, and later replays are good again") {
    const BasicStream<B> stream;
    bool fails = true;
    int ran = 0;
    const Recorded recorded(stream, [&] {
        stream.enqueue([&fails] {
            if (fails)
                throw std::runtime_error("the lamp went out");
        });
        stream.enqueue([&ran] { ++ran; });
    });
    recorded.launch(stream);
    CHECK(contains(text_of([&] { stream.sync(); }), "the lamp went out"));
    CHECK(ran == 0);
    fails = false;
    B::clear_failure(stream.get());
    recorded.launch(stream);
    stream.sync();
    CHECK(ran == 1);
}

TEST_CASE("a stream that takes the place of a failed one has not failed") {
    for (int i = 0; i < 20; ++i) {
        const BasicStream<B> stream;
        stream.sync();
        stream.enqueue([] { throw std::runtime_error("gone with its stream"); });
        if (i % 2 == 0)
            CHECK_THROWS_AS(stream.sync(), Error);
    }
    const BasicStream<B> stream;
    stream.sync();
}

} // namespace backend_host_functions
