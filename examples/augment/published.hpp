/// \file
/// The published experiment's chain, compiled into the library examples_augment for both backends: what plain C++ programs
/// can call without kernels of their own.
#pragma once

#include <augment/chain.hpp>
#include <sluice/backend/stream.hpp>

namespace augment {

/// Crop, enlarge, turn, blur, normalise.
using PublishedChain = Chain<Crop, Resize, Rotate<Nearest>, Blur<7>, Normalize>;

struct PublishedOptions {
    int crop_height = 128;
    int crop_width = 128;
    int height = 256;
    int width = 256;
    float fill = 0.0f;
    Normalize normalize{0.0f, 1.0f};
};

PublishedChain published_chain(const PublishedOptions& options = {});

/// What the experiment draws: tops and lefts all over an image of `image`, angles of up to 45 degrees either way, sigmas
/// from 0.1 to 2. Throws `sluice::Error` for a crop that is larger than the image.
ParameterRanges published_ranges(ImageShape image, const PublishedOptions& options = {});

/// `apply` (apply.hpp), for bytes in and float or `nn::Half` out.
template <sluice::Backend B, class Out>
void apply_published(sluice::BasicStreamRef<B> stream, const PublishedChain& chain,
                     std::type_identity_t<Images<const std::uint8_t, B>> in,
                     std::type_identity_t<ParameterSource<B>> parameters, Images<Out, B> out);

/// `apply_here`: on the calling thread.
void apply_published_here(const PublishedChain& chain, Images<const std::uint8_t, sluice::Host> in,
                          const ParameterSource<sluice::Host>& parameters, Images<float, sluice::Host> out);

} // namespace augment
