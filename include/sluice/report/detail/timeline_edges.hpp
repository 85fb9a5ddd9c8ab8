// Where missing edges begin and end.
#pragma once

#include <cstddef>
#include <vector>

#include <sluice/report/detail/timeline_lanes.hpp>

namespace sluice::detail::drawing {

/// An edge's end, or its begin.
struct EdgeEnd {
    std::size_t row = 0;
    std::size_t lane = 0;
    double time = 0;
};
struct PlacedEdge {
    EdgeEnd from, to;
    const MissingEdge* edge = nullptr;
};

/// A row's work on a batch: where it ends last, or begins first. Null where there is none.
inline const Placed* work_on(const Lanes& row, std::size_t batch, bool last) {
    const Placed* found = nullptr;
    for (const Placed& placed : row.spans) {
        if (placed.span.batch != batch || placed.span.kind == SpanKind::wait)
            continue;
        if (found == nullptr || (last && placed.span.end > found->span.end))
            found = &placed;
    }
    return found;
}

/// Those missing edges of which both spans are among `lanes`.
inline std::vector<PlacedEdge> edges_of(const Timeline& timeline, const std::vector<Lanes>& lanes) {
    std::vector<PlacedEdge> edges;
    for (const MissingEdge& edge : timeline.missing_edges()) {
        const Placed* const from = work_on(lanes[edge.from_row], edge.from_batch, true);
        const Placed* const to = work_on(lanes[edge.to_row], edge.to_batch, false);
        if (from != nullptr && to != nullptr) {
            edges.push_back({{edge.from_row, from->lane, from->span.end},
                             {edge.to_row, to->lane, to->span.begin},
                             &edge});
        }
    }
    return edges;
}

} // namespace sluice::detail::drawing
