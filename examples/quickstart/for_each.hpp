/// \file
/// One loop for GPU and CPU: `for_each<function>(stream, count, arguments...)`, and what the programs end with.
#pragma once

#include <cstddef>
#include <cstdio>

#include <sluice/sluice.hpp>

#if SLUICE_HAS_CUDA && !defined(__CUDACC__)
#error "compile this program with nvcc, or for the CPU with -DSLUICE_HAS_CUDA=0"
#endif

/// What `main` returns: 0 where the numbers are `right` and what was printed of them has got out, as on a full disk it has not.
inline int exit_code(bool right) {
    if (std::fflush(stdout) == 0 && std::ferror(stdout) == 0)
        return right ? 0 : 1;
    std::fputs("standard output cannot be written, and part of what was to be printed is missing\n", stderr);
    return 1;
}

/// Enqueues `function(i, arguments...)` for i = 0 … count - 1, in any order: here as one task of a CPU stream.
template <auto function, class... Arguments>
void for_each(sluice::HostStreamRef stream, std::size_t count, Arguments... arguments) {
    stream.enqueue([=] {
        for (std::size_t i = 0; i < count; ++i)
            function(i, arguments...);
    });
}

#if SLUICE_HAS_CUDA
template <auto function, class... Arguments>
__global__ void for_each_kernel(std::size_t count, Arguments... arguments) {
    const std::size_t i = std::size_t{blockIdx.x} * blockDim.x + threadIdx.x;
    if (i < count)
        function(i, arguments...);
}

/// The same as a kernel with a thread for each i.
template <auto function, class... Arguments>
void for_each(sluice::CudaStreamRef stream, std::size_t count, Arguments... arguments) {
    const auto blocks = static_cast<unsigned>((count + 255) / 256);
    if (blocks > 0)
        for_each_kernel<function><<<blocks, 256, 0, stream>>>(count, arguments...);
    SLUICE_CUDA_CHECK(cudaGetLastError());
}
#endif
