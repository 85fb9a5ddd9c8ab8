/// \file
/// How well a trained detector finds held-out digits.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include <common/box_metrics.hpp>
#include <common/picture.hpp>
#include <masked_giou/workload.hpp>
#include <nn/models/detector.hpp>
#include <sluice/sluice.hpp>

namespace masked_giou {

/// A canvas, its true boxes, and as many found ones.
struct ShownCanvas {
    std::vector<std::uint8_t> image;
    std::vector<examples::PixelBox> truth;
    std::vector<examples::BoxCorners> found;
};

/// How good the boxes are. A canvas's number of digits is taken as known: the first predictions, as many as
/// there are digits, are compared with the true boxes from left to right.
struct Evaluation {
    examples::MeanIou iou;
    std::int64_t half = 0; ///< boxes whose intersection over union is at least 0.5
    std::vector<ShownCanvas> shown;

    /// The fraction of boxes whose intersection over union is at least 0.5; 0 without boxes.
    [[nodiscard]] double found_at_half() const {
        return iou.count() == 0 ? 0.0 : static_cast<double>(half) / static_cast<double>(iou.count());
    }
    void add(const examples::BoxCorners& found, const examples::PixelBox& truth) {
        iou.add(found, truth);
        half += examples::intersection_over_union(found, truth) >= 0.5 ? 1 : 0;
    }
};

/// Canvases that a detector is judged on, and those of them that are shown.
inline constexpr std::size_t held_out_canvases = 512;
inline constexpr std::size_t shown_canvases = 24;

/// Looks for the digits on `held_out_canvases` canvases of held-out digits.
template <sluice::Backend B>
Evaluation evaluate(const DetectionWorkload& workload, nn::Detector<B>& detector) {
    const std::size_t batch = workload.plan().batch;
    const std::size_t bytes = workload.image_bytes();
    sluice::BasicStream<B> stream;
    sluice::PinnedBuffer<std::uint8_t, B> host_images(batch * bytes);
    sluice::DeviceBuffer<std::uint8_t, B> images(host_images.size());
    sluice::DeviceBuffer<float, B> predictions(batch * detector.predictions_size());
    std::vector<float> numbers(predictions.size());
    std::array<DetectionWorkload::Box, DetectionWorkload::most_boxes> room;

    Evaluation result;
    for (std::size_t first = 0; first < held_out_canvases; first += batch) {
        std::vector<std::vector<examples::PixelBox>> truth(batch);
        for (std::size_t i = 0; i < batch; ++i) {
            const std::span image(host_images.data() + i * bytes, bytes);
            for (const DetectionWorkload::Box& box : workload.compose_held_out(first + i, image, room))
                truth[i].push_back({box.x1, box.y1, box.x2, box.y2});
        }
        copy(stream, images, host_images);
        detector.forward(stream.ref(), images.span(), predictions.span());
        copy_and_wait(stream, numbers, predictions);

        const std::size_t counted = std::min(batch, held_out_canvases - first);
        for (std::size_t i = 0; i < counted; ++i) {
            ShownCanvas canvas{{}, truth[i], {}};
            const float* found = numbers.data() + i * detector.predictions_size();
            for (std::size_t box = 0; box < truth[i].size(); ++box, found += 4) {
                canvas.found.push_back({static_cast<double>(found[0]), static_cast<double>(found[1]),
                                        static_cast<double>(found[2]), static_cast<double>(found[3])});
                result.add(canvas.found.back(), truth[i][box]);
            }
            if (first + i < shown_canvases) {
                const std::uint8_t* image = host_images.data() + i * bytes;
                canvas.image.assign(image, image + bytes);
                result.shown.push_back(std::move(canvas));
            }
        }
    }
    return result;
}

/// Canvases in rows of eight, true boxes in one colour and found ones in another.
examples::Picture draw(const Evaluation& evaluation, const examples::DetectionSpec& spec);

} // namespace masked_giou
