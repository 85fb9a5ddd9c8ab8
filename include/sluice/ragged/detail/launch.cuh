// How kernels are launched.
#pragma once

#include <cuda_runtime.h>

#include <type_traits>

#include <sluice/backend/cuda.hpp>

namespace sluice::ragged::detail {

/// Enqueues `kernel` on `stream`, `blocks` blocks of `threads` threads. Throws `Error` when the launch is refused.
template <class... Parameters>
void launch(void (*kernel)(Parameters...), unsigned blocks, unsigned threads, cudaStream_t stream,
            const std::type_identity_t<Parameters>&... arguments) {
    kernel<<<blocks, threads, 0, stream>>>(arguments...);
    SLUICE_CUDA_CHECK(cudaGetLastError());
}

} // namespace sluice::ragged::detail
