// Bodies of decoder.hpp, with other ranks.
#pragma once

namespace nn {

namespace detail {

/// Whether a layer's factors are less than half as many as its weights, so that to send them and to multiply all ranks' rows
/// pays.
inline bool exchanges_factors(const LayerShape& shape, std::size_t rows_of_all) {
    return 2 * rows_of_all * (shape.rows() + shape.columns()) < shape.rows() * shape.columns();
}

} // namespace detail

template <sluice::Backend B>
void Decoder<B>::make_exchange(const sluice::Communicator<B>& communicator) {
    using Exchange = DecoderExchange<B>;
    const auto ranks = static_cast<std::size_t>(communicator.ranks());
    std::size_t factor_layers = 0;
    if (options_.exchange_factors) {
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

    const auto redirect = [](auto& layer, sluice::DeviceSpan<float, B> part) {
        const std::size_t weights = layer.weights().size();
        layer.redirect_updates(part.first(weights),
                               part.subspan(Exchange::aligned(weights), layer.bias().size()));
    };
    const sluice::DeviceSpan<float, B> of_tail = exchange_->reduction.part(0);
    redirect(tail_.up(), of_tail.first(size_of(tail_.up())));
    redirect(tail_.last(), of_tail.last(size_of(tail_.last())));
    for (std::size_t i = layers_.size(); i-- > factor_layers;)
        redirect(layers_[i], exchange_->reduction.part(layers_.size() - i));
    for (std::size_t i = 0; i < factor_layers; ++i) {
        const std::size_t rows = rows_of(options_.batch, i) * ranks;
        exchange_->inputs.emplace_back(rows * layers_[i].shape().rows());
        exchange_->gradients.emplace_back(i == 0 && deferred_.in_use() ? 0
                                                                       : rows * layers_[i].shape().columns());
    }
    on_own_stream<B>([&](sluice::BasicStreamRef<B> stream) { sluice::fill(stream, exchange_->ones, 1.0f); });
}

template <sluice::Backend B>
void Decoder<B>::gather_inputs(sluice::BasicStreamRef<B> stream, sluice::DeviceSpan<const float, B> features,
                               std::size_t images) {
    DecoderExchange<B>& exchange = *exchange_;
    exchange.follow(stream);
    for (std::size_t i = 0; i < exchange.factor_layers; ++i) {
        sluice::all_gather(exchange.reduction.stream(), *exchange.communicator,
                           input(features, images, i).span(), exchange.inputs[i]);
    }
}

template <sluice::Backend B>
void Decoder<B>::exchanged_backward(sluice::BasicStreamRef<B> stream, Fork<B>& fork,
                                    sluice::DeviceSpan<const float, B> features, std::size_t images,
                                    sluice::DeviceSpan<float, B> loss) {
    DecoderExchange<B>& exchange = *exchange_;
    const std::size_t last = layers_.size();
    fork.follow(may_update_[last]);
    tail_.update(side_, side_gemm_, input(features, images, last), exchange.ones, loss, side_scratch_);
    exchange.reduction.ready(side_, 0);
    for (std::size_t i = last; i-- > 0;) {
        const bool factors = i < exchange.factor_layers;
        if (factors) {
            const sluice::DeviceSpan<float, B> all =
                i == 0 && deferred_.in_use()
                    ? deferred_.gradient(exchange.rows_of_all(rows_of(images, 0))).span()
                    : exchange.gradients[i].span();
            exchange.follow(stream);
            sluice::all_gather(exchange.reduction.stream(), *exchange.communicator,
                               gradient(images, i + 1).span(), all);
        }
        if (i > 0) {
            layers_[i].input_gradient(stream, gemm_, gradient(images, i + 1), gradient(images, i),
                                      input(features, images, i).span(), true);
        }
        if (!factors) {
            fork.follow(may_update_[i]);
            layers_[i].update(side_, side_gemm_, input(features, images, i), gradient(images, i + 1),
                              exchange.ones, side_scratch_);
            exchange.reduction.ready(side_, last - i);
        }
    }
    exchange.reduction.join(stream);
    exchange.communicator->fail_with_group(stream);
    fork.follow(exchange.reduced);
    const auto apply = [&](auto& layer) {
        add_scaled(side_.ref(), layer.updated_weights().span(), factors_, layer.weights().span());
        add_scaled(side_.ref(), layer.updated_bias(), factors_, layer.bias());
    };
    apply(tail_.up());
    apply(tail_.last());
    for (std::size_t i = last; i-- > exchange.factor_layers;)
        apply(layers_[i]);
    apply_gathered(stream);
}

template <sluice::Backend B>
void Decoder<B>::apply_gathered(sluice::BasicStreamRef<B> stream) {
    DecoderExchange<B>& exchange = *exchange_;
    grouped_.clear();
    for (std::size_t i = exchange.factor_layers; i-- > 0;) {
        const LayerShape& shape = layers_[i].shape();
        const std::size_t rows = exchange.rows_of_all(rows_of(options_.batch, i));
        const Matrix<const float, B> in{exchange.inputs[i], rows, shape.rows()};
        if (i == 0 && deferred_.in_use()) {
            deferred_.defer(stream, in, factors_);
            const Matrix<float, B> gradient = deferred_.gradient(rows);
            update_bias(stream, gradient.with_columns(shape.outputs()), layers_[0].bias(), factors_,
                        scratch_);
        } else {
            grouped_.push_back(layers_[i].step(in, {exchange.gradients[i], rows, shape.columns()}, scratch_));
        }
    }
    gemm_.update(stream, grouped_, factors_);
}

} // namespace nn
