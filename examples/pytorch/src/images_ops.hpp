/// \file
/// The operators `sluice::augment` and `sluice::augment_parameters`, for whatever device `Run` computes on.
///
/// `Run::augment(images, chain, in, ids, parameters, out)` and `Run::parameters(like, ids, parameters, table)` enqueue the
/// work.
#pragma once

#include <cmath>

#include <augment/published.hpp>

#include "tensors.hpp"

namespace sluice_torch {

/// The chain of crop, resize, rotation, blur and normalisation, and what is drawn for it.
struct ImageChain {
    augment::PublishedOptions options;
    augment::ParameterRanges ranges;
    std::uint64_t seed;
};

/// What both operators take, in this order.
#define SLUICE_TORCH_RANGES                                                                                  \
    std::int64_t seed, std::int64_t crop_height, std::int64_t crop_width, double least_degrees,              \
        double most_degrees, double least_sigma, double most_sigma
#define SLUICE_TORCH_GIVEN_RANGES                                                                            \
    seed, crop_height, crop_width, least_degrees, most_degrees, least_sigma, most_sigma

inline int extent(const char* op, const char* name, std::int64_t value) {
    if (value < 1 || value > (1 << 20))
        refuse(op, std::string(name) + " is " + std::to_string(value) + ", expected 1 to 1048576");
    return static_cast<int>(value);
}

/// What numbers are drawn from, or an error that names it.
inline augment::Interval interval_of(const char* op, const char* name, double least, double most,
                                     bool positive) {
    const augment::Interval range{static_cast<float>(least), static_cast<float>(most)};
    if (!(std::isfinite(range.low) && std::isfinite(range.high) && range.low <= range.high &&
          (!positive || range.low > 0.0f))) {
        refuse(op, std::string(name) + " is (" + std::to_string(least) + ", " + std::to_string(most) +
                       "), expected two finite numbers" + (positive ? " above 0" : "") +
                       ", the first not above the second");
    }
    return range;
}

inline ImageChain chain_of(const char* op, augment::ImageShape image, SLUICE_TORCH_RANGES) {
    ImageChain chain;
    chain.seed = static_cast<std::uint64_t>(seed);
    chain.options.crop_height = extent(op, "the crop's height", crop_height);
    chain.options.crop_width = extent(op, "the crop's width", crop_width);
    if (chain.options.crop_height > image.height || chain.options.crop_width > image.width) {
        refuse(op, "crop is (" + std::to_string(crop_height) + ", " + std::to_string(crop_width) +
                       "), expected at most (" + std::to_string(image.height) + ", " +
                       std::to_string(image.width) + "), the images' height and width");
    }
    chain.ranges = augment::published_ranges(image, chain.options);
    chain.ranges.angle_degrees = interval_of(op, "degrees", least_degrees, most_degrees, false);
    chain.ranges.sigma = interval_of(op, "sigma", least_sigma, most_sigma, true);
    augment::require_valid(chain.ranges);
    return chain;
}

/// The samples of `count` images: [count, 2] or, for samples that follow each other, [1, 2], of numbers and epochs.
inline Tensor sample_ids(const char* op, const Tensor& ids, std::int64_t count) {
    static_assert(sizeof(augment::SampleId) == 2 * sizeof(std::int64_t));
    require_type(op, "samples", ids, ScalarType::Long);
    if (ids.dim() != 2 || ids.size(1) != 2 || (ids.size(0) != count && ids.size(0) != 1)) {
        refuse(op, "samples has shape " + text_of_shape(ids) + ", expected [" + std::to_string(count) +
                       ", 2], the number and the epoch of each sample, or [1, 2], those of the first");
    }
    return packed(ids, alignof(augment::SampleId));
}

/// Whether [N, C, H, W] lies in memory as [N, H, W, C], by the rule of PyTorch's `channels_last`.
inline bool is_interleaved(const Tensor& images) {
    if (images.is_contiguous())
        return false;
    std::int64_t expected = 1;
    for (const std::int64_t dimension : {1, 3, 2, 0}) {
        if (images.size(dimension) == 1)
            continue;
        if (images.stride(dimension) != expected)
            return false;
        expected *= images.size(dimension);
    }
    return true;
}

template <class Run>
Tensor augment_images(Tensor images, Tensor samples, SLUICE_TORCH_RANGES, std::int64_t height,
                      std::int64_t width, double fill, double mean, double deviation, ScalarType type) {
    constexpr const char* op = "augment";
    require_type(op, "images", images, ScalarType::Byte);
    if (images.dim() != 4)
        refuse(op,
               "images has shape " + text_of_shape(images) + ", expected [images, channels, height, width]");
    if (type != ScalarType::Float && type != ScalarType::Half)
        refuse(op, "the result is wanted in " + text_of(type) + ", expected float32 or float16");
    if (!(std::isfinite(deviation) && deviation != 0.0))
        refuse(op, "the deviation is " + std::to_string(deviation) + ", expected a number other than 0");
    if (!std::isfinite(mean))
        refuse(op, "the mean is " + std::to_string(mean) + ", expected a finite number");
    require_same_device(op, "samples", samples, "images", images);
    const augment::ImageShape shape{extent(op, "the number of channels", images.size(1)),
                                    extent(op, "the images' height", images.size(2)),
                                    extent(op, "the images' width", images.size(3))};
    ImageChain chain = chain_of(op, shape, SLUICE_TORCH_GIVEN_RANGES);
    chain.options.height = extent(op, "the result's height", height);
    chain.options.width = extent(op, "the result's width", width);
    chain.options.fill = static_cast<float>(fill);
    chain.options.normalize = {static_cast<float>(mean), static_cast<float>(deviation)};
    const Tensor ids = sample_ids(op, samples, images.size(0));
    const bool interleaved = is_interleaved(images);
    const Tensor held = interleaved ? images : torch::stable::contiguous(images);
    const std::vector<std::int64_t> shape_out{images.size(0), images.size(1), height, width};
    Tensor out = made(shape_out, type, [&] {
        return torch::stable::empty(shape_out, type, std::nullopt, images.device(), std::nullopt,
                                    interleaved ? torch::headeronly::MemoryFormat::ChannelsLast
                                                : torch::headeronly::MemoryFormat::Contiguous);
    });
    if (images.size(0) == 0)
        return out;
    const auto layout = interleaved ? augment::Layout::interleaved : augment::Layout::planar;
    if (type == ScalarType::Float) {
        Run::augment(held, chain, shape, layout, ids, static_cast<float*>(out.mutable_data_ptr()));
    } else {
        Run::augment(held, chain, shape, layout, ids, static_cast<nn::Half*>(out.mutable_data_ptr()));
    }
    return out;
}

template <class Run>
Tensor augment_parameters(Tensor samples, std::int64_t count, std::int64_t height, std::int64_t width,
                          SLUICE_TORCH_RANGES) {
    constexpr const char* op = "augment_parameters";
    if (count < 0 || count > 0x7FFFFFFF)
        refuse(op, "count is " + std::to_string(count) + ", expected 0 to 2147483647");
    const augment::ImageShape shape{1, extent(op, "the images' height", height),
                                    extent(op, "the images' width", width)};
    const ImageChain chain = chain_of(op, shape, SLUICE_TORCH_GIVEN_RANGES);
    const Tensor ids = sample_ids(op, samples, count);
    Tensor table = empty_on(samples, {count, 4}, ScalarType::Float);
    if (count > 0)
        Run::parameters(samples, chain, ids, static_cast<float*>(table.mutable_data_ptr()),
                        static_cast<int>(count));
    return table;
}

template <class Run>
void register_images(torch::stable::detail::StableLibrary& library) {
    library.impl("augment", TORCH_BOX(&augment_images<Run>));
    library.impl("augment_parameters", TORCH_BOX(&augment_parameters<Run>));
}

/// A row of the table of parameters: top, left, degrees, sigma.
SLUICE_HOST_DEVICE inline void put_parameters(float* row, const augment::SampleParameters& parameters) {
    row[0] = static_cast<float>(parameters.top);
    row[1] = static_cast<float>(parameters.left);
    row[2] = parameters.angle_degrees;
    row[3] = parameters.sigma;
}

} // namespace sluice_torch
