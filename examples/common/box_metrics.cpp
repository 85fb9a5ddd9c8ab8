#include <common/box_metrics.hpp>

#include <algorithm>

namespace examples {

double intersection_over_union(const BoxCorners& found, const PixelBox& truth) {
    const double found_width = found[2] - found[0];
    const double found_height = found[3] - found[1];
    // Written so that a corner that is not a number ends here too.
    if (!(found_width > 0 && found_height > 0))
        return 0;
    const double width = std::min<double>(found[2], truth.x2) - std::max<double>(found[0], truth.x1);
    const double height = std::min<double>(found[3], truth.y2) - std::max<double>(found[1], truth.y1);
    if (!(width > 0 && height > 0))
        return 0;
    const double truth_area =
        static_cast<double>(truth.x2 - truth.x1) * static_cast<double>(truth.y2 - truth.y1);
    return width * height / (found_width * found_height + truth_area - width * height);
}

} // namespace examples
