/// \file
/// When a stage worked on a batch.
#pragma once

#include <cstddef>

#include <sluice/backend/config.hpp>

namespace sluice {

/// When one stage worked on one batch, as `Pipeline::stage_times` gives it: from when its stream, or its thread, got there
/// until its work was over.
struct StageTime {
    std::size_t stage = 0; ///< Which, counted from 0; the number of stages stands for a graph of whole steps.
    std::size_t batch = 0; ///< Which, counted as in errors; of a graph of several steps the first.
    double begin = 0;      ///< Microseconds since the pipeline was made.
    double end = 0;        ///< Likewise.
};

} // namespace sluice
