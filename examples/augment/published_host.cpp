// The published chain on the CPU.
#include <augment/published.hpp>

namespace augment {

PublishedChain published_chain(const PublishedOptions& options) {
    return PublishedChain{Crop{options.crop_height, options.crop_width},
                          Resize{options.height, options.width}, Rotate<Nearest>{options.fill}, Blur<7>{},
                          options.normalize};
}

ParameterRanges published_ranges(ImageShape image, const PublishedOptions& options) {
    ParameterRanges ranges;
    ranges.angle_degrees = {-45.0f, 45.0f};
    ranges.sigma = {0.1f, 2.0f};
    return with_crop(ranges, image, options.crop_height, options.crop_width);
}

AUGMENT_PUBLISHED_APPLY(sluice::HostStreamRef, sluice::Host, float);
AUGMENT_PUBLISHED_APPLY(sluice::HostStreamRef, sluice::Host, nn::Half);
template void apply(const PublishedChain&, Images<const std::uint8_t, sluice::Host>,
                    ParameterSource<sluice::Host>, Images<float, sluice::Host>);

} // namespace augment
