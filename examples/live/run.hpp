/// \file
/// Cameras, network, best classes, file.
#pragma once

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <csignal>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <limits>
#include <memory>
#include <ostream>
#include <string>
#include <utility>
#include <vector>

#include <common/bad_input.hpp>
#include <common/progress.hpp>
#include <common/report.hpp>
#include <common/text.hpp>
#include <common/timelines.hpp>
#include <images/resize.hpp>
#include <live/cameras.hpp>
#include <live/decoder.hpp>
#include <live/options.hpp>
#include <live/results.hpp>
#include <nn/dnn/cudnn.hpp>
#include <nn/elementwise/maps.hpp>
#include <nn/models/resnet18.hpp>
#include <sluice/sluice.hpp>

#if SLUICE_HAS_CUDA && NN_HAS_CUDNN
#include <nn/dnn/cudnn_conv2d.hpp>
#endif

namespace live {

/// float32 (TF32 on a GPU) by matrix products; float16 by cuDNN where the build has it.
template <sluice::Backend B>
struct NetworkOf {
    using type = nn::ResNet18<B>;
    static constexpr std::size_t stored_channels = 3;
};
#if SLUICE_HAS_CUDA && NN_HAS_CUDNN
template <>
struct NetworkOf<sluice::Cuda> {
    using type = nn::ResNet18<sluice::Cuda, nn::CudnnConv2d<nn::Half>>;
    static constexpr std::size_t stored_channels = 4;
};
#endif

/// The network by the options, for one frame at a time.
template <sluice::Backend B>
class Network {
public:
    using Type = typename NetworkOf<B>::type;
    using T = typename Type::T;
    static constexpr std::size_t stored_channels = NetworkOf<B>::stored_channels;
    static constexpr bool on_host = std::is_same_v<B, sluice::Host>;

    explicit Network(const Options& options) : side_(options.image.value_or(on_host ? 64 : 224)) {
        if constexpr (!on_host && stored_channels > 3) {
            if (const std::string missing = nn::missing_cudnn(); !missing.empty())
                throw examples::BadInput("--backend cuda: " + missing + "; or use --backend host");
        }
        nn::ResNet18Options network;
        network.height = network.width = static_cast<std::size_t>(side_);
        network.base_channels = static_cast<std::size_t>(options.channels.value_or(on_host ? 8 : 64));
        network.stored_channels = stored_channels;
        network.trainable = false;
        network.seed = options.seed;
        network_ = std::make_unique<Type>(network);
        // The first call makes plans, which waits, and cannot be captured.
        sluice::DeviceBuffer<T, B> image(network_->image_size());
        sluice::DeviceBuffer<float, B> logits(classes());
        nn::on_own_stream<B>([&](sluice::BasicStreamRef<B> stream) {
            sluice::fill_bytes(stream, image, 0);
            network_->infer(stream, image.span(), logits.span());
        });
    }

    int side() const { return side_; }
    std::size_t pixels() const { return static_cast<std::size_t>(side_) * static_cast<std::size_t>(side_); }
    std::size_t classes() const { return network_->options().classes; }
    Type& operator*() { return *network_; }

private:
    int side_;
    std::unique_ptr<Type> network_;
};

/// A frame's bytes on the device.
template <sluice::Backend B>
struct Image {
    sluice::DeviceBuffer<std::uint8_t, B> bytes;
};
/// What the network takes.
template <class T, sluice::Backend B>
struct Input {
    sluice::DeviceBuffer<T, B> numbers; ///< of three channels
    sluice::DeviceBuffer<T, B> padded;  ///< of as many as the network stores, where those are more
};
template <sluice::Backend B>
struct Logits {
    sluice::DeviceBuffer<float, B> values;
};
/// The same where the CPU reads it.
template <sluice::Backend B>
struct Fetched {
    sluice::PinnedBuffer<float, B> logits;
};

/// Frames whose times are noted, of which latency is told.
inline constexpr int noted_frames = 1000;

/// Leaves the last `batches` batches, as many as a picture shows well.
inline void keep_last(sluice::PipelineTimes& times, std::size_t batches) {
    if (times.submits.empty())
        return;
    const auto before = [first = times.submits.back().batch, batches](const sluice::StageTime& time) {
        return time.batch + batches <= first;
    };
    std::erase_if(times.stages, before);
    std::erase_if(times.submits, before);
}

/// The stages from a frame to its best classes, with what they refer to.
template <sluice::Backend B>
class Classifier {
public:
    using Ref = sluice::BasicStreamRef<B>;
    using T = typename Network<B>::T;
    static constexpr std::size_t stored = Network<B>::stored_channels;

    Classifier(const Options& options, augment::ImageShape from, DecoderKind decoder, Network<B>& network)
        : from_(from), to_{3, network.side(), network.side()},
          resize_(images::BilinearWeights(from, network.side(), network.side())), decoder_(decoder),
          network_(network), best_(static_cast<std::size_t>(options.best)) {}
    Classifier(const Classifier&) = delete;
    Classifier& operator=(const Classifier&) = delete;

