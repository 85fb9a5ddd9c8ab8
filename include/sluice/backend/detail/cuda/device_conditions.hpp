// How a kernel decides a conditional node.
#pragma once

#include <sluice/backend/config.hpp>
#include <sluice/backend/error.hpp>

#if SLUICE_HAS_CUDA
#include <cuda_runtime_api.h>
#endif

namespace sluice::detail {

/// Sets the value of the conditional node's `handle`, if there is one; on the host nothing, whose nodes have none.
SLUICE_HOST_DEVICE inline void set_condition([[maybe_unused]] unsigned long long handle,
                                             [[maybe_unused]] unsigned value) {
#if defined(__CUDA_ARCH__) && CUDART_VERSION >= 12040
    if (handle != 0)
        cudaGraphSetConditional(handle, value);
#endif
}

/// Throws `Error` on the host if a condition is one that kernels alone may decide, as its number is in device memory, or none.
SLUICE_HOST_DEVICE inline void require_kernel([[maybe_unused]] bool kernels_only,
                                              [[maybe_unused]] const unsigned* word) {
#if !defined(__CUDA_ARCH__)
    if (word == nullptr)
        throw Error("a ConditionSetter is no condition's; expected one that a condition's setter() gave");
    if (kernels_only)
        throw Error("a ConditionSetter of CUDA's was used on the host, where its number cannot be reached; "
                    "pass it to a kernel");
#endif
}

} // namespace sluice::detail
