/// \file
/// What a pipeline asks of what runs its schedule.
#pragma once

#include <sluice/graph/graph_capture.hpp>

namespace sluice::detail {

/// An executor has, besides these, `submit(core, number, batch, hold)`, which enqueues all stages for a batch, a `GivenBatch`,
/// or the batch itself where the executor has `takes_types`, and
/// `await_stage(core, stage, number)`, which waits on the calling thread until a stage is through a batch. This one's keep
/// nothing back.
struct EagerExecutor {
    /// Whether a submitted batch is kept beyond `submit`, and its hold given up later.
    static constexpr bool keeps_batches() noexcept { return false; }
    /// Whether the last batches were replayed without a stage's being called, as the next will be, then.
    static constexpr bool replays() noexcept { return false; }
    /// Sees that all batches are on their way through all stages.
    template <class Core>
    static void flush(Core&) noexcept {}
    /// Forgets all batches. Nobody works on any.
    static void reset() noexcept {}
    /// Calls `visit(stage, stream)` for the streams on which stages are captured, with -1 where there are several: CUDA's
    /// backend keeps the fault of a captured host function with its stream.
    template <class Visit>
    static void for_each_capture_stream(Visit&&) noexcept {}
    static GraphCounters counters() noexcept { return {}; }
    /// Why work was not captured first, or what has changed; empty while all is well.
    static std::string first_refusal() { return {}; }
};

} // namespace sluice::detail