    auto pipeline(const sluice::PipelineOptions& options) {
        sluice::Stage load{
            "load",
            [this](Ref stream, const Frame<B>& in, Image<B>& image) {
                if (decoder_ == DecoderKind::cpu)
                    copy(stream, image.bytes, in.on_host);
                else
                    copy(stream, image.bytes, in.on_device);
            },
            sluice::StageOptions<B>{.graphed = false}}; // one copy, from each slot of each camera
        sluice::Stage prepare{"prepare", [this](Ref stream, const Image<B>& image, Input<T, B>& input) {
                                  prepare_image(stream, image, input);
                              }};
        sluice::Stage infer{"infer", [this](Ref stream, const Input<T, B>& input, Logits<B>& logits) {
                                (*network_).infer(stream,
                                                  stored > 3 ? input.padded.span() : input.numbers.span(),
                                                  logits.values.span());
                            }};
        sluice::Stage fetch{"fetch", [](Ref stream, const Logits<B>& logits, Fetched<B>& fetched) {
                                copy(stream, fetched.logits, logits.values);
                            }};
        // On a thread of its own.
        sluice::Stage best{"best", [](const Frame<B>& frame, const Fetched<B>& fetched, Result& result) {
                               result.camera = frame.camera;
                               result.number = frame.number;
                               result.photograph = frame.photograph;
                               find_best(std::span(fetched.logits.data(), fetched.logits.size()),
                                         result.best);
                               result.age = Clock::now() - frame.taken;
                           }};
        return sluice::Pipeline{
            sluice::Stages{load, prepare, infer, fetch, best},
            sluice::Slots{
                [this](int) {
                    return Image<B>{sluice::DeviceBuffer<std::uint8_t, B>(
                        3 * static_cast<std::size_t>(from_.height) * static_cast<std::size_t>(from_.width))};
                },
                [this](int) {
                    return Input<T, B>{
                        sluice::DeviceBuffer<T, B>(3 * network_.pixels()),
                        sluice::DeviceBuffer<T, B>(stored > 3 ? stored * network_.pixels() : 0)};
                },
                [this](int) { return Logits<B>{sluice::DeviceBuffer<float, B>(network_.classes())}; },
                [this](int) { return Fetched<B>{sluice::PinnedBuffer<float, B>(network_.classes())}; },
                [this](int) { return Result(best_); }},
            options};
    }

private:
    void prepare_image(Ref stream, const Image<B>& image, Input<T, B>& input) {
        const augment::Images<const std::uint8_t, B> bytes(image.bytes.span(), from_,
                                                           augment::Layout::interleaved);
        images::resize(stream, resize_, bytes,
                       augment::Images<T, B>(input.numbers.span(), to_, augment::Layout::interleaved),
                       normalize_);
        if constexpr (stored > 3)
            nn::pad_channels<T, T>(stream, {input.numbers, network_.pixels(), 3},
                                   {input.padded, network_.pixels(), stored});
    }

