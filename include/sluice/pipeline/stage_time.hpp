/// \file
/// When a stage worked on a batch, and when a source filled it.
#pragma once

#include <cstddef>
#include <cstdint>

#include <sluice/backend/config.hpp>

namespace sluice {

/// When one stage worked on one batch, as `Pipeline::stage_times` gives it: from when its stream, or its thread, got there
/// until its work was over.
struct StageTime {
    /// Which, counted from 0; the number of stages stands for a graph of whole steps, and one more for a call of `submit`.
    std::size_t stage = 0;
    std::size_t batch = 0; ///< Which, counted as in errors; of a graph of several steps the first.
    double begin = 0;      ///< Microseconds of `std::chrono::steady_clock`.
    double end = 0;        ///< Likewise.
    double waited = 0;     ///< Of a call of `submit`: how much of it the thread waited for results to arrive.
    double reading =
        0; ///< Before a call of `submit`: how long the thread waited, since the one before, for the newest batch to be read.
    double made =
        0; ///< Of a call of `submit`: when the batch came into being, where a `batch_time(batch)` says so; otherwise 0.
    double used = 0; ///< CPU time that the thread had used by the end of a call of `submit`; 0: unknown.
    double results =
        0; ///< Before a call of `submit`: how long it waited, since the one before, for results of `run` and older batches' reads.
};

/// Nanoseconds that the calling thread has waited so far for results to arrive, within `Readback::push` and replays of it.
/// What a call of `submit` adds to it is no work of that call's.
inline std::int64_t& waited_for_results() noexcept {
    thread_local std::int64_t nanoseconds = 0;
    return nanoseconds;
}

/// What became of one batch of a source, as `Source::fill_times` gives it. Times are microseconds of
/// `std::chrono::steady_clock`.
struct FillTime {
    std::size_t batch = 0; ///< Which, counted from 0.
    int worker = 0;        ///< Which of the source's threads filled it; 0 without workers.
    double claimed =
        0; ///< When the worker took a slot for it, and began to wait for the work that read the slot.
    double begin = 0; ///< When `fill` was called,
    double end = 0;   ///< and when it returned.
    double asked = 0; ///< When `next` was called for it; 0: not yet,
    double given = 0; ///< and when `next` returned it.
};

} // namespace sluice
