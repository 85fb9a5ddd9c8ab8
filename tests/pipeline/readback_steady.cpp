// Contract 2 for results of replays, and for batches that several streams read.
#include <cstdint>
#include <type_traits>

#include <sluice/sluice.hpp>

#include "support/backend.hpp"
#include "support/doctest.hpp"
#include "support/heap_count.hpp"

namespace pipeline_readback_steady {

using namespace sluice;
using namespace sluice::test;

namespace {

using B = TestBackend;
using Ref = BasicStreamRef<B>;

// Of the heap only on the Host backend: CUDA's runtime may allocate itself.
std::uint64_t made() {
    const ObjectCounts& counts = B::counts();
    return counts.events.created + counts.pinned_allocations.created + counts.device_allocations.created +
           (std::is_same_v<B, Host> ? HeapCount::total() : 0);
}

} // namespace

TEST_CASE("Contract 2: replays that push create and allocate nothing") {
    const BasicStream<B> stream;
    DeviceBuffer<int, B> value(4);
    fill_bytes(stream, value, 0);
    std::size_t results = 0;
    Readback<int, B> readback(
        4, [&](auto, auto) { ++results; }, 2);
    detail::ReplayHooks<B> hooks;
    const auto push_twice = [&](Ref s) {
        readback.push(s, value);
        readback.push(s, value.span().first(2));
    };
    detail::Refusal refusal;
    const auto graph = detail::try_capture<B>(stream.ref(), push_twice, CaptureOptions{}, &hooks, refusal);
    REQUIRE(graph);
    const BasicGraphExec<B> executable(*graph);
    const auto lap = [&] {
        for (const auto& hook : hooks)
            hook->before_replay(executable.get());
        executable.launch(stream);
        for (const auto& hook : hooks)
            hook->after_replay(stream);
        readback.push(stream, value);
        readback.poll();
    };
    for (int warm = 0; warm < 20; ++warm)
        lap();
    const std::uint64_t before = made();
    for (int count = 0; count < 50; ++count)
        lap();
    readback.finish();
    CHECK(made() == before);
    CHECK(results == 70 * 3);
}

TEST_CASE("Contract 2: nor do batches that two streams read") {
    const BasicStream<B> one, other;
    Source source{[](int) { return PinnedBuffer<int, B>(4); }, [](std::size_t, PinnedBuffer<int, B>&) {},
                  SourceOptions<B>{.workers = 1, .slots = 3, .batches = 80}};
    DeviceBuffer<int, B> to(4), also(4);
    std::uint64_t before = 0;
    for (const auto& batch : source) {
        if (batch.index() == 20)
            before = made();
        copy(one, to, *batch);
        copy(other, also, *batch);
        const auto hold = batch.hold();
        hold.release(one);
        hold.release(other);
        hold.give_up();
    }
    one.sync();
    other.sync();
    CHECK(made() == before);
}

TEST_CASE("Contract 2: nor do batches that two streams read in turns") {
    const BasicStream<B> one, other;
    Source source{[](int) { return 0; }, [](std::size_t, int&) {},
                  SourceOptions<B>{.workers = 1, .slots = 1, .batches = 200}};
    std::uint64_t before = 0;
    for (const auto& batch : source) {
        if (batch.index() == 20)
            before = made();
        batch.release(batch.index() % 2 == 0 ? one : other);
    }
    CHECK(made() == before);
}

} // namespace pipeline_readback_steady
