// The chains of chains.hpp, for one backend. chains_gpu.cu also includes the device's bodies of `apply`.
#pragma once

#include <augment/annotations.hpp>
#include <augment/published.hpp>

#include "augment/chains.hpp"

namespace augment_test {

template <sluice::Backend Backend, class C, class In, class Out>
void run_chain(sluice::BasicStreamRef<Backend> stream, const C& chain, augment::Images<const In, Backend> in,
               augment::ParameterSource<Backend> parameters, augment::Images<Out, Backend> out) {
    augment::apply(stream, chain, in, parameters, out);
}

template <sluice::Backend Backend, class C, class L>
void run_labels(sluice::BasicStreamRef<Backend> stream, const C& chain, augment::ImageShape shape,
                augment::ParameterSource<Backend> parameters, sluice::DeviceSpan<const L, Backend> labels,
                L outside, sluice::DeviceSpan<L, Backend> out) {
    augment::apply_to_labels(stream, chain, shape, parameters, labels, outside, out);
}

template <sluice::Backend Backend, class C>
void run_boxes(sluice::BasicStreamRef<Backend> stream, const C& chain, augment::ImageShape shape,
               augment::ParameterSource<Backend> parameters, nn::PaddedBoxes<const float, Backend> boxes,
               nn::PaddedBoxes<float, Backend> out) {
    augment::apply_to_boxes(stream, chain, shape, parameters, boxes, out);
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

template void run_labels(sluice::BasicStreamRef<B>, const LongChain&, augment::ImageShape,
                         augment::ParameterSource<B>, sluice::DeviceSpan<const std::int32_t, B>, std::int32_t,
                         sluice::DeviceSpan<std::int32_t, B>);
template void run_labels(sluice::BasicStreamRef<B>, const RotatedCropChain&, augment::ImageShape,
                         augment::ParameterSource<B>, sluice::DeviceSpan<const std::uint8_t, B>, std::uint8_t,
                         sluice::DeviceSpan<std::uint8_t, B>);
template void run_boxes(sluice::BasicStreamRef<B>, const LongChain&, augment::ImageShape,
                        augment::ParameterSource<B>, nn::PaddedBoxes<const float, B>,
                        nn::PaddedBoxes<float, B>);
template void run_boxes(sluice::BasicStreamRef<B>, const RotatedCropChain&, augment::ImageShape,
                        augment::ParameterSource<B>, nn::PaddedBoxes<const float, B>,
                        nn::PaddedBoxes<float, B>);

} // namespace augment_test
