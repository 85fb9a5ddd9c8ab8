// Host streams run at the same time: each of two tasks waits for the other to have begun.
#include <array>
#include <cstddef>
#include <fstream>
#include <string>
#include <utility>
#include <vector>

#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "support/doctest.hpp"
#include "support/error_text.hpp"
#include "support/latch.hpp"
#include "support/on_stream.hpp"
#include "support/sanitized.hpp"

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

TEST_CASE("a stream whose thread cannot be started is an Error in one sentence") {
    if (sanitized)
        return; // They take more address space than could be limited.
    // In a process of its own, which has room for the stacks of a few threads.
    const pid_t child = fork();
    REQUIRE(child >= 0);
    if (child == 0) {
        std::size_t pages = 0;
        std::ifstream("/proc/self/statm") >> pages;
        const rlim_t room = pages * static_cast<std::size_t>(sysconf(_SC_PAGESIZE)) + (rlim_t{256} << 20);
        const rlimit limit{room, room};
        std::string said;
        try {
            if (setrlimit(RLIMIT_AS, &limit) == 0) {
                std::vector<HostStream> streams;
                streams.reserve(4096);
                for (int i = 0; i < 4096; ++i)
                    streams.emplace_back();
            }
        } catch (const Error& error) {
            said = error.what();
        } catch (...) {
            _exit(2);
        }
        _exit(contains(said, "a stream of the Host backend has a thread, which could not be started: ") ? 0
                                                                                                        : 1);
    }
    int status = 1;
    CHECK(waitpid(child, &status, 0) == child);
    CHECK(WIFEXITED(status));
    CHECK(WEXITSTATUS(status) == 0);
}

} // namespace backend_host_concurrency
