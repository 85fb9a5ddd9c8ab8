/// \file
/// Where the time of the detector goes, at the size of the masked-GIoU experiment, on a device:
///
///     detector_layers                                  everything
///     detector_layers --benchmark_filter=forward       the whole way forward
///     detector_layers --benchmark_filter=convolution   layer by layer
///     detector_layers --benchmark_filter=step          a step of training, forward and back
///
/// `TFLOP/s` counts two operations for each product of a sum; `GB/s` counts what has to be read and written once. Each
/// figure is the time of a call until the device is done, from a queue of several calls.
#include <benchmark/benchmark.h>

#include <cstdint>
#include <string>
#include <vector>

#include <nn/conv/pooled_convolution.hpp>
#include <nn/models/detector.hpp>

#include "support/parts.hpp"

#if SLUICE_HAS_CUDA
namespace {

using sluice::Cuda;
using StreamRef = sluice::CudaStreamRef;
template <class T>
using Buffer = sluice::DeviceBuffer<T, Cuda>;

constexpr std::size_t batch = 1024;

nn::DetectorOptions experiment(nn::Precision precision) {
    nn::DetectorOptions options;
    options.height = 256;
    options.width = 256;
    options.hidden = 16384;
    options.max_boxes = 256;
    options.batch = batch;
    options.learning_rate = 1e-6f;
    options.precision = precision;
    return options;
}

/// Random bytes, as the time of products depends on what is multiplied.
Buffer<std::uint8_t> random_bytes(std::size_t count) {
    std::vector<std::uint8_t> bytes(count);
    sluice::CountedRandom random{sluice::RandomKey{.seed = 1}};
    for (std::uint8_t& byte : bytes)
        byte = static_cast<std::uint8_t>(random.next_u32());
    return nn::to_device<Cuda>(bytes);
}

template <class T>
Buffer<T> random_numbers(std::size_t count) {
    Buffer<float> numbers(count);
    Buffer<T> result(count);
    nn::on_own_stream<Cuda>([&](StreamRef stream) {
        nn::fill_uniform(stream, numbers, 1.0f, sluice::RandomKey{.seed = 2});
        nn::scaled_copy<T, float>(stream, numbers.span(), 1.0f, result.span());
    });
    return result;
}

/// Calls `work(stream)` several times an iteration, after one that does not count.
template <class Work>
void measure(benchmark::State& state, int calls, double operations, double bytes, const Work& work) {
    const sluice::CudaStream stream;
    work(stream.ref());
    stream.sync();
    bench::time_calls(state, stream, calls, calls, [&] { work(stream.ref()); });
    const auto rate = [&](double amount) {
        return benchmark::Counter(amount * static_cast<double>(state.iterations()),
                                  benchmark::Counter::kIsRate);
    };
    state.counters["TFLOP/s"] = rate(operations * 1e-12);
    if (bytes > 0.0)
        state.counters["GB/s"] = rate(bytes * 1e-9);
}

/// All products of the way forward, of one image.
double operations_of(const nn::DetectorOptions& options) {
    double operations = 0.0;
    double inputs = 1.0;
    double pixels = static_cast<double>(options.height * options.width);
    for (const std::size_t outputs : options.channels) {
        operations += pixels * 9.0 * inputs * static_cast<double>(outputs);
        inputs = static_cast<double>(outputs);
        pixels /= 4.0;
    }
    const double hidden = static_cast<double>(options.hidden);
    return 2.0 * (operations + hidden * (inputs * pixels + 4.0 * static_cast<double>(options.max_boxes)));
}

void forward(benchmark::State& state, nn::Precision precision) {
    const nn::DetectorOptions options = experiment(precision);
    nn::Detector<Cuda> detector(options);
    const Buffer<std::uint8_t> images = random_bytes(batch * detector.image_size());
    Buffer<float> boxes(batch * detector.predictions_size());
    measure(state, 5, static_cast<double>(batch) * operations_of(options), 0.0,
            [&](StreamRef stream) { detector.forward(stream, images, boxes); });
}

void step(benchmark::State& state, nn::Precision precision) {
    nn::DetectorOptions options = experiment(precision);
    options.keep_routes = true;
    nn::Detector<Cuda> detector(options);
    const Buffer<std::uint8_t> images = random_bytes(batch * detector.image_size());
    Buffer<float> boxes(batch * detector.predictions_size());
    const Buffer<float> gradients = random_numbers<float>(boxes.size());
    measure(state, 2, 3.0 * static_cast<double>(batch) * operations_of(options), 0.0, [&](StreamRef stream) {
        detector.forward(stream, images, boxes);
        detector.backward_and_update(stream, gradients);
    });
}

template <class From>
void convolution(benchmark::State& state, const nn::MapShape& shape, std::size_t outputs) {
    constexpr bool bytes = std::is_same_v<From, std::uint8_t>;
    nn::Gemm<Cuda> gemm(nn::Precision::bfloat16);
    const nn::PooledConvolution<nn::Bfloat16, Cuda> layer(shape, outputs, batch, bytes, 1.0f / 255.0f, {});
    nn::ConvolutionWorkspace<nn::Bfloat16, Cuda> workspace({});
    Buffer<From> maps;
    if constexpr (bytes)
        maps = random_bytes(batch * shape.size());
    else
        maps = random_numbers<From>(batch * shape.size());
    Buffer<nn::Bfloat16> pooled(batch * layer.out().size());
    measure(state, 10, 2.0 * 9.0 * static_cast<double>(maps.size() * outputs),
            static_cast<double>(maps.bytes() + pooled.bytes()), [&](StreamRef stream) {
                layer.forward(stream, gemm, std::as_const(maps).span(), pooled.span(), workspace);
            });
}

/// The linear layer after the convolutions, which is most of the operations: what cuBLASLt makes of it.
void product(benchmark::State& state) {
    constexpr std::size_t inputs = 65536;
    constexpr std::size_t outputs = 16384;
    nn::Gemm<Cuda> gemm(nn::Precision::bfloat16);
    const Buffer<nn::Bfloat16> maps = random_numbers<nn::Bfloat16>(batch * inputs);
    const Buffer<nn::Bfloat16> weights = random_numbers<nn::Bfloat16>(inputs * outputs);
    const Buffer<float> bias = random_numbers<float>(outputs);
    Buffer<nn::Bfloat16> hidden(batch * outputs);
    measure(state, 5, 2.0 * static_cast<double>(batch * inputs) * static_cast<double>(outputs), 0.0,
            [&](StreamRef stream) {
                gemm.multiply(stream, nn::Matrix<const nn::Bfloat16, Cuda>{maps, batch, inputs},
                              nn::Matrix<const nn::Bfloat16, Cuda>{weights, inputs, outputs},
                              nn::Matrix<nn::Bfloat16, Cuda>{hidden, batch, outputs},
                              {.bias = bias.span(), .relu = true});
            });
}

/// The step of that layer's weights, float32, and then their copy in bfloat16.
void update(benchmark::State& state, nn::Algorithms algorithms, bool rounds) {
    constexpr std::size_t inputs = 65536;
    constexpr std::size_t outputs = 16384;
    nn::Gemm<Cuda> gemm(nn::Precision::bfloat16, algorithms);
    const Buffer<nn::Bfloat16> maps = random_numbers<nn::Bfloat16>(batch * inputs);
    const Buffer<nn::Bfloat16> gradient = random_numbers<nn::Bfloat16>(batch * outputs);
    const Buffer<float> factors = nn::to_device<Cuda>(std::vector<float>{-1e-6f, 1.0f});
    Buffer<float> weights = random_numbers<float>(inputs * outputs);
    Buffer<nn::Bfloat16> rounded(weights.size());
    measure(state, 5, 2.0 * static_cast<double>(batch * inputs) * static_cast<double>(outputs), 0.0,
            [&](StreamRef stream) {
                gemm.multiply(stream, nn::Matrix<const nn::Bfloat16, Cuda>{maps, batch, inputs},
                              nn::Matrix<const nn::Bfloat16, Cuda>{gradient, batch, outputs},
                              nn::Matrix<float, Cuda>{weights, inputs, outputs},
                              {.transpose_a = true, .device_factors = factors});
                if (rounds)
                    nn::scaled_copy<nn::Bfloat16, float>(stream, weights.span(), 1.0f, rounded.span());
            });
}

template <class Function, class... Arguments>
void add(const std::string& name, int iterations, Function function, Arguments... arguments) {
    benchmark::RegisterBenchmark(name.c_str(), function, arguments...)
        ->UseManualTime()
        ->Unit(benchmark::kMillisecond)
        ->Iterations(iterations);
}

} // namespace

void bench::add_parts() {
    using nn::MapShape;
    add("convolution/1_to_4", 10, convolution<std::uint8_t>, MapShape{256, 256, 1}, std::size_t{4});
    add("convolution/4_to_16", 10, convolution<nn::Bfloat16>, MapShape{128, 128, 4}, std::size_t{16});
    add("convolution/16_to_64", 10, convolution<nn::Bfloat16>, MapShape{64, 64, 16}, std::size_t{64});
    add("convolution/64_to_256", 10, convolution<nn::Bfloat16>, MapShape{32, 32, 64}, std::size_t{256});
    add("product/65536_to_16384", 5, product);
    add("update/65536_to_16384", 5, update, nn::Algorithms::heuristic, false);
    add("update_autotune/65536_to_16384", 5, update, nn::Algorithms::autotune, false);
    add("update_and_round/65536_to_16384", 5, update, nn::Algorithms::heuristic, true);
    add("forward/bfloat16", 5, forward, nn::Precision::bfloat16);
    add("forward/tf32", 2, forward, nn::Precision::tf32);
    add("step/bfloat16", 3, step, nn::Precision::bfloat16);
}
#endif
