/// \file
/// Inference with the batch normalisations folded into the convolutions: launched one by one, and as a graph.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <ostream>
#include <string>
#include <utility>
#include <vector>

#include <common/bits.hpp>
#include <common/report.hpp>
#include <common/timelines.hpp>
#include <graph_replay/measure.hpp>
#include <resnet18/evaluate.hpp>
#include <resnet18/network.hpp>

namespace resnet18 {

/// The inference of one batch, as graph_replay measures a step.
template <sluice::Backend B, class Network>
class Inference {
public:
    using Stream = sluice::BasicStreamRef<B>;
    using Batch = NetworkBatch<typename Network::T, B>;

    Inference(Network& network, const Batch& batch)
        : network_(network), batch_(batch), logits_(batch.size() * network.options().classes) {}

    std::string name() const { return "inference of " + std::to_string(batch_.size()); }
    void reset(Stream stream) { sluice::fill_bytes(stream, logits_, 0xFF); }
    void prepare(Stream /*stream*/, std::size_t /*step*/) {}
    void work(Stream stream) { network_.infer(stream, batch_.images(), logits_); }
    std::vector<float> results(Stream stream) { return nn::to_host(stream, logits_); }

private:
    Network& network_;
    const Batch& batch_;
    sluice::DeviceBuffer<float, B> logits_;
};

namespace detail {

/// How far apart logits are, as a part of the greatest; infinitely where one is NaN.
inline double greatest_difference(const std::vector<float>& a, const std::vector<float>& b) {
    double difference = 0;
    double greatest = 0;
    for (std::size_t i = 0; i < a.size(); ++i) {
        const double apart = std::abs(static_cast<double>(a[i]) - static_cast<double>(b[i]));
        difference = std::isnan(apart) ? HUGE_VAL : std::max(difference, apart);
        greatest = std::max(greatest, std::abs(static_cast<double>(b[i])));
    }
    return difference / greatest;
}

/// Runs in a row, nothing waited for between them, each into logits of its own: how far those are from `expected` at most,
/// and how many runs gave other bits than the first.
struct Repeats {
    std::size_t runs = 0;
    std::size_t others = 0;
    double apart = 0;
};
template <sluice::Backend B, class Network>
Repeats repeat(Network& network, const NetworkBatch<typename Network::T, B>& batch,
               const std::vector<float>& expected) {
    Repeats repeats{.runs = is_host<B> ? 3 : 500};
    const sluice::BasicStream<B> stream;
    sluice::DeviceBuffer<float, B> logits(repeats.runs * expected.size());
    sluice::fill_bytes(stream, logits, 0xFF);
    for (std::size_t run = 0; run < repeats.runs; ++run)
        network.infer(stream, batch.images(), logits.subspan(run * expected.size(), expected.size()));
    const std::vector<float> all = nn::to_host(stream.ref(), logits);
    const auto of = [&](std::size_t run) {
        const auto begin = all.begin() + static_cast<std::ptrdiff_t>(run * expected.size());
        return std::vector<float>(begin, begin + static_cast<std::ptrdiff_t>(expected.size()));
    };
    for (std::size_t run = 0; run < repeats.runs; ++run) {
        repeats.others += examples::same_bits(of(0), of(run)) ? 0u : 1u;
        repeats.apart = std::max(repeats.apart, greatest_difference(of(run), expected));
    }
    return repeats;
}

/// Both ways for one size of batch, and whether folding has changed more than the rounding.
template <sluice::Backend B, class Network>
void measure_batch(const Options& options, const Input<B>& input, Network& network,
                   examples::Timelines& timelines, examples::Report& report, std::ostream& out) {
    const sluice::BasicStream<B> stream;
    const std::size_t size = input.batch();
    NetworkBatch<typename Network::T, B> batch(size, network.image_size());
    load_batch(input, 0, network.plan().stem().shape.in_channels, batch);
    Inference<B, Network> part(network, batch);
    sluice::DeviceBuffer<float, B> unfolded(size * network.options().classes);
    network.evaluate(stream, std::as_const(batch).images(), unfolded);
    const std::vector<float> expected = nn::to_host(stream.ref(), unfolded);
    network.fold(stream);
    stream.sync();

    const graph_replay::Plan plan{
        .warmup = static_cast<std::size_t>(options.warmup.value_or(is_host<B> ? 2 : 20)),
        .steps = static_cast<std::size_t>(options.steps.value_or(is_host<B> ? 5 : 1000)),
        .noted = static_cast<std::size_t>(timelines.timed_batches())};
    std::vector<float> first;
    const auto measure = [&](const char* schedule, const graph_replay::Measured& measured) {
        examples::RunResult& run = report.runs.emplace_back();
        run.schedule = schedule;
        run.step_microseconds = measured.step_microseconds;
        run.steps_per_second = 1e6 / measured.step_microseconds;
        run.loss_first = run.loss_last = std::nan(""); // null in JSON
        if (first.empty())
            first = measured.results;
        run.identical_to_serial = examples::same_bits(first, measured.results);
        const double apart = greatest_difference(measured.results, expected);
        run.extra = {{"part", "inference"},
                     {"batch", static_cast<std::int64_t>(size)},
                     {"host_microseconds", measured.host_microseconds},
                     {"folded_apart", apart}};
        timelines.add(measured.timeline);
        std::array<char, 160> text{};
        (void)std::snprintf(
            text.data(), text.size(),
            "batch %zu, %s: %.1f us, the host's part %.1f us; folded logits are at most %.1e of "
            "the greatest from unfolded ones",
            size, schedule, measured.step_microseconds, measured.host_microseconds, apart);
        out << text.data() << (*run.identical_to_serial ? "" : "; other bits than the first") << std::endl;
    };
    if (!options.has_schedules || options.one_by_one())
        measure("serial", graph_replay::one_by_one<B>(part, plan));
    if (!options.has_schedules || options.as_graph())
        measure("graphed", graph_replay::as_graph<B>(part, plan));

    const Repeats repeats = repeat<B>(network, std::as_const(batch), expected);
    report.runs.back().extra.emplace_back("repeats", static_cast<std::int64_t>(repeats.runs));
    report.runs.back().extra.emplace_back("repeats_with_other_bits",
                                          static_cast<std::int64_t>(repeats.others));
    report.runs.back().extra.emplace_back("repeats_folded_apart", repeats.apart);
    std::array<char, 160> text{};
    (void)std::snprintf(text.data(), text.size(),
                        "batch %zu, %zu runs in a row: %zu of them gave other bits than the first; logits "
                        "are at most %.1e apart",
                        size, repeats.runs, repeats.others, repeats.apart);
    out << text.data() << std::endl;
}

template <sluice::Backend B, class Network>
void measure_network(const Options& options, examples::Report& report, std::ostream& out) {
    const std::vector<std::size_t> sizes =
        options.batch ? std::vector<std::size_t>{static_cast<std::size_t>(*options.batch)}
                      : std::vector<std::size_t>{1, 16};
    constexpr std::size_t trained = 16;
    Network network(network_options<B>(options, std::max(sizes.back(), trained), false));
    const auto set = images::open_image_set(report.data, options.seed);
    const auto input_of = [&](std::size_t batch) {
        return Input<B>(
            *set, Pixels::small_bytes,
            {.batch = batch, .seed = options.seed, .side = size_of<B>(options) == Size::narrow ? 40 : 224});
    };
    // So that there are running statistics to fold.
    NetworkBatch<typename Network::T, B> batch(trained, network.image_size());
    sluice::DeviceBuffer<float, B> loss(1);
    const Input<B> input = input_of(trained);
    for (std::size_t step = 0; step < 4; ++step) {
        load_batch(input, step, network.plan().stem().shape.in_channels, batch);
        nn::on_own_stream<B>([&](sluice::BasicStreamRef<B> stream) {
            network.template train_step<std::uint8_t>(stream, std::as_const(batch).images(),
                                                      std::as_const(batch).labels(), loss);
        });
    }
    examples::Timelines timelines(options.timelines);
    for (const std::size_t size : sizes)
        measure_batch(options, input_of(size), network, timelines, report, out);
    timelines.show(out, report);
}

} // namespace detail

/// Measures inference of batches of 1 and 16 images, or of as many as the options say, and adds it to the report.
template <sluice::Backend B>
void measure_inference(const Options& options, examples::Report& report, std::ostream& out) {
    if (precision_of<B>(options, Precision::tf32) == Precision::float16) {
        detail::measure_network<B, typename Networks<B>::Half>(options, report, out);
    } else {
        detail::measure_network<B, typename Networks<B>::Single>(options, report, out);
    }
}

} // namespace resnet18
