/// \file
/// The first layers of an encoder, near the image, where maps are large and channels few; TF32, on a device.
///
/// Forward: from planar images [N, 3, H, W] through a 1×1 convolution to 16 channels and two 2×2 convolutions of stride
/// 2, to 32 and to 64 channels, a ReLU after each, in one kernel. The largest map, of 16 channels, is never written; the
/// map of 32 only on request. Backward: one kernel for the first two of these layers, which recomputes the map of 16
/// channels from the images, and one that adds up and updates.
///
/// Maps have their rows in the order of MortonOrder, of which `raster_of_row` is the table. Operands of products
/// are rounded or truncated to TF32, sums are float32. The same bits in every run on the same kind of machine.
#pragma once

#include <cstddef>
#include <cstdint>

#include <nn/core/float16.hpp>
#include <nn/gemm/matrix.hpp>
#include <sluice/backend/stream.hpp>

namespace nn {

/// The channels that the kernels are written for: of an image, then after each of the three layers.
inline constexpr std::size_t stem_channels[] = {3, 16, 32, 64};

/// Whether a backend has these kernels.
template <sluice::Backend B>
inline constexpr bool has_stem = false;

/// A layer's weights (see LayerShape) and its bias.
template <sluice::Backend B>
struct StemLayer {
    Matrix<const float, B> weights;
    sluice::DeviceSpan<const float, B> bias;
};

/// The same, writable.
template <sluice::Backend B>
struct StemUpdate {
    Matrix<float, B> weights;
    sluice::DeviceSpan<float, B> bias;
};

/// The elements of scratch memory that `stem_backward` needs on the current device.
std::size_t stem_backward_scratch();

#if SLUICE_HAS_CUDA
template <>
inline constexpr bool has_stem<sluice::Cuda> = true;

/// From images, whose numbers are multiplied with `scale`, to `second` [N H W / 16, 64], which is the output of the last
/// of the three `layers`; and, unless it is empty, to `first` [N H W / 4, 32], the output of the second. Both sides of
/// an image are multiples of 4. `Pixel` is std::uint8_t or float; `Out` is float, or, without `first`, Bfloat16, rounded
/// once its sums are complete. Throws `sluice::Error` when a size does not fit, or a map is not aligned to 16 bytes.
template <class Pixel, class Out>
void stem_forward(sluice::CudaStreamRef stream, sluice::DeviceSpan<const Pixel, sluice::Cuda> images,
                  sluice::DeviceSpan<const std::int32_t, sluice::Cuda> raster_of_row, std::size_t width,
                  float scale, const StemLayer<sluice::Cuda> (&layers)[3],
                  sluice::DeviceSpan<float, sluice::Cuda> first, Matrix<Out, sluice::Cuda> second);

/// One step of gradient descent for the first two layers, with the rate of `factors` (see `descent_factors`), from the
/// gradient [N H W / 4, 32] of the second one's output `first`, after its ReLU. Squares of 8×8 pixels follow one another
/// in the order of pixels. Throws `sluice::Error` when a size does not fit, or a map is not aligned to 16 bytes.
template <class Pixel>
void stem_backward(sluice::CudaStreamRef stream, sluice::DeviceSpan<const Pixel, sluice::Cuda> images,
                   sluice::DeviceSpan<const std::int32_t, sluice::Cuda> raster_of_row, std::size_t width,
                   float scale, const StemUpdate<sluice::Cuda> (&layers)[2],
                   sluice::DeviceSpan<const float, sluice::Cuda> first,
                   Matrix<const float, sluice::Cuda> first_gradient,
                   sluice::DeviceSpan<const float, sluice::Cuda> factors,
                   sluice::DeviceSpan<float, sluice::Cuda> scratch);
#endif

} // namespace nn
