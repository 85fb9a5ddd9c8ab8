// The parameters of images on a GPU.
#include "images_kernels.hpp"

namespace sluice_torch {
namespace {

__global__ void parameters_kernel(const augment::ParameterSource<sluice::Cuda> source, float* table,
                                  int count) {
    const int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
    if (i >= count)
        return;
    const augment::SampleParameters parameters = source[i];
    float* const row = table + 4 * static_cast<std::int64_t>(i);
    row[0] = static_cast<float>(parameters.top);
    row[1] = static_cast<float>(parameters.left);
    row[2] = parameters.angle_degrees;
    row[3] = parameters.sigma;
}

} // namespace

void launch_parameters(sluice::CudaStreamRef stream, const augment::ParameterSource<sluice::Cuda>& source,
                       float* table, int count) {
    source.require_count(count);
    constexpr int threads = 128;
    parameters_kernel<<<static_cast<unsigned>((count + threads - 1) / threads), threads, 0, stream.get()>>>(
        source, table, count);
    SLUICE_CUDA_CHECK(cudaGetLastError());
}

} // namespace sluice_torch
