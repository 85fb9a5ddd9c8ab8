// The Cuda backend's copies whose destination is found when they run.
#pragma once

#include <sluice/backend/detail/cuda/error.hpp>

#if SLUICE_HAS_CUDA

#include <sluice/backend/detail/ring_copy.hpp>

namespace sluice {

/// The part of `Cuda` that deals with them.
struct CudaRingCopies {
    /// Whether the current device has them. `load`: their kernel is loaded at the first call for each device, not in a capture.
    static bool has_ring_copies(bool load) noexcept;

protected:
    static void launch_ring_copy(cudaStream_t stream, const detail::RingCopy& copy);
    /// False, and nothing is launched, where a copy by the copy engine is quicker, or the kernel cannot be had or may not reach.
    static bool launch_small_copy(cudaStream_t stream, const detail::RingCopy& copy);
};

} // namespace sluice

#endif
