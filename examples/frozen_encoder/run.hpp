/// \file
/// The experiment from beginning to end.
#pragma once

#include <algorithm>
#include <iomanip>
#include <memory>
#include <new>
#include <optional>
#include <ostream>
#include <stdexcept>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include <common/bad_input.hpp>
#include <common/kernel_trace.hpp>
#include <common/report.hpp>
#include <common/text.hpp>
#include <common/timelines.hpp>
#include <common/training.hpp>
#include <frozen_encoder/device_memory.hpp>
#include <frozen_encoder/evaluate.hpp>
#include <frozen_encoder/options.hpp>
#include <frozen_encoder/pretrain.hpp>
#include <frozen_encoder/train.hpp>
#include <frozen_encoder/weights_file.hpp>
#include <frozen_encoder/workload.hpp>
#include <sluice/backend/default.hpp>

namespace frozen_encoder {
namespace detail {

template <sluice::Backend B>
nn::Encoder<B> make_encoder(const Plan& plan, const Options& options) {
    return nn::Encoder<B>({.height = plan.height,
                           .width = plan.width,
                           .channels = plan.channels,
                           .batch = plan.batch,
                           .image_scale = plan.image_scale,
                           .precision = options.gemm.precision,
                           .seed = options.seed,
                           .algorithms = options.gemm.algorithms});
}

template <sluice::Backend B>
nn::Decoder<B> make_decoder(const Plan& plan, const Options& options,
                            const sluice::Communicator<B>* communicator = nullptr) {
    return nn::Decoder<B>({.height = plan.height,
                           .width = plan.width,
                           .channels = {plan.channels.rbegin(), plan.channels.rend()},
                           .classes = plan.classes,
                           .batch = plan.batch,
                           .learning_rate = plan.learning_rate,
                           .precision = options.gemm.of_trained(),
                           .seed = options.seed,
                           .algorithms = options.gemm.algorithms,
                           .exchange = options.exchange},
                          communicator);
}

/// The CPU knows no TF32: what is asked for in it is computed in float32.
template <sluice::Backend B>
std::string precision_name(nn::Precision precision) {
    const bool on_processor = std::is_same_v<B, sluice::Host>;
    return nn::name_of(on_processor && precision == nn::Precision::tf32 ? nn::Precision::float32 : precision);
}

/// The tensors with their weights, but not their biases, multiplied by `gain`.
inline std::vector<nn::NamedTensor> scaled(std::vector<nn::NamedTensor> tensors, float gain) {
    for (nn::NamedTensor& tensor : tensors) {
        if (!tensor.name.ends_with(".weight"))
            continue;
        for (float& value : tensor.values)
            value *= gain;
    }
    return tensors;
}

/// What a report begins with, on `out` too.
template <sluice::Backend B>
examples::Report begin_report(const Plan& plan, const Options& options, std::ostream& out) {
    examples::Report report;
    report.experiment = "frozen_encoder";
    report.backend = B::name;
    report.device = B::device_name(B::current_device());
    report.data = options.data;
    report.batch = static_cast<std::int64_t>(plan.batch);
    report.steps = static_cast<std::int64_t>(plan.steps);
    report.extra.emplace_back("precision", precision_name<B>(options.gemm.precision));
    out << "frozen_encoder on " << report.backend << ": " << report.device << "\n"
        << examples::counted(plan.batch, "image") << " of 3x" << plan.height << "x" << plan.width
        << " a batch, " << examples::counted(plan.steps, "step") << " after " << plan.warmup
        << " of warm-up, data: " << options.data << std::endl;
    return report;
}

/// Gives the encoder the weights of a file, or trains it to name digits, or leaves it as it is.
template <sluice::Backend B>
void load_encoder(sluice::BasicStreamRef<B> stream, nn::Encoder<B>& encoder, const DigitWorkload* digits,
                  const Options& options, examples::Report& report, std::ostream& out) {
    if (!options.load_encoder.empty()) {
        try {
            encoder.load(stream, read_weights(options.load_encoder));
        } catch (const sluice::Error& error) {
            throw examples::BadInput(options.load_encoder + ": expected an encoder of this network, but " +
                                     error.what());
        }
        out << "encoder: taken from " << options.load_encoder << std::endl;
    } else if (digits != nullptr && options.encoder_steps > 0) {
        const Pretraining pretraining = pretrain_encoder<B>(*digits, options);
        encoder.load(stream, pretraining.weights);
        report.extra.emplace_back("encoder_accuracy", pretraining.held_out_accuracy);
        out << "encoder: trained for "
            << examples::counted(static_cast<std::uint64_t>(options.encoder_steps), "step")
            << " to name digits, right on " << std::fixed << std::setprecision(1)
            << 100 * pretraining.held_out_accuracy << " % of the held-out ones; frozen now" << std::endl;
    }
}

/// The run's checkpoints. Refuses to go on from one of another run.
template <sluice::Backend B>
examples::Checkpoints make_checkpoints(const Workload& workload, nn::Encoder<B>& encoder,
                                       sluice::BasicStreamRef<B> stream, const Options& options) {
    if (options.checkpoints.file.empty() && options.checkpoints.resume.empty())
        return {};
    const Plan& plan = workload.plan();
    examples::TrainingState frozen;
    frozen.add("", encoder.weights(stream));
    const Network only = options.placement.only;
    return {options.checkpoints,
            {.program = "frozen_encoder",
             .steps = plan.warmup + plan.steps,
             .steps_per_epoch = 0,
             .settings = {{"backend", B::name},
                          {"batch", std::to_string(plan.batch) +
                                        (options.ranks() > 1
                                             ? " on each of " + std::to_string(options.ranks()) + " ranks"
                                             : "")},
                          {"seed", std::to_string(options.seed)},
                          {"image", std::to_string(plan.height) + "x" + std::to_string(plan.width)},
                          {"halvings", std::to_string(plan.channels.size() - 1)},
                          {"network", only == Network::both      ? "both"
                                      : only == Network::encoder ? "encoder"
                                                                 : "decoder"},
                          {"precision", precision_name<B>(options.gemm.precision)},
                          {"learning rate", plan.rates_text()},
                          {"data", hash_of_data(workload)},
                          {"encoder", examples::hash_of(frozen)}}}};
}

/// Adds what was measured on held-out digits, and draws them if asked to.
inline void report_held_out(const Evaluation& evaluation, const Plan& plan, const Options& options,
                            examples::Report& report, std::ostream& out) {
    report.ink_pixel_accuracy =
        examples::ink_pixel_accuracy(evaluation.confusion, examples::background_label);
    report.mean_iou = examples::mean_iou(evaluation.confusion);
    out << "held-out digits: " << std::fixed << std::setprecision(1) << 100 * *report.ink_pixel_accuracy
        << " % of the ink pixels have the right class, mean IoU " << std::setprecision(3) << *report.mean_iou
        << std::endl;
    if (!options.picture.empty()) {
        examples::write_png(draw(evaluation, plan), options.picture);
        out << "images, labels and predictions side by side: " << options.picture << std::endl;
    }
}

/// One schedule after another trains the same networks on the same batches.
template <sluice::Backend B>
struct ScheduleTrial {
    const Workload& workload;
    nn::Encoder<B>& encoder;
    nn::Decoder<B>& decoder;
    const Placement& placement;
    int workers;

