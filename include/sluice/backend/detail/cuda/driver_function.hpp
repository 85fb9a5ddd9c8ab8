// Functions of the driver's that the CUDA runtime does not have.
#pragma once

#include <sluice/backend/detail/cuda/error.hpp>

#if SLUICE_HAS_CUDA

#include <cuda.h>

#include <string>

#include <sluice/backend/error.hpp>

namespace sluice::detail {

/// The driver's function `name`, of CUDA `version` (12050: 12.5), for `user`, looked up at run time, so that programs need
/// not link the driver's library. Throws `Error` if the driver has none.
template <class Function>
Function driver_function(const char* name, const char* user, unsigned version = 12000) {
    void* function = nullptr;
    cudaDriverEntryPointQueryResult found = cudaDriverEntryPointSymbolNotFound;
#if CUDART_VERSION >= 12050
    const cudaError_t error =
        cudaGetDriverEntryPointByVersion(name, &function, version, cudaEnableDefault, &found);
#else
    const cudaError_t error = cudaGetDriverEntryPoint(name, &function, cudaEnableDefault, &found);
#endif
    check_cuda(error, "cudaGetDriverEntryPoint", __FILE__, __LINE__);
    if (found != cudaDriverEntryPointSuccess || function == nullptr) {
        throw Error(std::string(user) + " needs the driver's " + name +
                    ", which this driver does not have; a driver for CUDA " + std::to_string(version / 1000) +
                    '.' + std::to_string(version % 1000 / 10) + " or later was expected");
    }
    return reinterpret_cast<Function>(function);
}

inline void check_driver(CUresult result, const char* call, const char* file, int line) {
    // The driver's numbers are the runtime's.
    if (result != CUDA_SUCCESS) [[unlikely]]
        throw_cuda_error(static_cast<cudaError_t>(result), call, file, line);
}

} // namespace sluice::detail

#endif
