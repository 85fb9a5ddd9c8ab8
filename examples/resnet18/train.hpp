/// \file
/// The experiment's heart: images are loaded, copied, prepared and trained on, as stages of a pipeline.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <utility>

#include <common/checkpoint.hpp>
#include <common/timelines.hpp>
#include <common/training.hpp>
#include <resnet18/input.hpp>
#include <resnet18/start_file.hpp>
#include <sluice/report/pipeline_report.hpp>

namespace resnet18 {

/// How a training runs.
struct TrainOptions {
    sluice::Schedule schedule = sluice::Schedule::serial;
    bool zeroes_gradients = false;
    int workers = 0;
    std::size_t warmup = 0;
    std::size_t bucket_bytes = 0; // of gradients that ranks average at a time, at least
    std::size_t steps = 0;
    bool rate_falls = false; ///< whether the learning rate starts high, and falls to 0
    std::string title{};
    std::function<void()> before_fill{}; ///< called by each worker before it fills a batch; may be empty

    /// The published learning rate, 1e-3, or one that falls.
    float rate_at(std::size_t step) const {
        const auto left = static_cast<float>(warmup + steps - step);
        return rate_falls ? 0.05f * left / static_cast<float>(warmup + steps) : 1e-3f;
    }
    /// What `rate_at` gives, as text.
    std::string rates_text() const {
        return rate_falls ? "from 0.05 to 0 over " + std::to_string(warmup + steps) + " steps" : "0.001";
    }
};

/// The steps of a training, for `write_start`.
template <sluice::Backend B>
TrainingOrder order_of(const Input<B>& input, const TrainOptions& train) {
    TrainingOrder order;
    for (std::size_t index = 0; index < train.warmup + train.steps; ++index) {
        order.rates.push_back(train.rate_at(index));
        const sluice::Sampler::Samples samples = input.samples(index);
        order.sizes.push_back(static_cast<std::int32_t>(samples.size()));
        for (const std::uint64_t sample : samples)
            order.samples.push_back(static_cast<std::int32_t>(sample));
    }
    return order;
}

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

// What a network's tensors are called in a state: one of these, then their names.
inline constexpr const char* model_prefix = "model.";
inline constexpr const char* momentum_prefix = "momentum.";

/// What is trained, after `step` steps: weights, running statistics and the velocities of the gradient descent. Waits. No
/// step may be under way.
template <sluice::Backend B, class Network>
examples::TrainingState state_of(Network& network, std::size_t step) {
    examples::TrainingState state{.step = step, .losses = {}, .tensors = {}};
    nn::on_own_stream<B>([&](sluice::BasicStreamRef<B> stream) {
        state.add(model_prefix, network.weights(stream));
        state.add(momentum_prefix, network.velocities(stream));
    });
    return state;
}

/// Gives the network a state's weights, statistics and velocities.
template <sluice::Backend B, class Network>
void load_state(Network& network, const examples::TrainingState& state) {
    nn::on_own_stream<B>([&](sluice::BasicStreamRef<B> stream) {
        network.load(stream, state.named<nn::NamedTensor>(model_prefix));
        network.load_velocities(stream, state.named<nn::NamedTensor>(momentum_prefix));
    });
}

/// Trains `network` from its present weights on the batches of `input`, in order, from the first that `checkpoints` has not
/// seen on. While batch N trains, batch N+1 is prepared, batch N+2 copied and later ones loaded, as far as the schedule
/// allows.
///
/// Where a checkpoint is due, no further batch is submitted before all work is done, so that the state is the one after
/// that step under every schedule, and nothing of a captured step is about checkpoints. The source loads batches meanwhile.
template <sluice::Backend B, class Network>
NotedTraining train(const Input<B>& input, Network& network, const TrainOptions& options,
                    examples::Timelines& timelines, const examples::Checkpoints& checkpoints = {}) {
    using Stream = sluice::BasicStreamRef<B>;
    using T = typename Network::T;
    using Loss = sluice::DeviceBuffer<float, B>;
    const std::size_t total = options.warmup + options.steps;
    const std::size_t first = checkpoints.first_step();
    NotedTraining training;
    training.losses.reserve(total);
    if (checkpoints.resumed() != nullptr)
        training.losses = checkpoints.resumed()->losses;
    sluice::Readback<float, B> losses{
        1, [&](std::size_t, std::span<const float> loss) { training.losses.push_back(loss[0]); }};
    Preparation<T, B> preparation(input, network.plan().stem().shape.in_channels);

    sluice::Source source{[&](int) { return input.make_loaded(); },
                          [](int) { return typename Input<B>::Worker{}; },
                          [&](typename Input<B>::Worker& worker, std::size_t index, LoadedBatch<B>& out) {
                              if (options.before_fill)
                                  options.before_fill();
                              input.fill(worker, first + index, options.rate_at(first + index), out);
                          },
                          sluice::SourceOptions<B>{.workers = options.workers,
                                                   .slots = source_slots(options.workers),
                                                   .batches = total - first,
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
                                                                     std::as_const(in).labels(), loss,
                                                                     std::as_const(in).share());
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

    const auto save_if_due = [&](std::size_t done) {
        if (!checkpoints.is_due(done))
            return;
        pipeline.finish();
        losses.finish();
        examples::TrainingState state = state_of<B>(network, done);
        state.losses = training.losses;
        checkpoints.write(std::move(state));
    };

    const std::size_t warmup = std::min(options.warmup, total - first - 1);
    training.pace = examples::run_batches(source, pipeline, options.title, warmup, total - first - warmup,
                                          [&](std::size_t index) { save_if_due(first + index); });
    losses.finish();
    save_if_due(total);
    for (std::size_t index = total - training.pace.steps; index < total; ++index)
        training.samples += input.batch_size(index);
    const sluice::PipelineTimes times = sluice::times_of(pipeline, source);
    training.report = sluice::report_of(times, options.title);
    training.bound = sluice::bound_of(times);
    timelines.add(pipeline, source, options.title);
    return training;
}

} // namespace resnet18
