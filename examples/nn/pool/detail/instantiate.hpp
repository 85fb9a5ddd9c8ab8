/// \file
/// Bodies of pool.hpp, the same for both backends, and their explicit instantiation.
#pragma once

#include <nn/core/ceil_div.hpp>
#include <nn/elementwise/for_each.hpp>
#include <nn/pool/detail/pool.hpp>
#include <nn/pool/pool.hpp>

namespace nn {
namespace detail {

inline std::uint32_t side(std::size_t value) { return static_cast<std::uint32_t>(value); }

} // namespace detail

template <class T, sluice::Backend B>
void max_pool_relu(sluice::BasicStreamRef<B> stream, SpanArgument<const T, B> in, const MapShape& shape,
                   SpanArgument<const float, B> scale, SpanArgument<const float, B> bias,
                   SpanArgument<T, B> out, SpanArgument<std::uint8_t, B> taps) {
    using detail::side;
    const std::size_t images = require_maps("max pool", shape, in.size());
    const MapShape pooled = pooled_shape(shape);
    require_size("max pool: elements of the output", out.size(), images * pooled.size());
    if (!taps.empty())
        require_size("max pool: taps", taps.size(), out.size());
    if (!scale.empty())
        require_size("max pool: elements of the scale", scale.size(), shape.channels);
    require_size("max pool: elements of the bias", bias.size(), shape.channels);
    detail::with_vector_width<B, T>(shape.channels, [&](auto width) {
        detail::for_each(stream, images * pooled.pixels(), shape.channels / width(),
                         detail::MaxPoolRelu<T, width()>{in.data(), scale.data(), bias.data(), out.data(),
                                                         taps.data(), side(shape.height), side(shape.width),
                                                         side(shape.channels), side(pooled.height),
                                                         side(pooled.width)});
    });
}

template <class T, sluice::Backend B>
void max_pool_relu_gradient(sluice::BasicStreamRef<B> stream, SpanArgument<const T, B> gradient,
                            SpanArgument<const T, B> other, SpanArgument<const std::uint8_t, B> taps,
                            const MapShape& shape, SpanArgument<T, B> in_gradient) {
    using detail::side;
    const std::size_t images = require_maps("max pool", shape, in_gradient.size());
    const MapShape pooled = pooled_shape(shape);
    require_size("max pool: elements of the gradient", gradient.size(), images * pooled.size());
    require_size("max pool: taps", taps.size(), gradient.size());
    if (!other.empty())
        require_size("max pool: elements of the second gradient", other.size(), gradient.size());
    detail::with_vector_width<B, T>(shape.channels, [&](auto width) {
        const std::size_t strips = ceil_div(pooled.height, std::size_t{detail::pool_strip});
        detail::for_each(stream, images * strips * pooled.width, shape.channels / width(),
                         detail::MaxPoolReluGradient<T, width()>{gradient.data(), other.data(), taps.data(),
                                                                 in_gradient.data(), side(shape.height),
                                                                 side(shape.width), side(shape.channels),
                                                                 side(pooled.height), side(pooled.width)});
    });
}

template <class T, sluice::Backend B>
void average_pool(sluice::BasicStreamRef<B> stream, SpanArgument<const T, B> in, const MapShape& shape,
                  SpanArgument<T, B> out) {
    const std::size_t images = require_maps("average pool", shape, in.size());
    require_size("average pool: elements of the output", out.size(), images * shape.channels);
    detail::with_vector_width<B, T>(shape.channels, [&](auto width) {
        detail::for_each(
            stream, images, shape.channels / width(),
            detail::AveragePool<T, width()>{in.data(), out.data(), shape.pixels(), shape.channels});
    });
}

template <class T, sluice::Backend B>
void average_pool_gradient(sluice::BasicStreamRef<B> stream, SpanArgument<const T, B> gradient,
                           const MapShape& shape, SpanArgument<T, B> in_gradient) {
    const std::size_t images = require_maps("average pool", shape, in_gradient.size());
    require_size("average pool: elements of the gradient", gradient.size(), images * shape.channels);
    detail::with_vector_width<B, T>(shape.channels, [&](auto width) {
        detail::for_each(stream, images * shape.pixels(), shape.channels / width(),
                         detail::AveragePoolGradient<T, width()>{gradient.data(), in_gradient.data(),
                                                                 shape.pixels(), shape.channels});
    });
}

} // namespace nn

/// Explicit instantiations, in namespace nn, once for each backend and type of the maps.
#define NN_INSTANTIATE_POOL(Backend, T)                                                                      \
    template void max_pool_relu<T>(sluice::BasicStreamRef<Backend>, SpanArgument<const T, Backend>,          \
                                   const MapShape&, SpanArgument<const float, Backend>,                      \
                                   SpanArgument<const float, Backend>, SpanArgument<T, Backend>,             \
                                   SpanArgument<std::uint8_t, Backend>);                                     \
    template void max_pool_relu_gradient<T>(                                                                 \
        sluice::BasicStreamRef<Backend>, SpanArgument<const T, Backend>, SpanArgument<const T, Backend>,     \
        SpanArgument<const std::uint8_t, Backend>, const MapShape&, SpanArgument<T, Backend>);               \
    template void average_pool<T>(sluice::BasicStreamRef<Backend>, SpanArgument<const T, Backend>,           \
                                  const MapShape&, SpanArgument<T, Backend>);                                \
    template void average_pool_gradient<T>(sluice::BasicStreamRef<Backend>, SpanArgument<const T, Backend>,  \
                                           const MapShape&, SpanArgument<T, Backend>);
