// That a step costs nothing but its work once it has run.
#pragma once

#include <cstdint>

#include "nn/support.hpp"
#include "support/heap_count.hpp"

namespace nn_test {

/// Checks that `step()`, which works on `stream`, allocates nothing and makes no stream or event after two
/// runs. `uses_heap` leaves host memory out.
template <class Step>
void check_steady(const Stream& stream, const Step& step, bool uses_heap = false) {
    for (int warmup = 0; warmup < 2; ++warmup)
        step();
    stream.sync();
    const std::uint64_t allocations = B::counts().device_allocations.created;
    const std::uint64_t objects = B::counts().streams.created + B::counts().events.created;
    const sluice::test::HeapCount heap;
    for (int round = 0; round < 3; ++round)
        step();
    stream.sync();
    const std::uint64_t heap_allocations = heap.allocations();
    CHECK(B::counts().device_allocations.created == allocations);
    CHECK(B::counts().streams.created + B::counts().events.created == objects);
    if (!sluice::test::HeapCount::counts_malloc && !uses_heap)
        CHECK(heap_allocations == 0);
}

} // namespace nn_test
