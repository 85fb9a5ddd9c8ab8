/// \file
/// Whether CUDA can be used on this machine.
#pragma once

#include <string>

#include <common/options.hpp>
#include <sluice/backend/default.hpp>

namespace examples {

/// Asks the CUDA runtime, where the program has it. Never throws: a driver that fails counts as no device.
inline CudaProbe probe_cuda() {
    CudaProbe probe;
#if SLUICE_HAS_CUDA
    probe.built = true;
    const cudaError_t error = cudaGetDeviceCount(&probe.devices);
    if (error != cudaSuccess) {
        probe.devices = 0;
        probe.reason = cudaGetErrorString(error);
        (void)cudaGetLastError();
    }
#endif
    return probe;
}

} // namespace examples
