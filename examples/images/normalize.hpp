/// \file
/// From bytes to numbers: `(byte / 255 - mean) / deviation`.
#pragma once

#include <cstdint>
#include <string>
#include <type_traits>

#include <augment/detail/arithmetic.hpp>
#include <augment/images.hpp>
#include <sluice/backend/error.hpp>
#include <sluice/backend/stream.hpp>

namespace images {

using augment::Images;
using augment::ImageShape;
using augment::Layout;

/// What bytes become, the same for all channels. It is computed as `byte * scale + offset` in float32, the product and the
/// sum each rounded, on every backend: for mean and deviation 0.5 within 1.5e-7 of the exact value. 16-bit numbers are that,
/// rounded.
class Normalize {
public:
    /// To [-1, 1].
    Normalize() : Normalize(0.5f, 0.5f) {}
    /// Throws `sluice::Error` unless `deviation` is above 0.
    Normalize(float mean, float deviation);

    SLUICE_HOST_DEVICE float operator()(float byte) const {
        return augment::detail::sum(augment::detail::product(byte, scale_), offset_);
    }

private:
    float scale_;
    float offset_;
};

/// Enqueues `out[i] = normalize(in[i])`. `Out` is float or `nn::Half`. The layouts are the same, or interleaved becomes
/// planar. Interleaved images may become ones of more channels, which convolutions on Tensor Cores read faster: those behind are
/// 0. Allocates nothing and does not wait, so it can be captured. Throws `sluice::Error` for other layouts, and where counts or
/// sides differ. `out` may not overlap `in`.
template <sluice::Backend B, class Out>
void normalize(sluice::BasicStreamRef<B> stream, const Normalize& normalize,
               std::type_identity_t<Images<const std::uint8_t, B>> in, Images<Out, B> out);

namespace detail {

/// Throws `sluice::Error` unless `normalize` can make `out` of `in`.
template <class Out, sluice::Backend B>
void require_normalizable(const Images<const std::uint8_t, B>& in, const Images<Out, B>& out);

} // namespace detail

// ---------------------------------------------------------------------------------------------------------------

inline Normalize::Normalize(float mean, float deviation) {
    if (!(deviation > 0.0f)) {
        throw sluice::Error("images are to be normalised with a deviation of " + std::to_string(deviation) +
                            "; it must be above 0");
    }
    scale_ = static_cast<float>(1.0 / (255.0 * static_cast<double>(deviation)));
    offset_ = static_cast<float>(-static_cast<double>(mean) / static_cast<double>(deviation));
}

template <class Out, sluice::Backend B>
void detail::require_normalizable(const Images<const std::uint8_t, B>& in, const Images<Out, B>& out) {
    static_assert(std::is_same_v<Out, float> || std::is_same_v<Out, nn::Half>,
                  "images::normalize: the results are float or nn::Half");
    const bool is_padded = in.layout() == Layout::interleaved && out.layout() == Layout::interleaved &&
                           in.shape().channels < out.shape().channels;
    const ImageShape expected{is_padded ? out.shape().channels : in.shape().channels, in.shape().height,
                              in.shape().width};
    if (!(out.shape() == expected) || in.count() != out.count()) {
        throw sluice::Error("normalising " + augment::detail::counted(in.count(), "image") + " of " +
                            augment::detail::text_of(in.shape()) + " gives as many of the same shape, not " +
                            std::to_string(out.count()) + " of " + augment::detail::text_of(out.shape()));
    }
    if (in.layout() != out.layout() && in.layout() == Layout::planar)
        throw sluice::Error("normalising planar images gives planar images, not interleaved ones");
}

} // namespace images
