/// \file
/// What a program's kernels were, as tables and drawings.
#pragma once

#include <iosfwd>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <common/timelines.hpp>
#include <sluice/report/device_activity.hpp>

namespace examples {

/// The reports of runs that were recorded kernel by kernel.
class KernelReports {
public:
    /// Works out a run's report, by the timeline of its pipeline, and adds the same timeline with the kernels to `drawn`.
    /// `slowdown` is how many times as long the run took as one that was not recorded. Returns the report, empty where
    /// `timed` has no pipeline.
    std::optional<sluice::ActivityReport> add(sluice::DeviceActivities activities, const Timelines& timed,
                                              double slowdown, Timelines& drawn);

    /// Prints a table for each run.
    void show(std::ostream& out) const;

private:
    std::vector<std::string> tables_;
};

} // namespace examples
