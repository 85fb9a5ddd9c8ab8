/// \file
/// The kernels of segmentation_head.hpp: who computes what, and who waits for whom.
#pragma once

#include <nn/heads/detail/segmentation_head_gradients.cuh>
#include <nn/heads/detail/segmentation_head_loss.cuh>

namespace nn::detail {

/// What the first team does, and its sum of losses; see `segmentation_head_kernel`.
template <int Sums>
__device__ inline float compute_tail_slopes(HeadMemory& memory, const HeadPlan& plan) {
    constexpr bool train = Sums > 0;
    fetch_share(memory, plan, HeadTile(plan, blockIdx.x));
    load_tail_up(memory, plan);
    // The column of zeros.
    for (unsigned i = threadIdx.x; i < 2 * 2 * 20; i += head_threads)
        memory.map[i / 40][i / 20 % 2 * head_map_plane + (i % 20 + 1) * head_map_width - 1] =
            make_uint4(0, 0, 0, 0);
    keep_share(memory, memory.in[0]);
    wait_for_team(HeadBarrier::first_team);
    float loss = 0.0f; // as a power of two has it
    unsigned i = 0;
    for (unsigned index = blockIdx.x; index < plan.tiles; index += gridDim.x, ++i) {
        uint4* const map = memory.map[i % 2];
        HeadLabels labels;
        if constexpr (train)
            labels.fetch(plan, HeadTile(plan, index));
        const bool more = index + gridDim.x < plan.tiles;
        if (more)
            fetch_share(memory, plan, HeadTile(plan, index + gridDim.x));
        if (train && i > 0)
            wait_for_other_team(HeadBarrier::slopes_read, i);
        compute_tail_map(memory, plan, HeadTile(plan, index), memory.in[i % 4], map);
        if constexpr (train)
            loss += labels.keep(memory.labels, plan);
        // The second team has done with what was there three tiles ago.
        if (more)
            keep_share(memory, memory.in[(i + 1) % 4]);
        if (i == 0)
            wait_for_other_team(HeadBarrier::slopes_read, 0); // its factors are there, too
        else
            wait_for_team(HeadBarrier::first_team);
        compute_tail_logits<Sums>(memory, plan, HeadTile(plan, index), map, memory.slope[i % 2], loss);
        if constexpr (train)
            release_other_team(HeadBarrier::slopes_there, i);
    }
    return loss;
}

/// What the second team does.
__device__ inline void compute_tail_gradients(HeadMemory& memory, const HeadPlan& plan, HeadSums& total) {
    load_tail_last(memory, plan);
    for (unsigned i = threadIdx.x; i < 2 * 2 * 18; i += head_threads)
        memory.slope[i / 36][i / 18 % 2 * head_slope_plane + (i % 18 + 1) * head_slope_width - 1] =
            make_uint4(0, 0, 0, 0);
    for (unsigned ahead = 0; ahead < 2 && blockIdx.x + ahead * gridDim.x < plan.tiles; ++ahead)
        release_other_team(HeadBarrier::slopes_read, ahead);
    unsigned i = 0;
    for (unsigned index = blockIdx.x; index < plan.tiles; index += gridDim.x, ++i) {
        wait_for_other_team(HeadBarrier::slopes_there, i);
        add_last_gradient(memory.map[i % 2], memory.slope[i % 2], total);
        compute_tail_core(memory, memory.map[i % 2], memory.slope[i % 2]);
        if (index + 2 * gridDim.x < plan.tiles)
            release_other_team(HeadBarrier::slopes_read, i);
        wait_for_team(HeadBarrier::second_team);
        const int warp = static_cast<int>(thread_of_head() / 32);
        if (warp >= 8)
            add_up_gradient(memory, total, memory.in[i % 4]);
        else if (plan.in_gradient != nullptr)
            store_in_gradient(memory, plan, HeadTile(plan, index), memory.in[i % 4], warp);
    }
}

/// Trains where a lane has `Sums` sums of logits that may be classes; predicts where that is 0.
template <int Sums>
__global__ void __launch_bounds__(2 * head_threads, 1) segmentation_head_kernel(HeadPlan plan) {
    extern __shared__ __align__(1024) unsigned char head_memory[];
    HeadMemory& memory = *reinterpret_cast<HeadMemory*>(head_memory);
    HeadSums total;
    float loss = 0.0f;
    if (threadIdx.y == 0) {
        loss = compute_tail_slopes<Sums>(memory, plan);
    } else if constexpr (Sums > 0) {
        compute_tail_gradients(memory, plan, total);
    } else {
        load_tail_last(memory, plan);
        release_other_team(HeadBarrier::slopes_read, 0);
    }
    if constexpr (Sums > 0) {
        __syncthreads(); // the grids are done with
        if (threadIdx.y == 0)
            leave_loss(memory, loss);
        else
            leave_gradients(memory, total);
        __syncthreads();
        store_tail_sums(memory, plan);
    }
}

inline constexpr int head_update_threads = 1024;

/// Adds up the blocks' sums: 32 threads for each, which take every 32nd block, and are added up in their order.
static __global__ void __launch_bounds__(head_update_threads)
    segmentation_head_update_kernel(const float* sums, unsigned blocks, int classes, const float* factors,
                                    float* up, float* up_bias, float* last, float* last_bias, float* loss,
                                    double loss_scale) {
    __shared__ double parts[32][33];
    const unsigned sum_of_block = threadIdx.x % 32;
    const unsigned index = blockIdx.x * 32 + sum_of_block;
    double part = 0.0;
    if (index < head_sums) {
#pragma unroll 5
        for (unsigned block = threadIdx.x / 32; block < blocks; block += 32)
            part += static_cast<double>(sums[static_cast<std::size_t>(block) * head_sums_stride + index]);
    }
    parts[threadIdx.x / 32][sum_of_block] = part;
    __syncthreads();
    if (threadIdx.x >= 32 || index >= head_sums)
        return;
    double sum = 0.0;
    for (int i = 0; i < 32; ++i)
        sum += parts[i][sum_of_block];
    const double rate = -static_cast<double>(factors[0]);
    const auto move = [&](float& value) {
        value = static_cast<float>(static_cast<double>(value) - rate * sum);
    };
    if (index < head_up_sums) {
        const int column = static_cast<int>(index % 16);
        if (column < classes)
            move(last[index / 16 * static_cast<unsigned>(classes) + static_cast<unsigned>(column)]);
    } else if (index < head_last_bias_sums) {
        move(up[index - head_up_sums]);
    } else if (index < head_up_bias_sums) {
        if (static_cast<int>(index) - head_last_bias_sums < classes)
            move(last_bias[index - head_last_bias_sums]);
    } else if (index < head_loss_sum) {
        const unsigned channel = index - head_up_bias_sums;
        // The copies are equal before, and equal after.
        move(up_bias[channel]);
        for (unsigned child = 1; child < 4; ++child)
            up_bias[child * 16 + channel] = up_bias[channel];
    } else {
        *loss = static_cast<float>(sum * loss_scale);
    }
}

} // namespace nn::detail
