/// \file
/// Where the time of ResNet-18 goes, at full size, on a device with cuDNN:
///
///     resnet18_layers                                   everything
///     resnet18_layers --benchmark_filter=step           steps of training as graphs, data already there
///     resnet18_layers --benchmark_filter=infer          inference as graphs
///     resnet18_layers --benchmark_filter=conv           each convolution, forward and both gradients
///     resnet18_layers --benchmark_filter=norm           batch normalisation
///     resnet18_layers --benchmark_filter=repeat         inference's convolutions, many in a row: an error where bits differ
///
/// Plans are autotuned, and kept in the file that the environment variable SLUICE_PLANS names. `samples/s` counts images,
/// `TFLOP/s` two operations for each product of a sum, `GB/s` what has to be read and written once.
#include <benchmark/benchmark.h>

#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <set>
#include <span>
#include <string>
#include <vector>

#include <nn/dnn/cudnn.hpp>
#include <nn/models/resnet18.hpp>
#include <sluice/graph/graph_capture.hpp>

#include "support/parts.hpp"

#if SLUICE_HAS_CUDA
#if NN_HAS_CUDNN
#include <nn/dnn/cudnn_conv2d.hpp>

namespace {

using sluice::Cuda;
using StreamRef = sluice::CudaStreamRef;
using nn::Half;
template <class T>
using Buffer = sluice::DeviceBuffer<T, Cuda>;

nn::ResNet18Options experiment(std::size_t batch, bool is_trained, bool is_fused) {
    const char* plans = std::getenv("SLUICE_PLANS");
    nn::ResNet18Options options;
    options.stored_channels = 4;
    options.batch = batch;
    options.trainable = is_trained;
    options.fuse_statistics = is_fused;
    options.convolution.algorithms = nn::Algorithms::autotune;
    options.convolution.plan_file = plans == nullptr ? "" : plans;
    return options;
}

/// Numbers within ±1.
template <class T>
Buffer<T> random_numbers(std::size_t count) {
    Buffer<float> numbers(count);
    Buffer<T> result(count);
    nn::on_own_stream<Cuda>([&](StreamRef stream) {
        nn::fill_uniform(stream, numbers, 1.0f, {.seed = 7});
        nn::fold_weights<T>(stream, {numbers, 1, count}, {}, result);
    });
    return result;
}

template <class Work>
void measure(benchmark::State& state, int calls, const char* counter, double amount, const Work& work) {
    const sluice::CudaStream stream;
    for (int i = 0; i < 3; ++i) // plans; a graph's capture and its first launch
        work(stream.ref());
    stream.sync();
    bench::time_calls(state, stream, calls, calls, [&] { work(stream.ref()); });
    state.counters[counter] = benchmark::Counter(amount, benchmark::Counter::kIsIterationInvariantRate);
}

template <class T>
void step(benchmark::State& state, std::size_t batch, bool is_fused) {
    nn::ResNet18<Cuda, nn::CudnnConv2d<T>> network(experiment(batch, true, is_fused));
    const Buffer<T> images = random_numbers<T>(batch * network.image_size());
    const Buffer<std::int32_t> labels = nn::to_device<Cuda>(std::vector<std::int32_t>(batch, 3));
    Buffer<float> loss(1);
    sluice::GraphCapture<sluice::NoKey, Cuda> graph;
    measure(state, 10, "samples/s", static_cast<double>(batch), [&](StreamRef stream) {
        graph.run(stream,
                  [&](StreamRef on) { network.template train_step<std::int32_t>(on, images, labels, loss); });
    });
}

template <class T>
void infer(benchmark::State& state, std::size_t batch) {
    nn::ResNet18<Cuda, nn::CudnnConv2d<T>> network(experiment(batch, false, false));
    const Buffer<T> images = random_numbers<T>(batch * network.image_size());
    Buffer<float> logits(batch * 1000);
    sluice::GraphCapture<sluice::NoKey, Cuda> graph;
    measure(state, 100, "samples/s", static_cast<double>(batch), [&](StreamRef stream) {
        graph.run(stream, [&](StreamRef on) { network.infer(on, images, logits); });
    });
}

enum class Pass { forward, forward_sums, input_gradient, weight_gradient };

template <class T>
void convolution(benchmark::State& state, const nn::Conv2dShape& shape, Pass pass) {
    nn::CudnnConv2d<T> conv(experiment(1, false, false).convolution);
    Buffer<T> in = random_numbers<T>(shape.in_size());
    Buffer<T> weights = random_numbers<T>(shape.weight_size());
    Buffer<T> out = random_numbers<T>(shape.out_size());
    Buffer<float> sums(2 * shape.out_channels);
    bool is_done = true;
    const double operations = 2e-12 * static_cast<double>(shape.out_size() * shape.patch_size());
    measure(state, 20, "TFLOP/s", operations, [&](StreamRef stream) {
        switch (pass) {
        case Pass::forward:
            return conv.forward(stream, shape, in, weights, out);
        case Pass::input_gradient:
            return conv.input_gradient(stream, shape, out, weights, in);
        case Pass::weight_gradient:
            return conv.weight_gradient(stream, shape, in, out, weights);
        case Pass::forward_sums:
            is_done = conv.forward_sums(stream, shape, in, weights, out, sums);
        }
    });
    if (!is_done)
        state.SkipWithError("cuDNN does not fuse this");
}

/// A convolution as inference calls it, many times in a row with nothing waited for between them, each time into memory of
/// its own: says how many gave other bits than a call that was waited for, and how far they are from unfused ones.
template <class T>
void repeat(benchmark::State& state, const nn::Conv2dShape& shape, bool is_fused, bool with_residual) {
    constexpr std::size_t calls = 64;
    const std::size_t size = shape.out_size();
    nn::CudnnConv2d<T> conv(experiment(1, false, false).convolution);
    const Buffer<T> in = random_numbers<T>(shape.in_size());
    const Buffer<T> weights = random_numbers<T>(shape.weight_size());
    const Buffer<float> bias = random_numbers<float>(shape.out_channels);
    const Buffer<T> other = random_numbers<T>(size);
    Buffer<T> unfused(size);
    Buffer<T> outs(calls * size);
    const auto call = [&](StreamRef stream, sluice::DeviceSpan<T, Cuda> out) {
        if (!is_fused)
            return conv.forward(stream, shape, in, weights, out);
        conv.forward_bias_relu(stream, shape, in, weights, bias,
                               with_residual ? other.span() : sluice::DeviceSpan<const T, Cuda>{}, true, out);
    };
    const sluice::CudaStream stream;
    const auto bytes_at = [&](std::size_t index) {
        std::vector<T> values(size);
        sluice::copy_and_wait(stream.ref(), std::span(values), outs.subspan(index * size, size));
        return values;
    };
    const auto same = [&](const std::vector<T>& a, const std::vector<T>& b) {
        return std::memcmp(a.data(), b.data(), size * sizeof(T)) == 0;
    };
    call(stream, outs.first(size)); // makes the plan
    stream.sync();
    call(stream, outs.first(size));
    const std::vector<T> first = bytes_at(0);
    sluice::fill_bytes(stream, outs, 0xFF);
    std::size_t at = 0;
    bench::time_calls(state, stream, static_cast<int>(calls), static_cast<double>(calls),
                      [&] { call(stream, outs.subspan(at++ % calls * size, size)); });
    std::size_t others = 0;
    for (std::size_t index = 0; index < calls; ++index)
        others += same(first, bytes_at(index)) ? 0u : 1u;
    if (others > 0)
        state.SkipWithError(
            (std::to_string(others) + " of " + std::to_string(calls) + " gave other bits").c_str());

    // Unfused, in one call that is waited for.
    conv.forward(stream, shape, in, weights, unfused);
    if (is_fused) {
        const nn::Matrix<T, Cuda> map{unfused, shape.out_pixels(), shape.out_channels};
        nn::Residual<T, Cuda> residual{};
        if (with_residual)
            residual.maps = other;
        nn::scale_bias_relu<T, T>(stream.ref(), map, {}, bias, residual, true, map);
    }
    const std::vector<T> expected = nn::to_host(stream.ref(), unfused);
    double error = 0.0;
    double norm = 0.0;
    for (std::size_t i = 0; i < size; ++i) {
        const auto wanted = static_cast<double>(static_cast<float>(expected[i]));
        const double apart = static_cast<double>(static_cast<float>(first[i])) - wanted;
        error += apart * apart;
        norm += wanted * wanted;
    }
    state.counters["unfused_apart"] = std::sqrt(error / norm);
}

/// Statistics, scale with bias and ReLU, and the backward pass, over maps of Half.
void norm(benchmark::State& state, std::size_t rows, std::size_t channels, const std::string& part) {
    Buffer<Half> in = random_numbers<Half>(rows * channels);
    Buffer<Half> out = random_numbers<Half>(rows * channels);
    Buffer<Half> gradient = random_numbers<Half>(rows * channels);
    Buffer<float> each = random_numbers<float>(10 * channels);
    Buffer<double> scratch(nn::batch_norm_scratch(rows, channels));
    const auto of = [&](std::size_t i) { return each.span().subspan(i * channels, channels); };
    const nn::BatchNorm<Cuda> layer{of(0), of(1), of(2), of(3), of(4), of(5), of(6), of(7)};
    const nn::Matrix<Half, Cuda> map{in, rows, channels};
    const double bytes = 2e-9 * static_cast<double>(rows * channels);
    const bool is_statistics = part == "statistics";
    const bool is_forward = part == "scale_bias_relu";
    measure(
        state, 20, "GB/s",
        bytes * (is_statistics ? 1.0
                 : is_forward  ? 2.0
                               : 7.0),
        [&](StreamRef stream) {
            if (is_statistics) {
                nn::batch_norm_statistics<Half>(stream, map, layer, {}, scratch);
            } else if (is_forward) {
                nn::scale_bias_relu<Half, Half>(stream, map, of(6), of(7), {}, true, {out, rows, channels});
            } else {
                nn::batch_norm_backward<Half>(stream, layer,
                                              nn::BatchNormGradients<Half, Cuda>{.in = map,
                                                                                 .relu_output = out,
                                                                                 .gradient = gradient,
                                                                                 .in_gradient = gradient,
                                                                                 .weight_gradient = of(8),
                                                                                 .bias_gradient = of(9)},
                                              scratch);
            }
        });
}

template <class Function, class... Arguments>
void add(const std::string& name, int iterations, Function function, Arguments... arguments) {
    benchmark::RegisterBenchmark(name.c_str(), function, arguments...)
        ->UseManualTime()
        ->Unit(benchmark::kMicrosecond)
        ->Iterations(iterations);
}

template <class T>
void add_convolutions(const std::string& type, std::size_t batch) {
    const nn::ResNet18Plan plan(experiment(1, false, false));
    std::set<nn::Conv2dShape> seen;
    for (const nn::ResNetConv& layer : plan.convs()) {
        const nn::Conv2dShape shape = layer.shape.with_images(batch);
        if (!seen.insert(shape).second)
            continue;
        const std::string name = "conv/" + type + "/" + std::to_string(batch) + "/" + layer.name;
        add(name + "/forward", 3, convolution<T>, shape, Pass::forward);
        add(name + "/forward_sums", 3, convolution<T>, shape, Pass::forward_sums);
        add(name + "/input_gradient", 3, convolution<T>, shape, Pass::input_gradient);
        add(name + "/weight_gradient", 3, convolution<T>, shape, Pass::weight_gradient);
    }
}

template <class T>
void add_repeats(const std::string& type, std::size_t batch) {
    const nn::ResNet18Plan plan(experiment(1, false, false));
    std::set<nn::Conv2dShape> seen;
    for (const nn::ResNetConv& layer : plan.convs()) {
        const nn::Conv2dShape shape = layer.shape.with_images(batch);
        if (!seen.insert(shape).second)
            continue;
        const std::string name = "repeat/" + type + "/" + std::to_string(batch) + "/" + layer.name;
        add(name + "/forward", 1, repeat<T>, shape, false, false);
        add(name + "/bias_relu", 1, repeat<T>, shape, true, false);
        add(name + "/bias_residual_relu", 1, repeat<T>, shape, true, true);
    }
    add("repeat/" + type + "/" + std::to_string(batch) + "/fc/forward", 1, repeat<T>,
        plan.head().shape.with_images(batch), false, false);
}

} // namespace

