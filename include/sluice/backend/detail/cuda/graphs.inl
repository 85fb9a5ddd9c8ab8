// Bodies of graphs.hpp.
#pragma once

#include <sluice/backend/detail/capture_ledger.hpp>
#include <sluice/backend/detail/cuda/conditions.inl>
#include <sluice/backend/detail/cuda/default_stream_watch.inl>
#include <sluice/backend/detail/cuda/graph_contents.inl>
#include <sluice/backend/detail/cuda/graphs.hpp>
#include <sluice/backend/detail/cuda/kernel_nodes.inl>
#include <sluice/backend/detail/semaphore_waits.hpp>

namespace sluice {

SLUICE_BODY ObjectCounts& CudaGraphs::counts() noexcept {
    static ObjectCounts counts;
    return counts;
}

SLUICE_BODY bool CudaGraphs::is_default_stream(cudaStream_t stream) noexcept {
    return stream == nullptr || stream == cudaStreamLegacy;
}

SLUICE_BODY bool CudaGraphs::is_capturing(cudaStream_t stream) {
    cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
    SLUICE_CUDA_CHECK(cudaStreamIsCapturing(stream, &status));
    return status != cudaStreamCaptureStatusNone;
}

SLUICE_BODY void CudaGraphs::begin_capture(cudaStream_t stream, CaptureMode mode) {
    SLUICE_CUDA_CHECK(cudaStreamBeginCapture(stream, native_mode(mode)));
}

SLUICE_BODY cudaGraph_t CudaGraphs::end_capture(cudaStream_t stream) {
    cudaGraph_t graph = nullptr;
    SLUICE_CUDA_CHECK(cudaStreamEndCapture(stream, &graph));
    counts().graphs.add();
    return graph;
}

SLUICE_BODY void CudaGraphs::record_external(cudaEvent_t event, cudaStream_t stream) {
    SLUICE_CUDA_CHECK(cudaEventRecordWithFlags(event, stream, cudaEventRecordExternal));
    ++detail::capture_ledger().marks;
}

SLUICE_BODY cudaGraph_t CudaGraphs::create_graph() {
    cudaGraph_t graph = nullptr;
    SLUICE_CUDA_CHECK(cudaGraphCreate(&graph, 0));
    counts().graphs.add();
    return graph;
}

SLUICE_BODY void CudaGraphs::destroy_graph(cudaGraph_t graph) noexcept {
    (void)cudaGraphDestroy(graph);
    counts().graphs.remove();
}

SLUICE_BODY cudaGraphExec_t CudaGraphs::instantiate(cudaGraph_t graph) {
    cudaGraphExec_t executable = nullptr;
    const detail::SemaphoreWaits::Pause pause(true); // One in some 30 waits for all streams.
    // Each kernel keeps the priority of the stream that it was captured on.
    SLUICE_CUDA_CHECK(
        cudaGraphInstantiateWithFlags(&executable, graph, cudaGraphInstantiateFlagUseNodePriority));
    counts().executables.add();
    return executable;
}

SLUICE_BODY void CudaGraphs::destroy_graph_exec(cudaGraphExec_t executable) noexcept {
    (void)cudaGraphExecDestroy(executable);
    counts().executables.remove();
}

SLUICE_BODY bool CudaGraphs::update(cudaGraphExec_t executable, cudaGraph_t graph) {
    cudaGraphExecUpdateResultInfo result{};
    const cudaError_t before = cudaPeekAtLastError();
    const cudaError_t error = cudaGraphExecUpdate(executable, graph, &result);
    if (error == cudaErrorGraphExecUpdateFailure) {
        // Forgotten here, or the next check of an unrelated call would find it.
        detail::forget_cuda_error(error, before);
        return false;
    }
    detail::check_cuda(error, "cudaGraphExecUpdate(executable, graph, &result)", __FILE__, __LINE__);
    return true;
}

SLUICE_BODY void CudaGraphs::upload(cudaGraphExec_t executable, cudaStream_t stream) {
    SLUICE_CUDA_CHECK(cudaGraphUpload(executable, stream));
}

SLUICE_BODY void CudaGraphs::launch(cudaGraphExec_t executable, cudaStream_t stream) {
    SLUICE_CUDA_CHECK(cudaGraphLaunch(executable, stream));
}

SLUICE_BODY cudaGraphNode_t CudaGraphs::add_empty(cudaGraph_t graph, const cudaGraphNode_t* after,
                                                  std::size_t count) {
    cudaGraphNode_t node = nullptr;
    SLUICE_CUDA_CHECK(cudaGraphAddEmptyNode(&node, graph, after, count));
    return node;
}

SLUICE_BODY cudaGraphNode_t CudaGraphs::add_copy(cudaGraph_t graph, const cudaGraphNode_t* after,
                                                 std::size_t count, void* to, const void* from,
                                                 std::size_t bytes, CopyKind kind) {
    cudaGraphNode_t node = nullptr;
    SLUICE_CUDA_CHECK(
        cudaGraphAddMemcpyNode1D(&node, graph, after, count, to, from, bytes, native_kind(kind)));
    return node;
}

SLUICE_BODY cudaGraphNode_t CudaGraphs::add_fill(cudaGraph_t graph, const cudaGraphNode_t* after,
                                                 std::size_t count, void* memory, int value,
                                                 std::size_t bytes) {
    const cudaMemsetParams parameters = fill_parameters(memory, value, bytes);
    cudaGraphNode_t node = nullptr;
    SLUICE_CUDA_CHECK(cudaGraphAddMemsetNode(&node, graph, after, count, &parameters));
    return node;
}

SLUICE_BODY cudaGraphNode_t CudaGraphs::add_host(cudaGraph_t graph, const cudaGraphNode_t* after,
                                                 std::size_t count, void (*function)(void*), void* data) {
    const cudaHostNodeParams parameters{function, data};
    cudaGraphNode_t node = nullptr;
    SLUICE_CUDA_CHECK(cudaGraphAddHostNode(&node, graph, after, count, &parameters));
    return node;
}

SLUICE_BODY cudaGraphNode_t CudaGraphs::add_child(cudaGraph_t graph, const cudaGraphNode_t* after,
                                                  std::size_t count, cudaGraph_t child) {
    cudaGraphNode_t node = nullptr;
    SLUICE_CUDA_CHECK(cudaGraphAddChildGraphNode(&node, graph, after, count, child));
    return node;
}

SLUICE_BODY void CudaGraphs::add_dependency(cudaGraph_t graph, cudaGraphNode_t earlier,
                                            cudaGraphNode_t later) {
#if CUDART_VERSION >= 13000
    SLUICE_CUDA_CHECK(cudaGraphAddDependencies(graph, &earlier, &later, nullptr, 1));
#else
    SLUICE_CUDA_CHECK(cudaGraphAddDependencies(graph, &earlier, &later, 1));
#endif
}

SLUICE_BODY void CudaGraphs::set_copy(cudaGraphExec_t executable, cudaGraphNode_t node, void* to,
                                      const void* from, std::size_t bytes, CopyKind kind) {
    SLUICE_CUDA_CHECK(
        cudaGraphExecMemcpyNodeSetParams1D(executable, node, to, from, bytes, native_kind(kind)));
}

SLUICE_BODY void CudaGraphs::set_fill(cudaGraphExec_t executable, cudaGraphNode_t node, void* memory,
                                      int value, std::size_t bytes) {
    const cudaMemsetParams parameters = fill_parameters(memory, value, bytes);
    SLUICE_CUDA_CHECK(cudaGraphExecMemsetNodeSetParams(executable, node, &parameters));
}

SLUICE_BODY void CudaGraphs::set_host(cudaGraphExec_t executable, cudaGraphNode_t node,
                                      void (*function)(void*), void* data) {
    const cudaHostNodeParams parameters{function, data};
    SLUICE_CUDA_CHECK(cudaGraphExecHostNodeSetParams(executable, node, &parameters));
}

SLUICE_BODY void CudaGraphs::set_child(cudaGraphExec_t executable, cudaGraphNode_t node, cudaGraph_t child) {
    SLUICE_CUDA_CHECK(cudaGraphExecChildGraphNodeSetParams(executable, node, child));
}

SLUICE_BODY cudaMemcpyKind CudaGraphs::native_kind(CopyKind kind) noexcept {
    return kind == CopyKind::host_to_device   ? cudaMemcpyHostToDevice
           : kind == CopyKind::device_to_host ? cudaMemcpyDeviceToHost
           : kind == CopyKind::host_to_host   ? cudaMemcpyHostToHost
                                              : cudaMemcpyDeviceToDevice;
}

SLUICE_BODY cudaMemsetParams CudaGraphs::fill_parameters(void* memory, int value, std::size_t bytes) {
    cudaMemsetParams parameters{};
    parameters.dst = memory;
    parameters.value = static_cast<unsigned>(value) & 0xffU;
    parameters.elementSize = 1;
    parameters.width = bytes;
    parameters.height = 1;
    return parameters;
}

} // namespace sluice
