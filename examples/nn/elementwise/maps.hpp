/// \file
/// The operators of a 3×3 convolution with a 2×2 max pool and ReLU after it, one by one.
///
/// Maps are [N, H, W, C], channels last, in raster order; `MapShape` is one map's. Elements are float or Bfloat16.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include <nn/core/float16.hpp>
#include <nn/gemm/matrix.hpp>
#include <sluice/backend/stream.hpp>

namespace nn {

/// The sides of a map.
struct MapShape {
    std::size_t height = 0;
    std::size_t width = 0;
    std::size_t channels = 0;

    constexpr std::size_t pixels() const noexcept { return height * width; }
    constexpr std::size_t size() const noexcept { return pixels() * channels; }
};

/// Gathers each pixel's 3×3 neighbourhood into one row: `patches[row, (3 ky + kx) * C + c]` is the pixel at
/// (y + ky - 1, x + kx - 1), and 0 beyond the border. `patches` has 9 C columns. Throws `sluice::Error` when the sizes
/// do not fit.
template <class T, sluice::Backend B>
void gather_patches(sluice::BasicStreamRef<B> stream, SpanArgument<const T, B> maps, const MapShape& shape,
                    std::type_identity_t<Matrix<T, B>> patches);

/// The same from grey images of bytes, which are multiplied with `scale`.
template <class T, sluice::Backend B>
void gather_patches(sluice::BasicStreamRef<B> stream, SpanArgument<const std::uint8_t, B> images,
                    const MapShape& shape, float scale, std::type_identity_t<Matrix<T, B>> patches);

/// The gradient of the maps from that of the patches: each element adds up its nine copies, in order.
template <class T, sluice::Backend B>
void sum_patches(sluice::BasicStreamRef<B> stream, std::type_identity_t<Matrix<const T, B>> patch_gradients,
                 const MapShape& shape, SpanArgument<T, B> gradients);

/// 2×2 max pool, bias and ReLU: from `convolved`, maps of `shape`, to maps half as high and wide. NaN stays NaN.
template <class T, sluice::Backend B>
void pool_relu(sluice::BasicStreamRef<B> stream, SpanArgument<const T, B> convolved, const MapShape& shape,
               SpanArgument<const float, B> bias, SpanArgument<T, B> pooled);

/// The backward pass of the pool, in place: of each pool the greatest element of `convolved` (of equal ones the first)
/// becomes the pool's gradient, and the others 0. `shape` is that of `convolved`.
template <class T, sluice::Backend B>
void unpool_gradient(sluice::BasicStreamRef<B> stream, SpanArgument<const T, B> pooled_gradient,
                     const MapShape& shape, SpanArgument<T, B> convolved);

/// `to[i] = factor * from[i]`, rounded to the type of `to`.
template <class To, class From, sluice::Backend B>
void scaled_copy(sluice::BasicStreamRef<B> stream, SpanArgument<const From, B> from, float factor,
                 SpanArgument<To, B> to);

/// `padded[pixel, c] = pixels[pixel, c]`, rounded to the type of `padded`, and 0 in the channels that only `padded` has:
/// images with more channels than colours, which Tensor Cores take faster. Where `padded` has 4 or 8 channels, its address is
/// a multiple of a pixel's size, or of 16 bytes. Throws `sluice::Error` unless both have as many pixels, and `padded` as many
/// channels or more.
template <class To, class From, sluice::Backend B>
void pad_channels(sluice::BasicStreamRef<B> stream, std::type_identity_t<Matrix<const From, B>> pixels,
                  std::type_identity_t<Matrix<To, B>> padded);

/// The number of maps of `shape` that `elements` are. Throws `sluice::Error` unless they are whole ones.
inline std::size_t require_maps(const char* what, const MapShape& shape, std::size_t elements);

/// Throws `sluice::Error` unless a map can be pooled.
inline void require_even_sides(const char* what, const MapShape& shape);

// ---------------------------------------------------------------------------------------------------------------

inline std::size_t require_maps(const char* what, const MapShape& shape, std::size_t elements) {
    if (shape.size() == 0 || elements == 0 || elements % shape.size() != 0) [[unlikely]] {
        throw sluice::Error(std::string(what) + ": " + std::to_string(elements) +
                            " elements are no maps of " + std::to_string(shape.height) + " x " +
                            std::to_string(shape.width) + " pixels of " + std::to_string(shape.channels) +
                            " channels");
    }
    return elements / shape.size();
}

inline void require_even_sides(const char* what, const MapShape& shape) {
    if (shape.height % 2 != 0 || shape.width % 2 != 0) [[unlikely]] {
        throw sluice::Error(std::string(what) + ": a map of " + std::to_string(shape.height) + " x " +
                            std::to_string(shape.width) + " pixels cannot be pooled two by two");
    }
}

} // namespace nn
