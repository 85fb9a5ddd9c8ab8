/// \file
/// Bodies of sgd.hpp, the same for both backends, and their explicit instantiation.
#pragma once

#include <nn/core/vectors.hpp>
#include <nn/elementwise/for_each.hpp>
#include <nn/optimizer/sgd.hpp>

namespace nn {
namespace detail {

template <class G, std::size_t Width>
struct SgdMomentum {
    float* weights;
    float* velocities;
    const G* gradients;
    Half* rounded;
    const float* rate;
    float momentum;
    float gradient_scale;

    SLUICE_HOST_DEVICE void operator()(std::size_t index) const {
        const std::size_t at = index * Width;
        float w[Width];
        float v[Width];
        float g[Width];
        load(weights + at, w);
        load(velocities + at, v);
        load(gradients + at, g);
        for (std::size_t i = 0; i < Width; ++i) {
            v[i] = momentum * v[i] + gradient_scale * g[i];
            w[i] -= *rate * v[i];
        }
        store(velocities + at, v);
        store(weights + at, w);
        if (rounded != nullptr)
            store(rounded + at, w);
    }
};

template <class G, sluice::Backend B>
void sgd_step(sluice::BasicStreamRef<B> stream, SpanArgument<float, B> weights,
              SpanArgument<float, B> velocities, SpanArgument<const G, B> gradients,
              SpanArgument<const float, B> rate, const SgdOptions& options, Half* rounded) {
    require_size("sgd: velocities", velocities.size(), weights.size());
    require_size("sgd: gradients", gradients.size(), weights.size());
    require_size("sgd: elements of the learning rate", rate.size(), 1);
    with_vector_width<B, G>(weights.size(), [&](auto width) {
        for_each(stream, weights.size() / width(),
                 SgdMomentum<G, width()>{weights.data(), velocities.data(), gradients.data(), rounded,
                                         rate.data(), options.momentum, 1.0f / options.loss_scale});
    });
}

} // namespace detail

template <class G, sluice::Backend B>
void sgd_momentum(sluice::BasicStreamRef<B> stream, SpanArgument<float, B> weights,
                  SpanArgument<float, B> velocities, SpanArgument<const G, B> gradients,
                  SpanArgument<const float, B> rate, const SgdOptions& options) {
    detail::sgd_step<G>(stream, weights, velocities, gradients, rate, options, nullptr);
}

template <sluice::Backend B>
void sgd_momentum(sluice::BasicStreamRef<B> stream, SpanArgument<float, B> weights,
                  SpanArgument<float, B> velocities, SpanArgument<const Half, B> gradients,
                  SpanArgument<const float, B> rate, const SgdOptions& options,
                  SpanArgument<Half, B> rounded_weights) {
    require_size("sgd: rounded weights", rounded_weights.size(), weights.size());
    detail::sgd_step<Half>(stream, weights, velocities, gradients, rate, options, rounded_weights.data());
}

} // namespace nn

/// Explicit instantiations, in namespace nn, once for each backend.
#define NN_INSTANTIATE_SGD(Backend)                                                                          \
    template void sgd_momentum<float>(sluice::BasicStreamRef<Backend>, SpanArgument<float, Backend>,         \
                                      SpanArgument<float, Backend>, SpanArgument<const float, Backend>,      \
                                      SpanArgument<const float, Backend>, const SgdOptions&);                \
    template void sgd_momentum<Half>(sluice::BasicStreamRef<Backend>, SpanArgument<float, Backend>,          \
                                     SpanArgument<float, Backend>, SpanArgument<const Half, Backend>,        \
                                     SpanArgument<const float, Backend>, const SgdOptions&);                 \
    template void sgd_momentum(sluice::BasicStreamRef<Backend>, SpanArgument<float, Backend>,                \
                               SpanArgument<float, Backend>, SpanArgument<const Half, Backend>,              \
                               SpanArgument<const float, Backend>, const SgdOptions&,                        \
                               SpanArgument<Half, Backend>);
