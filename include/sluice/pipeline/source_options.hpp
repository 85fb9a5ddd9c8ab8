/// \file
/// How a source works.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>

#include <sluice/backend/default.hpp>
#include <sluice/backend/detail/clock.hpp>

namespace sluice {

/// What a source's workers do when they are ahead: when every slot holds a batch that waits for the caller, or that work reads.
enum class WhenAhead : std::uint8_t {
    wait, ///< They wait for a slot. No batch is lost.
    drop_oldest, ///< The oldest batch that waits is dropped, and a further one filled in its place: the newest are handed out.
    drop_newest, ///< The newest one is: those that have waited longest are handed out.
};

/// How a source works.
template <Backend B = DefaultBackend>
struct SourceOptions {
    /// As many batches as `fill` gives: it then returns bool, and ends the source with false. One that returns nothing, and never
    /// calls `stop`, makes a source without end, for a caller that takes as many as it wants.
    static constexpr std::size_t unlimited = (std::numeric_limits<std::size_t>::max)();

    /// Threads that fill slots; 0: the caller's thread fills each batch when it asks for it.
    int workers = 1;
    /// Slots, at least 1. A slot is busy while it is filled, waits its turn, and is read by the first stage's
    /// work; 0 stands for two more than there are workers.
    int slots = 0;
    /// Batches that the source holds.
    std::size_t batches = unlimited;
    /// How long `next` waits for the workers before it throws, a year at most; 0: for as long as it takes. Only with workers.
    std::chrono::milliseconds timeout{0};
    /// What the workers do when they are ahead of the caller. All but `wait` is for live input, such as a camera whose `fill` must be
    /// called again at once: what is dropped counts as `Source::dropped`, and leaves its number out. It needs workers, and more
    /// slots than workers.
    WhenAhead when_ahead = WhenAhead::wait;
    /// Notes when batches were filled and taken, for `fill_times` and `timeline_of`: the last ten times as many, since a
    /// pipeline with the same number may have left out as many since it last noted some. 0: notes nothing, and costs nothing.
    int timed_batches = 0;
    /// Batches in a row whose `fill` may throw: they are left out, and `Source::skipped` counts them. One more ends the source,
    /// as with 0 the first does.
    std::size_t errors_in_a_row = 0;
    /// True: what a batch's memory held before counts when it is filled, such as a table that its maker wrote. So it is not
    /// poisoned under `Stress`, see backend/stress.hpp. Otherwise without effect.
    bool keeps_slots = false;
};

} // namespace sluice
