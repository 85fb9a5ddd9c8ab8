// Bodies of graphs.hpp: kernel nodes.
#pragma once

#include <cstdint>

#include <sluice/backend/detail/atomic.hpp>
#include <sluice/backend/detail/cuda/graphs.hpp>
#include <sluice/backend/detail/list.hpp>

namespace sluice {

// Asked of the code: that for an older architecture runs on a newer device, and has no instruction to wait with. Graphs hold such
// launches from CUDA 12.3 on.
SLUICE_BODY bool CudaKernelNodes::can_begin_early(const void* function) {
    constexpr std::size_t places = 256;
    static detail::Atomic<std::uint64_t>
        known[places]; // An address, a device and the answer; a clash asks anew.
    int device = 0;
    SLUICE_CUDA_CHECK(cudaGetDevice(&device));
    const auto address = static_cast<std::uint64_t>(reinterpret_cast<std::uintptr_t>(function));
    const std::uint64_t asked = address << 9 | static_cast<std::uint64_t>(device & 0xff) << 1;
    detail::Atomic<std::uint64_t>& place = known[(address / 16 + static_cast<unsigned>(device)) % places];
    if (const std::uint64_t found = place; (found & ~std::uint64_t{1}) == asked)
        return (found & 1) != 0;
    cudaFuncAttributes attributes{};
    SLUICE_CUDA_CHECK(cudaFuncGetAttributes(&attributes, function));
    int driver = 0;
    SLUICE_CUDA_CHECK(cudaDriverGetVersion(&driver));
    const bool can = attributes.ptxVersion >= 90 && driver >= 12030 && CUDART_VERSION >= 12030;
    place.store(asked | (can ? 1u : 0u));
    return can;
}

SLUICE_BODY void CudaKernelNodes::launch_kernel(cudaStream_t stream, const KernelDims& dims, void* function,
                                                void** arguments, bool early) {
    cudaLaunchAttribute attribute{};
    attribute.id = cudaLaunchAttributeProgrammaticStreamSerialization;
    attribute.val.programmaticStreamSerializationAllowed = 1;
    cudaLaunchConfig_t config{};
    config.gridDim = dim3(dims.grid.x, dims.grid.y, dims.grid.z);
    config.blockDim = dim3(dims.block.x, dims.block.y, dims.block.z);
    config.dynamicSmemBytes = dims.shared;
    config.stream = stream;
    config.attrs = &attribute;
    config.numAttrs = early && can_begin_early(function) ? 1 : 0;
    SLUICE_CUDA_CHECK(cudaLaunchKernelExC(&config, function, arguments));
}

SLUICE_BODY cudaGraphNode_t CudaKernelNodes::add_kernel(cudaGraph_t graph, const cudaGraphNode_t* after,
                                                        std::size_t count, const KernelDims& dims,
                                                        void* function, void** arguments, const bool* early) {
    cudaGraphNode_t node = nullptr;
    if (early != nullptr) {
        CudaConditions::require_version(12030, "a kernel that begins early in a graph");
#if CUDART_VERSION >= 12030
        if (can_begin_early(function)) {
            detail::List<cudaGraphEdgeData> edges(count);
            for (std::size_t i = 0; i < count; ++i) {
                edges[i] = {};
                if (early[i]) {
                    edges[i].type = cudaGraphDependencyTypeProgrammatic;
                    edges[i].from_port = cudaGraphKernelNodePortProgrammatic;
                }
            }
            cudaGraphNodeParams parameters{};
            parameters.type = cudaGraphNodeTypeKernel;
            parameters.kernel.func = function;
            parameters.kernel.gridDim = dim3(dims.grid.x, dims.grid.y, dims.grid.z);
            parameters.kernel.blockDim = dim3(dims.block.x, dims.block.y, dims.block.z);
            parameters.kernel.sharedMemBytes = dims.shared;
            parameters.kernel.kernelParams = arguments;
#if CUDART_VERSION >= 13000
            SLUICE_CUDA_CHECK(cudaGraphAddNode(&node, graph, after, edges.data(), count, &parameters));
#else
            SLUICE_CUDA_CHECK(cudaGraphAddNode_v2(&node, graph, after, edges.data(), count, &parameters));
#endif
            return node;
        }
#endif
    }
    const cudaKernelNodeParams parameters = launch_parameters(dims, function, arguments);
    SLUICE_CUDA_CHECK(cudaGraphAddKernelNode(&node, graph, after, count, &parameters));
    return node;
}

} // namespace sluice
