// The GIoU loss on a GPU: a few lanes take a row; a second kernel, of one block, adds the rows up. Few rows are added up by
// one kernel, a cluster of blocks, where the device has such; with the gradient, other blocks of the same grid write that.
// Sums have a fixed order, so the same rows give the same bits in every run. Nothing is kept between calls: two streams may
// run it at once.
#include <cooperative_groups.h>

#include <algorithm>

#include <nn/core/clusters.cuh>
#include <sluice/backend/cuda.hpp>

#include "giou_kernels.hpp"

namespace sluice_torch {
namespace {

constexpr int threads = 256;
constexpr int adding_threads = 1024;
/// Rows of fewer boxes on average are taken by 8 lanes, others by a warp.
constexpr std::int64_t short_row = 16;
/// Blocks of a cluster, of as many threads as a total has; more are not portable.
constexpr int cluster_blocks = 8;
/// Rows up to which a cluster takes them, 8 lanes each, in a lap or two.
constexpr std::int64_t most_cluster_rows = 2048;

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

/// The sum over a block of `adding_threads`, in its first thread.
__device__ BoxSum sum_of_block(BoxSum own) {
    static_assert(adding_threads == 32 * 32);
    __shared__ double sums[32];
    __shared__ std::int64_t counts[32];
    own = sum_of_lanes<32>(own);
    if (threadIdx.x % 32 == 0) {
        sums[threadIdx.x / 32] = own.sum;
        counts[threadIdx.x / 32] = own.count;
    }
    __syncthreads();
    if (threadIdx.x >= 32)
        return own;
    return sum_of_lanes<32>(BoxSum{sums[threadIdx.x], counts[threadIdx.x]});
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
    BoxSum own;
    for (std::int64_t row = threadIdx.x; row < all.boxes.rows; row += adding_threads) {
        if (!is_by_row(all.reduction))
            own.sum += all.sums[row];
        if (all.counts != nullptr)
            own.count += all.counts[row];
    }
    own = sum_of_block(own);
    if (threadIdx.x == 0) {
        if (!all.boxes.masked)
            own.count = ragged_count(all.boxes);
        keep_total(all, own);
    }
}

/// All of a mean or sum over few short ragged rows, by the first cluster of the grid.
template <class Formula>
__device__ void cluster_sum(const GiouForward& all) {
#if __CUDA_ARCH__ >= 900
    constexpr int lanes = 8;
    constexpr int rows_a_block = adding_threads / lanes;
    __shared__ double of_block;
    const auto cluster = cooperative_groups::this_cluster();
    const std::int64_t count = ragged_count(all.boxes); // on its way while the rows are read
    const int lane = static_cast<int>(threadIdx.x) % lanes;
    BoxSum total;
    for (std::int64_t first = blockIdx.x * rows_a_block; first < all.boxes.rows;
         first += cluster_blocks * rows_a_block) {
        const std::int64_t row = first + threadIdx.x / lanes;
        if (row < all.boxes.rows)
            total.sum += sum_of_row<Formula>(all, row, lane, lanes).sum;
    }
    if (count < all.boxes.values) { // what no row holds: nearly always nothing, so not worth a lap of its own
        sum_of_row<Formula>(all, all.boxes.rows, static_cast<int>(blockIdx.x * adding_threads + threadIdx.x),
                            cluster_blocks * adding_threads);
    }
    total = sum_of_block(total);
    if (threadIdx.x == 0)
        of_block = total.sum;
    cluster.sync();
    if (blockIdx.x == 0 && threadIdx.x == 0) {
        double sum = 0.0;
        for (unsigned block = 0; block < cluster_blocks; ++block)
            sum += *cluster.map_shared_rank(&of_block, block);
        keep_total(all, {sum, count});
    }
    cluster.sync(); // no block goes before its sum has been read
#else
    (void)all;
#endif
}

template <class Formula>
__global__ void __launch_bounds__(adding_threads) cluster_kernel(const GiouForward all) {
    cluster_sum<Formula>(all);
}

/// The share of thread `thread` of `count` in the gradient: a warp takes a padded row, a thread a ragged box.
template <class Formula>
__device__ void write_gradient(const GiouBoth& all, std::int64_t thread, std::int64_t count) {
    const double factor = factor_of(all);
    if (all.forward.boxes.width == 0)
        return write_ragged<Formula>(all, thread, count, factor);
    for (std::int64_t row = thread / 32; row < all.forward.boxes.rows; row += count / 32)
        write_row<Formula>(all, row, static_cast<int>(thread % 32), 32, factor);
}

/// The loss by the first cluster, the gradient by the others: they need nothing of each other.
template <class Formula>
__global__ void __launch_bounds__(adding_threads) both_kernel(const GiouBoth all) {
    if (blockIdx.x < cluster_blocks) {
        cluster_sum<Formula>(all.forward);
        return;
    }
    write_gradient<Formula>(all, std::int64_t{blockIdx.x - cluster_blocks} * adding_threads + threadIdx.x,
                            std::int64_t{gridDim.x - cluster_blocks} * adding_threads);
}

/// The gradient alone.
template <class Formula>
__global__ void __launch_bounds__(threads) gradient_kernel(const GiouBoth all) {
    write_gradient<Formula>(all, std::int64_t{blockIdx.x} * threads + threadIdx.x,
                            std::int64_t{gridDim.x} * threads);
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

bool has_short_rows(const BoxRows& boxes) { return !boxes.masked && boxes.values < short_row * boxes.rows; }

/// Whether one cluster adds up the loss.
bool is_for_cluster(const GiouForward& all) {
    return has_short_rows(all.boxes) && !is_by_row(all.reduction) && all.boxes.rows <= most_cluster_rows &&
           nn::has_clusters();
}

} // namespace

void launch_giou(sluice::CudaStreamRef stream, bool torchvision, const GiouForward& all) {
    const BoxRows& boxes = all.boxes;
    if (is_for_cluster(all)) {
        with_formula(torchvision, [&]<class Formula>(Formula) {
            nn::launch_clusters(stream, 1, cluster_blocks, adding_threads, &cluster_kernel<Formula>, all);
        });
        return;
    }
    const bool few = has_short_rows(boxes);
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

void launch_giou_both(sluice::CudaStreamRef stream, bool torchvision, const GiouBoth& all) {
    const BoxRows& boxes = all.forward.boxes;
    const std::int64_t wanted = boxes.width > 0 ? 32 * boxes.rows : boxes.values; // threads
    if (is_for_cluster(all.forward)) {
        // At most as many blocks as fit onto a large GPU at once: of so many threads, one a multiprocessor.
        constexpr std::int64_t most_clusters = 15;
        constexpr std::int64_t a_cluster = std::int64_t{cluster_blocks} * adding_threads;
        const auto clusters =
            static_cast<unsigned>(std::min(most_clusters, (wanted + a_cluster - 1) / a_cluster));
        with_formula(torchvision, [&]<class Formula>(Formula) {
            nn::launch_clusters(stream, 1 + clusters, cluster_blocks, adding_threads, &both_kernel<Formula>,
                                all);
        });
        return;
    }
    launch_giou(stream, torchvision, all.forward);
    if (wanted == 0)
        return;
    constexpr std::int64_t most_blocks = 4096;
    const auto blocks = static_cast<unsigned>(std::min(most_blocks, (wanted + threads - 1) / threads));
    with_formula(torchvision, [&]<class Formula>(Formula) {
        gradient_kernel<Formula><<<blocks, threads, 0, stream.get()>>>(all);
    });
    SLUICE_CUDA_CHECK(cudaGetLastError());
}

void launch_giou_backward(sluice::CudaStreamRef stream, const GiouBackward& all) {
    if (all.boxes.width == 0 && has_short_rows(all.boxes)) {
        backward_kernel<8><<<blocks_for(all.boxes.rows, 8), threads, 0, stream.get()>>>(all);
    } else {
        backward_kernel<32><<<blocks_for(all.boxes.rows, 32), threads, 0, stream.get()>>>(all);
    }
    SLUICE_CUDA_CHECK(cudaGetLastError());
}

} // namespace sluice_torch
