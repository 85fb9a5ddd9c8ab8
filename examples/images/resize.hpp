/// \file
/// Resizing RGB images of bytes exactly as Pillow's `Image.resize(size, BILINEAR)`: along rows first, rounded to bytes, then
/// along columns. On the calling thread, for the workers of a source, and in the order of a stream.
///
/// What comes out has the bytes that Pillow gives, on every backend, or those bytes normalised.
#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>
#include <vector>

#include <images/axis_weights.hpp>
#include <images/normalize.hpp>
#include <sluice/memory/buffer.hpp>

namespace images {

/// The weights for images of one shape. May be shared by threads.
class BilinearWeights {
public:
    /// Throws `sluice::Error` unless images have three channels, and for sides of 0 or above 2^20.
    BilinearWeights(ImageShape from, int height, int width);

    ImageShape from() const { return from_; }
    ImageShape to() const { return {from_.channels, down_.out, across_.out}; }
    const AxisWeights& down() const { return down_; }
    const AxisWeights& across() const { return across_; }

private:
    ImageShape from_;
    AxisWeights down_;
    AxisWeights across_;
};

/// What a thread keeps while it resizes: one for each. Grows with the first image.
struct ResizeScratch {
    static constexpr std::size_t lanes = 32; ///< numbers that are computed at a time

    std::vector<std::uint8_t> rows;     ///< the image, resized along rows
    std::vector<std::uint8_t> finished; ///< one row of the result
    std::vector<std::int32_t> sums;     ///< of one row of the result
    // Of what is blended: the first input, and the difference to the second.
    std::vector<std::int16_t> pixel_from; ///< of a row of the image
    std::vector<std::int16_t> pixel_step;
    std::vector<std::int16_t> from; ///< of a row of the result
    std::vector<std::int16_t> step;
    std::vector<std::int16_t> row_weights; ///< of the numbers of a row
    std::int16_t weights[lanes] = {};      ///< of a row between two: all are the same
};

/// Resizes one image on the calling thread. `in` is interleaved; `out` has the shape `weights.to()` in the given layout.
/// `Out` is `std::uint8_t`, for which `normalize` does not count, float or `nn::Half`. `out` may not overlap `in`.
template <class Out>
void resize_image(const BilinearWeights& weights, ResizeScratch& scratch, const std::uint8_t* in, Out* out,
                  Layout layout = Layout::interleaved, const Normalize& normalize = {});

/// The weights on the device that was current when it was made.
template <sluice::Backend B>
class Resize {
public:
    /// Copies the weights, and waits for that. Throws `sluice::Error` when there is no memory.
    explicit Resize(const BilinearWeights& weights);

    const BilinearWeights& weights() const { return weights_; }
    /// A `detail::AxisTable` down, then one across. Empty on the CPU.
    const sluice::DeviceBuffer<std::int32_t, B>& tables() const { return tables_; }

private:
    BilinearWeights weights_;
    sluice::DeviceBuffer<std::int32_t, B> tables_;
};

/// Enqueues the resizing of a batch, in one kernel. `in` is interleaved, of the shape `resize.weights().from()`, `out` of
/// the shape `to()` in either layout. `Out` is `std::uint8_t`, for which `normalize` does not count, float or `nn::Half`.
/// `resize` must live until the work is done. Does not wait, nor allocate on a device, so it can be captured. Throws
/// `sluice::Error` where counts, shapes or the input's layout do not fit, and for a launch that fails. `out` may not overlap
/// `in`.
template <sluice::Backend B, class Out>
void resize(sluice::BasicStreamRef<B> stream, const Resize<B>& resize,
            std::type_identity_t<Images<const std::uint8_t, B>> in, Images<Out, B> out,
            const Normalize& normalize = {});

namespace detail {

/// Throws `sluice::Error` unless a resize with `weights` makes `out` of `in`.
template <class Out, sluice::Backend B>
void require_resizable(const BilinearWeights& weights, const Images<const std::uint8_t, B>& in,
                       const Images<Out, B>& out);

} // namespace detail

} // namespace images

#include <images/detail/resize.inl>
