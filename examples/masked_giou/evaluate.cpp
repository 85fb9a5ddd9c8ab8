#include <masked_giou/evaluate.hpp>

#include <cmath>

namespace masked_giou {
namespace {

constexpr std::size_t scale = 4;
constexpr std::size_t gap = 6;
constexpr std::size_t across = 8;
constexpr examples::Colour white = {255, 255, 255};
// Blue and orange, which colour-blind readers can tell apart as well.
constexpr examples::Colour true_colour = {0x33, 0xa0, 0xff};
constexpr examples::Colour found_colour = {0xff, 0x99, 0x22};

/// A place on the picture, of a coordinate on a canvas of `side` pixels; within the canvas whatever the coordinate is.
std::size_t place(double coordinate, std::size_t side) {
    const auto most = static_cast<double>(side * scale);
    const double scaled = std::round(coordinate * static_cast<double>(scale));
    return static_cast<std::size_t>(scaled > 0 ? std::min(scaled, most) : 0.0); // NaN to 0
}

/// The outline of a box, two pixels wide, as far as it is on the canvas.
void outline(examples::Picture& picture, std::size_t left, std::size_t top, const examples::BoxCorners& box,
             const examples::DetectionSpec& spec, examples::Colour colour) {
    constexpr std::size_t line = 2;
    const std::size_t x1 = place(box[0], spec.width);
    const std::size_t y1 = place(box[1], spec.height);
    const std::size_t x2 = place(box[2], spec.width);
    const std::size_t y2 = place(box[3], spec.height);
    if (x2 < x1 + line || y2 < y1 + line)
        return;
    picture.fill(left + x1, top + y1, x2 - x1, line, colour);
    picture.fill(left + x1, top + y2 - line, x2 - x1, line, colour);
    picture.fill(left + x1, top + y1, line, y2 - y1, colour);
    picture.fill(left + x2 - line, top + y1, line, y2 - y1, colour);
}

} // namespace

examples::Picture draw(const Evaluation& evaluation, const examples::DetectionSpec& spec) {
    const std::size_t width = spec.width * scale + gap;
    const std::size_t height = spec.height * scale + gap;
    const std::size_t rows = (evaluation.shown.size() + across - 1) / across;
    examples::Picture picture(across * width + gap, rows * height + gap, white);
    std::vector<std::uint8_t> planes;
    for (std::size_t i = 0; i < evaluation.shown.size(); ++i) {
        const ShownCanvas& canvas = evaluation.shown[i];
        const std::size_t left = gap + i % across * width;
        const std::size_t top = gap + i / across * height;
        planes.clear();
        for (int plane = 0; plane < 3; ++plane)
            planes.insert(planes.end(), canvas.image.begin(), canvas.image.end());
        picture.draw_image(left, top, planes, spec.height, spec.width, scale);
        for (const examples::PixelBox& box : canvas.truth) {
            const examples::BoxCorners corners{static_cast<double>(box.x1), static_cast<double>(box.y1),
                                               static_cast<double>(box.x2), static_cast<double>(box.y2)};
            outline(picture, left, top, corners, spec, true_colour);
        }
        for (const examples::BoxCorners& box : canvas.found)
            outline(picture, left, top, box, spec, found_colour);
    }
    return picture;
}

} // namespace masked_giou
