// The chains that the tests run, compiled once for each backend.
#pragma once

#include <augment/chain.hpp>
#include <gpu_augment/augmentation.hpp>
#include <sluice/backend/stream.hpp>

#include "support/backend.hpp"

namespace augment_test {

using B = sluice::test::TestBackend;

/// augment::apply.
template <sluice::Backend Backend, class C, class In, class Out>
void run_chain(sluice::BasicStreamRef<Backend> stream, const C& chain, augment::Images<const In, Backend> in,
               augment::ParameterSource<Backend> parameters, augment::Images<Out, Backend> out);

using CropChain = augment::Chain<augment::Crop>;
using RoiAlignChain = augment::Chain<augment::RoiAlignCrop>;
using ResizeChain = augment::Chain<augment::Resize>;
using CropResizeChain = augment::Chain<augment::Crop, augment::Resize>;
using NearestChain = augment::Chain<augment::Rotate<augment::Nearest>>;
using BilinearChain = augment::Chain<augment::Rotate<augment::Bilinear>>;
using RotatedChain = augment::Chain<augment::Rotate<augment::Bilinear>, augment::Normalize>;
using FlipChain = augment::Chain<augment::Flip>;
using BlurChain = augment::Chain<augment::Blur<7>>;
using WideBlurChain = augment::Chain<augment::Blur<11>>;
using NoBlurChain = augment::Chain<augment::Blur<1>>;
using NormalizeChain = augment::Chain<augment::Normalize>;
using ScaleChain = augment::Chain<augment::Scale>;
using LightChain = augment::Chain<augment::Brightness, augment::Contrast>;
using LongChain = augment::Chain<augment::Scale, augment::Flip, augment::RoiAlignCrop,
                                 augment::Rotate<augment::Bilinear>, augment::Resize, augment::Brightness,
                                 augment::Blur<5>, augment::Contrast, augment::Normalize>;
using SmoothChain =
    augment::Chain<augment::Crop, augment::Resize, augment::Rotate<augment::Bilinear>, augment::Blur<7>>;
using RotatedCropChain = augment::Chain<augment::Crop, augment::Resize, augment::Flip,
                                        augment::Rotate<augment::Nearest>, augment::Normalize>;

} // namespace augment_test
