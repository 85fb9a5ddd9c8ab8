/// \file
/// The experiment's heart: images are loaded, copied, prepared and trained on, as stages of a pipeline.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <utility>

#include <common/timelines.hpp>
#include <common/training.hpp>
#include <resnet18/input.hpp>
#include <sluice/report/pipeline_report.hpp>

namespace resnet18 {

/// How a training runs.
struct TrainOptions {
    sluice::Schedule schedule = sluice::Schedule::serial;
    bool zeroes_gradients = false;
    int workers = 0;
    std::size_t warmup = 0;
    std::size_t steps = 0;
    bool is_real = false; ///< whether there is something to learn
    std::string title{};
    std::function<void()> before_fill{}; ///< called by each worker before it fills a batch; may be empty

    /// The published learning rate, 1e-3; where there is something to learn it is higher at first, and falls to 0.
    float rate_at(std::size_t step) const {
        const auto left = static_cast<float>(warmup + steps - step);
        return is_real ? 0.05f * left / static_cast<float>(warmup + steps) : 1e-3f;
    }
};

/// A training, and what its pipeline noted of its last batches.
struct NotedTraining : examples::Training {
    std::size_t samples = 0; ///< of the timed steps
    sluice::TimelineReport report;
    sluice::Bound bound;

    double samples_per_second() const { return static_cast<double>(samples) / pace.seconds; }
};

/// Slots of a source: an even number, so that the pairs of its slots and a pipeline's are as few as its slots.
inline int source_slots(int workers) { return (workers + 4) / 2 * 2; }

/// Batches that are noted.
inline constexpr int noted_batches = 24;

/// Trains `network` from its present weights on the batches of `input`, in order. While batch N trains, batch N+1 is
/// prepared, batch N+2 copied and later ones loaded, as far as the schedule allows.
template <sluice::Backend B, class Network>
NotedTraining train(const Input<B>& input, Network& network, const TrainOptions& options,
                    examples::Timelines& timelines) {
    using Stream = sluice::BasicStreamRef<B>;
    using T = typename Network::T;
    using Loss = sluice::DeviceBuffer<float, B>;
    const std::size_t total = options.warmup + options.steps;
    NotedTraining training;
    training.losses.reserve(total);
    sluice::Readback<float, B> losses{
        1, [&](std::size_t, std::span<const float> loss) { training.losses.push_back(loss[0]); }};
    Preparation<T, B> preparation(input, network.plan().stem().shape.in_channels);

    sluice::Source source{[&](int) { return input.make_loaded(); },
                          [](int) { return typename Input<B>::Worker{}; },
                          [&](typename Input<B>::Worker& worker, std::size_t index, LoadedBatch<B>& out) {
                              if (options.before_fill)
                                  options.before_fill();
                              input.fill(worker, index, options.rate_at(index), out);
                          },
                          sluice::SourceOptions<B>{.workers = options.workers,
                                                   .slots = source_slots(options.workers),
                                                   .batches = total,
                                                   .timed_batches = examples::noted_fills}};

    sluice::Stage copy{"copy", [](Stream stream, const LoadedBatch<B>& in, CopiedBatch<B>& out) {
                           out.copy_from(stream, in);
                       }};
    sluice::Stage prepare{"prepare", [&](Stream stream, CopiedBatch<B>& in, NetworkBatch<T, B>& out) {
                              preparation.run(stream, in, out);
                          }};
    sluice::Stage step{"train", [&](Stream stream, NetworkBatch<T, B>& in, Loss& loss) {
                           if (options.zeroes_gradients)
                               network.zero_gradients(stream);
                           network.set_learning_rate(stream, std::as_const(in).rate());
                           network.template train_step<std::uint8_t>(stream, std::as_const(in).images(),
                                                                     std::as_const(in).labels(), loss);
                       }};
    sluice::Stage report{"report", [&](Stream stream, Loss& loss) { losses.push(stream, loss); }};

    sluice::Pipeline pipeline{
        sluice::Stages{copy, prepare, step, report},
        sluice::Slots{[&](int) { return input.make_copied(); },
                      [&](int) { return NetworkBatch<T, B>(input.batch(), network.image_size()); },
                      [](int) { return Loss(1); }},
        {.schedule = options.schedule,
         .graph_each_stage = options.schedule == sluice::Schedule::graphed,
         .timed_batches = noted_batches}};

    training.pace = examples::run_batches(source, pipeline, options.title, options.warmup, options.steps);
    losses.finish();
    for (std::size_t index = total - training.pace.steps; index < total; ++index)
        training.samples += input.batch_size(index);
    const sluice::PipelineTimes times = sluice::times_of(pipeline, source);
    training.report = sluice::report_of(times, options.title);
    training.bound = sluice::bound_of(times);
    timelines.add(pipeline, source, options.title);
    return training;
}

} // namespace resnet18
