/// \file
/// At which work per box does it pay to skip the padding? The loss with its formula repeated, as a stand-in
/// for a heavier one, over rows that are filled to a different degree.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <optional>
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

/// The same boxes three ways: padded and every box computed, padded and the padding skipped, ragged.
template <sluice::Backend B>
class HeavyLoss {
public:
    using StreamRef = sluice::BasicStreamRef<B>;

    static constexpr std::array<const char*, 3> names{"fused", "conditional", "ragged"};

    HeavyLoss(std::size_t rows, std::size_t width, const BoxRows& boxes, std::uint64_t seed)
        : rows_(rows), width_(width), predictions_(nn::to_device<B>(predictions_for(boxes, width, seed))),
          packed_(rows, width, boxes), padded_(rows, width), scratch_(rows) {
        packed_.pack(boxes);
        padded_.pack(boxes);
        nn::on_own_stream<B>([&](StreamRef stream) {
            packed_.copy_to_device(stream);
            padded_.copy_to_device(stream);
        });
    }

    void run(StreamRef stream, std::size_t variant, unsigned work) {
        const nn::GiouResult<float, B> result{.mean = mean_.span()};
        const nn::PaddedBoxes<const float, B> predictions(std::as_const(predictions_).span(), rows_, width_);
        if (variant == 2) {
            giou_mean_ragged(stream, nn::ArticleGiou{}, predictions, packed_.view(), result, scratch_, work);
        } else {
            giou_mean_fused(stream, nn::ArticleGiou{}, predictions, padded_.view(),
                            variant == 0 ? nn::Invalid::computed : nn::Invalid::skipped, result, scratch_,
                            work);
        }
    }
    void spoil(StreamRef stream) { sluice::fill_bytes(stream, mean_, 0xEE); }
    std::vector<std::byte> results(StreamRef stream) {
        std::vector<std::byte> bytes;
        append_bytes<B, float>(stream, std::as_const(mean_).span(), bytes);
        return bytes;
    }

private:
    std::size_t rows_;
    std::size_t width_;
    sluice::DeviceBuffer<nn::Box<float>, B> predictions_;
    sluice::DeviceBuffer<float, B> mean_{1};
    PackedTargets<B> packed_;
    PaddedTargets<B> padded_;
    nn::GiouScratch<B> scratch_;
};

/// The least work from which on the second time is at most `1 / gain` of the first, up to the most that was
/// measured.
inline std::optional<std::int64_t> pays_from(const std::vector<std::int64_t>& works,
                                             const std::vector<double>& without,
                                             const std::vector<double>& with, double gain) {
    std::optional<std::int64_t> from;
    for (std::size_t i = works.size(); i-- > 0 && without[i] >= gain * with[i];)
        from = works[i];
    return from;
}

/// 1, 2, 4 … up to `most`, which ends the list also where it is no power of two.
inline std::vector<std::int64_t> works_up_to(std::size_t most) {
    std::vector<std::int64_t> works;
    for (std::size_t work = 1; work < most; work *= 2)
        works.push_back(static_cast<std::int64_t>(work));
    works.push_back(static_cast<std::int64_t>(most));
    return works;
}

template <sluice::Backend B>
void run_work(const Options& options, examples::Report& report, std::ostream& out) {
    using StreamRef = sluice::BasicStreamRef<B>;
    constexpr bool on_host = std::is_same_v<B, sluice::Host>;
    constexpr double gain = 1.1;
    const auto rows = static_cast<std::size_t>(options.batch.value_or(on_host ? 64 : 1024));
    const std::size_t width = options.boxes.value_or(on_host ? 32 : 256);
    Plan plan = plan_for(options, on_host ? 3 : 50, on_host ? 1 : 5);
    plan.as_graph = plan.as_graph || !plan.one_by_one;
    plan.one_by_one = !plan.as_graph; // one way is enough for a chart; replays show the work best
    const std::vector<std::int64_t> works = works_up_to(options.most_work.value_or(on_host ? 64 : 4096));

    note_sizes(report, "work", rows, plan);
    report.extra.emplace_back("work_width", static_cast<std::int64_t>(width));
    out << "\nwork per box: " << examples::counted(rows, "image") << " with room for "
        << examples::counted(width, "box") << "; us " << (plan.as_graph ? "as graphs" : "one by one")
        << std::endl;
    // The first as published, the others by how much of the room is filled.
    for (const double fill : {0.0, 0.05, 0.25, 0.5, 1.0}) {
        const BoxRows boxes = fill == 0.0 ? published_boxes(rows, width, options.seed)
                                          : boxes_by_fill(rows, width, fill, options.seed);
        const double filled = static_cast<double>(boxes.boxes()) / static_cast<double>(rows * width);
        HeavyLoss<B> loss(rows, width, boxes, options.seed);
        std::array<std::vector<double>, loss.names.size()> times;
        Table table(out, {cell(100 * filled, "%.1f") + " % filled, work", "every box", "skipping", "ragged",
                          "gain", "gain, ragged"});
        for (const std::int64_t work : works) {
            for (std::size_t variant = 0; variant < loss.names.size(); ++variant) {
                const Measured measured = measure<B>(
                    std::string(loss.names[variant]) + ", work " + std::to_string(work), plan,
                    [&](StreamRef stream) { loss.spoil(stream); },
                    [&](StreamRef stream) { loss.run(stream, variant, static_cast<unsigned>(work)); },
                    [&](StreamRef stream) { return loss.results(stream); });
                times[variant].push_back(measured.best());
                add_runs(report, {"work", loss.names[variant], "forward"}, measured,
                         mean_of(measured.results()), {{"fill", filled}, {"work", work}});
            }
            table.row({std::to_string(work), cell(times[0].back()), cell(times[1].back()),
                       cell(times[2].back()), cell(times[0].back() / times[1].back(), "%.2fx"),
                       cell(times[0].back() / times[2].back(), "%.2fx")});
        }
        const auto told = [&](const char* what, std::size_t variant) {
            const auto from = pays_from(works, times[0], times[variant], gain);
            if (from) {
                out << "    " << what << " is at least 10 % faster from work " << *from << " on" << std::endl;
            } else {
                out << "    " << what << " is not yet 10 % faster at work " << works.back() << std::endl;
            }
        };
        told("skipping", 1);
        told("ragged", 2);
    }
}

} // namespace masked_giou
