/// \file
/// Whether the convolutions of ResNet-18's inference give the same bits each time, at full size, on a device with cuDNN:
///
///     resnet18_repeats                                    everything
///     resnet18_repeats --benchmark_filter=all/tf32/16     inferences in a row: which layer goes wrong first, and how often
///     resnet18_repeats --benchmark_filter=one/            each convolution by itself, 64 times in a row
///
/// A line is an error where bits differ. Plans are those of resnet18_layers. cuDNN is asked for deterministic ones only, and
/// autotuning asks no more of a plan than that it is fast.
#include <benchmark/benchmark.h>

#include <cmath>
#include <cstring>
#include <map>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <nn/dnn/cudnn.hpp>
#include <nn/models/resnet18.hpp>

#include "support/resnet18_parts.hpp"

#if SLUICE_HAS_CUDA
#if NN_HAS_CUDNN

namespace {

using sluice::Cuda;
using StreamRef = sluice::CudaStreamRef;
using nn::Half;
using namespace bench::resnet18;

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

/// The maps of an inference with folded weights, in order: those of each convolution, and the stem's after its pool. Several
/// runs, each with maps of its own, so that what one run gets wrong is still there when all are done.
template <class T>
class InferenceMaps {
public:
    static constexpr std::size_t runs = 12;

    explicit InferenceMaps(std::size_t batch)
        : plan_(experiment(1, false, false)), batch_(batch), conv_(experiment(1, false, false).convolution),
          images_(random_numbers<T>(batch * plan_.image_size())), weights_(plan_.weight_size()),
          bias_(random_numbers<float>(plan_.channel_size())), pooled_(runs * pooled_size()) {
        const Buffer<float> weights = nn::to_device<Cuda>(plan_.first_weights(7));
        nn::on_own_stream<Cuda>([&](StreamRef stream) {
            nn::fold_weights<T>(stream, {weights, 1, weights.size()}, {}, weights_);
        });
        for (const nn::ResNetConv& layer : plan_.convs())
            maps_.emplace_back(runs * layer.shape.with_images(batch).out_size());
    }

    /// One inference into the maps of `run`; `after()` is called after each convolution.
    template <class After>
    void infer(StreamRef stream, std::size_t run, const After& after) {
        const auto map = [&](std::size_t index) {
            const std::size_t size = maps_[index].size() / runs;
            return maps_[index].subspan(run * size, size);
        };
        const auto convolve = [&](std::size_t index, sluice::DeviceSpan<const T, Cuda> in,
                                  sluice::DeviceSpan<const T, Cuda> residual, bool relu) {
            const nn::ResNetConv& layer = plan_.convs()[index];
            conv_.forward_bias_relu(
                stream, layer.shape.with_images(batch_), in,
                std::as_const(weights_).subspan(layer.weight_offset, layer.shape.weight_size()),
                std::as_const(bias_).subspan(layer.channel_offset, layer.shape.out_channels), residual, relu,
                map(index));
            after();
        };
        const nn::ResNetConv& stem = plan_.stem();
        conv_.forward(stream, stem.shape.with_images(batch_), images_,
                      std::as_const(weights_).first(stem.shape.weight_size()), map(0));
        after();
        sluice::DeviceSpan<T, Cuda> at = pooled_.subspan(run * pooled_size(), pooled_size());
        nn::max_pool_relu<T>(stream, map(0), plan_.stem_map(), {}, bias_.first(stem.shape.out_channels), at,
                             {});
        for (const nn::ResNetBlock& block : plan_.blocks()) {
            const bool is_identity = block.downsample == nn::ResNetBlock::none;
            convolve(block.first, at, {}, true);
            if (!is_identity)
                convolve(block.downsample, at, {}, false);
            convolve(block.second, map(block.first), is_identity ? at : map(block.downsample), true);
            at = map(block.second);
        }
    }

