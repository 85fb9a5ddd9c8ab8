// How many objects of a backend live.
#pragma once

#include <cstdint>
#include <ostream>

#include <sluice/backend/default.hpp>

namespace sluice::test {

/// A backend's objects at one moment. Compare two moments to see what was leaked, or freed twice.
struct Alive {
    std::uint64_t streams = 0;
    std::uint64_t events = 0;
    std::uint64_t device_allocations = 0;
    std::uint64_t pinned_allocations = 0;
    std::uint64_t graphs = 0;
    std::uint64_t executables = 0;
    std::uint64_t semaphores = 0;
    std::uint64_t shares = 0;

    friend bool operator==(const Alive&, const Alive&) = default;
    friend std::ostream& operator<<(std::ostream& out, const Alive& alive) {
        return out << alive.streams << " streams, " << alive.events << " events, " << alive.device_allocations
                   << " device and " << alive.pinned_allocations << " pinned allocations, " << alive.graphs
                   << " graphs, " << alive.executables << " executables, " << alive.semaphores
                   << " semaphores, " << alive.shares << " shares";
    }
};

template <Backend B>
Alive alive_now() {
    const ObjectCounts& counts = B::counts();
    return {counts.streams.alive,
            counts.events.alive,
            counts.device_allocations.alive,
            counts.pinned_allocations.alive,
            counts.graphs.alive,
            counts.executables.alive,
            counts.semaphores.alive,
            counts.shares.alive};
}

/// Assigns `object` to itself, in a way that compilers do not warn of.
template <class T>
void move_onto_itself(T& object) {
    T& same = object;
    object = static_cast<T&&>(same);
}

} // namespace sluice::test
