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
#include <sluice/report/device_counters.hpp>

namespace examples {

/// The reports of runs that were recorded kernel by kernel.
class KernelReports {
public:
    /// Works out a run's report, by the timeline of its pipeline, and adds the same timeline with the kernels to `drawn`.
    /// `slowdown` is how many times as long the run took as one that was not recorded.
    /// `counters` are of the same run, where they were sampled.
    void add(sluice::DeviceActivities activities, const std::optional<sluice::DeviceCounters>& counters,
             const Timelines& timed, double slowdown, Timelines& drawn);

    /// Keeps a sentence to be shown, once.
    void say(std::string sentence) { sentence_ = std::move(sentence); }

    /// Prints a table for each run.
    void show(std::ostream& out) const;

private:
    std::vector<std::string> tables_;
    std::string sentence_;
};

} // namespace examples
