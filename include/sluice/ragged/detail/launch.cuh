/// \file
/// How kernels are launched.
#pragma once

#include <type_traits>

#include <sluice/backend/launch.hpp>

namespace sluice::ragged::detail {

/// Enqueues `kernel` on `stream`, `blocks` blocks of `threads` threads, so that it may begin while the kernel before it ends, be it
/// of the same operation or the caller's: each of these kernels waits for that first of all. Throws `Error` when the launch is refused.
template <class... Parameters>
void launch(void (*kernel)(Parameters...), unsigned blocks, unsigned threads, cudaStream_t stream,
            const std::type_identity_t<Parameters>&... arguments) {
    launch_early(CudaStreamRef(stream), {.grid = blocks, .block = threads}, kernel, arguments...);
}

} // namespace sluice::ragged::detail
