// Once made, streams and events take no heap memory.
#include <array>
#include <new>

#include <sluice/backend/stream.hpp>

#include "support/backend.hpp"
#include "support/doctest.hpp"
#include "support/heap_count.hpp"

namespace backend_steady_state {

using namespace sluice;
using namespace sluice::test;

TEST_CASE("the count sees the allocations of the program") {
    const HeapCount heap;
    // Called by name: a compiler may leave out a new-expression whose object is unused.
    void* plain = ::operator new(4);
    void* aligned = ::operator new (256, std::align_val_t{256});
    CHECK(heap.allocations() == 2);
    ::operator delete (aligned, std::align_val_t{256});
    ::operator delete(plain);
}

TEST_CASE_TEMPLATE("recording and waiting allocate nothing", B, TestBackend) {
    const BasicStream<B> first;
    const BasicStream<B> second;
    BasicEvent<B> forth;
    BasicEvent<B> back;
    const auto exchange = [&] {
        for (int i = 0; i < 100; ++i) {
            forth.record(first);
            second.wait(forth);
            back.record(second);
            first.wait(back);
        }
        first.sync();
        second.sync();
    };
    exchange();
    const HeapCount heap;
    exchange();
    CHECK(heap.allocations() == 0);
}

#if !defined(SLUICE_TEST_CUDA)
TEST_CASE("enqueueing small tasks allocates nothing") {
    const HostStream stream;
    std::array<double, 16> numbers{};
    double sum = 0;
    const auto enqueue = [&] {
        for (int i = 0; i < 2000; ++i) // more than the queue holds: then this thread waits for it
            stream.enqueue([&sum, numbers, i] { sum += numbers[static_cast<std::size_t>(i) % 16] + 1; });
        stream.sync();
    };
    enqueue();
    const HeapCount heap;
    enqueue();
    CHECK(heap.allocations() == 0);
    CHECK(sum == 4000);
}
#endif

} // namespace backend_steady_state
