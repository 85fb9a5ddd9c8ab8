/// \file
/// Where the time of ResNet-18 goes, at full size, on a device with cuDNN:
///
///     resnet18_layers                                   everything
///     resnet18_layers --benchmark_filter=step           steps of training as graphs, data already there
///     resnet18_layers --benchmark_filter=infer          inference as graphs
///     resnet18_layers --benchmark_filter=conv           each convolution, forward and both gradients
///     resnet18_layers --benchmark_filter=norm           batch normalisation
///
/// Plans are autotuned, and kept in the file that the environment variable SLUICE_PLANS names. `samples/s` counts images,
/// `TFLOP/s` two operations for each product of a sum, `GB/s` what has to be read and written once.
#include <benchmark/benchmark.h>

#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include <nn/dnn/cudnn.hpp>
#include <nn/models/resnet18.hpp>
#include <sluice/graph/graph_capture.hpp>

#include "support/resnet18_parts.hpp"

#if SLUICE_HAS_CUDA
#if NN_HAS_CUDNN

namespace {

using sluice::Cuda;
using StreamRef = sluice::CudaStreamRef;
using nn::Half;
using namespace bench::resnet18;

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
