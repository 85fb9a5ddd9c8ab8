/// \file
/// The operators that change values: scale, normalise, brightness and contrast, which take one value each, and the Gaussian
/// blur, which takes neighbours.
///
/// Converting needs no operator: arithmetic is in float, whatever a chain reads, and is rounded to what it writes.
#pragma once

#include <cmath>
#include <initializer_list>
#include <span>

#include <augment/operators/geometry.hpp>

namespace augment {

/// Multiplies: 1 / 255.0f turns bytes into 0 … 1, and 255 back.
struct Scale {
    float factor = 1.0f;

    static constexpr OperatorKind kind = OperatorKind::value;
    using Prepared = Scale;
    ImageShape output_shape(ImageShape in) const { return in; }
    SLUICE_HOST_DEVICE ImageShape shape_after(ImageShape in) const { return in; }
    SLUICE_HOST_DEVICE Prepared prepare(const SampleParameters&, ImageShape) const { return *this; }
    SLUICE_HOST_DEVICE static float value(const Prepared& p, float value, int) { return value * p.factor; }
};

/// Subtracts a mean, then divides by a standard deviation: one of each for all channels, or for each of up to 4.
class Normalize {
public:
    static constexpr int most_channels = 4;

    /// Throws `sluice::Error` unless there are as many means as deviations, 1 to 4, all finite, no deviation 0.
    Normalize(std::span<const float> mean, std::span<const float> deviation);
    Normalize(std::initializer_list<float> mean, std::initializer_list<float> deviation)
        : Normalize(std::span<const float>(mean.begin(), mean.size()),
                    std::span<const float>(deviation.begin(), deviation.size())) {}
    Normalize(float mean, float deviation) : Normalize({mean}, {deviation}) {}

    static constexpr OperatorKind kind = OperatorKind::value;
    struct Prepared {
        float factor[most_channels]; ///< 1 / deviation
        float offset[most_channels]; ///< -mean / deviation
    };
    /// Throws `sluice::Error` unless the channels are as many as the means, or the mean is one for all.
    ImageShape output_shape(ImageShape in) const;
    SLUICE_HOST_DEVICE ImageShape shape_after(ImageShape in) const { return in; }
    SLUICE_HOST_DEVICE Prepared prepare(const SampleParameters&, ImageShape) const { return prepared_; }
    SLUICE_HOST_DEVICE static float value(const Prepared& p, float value, int channel) {
        const int c = channel % most_channels; // one mean for all is there for each
        return value * p.factor[c] + p.offset[c];
    }

private:
    Prepared prepared_{};
    int channels_;
};

/// Multiplies by the sample's brightness.
struct Brightness {
    static constexpr OperatorKind kind = OperatorKind::value;
    struct Prepared {
        float factor;
    };
    ImageShape output_shape(ImageShape in) const { return in; }
    SLUICE_HOST_DEVICE ImageShape shape_after(ImageShape in) const { return in; }
    SLUICE_HOST_DEVICE Prepared prepare(const SampleParameters& parameters, ImageShape) const {
        return {parameters.brightness};
    }
    SLUICE_HOST_DEVICE static float value(const Prepared& p, float value, int) { return value * p.factor; }
};

/// Multiplies the distance from `pivot` by the sample's contrast. The pivot is fixed, the middle of bytes by default; it is
/// not the mean of each image, which would take a pass over the image first.
struct Contrast {
    float pivot = 127.5f;

    static constexpr OperatorKind kind = OperatorKind::value;
    struct Prepared {
        float factor;
        float pivot;
    };
    ImageShape output_shape(ImageShape in) const { return in; }
    SLUICE_HOST_DEVICE ImageShape shape_after(ImageShape in) const { return in; }
    SLUICE_HOST_DEVICE Prepared prepare(const SampleParameters& parameters, ImageShape) const {
        return {parameters.contrast, pivot};
    }
    SLUICE_HOST_DEVICE static float value(const Prepared& p, float value, int) {
        return (value - p.pivot) * p.factor + p.pivot;
    }
};

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

inline Normalize::Normalize(std::span<const float> mean, std::span<const float> deviation)
    : channels_(static_cast<int>(mean.size())) {
    if (mean.size() != deviation.size() || mean.empty() || mean.size() > most_channels) {
        throw sluice::Error("a normalisation with " + detail::counted(mean.size(), "mean") + " and " +
                            detail::counted(deviation.size(), "standard deviation") +
                            " was asked for; expected as many of both, 1 to 4");
    }
    for (std::size_t i = 0; i < most_channels; ++i) {
        const std::size_t c = i % mean.size();
        if (!std::isfinite(mean[c]) || !std::isfinite(deviation[c]) || deviation[c] == 0.0f) {
            throw sluice::Error("a normalisation with mean " + std::to_string(mean[c]) +
                                " and standard deviation " + std::to_string(deviation[c]) +
                                " was asked for; both must be finite, the deviation not 0");
        }
        prepared_.factor[i] = 1.0f / deviation[c];
        prepared_.offset[i] = -mean[c] / deviation[c];
    }
}

inline ImageShape Normalize::output_shape(ImageShape in) const {
    if (channels_ != 1 && channels_ != in.channels) {
        throw sluice::Error("a normalisation for " + detail::counted(channels_, "channel") +
                            " was given images of " + std::to_string(in.channels));
    }
    return in;
}

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
