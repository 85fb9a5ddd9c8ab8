// The GIoU loss on a GPU: a few lanes take a row; a second kernel, of one block, adds the rows up. Sums have a fixed
// order, so the same rows give the same bits in every run. Nothing is kept between calls: two streams may run it at once.
#include <sluice/backend/cuda.hpp>

#include "giou_kernels.hpp"

namespace sluice_torch {
namespace {

constexpr int threads = 256;
constexpr int adding_threads = 1024;
/// Rows of fewer boxes on average are taken by 8 lanes, others by a warp.
constexpr std::int64_t short_row = 16;

/// The sum over `Lanes` neighbouring lanes, in the first of them.
template <int Lanes>
__device__ BoxSum sum_of_lanes(BoxSum own) {
#pragma unroll
    for (int distance = Lanes / 2; distance > 0; distance /= 2) {
        own.sum += __shfl_down_sync(0xFFFFFFFFu, own.sum, distance, Lanes);
        own.count += __shfl_down_sync(0xFFFFFFFFu, static_cast<long long>(own.count), distance, Lanes);
    }
    return own;
}

template <class Formula, int Lanes>
__global__ void __launch_bounds__(threads) rows_kernel(const GiouForward all) {
    const std::int64_t thread = static_cast<std::int64_t>(blockIdx.x) * threads + threadIdx.x;
    const std::int64_t row = thread / Lanes;
    const int lane = static_cast<int>(thread % Lanes);
    BoxSum own; // also for lanes without a row, since all take part in the sum
    if (row <= all.boxes.rows)
        own = sum_of_row<Formula>(all, row, lane, Lanes);
    own = sum_of_lanes<Lanes>(own);
    if (lane == 0 && row < all.boxes.rows)
        keep_row(all, row, own);
}

__global__ void __launch_bounds__(adding_threads) total_kernel(const GiouForward all) {
    __shared__ BoxSum shared[adding_threads / 32];
    BoxSum own;
    for (std::int64_t row = threadIdx.x; row < all.boxes.rows; row += adding_threads) {
        if (!is_by_row(all.reduction))
            own.sum += all.sums[row];
        if (all.counts != nullptr)
            own.count += all.counts[row];
    }
    own = sum_of_lanes<32>(own);
    if (threadIdx.x % 32 == 0)
        shared[threadIdx.x / 32] = own;
    __syncthreads();
    if (threadIdx.x >= 32)
        return;
    own = sum_of_lanes<32>(shared[threadIdx.x]);
    if (threadIdx.x == 0)
        keep_total(all, own);
}

template <int Lanes>
__global__ void __launch_bounds__(threads) backward_kernel(const GiouBackward all) {
    const std::int64_t thread = static_cast<std::int64_t>(blockIdx.x) * threads + threadIdx.x;
    const std::int64_t row = thread / Lanes;
    if (row <= all.boxes.rows)
        write_row(all, row, static_cast<int>(thread % Lanes), Lanes);
}

/// Blocks for the rows and what comes after the last.
unsigned blocks_for(std::int64_t rows, int lanes) {
    const std::int64_t blocks = ((rows + 1) * lanes + threads - 1) / threads;
    if (blocks > 0x7FFFFFFF)
        throw sluice::Error("sluice.giou_loss: " + std::to_string(rows) +
                            " rows were given, more than a grid has room for");
    return static_cast<unsigned>(blocks);
}

} // namespace

void launch_giou(sluice::CudaStreamRef stream, bool torchvision, const GiouForward& all) {
    const BoxRows& boxes = all.boxes;
    const bool few = !boxes.masked && boxes.values < short_row * boxes.rows;
    with_formula(torchvision, [&]<class Formula>(Formula) {
        if (few) {
            rows_kernel<Formula, 8><<<blocks_for(boxes.rows, 8), threads, 0, stream.get()>>>(all);
        } else {
            rows_kernel<Formula, 32><<<blocks_for(boxes.rows, 32), threads, 0, stream.get()>>>(all);
        }
    });
    SLUICE_CUDA_CHECK(cudaGetLastError());
    if (is_by_row(all.reduction) && all.counts == nullptr)
        return;
    total_kernel<<<1, adding_threads, 0, stream.get()>>>(all);
    SLUICE_CUDA_CHECK(cudaGetLastError());
}

void launch_giou_backward(sluice::CudaStreamRef stream, const GiouBackward& all) {
    if (!all.boxes.masked && all.boxes.width == 0 && all.boxes.values < short_row * all.boxes.rows) {
        backward_kernel<8><<<blocks_for(all.boxes.rows, 8), threads, 0, stream.get()>>>(all);
    } else {
        backward_kernel<32><<<blocks_for(all.boxes.rows, 32), threads, 0, stream.get()>>>(all);
    }
    SLUICE_CUDA_CHECK(cudaGetLastError());
}

} // namespace sluice_torch
