// Threads and conditions of the library's own.
#include <chrono>
#include <mutex>
#include <utility>

#include <sluice/backend/detail/thread.hpp>

#include "support/doctest.hpp"

namespace backend_thread {

using sluice::detail::Condition;
using sluice::detail::Thread;

TEST_CASE("a thread does its work once and can be moved") {
    int calls = 0;
    Thread thread(
        [&calls, here = pthread_self()] { calls += pthread_equal(here, pthread_self()) != 0 ? 100 : 1; });
    CHECK(thread.joinable());
    Thread other(std::move(thread));
    CHECK_FALSE(thread.joinable());
    thread = std::move(other);
    CHECK(thread.joinable());
    CHECK_FALSE(other.joinable());
    thread.join();
    CHECK(calls == 1);
    CHECK_FALSE(thread.joinable());
}

TEST_CASE("a condition wakes those who wait") {
    std::mutex mutex;
    Condition changed;
    int turn = 0;
    constexpr int turns = 100;
    const auto take_turns = [&](int from) {
        for (int next = from; next < turns; next += 2) {
            std::unique_lock lock(mutex);
            if (next % 3 == 0)
                changed.wait(lock, [&] { return turn == next; });
            else
                CHECK(changed.wait_for(lock, std::chrono::hours(1), [&] { return turn == next; }));
            ++turn;
            lock.unlock();
            if (next % 5 == 0)
                changed.notify_one();
            else
                changed.notify_all();
        }
    };
    Thread odd([&] { take_turns(1); });
    take_turns(0);
    odd.join();
    CHECK(turn == turns);
}

TEST_CASE("a wait with a limit ends, with the mutex locked") {
    std::mutex mutex;
    Condition changed;
    std::unique_lock lock(mutex);
    const auto begin = std::chrono::steady_clock::now();
    // Over the end of a second, wherever in it this begins.
    CHECK_FALSE(changed.wait_for(lock, std::chrono::milliseconds(999), [] { return false; }));
    CHECK(std::chrono::steady_clock::now() - begin >= std::chrono::milliseconds(998));
    bool taken = true;
    Thread other([&] { taken = mutex.try_lock(); });
    other.join();
    CHECK_FALSE(taken);
    CHECK_FALSE(changed.wait_for(lock, std::chrono::nanoseconds(0), [] { return false; }));
    CHECK(changed.wait_for(lock, std::chrono::nanoseconds(0), [] { return true; }));
}

} // namespace backend_thread
