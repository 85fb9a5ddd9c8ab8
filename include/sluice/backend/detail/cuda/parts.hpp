// The parts of the Cuda backend beside graphs: host functions, copies whose destination is found when they run, semaphores, and
// shares of a device, which are green contexts.
#pragma once

#include <sluice/backend/detail/cuda/error.hpp>

#if SLUICE_HAS_CUDA

#include <sluice/backend/detail/copies.hpp>
#include <sluice/backend/detail/host/task.hpp>
#include <sluice/backend/types.hpp>

namespace sluice {

namespace detail {
struct CudaSemaphoreState;
} // namespace detail

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

/// The part of `Cuda` that deals with copies whose destination is found when they run.
struct CudaRingCopies {
    /// Whether the current device has them. `load`: their kernel is loaded at the first call for each device, not in a capture.
    static bool has_ring_copies(bool load) noexcept;

protected:
    static void launch_ring_copy(cudaStream_t stream, const detail::RingCopy& copy);
    /// False, and nothing is launched, where a copy by the copy engine is quicker, or the kernel cannot be had or may not reach.
    static bool launch_small_copy(cudaStream_t stream, const detail::RingCopy& copy);
};

/// The part of `Cuda` that deals with semaphores. See the concept `SemaphoreBackend` for what each function does.
struct CudaSemaphores {
    using NativeSemaphore = detail::CudaSemaphoreState*;

protected:
    static NativeSemaphore make_semaphore();
    static void drop_semaphore(NativeSemaphore semaphore) noexcept;
    static void write_on(cudaStream_t stream, NativeSemaphore semaphore, std::uint32_t value);
    static void wait_on(cudaStream_t stream, NativeSemaphore semaphore, std::uint32_t value);

public:
    static void signal_semaphore(NativeSemaphore semaphore, std::uint32_t value) noexcept;
    static std::uint32_t semaphore_value(NativeSemaphore semaphore) noexcept;
    /// The same, of which a checker learns nothing.
    static std::uint32_t look_at_semaphore(NativeSemaphore semaphore) noexcept;
    /// Raises it, and its counter is not used again: a stream may look at it late.
    static void fail_semaphore(NativeSemaphore semaphore, std::uint32_t value) noexcept;
    static void reset_semaphore(NativeSemaphore semaphore) noexcept;
};

/// The part of `Cuda` that deals with shares. See the concept `ShareBackend` for what each function does. They take a driver and
/// a toolkit of CUDA 12.5 or later.
struct CudaShares {
    static int multiprocessors();
    static int share_unit();
    static int create_shares(const int* counts, std::size_t count, bool with_rest, void** shares);
    static void destroy_share(void* share) noexcept;
    static void* share_of(cudaStream_t stream) noexcept;

protected:
    static cudaStream_t create_stream_of(const StreamOptions& options);
    static void forget_stream(cudaStream_t stream) noexcept;
};

} // namespace sluice

#endif
