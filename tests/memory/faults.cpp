// Contract 5: any one call of streams, events, buffers, copies and semaphores fails.
#include <optional>
#include <utility>
#include <vector>

#include <sluice/backend.hpp>
#include <sluice/memory.hpp>

#include "support/backend.hpp"
#include "support/doctest.hpp"
#include "support/fail_each_call.hpp"

namespace memory_faults {

using namespace sluice;
using namespace sluice::test;

using B = Faulty<TestBackend>;

TEST_CASE(
    "Contract 5: streams, events and buffers, any one call fails: an Error, nothing leaked, usable again") {
    const std::vector<int> values{1, 2, 3, 4};
    fail_each_call<B>(
        [&] {
            const BasicStream<B> stream, other({.priority = 0});
            BasicEvent<B> event, begin({.timing = true}), end({.timing = true});
            PinnedBuffer<int, B> pinned(4);
            for (std::size_t i = 0; i < 4; ++i)
                pinned[i] = values[i];
            DeviceBuffer<int, B> device(4), ordered(4, stream), moved;
            moved = std::move(ordered);
            std::vector<int> result(4);
            again_after_fault([&] {
                result.assign(4, 0);
                begin.record(stream);
                fill(stream, device, 7);
                fill_bytes(stream, moved, 1);
                copy(stream, device, pinned);
                copy(stream, moved, device);
                event.record(stream);
                other.wait(event);
                end.record(stream);
                copy_and_wait(other, result, moved);
                event.sync();
                end.sync();
                stream.sync();
                // Not within CHECK, which would catch what is injected.
                const bool done = event.is_done() && stream.is_done();
                const float elapsed = elapsed_milliseconds(begin, end);
                CHECK(done);
                CHECK(elapsed >= 0);
                (void)stream.device();
                (void)other.priority();
                CHECK(result == values);
            });
        },
        25);
}

TEST_CASE("Contract 5: semaphores, any one call fails: an Error, nothing leaked, usable again") {
    fail_each_call<B>(
        [&] {
            const BasicStream<B> stream, other;
            std::optional<BasicSemaphore<B>> semaphore(std::in_place);
            std::uint32_t value = 1;
            again_after_fault([&] {
                semaphore->signal(stream, value);
                semaphore->wait(other, value);
                stream.sync();
                other.sync();
                const bool reached = semaphore->reached(value);
                CHECK(reached);
                ++value;
            });
        },
        5);
}

} // namespace memory_faults
