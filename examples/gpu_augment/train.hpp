/// \file
/// The experiment's heart: a classifier that trains on images which are augmented in one place or another.
#pragma once

#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <common/timelines.hpp>
#include <common/training.hpp>
#include <gpu_augment/augmentation.hpp>
#include <gpu_augment/workload.hpp>
#include <nn/models/classifier.hpp>
#include <sluice/sluice.hpp>

namespace gpu_augment {

/// Images as they are loaded, on the host. Which samples they are is a part of the batch: what changes from step to step
/// travels as data, so that a step that is captured once draws new parameters in each replay.
template <sluice::Backend B>
struct LoadedBatch {
    sluice::PinnedBuffer<std::uint8_t, B> images;
    sluice::PinnedBuffer<std::uint8_t, B> labels;
    sluice::PinnedBuffer<augment::SampleId, B> samples;

    explicit LoadedBatch(const Plan& plan)
        : images(plan.amount.batch * plan.image_bytes()), labels(plan.amount.batch), samples(labels.size()) {}

    BatchView view() {
        return {
            {images.data(), images.size()}, {labels.data(), labels.size()}, {samples.data(), samples.size()}};
    }

    /// All that a captured step reads of it on the host: where the buffers lie.
    friend auto graph_key(const LoadedBatch& batch) {
        return std::array<const void*, 3>{batch.images.data(), batch.labels.data(), batch.samples.data()};
    }
};

/// The same on the device.
template <sluice::Backend B>
struct RawBatch {
    sluice::DeviceBuffer<std::uint8_t, B> images;
    sluice::DeviceBuffer<std::uint8_t, B> labels;
    sluice::DeviceBuffer<augment::SampleId, B> samples;

    explicit RawBatch(const Plan& plan)
        : images(plan.amount.batch * plan.image_bytes()), labels(plan.amount.batch), samples(labels.size()) {}
};

template <sluice::Backend B>
void copy_batch(sluice::BasicStreamRef<B> stream, RawBatch<B>& to, const LoadedBatch<B>& from) {
    copy(stream, to.images, from.images);
    copy(stream, to.labels, from.labels);
    copy(stream, to.samples, from.samples);
}

/// Augmented images on the host, of a loader that augments.
template <sluice::Backend B>
struct AugmentedBatch {
    sluice::PinnedBuffer<float, B> images;
    sluice::PinnedBuffer<std::uint8_t, B> labels;

    explicit AugmentedBatch(const Plan& plan)
        : images(plan.amount.batch * plan.image_bytes()), labels(plan.amount.batch) {}

    /// All that a captured step reads of it on the host: where the buffers lie.
    friend auto graph_key(const AugmentedBatch& batch) {
        return std::array<const void*, 2>{batch.images.data(), batch.labels.data()};
    }
};

/// What the classifier trains on: augmented images on the device.
template <sluice::Backend B>
struct ReadyBatch {
    sluice::DeviceBuffer<float, B> images;
    sluice::DeviceBuffer<std::uint8_t, B> labels;

    explicit ReadyBatch(const Plan& plan)
        : images(plan.amount.batch * plan.image_bytes()), labels(plan.amount.batch) {}
};

/// Slots of a source: an even number, so that the pairs of its slots and a pipeline's are as few as its slots.
inline int source_slots(int workers) { return (workers + 4) / 2 * 2; }

/// Steps after which each pair of slots has been captured.
inline int steps_until_captured(int workers) { return source_slots(workers) + 6; }

/// The slot of a step's loss.
template <sluice::Backend B>
sluice::DeviceBuffer<float, B> make_loss(int /*slot*/) {
    return sluice::DeviceBuffer<float, B>(1);
}

/// What trainings share: the stages that come last, the readback of losses, and the loop.
template <sluice::Backend B>
class Trainer {
public:
    using StreamRef = sluice::BasicStreamRef<B>;
    using Loss = sluice::DeviceBuffer<float, B>;

    Trainer(const Plan& plan, nn::Classifier<B>& classifier) : plan_(plan), classifier_(classifier) {
        training_.losses.reserve(plan.steps());
    }

    /// What trains on a batch.
    auto train_stage() {
        return sluice::Stage{
            "train", [this](StreamRef stream, ReadyBatch<B>& in, Loss& loss) { step(stream, in, loss); }};
    }

