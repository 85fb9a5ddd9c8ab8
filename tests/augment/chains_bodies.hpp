// The chains of chains.hpp, for one backend. chains_gpu.cu also includes the device's bodies of `apply`.
#pragma once

#include <augment/apply.hpp>
#include <augment/published.hpp>

#include "augment/chains.hpp"

namespace augment_test {

template <sluice::Backend Backend, class C, class In, class Out>
void run_chain(sluice::BasicStreamRef<Backend> stream, const C& chain, augment::Images<const In, Backend> in,
               augment::ParameterSource<Backend> parameters, augment::Images<Out, Backend> out) {
    augment::apply(stream, chain, in, parameters, out);
}

#define RUN_CHAIN(Name, In, Out)                                                                             \
    template void run_chain(sluice::BasicStreamRef<B>, const Name&, augment::Images<const In, B>,            \
                            augment::ParameterSource<B>, augment::Images<Out, B>)

using Byte = std::uint8_t;
RUN_CHAIN(CropChain, Byte, float);
RUN_CHAIN(CropChain, float, float);
RUN_CHAIN(RoiAlignChain, Byte, float);
RUN_CHAIN(ResizeChain, Byte, float);
RUN_CHAIN(ResizeChain, float, float);
RUN_CHAIN(ResizeChain, nn::Half, float);
RUN_CHAIN(ResizeChain, Byte, Byte);
RUN_CHAIN(CropResizeChain, Byte, float);
RUN_CHAIN(NearestChain, Byte, float);
RUN_CHAIN(NearestChain, float, float);
RUN_CHAIN(RotatedChain, Byte, nn::Half);
RUN_CHAIN(BilinearChain, float, float);
RUN_CHAIN(FlipChain, Byte, Byte);
RUN_CHAIN(BlurChain, float, float);
RUN_CHAIN(WideBlurChain, Byte, float);
RUN_CHAIN(NoBlurChain, Byte, float);
RUN_CHAIN(NormalizeChain, float, float);
RUN_CHAIN(LightChain, Byte, Byte);
RUN_CHAIN(LongChain, Byte, float);
RUN_CHAIN(SmoothChain, Byte, float);
RUN_CHAIN(RotatedCropChain, Byte, nn::Half);
RUN_CHAIN(augment::PublishedChain, Byte, float);
RUN_CHAIN(augment::PublishedChain, float, float);
RUN_CHAIN(gpu_augment::PlainDigitChain, Byte, float);
RUN_CHAIN(ScaleChain, Byte, Byte);
RUN_CHAIN(ScaleChain, Byte, nn::Half);
RUN_CHAIN(ScaleChain, Byte, float);
RUN_CHAIN(ScaleChain, nn::Half, Byte);
RUN_CHAIN(ScaleChain, nn::Half, nn::Half);
RUN_CHAIN(ScaleChain, nn::Half, float);
RUN_CHAIN(ScaleChain, float, Byte);
RUN_CHAIN(ScaleChain, float, nn::Half);
RUN_CHAIN(ScaleChain, float, float);

#undef RUN_CHAIN

} // namespace augment_test
