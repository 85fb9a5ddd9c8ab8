// Memory that is freed while streams wait for CPU stages, which the CUDA backend keeps until none does.
#include <atomic>
#include <chrono>
#include <thread>

#include <sluice/backend/detail/deferred_frees.hpp>
#include <sluice/pipeline.hpp>

#include "support/apart_backend.hpp"
#include "support/doctest.hpp"
#include "support/latch.hpp"

namespace backend_deferred_frees {

using namespace sluice;
using namespace sluice::test;
using detail::DeferredFrees;

namespace {

using Ref = BasicStreamRef<Apart>;
struct Number {
    int value = 0;
};

std::atomic<int> freed{0};
std::atomic<bool> stage_is_over{false}, freed_behind{false};
void count_it(void*) noexcept {
    ++freed;
    freed_behind = stage_is_over.load();
}
void free_one() noexcept { DeferredFrees::instance().free(&freed, &count_it); }

// Frees on another thread for a while, which it has begun.
std::atomic<bool> slow_has_begun{false}, slow_is_over{false};
std::thread free_slowly() {
    slow_has_begun = slow_is_over = false;
    std::thread frees([] {
        DeferredFrees::instance().free(&freed, [](void*) noexcept {
            slow_has_begun = true;
            std::this_thread::sleep_for(std::chrono::milliseconds(50));
            slow_is_over = true;
        });
    });
    while (!slow_has_begun)
        std::this_thread::yield();
    return frees;
}

// A CPU stage between two others, the last of which waits for it on its stream.
template <class Call>
auto make_pipeline(Call call) {
    return Pipeline{Stages{Stage{"make", [](Ref, int, Number&) {}},
                           Stage{"look", [call](const Number&, Number&) { call(); }},
                           Stage{"sum", [](Ref, const Number&) {}}},
                    Slots{[](int) { return Number{}; }, [](int) { return Number{}; }},
                    {.schedule = Schedule::overlapped}};
}

} // namespace

TEST_CASE("deferred frees: memory is freed at once where no stream waits for a CPU stage") {
    freed = 0;
    free_one();
    CHECK(freed == 1);
    CHECK(DeferredFrees::instance().count() == 0);
}

TEST_CASE("deferred frees: what a CPU stage frees is kept until no stream waits for one") {
    freed = 0;
    auto pipeline = make_pipeline([] {
        free_one();
        CHECK(freed == 0);
        DeferredFrees::instance().try_again(); // as its own streams do
        CHECK(!DeferredFrees::instance().free_kept(true));
        CHECK(freed == 0);
    });
    for (int batch = 0; batch < 3; ++batch)
        pipeline.submit(batch);
    pipeline.finish();
    CHECK(DeferredFrees::instance().count() == 3);
    DeferredFrees::instance().try_again();
    CHECK(freed == 3);
    CHECK(DeferredFrees::instance().count() == 0);
}

TEST_CASE("deferred frees: what is kept goes with the next that is freed") {
    freed = 0;
    auto pipeline = make_pipeline([] { free_one(); });
    pipeline.submit(0);
    pipeline.finish();
    CHECK(freed == 0);
    free_one();
    CHECK(freed == 2);
    CHECK(!DeferredFrees::instance().free_kept(true)); // There is none.
}

TEST_CASE("deferred frees: another thread frees behind the CPU stage that a stream waits for, or keeps it") {
    freed = 0;
    stage_is_over = false;
    Latch latch;
    std::atomic<bool> holds{false};
    auto pipeline = make_pipeline([&] {
        if (holds)
            latch.pass();
        stage_is_over = true;
    });
    pipeline.submit(0); // waits for the first batch itself
    pipeline.finish();
    stage_is_over = false;
    holds = true;
    pipeline.submit(1);
    SUBCASE("within a second") {
        std::thread opens([&] {
            std::this_thread::sleep_for(std::chrono::milliseconds(50));
            latch.open();
        });
        free_one();
        opens.join();
        CHECK(freed == 1);
        CHECK(freed_behind);
    }
    SUBCASE("later") { // The CPU stage waits for this thread.
        free_one();
        CHECK(freed == 0);
        DeferredFrees::instance().try_again();
        CHECK(freed == 0);
        latch.open();
    }
    pipeline.finish();
    DeferredFrees::instance().try_again();
    CHECK(freed == 1);
}

TEST_CASE("deferred frees: no stream begins to wait for a CPU stage while memory is freed") {
    slow_is_over = true;
    auto pipeline = make_pipeline([] {
        while (!slow_is_over) // No stream waits for a stage that has returned.
            std::this_thread::yield();
    });
    pipeline.submit(0);
    pipeline.finish();
    std::thread frees = free_slowly();
    pipeline.submit(1);
    CHECK(slow_is_over);
    frees.join();
    pipeline.finish();
}

TEST_CASE("deferred frees: memory is kept while a stream waits for a user's semaphore, which no stream will "
          "signal") {
    freed = 0;
    BasicSemaphore<Apart> semaphore;
    const BasicStream<Apart> stream, other;
    semaphore.wait(stream, 1);
    free_one(); // returns: the signal may come from this thread
    CHECK(freed == 0);
    CHECK(!DeferredFrees::instance().free_kept(true));
    SUBCASE("by a thread") {
        semaphore.signal(1);
        DeferredFrees::instance().try_again();
    }
    SUBCASE("by a stream") {
        semaphore.signal(other, 1);
        DeferredFrees::instance().try_again();
    }
    SUBCASE("by another thread, for which an allocation that has failed waits") {
        std::thread signals([&] {
            std::this_thread::sleep_for(std::chrono::milliseconds(50));
            semaphore.signal(1);
        });
        CHECK(DeferredFrees::instance().free_in_need());
        signals.join();
    }
    CHECK(freed == 1);
    stream.sync();
}

TEST_CASE("deferred frees: no CPU stage is waited for while a stream waits for a user's semaphore") {
    freed = 0;
    std::atomic<bool> holds{false};
    auto pipeline = make_pipeline([&] {
        while (holds)
            std::this_thread::yield();
    });
    pipeline.submit(0);
    pipeline.finish();
    holds = true;
    pipeline.submit(1);
    BasicSemaphore<Apart> semaphore;
    const BasicStream<Apart> stream;
    semaphore.wait(stream, 1);
    free_one();
    const auto begin = std::chrono::steady_clock::now();
    CHECK(!DeferredFrees::instance().free_kept(true));
    CHECK(std::chrono::steady_clock::now() - begin <
          std::chrono::milliseconds(900)); // of the second that it may take
    holds = false;
    semaphore.signal(1);
    pipeline.finish();
    DeferredFrees::instance().try_again();
    CHECK(freed == 1);
}

TEST_CASE("deferred frees: no stream begins to wait for a user's semaphore while memory is freed") {
    BasicSemaphore<Apart> semaphore;
    const BasicStream<Apart> stream;
    std::thread frees = free_slowly();
    semaphore.wait(stream, 1);
    CHECK(slow_is_over);
    frees.join();
    semaphore.signal(1);
    stream.sync();
}

} // namespace backend_deferred_frees
