/// \file
/// The products of the frozen encoder's step, layer by layer, on a device, each beside its floor:
///
///     encoder_layers                                          everything
///     encoder_layers --benchmark_filter=autotune/batch:8/     at batch 8, with autotuned algorithms
///     encoder_layers --benchmark_filter=update                the weight gradients, each with its update
///
/// A product is named by what it computes, and by `m`, `n` and `k`. `floor_us` is the time that its floats would take
/// once through a memory of 4.3 TB/s (what copies reach on an H200), or its multiplications at 400 TFLOP/s, whichever is longer;
/// `of_floor` is the floor divided by the time. Each product is measured in a graph of several, on weights and maps of
/// their own so that none is found in the cache, as in a step, where everything else has been there meanwhile.
#include <benchmark/benchmark.h>

#include <algorithm>
#include <string>
#include <vector>

#include <nn/core/device.hpp>
#include <nn/elementwise/elementwise.hpp>
#include <nn/elementwise/sums.hpp>
#include <nn/gemm/gemm.hpp>
#include <sluice/sluice.hpp>

#include "support/parts.hpp"

#if SLUICE_HAS_CUDA
namespace {

using sluice::Cuda;
using StreamRef = sluice::CudaStreamRef;
using Floats = sluice::DeviceSpan<float, Cuda>;

enum class Kind { forward, gradient, update };

/// `[m, k] * [k, n]` where the network goes forward.
struct Product {
    Kind kind;
    std::size_t m;
    std::size_t n;
    std::size_t k;
    std::size_t outputs; ///< channels that an update's bias is for

    std::size_t floats() const { return m * k + k * n + m * n; }
    /// What is read, and what is written once more: the mask of a gradient, the weights of an update.
    double bytes() const { return 4.0 * static_cast<double>(floats() + (kind == Kind::forward ? 0 : m * n)); }
    double floor_seconds() const {
        const double operations =
            2.0 * static_cast<double>(m) * static_cast<double>(n) * static_cast<double>(k);
        return std::max(bytes() / 4.3e12, operations / 4e14);
    }
};

/// One of several copies of a product's matrices.
class Operands {
public:
    Operands(const Product& product, Floats memory)
        : gemm_(product), masks_(memory.last(product.m * product.n)), a_(memory.first(product.m * product.k)),
          b_(memory.subspan(a_.size(), product.k * product.n)),
          out_(memory.subspan(a_.size() + b_.size(), product.m * product.n)) {}

