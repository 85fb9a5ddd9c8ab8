/// \file
/// Races that no declaration shows, made visible: poisoned slots, random delays, unusual orders.
#pragma once

#include <cstdint>

#include <sluice/backend/config.hpp>

namespace sluice {

/// What is done to the work of checked backends (backend/checked.hpp) so that an access that is not declared, and that
/// nothing orders, changes results. A program without races gives the same bits under any of it.
///
/// **Poison.** All bytes of a stage's slot become 0xFF, which is NaN in floating point and -1 in integers, in stream order:
/// when it is made, right before the stage writes it, and again behind the last stage that reads it, where one reader comes after all others.
/// So a stage that relies on what its slot held before, and work that reads a slot before it is written or after it was
/// handed back, meet NaN. It is the slots' own device memory, and of CPU stages' slots the pinned memory too. (What a GPU
/// stage's slot has of pinned memory may be written by the host at any time.) Batches of a `Source` are poisoned before each
/// `fill` but the slot's first. Slots that keep something on purpose are left out by `StageOptions::keeps_slot` and
/// `SourceOptions::keeps_slots`.
///
/// **Delays.** Operations that a stream is handed (copies, fills, callables, records, waits, signals, launches) are late at
/// random, on the stream and on the thread that hands them over. In a capture they are nodes that draw anew at each launch.
///
/// **Orders.** Now and then a stream is held back until no other one gets on, and stages that do not depend on each other are
/// enqueued in another order. All of it is legal: what events and streams order stays in order.
///
/// What is drawn depends on the seed and on how many operations the same stream has had, so that a seed gives the same delays
/// again, as far as the program hands each stream the same work.
struct Stress {
    std::uint64_t seed = 1; ///< Of all that is drawn.
    bool poison = true;     ///< Whether slots are poisoned.
    int delay_us = 200;     ///< The longest delay in microseconds; 0: none.
    int one_in = 4;         ///< One operation in so many is late, at least 1.
    bool permute = true; ///< Whether streams are held back, and independent stages enqueued in another order.
};

/// How often something was done so far.
struct StressCounts {
    std::uint64_t operations = 0; ///< Operations that could have been late.
    std::uint64_t delays = 0;     ///< Those that were.
    std::uint64_t poisonings = 0; ///< Of slots and batches.
    std::uint64_t holds = 0;      ///< Streams that were held back.
    std::uint64_t orders = 0;     ///< Batches whose stages were enqueued in another order.
};

/// Has all work of checked backends that is enqueued while it lives done under `stress`. Pipelines and sources should be made
/// and be gone within. Of several the one that was made last counts; they end in the reverse order. On other backends it
/// does nothing. Made and destroyed on one thread; what it does reaches all threads.
///
/// Compiled with `-DSLUICE_CHECKED=1`, a program whose environment has `SLUICE_STRESS=7` runs under `Stress{.seed = 7}` from
/// its beginning; `SLUICE_STRESS=7,50,100` is `Stress{.seed = 7, .one_in = 50, .delay_us = 100}`. Of
/// anything else the first operation throws `Error`.
class StressScope {
public:
    /// Throws `Error` where a member of `stress` is out of range.
    explicit StressScope(const Stress& stress);
    StressScope(const StressScope&) = delete;            ///< Cannot be copied.
    StressScope& operator=(const StressScope&) = delete; ///< Cannot be assigned.
    /// What was there before counts again.
    ~StressScope();

    /// Since the program began.
    static StressCounts counts() noexcept;

private:
    Stress outer_; // what counts again
    bool was_on_ = false;
};

} // namespace sluice

#if SLUICE_HAS_CHECKER_BODIES
#include <sluice/backend/detail/checked/stress_state.inl>
#endif
