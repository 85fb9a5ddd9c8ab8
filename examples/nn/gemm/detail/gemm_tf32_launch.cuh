/// \file
/// How the kernels of gemm_tf32.hpp are launched.
#pragma once

#include <cstddef>

#include <sluice/backend/stream.hpp>

namespace nn::detail::tf32 {

/// Launches `kernel` such that it may begin before the previous kernel of the stream has ended (programmatic dependent
/// launch).
template <class Arguments>
void launch_early(sluice::CudaStreamRef stream, void (*kernel)(Arguments), const Arguments& arguments,
                  dim3 grid, unsigned block, std::size_t shared_bytes, unsigned cluster = 1) {
    // Once for each device would do; it costs less than to find out which one this is.
    SLUICE_CUDA_CHECK(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                           static_cast<int>(shared_bytes)));
    cudaLaunchAttribute attributes[2] = {};
    attributes[0].id = cudaLaunchAttributeProgrammaticStreamSerialization;
    attributes[0].val.programmaticStreamSerializationAllowed = 1;
    attributes[1].id = cudaLaunchAttributeClusterDimension;
    attributes[1].val.clusterDim.x = cluster;
    attributes[1].val.clusterDim.y = 1;
    attributes[1].val.clusterDim.z = 1;
    cudaLaunchConfig_t config = {};
    config.gridDim = grid;
    config.blockDim = dim3(block);
    config.dynamicSmemBytes = shared_bytes;
    config.stream = stream.get();
    config.attrs = attributes;
    config.numAttrs = cluster > 1 ? 2 : 1;
    SLUICE_CUDA_CHECK(cudaLaunchKernelEx(&config, kernel, arguments));
}

} // namespace nn::detail::tf32
