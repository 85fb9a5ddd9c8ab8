#include <frozen_encoder/evaluate.hpp>

namespace frozen_encoder {

examples::Picture draw(const Evaluation& evaluation, const Plan& plan) {
    constexpr std::size_t scale = 3;
    constexpr std::size_t gap = 6;
    constexpr examples::Colour white = {255, 255, 255};
    const std::size_t width = plan.width * scale + gap;
    const std::size_t height = plan.height * scale + gap;
    const std::size_t rows = evaluation.labels.size() / plan.label_bytes();

    examples::Picture picture(3 * width + gap, rows * height + gap, white);
    for (std::size_t row = 0; row < rows; ++row) {
        const std::size_t top = gap + row * height;
        const std::span images =
            std::span(evaluation.images).subspan(row * plan.image_bytes(), plan.image_bytes());
        picture.draw_image(gap, top, images, plan.height, plan.width, scale);
        const auto draw_map = [&](std::size_t column, const std::vector<std::uint8_t>& maps) {
            picture.draw_labels(gap + column * width, top,
                                std::span(maps).subspan(row * plan.label_bytes(), plan.label_bytes()),
                                plan.height, plan.width, scale);
        };
        draw_map(1, evaluation.labels);
        draw_map(2, evaluation.predictions);
    }
    return picture;
}

} // namespace frozen_encoder