    void enqueue(StreamRef stream, nn::Gemm<Cuda>& gemm, Floats vector, Floats factors,
                 sluice::DeviceSpan<double, Cuda> scratch) const {
        const auto [kind, m, n, k, outputs] = gemm_;
        const nn::Matrix<float, Cuda> out{out_, m, n};
        switch (kind) {
        case Kind::forward:
            gemm.multiply(stream, nn::Matrix<const float, Cuda>{a_, m, k},
                          nn::Matrix<const float, Cuda>{b_, k, n}, out,
                          {.bias = vector.first(n), .relu = true});
            break;
        case Kind::gradient:
            // The mask may be any floats of that number.
            gemm.multiply(stream, nn::Matrix<const float, Cuda>{a_, m, k},
                          nn::Matrix<const float, Cuda>{b_, n, k}, out,
                          {.transpose_b = true, .relu_output = masks_});
            break;
        case Kind::update:
            gemm.multiply(stream, nn::Matrix<const float, Cuda>{a_, k, m},
                          nn::Matrix<const float, Cuda>{b_, k, n}, out,
                          {.transpose_a = true,
                           .device_factors = factors,
                           .bias_step = {.bias = vector.first(n), .outputs = outputs, .scratch = scratch}});
            break;
        }
    }

private:
    Product gemm_;
    Floats masks_;
    Floats a_;
    Floats b_;
    Floats out_;
};

void measure(benchmark::State& state, const Product& product, nn::Algorithms algorithms) {
    // 16 bytes are what fast reads want.
    const std::size_t each =
        (product.floats() + (product.kind == Kind::gradient ? product.m * product.n : 0) + 63) / 64 * 64;
    constexpr std::size_t cold = std::size_t{240} << 18; // floats: several times what any cache holds
    const std::size_t copies = std::clamp<std::size_t>(cold / each, 2, 24);

    sluice::DeviceBuffer<float, Cuda> memory(each * copies);
    sluice::DeviceBuffer<float, Cuda> vector(product.n);
    sluice::DeviceBuffer<float, Cuda> factors = nn::to_device<Cuda>(std::vector<float>{-1e-6f, 1.0f});
    sluice::DeviceBuffer<double, Cuda> scratch(
        product.kind == Kind::update
            ? nn::sum_scratch(product.k * product.n / product.outputs, product.outputs)
            : 1);
    const sluice::CudaStream stream;
    nn::fill_uniform(stream.ref(), memory, 1.0f, sluice::RandomKey{.seed = 1});
    nn::fill_uniform(stream.ref(), vector, 1.0f, sluice::RandomKey{.seed = 2});
    nn::Gemm<Cuda> gemm(nn::Precision::tf32, algorithms);
    std::vector<Operands> operands;
    for (std::size_t i = 0; i < copies; ++i)
        operands.emplace_back(product, memory.span().subspan(i * each, each));
    const auto work = [&](StreamRef on, std::size_t count) {
        for (std::size_t i = 0; i < count; ++i)
            operands[i].enqueue(on, gemm, vector, factors, scratch);
    };
    work(stream.ref(), 1); // chooses the algorithm
    stream.sync();
    const sluice::BasicGraphExec<Cuda> executable(
        sluice::capture(stream, [&](StreamRef on) { work(on, copies); }));
    executable.launch(stream.ref());
    stream.sync();
    constexpr int calls = 4;
    bench::time_calls(state, stream, calls, static_cast<double>(copies * calls),
                      [&] { executable.launch(stream.ref()); });
    state.counters["floor_us"] = 1e6 * product.floor_seconds();
    state.counters["of_floor"] = benchmark::Counter(
        product.floor_seconds() * static_cast<double>(state.iterations()), benchmark::Counter::kIsRate);
}

void add(const std::string& place, const std::string& layer, const Product& product,
         nn::Algorithms algorithms) {
    const std::string name = place + layer + "/" + std::to_string(product.m) + "x" +
                             std::to_string(product.n) + "x" + std::to_string(product.k);
    benchmark::RegisterBenchmark(name.c_str(), measure, product, algorithms)
        ->UseManualTime()
        ->Unit(benchmark::kMicrosecond)
        ->Iterations(3);
}

/// The layers of both networks; the decoder's are the encoder's reversed.
void add_layers(std::size_t batch, nn::Algorithms algorithms) {
    const std::string place = std::string(algorithms == nn::Algorithms::autotune ? "autotune" : "heuristic") +
                              "/batch:" + std::to_string(batch) + "/";
    for (std::size_t channels = 2048, side = 2; channels >= 16; channels /= 2, side *= 2) {
        const std::size_t rows = batch * side * side / 4;
        add(place, "encoder", {Kind::forward, rows, 2 * channels, 4 * channels, 0}, algorithms);
    }
    for (std::size_t channels = 4096, side = 1; channels >= 32; channels /= 2, side *= 2) {
        const std::size_t rows = batch * side * side;
        add(place, "decoder", {Kind::forward, rows, 2 * channels, channels, 0}, algorithms);
        if (side > 1)
            add(place, "gradient", {Kind::gradient, rows, channels, 2 * channels, 0}, algorithms);
        add(place, "update", {Kind::update, channels, 2 * channels, rows, channels / 2}, algorithms);
    }
}

} // namespace

void bench::add_parts() {
    for (const std::size_t batch : {8u, 32u, 128u}) {
        add_layers(batch, nn::Algorithms::heuristic);
        add_layers(batch, nn::Algorithms::autotune);
    }
}
#endif
