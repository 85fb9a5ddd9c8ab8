/// \file
/// Kernels whose launch begins while the kernel before them on their stream ends (programmatic dependent launch): what it takes to
/// start a kernel is hidden, in graphs too.
#pragma once

#include <sluice/backend/stream.hpp>

namespace nn::detail {

/// In a kernel that is launched early: waits until all earlier kernels of the stream have ended, and what they wrote is seen. Every
/// thread calls it before it reads or writes memory, and before `let_next_kernel_begin`: so that a kernel that begins early knows all
/// but the one before it to be over.
__device__ inline void wait_for_earlier_kernels() {
#if __CUDA_ARCH__ >= 900
    cudaGridDependencySynchronize();
#endif
}

/// The next kernel of the stream may start, once all blocks have called this or ended; it waits by itself for what this one writes.
__device__ inline void let_next_kernel_begin() {
#if __CUDA_ARCH__ >= 900
    cudaTriggerProgrammaticLaunchCompletion();
#endif
}

/// Whether the current device can do so (compute capability 9.0).
inline bool launches_early() {
    int device = 0;
    int major = 0;
    SLUICE_CUDA_CHECK(cudaGetDevice(&device));
    SLUICE_CUDA_CHECK(cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, device));
    return major >= 9;
}

/// Launches a kernel that calls `wait_for_earlier_kernels`.
template <class... Parameters, class... Arguments>
void launch_early(sluice::CudaStreamRef stream, void (*kernel)(Parameters...), unsigned blocks,
                  unsigned threads, const Arguments&... arguments) {
    cudaLaunchAttribute early = {};
    early.id = cudaLaunchAttributeProgrammaticStreamSerialization;
    early.val.programmaticStreamSerializationAllowed = 1;
    cudaLaunchConfig_t config = {};
    config.gridDim = dim3(blocks);
    config.blockDim = dim3(threads);
    config.stream = stream.get();
    config.attrs = &early;
    config.numAttrs = launches_early() ? 1 : 0;
    SLUICE_CUDA_CHECK(cudaLaunchKernelEx(&config, kernel, Parameters(arguments)...));
}

} // namespace nn::detail
