// How kernels are launched.
#pragma once

#include <cuda_runtime.h>

#include <type_traits>

#include <sluice/backend/cuda.hpp>
#include <sluice/backend/launch.hpp>

namespace sluice::ragged::detail {

/// Enqueues `kernel` on `stream`, `blocks` blocks of `threads` threads. Throws `Error` when the launch is refused.
template <class... Parameters>
void launch(void (*kernel)(Parameters...), unsigned blocks, unsigned threads, cudaStream_t stream,
            const std::type_identity_t<Parameters>&... arguments) {
    sluice::detail::launch_kernel<Cuda, Parameters...>(
        BasicStreamRef<Cuda>(stream), {.grid = blocks, .block = threads}, kernel, false, arguments...);
}

} // namespace sluice::ragged::detail
