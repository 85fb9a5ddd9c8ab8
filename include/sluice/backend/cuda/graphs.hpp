/// \file
/// The Cuda backend's graphs.
#pragma once

#include <sluice/backend/cuda/error.hpp>

#if SLUICE_HAS_CUDA

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include <sluice/backend/capture_ledger.hpp>
#include <sluice/backend/cuda/default_stream_watch.hpp>
#include <sluice/backend/types.hpp>

namespace sluice {

/// The part of `Cuda` that deals with graphs. See the concept `GraphBackend` for what each function does.
struct CudaGraphs {
    using NativeGraph = cudaGraph_t;
    using NativeExecutable = cudaGraphExec_t;
    using NativeNode = cudaGraphNode_t;
    using NativeCondition = unsigned long long;
    using DefaultStreamWatch = detail::DefaultStreamWatch;

    static ObjectCounts& counts() noexcept {
        static ObjectCounts counts;
        return counts;
    }

    // Capture
    // -------------------------------------------------------------------------------------------------
    static bool is_default_stream(cudaStream_t stream) noexcept {
        return stream == nullptr || stream == cudaStreamLegacy;
    }
    static bool is_capturing(cudaStream_t stream) {
        cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
        SLUICE_CUDA_CHECK(cudaStreamIsCapturing(stream, &status));
        return status != cudaStreamCaptureStatusNone;
    }
    static void begin_capture(cudaStream_t stream, CaptureMode mode) {
        SLUICE_CUDA_CHECK(cudaStreamBeginCapture(stream, native_mode(mode)));
    }
    static cudaGraph_t end_capture(cudaStream_t stream) {
        cudaGraph_t graph = nullptr;
        SLUICE_CUDA_CHECK(cudaStreamEndCapture(stream, &graph));
        counts().graphs.add();
        return graph;
    }

    // Graphs
    // --------------------------------------------------------------------------------------------------
    static cudaGraph_t create_graph() {
        cudaGraph_t graph = nullptr;
        SLUICE_CUDA_CHECK(cudaGraphCreate(&graph, 0));
        counts().graphs.add();
        return graph;
    }
    static void destroy_graph(cudaGraph_t graph) noexcept {
        (void)cudaGraphDestroy(graph);
        counts().graphs.remove();
    }
    static std::size_t node_count(cudaGraph_t graph);
    static std::size_t edge_count(cudaGraph_t graph) {
        std::size_t edges = 0;
#if CUDART_VERSION >= 13000
        SLUICE_CUDA_CHECK(cudaGraphGetEdges(graph, nullptr, nullptr, nullptr, &edges));
#else
        SLUICE_CUDA_CHECK(cudaGraphGetEdges(graph, nullptr, nullptr, &edges));
#endif
        return edges;
    }
    static void write_dot(cudaGraph_t graph, const char* path) {
        SLUICE_CUDA_CHECK(cudaGraphDebugDotPrint(graph, path, cudaGraphDebugDotFlagsVerbose));
    }
    /// Of the nodes' types and parameters, kernels' arguments included.
    static std::uint64_t signature(cudaGraph_t graph);
    /// The device memory that nodes name, kernels' arguments included.
    static std::vector<const void*> device_pointers(cudaGraph_t graph);
    static bool is_device_memory(const void* pointer) {
        cudaPointerAttributes attributes{};
        const cudaError_t error = cudaPointerGetAttributes(&attributes, pointer);
        (void)cudaGetLastError();
        return error == cudaSuccess && attributes.type == cudaMemoryTypeDevice;
    }

    // Executables
    // --------------------------------------------------------------------------------------------------
    static cudaGraphExec_t instantiate(cudaGraph_t graph) {
        cudaGraphExec_t executable = nullptr;
        // Each kernel keeps the priority of the stream that it was captured on.
        SLUICE_CUDA_CHECK(
            cudaGraphInstantiateWithFlags(&executable, graph, cudaGraphInstantiateFlagUseNodePriority));
        counts().executables.add();
        return executable;
    }
    static void destroy_executable(cudaGraphExec_t executable) noexcept {
        (void)cudaGraphExecDestroy(executable);
        counts().executables.remove();
    }
    static bool update(cudaGraphExec_t executable, cudaGraph_t graph) {
        cudaGraphExecUpdateResultInfo result{};
        const cudaError_t error = cudaGraphExecUpdate(executable, graph, &result);
        if (error == cudaErrorGraphExecUpdateFailure) {
            // Forgotten here, or the next check of an unrelated call would find it.
            (void)cudaGetLastError();
            return false;
        }
        detail::check_cuda(error, "cudaGraphExecUpdate(executable, graph, &result)", __FILE__, __LINE__);
        return true;
    }
    static void upload(cudaGraphExec_t executable, cudaStream_t stream) {
        SLUICE_CUDA_CHECK(cudaGraphUpload(executable, stream));
    }
    static void launch(cudaGraphExec_t executable, cudaStream_t stream) {
        SLUICE_CUDA_CHECK(cudaGraphLaunch(executable, stream));
    }

