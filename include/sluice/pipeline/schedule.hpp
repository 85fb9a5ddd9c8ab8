/// \file
/// How a pipeline runs its stages.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include <sluice/backend/config.hpp>

namespace sluice {

/// The one switch between ways of running the same stages. All give the same bits for callables that are
/// deterministic on one stream; `verify_schedules` checks that for given ones.
enum class Schedule {
    /// One stage after another, one batch after another, all on the first stage's stream.
    serial,
    /// Each stage on a stream of its own: a stage works on batch N+1 while the next one works on batch N.
    overlapped,
    /// As overlapped, but the work of one step, all stages on neighbouring batches, is one graph: captured at first
    /// sight, replayed with a single launch from then on. See `Stage` for what that asks of callables.
    graphed,
    /// Measures the others on the first batches, 400 to 3,000 of short steps and some ten of long ones, and stays with the
    /// fastest, or with a simpler one within 2 %: `Pipeline::choice` tells. Each batch runs once, whatever is being measured. Graphs are tried on a device
    /// only, and only kept where the stages hand over the same work when they are called again for the same kind of batch; a
    /// stage that changes what it enqueues later than that must opt out, see `StageOptions::graphed`.
    automatic,
};

/// `"serial"`, `"overlapped"`, `"graphed"` or `"automatic"`.
constexpr const char* to_string(Schedule schedule) noexcept {
    switch (schedule) {
    case Schedule::serial:
        return "serial";
    case Schedule::overlapped:
        return "overlapped";
    case Schedule::graphed:
        return "graphed";
    case Schedule::automatic:
        return "automatic";
    }
    return "unknown";
}

/// One way of running a pipeline, as `Schedule::automatic` has tried it.
struct ScheduleTrial {
    Schedule schedule = Schedule::overlapped; ///< Not `automatic`.
    bool graph_each_stage = false;            ///< As `PipelineOptions::graph_each_stage`.
    double microseconds =
        0; ///< Of a batch, from end to end, the caller's own loop included; 0: not measured.
    bool refused =
        false; ///< Whether it cannot be used: the stages' work cannot be captured, or does not stay the same.
    std::string reason = {}; ///< Why not; empty where it can be.
};

/// What `Schedule::automatic` has found so far.
struct ScheduleChoice {
    bool decided = false; ///< Whether it is done with measuring.
    Schedule schedule =
        Schedule::overlapped;            ///< What batches run under now; later ones as well, once decided.
    bool graph_each_stage = false;       ///< Likewise.
    std::size_t batches = 0;             ///< Submitted until it was decided.
    std::vector<ScheduleTrial> trials{}; ///< In the order in which they were tried.
};

} // namespace sluice
