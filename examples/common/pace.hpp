/// \file
/// What a run spent its time with on the host, and what to say of it.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include <sluice/pipeline/stage_time.hpp>

namespace examples {

/// The timed steps of a run, as the thread that submits saw them.
struct Pace {
    std::size_t steps = 0;
    double seconds = 0;            ///< from the first step until the last one's work is done
    double waiting_seconds = 0;    ///< of it, waiting for batches
    double submitting_seconds = 0; ///< of it, in `submit`, without the waits for results there
    std::string choice = {};       ///< what Schedule::automatic has found; empty under another schedule
    std::string bound = {};        ///< `bound_line` of it; empty where nothing is to be said
};

/// One sentence where the source or the launches bound the run, empty otherwise. `fills` are the last batches that the
/// source's `workers` filled, 0 for the thread that submits; `graphs` says whether launches are graphs already.
///
/// The source does where its workers fill 85 % of the time and a step waits a tenth of its time or more; launches do where a
/// step spends three quarters of its time in `submit`. A stage that is always at work needs a report to be found.
std::string bound_line(const Pace& pace, const std::vector<sluice::FillTime>& fills, int workers,
                       bool graphs);

} // namespace examples
