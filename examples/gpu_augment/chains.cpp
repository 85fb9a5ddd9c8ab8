#include <gpu_augment/chains.hpp>

#include <augment/apply.hpp>

namespace gpu_augment {
namespace {

// Of the digits' canvases, all channels together.
constexpr float mean = 40.0f;
constexpr float deviation = 55.0f;

// Of a canvas's side, what a crop shows. A digit is that large, so one that is not in the middle loses an edge.
constexpr int cropped_side(int side) { return side * 7 / 8; }

ChosenChain choose_published(augment::ImageShape shape) {
    augment::PublishedOptions options;
    options.height = shape.height;
    options.width = shape.width;
    options.crop_height = (shape.height + 1) / 2;
    options.crop_width = (shape.width + 1) / 2;
    return {augment::published_chain(options), augment::published_ranges(shape, options)};
}

ChosenChain choose_digits(augment::ImageShape shape) {
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

ChosenChain choose(ChainName name, augment::ImageShape shape) {
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

} // namespace

ChosenChain choose_chain(ChainName name, std::size_t height, std::size_t width) {
    const augment::ImageShape shape{3, static_cast<int>(height), static_cast<int>(width)};
    ChosenChain chosen = choose(name, shape);
    std::visit([&](const auto& chain) { (void)chain.output_shape(shape); }, chosen.chain);
    return chosen;
}

} // namespace gpu_augment

namespace augment {

using In = Images<const std::uint8_t, sluice::Host>;
using Parameters = ParameterSource<sluice::Host>;
using Out = Images<float, sluice::Host>;
template void apply(sluice::HostStreamRef, const gpu_augment::DigitChain&, In, Parameters, Out);
template void apply(sluice::HostStreamRef, const gpu_augment::PlainDigitChain&, In, Parameters, Out);
template void apply(const gpu_augment::DigitChain&, In, Parameters, Out);
template void apply(const gpu_augment::PlainDigitChain&, In, Parameters, Out);

} // namespace augment
