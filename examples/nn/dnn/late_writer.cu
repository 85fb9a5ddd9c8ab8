// Includes the toolkit alone, and so compiles in no time.
#include <nn/dnn/detail/late_writer.hpp>

#include <algorithm>

#include <cuda_runtime.h>

namespace nn::detail {
namespace {

constexpr int threads = 256;
constexpr unsigned long long longest_wait = 20'000'000; // ns
constexpr unsigned long long lateness = 200'000;        // ns

__device__ unsigned long long nanoseconds() {
    unsigned long long now;
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
    return now;
}

__device__ void be_late(const volatile unsigned* is_enqueued) {
    const unsigned long long begin = nanoseconds();
    unsigned long long now = begin;
    while (*is_enqueued == 0 && now - begin < longest_wait) {
        __nanosleep(1000);
        now = nanoseconds();
    }
    const unsigned long long enqueued = now;
    while (nanoseconds() - enqueued < lateness)
        __nanosleep(1000);
}

/// Whether this thread's share is still poisoned. Others may write at the same time, so it is read past the L1 cache.
__device__ bool is_untouched(const LateWrite::Region& region, std::size_t first, std::size_t step) {
    const auto* words = static_cast<const uint4*>(region.data);
    const std::size_t count = region.bytes / sizeof(uint4);
    unsigned all = ~0u;
#pragma unroll 4
    for (std::size_t i = first; i < count; i += step) {
        const uint4 word = __ldcg(words + i);
        all &= word.x & word.y & word.z & word.w;
    }
    return all == ~0u;
}

/// `from` is not written, so that several loads are in flight at a time.
__device__ void copy(uint4* to, const uint4* from, std::size_t count, std::size_t first, std::size_t step) {
#pragma unroll 4
    for (std::size_t i = first; i < count; i += step)
        to[i] = __ldg(from + i);
}

__global__ void __launch_bounds__(threads) late_writer_kernel(const LateWrite work) {
#if __CUDA_ARCH__ >= 900
    cudaTriggerProgrammaticLaunchCompletion();
#endif
    if (threadIdx.x == 0)
        be_late(&work.flags->is_enqueued);
    __syncthreads();
    const std::size_t first = std::size_t{blockIdx.x} * blockDim.x + threadIdx.x;
    const std::size_t step = std::size_t{gridDim.x} * blockDim.x;
    if (!is_untouched(work.outputs, first, step) || !is_untouched(work.workspace, first, step))
        work.flags->was_early = 1;
    copy(static_cast<uint4*>(work.inputs.data), static_cast<const uint4*>(work.kept),
         work.inputs.bytes / sizeof(uint4), first, step);
    __syncthreads();
    if (threadIdx.x == 0) {
        __threadfence_system();
        for (unsigned i = blockIdx.x; i < LateFlags::most_blocks; i += gridDim.x)
            *const_cast<volatile unsigned*>(&work.flags->has_ended[i]) = 1;
    }
}

cudaError_t attribute_of_device(cudaDeviceAttr attribute, int& value) {
    int device = 0;
    const cudaError_t status = cudaGetDevice(&device);
    return status == cudaSuccess ? cudaDeviceGetAttribute(&value, attribute, device) : status;
}

} // namespace

cudaError_t launch_late_writer(cudaStream_t stream, const LateWrite& work) {
    int multiprocessors = 0;
    if (const cudaError_t status = attribute_of_device(cudaDevAttrMultiProcessorCount, multiprocessors);
        status != cudaSuccess)
        return status;
    cudaLaunchConfig_t config = {};
    config.gridDim =
        dim3(std::clamp(static_cast<unsigned>(multiprocessors) / 2, 1u, +LateFlags::most_blocks));
    config.blockDim = dim3(threads);
    config.stream = stream;
    return cudaLaunchKernelEx(&config, late_writer_kernel, work);
}

cudaError_t late_writer_triggers(bool& does) {
    int major = 0;
    does = false;
    if (const cudaError_t status = attribute_of_device(cudaDevAttrComputeCapabilityMajor, major);
        status != cudaSuccess || major < 9)
        return status;
    cudaFuncAttributes attributes = {};
    const cudaError_t status = cudaFuncGetAttributes(&attributes, late_writer_kernel);
    does = status == cudaSuccess && attributes.ptxVersion >= 90;
    return status;
}

} // namespace nn::detail
