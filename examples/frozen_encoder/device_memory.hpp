/// \file
/// How much of a device's memory is taken.
#pragma once

#include <cstddef>
#include <optional>
#include <type_traits>

#include <sluice/backend/default.hpp>

#if SLUICE_HAS_CUDA
#include <cuda_runtime_api.h>

#include <sluice/backend/detail/cuda/error.hpp>
#endif

namespace frozen_encoder {

/// Bytes of the current device's memory that are taken, as its driver counts them, by whichever process; nothing on
/// the Host backend.
template <sluice::Backend B>
std::optional<std::size_t> device_memory_taken() {
#if SLUICE_HAS_CUDA
    if constexpr (std::is_same_v<B, sluice::Cuda>) {
        std::size_t free = 0, total = 0;
        SLUICE_CUDA_CHECK(cudaMemGetInfo(&free, &total));
        return total - free;
    }
#endif
    return std::nullopt;
}

} // namespace frozen_encoder