    /// The first convolution, in the order that they run in, whose map in `run` has other bits than in run 0; empty if none.
    std::string first_difference(StreamRef stream, std::size_t run) const {
        std::vector<std::size_t> order{0};
        for (const nn::ResNetBlock& block : plan_.blocks()) {
            order.push_back(block.first);
            if (block.downsample != nn::ResNetBlock::none)
                order.push_back(block.downsample);
            order.push_back(block.second);
        }
        for (const std::size_t index : order) {
            const std::size_t size = maps_[index].size() / runs;
            std::vector<T> expected(size);
            std::vector<T> actual(size);
            sluice::copy_and_wait(stream, std::span(expected), maps_[index].first(size));
            sluice::copy_and_wait(stream, std::span(actual), maps_[index].subspan(run * size, size));
            if (std::memcmp(expected.data(), actual.data(), size * sizeof(T)) != 0)
                return plan_.convs()[index].name;
        }
        return {};
    }

private:
    std::size_t pooled_size() const { return batch_ * nn::pooled_shape(plan_.stem_map()).size(); }

    nn::ResNet18Plan plan_;
    std::size_t batch_;
    nn::CudnnConv2d<T> conv_;
    Buffer<T> images_;
    Buffer<T> weights_;
    Buffer<float> bias_;
    Buffer<T> pooled_;
    std::vector<Buffer<T>> maps_;
};

/// Inferences in a row, compared with one in which each convolution is waited for: names the convolution that goes wrong
/// first, and how often.
template <class T>
void repeat_all(benchmark::State& state, std::size_t batch) {
    InferenceMaps<T> maps(batch);
    const sluice::CudaStream stream;
    for (int plans = 0; plans < 2; ++plans)
        maps.infer(stream.ref(), 0, [&] { stream.sync(); });
    stream.sync();
    std::map<std::string, int> wrong;
    bench::time_calls(state, stream, 1, static_cast<double>(maps.runs - 1), [&] {
        for (std::size_t run = 1; run < maps.runs; ++run)
            maps.infer(stream.ref(), run, [] {});
    });
    for (std::size_t run = 1; run < maps.runs; ++run)
        ++wrong[maps.first_difference(stream.ref(), run)];
    wrong.erase("");
    std::string text;
    for (const auto& [name, count] : wrong)
        text += name + " first in " + std::to_string(count) + " of " + std::to_string(maps.runs - 1) + "; ";
    if (!wrong.empty())
        state.SkipWithError(("other bits: " + text).c_str());
}

template <class T>
void add_repeats(const std::string& type, std::size_t batch) {
    const nn::ResNet18Plan plan(experiment(1, false, false));
    std::set<nn::Conv2dShape> seen;
    for (const nn::ResNetConv& layer : plan.convs()) {
        const nn::Conv2dShape shape = layer.shape.with_images(batch);
        if (!seen.insert(shape).second)
            continue;
        const std::string name = "one/" + type + "/" + std::to_string(batch) + "/" + layer.name;
        add(name + "/forward", 1, repeat<T>, shape, false, false);
        add(name + "/bias_relu", 1, repeat<T>, shape, true, false);
        add(name + "/bias_residual_relu", 1, repeat<T>, shape, true, true);
    }
    add("one/" + type + "/" + std::to_string(batch) + "/fc/forward", 1, repeat<T>,
        plan.head().shape.with_images(batch), false, false);
}

} // namespace

void bench::add_parts() {
    for (const std::size_t batch : {std::size_t{1}, std::size_t{16}}) {
        for (int time = 0; time < 5; ++time) {
            add("all/tf32/" + std::to_string(batch), 1, repeat_all<float>, batch);
            add("all/float16/" + std::to_string(batch), 1, repeat_all<Half>, batch);
        }
        add_repeats<float>("tf32", batch);
        add_repeats<Half>("float16", batch);
    }
}
#else
#include <cstdio>

void bench::add_parts() { std::fprintf(stderr, "resnet18_repeats: %s\n", nn::missing_cudnn().c_str()); }
#endif
#endif
