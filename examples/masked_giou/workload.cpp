#include <masked_giou/workload.hpp>

#include <array>

namespace masked_giou {

DetectionWorkload::DetectionWorkload(const Options& options, std::size_t steps)
    : digits_(examples::load_digit_set(options.data)), seed_(options.seed) {
    spec_ = {.height = 48, .width = 48, .most = 3, .smallest = 12, .largest = 20};
    plan_.channels = {8, 16, 32};
    plan_.hidden = options.hidden.value_or(256);
    plan_.learning_rate = 0.2f;
    plan_.rate_decay = 0.9f;
    plan_.batch = static_cast<std::size_t>(options.batch.value_or(32));
    plan_.steps = options.steps ? static_cast<std::size_t>(*options.steps) : steps;
    plan_.warmup = static_cast<std::size_t>(options.warmup.value_or(10));
}

std::span<const TargetBox> DetectionWorkload::compose_from(const examples::IdxSplit& split,
                                                           std::uint32_t epoch, std::size_t index,
                                                           std::span<std::uint8_t> image,
                                                           std::span<TargetBox, most_boxes> boxes) const {
    std::array<examples::PixelBox, most_boxes> found{};
    const std::size_t count = examples::compose_detection(split, spec_, seed_, epoch, index, image, found);
    for (std::size_t i = 0; i < count; ++i)
        boxes[i] = {found[i].x1, found[i].y1, found[i].x2, found[i].y2};
    return boxes.first(count);
}

} // namespace masked_giou
