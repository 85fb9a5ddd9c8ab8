// Missing edges as arrows.
#pragma once

#include <cstddef>
#include <string>

#include <sluice/report/detail/drawing_text.hpp>
#include <sluice/report/detail/svg_blocks.hpp>
#include <sluice/report/detail/timeline_edges.hpp>

namespace sluice::detail::drawing {

/// Where a row is drawn.
struct RowPlace {
    double top = 0;
    double lane_height = 18;
    std::size_t lanes = 1;
};

inline double middle_of(const RowPlace& row, std::size_t lane) {
    const std::size_t drawn = lane < row.lanes ? lane : row.lanes - 1;
    return row.top + 3 + static_cast<double>(drawn) * (row.lane_height + 1) + row.lane_height / 2;
}

/// A curve that leaves to the right and comes from the left, with a head.
inline std::string draw_edge(const PlacedEdge& edge, double x1, double y1, double x2, double y2) {
    const double apart = x2 > x1 ? x2 - x1 : x1 - x2;
    const double reach = apart / 2 > 24 ? apart / 2 : 24;
    const double sag = y1 == y2 ? 12 : 0; // or the arrow would lie on its row
    const auto at = [](double x, double y) { return fixed(x) + ' ' + fixed(y); };
    const std::string curve = " d=\"M" + at(x1, y1) + " C" + at(x1 + reach, y1 + sag) + ' ' +
                              at(x2 - reach, y2 + sag) + ' ' + at(x2 - 6, y2) + "\"/>";
    return "<g><title>" + escape_xml(edge.edge->text) + "</title><path class=\"wide\"" + curve +
           "<path class=\"edge\"" + curve + "<path class=\"head\" d=\"M" + at(x2, y2) + " L" +
           at(x2 - 8, y2 - 4) + " L" + at(x2 - 8, y2 + 4) + "Z\"/></g>\n";
}

} // namespace sluice::detail::drawing
