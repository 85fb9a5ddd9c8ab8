/// \file
/// Kernels whose grid is made of clusters of blocks, which share their shared memory. Need compute capability 9.0.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>

#include <sluice/backend/cuda.hpp>
#include <sluice/backend/stream.hpp>

namespace nn {

namespace detail {

/// Compiled for the same devices as what includes this.
template <int>
__global__ void cluster_probe() {}

} // namespace detail

/// Whether code of this program that needs clusters does its work on the current device. Asked of the code, once for each
/// device: that of an older architecture runs on a newer one, where a kernel that is there for clusters alone does nothing.
/// Throws `sluice::Error` where CUDA fails.
inline bool has_clusters() {
    enum class Answer : unsigned char { unknown, yes, no };
    static std::array<std::atomic<Answer>, 64> answers{};
    const auto device = static_cast<std::size_t>(sluice::Cuda::current_device());
    Answer answer = Answer::unknown;
    if (device < answers.size())
        answer = answers[device].load(std::memory_order_relaxed);
    if (answer == Answer::unknown) {
        cudaFuncAttributes attributes{};
        SLUICE_CUDA_CHECK(cudaFuncGetAttributes(&attributes, detail::cluster_probe<0>));
        answer = attributes.ptxVersion >= 90 ? Answer::yes : Answer::no;
        if (device < answers.size())
            answers[device].store(answer, std::memory_order_relaxed);
    }
    return answer == Answer::yes;
}

/// Enqueues `kernel(arguments)` on `clusters` clusters of `blocks` blocks each, of `threads` threads. Throws `sluice::Error` for a
/// launch that fails.
template <class Arguments>
void launch_clusters(sluice::CudaStreamRef stream, unsigned clusters, unsigned blocks, unsigned threads,
                     void (*kernel)(Arguments), const Arguments& arguments) {
    cudaLaunchAttribute cluster{};
    cluster.id = cudaLaunchAttributeClusterDimension;
    cluster.val.clusterDim.x = blocks;
    cluster.val.clusterDim.y = 1;
    cluster.val.clusterDim.z = 1;
    cudaLaunchConfig_t grid{};
    grid.gridDim = dim3(clusters * blocks);
    grid.blockDim = dim3(threads);
    grid.stream = stream.get();
    grid.attrs = &cluster;
    grid.numAttrs = 1;
    SLUICE_CUDA_CHECK(cudaLaunchKernelEx(&grid, kernel, arguments));
}

} // namespace nn
