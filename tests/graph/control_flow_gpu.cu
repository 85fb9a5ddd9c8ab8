// The kernels behind branch_ops.hpp.
#include "graph/branch_ops.hpp"

namespace sluice::test::ops {

namespace {

__global__ void decide_below_kernel(ConditionSetter setter, const unsigned* x, unsigned limit) {
    setter.set(*x < limit ? 1 : 0);
}

__global__ void decide_kernel(ConditionSetter setter, const unsigned* x) { setter.set(*x); }

__global__ void multiply_add_kernel(unsigned* x, unsigned factor, unsigned term) { *x = *x * factor + term; }

__global__ void add_guarded_kernel(ConditionSetter setter, unsigned* x, unsigned term, unsigned limit) {
    if (setter.get() == 0)
        return;
    *x += term;
    setter.set(*x < limit ? 1 : 0);
}

} // namespace

void decide_below(cudaStream_t stream, ConditionSetter setter, const unsigned* x, unsigned limit) {
    decide_below_kernel<<<1, 1, 0, stream>>>(setter, x, limit);
    SLUICE_CUDA_CHECK(cudaGetLastError());
}

void decide(cudaStream_t stream, ConditionSetter setter, const unsigned* x) {
    decide_kernel<<<1, 1, 0, stream>>>(setter, x);
    SLUICE_CUDA_CHECK(cudaGetLastError());
}

void multiply_add(cudaStream_t stream, unsigned* x, unsigned factor, unsigned term) {
    multiply_add_kernel<<<1, 1, 0, stream>>>(x, factor, term);
    SLUICE_CUDA_CHECK(cudaGetLastError());
}

void add_guarded(cudaStream_t stream, ConditionSetter setter, unsigned* x, unsigned term, unsigned limit) {
    add_guarded_kernel<<<1, 1, 0, stream>>>(setter, x, term, limit);
    SLUICE_CUDA_CHECK(cudaGetLastError());
}

BasicNode<Cuda> decide_below(CudaGraphBuilder& builder, ConditionSetter setter, const unsigned* x,
                             unsigned limit, const CudaNodes& after) {
    return builder.kernel({}, decide_below_kernel, after, setter, x, limit);
}

BasicNode<Cuda> decide(CudaGraphBuilder& builder, ConditionSetter setter, const unsigned* x,
                       const CudaNodes& after) {
    return builder.kernel({}, decide_kernel, after, setter, x);
}

BasicNode<Cuda> multiply_add(CudaGraphBuilder& builder, unsigned* x, unsigned factor, unsigned term,
                             const CudaNodes& after) {
    return builder.kernel({}, multiply_add_kernel, after, x, factor, term);
}

} // namespace sluice::test::ops
