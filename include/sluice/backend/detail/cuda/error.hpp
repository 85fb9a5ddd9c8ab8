// Every result of the CUDA runtime is checked.
#pragma once

#include <sluice/backend/config.hpp>

#if SLUICE_HAS_CUDA

#include <cuda_runtime_api.h>

#include <sluice/backend/error.hpp>

/// Evaluates a call of the CUDA runtime and throws `sluice::Error`, with the call's text, the error's name
/// and this place, unless it returns `cudaSuccess`.
#define SLUICE_CUDA_CHECK(...) ::sluice::detail::check_cuda((__VA_ARGS__), #__VA_ARGS__, __FILE__, __LINE__)

namespace sluice::detail {

/// Clears `error`, which a call has just returned, from the runtime's memory, so that a later look does not find it.
/// An error that was there before the call (`before`) stays: not every failed call replaces it, and
/// `cudaGetLastError` would take that one instead.
inline void forget_cuda_error(cudaError_t error, cudaError_t before = cudaSuccess) {
    if (error != cudaSuccess && error != before && cudaPeekAtLastError() == error)
        (void)cudaGetLastError();
}

[[noreturn]] inline void throw_cuda_error(cudaError_t error, const char* call, const char* file, int line) {
    forget_cuda_error(error);
    throw Error(call, cudaGetErrorName(error), cudaGetErrorString(error), file, line);
}

inline void check_cuda(cudaError_t error, const char* call, const char* file, int line) {
    if (error != cudaSuccess) [[unlikely]] {
        throw_cuda_error(error, call, file, line);
    }
}

} // namespace sluice::detail

#endif
