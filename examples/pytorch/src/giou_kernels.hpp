/// \file
/// The launches of the GIoU loss's kernels, which giou_cuda.cu defines. They enqueue on `stream` and wait for nothing.
#pragma once

#include <sluice/backend/stream.hpp>

#include "giou.hpp"

namespace sluice_torch {

/// Throws `sluice::Error` for a launch that fails.
void launch_giou(sluice::CudaStreamRef stream, bool torchvision, const GiouForward& all);
void launch_giou_both(sluice::CudaStreamRef stream, bool torchvision, const GiouBoth& all);
void launch_giou_backward(sluice::CudaStreamRef stream, const GiouBackward& all);

} // namespace sluice_torch
