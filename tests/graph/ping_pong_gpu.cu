// The kernels behind ping_pong_ops.hpp.
#include "graph/ping_pong_ops.hpp"

namespace sluice::test::ops {

namespace {

__global__ void relax_kernel(PingPongView<unsigned> x) {
    const std::size_t i = std::size_t{blockIdx.x} * blockDim.x + threadIdx.x;
    if (i < x.size())
        x.back()[i] = relaxed(x.front(), i, x.size());
}

__global__ void relax_plain_kernel(const unsigned* from, unsigned* to, std::size_t count) {
    const std::size_t i = std::size_t{blockIdx.x} * blockDim.x + threadIdx.x;
    if (i < count)
        to[i] = relaxed(from, i, count);
}

__global__ void count_down_kernel(ConditionSetter setter, unsigned* steps, PingPongView<unsigned> x,
                                  bool swaps) {
    if (swaps)
        x.swap();
    setter.set(--*steps);
}

} // namespace

void relax(cudaStream_t stream, PingPongView<unsigned> x) {
    const auto blocks = static_cast<unsigned>((x.size() + 127) / 128);
    relax_kernel<<<blocks, 128, 0, stream>>>(x);
    SLUICE_CUDA_CHECK(cudaGetLastError());
}

void relax(cudaStream_t stream, const unsigned* from, unsigned* to, std::size_t count) {
    relax_plain_kernel<<<static_cast<unsigned>((count + 127) / 128), 128, 0, stream>>>(from, to, count);
    SLUICE_CUDA_CHECK(cudaGetLastError());
}

void count_down(cudaStream_t stream, ConditionSetter setter, unsigned* steps, PingPongView<unsigned> x,
                bool swaps) {
    count_down_kernel<<<1, 1, 0, stream>>>(setter, steps, x, swaps);
    SLUICE_CUDA_CHECK(cudaGetLastError());
}

} // namespace sluice::test::ops