void bench::add_parts() {
    for (const std::size_t batch : {std::size_t{32}, std::size_t{512}})
        add("step/tf32/" + std::to_string(batch), 5, step<float>, batch, false);
    for (const std::size_t batch : {std::size_t{32}, std::size_t{1024}}) {
        add("step/float16/" + std::to_string(batch), 5, step<Half>, batch, false);
        add("step/float16_fused/" + std::to_string(batch), 5, step<Half>, batch, true);
    }
    for (const std::size_t batch : {std::size_t{1}, std::size_t{16}}) {
        add("infer/tf32/" + std::to_string(batch), 5, infer<float>, batch);
        add("infer/float16/" + std::to_string(batch), 5, infer<Half>, batch);
    }
    add_convolutions<Half>("float16", 256);
    add_convolutions<float>("tf32", 256);
    for (const std::size_t batch : {std::size_t{1}, std::size_t{16}}) {
        add_repeats<float>("tf32", batch);
        add_repeats<Half>("float16", batch);
    }
    for (const char* part : {"statistics", "scale_bias_relu", "backward"}) {
        add(std::string("norm/64x112x112/") + part, 5, norm, std::size_t{256} * 112 * 112, std::size_t{64},
            std::string(part));
        add(std::string("norm/512x7x7/") + part, 5, norm, std::size_t{256} * 7 * 7, std::size_t{512},
            std::string(part));
    }
}
#else
#include <cstdio>

void bench::add_parts() { std::fprintf(stderr, "resnet18_layers: %s\n", nn::missing_cudnn().c_str()); }
#endif
#endif
