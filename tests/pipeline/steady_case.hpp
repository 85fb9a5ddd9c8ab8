// Counts what is created and allocated, for tests that nothing is in the steady state.
#pragma once

#include <cstdint>
#include <ostream>
#include <type_traits>

#include <sluice/sluice.hpp>

#include "support/backend.hpp"
#include "support/doctest.hpp"
#include "support/heap_count.hpp"
#include "support/stream_ops.hpp"

namespace sluice::test {

// Whether CUDA, or a tool that has got between, allocates through our operator new: then its allocations
// cannot be told from sluice's, and are not looked at.
template <Backend B>
bool runtime_allocates() {
    if constexpr (!std::is_same_v<B, TestBackend> || std::is_same_v<B, Host>) {
        return false;
    } else {
        static const bool allocates = [] {
            const BasicStream<B> stream;
            const BasicEvent<B> event;
            HeapCount count;
            for (int step = 0; step < 200; ++step) {
                if (step == 100)
                    count = HeapCount();
                ops::spin(stream.get(), 0);
                B::record(event.get(), stream.get());
                B::wait(stream.get(), event.get());
            }
            stream.sync();
            if (count.allocations() == 0)
                return false;
            MESSAGE("heap allocations are not looked at: the runtime makes some itself");
            return true;
        }();
        return allocates;
    }
}

// What has been created so far, and allocated, by all threads.
struct Made {
    std::uint64_t streams, events, device_allocations, pinned_allocations, graphs, executables,
        heap_allocations;

    template <Backend B = TestBackend>
    static Made so_far() {
        const std::uint64_t heap_allocations = runtime_allocates<B>() ? 0 : HeapCount::total();
        const ObjectCounts& counts = B::counts();
        return {counts.streams.created,
                counts.events.created,
                counts.device_allocations.created,
                counts.pinned_allocations.created,
                counts.graphs.created,
                counts.executables.created,
                heap_allocations};
    }
    friend bool operator==(const Made&, const Made&) = default;
    friend std::ostream& operator<<(std::ostream& out, const Made& made) {
        return out << made.streams << " streams, " << made.events << " events, " << made.graphs << " graphs, "
                   << made.executables << " executables, " << made.device_allocations << " device, "
                   << made.pinned_allocations << " pinned and " << made.heap_allocations
                   << " heap allocations";
    }
};

} // namespace sluice::test
