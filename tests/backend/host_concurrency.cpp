// Host streams run at the same time: each of two tasks waits for the other to have begun.
#include <doctest/doctest.h>

#include <array>
#include <utility>

#include "support/latch.hpp"
#include "support/on_stream.hpp"

namespace backend_host_concurrency {

using namespace sluice;
using namespace sluice::test;

TEST_CASE("two streams run at the same time") {
    const HostStream left;
    const HostStream right;
    const ScopedLatch left_begun;
    const ScopedLatch right_begun;

    left.enqueue([mine = left_begun.handle(), other = right_begun.handle()] {
        mine.open();
        other.pass();
    });
    right.enqueue([mine = right_begun.handle(), other = left_begun.handle()] {
        mine.open();
        other.pass();
    });
    left.sync();
    right.sync();
    CHECK_FALSE(left_begun.timed_out());
    CHECK_FALSE(right_begun.timed_out());
}

TEST_CASE("a stream that is held up does not hold up others") {
    const HostStream held;
    const std::array<HostStream, 4> others;
    const ScopedLatch latch;
    hold(held, latch);
    std::array<int, 4> ran{};
    for (std::size_t i = 0; i < others.size(); ++i)
        others[i].enqueue([&ran, i] { ran[i] = 1; });
    for (const HostStream& other : others)
        other.sync();
    CHECK(ran == std::array<int, 4>{1, 1, 1, 1});
    CHECK_FALSE(held.is_done());
    CHECK_FALSE(latch.timed_out());
}

} // namespace backend_host_concurrency
