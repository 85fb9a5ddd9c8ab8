// The public headers in a user's .cu file. Runs no kernel, so that it needs no device.
#include <sluice/sluice.hpp>

__global__ void scale(float* values, std::size_t count, float factor) {
    const std::size_t i = blockIdx.x * static_cast<std::size_t>(blockDim.x) + threadIdx.x;
    if (i < count)
        values[i] *= factor;
}

void launch(sluice::CudaStreamRef stream, sluice::DeviceSpan<float> values) {
    scale<<<1, 32, 0, stream>>>(values.data(), values.size(), 2.0f);
}

int kernel_compiled() { return SLUICE_HAS_CUDA; }
