/// \file
/// Training under each schedule, and what came of it.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <iomanip>
#include <ostream>
#include <span>
#include <type_traits>
#include <vector>

#include <common/picture.hpp>
#include <common/report.hpp>
#include <common/text.hpp>
#include <common/training.hpp>
#include <common/workers.hpp>
#include <masked_giou/evaluate.hpp>
#include <masked_giou/train.hpp>

namespace masked_giou {

/// First weights from those that PyTorch would draw. Uniform within ±√(6 / fan-in) instead of ±√(1 / fan-in),
/// as K. He et al. (2015) derive for ReLU, or plain gradient descent takes thousands of steps to begin; the
/// last layer's small, with boxes side by side for a bias, so that every prediction begins as a box that some
/// digits overlap.
inline std::vector<nn::NamedTensor> first_weights(std::vector<nn::NamedTensor> tensors,
                                                  const nn::DetectorOptions& sizes) {
    constexpr float relu_gain = 2.449f; // √6
    constexpr float last_gain = 0.1f;
    for (std::size_t i = 0; i + 2 < tensors.size(); ++i) {
        if (!tensors[i].name.ends_with(".weight"))
            continue;
        for (float& value : tensors[i].values)
            value *= relu_gain;
    }
    nn::NamedTensor& last_weight = tensors[tensors.size() - 2];
    nn::NamedTensor& last_bias = tensors.back();
    for (float& value : last_weight.values)
        value *= last_gain;
    // In units of box_scale, the canvas's side.
    constexpr float half = 0.15f;
    for (std::size_t box = 0; box < sizes.max_boxes; ++box) {
        const float centre = (static_cast<float>(box) + 0.5f) / static_cast<float>(sizes.max_boxes);
        const std::array<float, 4> corners{centre - half, 0.5f - half, centre + half, 0.5f + half};
        std::copy(corners.begin(), corners.end(),
                  last_bias.values.begin() + static_cast<std::ptrdiff_t>(4 * box));
    }
    return tensors;
}

/// The mean loss of the first or the last steps, since a single batch's says little.
inline double mean_loss(std::span<const float> losses) {
    double sum = 0;
    for (const float loss : losses)
        sum += static_cast<double>(loss);
    return sum / static_cast<double>(losses.size());
}

template <sluice::Backend B>
void run_train(const Options& options, examples::Report& report, examples::Timelines& timelines,
               std::ostream& out) {
    constexpr bool on_host = std::is_same_v<B, sluice::Host>;
    const DetectionWorkload workload(options, on_host ? 1000 : 20000);
    const TrainingPlan& plan = workload.plan();
    const examples::DetectionSpec& spec = workload.spec();
    report.batch = static_cast<std::int64_t>(plan.batch);
    report.steps = static_cast<std::int64_t>(plan.steps);
    out << "\ntrain: " << examples::counted(plan.batch, "canvas") << " of " << spec.height << "x"
        << spec.width << " a batch, with 0 to " << examples::counted(spec.most, "digit") << " each, "
        << examples::counted(plan.steps, "step") << " after " << plan.warmup
        << " of warm-up, data: " << options.data << std::endl;

    const nn::DetectorOptions sizes{.height = spec.height,
                                    .width = spec.width,
                                    .channels = plan.channels,
                                    .hidden = plan.hidden,
                                    .max_boxes = spec.most,
                                    .batch = plan.batch,
                                    .image_scale = 1.0f / 255.0f,
                                    .box_scale = static_cast<float>(spec.width),
                                    .precision = options.precision.value_or(nn::Precision::tf32),
                                    .keep_routes = true,
                                    .seed = options.seed};
    nn::Detector<B> detector(sizes);
    sluice::BasicStream<B> stream;
    const std::vector<nn::NamedTensor> first = first_weights(detector.weights(stream), sizes);

    const int workers =
        options.workers.value_or(examples::workers_for_machine(examples::other_threads(on_host, 2)));
    report.extra.emplace_back("workers", std::int64_t{workers});
    examples::TrainingRuns runs;
    for (const sluice::Schedule schedule : options.schedules) {
        detector.load(stream, first);
        const examples::Training training = train(workload, detector, schedule, workers, timelines);
        const std::span<const float> losses = training.losses;
        const std::size_t some = std::min<std::size_t>(losses.size(), 20);
        examples::RunResult& run = runs.add(schedule, training, detector.weights(stream));
        run.loss_first = mean_loss(losses.first(some));
        run.loss_last = mean_loss(losses.last(some));
        run.extra.emplace_back("part", "train");
    }
    examples::Report table = report;
    table.runs = runs.runs();
    examples::print_table(table, out);
    report.runs.insert(report.runs.end(), table.runs.begin(), table.runs.end());

    const Evaluation evaluation = evaluate(workload, detector);
    report.mean_iou = evaluation.iou.mean();
    report.extra.emplace_back("held_out_boxes", evaluation.iou.count());
    report.extra.emplace_back("found_at_half", evaluation.found_at_half());
    out << "held-out digits: mean IoU " << std::fixed << std::setprecision(3) << *report.mean_iou << " over "
        << examples::counted(static_cast<std::uint64_t>(evaluation.iou.count()), "box") << ", "
        << std::setprecision(1) << 100 * evaluation.found_at_half() << " % of them found with at least 0.5"
        << std::endl;
    if (!options.picture.empty()) {
        examples::write_png(draw(evaluation, spec), options.picture);
        out << "canvases with true boxes (blue) and found ones (orange): " << options.picture << std::endl;
    }
}

} // namespace masked_giou
