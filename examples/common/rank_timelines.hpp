/// \file
/// What ranks that train together did when: as bytes for each other, and in numbers.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include <common/report.hpp>
#include <sluice/report/timeline.hpp>

namespace examples {

/// One rank's timeline of a training.
struct RankTimeline {
    std::int64_t rank = 0;
    std::string host; ///< where it ran: processes of one host have one clock
    sluice::Timeline timeline;
};

/// As bytes for another process of the same program, and back. \throws sluice::Error for bytes of anything else
std::vector<std::uint8_t> to_bytes(const RankTimeline& rank);
RankTimeline rank_timeline_of(std::span<const std::uint8_t> bytes);

/// This host's name.
std::string host_name();

/// What a rank spent on a step, and on waiting for the others. Means over the batches that all ranks have noted, in
/// microseconds.
struct RankCost {
    std::int64_t rank = 0;
    double step = 0;  ///< from the end of the stage that the ranks do together to its next end
    double stage = 0; ///< in that stage
    /// From when this rank began the stage to when the last rank did: so long its collectives wait for that one.
    double ahead = 0;
};

/// The costs of ranks on one clock, of the stage named `stage`. None where they noted fewer than two batches of it in common.
std::vector<RankCost> costs_of(const std::vector<RankTimeline>& ranks, const std::string& stage);

/// Adds the costs to a run of a report, as lists by rank. Nothing where there are none.
void add_costs(RunResult& run, const std::vector<RankCost>& costs);

} // namespace examples
