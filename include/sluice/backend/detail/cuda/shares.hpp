// The Cuda backend's shares of a device: green contexts.
#pragma once

#include <sluice/backend/detail/cuda/error.hpp>

#if SLUICE_HAS_CUDA

#include <cstddef>

#include <sluice/backend/types.hpp>

namespace sluice {

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
