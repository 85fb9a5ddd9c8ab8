// Missing edges as arrows.
#pragma once

#include <string>

#include <sluice/report/detail/drawing_text.hpp>

namespace sluice::detail::drawing {

/// An arrow with a text for the pointer, and more attributes. Of a page its script makes the same paths.
inline std::string edge_group(const std::string& text, const std::string& curve, const std::string& head,
                              const std::string& more = {}) {
    return "<g class=\"order\"" + more + "><title>" + escape_xml(text) + "</title><path class=\"wide\" d=\"" +
           curve + "\"/><path class=\"edge\" d=\"" + curve + "\"/><path class=\"head\" d=\"" + head +
           "\"/></g>\n";
}

/// A curve that leaves to the right and comes from the left, with a head.
inline std::string draw_edge(const std::string& text, double x1, double y1, double x2, double y2) {
    const double apart = x2 > x1 ? x2 - x1 : x1 - x2;
    const double reach = apart / 2 > 24 ? apart / 2 : 24;
    const double sag = y1 == y2 ? 12 : 0; // or the arrow would lie on its row
    const auto at = [](double x, double y) { return trimmed(x) + ' ' + trimmed(y); };
    return edge_group(text,
                      'M' + at(x1, y1) + 'C' + at(x1 + reach, y1 + sag) + ' ' + at(x2 - reach, y2 + sag) +
                          ' ' + at(x2 - 6, y2),
                      'M' + at(x2, y2) + "l-8 -4v8z");
}

} // namespace sluice::detail::drawing