    // Nodes by hand
    // --------------------------------------------------------------------------------------------------
    static cudaGraphNode_t add_empty(cudaGraph_t graph, const cudaGraphNode_t* after, std::size_t count) {
        cudaGraphNode_t node = nullptr;
        SLUICE_CUDA_CHECK(cudaGraphAddEmptyNode(&node, graph, after, count));
        return node;
    }
    static cudaGraphNode_t add_copy(cudaGraph_t graph, const cudaGraphNode_t* after, std::size_t count,
                                    void* to, const void* from, std::size_t bytes, CopyKind kind) {
        cudaGraphNode_t node = nullptr;
        SLUICE_CUDA_CHECK(
            cudaGraphAddMemcpyNode1D(&node, graph, after, count, to, from, bytes, native_kind(kind)));
        return node;
    }
    static cudaGraphNode_t add_fill(cudaGraph_t graph, const cudaGraphNode_t* after, std::size_t count,
                                    void* memory, int value, std::size_t bytes) {
        const cudaMemsetParams parameters = fill_parameters(memory, value, bytes);
        cudaGraphNode_t node = nullptr;
        SLUICE_CUDA_CHECK(cudaGraphAddMemsetNode(&node, graph, after, count, &parameters));
        return node;
    }
    static cudaGraphNode_t add_host(cudaGraph_t graph, const cudaGraphNode_t* after, std::size_t count,
                                    void (*function)(void*), void* data) {
        const cudaHostNodeParams parameters{function, data};
        cudaGraphNode_t node = nullptr;
        SLUICE_CUDA_CHECK(cudaGraphAddHostNode(&node, graph, after, count, &parameters));
        return node;
    }
    static cudaGraphNode_t add_child(cudaGraph_t graph, const cudaGraphNode_t* after, std::size_t count,
                                     cudaGraph_t child) {
        cudaGraphNode_t node = nullptr;
        SLUICE_CUDA_CHECK(cudaGraphAddChildGraphNode(&node, graph, after, count, child));
        return node;
    }
    static void set_copy(cudaGraphExec_t executable, cudaGraphNode_t node, void* to, const void* from,
                         std::size_t bytes, CopyKind kind) {
        SLUICE_CUDA_CHECK(
            cudaGraphExecMemcpyNodeSetParams1D(executable, node, to, from, bytes, native_kind(kind)));
    }
    static void set_fill(cudaGraphExec_t executable, cudaGraphNode_t node, void* memory, int value,
                         std::size_t bytes) {
        const cudaMemsetParams parameters = fill_parameters(memory, value, bytes);
        SLUICE_CUDA_CHECK(cudaGraphExecMemsetNodeSetParams(executable, node, &parameters));
    }
    static void set_host(cudaGraphExec_t executable, cudaGraphNode_t node, void (*function)(void*),
                         void* data) {
        const cudaHostNodeParams parameters{function, data};
        SLUICE_CUDA_CHECK(cudaGraphExecHostNodeSetParams(executable, node, &parameters));
    }
    static void set_child(cudaGraphExec_t executable, cudaGraphNode_t node, cudaGraph_t child) {
        SLUICE_CUDA_CHECK(cudaGraphExecChildGraphNodeSetParams(executable, node, child));
    }

    // Conditional nodes
    // --------------------------------------------------------------------------------------------------
    static void require_conditions(ConditionKind kind, int bodies);
    static cudaGraph_t capturing_graph(cudaStream_t stream) { return capture_of(stream).graph; }
    static NativeCondition create_condition(cudaGraph_t graph, unsigned* word);
    static void capture_condition(cudaStream_t stream, NativeCondition condition, ConditionKind kind,
                                  int count, cudaGraph_t* bodies);
    static void begin_capture_into(cudaStream_t stream, cudaGraph_t body, CaptureMode mode);
    static void end_capture_into(cudaStream_t stream) {
        cudaGraph_t body = nullptr;
        SLUICE_CUDA_CHECK(cudaStreamEndCapture(stream, &body));
        detail::capture_ledger().in_bodies += node_count(body);
    }

private:
    // What a stream's capture has come to.
    struct Capture {
        cudaGraph_t graph = nullptr;
        const cudaGraphNode_t* last = nullptr;
        std::size_t last_count = 0;
#if CUDART_VERSION >= 12030
        const cudaGraphEdgeData* edges = nullptr;
#endif
    };
    static Capture capture_of(cudaStream_t stream);
    static std::vector<cudaGraphNode_t> nodes_of(cudaGraph_t graph);
    template <class Visit>
    static void visit_words(cudaGraph_t graph, Visit&& visit);

