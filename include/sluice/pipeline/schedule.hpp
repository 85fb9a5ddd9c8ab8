/// \file
/// How a pipeline runs its stages.
#pragma once

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
};

/// `"serial"`, `"overlapped"` or `"graphed"`.
constexpr const char* to_string(Schedule schedule) noexcept {
    switch (schedule) {
    case Schedule::serial:
        return "serial";
    case Schedule::overlapped:
        return "overlapped";
    case Schedule::graphed:
        return "graphed";
    }
    return "unknown";
}

} // namespace sluice
