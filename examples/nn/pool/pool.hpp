/// \file
/// The two pools of a ResNet: 3×3 max pool of stride 2 after a batch normalisation and a ReLU, and the mean over a map.
///
/// Maps are [N, H, W, C], channels last, of float or Half; shapes are those of the larger side.
#pragma once

#include <cstddef>
#include <cstdint>

#include <nn/core/float16.hpp>
#include <nn/elementwise/maps.hpp>
#include <sluice/backend/stream.hpp>

namespace nn {

/// The sides of a map after a 3×3 max pool of stride 2 and padding 1.
constexpr MapShape pooled_shape(const MapShape& shape) noexcept {
    return {(shape.height + 1) / 2, (shape.width + 1) / 2, shape.channels};
}

/// The tap of a pool all of whose elements the ReLU made 0: its gradient goes nowhere.
inline constexpr std::uint8_t no_tap = 255;

/// `out` = the maximum of `relu(scale * in + bias)` over 3×3 pixels, stride 2, padding 1. An empty scale is 1. `taps`, as
/// many as elements of `out` or empty, receives which of the nine pixels it was, the first of equal ones, or `no_tap`.
/// NaN wins. Throws `sluice::Error` when a size does not fit.
template <class T, sluice::Backend B>
void max_pool_relu(sluice::BasicStreamRef<B> stream, SpanArgument<const T, B> in, const MapShape& shape,
                   SpanArgument<const float, B> scale, SpanArgument<const float, B> bias,
                   SpanArgument<T, B> out, SpanArgument<std::uint8_t, B> taps);

/// The gradient of `scale * in + bias` from that of the pool's output, which is the sum of one or two parts (`other` may be
/// empty).
template <class T, sluice::Backend B>
void max_pool_relu_gradient(sluice::BasicStreamRef<B> stream, SpanArgument<const T, B> gradient,
                            SpanArgument<const T, B> other, SpanArgument<const std::uint8_t, B> taps,
                            const MapShape& shape, SpanArgument<T, B> in_gradient);

/// The mean over the pixels of each map and channel: from maps of `shape` to [N, C].
template <class T, sluice::Backend B>
void average_pool(sluice::BasicStreamRef<B> stream, SpanArgument<const T, B> in, const MapShape& shape,
                  SpanArgument<T, B> out);

/// The gradient of the maps from that of their means.
template <class T, sluice::Backend B>
void average_pool_gradient(sluice::BasicStreamRef<B> stream, SpanArgument<const T, B> gradient,
                           const MapShape& shape, SpanArgument<T, B> in_gradient);

} // namespace nn
