/// \file
/// What a program's pipelines did when, for `--report` and `--timeline`.
#pragma once

#include <iosfwd>
#include <string>
#include <utility>
#include <vector>

#include <common/options.hpp>
#include <common/report.hpp>
#include <sluice/report/pipeline_report.hpp>
#include <sluice/report/timeline.hpp>

namespace examples {

/// The timelines of a program's runs.
class Timelines {
public:
    explicit Timelines(const TimelineOptions& options) : options_(options) {}

    [[nodiscard]] int timed_batches() const { return options_.timed_batches(); }

    /// Keeps what a pipeline did, which has finished. Nothing, where nothing is asked for.
    template <class Pipeline>
    void add(Pipeline& pipeline, const std::string& title) {
        if (timed_batches() > 0)
            timelines_.push_back(sluice::timeline_of(pipeline, title));
    }

    /// Keeps one of another kind. Nothing, where nothing is asked for.
    void add(sluice::Timeline timeline) {
        if (timed_batches() > 0)
            timelines_.push_back(std::move(timeline));
    }

    /// Adds a timeline that is drawn, and not reported.
    void add_drawing(sluice::Timeline timeline) { drawings_.push_back(std::move(timeline)); }

    /// Those of the pipelines.
    [[nodiscard]] const std::vector<sluice::Timeline>& all() const { return timelines_; }

    /// Prints and writes what was asked for, and with `--report` adds each run's numbers to `report`.
    /// \throws sluice::Error for a file that cannot be written
    void show(std::ostream& out, Report& report) const;

private:
    TimelineOptions options_;
    std::vector<sluice::Timeline> timelines_;
    std::vector<sluice::Timeline> drawings_; // below those
};

} // namespace examples