    /// One step, as a graph of its own, or as a part of a larger one that is being captured. Kernels that are launched one
    /// by one come late while a batch is copied to the device.
    void step(StreamRef stream, const ReadyBatch<B>& in, Loss& loss) {
        steps_.run(stream, {in.images.data(), loss.data()},
                   [&](StreamRef s) { classifier_.step(s, in.images.span(), in.labels, loss); });
    }

    /// Apart, so that the next step of training does not wait for the copy to the host.
    auto report_stage() {
        return sluice::Stage{"report", [this](StreamRef stream, Loss& loss) { losses_.push(stream, loss); }};
    }

    template <class Source, class Pipeline>
    examples::Training run(Source& source, Pipeline& pipeline, const std::string& title) {
        training_.pace =
            examples::run_batches(source, pipeline, title, plan_.amount.warmup, plan_.amount.steps,
                                  [&](std::size_t step) { set_rate(pipeline, step); });
        steps_.finish();
        losses_.finish();
        return std::move(training_);
    }

private:
    // A replay reads the rate where it finds it, so none may be under way when it falls.
    template <class Pipeline>
    void set_rate(Pipeline& pipeline, std::size_t step) {
        if (step > 0 && plan_.rate_at(step) == plan_.rate_at(step - 1))
            return;
        pipeline.finish();
        const sluice::BasicStream<B> stream;
        classifier_.set_learning_rate(stream, plan_.rate_at(step));
        stream.sync();
    }

    /// The slots of a step.
    struct Placements {
        const float* images;
        const float* loss;
        friend bool operator==(const Placements&, const Placements&) = default;
    };

    const Plan& plan_;
    nn::Classifier<B>& classifier_;
    sluice::GraphCapture<Placements, B> steps_;
    examples::Training training_;
    sluice::Readback<float, B> losses_{
        1, [this](std::size_t, std::span<const float> loss) { training_.losses.push_back(loss[0]); }};
};

// Each of these keeps in `timelines` what ran when.

/// Trains on batches that are copied to the device as bytes and augmented there. Serially, all of it is in one
/// stream; otherwise batch N+2 is copied and batch N+1 augmented while batch N trains: in streams of their own, or graphed,
/// as parts of one graph.
template <sluice::Backend B>
examples::Training train_augmenting_on_device(const Workload& workload, const BatchAugmentation& augmentation,
                                              nn::Classifier<B>& classifier, sluice::Schedule schedule,
                                              int workers, examples::Timelines& timelines) {
    using StreamRef = sluice::BasicStreamRef<B>;
    const Plan& plan = workload.plan();
    Trainer<B> trainer(plan, classifier);

    sluice::Stage copy_in{"copy", [](StreamRef stream, const LoadedBatch<B>& in, RawBatch<B>& out) {
                              copy_batch(stream, out, in);
                          }};
    sluice::Stage augment{"augment", [&](StreamRef stream, RawBatch<B>& in, ReadyBatch<B>& out) {
                              augmentation.run(stream, in.images, in.samples, out.images);
                              copy(stream, out.labels, in.labels);
                          }};
    sluice::Pipeline pipeline{sluice::Stages{copy_in, augment, trainer.train_stage(), trainer.report_stage()},
                              sluice::Slots{[&](int) { return RawBatch<B>(plan); },
                                            [&](int) { return ReadyBatch<B>(plan); }, make_loss<B>},
                              {.schedule = schedule,
                               .graph_each_stage = schedule == sluice::Schedule::graphed,
                               .timed_batches = timelines.timed_batches()}};
    sluice::Source source{[&](int) { return LoadedBatch<B>(plan); },
                          [&](std::size_t index, LoadedBatch<B>& out) { workload.fill(index, out.view()); },
                          sluice::SourceOptions<B>{.workers = workers,
                                                   .slots = source_slots(workers),
                                                   .batches = plan.steps(),
                                                   .timed_batches = examples::noted_fills}};
    const std::string title = std::string("device, ") + to_string(schedule);
    examples::Training training = trainer.run(source, pipeline, title);
    timelines.add(pipeline, source, title);
    return training;
}

/// What a worker loads into, before it augments into the batch.
struct AugmentingWorker {
    std::vector<std::uint8_t> images;
    std::vector<augment::SampleId> samples;

