// Writing parameters on a GPU.
#include <augment/parameters.hpp>
#include <nn/core/ceil_div.hpp>

namespace augment {
namespace {

__global__ void parameters_kernel(ParameterSource<sluice::Cuda> source, SampleParameters* table, int count) {
    const int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
    if (i < count)
        table[i] = source[i];
}

} // namespace

template <sluice::Backend B>
void write_parameters(sluice::BasicStreamRef<B> stream, const ParameterSource<B>& source,
                      std::type_identity_t<sluice::DeviceSpan<SampleParameters, B>> table) {
    const int count = static_cast<int>(detail::parameter_count(table.size()));
    source.require_count(count);
    if (count == 0)
        return;
    constexpr int threads = 128;
    const auto blocks = static_cast<unsigned>(nn::ceil_div(count, threads));
    parameters_kernel<<<blocks, threads, 0, stream.get()>>>(source, table.data(), count);
    SLUICE_CUDA_CHECK(cudaGetLastError());
}

template void write_parameters(sluice::CudaStreamRef, const ParameterSource<sluice::Cuda>&,
                               sluice::DeviceSpan<SampleParameters, sluice::Cuda>);

} // namespace augment
