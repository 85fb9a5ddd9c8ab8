/// \file
/// The experiment from beginning to end.
#pragma once

#include <algorithm>
#include <iomanip>
#include <memory>
#include <ostream>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include <common/kernel_trace.hpp>
#include <common/report.hpp>
#include <common/text.hpp>
#include <common/workers.hpp>
#include <gpu_augment/alone.hpp>
#include <gpu_augment/contact_sheet.hpp>
#include <gpu_augment/evaluate.hpp>
#include <gpu_augment/options.hpp>
#include <gpu_augment/results.hpp>
#include <gpu_augment/train.hpp>
#include <sluice/backend/default.hpp>

namespace gpu_augment {
namespace detail {

/// Threads that fill batches where the options do not say.
template <sluice::Backend B>
int workers_for(const Options& options, Placement placement) {
    const int others = examples::other_threads(std::is_same_v<B, sluice::Host>, 4);
    return options.workers.value_or(
        examples::workers_for_machine(others, placement == Placement::cpu ? 8 : 4));
}

template <sluice::Backend B>
Amount amount_for(const Options& options, int batch) {
    constexpr bool on_host = std::is_same_v<B, sluice::Host>;
    const int steps = options.synthetic() ? (on_host ? 5 : 300) : 6000;
    int warmup = 0;
    for (const Placement placement : options.placements)
        warmup = std::max(warmup, steps_until_captured(workers_for<B>(options, placement)));
    if (on_host && options.synthetic())
        warmup = 2; // the CPU is as slow in a graph as it is without
    return {.batch = static_cast<std::size_t>(batch),
            .steps = static_cast<std::size_t>(options.steps.value_or(steps)),
            .warmup = static_cast<std::size_t>(options.warmup.value_or(warmup))};
}

/// The batch sizes to run.
template <sluice::Backend B>
std::vector<int> batches_for(const Options& options) {
    constexpr bool on_host = std::is_same_v<B, sluice::Host>;
    if (!options.sweep)
        return {options.batch.value_or(options.synthetic() ? (on_host ? 4 : 32) : 64)};
    std::vector<int> batches;
    for (int batch = smallest_of_sweep; batch <= options.batch.value_or(256); batch *= 2)
        batches.push_back(batch);
    return batches;
}

inline std::unique_ptr<Workload> make_workload(const Options& options, const Amount& amount) {
    if (options.synthetic())
        return std::make_unique<SyntheticWorkload>(options, amount);
    return std::make_unique<DigitWorkload>(options, amount);
}

/// One batch size: all trainings, from the same first weights, and the parts of a step by themselves.
template <sluice::Backend B>
class Experiment {
public:
    Experiment(const Options& options, const Amount& amount, examples::Report& report, std::ostream& out)
        : options_(options), report_(report), out_(out), workload_(make_workload(options, amount)),
          encoder_({.height = plan().height,
                    .width = plan().width,
                    .channels = plan().channels,
                    .batch = amount.batch,
                    .trainable = true,
                    .precision = options.gemm.precision,
                    .seed = options.seed,
                    .algorithms = options.gemm.algorithms}),
          classifier_(
              encoder_,
              {.classes = plan().classes, .learning_rate = plan().learning_rate, .seed = options.seed}),
          first_weights_(classifier_.weights(stream_)) {
        for (nn::NamedTensor& tensor : first_weights_) {
            if (!tensor.name.ends_with(".weight"))
                continue;
            for (float& value : tensor.values)
                value *= plan().first_weight_gain;
        }
    }

    void run() {
        timelines_.sample_memory<B>();
        kernels_.require<B>();
        for (const Placement placement : options_.placements)
            train_with(placement);
        if (options_.synthetic())
            time_parts();
        timelines_.show(out_, report_);
        kernels_.show(out_);
    }

private:
    const Plan& plan() const { return workload_->plan(); }
    ChainName chain_of(Placement placement) const {
        if (options_.synthetic())
            return ChainName::published;
        return placement == Placement::none ? ChainName::plain_digits : ChainName::digits;
    }

    BatchAugmentation augmentation_of(ChainName name) const {
        return BatchAugmentation(name, plan().height, plan().width, options_.seed);
    }

    examples::Training train(Placement placement, sluice::Schedule schedule, int workers,
                             examples::Timelines& timelines) {
        const BatchAugmentation augmentation = augmentation_of(chain_of(placement));
        if (placement == Placement::cpu)
            return train_augmenting_in_workers(*workload_, augmentation, classifier_, schedule, workers,
                                               timelines);
        if (placement == Placement::device || !options_.synthetic())
            return train_augmenting_on_device(*workload_, augmentation, classifier_, schedule, workers,
                                              timelines);
        ReadyBatch<B> ready(plan());
        {
            LoadedBatch<B> loaded(plan());
            RawBatch<B> raw(plan());
            workload_->fill(0, loaded.view());
            copy_batch(stream_.ref(), raw, loaded);
            copy(stream_.ref(), ready.labels, raw.labels);
            augmentation.run(stream_.ref(), raw.images, raw.samples, ready.images);
            stream_.sync();
        }
        return train_alone<B>(plan(), ready, classifier_, schedule, timelines);
    }