    explicit AugmentingWorker(const Plan& plan)
        : images(plan.amount.batch * plan.image_bytes()), samples(plan.amount.batch) {}

    template <sluice::Backend B>
    void fill(const Workload& workload, const BatchAugmentation& augmentation, std::size_t index,
              AugmentedBatch<B>& out) {
        workload.fill(index, {images, {out.labels.data(), out.labels.size()}, samples});
        augmentation.run_here(images, samples, {out.images.data(), out.images.size()});
    }
};

/// The batches of a training, which `workers` threads augment.
template <sluice::Backend B>
auto source_of_augmented(const Workload& workload, const BatchAugmentation& augmentation, int workers) {
    const Plan& plan = workload.plan();
    return sluice::Source{
        [&plan](int) { return AugmentedBatch<B>(plan); }, [&plan](int) { return AugmentingWorker(plan); },
        [&workload, &augmentation](AugmentingWorker& worker, std::size_t index, AugmentedBatch<B>& out) {
            worker.fill(workload, augmentation, index, out);
        },
        sluice::SourceOptions<B>{.workers = workers,
                                 .slots = source_slots(workers),
                                 .batches = plan.steps(),
                                 .timed_batches = examples::noted_fills}};
}

/// Trains on batches that the source's workers augment, and that are copied to the device as numbers of four bytes.
template <sluice::Backend B>
examples::Training train_augmenting_in_workers(const Workload& workload,
                                               const BatchAugmentation& augmentation,
                                               nn::Classifier<B>& classifier, sluice::Schedule schedule,
                                               int workers, examples::Timelines& timelines) {
    using StreamRef = sluice::BasicStreamRef<B>;
    const Plan& plan = workload.plan();
    Trainer<B> trainer(plan, classifier);

    sluice::Stage copy_in{"copy", [](StreamRef stream, const AugmentedBatch<B>& in, ReadyBatch<B>& out) {
                              copy(stream, out.images, in.images);
                              copy(stream, out.labels, in.labels);
                          }};
    sluice::Pipeline pipeline{sluice::Stages{copy_in, trainer.train_stage(), trainer.report_stage()},
                              sluice::Slots{[&](int) { return ReadyBatch<B>(plan); }, make_loss<B>},
                              {.schedule = schedule,
                               .graph_each_stage = schedule == sluice::Schedule::graphed,
                               .timed_batches = timelines.timed_batches()}};
    auto source = source_of_augmented<B>(workload, augmentation, workers);
    const std::string title = std::string("cpu, ") + to_string(schedule);
    examples::Training training = trainer.run(source, pipeline, title);
    timelines.add(pipeline, source, title);
    return training;
}

/// Trains on one batch, which lies ready on the device, over and over: what a training could do at best.
template <sluice::Backend B>
examples::Training train_alone(const Plan& plan, ReadyBatch<B>& ready, nn::Classifier<B>& classifier,
                               sluice::Schedule schedule, examples::Timelines& timelines) {
    using StreamRef = sluice::BasicStreamRef<B>;
    struct Nothing {};
    Trainer<B> trainer(plan, classifier);

    sluice::Stage train{"train",
                        [&](StreamRef stream, const Nothing& /*in*/, sluice::DeviceBuffer<float, B>& loss) {
                            trainer.step(stream, ready, loss);
                        }};
    sluice::Pipeline pipeline{sluice::Stages{train, trainer.report_stage()},
                              sluice::Slots{make_loss<B>},
                              {.schedule = schedule,
                               .graph_each_stage = schedule == sluice::Schedule::graphed,
                               .timed_batches = timelines.timed_batches()}};
    // Gives nothing but the turn, as many as may be under way elsewhere.
    sluice::Source source{
        [](int) { return Nothing{}; }, [](std::size_t, Nothing&) {},
        sluice::SourceOptions<B>{
            .workers = 0, .slots = 8, .batches = plan.steps(), .timed_batches = examples::noted_fills}};
    const std::string title = std::string("none, ") + to_string(schedule);
    examples::Training training = trainer.run(source, pipeline, title);
    timelines.add(pipeline, source, title);
    return training;
}

} // namespace gpu_augment
