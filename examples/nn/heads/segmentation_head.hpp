/// \file
/// The end of a decoder in one kernel, on a device: the last transposed 2×2 convolution with its ReLU, the 3×3
/// convolution to the classes, the loss or the prediction, and all gradients of both layers.
///
/// Nothing of an image's full size but labels or predictions is read or written: a block keeps the maps of its tile
/// on chip, with a border that it computes twice.
///
/// What is in device memory is float32, and so are all sums. What is on chip, the factors of the products, is float16,
/// rounded to nearest: it has TF32's ten bits of mantissa, but a shorter range, which is guarded so:
///
/// - `in`, weights and maps beyond 65,504 become infinite, and then the loss is NaN, or gradients are not finite. A
///   network that gets there has diverged.
/// - What is below 6.1e-5, float16's least normal number, is rounded to a multiple of 6.0e-8. An activation that this
///   makes 0 counts as one that is not positive.
/// - Gradients are kept as those of one pixel's loss, times 64: what a softmax gives is in the range whatever the number
///   of pixels is, and keeps its bits down to 9.5e-7. A gradient of the map beyond 1,023 times a pixel's share of the
///   loss, for which the last weights have to be some hundred, is infinite.
///
/// NaN that comes in comes out.
#pragma once

#include <cstddef>
#include <cstdint>

#include <nn/gemm/gemm.hpp>
#include <nn/gemm/matrix.hpp>
#include <sluice/backend/stream.hpp>

namespace nn {

/// Whether the kernels take maps of `inputs` channels, which become `channels` and then `classes`.
constexpr bool supports_segmentation_head(std::size_t inputs, std::size_t channels, std::size_t classes) {
    return inputs == 32 && channels == 16 && classes >= 1 && classes <= 16;
}

/// Whether a backend has the kernels for a precision.
template <sluice::Backend B>
constexpr bool has_segmentation_head(Precision) {
    return false;
}

/// The images as the kernels see them: their order of pixels (see MortonOrder) and their sides.
struct SegmentationHeadShape {
    std::size_t height = 0; ///< of labels; even
    std::size_t width = 0;
    std::size_t levels = 0; ///< of the order of the labels' pixels; at least 1
    std::size_t images = 0;
};

/// The weights of both layers as LayerShape lays them out: `up` [32, 4 * 16] with its bias repeated four times,
/// `last` [9 * 16, classes].
template <class T, sluice::Backend B>
struct SegmentationHeadWeights {
    Matrix<T, B> up;
    sluice::DeviceSpan<T, B> up_bias;
    Matrix<T, B> last;
    sluice::DeviceSpan<T, B> last_bias;
};

/// Whether the present device has the shared memory that a block takes, 163 KiB. Throws `sluice::Error`.
bool segmentation_head_fits();

/// The blocks that the present device runs at a time. Throws `sluice::Error`.
std::size_t segmentation_head_blocks();

/// The elements of scratch memory that `blocks` blocks need.
std::size_t segmentation_head_scratch(std::size_t blocks);

#if SLUICE_HAS_CUDA
template <>
constexpr bool has_segmentation_head<sluice::Cuda>(Precision precision) {
    return precision == Precision::tf32;
}

/// Gradients of the mean softmax cross-entropy, as `softmax_cross_entropy` defines it, over all pixels of `labels`
/// [N, H, W]. `in_gradient` is that of `in` [N H/2 W/2, 32], 0 where `in`, which comes out of a ReLU, is not positive;
/// an empty one is not computed. The partial sums of the loss and of the weights' gradients are left in `partial_sums`, of
/// `segmentation_head_scratch` elements. Throws `sluice::Error` when sizes do not fit, or `in` is not aligned to 16 bytes, or
/// `in_gradient` to 8.
void segmentation_head_gradients(sluice::CudaStreamRef stream, const SegmentationHeadShape& shape,
                                 const SegmentationHeadWeights<const float, sluice::Cuda>& weights,
                                 Matrix<const float, sluice::Cuda> in,
                                 sluice::DeviceSpan<const std::uint8_t, sluice::Cuda> labels,
                                 sluice::DeviceSpan<float, sluice::Cuda> in_gradient,
                                 sluice::DeviceSpan<float, sluice::Cuda> partial_sums, std::size_t blocks);

/// Adds up what `segmentation_head_gradients` left, in a fixed order: one step of gradient descent for the weights, with the rate
/// of `factors` (see `descent_factors`), and the mean loss into the one element of `loss`.
void segmentation_head_update(sluice::CudaStreamRef stream, const SegmentationHeadShape& shape,
                              const SegmentationHeadWeights<float, sluice::Cuda>& weights,
                              sluice::DeviceSpan<const float, sluice::Cuda> partial_sums, std::size_t blocks,
                              sluice::DeviceSpan<const float, sluice::Cuda> factors,
                              sluice::DeviceSpan<float, sluice::Cuda> loss);

/// The most likely class of each pixel [N, H, W].
void segmentation_head_predict(sluice::CudaStreamRef stream, const SegmentationHeadShape& shape,
                               const SegmentationHeadWeights<const float, sluice::Cuda>& weights,
                               Matrix<const float, sluice::Cuda> in,
                               sluice::DeviceSpan<std::uint8_t, sluice::Cuda> predictions,
                               std::size_t blocks);
#endif

} // namespace nn
