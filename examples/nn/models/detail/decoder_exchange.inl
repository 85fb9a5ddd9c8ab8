// Bodies of decoder.hpp, with other ranks.
#pragma once

namespace nn {

namespace detail {

/// Whether it takes less time to send a layer's factors and to multiply all ranks' rows than to reduce its gradient. Both times
/// (ranks - 1) / ranks: factors are `rows_of_all` (rows + columns) numbers to receive and 2 `rows_of_all` weights operations, a
/// gradient is 2 weights numbers. With links of 300 GB/s and products of 300 TFLOP/s a number costs as much as 4,000 operations.
inline bool exchanges_factors(const LayerShape& shape, std::size_t rows_of_all) {
    const std::size_t weights = shape.rows() * shape.columns();
    return rows_of_all * (weights + 2000 * (shape.rows() + shape.columns())) < 4000 * weights;
}

} // namespace detail

template <sluice::Backend B>
void Decoder<B>::make_exchange(const sluice::Communicator<B>& communicator, std::size_t divided_layers) {
    using Exchange = DecoderExchange<B>;
    const bool gradients_alone = options_.exchange == RankExchange::gradients;
    if (!gradients_alone && options_.algorithms == Algorithms::autotune) {
        throw sluice::Error(
            "decoder: expected Algorithms::heuristic unless ranks exchange gradients alone, not autotune: "
            "each would time its own GPU, and might multiply in another way than the others");
    }
    const auto ranks = static_cast<std::size_t>(communicator.ranks());
    std::size_t factor_layers = divided_layers;
    if (!gradients_alone) {
        while (factor_layers < layers_.size() &&
               (detail::exchanges_factors(layers_[factor_layers].shape(),
                                          rows_of(options_.batch, factor_layers) * ranks) ||
                (factor_layers == 0 && deferred_.in_use())))
            ++factor_layers;
    }
    const auto size_of = [](auto& layer) {
        return Exchange::aligned(layer.weights().size()) + Exchange::aligned(layer.bias().size());
    };
    std::vector<std::size_t> sizes{size_of(tail_.up()) + size_of(tail_.last())};
    for (std::size_t i = layers_.size(); i-- > factor_layers;)
        sizes.push_back(size_of(layers_[i]));
    exchange_ = std::make_unique<Exchange>(communicator, sizes);
    exchange_->factor_layers = factor_layers;
    exchange_->divided_layers = divided_layers;

    std::vector<StepPart> parts;
    const auto redirect = [&](auto& layer, sluice::DeviceSpan<float, B> part) {
        const std::size_t weights = layer.weights().size();
        const auto bias = part.subspan(Exchange::aligned(weights), layer.bias().size());
        layer.redirect_updates(part.first(weights), bias);
        const auto begin = [&](const float* from) {
            return static_cast<std::size_t>(from - exchange_->reduction.all().data());
        };
        parts.push_back({layer.weights().data(), weights, begin(part.data())});
        parts.push_back({layer.bias().data(), bias.size(), begin(bias.data())});
    };
    const sluice::DeviceSpan<float, B> of_tail = exchange_->reduction.part(0);
    redirect(tail_.up(), of_tail.first(size_of(tail_.up())));
    redirect(tail_.last(), of_tail.last(size_of(tail_.last())));
    for (std::size_t i = layers_.size(); i-- > factor_layers;)
        redirect(layers_[i], exchange_->reduction.part(layers_.size() - i));
    exchange_->parts = sluice::DeviceBuffer<StepPart, B>(parts.size());
    for (std::size_t i = 0; i < factor_layers; ++i) {
        const std::size_t rows = rows_of(options_.batch, i) * ranks;
        const bool divided = i < divided_layers;
        const bool elsewhere = i == 0 && (divided || deferred_.in_use());
        exchange_->inputs.emplace_back(i == 1 && divided ? 0 : rows * layers_[i].shape().rows());
        exchange_->gradients.emplace_back(elsewhere ? 0 : rows * layers_[i].shape().columns());
        exchange_->gathered.emplace_back();
    }
    on_own_stream<B>([&](sluice::BasicStreamRef<B> stream) {
        sluice::fill(stream, exchange_->ones, 1.0f);
        sluice::fill_bytes(stream, exchange_->reduction.all(), 0);
        sluice::copy_and_wait(stream, exchange_->parts, parts);
    });
    if (divided_layers > 0)
        divide_weights();
}

template <sluice::Backend B>
std::size_t Decoder<B>::exchanged_forward(sluice::BasicStreamRef<B> stream,
                                          sluice::DeviceSpan<const float, B> features, std::size_t images) {
    DecoderExchange<B>& exchange = *exchange_;
    const std::size_t divided = exchange.divided_layers;
    if (divided > 0)
        divided_forward(stream, features);
    if (exchange.factor_layers == divided)
        return divided;
    // As soon as all are known: products leave room for the gathers' kernels, which the tail's one would keep waiting.
    const std::size_t known = exchange.factor_layers - 1;
    forward(stream, features, images, divided, known);
    exchange.follow(stream);
    for (std::size_t i = divided; i < exchange.factor_layers; ++i) {
        sluice::all_gather(exchange.reduction.stream(), *exchange.communicator,
                           input(features, images, i).span(), exchange.inputs[i]);
    }
    return known;
}

template <sluice::Backend B>
void Decoder<B>::gather_gradient(sluice::BasicStreamRef<B> stream, std::size_t i) {
    DecoderExchange<B>& exchange = *exchange_;
    exchange.follow(stream);
    sluice::all_gather(exchange.reduction.stream(), *exchange.communicator,
                       gradient(options_.batch, i + 1).span(), gathered_gradient(i).span());
    exchange.gathered[i].record(exchange.reduction.stream());
}

template <sluice::Backend B>
void Decoder<B>::exchanged_backward(sluice::BasicStreamRef<B> stream, Fork<B>& fork,
                                    sluice::DeviceSpan<const float, B> features, std::size_t images,
                                    sluice::DeviceSpan<float, B> loss) {
    DecoderExchange<B>& exchange = *exchange_;
    const std::size_t last = layers_.size();
    const auto input_gradient = [&](std::size_t i) {
        if (i > 0) {
            layers_[i].input_gradient(stream, gemm_, gradient(images, i + 1), gradient(images, i),
                                      input(features, images, i).span(), true);
        }
    };
    fork.follow(may_update_[last]);
    tail_.update(side_, side_gemm_, input(features, images, last), exchange.ones, loss, side_scratch_);
    exchange.complete(side_, 0);
    const bool deferred = deferred_.in_use();
    const std::size_t divided = exchange.divided_layers;
    const auto step = [&](std::size_t i) {
        return layers_[i].step(input(features, images, i), gradient(images, i + 1), scratch_);
    };
    // A last reduced gradient of much work is computed on the main stream, while that waits for what divided layers gather.
    const bool waits =
        divided > 0 && last > exchange.factor_layers && takes_long(step(exchange.factor_layers));
    const std::size_t collected = exchange.factor_layers + (waits ? 1 : 0);
    for (std::size_t i = last; i-- > exchange.factor_layers;) {
        if (i >= collected)
            collect_gradient(fork, i, i == collected, input(features, images, i), gradient(images, i + 1));
        input_gradient(i);
    }
    for (std::size_t i = exchange.factor_layers; i-- > divided;) {
        if (i == 0 && deferred) // whose gather only the next step waits for
            apply_reduced(fork, side_);
        gather_gradient(stream, i);
        input_gradient(i);
    }
    if (divided > 0)
        gather_gradient(stream, 1);
    if (waits)
        gemm_.update(stream, std::array{step(exchange.factor_layers)}, exchange.ones);
    if (divided > 0 || !deferred)
        apply_reduced(fork, waits ? stream : side_.ref());
    if (divided > 0) {
        stream.wait(exchange.gathered[1]);
        layers_[1].input_gradient(stream, gemm_, gathered_gradient(1), gathered_gradient(0), maps_[0].span(),
                                  true);
        exchange.gathered[0].record(stream); // known, and of all ranks
    }
    if (deferred) {
        side_.wait(exchange.gathered[0]);
        update_bias(side_.ref(), gathered_gradient(0).with_columns(layers_[0].shape().outputs()),
                    layers_[0].bias(), factors_, side_scratch_);
        deferred_.defer(side_, gathered_input(0), factors_);
    }
    apply_gathered(stream);
}

template <sluice::Backend B>
void Decoder<B>::collect_gradient(Fork<B>& fork, std::size_t i, bool last, Matrix<const float, B> in,
                                  Matrix<const float, B> out_gradient) {
    DecoderExchange<B>& exchange = *exchange_;
    grouped_.push_back(layers_[i].step(in, out_gradient, side_scratch_));
    std::size_t bytes = 0;
    for (const WeightUpdate<B>& one : grouped_)
        bytes += one.weights.size() * sizeof(float);
    if (!last && bytes < exchange.bucket_bytes && !takes_long(grouped_.back()))
        return;
    fork.follow(may_update_[i]);
    side_gemm_.update(side_, grouped_, exchange.ones);
    const std::size_t end = layers_.size() - i + 1; // of the parts
    for (std::size_t part = end - grouped_.size(); part < end; ++part)
        exchange.complete(side_, part);
    grouped_.clear();
}

template <sluice::Backend B>
void Decoder<B>::apply_reduced(Fork<B>& fork, sluice::BasicStreamRef<B> last_known_on) {
    DecoderExchange<B>& exchange = *exchange_;
    exchange.complete_last(last_known_on);
    exchange.reduction.join(side_);
    fork.follow(exchange.weights_read);
    take_steps(side_.ref(), exchange.reduction.all(), exchange.parts, factors_);
}

template <sluice::Backend B>
void Decoder<B>::apply_gathered(sluice::BasicStreamRef<B> stream) {
    DecoderExchange<B>& exchange = *exchange_;
    exchange.communicator->fail_with_group(stream);
    const std::size_t begin = deferred_.in_use() ? 1 : 0;
    if (exchange.factor_layers == begin)
        return;
    for (std::size_t i = exchange.factor_layers; i-- > begin;) {
        stream.wait(exchange.gathered[i]);
        grouped_.push_back(layers_[i].step(gathered_input(i), gathered_gradient(i), scratch_));
    }
    gemm_.update(stream, grouped_, factors_);
}

} // namespace nn
