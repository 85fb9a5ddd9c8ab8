// The Cuda backend's semaphores.
#pragma once

#include <sluice/backend/detail/cuda/error.hpp>

#if SLUICE_HAS_CUDA

#include <cstdint>

namespace sluice::detail {
struct CudaSemaphoreState;
} // namespace sluice::detail

namespace sluice {

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

} // namespace sluice

#endif
