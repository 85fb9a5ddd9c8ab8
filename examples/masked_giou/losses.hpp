/// \file
/// The published loss in six variants, and the copies of targets that they need.
#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <ostream>
#include <string>
#include <type_traits>
#include <vector>

#include <common/report.hpp>
#include <common/text.hpp>
#include <masked_giou/results.hpp>
#include <masked_giou/table.hpp>
#include <masked_giou/targets.hpp>
#include <nn/core/device.hpp>
#include <nn/losses/boxes/giou_loss.hpp>

namespace masked_giou {

/// Predictions of type `P`, targets in every form, and room for what the variants write. Formula and types
/// are fixed, so that a variant is one call.
template <sluice::Backend B, class Formula, class P>
class Losses {
public:
    using StreamRef = sluice::BasicStreamRef<B>;

    /// The variants, in the published order; ours last.
    static constexpr std::array<const char*, 6> names{"loop",  "concatenation", "padding",
                                                      "fused", "conditional",   "ragged"};

    Losses(std::size_t rows, std::size_t width, const BoxRows& boxes, std::uint64_t seed)
        : rows_(rows), width_(width), predictions_(rows * width), gradient_(rows * width),
          packed_(rows, width, boxes), padded_(rows, width),
          gathered_(static_cast<std::size_t>(packed_.packer().capacity().values)),
          gathered_gradient_(gathered_.size()), steps_(rows * width), scratch_(rows) {
        std::vector<nn::Box<P>> predictions;
        predictions.reserve(rows * width);
        for (const nn::Box<float>& box : predictions_for(boxes, width, seed))
            predictions.push_back(nn::box_as<P>(box));
        packed_.pack(boxes);
        padded_.pack(boxes);
        nn::on_own_stream<B>([&](StreamRef stream) {
            sluice::copy_and_wait(stream, predictions_, predictions);
            packed_.copy_to_device(stream);
            padded_.copy_to_device(stream);
        });
    }

    /// Enqueues variant `variant` of `names`.
    void run(StreamRef stream, std::size_t variant, bool backward) {
        nn::GiouResult<P, B> result{.mean = mean_.span()};
        if (backward)
            result.gradient = gradient_.span();
        const nn::PaddedBoxes<const P, B> predictions(std::as_const(predictions_).span(), rows_, width_);
        switch (variant) {
        case 0:
            giou_mean_looped(stream, Formula{}, predictions, packed_.view(), result, scratch_);
            break;
        case 1:
            giou_mean_concatenated(stream, Formula{}, predictions, packed_.view(), gathered_.span(),
                                   gathered_gradient_.span(), result, scratch_);
            break;
        case 2:
            giou_mean_padded(stream, Formula{}, predictions, padded_.view(), result, steps_, scratch_);
            break;
        case 3:
            giou_mean_fused(stream, Formula{}, predictions, padded_.view(), nn::Invalid::computed, result,
                            scratch_);
            break;
        case 4:
            giou_mean_fused(stream, Formula{}, predictions, padded_.view(), nn::Invalid::skipped, result,
                            scratch_);
            break;
        default:
            giou_mean_ragged(stream, Formula{}, predictions, packed_.view(), result, scratch_);
        }
    }

