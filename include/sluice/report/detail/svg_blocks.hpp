// What is drawn of a row's lanes: a rectangle for each span, or one for several too narrow to see.
#pragma once

#include <cstddef>
#include <vector>

#include <sluice/report/detail/timeline_lanes.hpp>

namespace sluice::detail::drawing {

/// How high a row and its lanes are drawn, in pixels.
struct RowShape {
    static constexpr std::size_t most_lanes = 100; ///< More would be no picture.

    std::size_t lanes = 1;
    double lane_height = 18;
    bool crowded = false; ///< Whether the last lane holds spans that more lanes would be needed for.

    RowShape() = default;
    explicit RowShape(const Lanes& row) : lanes(row.count), crowded(row.count > most_lanes) {
        lanes = crowded ? most_lanes : lanes;
        const double even = 56 / static_cast<double>(lanes);
        if (lanes > 1)
            lane_height = even > 14 ? 14 : even < 4 ? 4 : even;
    }
    /// The lane in which a span of `lane` is drawn.
    std::size_t shown(std::size_t lane) const { return lane < lanes ? lane : lanes - 1; }
    double top_of(std::size_t lane) const { return 3 + static_cast<double>(lane) * (lane_height + 1); }
    double height() const { return top_of(lanes) + 2; }
};

/// One rectangle.
struct Block {
    TimelineSpan span;     ///< For several spans: from the first begin to the last end.
    std::size_t spans = 1; ///< How many it stands for.
    bool narrow = false;   ///< Whether all of them are narrower than a quarter of a pixel.
};

/// A row's blocks by lane.
struct BlockRow {
    std::vector<std::vector<Block>> lanes;
    bool merged = false; ///< Whether a block stands for several narrow spans.
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
inline BlockRow blocks_of(const Lanes& row, const RowShape& shape, double quarter, bool merge) {
    BlockRow drawn;
    drawn.lanes.resize(shape.lanes);
    for (const Placed& placed : row.spans) {
        const Block block{placed.span, 1, placed.span.end - placed.span.begin < quarter};
        std::vector<Block>& lane = drawn.lanes[shape.shown(placed.lane)];
        if (!lane.empty() && block.span.begin < lane.back().span.end) { // in the last of a crowded row alone
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
