// The body of run.hpp, for the files that make it for one backend each.
#pragma once

#include <iomanip>
#include <memory>
#include <ostream>
#include <string>
#include <vector>

#include <common/bad_input.hpp>
#include <common/training.hpp>
#include <frozen_encoder/evaluate.hpp>
#include <frozen_encoder/pretrain.hpp>
#include <frozen_encoder/run.hpp>
#include <frozen_encoder/train.hpp>
#include <frozen_encoder/weights_file.hpp>
#include <frozen_encoder/workload.hpp>

namespace frozen_encoder {
namespace detail {

template <sluice::Backend B>
nn::Encoder<B> make_encoder(const Plan& plan, const Options& options) {
    return nn::Encoder<B>({.height = plan.height,
                           .width = plan.width,
                           .channels = plan.channels,
                           .batch = plan.batch,
                           .image_scale = plan.image_scale,
                           .precision = options.precision,
                           .seed = options.seed});
}

template <sluice::Backend B>
nn::Decoder<B> make_decoder(const Plan& plan, const Options& options) {
    return nn::Decoder<B>({.height = plan.height,
                           .width = plan.width,
                           .channels = {plan.channels.rbegin(), plan.channels.rend()},
                           .classes = plan.classes,
                           .batch = plan.batch,
                           .learning_rate = plan.learning_rate,
                           .precision = options.precision,
                           .seed = options.seed});
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

} // namespace detail

template <sluice::Backend B>
examples::Report run(const Options& options, std::ostream& out) {
    std::unique_ptr<DigitWorkload> digits;
    std::unique_ptr<Workload> synthetic;
    if (options.synthetic()) {
        synthetic = std::make_unique<SyntheticWorkload>(options);
    } else {
        digits = std::make_unique<DigitWorkload>(options);
    }
    const Workload& workload = digits ? static_cast<const Workload&>(*digits) : *synthetic;
    const Plan& plan = workload.plan();

    examples::Report report;
    report.experiment = "frozen_encoder";
    report.backend = B::name;
    report.device = B::device_name(B::current_device());
    report.data = options.data;
    report.batch = static_cast<std::int64_t>(plan.batch);
    report.steps = static_cast<std::int64_t>(plan.steps);
    out << "frozen_encoder on " << report.backend << ": " << report.device << "\n"
        << plan.batch << " images of 3x" << plan.height << "x" << plan.width << " a batch, " << plan.steps
        << " steps after " << plan.warmup << " of warm-up, data: " << options.data << std::endl;

    // The encoder, frozen from here on.
    sluice::BasicStream<B> stream;
    nn::Encoder<B> encoder = detail::make_encoder<B>(plan, options);
    if (!options.load_encoder.empty()) {
        try {
            encoder.load(stream, read_weights(options.load_encoder));
        } catch (const sluice::Error& error) {
            throw examples::BadInput(options.load_encoder + ": expected an encoder of this network, but " +
                                     error.what());
        }
        out << "encoder: taken from " << options.load_encoder << std::endl;
    } else if (digits && options.encoder_steps > 0) {
        const Pretraining pretraining = pretrain_encoder<B>(*digits, options);
        encoder.load(stream, pretraining.weights);
        report.extra.emplace_back("encoder_accuracy", pretraining.held_out_accuracy);
        out << "encoder: trained for " << options.encoder_steps << " steps to name digits, right on "
            << std::fixed << std::setprecision(1) << 100 * pretraining.held_out_accuracy
            << " % of the held-out ones; frozen now" << std::endl;
    }
    if (!options.save_encoder.empty())
        write_weights(encoder.weights(stream), options.save_encoder);

    // The decoder, from the same first weights each time.
    nn::Decoder<B> decoder = detail::make_decoder<B>(plan, options);
    const std::vector<nn::NamedTensor> first_weights =
        detail::scaled(decoder.weights(stream), plan.first_weight_gain);
    examples::TrainingRuns runs;
    for (const sluice::Schedule schedule : options.schedules) {
        decoder.load(stream, first_weights);
        const examples::Training training = train(workload, encoder, decoder, schedule, options.workers);
        runs.add(schedule, training, plan.steps, decoder.weights(stream));
    }
    report.runs = runs.runs();
    examples::print_table(report, out);

    if (digits) {
        const Evaluation evaluation = evaluate(*digits, encoder, decoder);
        report.ink_pixel_accuracy =
            examples::ink_pixel_accuracy(evaluation.confusion, examples::background_label);
        report.mean_iou = examples::mean_iou(evaluation.confusion);
        out << "held-out digits: " << std::fixed << std::setprecision(1) << 100 * *report.ink_pixel_accuracy
            << " % of the ink pixels have the right class, mean IoU " << std::setprecision(3)
            << *report.mean_iou << std::endl;
        if (!options.picture.empty()) {
            examples::write_png(draw(evaluation, plan), options.picture);
            out << "images, labels and predictions side by side: " << options.picture << std::endl;
        }
    }
    return report;
}

} // namespace frozen_encoder
