/// \file
/// The Gaussian blur.
#pragma once

#include <augment/operators/geometry.hpp>

namespace augment {

/// Blurs with `Size` x `Size` weights exp(-(x² + y²) / 2 sigma²), normalised, with the sample's sigma; beyond its edges the
/// image is reflected, the edge itself not repeated. One along the columns, then one along the rows.
template <int Size>
struct Blur {
    static_assert(Size > 0 && Size % 2 == 1,
                  "augment::Blur: the size must be odd and positive, such as Blur<7>");

    static constexpr OperatorKind kind = OperatorKind::blur;
    static constexpr int half = Size / 2;
    struct Prepared {
        float weight[static_cast<std::size_t>(
            Size > 0 ? Size / 2 + 1 : 1)]; ///< at distance 0, 1, …; all NaN where sigma is not positive
    };
    /// Throws `sluice::Error` for an image that is too small to be reflected: height and width must be above Size / 2.
    ImageShape output_shape(ImageShape in) const;
    SLUICE_HOST_DEVICE ImageShape shape_after(ImageShape in) const { return in; }
    SLUICE_HOST_DEVICE Prepared prepare(const SampleParameters& parameters, ImageShape in) const;
};

namespace detail {

/// Where row or column `i` of a reflected image comes from; -size < i < 2 size - 1.
SLUICE_HOST_DEVICE inline int reflected(int i, int size) {
    i = i < 0 ? -i : i;
    const int other = 2 * (size - 1) - i;
    return i < other ? i : other;
}

} // namespace detail

// ---------------------------------------------------------------------------------------------------------------

template <int Size>
ImageShape Blur<Size>::output_shape(ImageShape in) const {
    if (in.height <= half || in.width <= half) {
        throw sluice::Error("a blur of " + std::to_string(Size) + "x" + std::to_string(Size) +
                            " was asked for on images of " + std::to_string(in.height) + "x" +
                            std::to_string(in.width) +
                            ", which cannot be reflected so far; they must be larger "
                            "than " +
                            std::to_string(half) + "x" + std::to_string(half));
    }
    return in;
}

template <int Size>
SLUICE_HOST_DEVICE typename Blur<Size>::Prepared Blur<Size>::prepare(const SampleParameters& parameters,
                                                                     ImageShape) const {
    // Not the squares' quotient, which a small sigma would carry out of range; a sigma that is too small for its inverse
    // to be finite leaves distance 0 alone as well.
    const bool valid = parameters.sigma > 0.0f;
    const float inverse = parameters.sigma > 1e-30f ? 1.0f / parameters.sigma : 1e30f;
    Prepared result;
    float total = 0.0f;
    for (int i = half; i >= 0; --i) {
        float distance = detail::product(static_cast<float>(i), inverse);
        distance = distance < 1e6f ? distance : 1e6f;
        result.weight[i] = detail::exponential(detail::product(-0.5f, detail::product(distance, distance)));
        total = detail::sum(total, i == 0 ? result.weight[i] : detail::product(2.0f, result.weight[i]));
    }
    for (int i = 0; i <= half; ++i)
        result.weight[i] = valid ? result.weight[i] / total : detail::float_of(0x7FC00000);
    return result;
}

} // namespace augment
