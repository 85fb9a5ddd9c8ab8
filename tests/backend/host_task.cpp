// What a host stream can be handed to run.
#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>

#include <sluice/backend/stream.hpp>

#include "support/doctest.hpp"
#include "support/heap_count.hpp"

namespace backend_host_task {

using namespace sluice;
using namespace sluice::test;

namespace {

/// Adds to a count when it is run, and keeps a second one of its living copies.
template <std::size_t Bytes>
struct Probe {
    int* runs;
    std::shared_ptr<int> life;
    std::array<unsigned char, Bytes> ballast;

    void operator()() {
        int sum = 0;
        for (const unsigned char byte : ballast)
            sum += byte;
        *runs += sum == static_cast<int>(Bytes) ? 1 : 1000;
    }
};

template <std::size_t Bytes>
void run_probe(bool fits_inline) {
    const HostStream stream;
    int runs = 0;
    auto life = std::make_shared<int>(0);
    Probe<Bytes> probe{&runs, life, {}};
    probe.ballast.fill(1);

    const HeapCount heap;
    stream.enqueue(probe);
    CHECK((heap.allocations() == 0) == fits_inline);
    stream.enqueue(std::move(probe));
    stream.sync();
    CHECK(runs == 2);
    probe.life.reset();
    CHECK(life.use_count() == 1); // a task is destroyed when it has run, not when its place is used again
}

struct alignas(64) Aligned {
    std::uintptr_t* address;
    void operator()() { *address = reinterpret_cast<std::uintptr_t>(this); }
};

struct ThrowsWhenMoved {
    int* runs;
    explicit ThrowsWhenMoved(int* count) : runs(count) {}
    ThrowsWhenMoved(const ThrowsWhenMoved&) = default;
    ThrowsWhenMoved(ThrowsWhenMoved&& other) noexcept(false) : runs(other.runs) {}
    void operator()() { ++*runs; }
};

} // namespace

TEST_CASE("a task tells the bytes of what it calls, where these are its value") {
    const auto bytes_of = [](auto callable) {
        const host::Task task{callable};
        std::size_t count = 0, sum = 0;
        task.visit_value([&](std::byte byte) {
            ++count;
            sum += static_cast<std::size_t>(byte);
        });
        return std::pair{count, sum};
    };
    for (const unsigned char value : {std::uint8_t{3}, std::uint8_t{200}})
        CHECK(bytes_of([value] { (void)value; }) == std::pair{std::size_t{1}, std::size_t{value}});
    const std::uint16_t two = 0x0102;
    CHECK(bytes_of([two] { (void)two; }) == std::pair{std::size_t{2}, std::size_t{3}});
    CHECK(bytes_of([life = std::make_shared<int>()] { (void)life; }).first == 0);
}

TEST_CASE("tasks of any size run, and only large ones take heap memory") {
    run_probe<16>(true);
    run_probe<host::Task::inline_bytes - 2 * sizeof(void*) - sizeof(int*)>(true);
    run_probe<host::Task::inline_bytes>(false);
    run_probe<4096>(false);
}

TEST_CASE("a task may be move-only") {
    const HostStream stream;
    int seen = 0;
    stream.enqueue([&seen, owned = std::make_unique<int>(7)] { seen = *owned; });
    stream.sync();
    CHECK(seen == 7);
}

TEST_CASE("a task may change what it holds") {
    const HostStream stream;
    int seen = 0;
    stream.enqueue([&seen, count = 41]() mutable { seen = ++count; });
    stream.sync();
    CHECK(seen == 42);
}

TEST_CASE("a task that needs more alignment gets it") {
    const HostStream stream;
    std::uintptr_t address = 1;
    stream.enqueue(Aligned{&address});
    stream.sync();
    CHECK(address % 64 == 0);
}

TEST_CASE("a task whose move may throw is not moved about") {
    const HostStream stream;
    int runs = 0;
    ThrowsWhenMoved task{&runs};
    stream.enqueue(task);
    stream.sync();
    CHECK(runs == 1);
}

TEST_CASE("a function is a task") {
    const HostStream stream;
    static int calls = 0;
    calls = 0;
    stream.enqueue(+[] { ++calls; });
    stream.sync();
    CHECK(calls == 1);
}

} // namespace backend_host_task