    void train_with(Placement placement) {
        const int workers = workers_for<B>(options_, placement);
        examples::TrainingRuns runs;
        for (const sluice::Schedule schedule : options_.schedules) {
            classifier_.load(stream_, first_weights_);
            const examples::Training training = train(placement, schedule, workers, timelines_);
            const std::vector<nn::NamedTensor> weights = classifier_.weights(stream_);
            examples::RunResult& run = runs.add(schedule, training, weights);
            run.extra = {{"part", "train"}, {"augment", to_string(placement)}};
            note_batch(run);
            kernels_.run(training.step_seconds(), timelines_, [&](examples::Timelines& timed) {
                classifier_.load(stream_, first_weights_);
                return train(placement, schedule, workers, timed).step_seconds();
            });
            run.extra.emplace_back("workers", std::int64_t{workers});
            run.extra.emplace_back("results", name_of_results(training, weights));
            if (const auto* digits = dynamic_cast<const DigitWorkload*>(workload_.get())) {
                const BatchAugmentation plain = augmentation_of(ChainName::plain_digits);
                accuracy_ = held_out_accuracy(*digits, plain, classifier_);
                run.extra.emplace_back("held_out_accuracy", accuracy_);
            }
        }
        examples::Report table = report_;
        table.runs = runs.runs();
        out_ << '\n' << headline(placement, workers) << '\n';
        examples::print_table(table, out_);
        if (!options_.synthetic()) {
            out_ << "names " << std::fixed << std::setprecision(1) << 100 * accuracy_
                 << " % of the held-out digits" << std::endl;
        }
        report_.runs.insert(report_.runs.end(), table.runs.begin(), table.runs.end());
    }

    std::string headline(Placement placement, int workers) const {
        switch (placement) {
        case Placement::cpu:
            return "augmented on the CPU, by " + examples::counted(static_cast<unsigned>(workers), "worker");
        case Placement::device:
            return "augmented on the device";
        case Placement::none:
            break;
        }
        return options_.synthetic() ? "training alone, on one batch that is there" : "not augmented";
    }

    void time_parts() {
        out_ << '\n';
        const auto note = [&](const char* part, Placement placement, double seconds) {
            examples::RunResult run = part_alone(part, to_string(placement), plan().amount.steps, seconds);
            note_batch(run);
            out_ << part << " alone, " << to_string(placement) << ": " << std::fixed << std::setprecision(1)
                 << run.step_microseconds << " us a batch" << std::endl;
            report_.runs.push_back(std::move(run));
        };
        for (const Placement placement : options_.placements) {
            if (placement == Placement::device) {
                const BatchAugmentation augmentation = augmentation_of(ChainName::published);
                note("copy", placement, seconds_of_copying<B>(*workload_));
                note("augment", placement, seconds_of_augmenting<B>(*workload_, augmentation));
            } else if (placement == Placement::cpu) {
                const BatchAugmentation augmentation = augmentation_of(ChainName::published);
                note("augment", placement,
                     seconds_of_workers<B>(*workload_, augmentation, workers_for<B>(options_, placement)));
            }
        }
    }

    void note_batch(examples::RunResult& run) const {
        run.extra.emplace_back("batch", static_cast<std::int64_t>(plan().amount.batch));
    }

    const Options& options_;
    examples::Report& report_;
    std::ostream& out_;
    examples::Timelines timelines_{options_.timelines};
    examples::KernelTraces kernels_{options_.timelines};
    sluice::BasicStream<B> stream_;
    std::unique_ptr<Workload> workload_;
    nn::Encoder<B> encoder_;
    nn::Classifier<B> classifier_;
    std::vector<nn::NamedTensor> first_weights_;
    double accuracy_ = 0;
};

} // namespace detail

/// Trains a classifier from the same first weights on the same images once for each place where they may be augmented
/// and each schedule, and compares time and results; on digits, also how well the classifiers do on held-out ones.
/// Or draws the contact sheet, if that is what is asked for. Tells the story on `out`, and returns what the JSON file
/// holds.
///
/// Throws `examples::BadInput` for files that cannot be used, and `sluice::Error` for a backend's failure.
template <sluice::Backend B>
examples::Report run(const Options& options, std::ostream& out) {
    examples::Report report;
    report.experiment = "gpu_augment";
    report.backend = B::name;
    report.device = B::device_name(B::current_device());
    report.data = options.data;
    out << "gpu_augment on " << report.backend << ": " << report.device << std::endl;
    if (!options.contact_sheet.empty()) {
        draw_contact_sheet<B>(options);
        out << "photographs, and behind each what augmentation makes of it: " << options.contact_sheet
            << std::endl;
        return report;
    }
    for (const int batch : detail::batches_for<B>(options)) {
        const Amount amount = detail::amount_for<B>(options, batch);
        report.batch = batch;
        report.steps = static_cast<std::int64_t>(amount.steps);
        detail::Experiment<B> experiment(options, amount, report, out);
        out << '\n'
            << examples::counted(static_cast<unsigned>(batch), "image") << " a batch, "
            << examples::counted(static_cast<std::uint64_t>(amount.steps), "step") << " after "
            << amount.warmup << " of warm-up, data: " << options.data << std::endl;
        experiment.run();
        // What was measured so far is kept if the next, larger size is interrupted.
        if (options.sweep && !options.json.empty())
            examples::write_json(report, options.json);
    }
    return report;
}

// run_host.cpp and run_cuda.cpp instantiate it, beside each other.
extern template examples::Report run<sluice::Host>(const Options&, std::ostream&);
#if SLUICE_HAS_CUDA
extern template examples::Report run<sluice::Cuda>(const Options&, std::ostream&);
#endif

} // namespace gpu_augment
