/// \file
/// How kernels are launched.
#pragma once

#include <cuda_runtime.h>

#include <type_traits>

#include <sluice/backend/launch.hpp>

namespace sluice::ragged::detail {

/// Enqueues `kernel` on `stream`, `blocks` blocks of `threads` threads. Throws `Error` when the launch is refused.
template <class... Parameters>
void launch(void (*kernel)(Parameters...), unsigned blocks, unsigned threads, cudaStream_t stream,
            const std::type_identity_t<Parameters>&... arguments) {
    kernel<<<blocks, threads, 0, stream>>>(arguments...);
    SLUICE_CUDA_CHECK(cudaGetLastError());
}

/// The same right behind another kernel of the operation: this one may begin while that ends, and waits for it first of all. The
/// first of an operation does not: what the caller had before it may be a kernel that did not wait for those before itself.
template <class... Parameters>
void launch_next(void (*kernel)(Parameters...), unsigned blocks, unsigned threads, cudaStream_t stream,
                 const std::type_identity_t<Parameters>&... arguments) {
    launch_early(CudaStreamRef(stream), {.grid = blocks, .block = threads}, kernel, arguments...);
}

} // namespace sluice::ragged::detail
