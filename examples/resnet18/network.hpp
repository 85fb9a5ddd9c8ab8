/// \file
/// Which ResNet-18 a rung trains: its size, what it computes in, and how first weights come about.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include <common/bad_input.hpp>
#include <nn/dnn/cudnn.hpp>
#include <nn/models/resnet18.hpp>
#include <resnet18/input.hpp>
#include <resnet18/options.hpp>
#include <sluice/sluice.hpp>

#if SLUICE_HAS_CUDA && NN_HAS_CUDNN
#include <nn/dnn/cudnn_conv2d.hpp>
#endif

namespace resnet18 {

template <sluice::Backend B>
inline constexpr bool is_host = std::is_same_v<B, sluice::Host>;

/// The networks of a backend: in float32, TF32 on a device, and in float16, which the CPU does without.
template <sluice::Backend B>
struct Networks;
template <>
struct Networks<sluice::Host> {
    using Single = nn::ResNet18<sluice::Host>;
    using Half = Single;
};
#if SLUICE_HAS_CUDA && NN_HAS_CUDNN
template <>
struct Networks<sluice::Cuda> {
    using Single = nn::ResNet18<sluice::Cuda, nn::CudnnConv2d<float>>;
    using Half = nn::ResNet18<sluice::Cuda, nn::CudnnConv2d<nn::Half>>;
};
#endif

/// Whether this build has networks of a backend.
template <sluice::Backend B>
inline constexpr bool has_networks = is_host<B> || (SLUICE_HAS_CUDA && NN_HAS_CUDNN);

/// Throws `examples::BadInput` where there are none, or the device cannot run them.
template <sluice::Backend B>
void require_networks([[maybe_unused]] const Options& options) {
    if constexpr (is_host<B>) {
        for (const auto& [name, is_given] : {std::pair{"--plans", !options.plan_file.empty()},
                                             {"--fuse-statistics", options.fuse_statistics}}) {
            if (is_given)
                throw examples::BadInput(std::string(name) +
                                         ": expected --backend cuda, since cuDNN alone has that");
        }
    } else {
        const std::string missing = nn::missing_cudnn();
        if (!missing.empty())
            throw examples::BadInput("--backend cuda: " + missing + "; or use --backend host");
    }
}

template <sluice::Backend B>
Size size_of(const Options& options) {
    return options.size.value_or(is_host<B> ? Size::narrow : Size::full);
}

/// What a rung computes in. Throws `examples::BadInput` for float16 on the CPU.
template <sluice::Backend B>
Precision precision_of(const Options& options, Precision usual) {
    if (!is_host<B>)
        return options.precision.value_or(usual);
    if (options.precision == Precision::float16)
        throw examples::BadInput("--precision: expected --backend cuda for float16, since the CPU "
                                 "computes in float32");
    return Precision::float32;
}

/// The network for batches of up to `batch` images.
template <sluice::Backend B>
nn::ResNet18Options network_options(const Options& options, std::size_t batch, bool fuses_statistics) {
    const bool is_narrow = size_of<B>(options) == Size::narrow;
    nn::ResNet18Options network;
    if (is_narrow) {
        network.height = network.width = 40;
        network.base_channels = 8;
        network.classes = 16;
    }
    network.stored_channels = options.stored_channels.value_or(is_host<B> ? 3 : is_narrow ? 8 : 4);
    network.batch = batch;
    network.fuse_statistics = fuses_statistics;
    network.convolution.algorithms = options.algorithms;
    network.convolution.plan_file = options.plan_file;
    network.seed = options.seed;
    return network;
}

/// Keeps the latest network, since rungs that follow one another often train the same one.
template <sluice::Backend B>
class LatestNetwork {
public:
    /// A network of these options, with weights of any kind.
    template <class Network>
    Network& get(const nn::ResNet18Options& options) {
        auto* const held = std::get_if<std::unique_ptr<Network>>(&network_);
        if (held != nullptr && (*held)->options().batch == options.batch &&
            (*held)->options().fuse_statistics == options.fuse_statistics)
            return **held;
        network_ = std::monostate{}; // before there are two
        auto& made = network_.template emplace<std::unique_ptr<Network>>(std::make_unique<Network>(options));
        const sluice::BasicStream<B> stream;
        first_weights_ = made->weights(stream.ref());
        return *made;
    }

    /// What the network's weights were when it was made: those of its seed.
    const std::vector<nn::NamedTensor>& first_weights() const { return first_weights_; }

private:
    using Single = std::unique_ptr<typename Networks<B>::Single>;
    using Half = std::unique_ptr<typename Networks<B>::Half>;
    std::conditional_t<std::is_same_v<Single, Half>, std::variant<std::monostate, Single>,
                       std::variant<std::monostate, Single, Half>>
        network_;
    std::vector<nn::NamedTensor> first_weights_;
};

/// Makes all plans for batches of `images`, so that none is made while a training is timed. Leaves weights of no meaning.
template <sluice::Backend B, class Network>
void make_plans(Network& network, std::size_t images) {
    using T = typename Network::T;
    NetworkBatch<T, B> batch(images, network.image_size());
    sluice::DeviceBuffer<float, B> loss(1);
    nn::on_own_stream<B>([&](sluice::BasicStreamRef<B> stream) {
        sluice::fill_bytes(stream, batch.images(), 0);
        sluice::fill_bytes(stream, batch.labels(), 0);
        network.template train_step<std::uint8_t>(stream, std::as_const(batch).images(),
                                                  std::as_const(batch).labels(), loss);
    });
}

} // namespace resnet18
