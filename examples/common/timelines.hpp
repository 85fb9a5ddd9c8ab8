/// \file
/// What a program's pipelines did when, for `--report` and `--timeline`.
#pragma once

#include <chrono>
#include <functional>
#include <iosfwd>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <common/options.hpp>
#include <common/rank_timelines.hpp>
#include <common/report.hpp>
#include <sluice/report/html.hpp>
#include <sluice/report/memory_sampler.hpp>
#include <sluice/report/pipeline_report.hpp>
#include <sluice/report/timeline.hpp>

namespace examples {

/// The timelines of a program's runs.
class Timelines {
public:
    explicit Timelines(const TimelineOptions& options) : options_(options) {}

    [[nodiscard]] int timed_batches() const { return options_.timed_batches(); }

    /// Has the device memory in use sampled from now on, for the timelines that are added. Nothing, where nothing is
    /// asked for. \throws sluice::Error where the backend cannot tell
    template <sluice::Backend B>
    void sample_memory() {
        if (timed_batches() == 0)
            return;
        // Often enough for a few values a step, and seldom enough not to be in the way of launches.
        auto sampler = std::make_shared<sluice::MemorySampler<B>>(std::chrono::milliseconds(10));
        add_memory_ = [sampler](sluice::Timeline& timeline) { sampler->add_to(timeline); };
    }

    /// Keeps what a pipeline, which has finished, and its source did. Nothing, where nothing is asked for.
    template <class Pipeline, class Source>
    void add(Pipeline& pipeline, const Source& source, const std::string& title) {
        if (timed_batches() > 0)
            add(sluice::timeline_of(pipeline, source, title));
    }

    /// Keeps one of another kind. Nothing, where nothing is asked for.
    void add(sluice::Timeline timeline) {
        if (timed_batches() == 0)
            return;
        if (add_memory_)
            add_memory_(timeline);
        timelines_.push_back(std::move(timeline));
    }

    /// For what one of several ranks does: nothing yet, and kept as here.
    [[nodiscard]] Timelines for_rank() const { return Timelines(options_); }

    /// Keeps what ranks did in one training, by rank. The first one's is reported; all are drawn, as one, those of other hosts
    /// aside, since their clocks are others. Returns what the ranks cost each other in the stage that they do together.
    std::vector<RankCost> add_ranks(const std::vector<RankTimeline>& ranks, const std::string& stage);

    /// Adds a timeline that is drawn, and not reported.
    void add_drawing(sluice::Timeline timeline) { drawings_.push_back(std::move(timeline)); }

    /// Adds a table that stands on a page below the timelines.
    void add_table(sluice::HtmlTable table) { tables_.push_back(std::move(table)); }

    /// Those of the pipelines.
    [[nodiscard]] const std::vector<sluice::Timeline>& all() const { return timelines_; }

    /// Prints and writes what was asked for, and with `--report` adds each run's numbers to `report`.
    /// \throws sluice::Error for a file that cannot be written
    void show(std::ostream& out, Report& report) const;

private:
    struct RankRun {
        sluice::Timeline merged;
        std::string costs; // as a table
    };

    TimelineOptions options_;
    std::function<void(sluice::Timeline&)> add_memory_;
    std::vector<sluice::Timeline> timelines_;
    std::vector<RankRun> rank_runs_; // where several ranks train: of each of `timelines_`, all of them
    std::string left_out_;           // of the ranks, in a sentence
    std::vector<sluice::Timeline> drawings_; // below those
    std::vector<sluice::HtmlTable> tables_;
};

} // namespace examples
