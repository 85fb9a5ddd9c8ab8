/// \file
/// The published detector's forward pass.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <ostream>
#include <string>
#include <type_traits>
#include <vector>

#include <common/report.hpp>
#include <common/text.hpp>
#include <masked_giou/results.hpp>
#include <masked_giou/table.hpp>
#include <nn/core/device.hpp>
#include <nn/models/detector.hpp>
#include <sluice/random/philox.hpp>

namespace masked_giou {

/// Random bytes, a few numbers of a key each.
inline std::vector<std::uint8_t> random_bytes(std::size_t count, std::uint64_t seed) {
    constexpr std::uint16_t purpose = 304;
    constexpr std::size_t chunk = 65536;
    std::vector<std::uint8_t> bytes(count);
    for (std::size_t begin = 0; begin < count; begin += chunk) {
        sluice::CountedRandom random({.seed = seed, .sample = begin, .operation = purpose});
        std::uint32_t word = 0;
        for (std::size_t i = begin; i < std::min(begin + chunk, count); ++i) {
            word = i % 4 == 0 ? random.next_u32() : word >> 8;
            bytes[i] = static_cast<std::uint8_t>(word & 0xFFu);
        }
    }
    return bytes;
}

/// Times the forward pass with one precision. `Number` is the type of the predictions.
template <sluice::Backend B, class Number>
void time_forward(const nn::DetectorOptions& sizes, const std::vector<std::uint8_t>& bytes, const Plan& plan,
                  examples::Report& report, Table& table) {
    using StreamRef = sluice::BasicStreamRef<B>;
    nn::Detector<B> detector(sizes);
    const sluice::DeviceBuffer<std::uint8_t, B> images = nn::to_device<B>(bytes);
    sluice::DeviceBuffer<Number, B> predictions(sizes.batch * detector.predictions_size());
    const std::string name = to_string(sizes.precision);
    const Measured measured = measure<B>(
        "forward, " + name, plan, [&](StreamRef stream) { sluice::fill_bytes(stream, predictions, 0xEE); },
        [&](StreamRef stream) { detector.forward(stream, images.span(), predictions.span()); },
        [&](StreamRef stream) {
            std::vector<std::byte> bytes_of_predictions;
            append_bytes<B, Number>(stream, std::as_const(predictions).span(), bytes_of_predictions);
            return bytes_of_predictions;
        });
    add_runs(report, {"forward", name, "forward"}, measured);
    table.row({name, cell(measured.waiting()), cell(measured.back_to_back()), cell(measured.as_graph()),
               cell(1e6 / measured.best()), yes_no(measured.same_bits())});
}

template <sluice::Backend B>
void run_forward(const Options& options, examples::Report& report, examples::Timelines& timelines,
                 std::ostream& out) {
    constexpr bool on_host = std::is_same_v<B, sluice::Host>;
    const Plan plan = plan_for(options, on_host ? 3 : 30, on_host ? 1 : 5, &timelines);
    const std::size_t side = options.side.value_or(on_host ? 64 : 256);
    nn::DetectorOptions sizes{.height = side,
                              .width = side,
                              .channels = {4, 16, 64, 256},
                              .hidden = options.hidden.value_or(on_host ? 256 : 16384),
                              .max_boxes = options.boxes.value_or(256),
                              .batch = static_cast<std::size_t>(options.batch.value_or(on_host ? 8 : 1024)),
                              .image_scale = 1.0f / 255.0f,
                              .seed = options.seed};
    note_sizes(report, "forward", sizes.batch, plan);
    out << "\nforward: " << examples::counted(sizes.batch, "image") << " of " << side << "x" << side << ", "
        << examples::with_commas(side * side) << " features, " << examples::with_commas(sizes.hidden)
        << " hidden, " << examples::counted(sizes.max_boxes, "box") << std::endl;
    Table table(out, {"forward, us", "waiting", "back to back", "as a graph", "steps/s", "same bits"});
    const std::vector<std::uint8_t> bytes = random_bytes(sizes.batch * side * side, options.seed);
    const std::vector<nn::Precision> precisions =
        options.precision ? std::vector{*options.precision}
                          : std::vector{nn::Precision::bfloat16, nn::Precision::tf32};
    for (const nn::Precision precision : precisions) {
        sizes.precision = precision;
        if (precision == nn::Precision::bfloat16) {
            time_forward<B, nn::Bfloat16>(sizes, bytes, plan, report, table);
        } else {
            time_forward<B, float>(sizes, bytes, plan, report, table);
        }
    }
}

} // namespace masked_giou
