/// \file
/// The Cuda backend's graphs.
#pragma once

#include <sluice/backend/detail/cuda/error.hpp>

#if SLUICE_HAS_CUDA

#include <cstddef>

#include <sluice/backend/detail/cuda/conditions.hpp>
#include <sluice/backend/detail/cuda/default_stream_watch.hpp>
#include <sluice/backend/detail/cuda/graph_contents.hpp>
#include <sluice/backend/detail/cuda/kernel_nodes.hpp>
#include <sluice/backend/detail/cuda/per_thread_stream_watch.hpp>
#include <sluice/backend/types.hpp>

namespace sluice {

/// The part of `Cuda` that deals with graphs. See the concept `GraphBackend` for what each function does.
struct CudaGraphs : CudaGraphContents, CudaConditions, CudaKernelNodes {
    using NativeGraph = cudaGraph_t;
    using NativeGraphExec = cudaGraphExec_t;
    using NativeNode = cudaGraphNode_t;
    using DefaultStreamWatch = detail::DefaultStreamWatch;
    using PerThreadStreamWatch = detail::PerThreadStreamWatch;

    static ObjectCounts& counts() noexcept;

    // Capture
    // -------------------------------------------------------------------------------------------------
    static bool is_default_stream(cudaStream_t stream) noexcept;
    static bool is_capturing(cudaStream_t stream);
    static void begin_capture(cudaStream_t stream, CaptureMode mode);
    static cudaGraph_t end_capture(cudaStream_t stream);

    static void record_external(cudaEvent_t event, cudaStream_t stream);

    // Graphs
    // --------------------------------------------------------------------------------------------------
    static cudaGraph_t create_graph();
    static void destroy_graph(cudaGraph_t graph) noexcept;

    // Executables
    // --------------------------------------------------------------------------------------------------
    static cudaGraphExec_t instantiate(cudaGraph_t graph);
    static void destroy_graph_exec(cudaGraphExec_t executable) noexcept;
    static bool update(cudaGraphExec_t executable, cudaGraph_t graph);
    static void upload(cudaGraphExec_t executable, cudaStream_t stream);
    static void launch(cudaGraphExec_t executable, cudaStream_t stream);

    // Nodes by hand
    // --------------------------------------------------------------------------------------------------
    static cudaGraphNode_t add_empty(cudaGraph_t graph, const cudaGraphNode_t* after, std::size_t count);
    static cudaGraphNode_t add_copy(cudaGraph_t graph, const cudaGraphNode_t* after, std::size_t count,
                                    void* to, const void* from, std::size_t bytes, CopyKind kind);
    static cudaGraphNode_t add_fill(cudaGraph_t graph, const cudaGraphNode_t* after, std::size_t count,
                                    void* memory, int value, std::size_t bytes);
    static cudaGraphNode_t add_host(cudaGraph_t graph, const cudaGraphNode_t* after, std::size_t count,
                                    void (*function)(void*), void* data);
    static cudaGraphNode_t add_child(cudaGraph_t graph, const cudaGraphNode_t* after, std::size_t count,
                                     cudaGraph_t child);
    static void add_dependency(cudaGraph_t graph, cudaGraphNode_t earlier, cudaGraphNode_t later);
    static void set_copy(cudaGraphExec_t executable, cudaGraphNode_t node, void* to, const void* from,
                         std::size_t bytes, CopyKind kind);
    static void set_fill(cudaGraphExec_t executable, cudaGraphNode_t node, void* memory, int value,
                         std::size_t bytes);
    static void set_host(cudaGraphExec_t executable, cudaGraphNode_t node, void (*function)(void*),
                         void* data);
    static void set_child(cudaGraphExec_t executable, cudaGraphNode_t node, cudaGraph_t child);

private:
    static cudaMemcpyKind native_kind(CopyKind kind) noexcept;
    static cudaMemsetParams fill_parameters(void* memory, int value, std::size_t bytes);

    friend struct UncheckedCuda;
};

} // namespace sluice

#endif
