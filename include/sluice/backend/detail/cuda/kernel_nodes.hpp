/// \file
/// Kernel nodes of the Cuda backend's graphs.
#pragma once

#include <sluice/backend/detail/cuda/capture.hpp>
#include <sluice/backend/detail/cuda/error.hpp>

#if SLUICE_HAS_CUDA

#include <cstddef>

#include <sluice/backend/kernel_dims.hpp>

namespace sluice {

/// The part of `Cuda` that launches kernels from graphs. See the concept `KernelGraphBackend` for what each function
/// does.
struct CudaKernelNodes {
    /// `early`: null, or for each of `after` whether it is a kernel that lets this one begin while it ends.
    static cudaGraphNode_t add_kernel(cudaGraph_t graph, const cudaGraphNode_t* after, std::size_t count,
                                      const KernelDims& dims, void* function, void** arguments,
                                      const bool* early = nullptr);
    /// Launches `function` in the order of `stream`; `early`: it may begin while the kernel before it there ends.
    static void launch_kernel(cudaStream_t stream, const KernelDims& dims, void* function, void** arguments,
                              bool early = false);
    /// Whether code of `function` for the current device waits for earlier kernels by itself.
    static bool can_begin_early(const void* function);
    /// The node of the kernel that was launched last on `stream`, which is being captured.
    static cudaGraphNode_t captured_kernel(cudaStream_t stream) {
        const detail::CudaCapture capture = detail::required_capture_of(stream);
        if (capture.last.size() != 1)
            throw Error("captured_kernel: the stream's last operation is not one kernel");
        return capture.last.data()[0];
    }
    static void set_kernel(cudaGraphExec_t executable, cudaGraphNode_t node, const KernelDims& dims,
                           void* function, void** arguments) {
        const cudaKernelNodeParams parameters = launch_parameters(dims, function, arguments);
        SLUICE_CUDA_CHECK(cudaGraphExecKernelNodeSetParams(executable, node, &parameters));
    }

private:
    static cudaKernelNodeParams launch_parameters(const KernelDims& dims, void* function, void** arguments) {
        cudaKernelNodeParams parameters{};
        parameters.func = function;
        parameters.gridDim = dim3(dims.grid.x, dims.grid.y, dims.grid.z);
        parameters.blockDim = dim3(dims.block.x, dims.block.y, dims.block.z);
        parameters.sharedMemBytes = dims.shared;
        parameters.kernelParams = arguments;
        return parameters;
    }
};

} // namespace sluice

#endif