    void spoil(StreamRef stream) {
        sluice::fill_bytes(stream, mean_, 0xEE);
        sluice::fill_bytes(stream, gradient_, 0xEE);
    }
    std::vector<std::byte> results(StreamRef stream, bool backward) {
        std::vector<std::byte> bytes;
        append_bytes<B, float>(stream, std::as_const(mean_).span(), bytes);
        if (backward)
            append_bytes<B, nn::Box<P>>(stream, std::as_const(gradient_).span(), bytes);
        return bytes;
    }

private:
    std::size_t rows_;
    std::size_t width_;
    sluice::DeviceBuffer<nn::Box<P>, B> predictions_;
    sluice::DeviceBuffer<nn::Box<P>, B> gradient_;
    sluice::DeviceBuffer<float, B> mean_{1};
    PackedTargets<B> packed_;
    PaddedTargets<B> padded_;
    sluice::DeviceBuffer<nn::Box<P>, B> gathered_;
    sluice::DeviceBuffer<nn::Box<P>, B> gathered_gradient_;
    nn::GiouSteps<B> steps_;
    nn::GiouScratch<B> scratch_;
};

/// Times all variants, forward, and forward and backward.
template <sluice::Backend B, class Formula, class P>
void time_losses(std::size_t rows, std::size_t width, const BoxRows& boxes, const Options& options,
                 const Plan& plan, examples::Report& report, std::ostream& out) {
    using StreamRef = sluice::BasicStreamRef<B>;
    Losses<B, Formula, P> losses(rows, width, boxes, options.seed);
    for (const bool backward : {false, true}) {
        const std::string pass = backward ? "forward and backward" : "forward";
        Table table(out,
                    {pass + ", us", "waiting", "back to back", "as a graph", "nodes", "mean", "same bits"});
        for (std::size_t variant = 0; variant < losses.names.size(); ++variant) {
            const std::string name = losses.names[variant];
            const Measured measured = measure<B>(
                name + ", " + pass, plan, [&](StreamRef stream) { losses.spoil(stream); },
                [&](StreamRef stream) { losses.run(stream, variant, backward); },
                [&](StreamRef stream) { return losses.results(stream, backward); });
            const double mean = mean_of(measured.results());
            add_runs(report, {"losses", name, pass}, measured, mean);
            const auto& graph = measured.graph;
            table.row({name, cell(measured.waiting()), cell(measured.back_to_back()),
                       cell(measured.as_graph()), graph ? examples::with_commas(graph->nodes) : "-",
                       cell(mean, "%.7f"), yes_no(measured.same_bits())});
            if (graph && !graph->refusal.empty())
                out << "    " << name << " ran one by one: " << graph->refusal << std::endl;
        }
    }
}

/// Times how targets come to the device in one of the three forms: packing alone, then the copies alone.
template <sluice::Backend B, class Targets, class Spoil, class Results>
void time_copy(const std::string& name, Targets& targets, const BoxRows& boxes, std::size_t copies,
               std::size_t bytes, const Plan& plan, examples::Report& report, Table& table, Spoil spoil,
               Results results) {
    using Clock = std::chrono::steady_clock;
    using StreamRef = sluice::BasicStreamRef<B>;
    targets.pack(boxes);
    const auto start = Clock::now();
    for (std::size_t i = 0; i < plan.steps; ++i)
        targets.pack(boxes);
    const double pack = std::chrono::duration<double, std::micro>(Clock::now() - start).count() /
                        static_cast<double>(plan.steps);
    const Measured measured = measure<B>(
        "copy, " + name, plan, spoil, [&](StreamRef stream) { targets.copy_to_device(stream); }, results);
    add_runs(report, {"copies", name, "copy"}, measured, std::numeric_limits<double>::quiet_NaN(),
             {{"pack_microseconds", pack},
              {"copies", static_cast<std::int64_t>(copies)},
              {"bytes", static_cast<std::int64_t>(bytes)}});
    table.row({name, cell(pack), cell(measured.waiting()), cell(measured.back_to_back()),
               cell(measured.as_graph()), examples::with_commas(copies), examples::with_commas(bytes)});
}

template <sluice::Backend B>
void time_copies(std::size_t rows, std::size_t width, const BoxRows& boxes, const Plan& plan,
                 examples::Report& report, std::ostream& out) {
    using StreamRef = sluice::BasicStreamRef<B>;
    Table table(
        out, {"copy of targets, us", "packing", "waiting", "back to back", "as a graph", "copies", "bytes"});
    SeparateTargets<B> separate(rows, width, boxes);
    separate.pack(boxes);
    time_copy<B>(
        "separate", separate, boxes, separate.copies(), boxes.boxes() * sizeof(TargetBox), plan, report,
        table, [&](StreamRef stream) { sluice::fill_bytes(stream, separate.values(), 0xEE); },
        [&](StreamRef stream) {
            std::vector<std::byte> bytes;
            append_bytes<B, TargetBox>(stream, separate.values(), bytes);
            return bytes;
        });
    PaddedTargets<B> padded(rows, width);
    time_copy<B>(
        "padded", padded, boxes, 1, padded.bytes(), plan, report, table,
        [&](StreamRef stream) { sluice::fill_bytes(stream, padded.block(), 0xEE); },
        [&](StreamRef stream) {
            std::vector<std::byte> bytes;
            append_bytes<B, std::uint8_t>(stream, padded.block(), bytes);
            return bytes;
        });
    PackedTargets<B> packed(rows, width, boxes);
    packed.pack(boxes);
    time_copy<B>(
        "packed", packed, boxes, 1, packed.packer().bytes(), plan, report, table,
        [&](StreamRef stream) { sluice::fill_bytes(stream, packed.batch().block(), 0xEE); },
        [&](StreamRef stream) {
            // A captured copy brings the room behind the last box too.
            std::vector<std::byte> bytes;
            append_bytes<B, std::byte>(stream, packed.batch().block().first(packed.packer().bytes()), bytes);
            return bytes;
        });
}

/// Draws the published boxes and times losses and copies.
template <sluice::Backend B>
void run_losses(const Options& options, examples::Report& report, examples::Timelines& timelines,
                std::ostream& out) {
    const auto rows = static_cast<std::size_t>(options.batch.value_or(1024));
    const std::size_t width = options.boxes.value_or(256);
    constexpr bool on_host = std::is_same_v<B, sluice::Host>;
    const Plan plan = plan_for(options, on_host ? 5 : 100, on_host ? 1 : 10, &timelines);
    const BoxRows boxes = published_boxes(rows, width, options.seed);
    note_sizes(report, "losses", rows, plan);
    report.extra.emplace_back("losses_boxes", static_cast<std::int64_t>(boxes.boxes()));
    report.extra.emplace_back("losses_width", static_cast<std::int64_t>(width));
    report.extra.emplace_back("formula", to_string(options.formula));
    report.extra.emplace_back("predictions", to_string(options.predictions));
    out << "\nlosses: " << examples::counted(rows, "image") << " with room for "
        << examples::counted(width, "box") << ", " << examples::with_commas(boxes.boxes())
        << " real ones in all (the longest row has " << boxes.longest() << "), " << to_string(options.formula)
        << "'s formula, predictions in " << to_string(options.predictions) << std::endl;

    time_copies<B>(rows, width, boxes, plan, report, out);
    const auto with = [&]<class Formula, class P>(Formula, std::type_identity<P>) {
        time_losses<B, Formula, P>(rows, width, boxes, options, plan, report, out);
    };
    const auto with_formula = [&](auto formula) {
        switch (options.predictions) {
        case PredictionType::float32:
            return with(formula, std::type_identity<float>{});
        case PredictionType::bfloat16:
            return with(formula, std::type_identity<nn::Bfloat16>{});
        case PredictionType::float16:
            return with(formula, std::type_identity<nn::Half>{});
        }
    };
    if (options.formula == Formula::article) {
        with_formula(nn::ArticleGiou{});
    } else {
        with_formula(nn::TorchvisionGiouLoss{});
    }
}

} // namespace masked_giou
