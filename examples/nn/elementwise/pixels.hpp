/// \file
/// The operators that map rows to pixels: images to rows, and 3×3 neighbourhoods.
///
/// `raster_of_row` and `neighbours` are MortonOrder's tables in device memory; images follow one another.
#pragma once

#include <cstdint>

#include <nn/gemm/matrix.hpp>
#include <sluice/backend/stream.hpp>

namespace nn {

/// `rows[pixel, channel] = scale * images[image, channel, y, x]`: from planar images [N, C, H, W] to a row per pixel
/// [N H W, C]. Throws `sluice::Error` unless both hold the same number of whole images.
template <sluice::Backend B>
void rows_from_images(sluice::BasicStreamRef<B> stream, SpanArgument<const std::uint8_t, B> images,
                      SpanArgument<const std::int32_t, B> raster_of_row, float scale, MatrixArgument<B> rows);
template <sluice::Backend B>
void rows_from_images(sluice::BasicStreamRef<B> stream, SpanArgument<const float, B> images,
                      SpanArgument<const std::int32_t, B> raster_of_row, float scale, MatrixArgument<B> rows);

/// Gathers each row's 3×3 neighbourhood into one row: from [N H W, C] to [N H W, 9 C], with
/// `gathered[row, (3 ky + kx) * C + c]` the pixel at (y + ky - 1, x + kx - 1), and 0 beyond the border.
template <sluice::Backend B>
void gather_neighbours(sluice::BasicStreamRef<B> stream, ConstMatrixArgument<B> rows,
                       SpanArgument<const std::int32_t, B> neighbours, MatrixArgument<B> gathered);

} // namespace nn
