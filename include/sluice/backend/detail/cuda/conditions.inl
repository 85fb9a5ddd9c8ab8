// Bodies of graphs.hpp: conditional nodes.
#pragma once

#include <string>
#include <utility>

#include <sluice/backend/detail/capture_ledger.hpp>
#include <sluice/backend/detail/cuda/capture.hpp>
#include <sluice/backend/detail/cuda/graph_contents.hpp>
#include <sluice/backend/detail/cuda/graphs.hpp>
#include <sluice/backend/error.hpp>

namespace sluice {

SLUICE_BODY cudaGraph_t CudaConditions::capturing_graph(cudaStream_t stream) {
    return detail::required_capture_of(stream).graph;
}

SLUICE_BODY unsigned long long CudaConditions::capture_number(cudaStream_t stream) {
    return detail::capture_of(stream).number;
}

SLUICE_BODY void CudaConditions::end_capture_into(cudaStream_t stream) {
    cudaGraph_t body = nullptr;
    SLUICE_CUDA_CHECK(cudaStreamEndCapture(stream, &body));
    detail::capture_ledger().in_bodies += CudaGraphContents::node_count(body);
}

SLUICE_BODY cudaStreamCaptureMode CudaConditions::native_mode(CaptureMode mode) noexcept {
    return mode == CaptureMode::this_thread ? cudaStreamCaptureModeThreadLocal
           : mode == CaptureMode::global    ? cudaStreamCaptureModeGlobal
                                            : cudaStreamCaptureModeRelaxed;
}

SLUICE_BODY void CudaConditions::require_conditions(ConditionKind kind, int bodies) {
    // The first to know `if` and `while`; a second body and `switch` came later.
    require_version(kind == ConditionKind::select || bodies > 1 ? 12080 : 12040,
                    "this kind of conditional node");
}

SLUICE_BODY void CudaConditions::require_version(int needed, const char* what) {
    int driver = 0;
    SLUICE_CUDA_CHECK(cudaDriverGetVersion(&driver));
    const int there = driver < CUDART_VERSION ? driver : CUDART_VERSION;
    if (there < needed) {
        const auto version = [](int number) {
            return std::to_string(number / 1000) + "." + std::to_string(number % 1000 / 10);
        };
        throw Error(std::string(what) + " needs CUDA " + version(needed) +
                    ", of driver and toolkit; here is " + version(there));
    }
}

SLUICE_BODY CudaConditions::NativeCondition
CudaConditions::create_condition(cudaGraph_t graph, [[maybe_unused]] unsigned* word) {
#if CUDART_VERSION >= 12040
    cudaGraphConditionalHandle handle = 0;
    SLUICE_CUDA_CHECK(cudaGraphConditionalHandleCreate(&handle, graph, 1, cudaGraphCondAssignDefault));
    return handle;
#else
    (void)graph;
    require_conditions(ConditionKind::if_nonzero, 1);
    return 0;
#endif
}

#if CUDART_VERSION >= 12040
SLUICE_BODY cudaGraphNodeParams CudaConditions::condition_parameters(NativeCondition condition,
                                                                     ConditionKind kind, int count) {
    cudaGraphNodeParams parameters{};
    parameters.type = cudaGraphNodeTypeConditional;
    parameters.conditional.handle = condition;
    parameters.conditional.size = static_cast<unsigned>(count);
    parameters.conditional.type =
        kind == ConditionKind::while_nonzero ? cudaGraphCondTypeWhile : cudaGraphCondTypeIf;
#if CUDART_VERSION >= 12080
    if (kind == ConditionKind::select)
        parameters.conditional.type = cudaGraphCondTypeSwitch;
#endif
    return parameters;
}
#endif

SLUICE_BODY cudaGraphNode_t CudaConditions::add_condition(cudaGraph_t graph, const cudaGraphNode_t* after,
                                                          std::size_t after_count, NativeCondition condition,
                                                          ConditionKind kind, int count,
                                                          cudaGraph_t* bodies) {
    require_conditions(kind, count);
    cudaGraphNode_t node = nullptr;
#if CUDART_VERSION >= 12040
    cudaGraphNodeParams parameters = condition_parameters(condition, kind, count);
#if CUDART_VERSION >= 13000
    SLUICE_CUDA_CHECK(cudaGraphAddNode(&node, graph, after, nullptr, after_count, &parameters));
#else
    SLUICE_CUDA_CHECK(cudaGraphAddNode(&node, graph, after, after_count, &parameters));
#endif
    for (int body = 0; body < count; ++body)
        bodies[body] = parameters.conditional.phGraph_out[body];
#else
    (void)graph;
    (void)after;
    (void)after_count;
    (void)condition;
    (void)bodies;
#endif
    return node;
}

SLUICE_BODY void CudaConditions::capture_condition(cudaStream_t stream, NativeCondition condition,
                                                   ConditionKind kind, int count, cudaGraph_t* bodies) {
    require_conditions(kind, count);
#if CUDART_VERSION >= 12040
    const detail::CudaCapture capture = detail::required_capture_of(stream);
    cudaGraphNodeParams parameters = condition_parameters(condition, kind, count);
    cudaGraphNode_t node = nullptr;
#if CUDART_VERSION >= 13000
    SLUICE_CUDA_CHECK(cudaGraphAddNode(&node, capture.graph, capture.last.data(), capture.edge_data(),
                                       capture.last.size(), &parameters));
#else
    SLUICE_CUDA_CHECK(cudaGraphAddNode_v2(&node, capture.graph, capture.last.data(), capture.edge_data(),
                                          capture.last.size(), &parameters));
#endif
    detail::CudaCapture next;
    next.last.push_back(node);
    detail::continue_capture_after(stream, std::move(next));
    for (int body = 0; body < count; ++body)
        bodies[body] = parameters.conditional.phGraph_out[body];
#else
    (void)stream;
    (void)condition;
    (void)bodies;
#endif
}

SLUICE_BODY void CudaConditions::begin_capture_into(cudaStream_t stream, cudaGraph_t body, CaptureMode mode) {
#if CUDART_VERSION >= 12030
    SLUICE_CUDA_CHECK(cudaStreamBeginCaptureToGraph(stream, body, nullptr, nullptr, 0, native_mode(mode)));
#else
    (void)stream;
    (void)body;
    (void)mode;
    require_conditions(ConditionKind::if_nonzero, 1);
#endif
}

} // namespace sluice
