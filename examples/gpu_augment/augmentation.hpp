/// \file
/// What is done to the images: the published chain for random ones and photographs, a gentler one for digits; and that on
/// whole batches, on a stream or on a worker's own thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <type_traits>
#include <variant>

#include <augment/apply.hpp>
#include <augment/published.hpp>
#include <sluice/sluice.hpp>

namespace gpu_augment {

enum class ChainName : std::uint8_t {
    published,    ///< crop, enlarge, turn, blur, normalise
    digits,       ///< the same, so little that every digit can still be told
    plain_digits, ///< that with nothing random: the middle, as large and in the same range of numbers
};

using DigitChain = augment::Chain<augment::Crop, augment::Resize, augment::Rotate<augment::Bilinear>,
                                  augment::Blur<3>, augment::Contrast, augment::Normalize>;

/// The crop that is in the middle, whatever was drawn.
struct MiddleCrop : augment::Crop {
    SLUICE_HOST_DEVICE Prepared prepare(const augment::SampleParameters& /*drawn*/,
                                        augment::ImageShape in) const {
        return {(in.height - height) / 2, (in.width - width) / 2};
    }
};
using PlainDigitChain = augment::Chain<MiddleCrop, augment::Resize, augment::Normalize>;

/// A chain, and what is drawn for its samples.
struct ChosenChain {
    std::variant<augment::PublishedChain, DigitChain, PlainDigitChain> chain;
    augment::ParameterRanges ranges;
};

namespace detail {

// Of the digits' canvases, all channels together.
inline constexpr float mean = 40.0f;
inline constexpr float deviation = 55.0f;

// Of a canvas's side, what a crop shows. A digit is that large, so one that is not in the middle loses an edge.
constexpr int cropped_side(int side) { return side * 7 / 8; }

inline ChosenChain choose_published(augment::ImageShape shape) {
    augment::PublishedOptions options;
    options.height = shape.height;
    options.width = shape.width;
    options.crop_height = (shape.height + 1) / 2;
    options.crop_width = (shape.width + 1) / 2;
    return {augment::published_chain(options), augment::published_ranges(shape, options)};
}

inline ChosenChain choose_digits(augment::ImageShape shape) {
    const int height = cropped_side(shape.height);
    const int width = cropped_side(shape.width);
    augment::ParameterRanges ranges;
    ranges.angle_degrees = {-12.0f, 12.0f};
    ranges.sigma = {0.1f, 0.8f};
    ranges.contrast = {0.75f, 1.25f};
    return {DigitChain{augment::Crop{height, width}, augment::Resize{shape.height, shape.width},
                       augment::Rotate<augment::Bilinear>{}, augment::Blur<3>{}, augment::Contrast{mean},
                       augment::Normalize{mean, deviation}},
            augment::with_crop(ranges, shape, height, width)};
}

inline ChosenChain choose(ChainName name, augment::ImageShape shape) {
    switch (name) {
    case ChainName::digits:
        return choose_digits(shape);
    case ChainName::plain_digits:
        return {PlainDigitChain{MiddleCrop{{cropped_side(shape.height), cropped_side(shape.width)}},
                                augment::Resize{shape.height, shape.width},
                                augment::Normalize{mean, deviation}},
                {}};
    case ChainName::published:
        break;
    }
    return choose_published(shape);
}

} // namespace detail

/// The chain for images of three planes of this size, which stay of this size. Throws `sluice::Error` for images that are
/// too small for it.
inline ChosenChain choose_chain(ChainName name, std::size_t height, std::size_t width) {
    const augment::ImageShape shape{3, static_cast<int>(height), static_cast<int>(width)};
    ChosenChain chosen = detail::choose(name, shape);
    std::visit([&](const auto& chain) { (void)chain.output_shape(shape); }, chosen.chain);
    return chosen;
}

} // namespace gpu_augment

// augmentation_host.cpp and augmentation_cuda.cu instantiate `apply` for the chains for digits.
namespace augment {

extern template void apply(sluice::HostStreamRef, const gpu_augment::DigitChain&,
                           Images<const std::uint8_t, sluice::Host>, ParameterSource<sluice::Host>,
                           Images<float, sluice::Host>);
extern template void apply(sluice::HostStreamRef, const gpu_augment::PlainDigitChain&,
                           Images<const std::uint8_t, sluice::Host>, ParameterSource<sluice::Host>,
                           Images<float, sluice::Host>);
extern template void apply(const gpu_augment::DigitChain&, Images<const std::uint8_t, sluice::Host>,
                           ParameterSource<sluice::Host>, Images<float, sluice::Host>);
extern template void apply(const gpu_augment::PlainDigitChain&, Images<const std::uint8_t, sluice::Host>,
                           ParameterSource<sluice::Host>, Images<float, sluice::Host>);

} // namespace augment

namespace gpu_augment {

/// A chain for batches of images of three planes, with parameters that are drawn anew for each sample of each epoch.
class BatchAugmentation {
public:
    /// Throws `sluice::Error` for images that are too small for the chain.
    BatchAugmentation(ChainName name, std::size_t height, std::size_t width, std::uint64_t seed)
        : chosen_(choose_chain(name, height, width)), shape_{3, static_cast<int>(height),
                                                             static_cast<int>(width)},
          seed_(seed) {}

    /// Enqueues the augmentation of `images`. Nothing but memory is read when the stream gets there, so a replay of it
    /// augments the images and samples that are there then.
    template <sluice::Backend B>
    void run(sluice::BasicStreamRef<B> stream,
             std::type_identity_t<sluice::DeviceSpan<const std::uint8_t, B>> images,
             std::type_identity_t<sluice::DeviceSpan<const augment::SampleId, B>> samples,
             std::type_identity_t<sluice::DeviceSpan<float, B>> out) const {
        const augment::Images<const std::uint8_t, B> in(images, shape_);
        const augment::ParameterSource<B> parameters(chosen_.ranges, seed_, samples);
        const augment::Images<float, B> result(out, shape_);
        std::visit([&](const auto& chain) { augment::apply(stream, chain, in, parameters, result); },
                   chosen_.chain);
    }

    /// Augments on the calling thread: the same pixels as on a stream of the Host backend.
    void run_here(std::span<const std::uint8_t> images, std::span<const augment::SampleId> samples,
                  std::span<float> out) const {
        using sluice::DeviceSpan;
        using sluice::Host;
        const augment::Images<const std::uint8_t, Host> in(
            DeviceSpan<const std::uint8_t, Host>(images.data(), images.size()), shape_);
        const augment::ParameterSource<Host> parameters(
            chosen_.ranges, seed_, DeviceSpan<const augment::SampleId, Host>(samples.data(), samples.size()));
        const augment::Images<float, Host> result(DeviceSpan<float, Host>(out.data(), out.size()), shape_);
        std::visit([&](const auto& chain) { augment::apply(chain, in, parameters, result); }, chosen_.chain);
    }

private:
    ChosenChain chosen_;
    augment::ImageShape shape_;
    std::uint64_t seed_;
};

} // namespace gpu_augment
