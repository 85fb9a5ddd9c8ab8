/// \file
/// What is random about a sample's augmentation: drawn from counters, or given.
///
/// A number depends on (seed, epoch, sample, operation) alone: not on the batch that a sample is in, nor on its index
/// there, the backend, the schedule, or the thread that draws. Which samples a batch holds is read from device memory, so
/// that each replay of a captured graph draws for the samples that are there then.
#pragma once

#include <cstdint>
#include <string>

#include <augment/images.hpp>
#include <sluice/backend/stream.hpp>
#include <sluice/memory/span.hpp>
#include <sluice/random/philox.hpp>

namespace augment {

/// What the operators of a chain do to one sample. Each operator reads the members that concern it.
struct SampleParameters {
    std::int32_t top =
        0; ///< the crop's first row; operators move one that does not fit to the nearest that does
    std::int32_t left = 0; ///< the crop's first column, likewise
    float angle_degrees =
        0.0f;                ///< counter-clockwise; all of the result is the fill for NaN, and from 1e15 on
    float sigma = 1.0f;      ///< of the blur, in pixels; the result is NaN unless it is positive
    std::int32_t flip = 0;   ///< not 0: mirror left and right
    float brightness = 1.0f; ///< a factor
    float contrast = 1.0f;   ///< a factor

    friend bool operator==(const SampleParameters&, const SampleParameters&) = default;
};

/// A sample's number in its data set, and the epoch it is drawn for.
struct SampleId {
    std::uint64_t sample = 0;
    std::uint32_t epoch = 0;
    std::uint32_t reserved = 0; ///< no meaning; there is no padding whose bytes would be undefined
};

/// An interval that numbers are uniform in: `low` and what lies between; `high` only by rounding.
struct Interval {
    float low = 0.0f;
    float high = 0.0f;
};

/// What is drawn for each sample. The defaults change nothing.
struct ParameterRanges {
    std::int32_t last_top = 0;  ///< tops are 0 … last_top, all alike
    std::int32_t last_left = 0; ///< lefts are 0 … last_left
    Interval angle_degrees{0.0f, 0.0f};
    Interval sigma{1.0f, 1.0f};
    float flip_probability = 0.0f;
    Interval brightness{1.0f, 1.0f};
    Interval contrast{1.0f, 1.0f};
};

/// The operation in a number's key, one for each kind of parameter.
enum class DrawnOperation : std::uint16_t {
    crop = 0,
    angle = 1,
    sigma = 2,
    flip = 3,
    brightness = 4,
    contrast = 5
};

/// `ranges`, with tops and lefts for a crop of `height` by `width` anywhere in an image. Throws `sluice::Error` for a crop
/// that is larger than the image.
ParameterRanges with_crop(ParameterRanges ranges, ImageShape image, int height, int width);

/// Throws `sluice::Error` for a range that is not finite or whose high is below its low, a sigma that may be 0 or less, a
/// probability outside of 0 … 1, or a negative last top or left.
void require_valid(const ParameterRanges& ranges);

/// The same for one sample's parameters.
void require_valid(const SampleParameters& parameters);

/// The parameters of one sample.
SLUICE_HOST_DEVICE inline SampleParameters draw(const ParameterRanges& ranges, std::uint64_t seed,
                                                SampleId id);

/// The source of a batch's parameters: a table, or a generator. Trivially copyable; owns nothing. It points to device
/// memory, which is read when the work runs, and again in each replay.
template <sluice::Backend B>
class ParameterSource {
public:
    /// Given: one for each image of the batch.
    ParameterSource(sluice::DeviceSpan<const SampleParameters, B> table);
    ParameterSource(sluice::DeviceSpan<SampleParameters, B> table)
        : ParameterSource(sluice::DeviceSpan<const SampleParameters, B>(table)) {}

    /// Drawn, for the samples `ids`: one for each image, or a single one, of the batch's first image, which consecutive
    /// ones follow. Throws `sluice::Error` where `require_valid(ranges)` does.
    ParameterSource(const ParameterRanges& ranges, std::uint64_t seed,
                    sluice::DeviceSpan<const SampleId, B> ids);
    ParameterSource(const ParameterRanges& ranges, std::uint64_t seed, sluice::DeviceSpan<SampleId, B> ids)
        : ParameterSource(ranges, seed, sluice::DeviceSpan<const SampleId, B>(ids)) {}

    /// Throws `sluice::Error`, unless there are parameters for exactly `count` images.
    void require_count(int count) const;

    /// Reads device memory: in kernels (and in Host tasks) only.
    SLUICE_HOST_DEVICE SampleParameters operator[](int image) const;

private:
    // Kept small, so that a host stream's task holds it without the heap.
    const void* data_ = nullptr; ///< SampleParameters, or SampleId where they are drawn
    std::uint64_t seed_ = 0;
    std::uint32_t size_ = 0;
    bool drawn_ = false;
    ParameterRanges ranges_{};
};

/// Writes the parameters of each image of a batch of `table.size()`. Compiled into the library examples_augment.
template <sluice::Backend B>
void write_parameters(sluice::BasicStreamRef<B> stream, const ParameterSource<B>& source,
                      std::type_identity_t<sluice::DeviceSpan<SampleParameters, B>> table);

} // namespace augment

#include <augment/detail/parameters.inl>
