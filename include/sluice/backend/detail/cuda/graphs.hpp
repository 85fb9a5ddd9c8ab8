// The Cuda backend's graphs.
#pragma once

#include <sluice/backend/detail/cuda/capture.hpp>
#include <sluice/backend/detail/cuda/error.hpp>

#if SLUICE_HAS_CUDA

#include <cstddef>

#include <sluice/backend/detail/cuda/default_stream_watch.hpp>
#include <sluice/backend/detail/cuda/graph_contents.hpp>
#include <sluice/backend/kernel_dims.hpp>
#include <sluice/backend/types.hpp>

namespace sluice {

/// The part of `Cuda` that launches kernels from graphs. See the concept `KernelGraphBackend` for what each function does.
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

/// The part of `Cuda` that deals with conditional nodes. See the concept `GraphBackend` for what each function does.
struct CudaConditions {
    using NativeCondition = unsigned long long;

    static void require_conditions(ConditionKind kind, int bodies);
    /// Throws `Error` where driver or toolkit is older than CUDA `needed` (12050: 12.5), which `what` asks for.
    static void require_version(int needed, const char* what);
    static cudaGraph_t capturing_graph(cudaStream_t stream);
    /// Tells one capture from another that fills a graph at the same address.
    static unsigned long long capture_number(cudaStream_t stream);
    static NativeCondition create_condition(cudaGraph_t graph, unsigned* word);
    /// Adds a conditional node after the given ones, and says which graphs its bodies are.
    static cudaGraphNode_t add_condition(cudaGraph_t graph, const cudaGraphNode_t* after,
                                         std::size_t after_count, NativeCondition condition,
                                         ConditionKind kind, int count, cudaGraph_t* bodies);
    static void capture_condition(cudaStream_t stream, NativeCondition condition, ConditionKind kind,
                                  int count, cudaGraph_t* bodies);
    static void begin_capture_into(cudaStream_t stream, cudaGraph_t body, CaptureMode mode);
    static void end_capture_into(cudaStream_t stream);

protected:
    static cudaStreamCaptureMode native_mode(CaptureMode mode) noexcept;

private:
#if CUDART_VERSION >= 12040
    static cudaGraphNodeParams condition_parameters(NativeCondition condition, ConditionKind kind, int count);
#endif
};

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
