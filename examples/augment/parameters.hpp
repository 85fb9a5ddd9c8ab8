/// \file
/// What is random about a sample's augmentation: drawn from counters, or given.
///
/// A number depends on (seed, epoch, sample, operation) alone: not on the batch that a sample is in, nor on its index
/// there, the backend, the schedule, or the thread that draws. Which samples a batch holds is read from device memory, so
/// that each replay of a captured graph draws for the samples that are there then.
#pragma once

#include <cmath>
#include <cstdint>
#include <limits>
#include <string>

#include <augment/detail/arithmetic.hpp>
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
    ParameterRanges ranges_{};
    bool drawn_ = false;
    [[maybe_unused]] bool unused_[7] = {}; // in place of padding, which captures would take for changes
};

/// Writes the parameters of each image of a batch of `table.size()`. Compiled into the library examples_augment.
template <sluice::Backend B>
void write_parameters(sluice::BasicStreamRef<B> stream, const ParameterSource<B>& source,
                      std::type_identity_t<sluice::DeviceSpan<SampleParameters, B>> table);

// ---------------------------------------------------------------------------------------------------------------

namespace detail {

inline void require_interval(const char* what, Interval interval) {
    if (!std::isfinite(interval.low) || !std::isfinite(interval.high) || interval.high < interval.low) {
        throw sluice::Error(std::string(what) + " from " + std::to_string(interval.low) + " to " +
                            std::to_string(interval.high) +
                            " was asked for; both must be finite, the first not above the second");
    }
}

inline void require_sigma(float sigma) {
    if (!(sigma > 0.0f) || !std::isfinite(sigma)) {
        throw sluice::Error("a blur of sigma " + std::to_string(sigma) +
                            " was asked for; sigma must be positive and finite");
    }
}

inline void require_crop(ImageShape image, int height, int width) {
    if (height < 1 || width < 1 || height > image.height || width > image.width) {
        throw sluice::Error("a crop of " + std::to_string(height) + "x" + std::to_string(width) +
                            " was asked for, from images of " + std::to_string(image.height) + "x" +
                            std::to_string(image.width) +
                            "; it must be at least 1x1 and no larger than they");
    }
}

SLUICE_HOST_DEVICE inline sluice::CountedRandom numbers(std::uint64_t seed, SampleId id,
                                                        DrawnOperation operation) {
    return sluice::CountedRandom({.seed = seed,
                                  .epoch = id.epoch,
                                  .sample = id.sample,
                                  .operation = static_cast<std::uint16_t>(operation)});
}

/// An interval of one number draws nothing.
SLUICE_HOST_DEVICE inline float draw_from(Interval interval, std::uint64_t seed, SampleId id,
                                          DrawnOperation operation) {
    if (interval.low == interval.high)
        return interval.low;
    const float width = sum(interval.high, -interval.low);
    return sum(interval.low, product(numbers(seed, id, operation).uniform(), width));
}

} // namespace detail

inline ParameterRanges with_crop(ParameterRanges ranges, ImageShape image, int height, int width) {
    detail::require_crop(image, height, width);
    ranges.last_top = image.height - height;
    ranges.last_left = image.width - width;
    return ranges;
}

inline void require_valid(const ParameterRanges& ranges) {
    if (ranges.last_top < 0 || ranges.last_left < 0) {
        throw sluice::Error("the last place of a crop is row " + std::to_string(ranges.last_top) +
                            ", column " + std::to_string(ranges.last_left) + "; neither may be negative");
    }
    detail::require_interval("an angle", ranges.angle_degrees);
    detail::require_interval("a sigma", ranges.sigma);
    detail::require_sigma(ranges.sigma.low);
    detail::require_interval("a brightness", ranges.brightness);
    detail::require_interval("a contrast", ranges.contrast);
    if (!(ranges.flip_probability >= 0.0f && ranges.flip_probability <= 1.0f)) {
        throw sluice::Error("a probability of " + std::to_string(ranges.flip_probability) +
                            " was given for flips; it must be between 0 and 1");
    }
}

SLUICE_HOST_DEVICE inline SampleParameters draw(const ParameterRanges& ranges, std::uint64_t seed,
                                                SampleId id) {
    SampleParameters result;
    if (ranges.last_top > 0 || ranges.last_left > 0) {
        sluice::CountedRandom random = detail::numbers(seed, id, DrawnOperation::crop);
        result.top = static_cast<std::int32_t>(random.below(static_cast<std::uint32_t>(ranges.last_top) + 1));
        result.left =
            static_cast<std::int32_t>(random.below(static_cast<std::uint32_t>(ranges.last_left) + 1));
    }
    result.angle_degrees = detail::draw_from(ranges.angle_degrees, seed, id, DrawnOperation::angle);
    result.sigma = detail::draw_from(ranges.sigma, seed, id, DrawnOperation::sigma);
    if (ranges.flip_probability > 0.0f) {
        const float number = detail::numbers(seed, id, DrawnOperation::flip).uniform();
        result.flip = number < ranges.flip_probability ? 1 : 0;
    }
    result.brightness = detail::draw_from(ranges.brightness, seed, id, DrawnOperation::brightness);
    result.contrast = detail::draw_from(ranges.contrast, seed, id, DrawnOperation::contrast);
    return result;
}

namespace detail {

inline std::uint32_t parameter_count(std::size_t count) {
    if (count > static_cast<std::size_t>(std::numeric_limits<int>::max()))
        throw sluice::Error(std::to_string(count) + " samples were given, more than a batch holds");
    return static_cast<std::uint32_t>(count);
}

} // namespace detail

template <sluice::Backend B>
ParameterSource<B>::ParameterSource(sluice::DeviceSpan<const SampleParameters, B> table)
    : data_(table.data()), size_(detail::parameter_count(table.size())) {}

template <sluice::Backend B>
ParameterSource<B>::ParameterSource(const ParameterRanges& ranges, std::uint64_t seed,
                                    sluice::DeviceSpan<const SampleId, B> ids)
    : data_(ids.data()), seed_(seed), size_(detail::parameter_count(ids.size())), ranges_(ranges),
      drawn_(true) {
    require_valid(ranges);
}

template <sluice::Backend B>
void ParameterSource<B>::require_count(int count) const {
    if (size_ != static_cast<std::uint32_t>(count) && !(drawn_ && size_ == 1)) {
        throw sluice::Error((drawn_ ? "sample ids for " : "sample parameters for ") +
                            detail::counted(size_, "image") + " were given for a batch of " +
                            std::to_string(count) + "; expected " + std::to_string(count) +
                            (drawn_ ? ", or the first one's alone" : ""));
    }
}

template <sluice::Backend B>
SLUICE_HOST_DEVICE SampleParameters ParameterSource<B>::operator[](int image) const {
    if (!drawn_)
        return static_cast<const SampleParameters*>(data_)[image];
    const SampleId* ids = static_cast<const SampleId*>(data_);
    SampleId id = size_ == 1 ? ids[0] : ids[image];
    if (size_ == 1)
        id.sample += static_cast<std::uint64_t>(image);
    return draw(ranges_, seed_, id);
}

} // namespace augment
