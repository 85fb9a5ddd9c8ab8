/// \file
/// The operators on single values: scale, normalise, brightness and contrast.
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

// ---------------------------------------------------------------------------------------------------------------

inline Normalize::Normalize(std::span<const float> mean, std::span<const float> deviation)
    : channels_(static_cast<int>(mean.size())) {
    if (mean.size() != deviation.size() || mean.empty() || mean.size() > most_channels) {
        throw sluice::Error("a normalisation with " + std::to_string(mean.size()) + " means and " +
                            std::to_string(deviation.size()) +
                            " standard deviations was asked for; expected as many of both, 1 to 4");
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
        throw sluice::Error("a normalisation for " + std::to_string(channels_) +
                            " channels was given images of " + std::to_string(in.channels));
    }
    return in;
}

} // namespace augment
