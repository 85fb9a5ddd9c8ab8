/// \file
/// A copy within device memory, beside which kernels that are bound by bandwidth are measured.
#pragma once

#include <cuda_runtime.h>

#include <cstddef>

#include "cuda_baselines.cuh"
#include "random_bytes.hpp"

namespace bench {

/// A copy within device memory that reads and writes `moved` bytes in all.
class CopyOfBytes {
public:
    explicit CopyOfBytes(std::size_t moved) : bytes_(moved / 2) {
        CHECK(cudaMalloc(&from_, bytes_));
        CHECK(cudaMalloc(&to_, bytes_));
        CHECK(cudaMemcpy(from_, random_bytes(bytes_).data(), bytes_, cudaMemcpyHostToDevice));
    }
    CopyOfBytes(const CopyOfBytes&) = delete;
    CopyOfBytes& operator=(const CopyOfBytes&) = delete;
    ~CopyOfBytes() {
        cudaFree(from_);
        cudaFree(to_);
        cudaStreamDestroy(stream_);
    }

    void step() { CHECK(cudaMemcpyAsync(to_, from_, bytes_, cudaMemcpyDeviceToDevice, stream_)); }
    void sync() { CHECK(cudaStreamSynchronize(stream_)); }

private:
    std::size_t bytes_;
    void* from_ = nullptr;
    void* to_ = nullptr;
    cudaStream_t stream_ = make_stream();
};

} // namespace bench
