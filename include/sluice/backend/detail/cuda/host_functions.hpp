// Host functions in the order of CUDA streams.
#pragma once

#include <sluice/backend/detail/cuda/error.hpp>

#if SLUICE_HAS_CUDA

#include <sluice/backend/detail/host/task.hpp>

namespace sluice {

/// The part of `Cuda` that runs host functions.
struct CudaHostFunctions {
protected:
    static void launch_host_function(cudaStream_t stream, host::Task task);
    // `graph` is the one that `stream` is being captured into.
    static void capture_host_function(cudaStream_t stream, cudaGraph_t graph, host::Task task);
    static bool any_host_failure() noexcept;
    static void throw_host_failure(cudaStream_t stream);
    static void clear_host_failure(cudaStream_t stream) noexcept;
    // Before the stream is destroyed.
    static void forget_host_stream(cudaStream_t stream) noexcept;
};

} // namespace sluice

#endif
