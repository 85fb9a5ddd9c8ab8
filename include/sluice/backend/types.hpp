/// \file
/// The plain types in which every backend speaks.
#pragma once

#include <cstdint>

#include <sluice/backend/config.hpp>
#include <sluice/backend/detail/atomic.hpp>

namespace sluice {

/// How a stream is made.
struct StreamOptions {
    /// Lower runs first. Clamped to what the device offers; the Host backend keeps it and schedules without
    /// it.
    int priority = 0;
    /// True: the stream waits for the legacy default stream and it for the stream, as `cudaStreamCreate`
    /// does.
    bool blocking = false;
    /// The multiprocessors that its kernels run on, as `create_shares` or `share_of` of a `ShareBackend` gives them; null:
    /// the device's. Such a stream cannot be blocking. Other backends go without it.
    void* share = nullptr;
};

/// How pinned memory is made.
struct PinnedOptions {
    /// True: past the CPU's caches (`cudaHostAllocWriteCombined`). For what the host writes once, one value after another, and
    /// devices read; the host's own reads take many times as long. The Host backend goes without it.
    bool write_combined = false;
};

/// How an event is made.
struct EventOptions {
    /// True: the event notes the time, for `elapsed_milliseconds`. Costs a little at each record.
    bool timing = false;
    /// True: a thread that waits for the event sleeps; false: it spins, and wakes sooner.
    bool sleep_while_waiting = false;
};

/// A device's stream priorities. `greatest` is the number of the one that runs first, and so the smaller.
struct PriorityRange {
    int least = 0;    ///< The number that runs last.
    int greatest = 0; ///< The number that runs first.
};

/// Which way a copy goes.
enum class CopyKind {
    host_to_device,   ///< from pinned or ordinary memory
    device_to_host,   ///< to pinned or ordinary memory
    device_to_device, ///< within device memory, of one device or of two
    host_to_host,     ///< from pinned to pinned memory
};

/// The threads whose calls a capture forbids where they could disturb it, such as `cudaMalloc`.
enum class CaptureMode {
    this_thread, ///< the capturing thread's
    global,      ///< every thread's
    relaxed,     ///< no thread's: the caller knows that they are harmless
};

/// What a conditional node does with its value and its bodies.
enum class ConditionKind {
    if_nonzero,    ///< runs body 0 if the value is not 0, otherwise body 1 where there is one
    while_nonzero, ///< runs body 0 as long as the value is not 0
    select,        ///< runs the body whose number the value is, or none
};

/// How many objects a backend has created, and how many sluice's owners hold now: one that is given up with
/// `release` no longer counts, one that is taken over with `from_native_handle` does. Any thread may read
/// them at any time.
struct ObjectCount {
    detail::Atomic<std::uint64_t> created; ///< Never falls.
    detail::Atomic<std::uint64_t> alive;   ///< Held now.

    /// One more was created, and is held.
    void add() noexcept {
        created.add(1);
        adopt();
    }
    /// One more is held that was created elsewhere.
    void adopt() noexcept { alive.add(1); }
    /// One less is held.
    void remove() noexcept { alive.subtract(1); }
};

/// What a backend has created through sluice. In a pipeline's steady state none of these moves.
struct ObjectCounts {
    ObjectCount streams;            ///< Streams.
    ObjectCount events;             ///< Events.
    ObjectCount device_allocations; ///< Blocks of device memory.
    ObjectCount pinned_allocations; ///< Blocks of pinned memory.
    ObjectCount graphs;             ///< Graphs.
    ObjectCount executables;        ///< Graphs made ready to run.
    ObjectCount semaphores;         ///< Semaphores.
    ObjectCount shares;             ///< Shares of devices.
};

} // namespace sluice
