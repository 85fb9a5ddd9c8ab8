/// \file
/// How well a trained decoder segments held-out digits.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include <common/picture.hpp>
#include <common/segmentation_metrics.hpp>
#include <frozen_encoder/workload.hpp>
#include <nn/models/decoder.hpp>
#include <nn/models/encoder.hpp>
#include <sluice/sluice.hpp>

namespace frozen_encoder {

/// Held-out canvases with what the decoder makes of them.
struct Evaluation {
    examples::ConfusionMatrix confusion{examples::segmentation_classes};
    std::vector<std::uint8_t> images;      ///< of the canvases that go into the picture
    std::vector<std::uint8_t> labels;      ///< likewise
    std::vector<std::uint8_t> predictions; ///< likewise
};

/// Canvases that a decoder is judged on, and those of them that are shown.
inline constexpr std::size_t held_out_canvases = 256;
inline constexpr std::size_t shown_canvases = 8;

/// Segments `held_out_canvases` canvases of held-out digits.
template <sluice::Backend B>
Evaluation evaluate(const DigitWorkload& workload, nn::Encoder<B>& encoder, nn::Decoder<B>& decoder) {
    const Plan& plan = workload.plan();
    sluice::BasicStream<B> stream;
    sluice::PinnedBuffer<std::uint8_t, B> host_images(plan.batch * plan.image_bytes());
    std::vector<std::uint8_t> labels(plan.batch * plan.label_bytes());
    std::vector<std::uint8_t> predicted(labels.size());
    sluice::DeviceBuffer<std::uint8_t, B> images(host_images.size());
    sluice::DeviceBuffer<float, B> features(plan.batch * encoder.features_size());
    sluice::DeviceBuffer<std::uint8_t, B> predictions(labels.size());

    Evaluation result;
    for (std::size_t done = 0; done < held_out_canvases; done += plan.batch) {
        const std::size_t counted = std::min(plan.batch, held_out_canvases - done);
        for (std::size_t i = 0; i < plan.batch; ++i) {
            workload.fill_held_out(done + i,
                                   std::span(host_images.data() + i * plan.image_bytes(), plan.image_bytes()),
                                   std::span(labels).subspan(i * plan.label_bytes(), plan.label_bytes()));
        }
        copy(stream, images, host_images);
        encoder.forward(stream.ref(), std::as_const(images).span(), features);
        decoder.predict(stream, features, predictions);
        copy_and_wait(stream, predicted, predictions);

        const std::size_t pixels = counted * plan.label_bytes();
        result.confusion.add(std::span(labels).first(pixels), std::span(predicted).first(pixels));
        if (done < shown_canvases) {
            const std::size_t shown = std::min(counted, shown_canvases - done);
            const auto append = [](std::vector<std::uint8_t>& to, const std::uint8_t* from,
                                   std::size_t count) { to.insert(to.end(), from, from + count); };
            append(result.images, host_images.data(), shown * plan.image_bytes());
            append(result.labels, labels.data(), shown * plan.label_bytes());
            append(result.predictions, predicted.data(), shown * plan.label_bytes());
        }
    }
    return result;
}

/// Images, labels and predictions side by side, a row for each canvas.
examples::Picture draw(const Evaluation& evaluation, const Plan& plan);

} // namespace frozen_encoder
