// The published chain on the processor.
#include <augment/apply.hpp>
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

template <sluice::Backend B, class Out>
void apply_published(sluice::BasicStreamRef<B> stream, const PublishedChain& chain,
                     std::type_identity_t<Images<const std::uint8_t, B>> in,
                     std::type_identity_t<ParameterSource<B>> parameters, Images<Out, B> out) {
    apply(stream, chain, in, parameters, out);
}

template void apply_published(sluice::HostStreamRef, const PublishedChain&,
                              Images<const std::uint8_t, sluice::Host>, ParameterSource<sluice::Host>,
                              Images<float, sluice::Host>);
template void apply_published(sluice::HostStreamRef, const PublishedChain&,
                              Images<const std::uint8_t, sluice::Host>, ParameterSource<sluice::Host>,
                              Images<nn::Half, sluice::Host>);

void apply_published_here(const PublishedChain& chain, Images<const std::uint8_t, sluice::Host> in,
                          const ParameterSource<sluice::Host>& parameters, Images<float, sluice::Host> out) {
    apply_here(chain, in, parameters, out);
}

template <sluice::Backend B>
void write_parameters(sluice::BasicStreamRef<B> stream, const ParameterSource<B>& source,
                      std::type_identity_t<sluice::DeviceSpan<SampleParameters, B>> table) {
    const int count = static_cast<int>(detail::parameter_count(table.size()));
    source.require_count(count);
    stream.enqueue([source, data = table.data(), count] {
        for (int i = 0; i < count; ++i)
            data[i] = source[i];
    });
}

template void write_parameters(sluice::HostStreamRef, const ParameterSource<sluice::Host>&,
                               sluice::DeviceSpan<SampleParameters, sluice::Host>);

} // namespace augment
