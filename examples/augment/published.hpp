/// \file
/// The published experiment's chain, compiled into the library examples_augment for both backends: plain C++ programs call
/// `apply` with it without kernels of their own.
#pragma once

#include <augment/apply.hpp>
#include <sluice/backend/stream.hpp>

namespace augment {

/// Crop, enlarge, rotate, blur, normalise.
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

// Instantiated in the library: `apply` with this chain, for bytes in and float or `nn::Half` out.
#define AUGMENT_PUBLISHED_APPLY(StreamRef, Backend, Out)                                                     \
    template void apply(StreamRef, const PublishedChain&, Images<const std::uint8_t, Backend>,               \
                        ParameterSource<Backend>, Images<Out, Backend>)

extern AUGMENT_PUBLISHED_APPLY(sluice::HostStreamRef, sluice::Host, float);
extern AUGMENT_PUBLISHED_APPLY(sluice::HostStreamRef, sluice::Host, nn::Half);
extern template void apply(const PublishedChain&, Images<const std::uint8_t, sluice::Host>,
                           ParameterSource<sluice::Host>, Images<float, sluice::Host>);
#if SLUICE_HAS_CUDA
extern AUGMENT_PUBLISHED_APPLY(sluice::CudaStreamRef, sluice::Cuda, float);
extern AUGMENT_PUBLISHED_APPLY(sluice::CudaStreamRef, sluice::Cuda, nn::Half);
#endif

} // namespace augment
