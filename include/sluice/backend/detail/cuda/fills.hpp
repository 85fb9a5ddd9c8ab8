// The Cuda backend's fills with elements of several bytes.
#pragma once

#include <sluice/backend/detail/cuda/driver_function.hpp>

#if SLUICE_HAS_CUDA

#include <cstddef>
#include <cstdint>

namespace sluice::detail {

/// The driver's fills with patterns of several bytes. The runtime has them for nodes of graphs only.
struct PatternFills {
    decltype(&cuMemsetD16Async) of_2_bytes = nullptr;
    decltype(&cuMemsetD32Async) of_4_bytes = nullptr;

    /// Throws `Error` if the driver has none.
    static const PatternFills& get() {
        static const PatternFills fills{
            driver_function<decltype(&cuMemsetD16Async)>("cuMemsetD16Async", "a fill"),
            driver_function<decltype(&cuMemsetD32Async)>("cuMemsetD32Async", "a fill")};
        return fills;
    }
};

/// Writes the lowest `element_bytes` (2 or 4) bytes of `pattern` `count` times. Throws `Error`.
inline void fill_with_pattern(void* memory, std::uint32_t pattern, std::size_t element_bytes,
                              std::size_t count, cudaStream_t stream) {
    const PatternFills& fills = PatternFills::get();
    const auto address = reinterpret_cast<CUdeviceptr>(memory);
    const auto fill = [&] {
        return element_bytes == 2
                   ? fills.of_2_bytes(address, static_cast<unsigned short>(pattern), count, stream)
                   : fills.of_4_bytes(address, pattern, count, stream);
    };
    CUresult result = fill();
    // The driver does not make the device current on a thread that is new to it, as the runtime's own calls do.
    if (result == CUDA_ERROR_INVALID_CONTEXT || result == CUDA_ERROR_NOT_INITIALIZED) [[unlikely]] {
        int device = 0;
        SLUICE_CUDA_CHECK(cudaGetDevice(&device));
        SLUICE_CUDA_CHECK(cudaSetDevice(device));
        result = fill();
    }
    check_driver(result, element_bytes == 2 ? "cuMemsetD16Async" : "cuMemsetD32Async", __FILE__, __LINE__);
}

} // namespace sluice::detail

#endif
