/// \file
/// Conditional nodes of the Cuda backend's graphs.
#pragma once

#include <sluice/backend/detail/cuda/error.hpp>

#if SLUICE_HAS_CUDA

#include <cstddef>

#include <sluice/backend/types.hpp>

namespace sluice {

/// The part of `Cuda` that deals with conditional nodes. See the concept `GraphBackend` for what each function
/// does.
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

} // namespace sluice

#endif