    static cudaStreamCaptureMode native_mode(CaptureMode mode) noexcept {
        return mode == CaptureMode::this_thread ? cudaStreamCaptureModeThreadLocal
               : mode == CaptureMode::global    ? cudaStreamCaptureModeGlobal
                                                : cudaStreamCaptureModeRelaxed;
    }
    static cudaMemcpyKind native_kind(CopyKind kind) noexcept {
        return kind == CopyKind::host_to_device   ? cudaMemcpyHostToDevice
               : kind == CopyKind::device_to_host ? cudaMemcpyDeviceToHost
                                                  : cudaMemcpyDeviceToDevice;
    }
    static cudaMemsetParams fill_parameters(void* memory, int value, std::size_t bytes) {
        cudaMemsetParams parameters{};
        parameters.dst = memory;
        parameters.value = static_cast<unsigned>(value) & 0xffU;
        parameters.elementSize = 1;
        parameters.width = bytes;
        parameters.height = 1;
        return parameters;
    }

    friend struct Cuda;
};

// ---------------------------------------------------------------------------------------------------------------

inline std::vector<cudaGraphNode_t> CudaGraphs::nodes_of(cudaGraph_t graph) {
    std::size_t count = 0;
    SLUICE_CUDA_CHECK(cudaGraphGetNodes(graph, nullptr, &count));
    std::vector<cudaGraphNode_t> nodes(count);
    if (count > 0)
        SLUICE_CUDA_CHECK(cudaGraphGetNodes(graph, nodes.data(), &count));
    return nodes;
}

inline std::size_t CudaGraphs::node_count(cudaGraph_t graph) {
    std::size_t count = 0;
    for (const cudaGraphNode_t node : nodes_of(graph)) {
        ++count;
        cudaGraphNodeType type{};
        SLUICE_CUDA_CHECK(cudaGraphNodeGetType(node, &type));
        if (type != cudaGraphNodeTypeGraph)
            continue;
        cudaGraph_t child = nullptr;
        SLUICE_CUDA_CHECK(cudaGraphChildGraphNodeGetGraph(node, &child));
        count += node_count(child);
    }
    return count;
}

// Calls `visit(const void* memory, std::size_t bytes, bool is_argument)` for all that describes the graph's nodes.
template <class Visit>
void CudaGraphs::visit_words(cudaGraph_t graph, Visit&& visit) {
    for (const cudaGraphNode_t node : nodes_of(graph)) {
        cudaGraphNodeType type{};
        SLUICE_CUDA_CHECK(cudaGraphNodeGetType(node, &type));
        visit(&type, sizeof(type), false);
        if (type == cudaGraphNodeTypeKernel) {
            cudaKernelNodeParams kernel{};
            SLUICE_CUDA_CHECK(cudaGraphKernelNodeGetParams(node, &kernel));
            const unsigned shape[] = {kernel.gridDim.x,     kernel.gridDim.y,  kernel.gridDim.z,
                                      kernel.blockDim.x,    kernel.blockDim.y, kernel.blockDim.z,
                                      kernel.sharedMemBytes};
            visit(&kernel.func, sizeof(kernel.func), false);
            visit(shape, sizeof(shape), false);
#if CUDART_VERSION >= 13000
            // Kernels of libraries are not known to the runtime by name; their arguments stay unseen.
            std::size_t offset = 0;
            std::size_t bytes = 0;
            for (std::size_t index = 0;
                 kernel.kernelParams != nullptr &&
                 cudaFuncGetParamInfo(kernel.func, index, &offset, &bytes) == cudaSuccess;
                 ++index) {
                visit(kernel.kernelParams[index], bytes, true);
            }
            (void)cudaGetLastError();
#endif
        } else if (type == cudaGraphNodeTypeMemcpy) {
            cudaMemcpy3DParms copy{};
            // Not to be had for copies of one dimension between some kinds of memory.
            if (cudaGraphMemcpyNodeGetParams(node, &copy) == cudaSuccess) {
                visit(&copy.srcPtr.ptr, sizeof(void*), true);
                visit(&copy.dstPtr.ptr, sizeof(void*), true);
                visit(&copy.extent, sizeof(copy.extent), false);
            }
            (void)cudaGetLastError();
        } else if (type == cudaGraphNodeTypeMemset) {
            cudaMemsetParams fill{};
            SLUICE_CUDA_CHECK(cudaGraphMemsetNodeGetParams(node, &fill));
            visit(&fill.dst, sizeof(fill.dst), true);
            visit(&fill.value, sizeof(fill.value), false);
            visit(&fill.width, sizeof(fill.width), false);
            visit(&fill.height, sizeof(fill.height), false);
        } else if (type == cudaGraphNodeTypeGraph) {
            cudaGraph_t child = nullptr;
            SLUICE_CUDA_CHECK(cudaGraphChildGraphNodeGetGraph(node, &child));
            visit_words(child, visit);
        }
    }
}

inline std::uint64_t CudaGraphs::signature(cudaGraph_t graph) {
    std::uint64_t hash = 0xcbf29ce484222325U; // FNV-1a
    visit_words(graph, [&](const void* memory, std::size_t bytes, bool) {
        for (std::size_t index = 0; index < bytes; ++index)
            hash = (hash ^ static_cast<const unsigned char*>(memory)[index]) * 0x100000001b3U;
    });
    return hash;
}

inline std::vector<const void*> CudaGraphs::device_pointers(cudaGraph_t graph) {
    std::vector<const void*> pointers;
    visit_words(graph, [&](const void* memory, std::size_t bytes, bool is_argument) {
        // An argument may be a structure with pointers among other things: try each word of it.
        for (std::size_t offset = 0; is_argument && offset + sizeof(void*) <= bytes;
             offset += sizeof(void*)) {
            const void* pointer = nullptr;
            std::memcpy(&pointer, static_cast<const char*>(memory) + offset, sizeof(pointer));
            if (pointer != nullptr && is_device_memory(pointer))
                pointers.push_back(pointer);
        }
    });
    return pointers;
}

inline CudaGraphs::Capture CudaGraphs::capture_of(cudaStream_t stream) {
    Capture capture;
    cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
#if CUDART_VERSION >= 13000
    SLUICE_CUDA_CHECK(cudaStreamGetCaptureInfo(stream, &status, nullptr, &capture.graph, &capture.last,
                                               &capture.edges, &capture.last_count));
#elif CUDART_VERSION >= 12030
    SLUICE_CUDA_CHECK(cudaStreamGetCaptureInfo_v3(stream, &status, nullptr, &capture.graph, &capture.last,
                                                  &capture.edges, &capture.last_count));
#else
    SLUICE_CUDA_CHECK(cudaStreamGetCaptureInfo_v2(stream, &status, nullptr, &capture.graph, &capture.last,
                                                  &capture.last_count));
#endif
    if (status != cudaStreamCaptureStatusActive)
        throw Error("the stream is not being captured, or its capture has become invalid");
    return capture;
}

inline void CudaGraphs::require_conditions(ConditionKind kind, int bodies) {
    // The first to know `if` and `while`; a second body and `switch` came later.
    const int needed = kind == ConditionKind::select || bodies > 1 ? 12080 : 12040;
    int driver = 0;
    SLUICE_CUDA_CHECK(cudaDriverGetVersion(&driver));
    const int there = driver < CUDART_VERSION ? driver : CUDART_VERSION;
    if (there < needed) {
        const auto version = [](int number) {
            return std::to_string(number / 1000) + "." + std::to_string(number % 1000 / 10);
        };
        throw Error("this kind of conditional node needs CUDA " + version(needed) +
                    ", of driver and toolkit; here is " + version(there));
    }
}

inline CudaGraphs::NativeCondition CudaGraphs::create_condition(cudaGraph_t graph,
                                                                [[maybe_unused]] unsigned* word) {
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

inline void CudaGraphs::capture_condition(cudaStream_t stream, NativeCondition condition, ConditionKind kind,
                                          int count, cudaGraph_t* bodies) {
    require_conditions(kind, count);
#if CUDART_VERSION >= 12040
    const Capture capture = capture_of(stream);
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
    cudaGraphNode_t node = nullptr;
#if CUDART_VERSION >= 13000
    SLUICE_CUDA_CHECK(
        cudaGraphAddNode(&node, capture.graph, capture.last, capture.edges, capture.last_count, &parameters));
    SLUICE_CUDA_CHECK(
        cudaStreamUpdateCaptureDependencies(stream, &node, nullptr, 1, cudaStreamSetCaptureDependencies));
#else
    SLUICE_CUDA_CHECK(cudaGraphAddNode_v2(&node, capture.graph, capture.last, capture.edges,
                                          capture.last_count, &parameters));
    SLUICE_CUDA_CHECK(
        cudaStreamUpdateCaptureDependencies(stream, &node, 1, cudaStreamSetCaptureDependencies));
#endif
    for (int body = 0; body < count; ++body)
        bodies[body] = parameters.conditional.phGraph_out[body];
#else
    (void)stream;
    (void)condition;
    (void)bodies;
#endif
}

inline void CudaGraphs::begin_capture_into(cudaStream_t stream, cudaGraph_t body, CaptureMode mode) {
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

#endif
