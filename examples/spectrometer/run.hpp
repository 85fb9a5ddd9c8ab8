/// \file
/// The spectrometer: samples, pieces, transforms, power, file.
#pragma once

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <numbers>
#include <optional>
#include <ostream>
#include <span>
#include <string>
#include <type_traits>
#include <vector>

#include <common/progress.hpp>
#include <common/report.hpp>
#include <common/text.hpp>
#include <common/timelines.hpp>
#include <common/workers.hpp>
#include <sluice/sluice.hpp>
#include <spectrometer/fft.hpp>
#include <spectrometer/kernels.hpp>
#include <spectrometer/options.hpp>
#include <spectrometer/samples.hpp>
#include <spectrometer/spectra.hpp>

namespace spectrometer {

/// Samples as the file has them.
template <sluice::Backend B>
struct Samples {
    sluice::PinnedBuffer<std::byte, B> bytes;
};
/// The same on the device.
template <sluice::Backend B>
struct Block {
    sluice::DeviceBuffer<std::byte, B> bytes;
};
/// Pieces of a block, and what the transform makes of them in place.
template <sluice::Backend B>
struct Pieces {
    sluice::DeviceBuffer<Complex, B> values;
};
/// Power by frequency, added up.
template <sluice::Backend B>
struct Power {
    sluice::DeviceBuffer<float, B> values;
};
/// The same where the CPU reads it.
template <sluice::Backend B>
struct Spectrum {
    sluice::PinnedBuffer<float, B> power;
};

/// Weights of Hann's window, such that a tone at full scale has a power of 1 in its bin.
inline std::vector<float> hann_window(std::size_t size) {
    std::vector<float> window;
    for (std::size_t i = 0; i < size; ++i) {
        const double angle = 2 * std::numbers::pi * static_cast<double>(i) / static_cast<double>(size);
        window.push_back(static_cast<float>((1 - std::cos(angle)) / static_cast<double>(size)));
    }
    return window;
}

/// The mean of `pieces` spectra that were added up.
inline std::vector<float> mean_of(std::span<const float> sum, std::size_t pieces) {
    std::vector<float> mean(sum.begin(), sum.end());
    for (float& power : mean)
        power /= static_cast<float>(pieces);
    return mean;
}

inline void set_speed(examples::RunResult& run, std::size_t steps, double seconds) {
    run.steps_per_second = static_cast<double>(steps) / seconds;
    run.step_microseconds = 1e6 / run.steps_per_second;
    run.loss_first = run.loss_last = std::numeric_limits<double>::quiet_NaN(); // null in JSON
}

/// Takes the spectra of all samples under `schedule`. Adds seconds, and more in JSON, to `run`.
template <sluice::Backend B>
Summary observe(const Options& options, std::size_t blocks, sluice::Schedule schedule,
                examples::Timelines& timelines, examples::RunResult& run) {
    using Ref = sluice::BasicStreamRef<B>;
    const auto every = static_cast<std::size_t>(options.integrate);
    const std::size_t fft = options.fft, transforms = options.transforms;
    sluice::DeviceBuffer<float, B> window(fft);
    copy_and_wait(sluice::BasicStream<B>(), window, hann_window(fft));
    Fft<B> transformer(fft, transforms);
    SpectrumFile file(options.output, (blocks + every - 1) / every, fft);
    Summary summary(fft);

    sluice::Stage load{
        "load", [](Ref stream, const Samples<B>& in, Block<B>& out) { copy(stream, out.bytes, in.bytes); }};
    // The first piece begins in the block before.
    sluice::Stage cut{"cut", [&](Ref stream, const sluice::Last<2, Block<B>>& last, Pieces<B>& out) {
                          const std::byte* before = last.size() == 2 ? last[1].bytes.data() : nullptr;
                          cut_and_weight(stream, before, last[0].bytes.data(), options.format, window.data(),
                                         options.hop(), transforms, out.values.data());
                      }};
    sluice::Stage transform{"transform", [&](Ref stream, sluice::InPlace<Pieces<B>>& pieces) {
                                transformer.forward(stream, pieces->values.data());
                            }};
    sluice::Stage integrate{
        "integrate",
        [&](Ref stream, const Pieces<B>& in, Power<B>& out, sluice::Turn turn) {
            add_power(stream, in.values.data(), fft, transforms, out.values.data(), turn.first());
        },
        // Each turn would be a graph of its own.
        sluice::StageOptions<B>{.graphed = options.integrate < 32, .every = options.integrate}};
    sluice::Stage fetch{"fetch", [](Ref stream, const Power<B>& in, Spectrum<B>& out) {
                            copy(stream, out.power, in.values);
                        }};
    // On a thread of its own, in order. The last spectrum may be of fewer blocks, and the first block's first piece is zeros.
    sluice::Stage write{"write", [&](const Spectrum<B>& in, sluice::Turn turn) {
                            std::size_t pieces = static_cast<std::size_t>(turn.index + 1) * transforms;
                            if (summary.spectra() == 0 && pieces > 1)
                                --pieces;
                            const std::vector<float> mean = mean_of(in.power.span(), pieces);
                            summary.add(mean);
                            file.add(mean);
                        }};

    sluice::Source source{
        [&](int) { return Samples<B>{sluice::PinnedBuffer<std::byte, B>(options.block_bytes())}; },
        [&](int) { return SampleReader(options); },
        [&](SampleReader& reader, std::size_t block, Samples<B>& out) {
            reader.read(block * options.block_samples(), std::span(out.bytes.data(), out.bytes.size()));
        },
        sluice::SourceOptions<B>{.workers = examples::workers_for_machine(
                                     examples::other_threads(std::is_same_v<B, sluice::Host>, 5)),
                                 .batches = blocks,
                                 .timed_batches = timelines.timed_batches()}};
    sluice::Pipeline pipeline{
        sluice::Stages{load, cut, transform, integrate, fetch, write},
        sluice::Slots{
            [&](int) { return Block<B>{sluice::DeviceBuffer<std::byte, B>(options.block_bytes())}; },
            [&](int) { return Pieces<B>{sluice::DeviceBuffer<Complex, B>(transforms * fft)}; },
            [&](int) { return Power<B>{sluice::DeviceBuffer<float, B>(fft)}; },
            [&](int) { return Spectrum<B>{sluice::PinnedBuffer<float, B>(fft)}; }},
        {.schedule = schedule, .timed_batches = timelines.timed_batches()}};

    examples::Progress progress(to_string(schedule), static_cast<std::int64_t>(blocks));
    const auto begin = std::chrono::steady_clock::now();
    for (const auto& samples : source) {
        pipeline.submit(samples);
        progress.update(static_cast<std::int64_t>(pipeline.submitted()));
    }
    pipeline.finish();
    const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - begin;
    file.close();

    timelines.add(pipeline, source, to_string(schedule));
    run.schedule = to_string(schedule);
    set_speed(run, blocks, seconds.count());
    const auto counters = pipeline.graph_counters();
    run.extra = {{"spectra", static_cast<std::int64_t>(summary.spectra())},
                 {"captures", static_cast<std::int64_t>(counters.captures)},
                 {"replays", static_cast<std::int64_t>(counters.replays)}};
    return summary;
}

/// Observes under each schedule that was asked for, and reports.
template <sluice::Backend B>
examples::Report run(const Options& options, std::ostream& out) {
    const std::size_t samples = count_samples(options);
    const std::size_t blocks = samples / options.block_samples();
    examples::Report report;
    report.experiment = "spectrometer";
    report.backend = B::name;
    report.device = B::device_name(B::current_device());
    report.data = options.input.empty() ? "synthetic" : options.input;
    report.batch = static_cast<std::int64_t>(options.block_samples());
    report.steps = static_cast<std::int64_t>(blocks);
    out << report.device << ": " << examples::counted(blocks, "block") << " of "
        << examples::counted(options.block_samples(), "sample") << "; "
        << samples - blocks * options.block_samples() << " at the end, less than a block, are left out\n";

    examples::Timelines timelines(options.timelines);
    std::optional<std::uint64_t> serial;
    std::vector<double> decibels;
    for (const sluice::Schedule schedule : options.schedules) {
        examples::RunResult result;
        const Summary summary = observe<B>(options, blocks, schedule, timelines, result);
        if (schedule == sluice::Schedule::serial)
            serial = summary.digest();
        if (serial)
            result.identical_to_serial = summary.digest() == *serial;
        decibels = summary.decibels();
        out << result.schedule << ": " << summary.spectra()
            << (summary.spectra() == 1 ? " spectrum, " : " spectra, ")
            << result.steps_per_second * static_cast<double>(options.block_samples()) / 1e6
            << " million samples a second"
            << (!serial                       ? ""
                : *result.identical_to_serial ? ", the same bits as serial"
                                              : ", OTHER BITS than serial")
            << '\n';
        report.runs.push_back(std::move(result));
    }

    const auto strongest = std::max_element(decibels.begin(), decibels.end());
    const double frequency =
        frequency_of(static_cast<std::size_t>(strongest - decibels.begin()), decibels.size());
    out << "strongest: " << *strongest << " dB at " << frequency << " cycles a sample\n";
    report.extra = {{"strongest_frequency", frequency}, {"strongest_decibels", *strongest}};
    if (!options.picture.empty())
        draw(decibels, options.picture);
    timelines.show(out, report);
    return report;
}

// run_host.cpp and run_cuda.cpp instantiate it, beside each other.
extern template examples::Report run<sluice::Host>(const Options&, std::ostream&);
#if SLUICE_HAS_CUDA
extern template examples::Report run<sluice::Cuda>(const Options&, std::ostream&);
#endif

} // namespace spectrometer
