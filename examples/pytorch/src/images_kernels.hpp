/// \file
/// The launch that images_cuda.cu defines. It enqueues on `stream` and waits for nothing.
#pragma once

#include <augment/parameters.hpp>

namespace sluice_torch {

/// `table` [count, 4] = top, left, degrees and sigma of each image.
void launch_parameters(sluice::CudaStreamRef stream, const augment::ParameterSource<sluice::Cuda>& source,
                       float* table, int count);

} // namespace sluice_torch