    void load(const std::vector<nn::NamedTensor>& weights) const {
        const sluice::DeviceGuard<B> device(device_of_decoder<B>(placement));
        nn::on_own_stream<B>([&](sluice::BasicStreamRef<B> stream) { decoder.load(stream, weights); });
    }
    MeasuredTraining train(sluice::Schedule schedule, examples::Timelines& timelines,
                           const examples::Checkpoints& checkpoints) const {
        return frozen_encoder::train(workload, encoder, decoder, schedule, placement, workers, timelines,
                                     checkpoints);
    }
    /// Adds what the training left behind to `runs`.
    examples::RunResult& report(sluice::Schedule schedule, const MeasuredTraining& training,
                                examples::TrainingRuns& runs, std::ostream& out) const {
        const examples::TrainingState trained = state_of(decoder, placement, training.losses.size());
        const std::string hash = examples::hash_of(trained);
        out << examples::weights_line(hash, trained.step) << " under " << to_string(schedule) << std::endl;
        examples::RunResult& result =
            runs.add(schedule, training, trained.named<nn::NamedTensor>(decoder_prefix));
        result.extra.emplace_back("weights", hash);
        return result;
    }
};

// run_data_parallel.hpp
template <sluice::Backend B>
examples::Report run_data_parallel(const Options& options, std::ostream& out);

template <sluice::Backend B>
examples::Report run_in_memory(const Options& options, std::ostream& out) {
    examples::KernelTraces kernels(options.timelines);
    kernels.require<B>();
    const std::optional<std::size_t> taken_before = device_memory_taken<B>();
    std::unique_ptr<DigitWorkload> digits;
    std::unique_ptr<SyntheticWorkload> synthetic;
    if (options.synthetic()) {
        synthetic = std::make_unique<SyntheticWorkload>(options);
    } else {
        digits = std::make_unique<DigitWorkload>(options);
    }
    const Workload& workload = digits ? static_cast<const Workload&>(*digits) : *synthetic;
    const Plan& plan = workload.plan();

    examples::Report report = begin_report<B>(plan, options, out);

    // The encoder, frozen from here on.
    sluice::BasicStream<B> stream;
    nn::Encoder<B> encoder = make_encoder<B>(plan, options);
    load_encoder<B>(stream, encoder, digits.get(), options, report, out);
    if (!options.save_encoder.empty())
        write_weights(encoder.weights(stream), options.save_encoder);

    // The decoder, from the same first weights each time.
    const int decoder_device = options.placement.decoder_device;
    if (decoder_device >= B::device_count()) {
        throw examples::BadInput("--decoder-device: expected one of " +
                                 examples::counted(static_cast<unsigned>(B::device_count()), "device") +
                                 ", counted from 0, not " + std::to_string(decoder_device));
    }
    std::optional<sluice::DeviceGuard<B>> there;
    there.emplace(device_of_decoder<B>(options.placement));
    sluice::BasicStream<B> decoder_stream;
    nn::Decoder<B> decoder = make_decoder<B>(plan, options);
    const std::vector<nn::NamedTensor> first_weights =
        scaled(decoder.weights(decoder_stream), plan.first_weight_gain);
    there.reset();
    if (synthetic)
        synthetic->draw();
    if (!options.save_start.empty())
        write_start(workload, encoder.weights(stream), first_weights, options.save_start);
    const int workers = options.worker_count(std::is_same_v<B, sluice::Host>);
    report.extra.emplace_back("workers", std::int64_t{workers});
    examples::TrainingRuns runs;
    examples::Timelines timelines(options.timelines);
    timelines.sample_memory<B>();
    std::size_t memory = 0;
    const examples::Checkpoints checkpoints = make_checkpoints<B>(workload, encoder, stream, options);
    const ScheduleTrial<B> trial{workload, encoder, decoder, options.placement, workers};
    for (const sluice::Schedule schedule : options.schedules) {
        trial.load(checkpoints.resumed() != nullptr
                       ? checkpoints.resumed()->template named<nn::NamedTensor>(decoder_prefix)
                       : first_weights);
        const MeasuredTraining training = trial.train(schedule, timelines, checkpoints);
        examples::RunResult& result = trial.report(schedule, training, runs, out);
        if (training.memory_taken) {
            const std::size_t taken =
                *training.memory_taken - std::min(*training.memory_taken, *taken_before);
            result.extra.emplace_back("device_bytes", static_cast<std::int64_t>(taken));
            memory = std::max(memory, taken);
        }
        kernels.run(training.step_seconds(), timelines, [&](examples::Timelines& timed) {
            trial.load(first_weights);
            return trial.train(schedule, timed, {}).step_seconds();
        });
        if (options.losses) {
            result.extra.emplace_back("losses",
                                      std::vector<double>(training.losses.begin(), training.losses.end()));
        }
    }
    report.runs = runs.runs();
    examples::print_table(report, out);
    timelines.show(out, report);
    kernels.show(out);
    if (taken_before)
        out << "peak device memory: " << memory / 1'000'000 << " MB more than before" << std::endl;

    if (digits)
        report_held_out(evaluate(*digits, encoder, decoder), plan, options, report, out);
    return report;
}

} // namespace detail

/// Trains the encoder if it is to be trained, then the decoder once under each schedule, from the same first weights on
/// the same batches; compares what comes out; on digits, also measures the decoder on held-out ones. Tells the story
/// on `out`, and returns what the JSON file holds.
///
/// Throws `examples::BadInput` for files that cannot be used and batches that do not fit into memory, and
/// `sluice::Error` for a backend's failure.
template <sluice::Backend B>
examples::Report run(const Options& options, std::ostream& out) {
    std::string reason;
    try {
        return options.ranks() > 1 ? detail::run_data_parallel<B>(options, out)
                                   : detail::run_in_memory<B>(options, out);
    } catch (const sluice::Error& error) {
        if (error.name() != "cudaErrorMemoryAllocation" &&
            !std::string_view(error.what()).starts_with("out of memory"))
            throw;
        reason = error.what();
    } catch (const std::bad_alloc&) {
        reason = "out of memory on the host";
    } catch (const std::length_error&) {
        reason = "out of memory on the host";
    }
    throw examples::BadInput(
        "--batch: expected a batch that fits into memory, not " +
        examples::counted(static_cast<std::uint64_t>(options.batch.value_or(8)), "image") + " (" + reason +
        ")");
}

// run_host.cpp and run_cuda.cpp instantiate it, beside each other.
extern template examples::Report run<sluice::Host>(const Options&, std::ostream&);
#if SLUICE_HAS_CUDA
extern template examples::Report run<sluice::Cuda>(const Options&, std::ostream&);
#endif

} // namespace frozen_encoder