    augment::ImageShape from_, to_;
    images::Resize<B> resize_;
    images::Normalize normalize_{0.449f, 0.226f}; // means of ImageNet's for the three colours
    DecoderKind decoder_;
    Network<B>& network_;
    std::size_t best_;
};

/// What became of the frames of a run.
struct Passed {
    std::size_t done = 0;
    std::size_t differing = 0; ///< had other classes than their photograph had before
    double seconds = 0;
    Counts counts{};
};

/// A run's numbers and notes, `skipped` by the cameras first.
inline examples::RunResult result_of(const std::string& schedule, const Passed& passed,
                                     const sluice::TimelineReport& report, std::vector<std::string> skipped,
                                     double rate) {
    examples::RunResult run;
    run.schedule = schedule;
    run.steps_per_second = static_cast<double>(passed.done) / passed.seconds;
    run.step_microseconds = 1e6 / run.steps_per_second;
    run.loss_first = run.loss_last = std::numeric_limits<double>::quiet_NaN(); // null in JSON
    run.notes = std::move(skipped);
    run.notes.push_back(report.sentence);
    const Counts& counts = passed.counts;
    if (counts.missed > 0) {
        std::array<char, 160> text{};
        (void)std::snprintf(
            text.data(), text.size(),
            "a camera sends a frame each %.2f ms, and its decoder takes %.2f ms: %zu were missed.",
            1e3 / rate, counts.decode_ms, counts.missed);
        run.notes.emplace_back(text.data());
    }
    const auto number = [](std::size_t value) { return static_cast<std::int64_t>(value); };
    run.extra = {{"captured", number(counts.captured)},
                 {"done", number(passed.done)},
                 {"dropped", number(counts.dropped)},
                 {"missed", number(counts.missed)},
                 {"bad", number(counts.bad)},
                 {"decode_ms", counts.decode_ms},
                 {"with_other_classes", number(passed.differing)},
                 {"latency_frames", number(report.latency.batches)},
                 {"latency_median_ms", report.latency.median / 1e3},
                 {"latency_p99_ms", report.latency.p99 / 1e3},
                 {"latency_longest_ms", report.latency.longest / 1e3}};
    return run;
}

inline void print(std::ostream& out, const examples::RunResult& run, const Passed& passed,
                  const sluice::LatencyReport& latency) {
    const Counts& counts = passed.counts;
    std::array<char, 320> text{};
    (void)std::snprintf(
        text.data(), text.size(),
        "%s, frames: %zu captured, %zu done (%.1f a second), %zu dropped, %zu missed by decoders, %zu bad\n"
        "age in ms, from capture to the end of the last stage: median %.2f, p99 %.2f, longest %.2f, of the "
        "last %zu noted",
        run.schedule.c_str(), counts.captured, passed.done, run.steps_per_second, counts.dropped,
        counts.missed, counts.bad, latency.median / 1e3, latency.p99 / 1e3, latency.longest / 1e3,
        latency.batches);
    out << text.data() << '\n';
    for (const std::string& note : run.notes)
        out << note << '\n';
    if (passed.differing > 0)
        out << examples::counted(passed.differing, "frame")
            << " had OTHER CLASSES than the photograph had before\n";
}

/// Runs the cameras to their end, or until Ctrl-C or SIGTERM, under `schedule`.
template <sluice::Backend B>
examples::RunResult watch(const Options& options, const Photographs& photographs, DecoderKind decoder,
                          Network<B>& network, sluice::Schedule schedule, ResultFile& file,
                          BestOfPhotographs& known, examples::Timelines& timelines, std::ostream& out) {
    Classifier<B> classifier(options, photographs.shape(), decoder, network);
    Cameras<B> cameras(options, photographs, decoder, noted_frames);
    auto pipeline = classifier.pipeline({.schedule = schedule,
                                         .slots = options.in_flight, // `run` has as many under way
                                         .in_flight = options.in_flight,
                                         .timed_batches = noted_frames});

    const auto frames = static_cast<std::size_t>(options.cameras) * options.frames_of_camera();
    examples::Progress progress(to_string(schedule), static_cast<std::int64_t>(frames));
    Passed passed;
    const Clock::time_point begin = Clock::now();
    for (const Result& result : pipeline.run(cameras, [] { return interrupted.load(); })) {
        file.add(result, to_string(schedule));
        passed.differing += known.agrees(result) ? 0u : 1u;
        progress.update(static_cast<std::int64_t>(++passed.done));
    }
    passed.seconds = std::chrono::duration<double>(Clock::now() - begin).count();
    passed.counts = cameras.stop();
    pipeline.finish();

    sluice::PipelineTimes times = sluice::times_of(pipeline, cameras);
    const sluice::TimelineReport report = sluice::report_of(times);
    examples::RunResult run =
        result_of(std::string(to_string(schedule)), passed, report, cameras.skipped(), options.rate);
    print(out, run, passed, report.latency);
    keep_last(times, static_cast<std::size_t>(timelines.timed_batches()));
    timelines.add(sluice::timeline_of(times, run.schedule));
    return run;
}

extern "C" inline void live_interrupt(int signal) {
    interrupted = true;
    std::signal(signal, SIG_DFL); // a second one ends the program at once
}

/// Watches under each schedule that was asked for, and reports.
template <sluice::Backend B>
examples::Report run(const Options& options, std::ostream& out) {
    const DecoderKind kind = choose_decoder(options.decoder, Network<B>::on_host);
    const Photographs photographs(options.photographs, *make_decoder(kind));
    Network<B> network(options);
    examples::Report report;
    report.experiment = "live";
    report.backend = B::name;
    report.device = B::device_name(B::current_device());
    report.data = options.photographs;
    report.batch = 1;
    report.steps = static_cast<std::int64_t>(options.frames_of_camera());
    out << report.device << ": " << examples::counted(static_cast<std::uint64_t>(options.cameras), "camera")
        << (options.rate > 0 ? " at " + examples::counted(static_cast<std::uint64_t>(options.rate), "frame") +
                                   " a second each"
                             : std::string(" without a clock"))
        << ", " << photographs.shape().width << " x " << photographs.shape().height << ", decoded by "
        << (kind == DecoderKind::cpu ? "libjpeg-turbo" : "nvJPEG") << "; ResNet-18 on " << network.side()
        << " x " << network.side() << std::endl;

    for (const int signal : {SIGINT, SIGTERM}) // SIGTERM stops a service
        std::signal(signal, live_interrupt);
    examples::Timelines timelines(options.timelines);
    ResultFile file(options.output); // of all runs
    BestOfPhotographs known(photographs.size());
    for (const sluice::Schedule schedule : options.schedules) {
        if (!interrupted)
            report.runs.push_back(
                watch<B>(options, photographs, kind, network, schedule, file, known, timelines, out));
    }
    file.close();
    timelines.show(out, report);
    return report;
}

// run_host.cpp and run_cuda.cpp instantiate it, beside each other.
extern template examples::Report run<sluice::Host>(const Options&, std::ostream&);
#if SLUICE_HAS_CUDA
extern template examples::Report run<sluice::Cuda>(const Options&, std::ostream&);
#endif

} // namespace live
