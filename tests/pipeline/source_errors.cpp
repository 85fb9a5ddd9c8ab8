// Sources whose work fails, comes late or is stopped.
#include <atomic>
#include <chrono>
#include <cstddef>
#include <memory>
#include <stdexcept>
#include <string>
#include <string_view>
#include <system_error>
#include <thread>

#include "pipeline/source_case.hpp"
#include "pipeline/thrown.hpp"
#include "support/alive.hpp"
#include "support/gate.hpp"
#include "support/hooked_backend.hpp"
#include "support/latch.hpp"
#include "support/stream_ops.hpp"

namespace pipeline_source_errors {

using namespace sluice;
using namespace sluice::test;
using namespace sluice::test::source_case;

#if !defined(SLUICE_TEST_CUDA)
namespace {

// Makes waits for events fail before their end.
struct Impatience {
    static std::atomic<bool>& on() {
        static std::atomic<bool> value{false};
        return value;
    }
    template <class Any>
    static void before(const char*) {}
    template <class Any>
    static void before(const char*, typename Any::NativeStream) {}
    template <class Any>
    static void before(const char* function, typename Any::NativeEvent) {
        if (on() && std::string_view(function) == "synchronize_event")
            throw Error("no patience");
    }
};

} // namespace

TEST_CASE("Contract 5: a wait that fails fails the source, and the slot is not filled while it may be read") {
    using H = Hooked<B, Impatience>;
    for (const int workers : {0, 1}) {
        const BasicStream<H> stream;
        ScopedLatch latch;
        std::atomic<int> fills{0};
        Source source{make_number, [&](std::size_t, int&) { ++fills; },
                      SourceOptions<H>{.workers = workers, .slots = 1, .batches = 3, .errors_in_a_row = 9}};
        Impatience::on() = true;
        {
            const auto batch = source.next();
            stream.enqueue([handle = latch.handle()] { handle.pass(); });
            batch.release(stream);
        }
        const std::string text = text_of([&] { (void)source.next(); });
        CHECK(contains_all(text, {"source: filling batch 1 failed",
                                  "waiting for the work that reads its slot failed", "no patience"}));
        CHECK_FALSE(source.next()); // The source has ended.
        CHECK(fills.load() == 1);
        // It may still be read.
        CHECK(contains(text_of([&] { source.rewind(); }), "no patience"));
        latch.open();
        Impatience::on() = false;
        source.rewind();
        int batches = 0;
        while (source.next())
            ++batches;
        CHECK(batches == 3);
    }
}
#endif

TEST_CASE("Source: a worker thread that cannot be started is an Error, and nothing is left behind") {
    for (const int bad : {0, 2}) {
        static int failing = 0;
        failing = bad;
        Source source{make_number, fill_number, Options{.workers = 3, .batches = 9}};
        detail::before_source_thread = [](int worker) {
            if (worker == failing)
                throw std::system_error(std::make_error_code(std::errc::resource_unavailable_try_again));
        };
        for (int tries = 0; tries < 2; ++tries) {
            const Caught error([&] { (void)source.next(); });
            CHECK(contains_all(error.text(), {"source: worker thread " + std::to_string(bad) +
                                              " of 3 could not be started"}));
            CHECK(error.nests<std::system_error>([](const auto&) { return true; }));
        }
        detail::before_source_thread = nullptr;
        CHECK(values_of(source) == tens(9)); // and it goes on once there are threads
    }
}

TEST_CASE("Source: what a maker throws is nested in an error that names the slot or the worker") {
    using Numbers = PinnedBuffer<int, TestBackend>;
    const auto make_source = [](int bad_slot, int bad_worker) {
        Source source{[=](int slot) {
                          if (slot == bad_slot)
                              throw std::out_of_range("no memory");
                          return Numbers(4);
                      },
                      [=](int worker) {
                          if (worker == bad_worker)
                              throw std::out_of_range("no decoder");
                          return worker;
                      },
                      [](int, std::size_t, Numbers&) {},
                      SourceOptions<TestBackend>{.workers = 3, .slots = 2}};
    };
    const Caught of_slot([&] { make_source(1, -1); });
    CHECK(of_slot.text() == "source: making slot 1 failed: no memory");
    CHECK(of_slot.nests_directly<std::out_of_range>());
    const Caught of_worker([&] { make_source(-1, 2); });
    CHECK(of_worker.text() == "source: making the state of worker 2 failed: no decoder");
    CHECK(of_worker.nests_directly<std::out_of_range>());
}

TEST_CASE("Source: threads of a start that failed have ended: no state is two threads'") {
    struct State {
        std::atomic<bool> busy{false};
    };
    std::vector<State> states(3);
    std::atomic<bool> shared{false};
    std::atomic<int> made{0};
    Source source{make_number, [&](int) { return &states[static_cast<std::size_t>(made++)]; },
                  [&](State*& state, std::size_t index, int& out) {
                      shared = shared || state->busy.exchange(true);
                      std::this_thread::sleep_for(std::chrono::milliseconds(1));
                      out = static_cast<int>(index) * 10;
                      state->busy = false;
                  },
                  Options{.workers = 3, .slots = 8, .batches = 40}};
    detail::before_source_thread = [](int worker) {
        if (worker == 2)
            throw std::system_error(std::make_error_code(std::errc::resource_unavailable_try_again));
    };
    CHECK(contains(text_of([&] { (void)source.next(); }), "could not be started"));
    detail::before_source_thread = nullptr;
    CHECK(values_of(source) == tens(40));
    CHECK_FALSE(shared);
}

TEST_CASE("Source: next from within fill is refused in a sentence") {
    for (const int workers : {0, 1}) {
        std::atomic<void (*)(void*)> call{nullptr};
        void* self = nullptr;
        Source source{make_number,
                      [&](std::size_t, int&) {
                          if (const auto next = call.load(); next != nullptr)
                              next(self);
                      },
                      Options{.workers = workers, .slots = 3, .batches = 5}};
        self = &source;
        call = [](void* to) { (void)static_cast<decltype(source)*>(to)->next(); };
        CHECK(contains(text_of([&] { (void)source.next(); }), "next was called from within fill"));
    }
}

TEST_CASE("Source: stop from within fill ends the source before that batch") {
    for_each_crew([](Options options) {
        void* self = nullptr;
        const auto fill = [&self](auto stop) {
            return [&self, stop](std::size_t index, int& out) {
                fill_number(index, out);
                if (index == 4)
                    stop(self);
            };
        };
        struct Stopper {
            std::atomic<void (*)(void*)>* call;
            void operator()(void* source) const { call->load()(source); }
        };
        std::atomic<void (*)(void*)> call{nullptr};
        Source source{make_number, fill(Stopper{&call}), options};
        self = &source;
        call = [](void* to) { static_cast<decltype(source)*>(to)->stop(); };
        CHECK(values_of(source) == tens(4));
        CHECK_FALSE(source.next());
        call = [](void*) {};
        source.stop();
        call = [](void* to) { static_cast<decltype(source)*>(to)->rewind(); };
        source.rewind();
        CHECK(contains(text_of([&] { (void)values_of(source); }), "rewind was called from within fill"));
    });
}

namespace {

/// The next batch, however late a busy machine makes it.
template <class Any>
auto next_however_late(Any& source) {
    for (;;) {
        try {
            return source.next();
        } catch (const Error& error) {
            if (!contains(error.what(), "was not ready within"))
                throw;
        }
    }
}

} // namespace

TEST_CASE("Source: next throws when a batch is late, says why, and goes on") {
    using namespace std::chrono_literals;
    CHECK(text_of([] {
              Source{make_number, fill_number, Options{.timeout = -1ms}};
          }) == "SourceOptions::timeout is -1 ms; expected 0 (none) to 31536000000, a year");
    CHECK(contains(text_of([] {
                       Source{make_number, fill_number, Options{.timeout = std::chrono::milliseconds::max()}};
                   }),
                   "ms; expected 0 (none) to 31536000000, a year"));
    CHECK(text_of([] {
              Source source{make_number, fill_number, Options{.batches = 1, .timeout = 31536000000ms}};
              (void)source.next();
          }).empty());
    CHECK(text_of([] {
              Source{make_number, fill_number, Options{.when_ahead = static_cast<WhenAhead>(77)}};
          }) ==
          "SourceOptions::when_ahead is 77, which has no name; expected wait, drop_oldest or drop_newest");
    CHECK(text_of([] {
              Source{make_number, fill_number, Options{.workers = 0, .timeout = 250ms}};
          }) == "a source without workers has no timeout, since the caller's thread fills each batch; "
                "expected 0 ms, or a "
                "worker, got 250 ms");
    ScopedLatch latch;
    Source source{make_number,
                  [handle = latch.handle()](std::size_t index, int& out) {
                      fill_number(index, out);
                      if (index == 1)
                          handle.pass();
                  },
                  Options{.workers = 1, .batches = 3, .timeout = 50ms}};
    CHECK(*next_however_late(source) == 0);
    CHECK(latch.wait_until_reached());
    const std::string late = "source: batch 1 was not ready within 50 ms: its worker was in fill";
    CHECK(text_of([&] { (void)source.next(); }) == late);
    CHECK(text_of([&] { (void)source.next(); }) == late);
    latch.open();
    CHECK(*next_however_late(source) == 10);
    CHECK(*next_however_late(source) == 20);
    CHECK_FALSE(next_however_late(source));
}

TEST_CASE("Source: next says that a late batch's slot is still being read, or held elsewhere") {
    using namespace std::chrono_literals;
    if (!streams_overlap<B>())
        return;
    const BasicStream<B> stream;
    Gate<B> gate;
    Source source{make_number, fill_number, Options{.workers = 1, .slots = 1, .timeout = 50ms}};
    auto batch = next_however_late(source);
    const auto mine = batch.hold();
    const auto theirs = mine.hold_elsewhere();
    mine.give_up();
    batch.reset();
    CHECK(contains(text_of([&] { (void)source.next(); }),
                   "batch 1 was not ready within 50 ms: no worker had a slot"));
    gate.hold(stream);
    theirs.release(stream);
    theirs.give_up();
    CHECK(eventually([&] { // once the worker has seen it
        return contains(text_of([&] { (void)source.next(); }),
                        "its worker was waiting for the work that reads its slot");
    }));
    gate.open();
    CHECK(*next_however_late(source) == 10);
}

} // namespace pipeline_source_errors
