// Bodies of decoder.hpp, with weights that are divided among ranks.
#pragma once

#include <nn/layers/weight_shards.hpp>

namespace nn {

namespace detail {

/// Whether it takes less to send what divided layers exchange than to reduce their gradients: the features, the second layer's
/// output and its gradient, in `rows` rows of all ranks, each number once and (ranks - 1) / ranks of a gradient's numbers twice.
inline bool exchanges_shards(const DecoderOptions& options, std::size_t rows, std::size_t ranks) {
    const std::vector<std::size_t>& channels = options.channels;
    const std::size_t second = 16 * channels[2]; // numbers of its output, for a row of the features
    return rows * (channels[0] + 2 * second) < 8 * channels[1] * (channels[0] + channels[2]) / ranks;
}

/// How many layers' weights are divided: two or none, of `layers` before the tail.
inline std::size_t divided_layers(const DecoderOptions& options, std::size_t layers,
                                  std::size_t feature_pixels, std::size_t ranks) {
    const bool asked = options.exchange == RankExchange::shards;
    if (ranks == 1 || (!asked && options.exchange != RankExchange::automatic))
        return 0;
    const bool divisible = layers >= 2 && options.channels[1] % (4 * ranks) == 0;
    if (asked && !divisible) {
        throw sluice::Error(
            "decoder: " + std::to_string(options.channels[1]) + " channels between the first two of " +
            std::to_string(layers + 1) + " layers; expected a multiple of " + std::to_string(4 * ranks) +
            " and at least 3 layers, to divide weights among " + std::to_string(ranks) + " ranks");
    }
    const std::size_t rows = options.batch * feature_pixels * ranks;
    return divisible && (asked || exchanges_shards(options, rows, ranks)) ? 2 : 0;
}

/// A rank's part of a divided layer: the first gives some of the channels between the two, the second takes them.
inline LayerShape divided_shape(const DecoderOptions& options, std::size_t i, std::size_t ranks) {
    const std::vector<std::size_t>& channels = options.channels;
    return i == 0 ? LayerShape::transposed_convolution(channels[0], channels[1] / ranks, 2)
                  : LayerShape::transposed_convolution(channels[1] / ranks, channels[2], 2);
}

/// The side of a divided layer's weight, in PyTorch's layout, along which it is cut.
inline std::size_t divided_axis(std::size_t i) { return i == 0 ? 1 : 0; }

} // namespace detail

template <sluice::Backend B>
void Decoder<B>::divide_weights() {
    std::size_t most = 0;
    for (std::size_t i = 0; i < exchange_->divided_layers; ++i)
        most = std::max(most, exchange_->ranks() * layers_[i].weights().size());
    exchange_->whole = sluice::DeviceBuffer<float, B>(most);
    exchange_->partial = sluice::DeviceBuffer<float, B>(exchange_->rows_of_all(rows_of(options_.batch, 1)) *
                                                        layers_[1].shape().columns());
    // The same first weights as those of one rank.
    on_own_stream<B>([&](sluice::BasicStreamRef<B> stream) {
        for (std::size_t i = 0; i < exchange_->divided_layers; ++i) {
            std::vector<NamedTensor> tensors;
            Layer<B>(whole_shape(i), layer_key(options_.seed, random_operation, i))
                .save(stream, std::to_string(2 * i), tensors);
            load_layer(stream, i, tensors);
        }
    });
}

template <sluice::Backend B>
void Decoder<B>::divided_forward(sluice::BasicStreamRef<B> stream,
                                 sluice::DeviceSpan<const float, B> features) {
    DecoderExchange<B>& exchange = *exchange_;
    exchange.follow(stream);
    sluice::all_gather(exchange.reduction.stream(), *exchange.communicator, features, exchange.inputs[0]);
    exchange.lead(stream);
    const Matrix<float, B> between(maps_[0].span(), gathered_input(1).rows(), gathered_input(1).columns());
    if (deferred_.in_use())
        deferred_.forward(stream, layers_[0], gathered_input(0), between);
    else
        layers_[0].forward(stream, gemm_, gathered_input(0), between, true);
    const std::size_t columns = layers_[1].shape().columns();
    gemm_.multiply(stream, gathered_input(1), layers_[1].weights(),
                   Matrix<float, B>(exchange.partial.span(), between.rows(), columns), {.prefetch_b = true});
    exchange.follow(stream);
    sluice::reduce_scatter(exchange.reduction.stream(), *exchange.communicator, exchange.partial, maps_[1]);
    exchange.lead(stream);
    add_bias(stream, Matrix<float, B>(maps_[1].span(), rows_of(options_.batch, 1), columns),
             layers_[1].bias(), true);
}

template <sluice::Backend B>
void Decoder<B>::load_layer(sluice::BasicStreamRef<B> stream, std::size_t i,
                            std::span<const NamedTensor> tensors) {
    const std::string name = std::to_string(2 * i);
    if (!is_divided(i)) {
        layers_[i].load(stream, name, tensors);
        return;
    }
    const LayerShape whole = whole_shape(i);
    const auto rank = static_cast<std::size_t>(exchange_->communicator->rank());
    const NamedTensor& weight = *find_tensor(tensors, name + ".weight", whole.torch_shape());
    const NamedTensor& bias = *find_tensor(tensors, name + ".bias", {whole.outputs()});
    const std::array<NamedTensor, 2> part{
        cut_shard(weight, detail::divided_axis(i), rank, exchange_->ranks()),
        i == 0 ? cut_shard(bias, 0, rank, exchange_->ranks()) : bias};
    layers_[i].load(stream, name, part);
}

template <sluice::Backend B>
void Decoder<B>::save_layer(sluice::BasicStreamRef<B> stream, std::size_t i,
                            std::vector<NamedTensor>& tensors) {
    const std::string name = std::to_string(2 * i);
    if (!is_divided(i)) {
        layers_[i].save(stream, name, tensors);
        return;
    }
    DecoderExchange<B>& exchange = *exchange_;
    // Of each rank, one after another, in device memory that was there before: see Communicator, "NCCL in one process".
    const auto gathered = [&](sluice::DeviceSpan<float, B> part) {
        const sluice::DeviceSpan<float, B> whole =
            exchange.whole.span().first(part.size() * exchange.ranks());
        exchange.follow(stream);
        sluice::all_gather(exchange.reduction.stream(), *exchange.communicator, part, whole);
        exchange.lead(stream);
        std::vector<float> values(whole.size());
        sluice::copy_and_wait(stream, values, whole);
        return values;
    };
    const std::vector<float> matrices = gathered(layers_[i].weights().span());
    const std::vector<float> biases = gathered(layers_[i].bias());
    std::vector<NamedTensor> weight_parts;
    std::vector<NamedTensor> bias_parts;
    for (std::size_t rank = 0; rank < exchange.ranks(); ++rank) {
        const auto of_rank = [&](const std::vector<float>& values) {
            const std::size_t size = values.size() / exchange.ranks();
            const auto begin = values.begin() + static_cast<std::ptrdiff_t>(rank * size);
            return std::vector<float>(begin, begin + static_cast<std::ptrdiff_t>(size));
        };
        std::vector<NamedTensor> part;
        append_tensors(layers_[i].shape(), name, {of_rank(matrices), of_rank(biases)}, part);
        weight_parts.push_back(std::move(part[0]));
        bias_parts.push_back(std::move(part[1]));
    }
    tensors.push_back(join_shards(weight_parts, detail::divided_axis(i)));
    // The second layer's bias is not divided: this rank's own, so that a difference between ranks shows.
    const auto own = static_cast<std::size_t>(exchange.communicator->rank());
    tensors.push_back(i == 0 ? join_shards(bias_parts, 0) : std::move(bias_parts[own]));
}

} // namespace nn
