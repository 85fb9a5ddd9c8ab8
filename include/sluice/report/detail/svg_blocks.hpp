// What is drawn of a row's lanes: a rectangle for each span, or one for several too narrow to see.
#pragma once

#include <cstddef>
#include <vector>

#include <sluice/report/detail/timeline_lanes.hpp>

namespace sluice::detail::drawing {

/// More lanes than this would be no picture.
inline constexpr std::size_t most_lanes = 100;

/// One rectangle.
struct Block {
    TimelineSpan span;     ///< For several spans: from the first begin to the last end.
    std::size_t spans = 1; ///< How many it stands for.
    bool narrow = false;   ///< Whether all of them are narrower than a quarter of a pixel.
};

/// A row as it is drawn.
struct BlockRow {
    std::vector<std::vector<Block>> lanes;
    double lane_height = 18; ///< Pixels.
    bool merged = false;     ///< Whether a block stands for several narrow spans.
    bool crowded = false;    ///< Whether the last lane holds spans that more lanes would be needed for.

    double height() const { return static_cast<double>(lanes.size()) * (lane_height + 1) + 5; }
};

/// Joins narrow neighbours of one lane that are less than `quarter` microseconds apart.
inline bool merge_narrow(std::vector<Block>& lane, double quarter) {
    std::size_t kept = 0;
    for (std::size_t i = 0; i < lane.size(); ++i) {
        const Block block = lane[i];
        if (kept > 0 && block.narrow && lane[kept - 1].narrow &&
            block.span.begin - lane[kept - 1].span.end < quarter) {
            lane[kept - 1].span.end = block.span.end;
            lane[kept - 1].spans += block.spans;
        } else {
            lane[kept++] = block;
        }
    }
    const bool merged = kept < lane.size();
    lane.resize(kept);
    return merged;
}

/// The blocks of one row. `quarter` is a quarter of a pixel in microseconds.
inline BlockRow blocks_of(const Lanes& row, double quarter, bool merge) {
    BlockRow drawn;
    drawn.crowded = row.count > most_lanes;
    drawn.lanes.resize(drawn.crowded ? most_lanes : row.count);
    const auto lanes = static_cast<double>(drawn.lanes.size());
    if (drawn.lanes.size() > 1)
        drawn.lane_height = 56 / lanes > 14 ? 14 : 56 / lanes < 4 ? 4 : 56 / lanes;
    for (const Placed& placed : row.spans) {
        const Block block{placed.span, 1, placed.span.end - placed.span.begin < quarter};
        const bool last = drawn.crowded && placed.lane >= most_lanes - 1;
        std::vector<Block>& lane = drawn.lanes[last ? most_lanes - 1 : placed.lane];
        if (last && !lane.empty() && block.span.begin < lane.back().span.end) {
            Block& crowd = lane.back();
            crowd.span.end = crowd.span.end > block.span.end ? crowd.span.end : block.span.end;
            crowd.spans += 1;
            crowd.narrow = crowd.narrow && block.narrow;
        } else {
            lane.push_back(block);
        }
    }
    if (merge) {
        for (std::vector<Block>& lane : drawn.lanes)
            drawn.merged = merge_narrow(lane, quarter) || drawn.merged;
    }
    return drawn;
}

} // namespace sluice::detail::drawing
