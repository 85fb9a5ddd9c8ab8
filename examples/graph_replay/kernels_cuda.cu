// The kernels on the Cuda backend.
#include <nn/elementwise/for_each.cuh>

#include <graph_replay/kernels_bodies.hpp>

namespace graph_replay {

using KernelBackend = sluice::Cuda;

namespace {

/// One block, a thread for each equation.
__global__ void __launch_bounds__(System::rows)
    iterate_kernel(System system, sluice::ConditionSetter unsolved) {
    // A thread that has nothing to do still comes to the barriers.
    const bool active = unsolved.get() != 0;
    const unsigned row = threadIdx.x;
    const unsigned iterations = *system.iterations;
    const float residual = detail::residual(system, row);
    // Also the barrier between the last read of x, of the count and of the condition, and the writes of them.
    const bool any_off = __syncthreads_or(detail::is_off(system, residual)) != 0;
    const bool more = active && any_off && iterations < system.most;
    if (more)
        detail::move(system, row, residual);
    if (row == 0 && active) {
        if (more)
            *system.iterations = iterations + 1;
        unsolved.set(more);
    }
}

} // namespace

template <>
void iterate(sluice::CudaStreamRef stream, const System& system, sluice::ConditionSetter unsolved) {
    iterate_kernel<<<1, System::rows, 0, stream.get()>>>(system, unsolved);
    SLUICE_CUDA_CHECK(cudaGetLastError());
}

} // namespace graph_replay

#include <graph_replay/kernels_instantiate.hpp>
