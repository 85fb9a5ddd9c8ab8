/// \file
/// The loss of fused_tail.cuh's tiles, and the kernels that put all steps together.
#pragma once

#include <cmath>

#include <nn/operators/fused_tail_gradients.cuh>

namespace nn::detail {

/// 2^value; 0 where that is smaller than any normal number.
__device__ inline float power_of_two(float value) {
    float result;
    asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(result) : "f"(value));
    return result;
}

// The loss ------------------------------------------------------------------------------------------------------

/// Softmax cross-entropy of a row of 16 pixels. A pixel's classes are four lanes' sums; each lane has two pixels. The
/// bias of what is no class is -infinity.
__device__ inline void compute_tail_slope(TailMemory& memory, const TailPlan& plan, TailSums& total, int row,
                                          int first_column, const float (&sums)[2][4],
                                          const float (&bias)[4]) {
    const Lane lane;
#pragma unroll
    for (int part = 0; part < 2; ++part) {
        const int column = first_column + lane.g + 8 * part;
        const int label = memory.labels[row * 32 + column];
        float logits[4];
#pragma unroll
        for (int i = 0; i < 4; ++i)
            logits[i] = sums[i / 2][2 * part + i % 2] + bias[i];
        float greatest = greater_of(greater_of(logits[0], logits[1]), greater_of(logits[2], logits[3]));
        greatest = greater_of(greatest, __shfl_xor_sync(0xFFFFFFFFu, greatest, 1));
        greatest = greater_of(greatest, __shfl_xor_sync(0xFFFFFFFFu, greatest, 2));
        float powers[4];
#pragma unroll
        for (int i = 0; i < 4; ++i) {
            logits[i] -= greatest;
            powers[i] = power_of_two(logits[i] * 1.44269504f);
        }
        float sum = (powers[0] + powers[1]) + (powers[2] + powers[3]);
        sum += __shfl_xor_sync(0xFFFFFFFFu, sum, 1);
        sum += __shfl_xor_sync(0xFFFFFFFFu, sum, 2);

        const bool right = (label & (tail_wrong_label | tail_no_pixel)) == 0;
        const float scale = right ? plan.scale * tail_centre : 0.0f;
        const float share = __fdividef(scale, sum);
        float slope[4];
        float loss = 0.0f;
#pragma unroll
        for (int i = 0; i < 4; ++i) {
            const bool chosen = (label & 15) == i / 2 * 8 + 2 * lane.t + i % 2;
            slope[i] = powers[i] * share - (chosen ? scale : 0.0f);
            loss = chosen ? loss - logits[i] : loss;
        }
        if ((label & tail_core) != 0)
            total.loss += right ? (lane.t == 0 ? loss + __logf(sum) : loss) : NAN;
        const int turn = chunk_turn(column);
        float* const to = memory.slope + (row * tail_slope_width + column) * 16 + lane.t % 2 * 2;
#pragma unroll
        for (int n = 0; n < 2; ++n) {
            *reinterpret_cast<float2*>(to + ((2 * n + lane.t / 2) ^ turn) * 4) =
                make_float2(slope[2 * n], slope[2 * n + 1]);
        }
    }
}

/// The first greatest class of a row of 16 pixels.
__device__ inline void predict_tail_row(const TailMemory& memory, const TailPlan& plan, const TailTile& tile,
                                        int row, int first_column, const float (&sums)[2][4],
                                        const float (&bias)[4]) {
    const Lane lane;
#pragma unroll
    for (int part = 0; part < 2; ++part) {
        const int column = first_column + lane.g + 8 * part;
        float greatest = -INFINITY;
        int best = 0;
#pragma unroll
        for (int i = 0; i < 4; ++i) {
            const int j = i / 2 * 8 + 2 * lane.t + i % 2;
            const float logit = sums[i / 2][2 * part + i % 2] + bias[i];
            if (logit > greatest) {
                greatest = logit;
                best = j;
            }
        }
#pragma unroll
        for (int distance = 1; distance < 4; distance *= 2) {
            const float other = __shfl_xor_sync(0xFFFFFFFFu, greatest, distance);
            const int other_best = __shfl_xor_sync(0xFFFFFFFFu, best, distance);
            if (other > greatest || (other == greatest && other_best < best)) {
                greatest = other;
                best = other_best;
            }
        }
        if (lane.t == 0 && (memory.labels[row * 32 + column] & tail_core) != 0) {
            const std::size_t y = static_cast<std::size_t>(tile.y - 1 + row);
            plan.predictions[(tile.image * plan.height + y) * plan.width + tile.x - 1 + column] =
                static_cast<std::uint8_t>(best);
        }
    }
}

// Kernels -------------------------------------------------------------------------------------------------------

template <bool Train>
__global__ void __launch_bounds__(tail_threads, 1) tail_kernel(TailPlan plan) {
    extern __shared__ __align__(1024) unsigned char tail_memory[];
    TailMemory& memory = *reinterpret_cast<TailMemory*>(tail_memory);
    const Lane lane;
    TailSums total;
    float up_bias[4];
    float last_bias[4];
#pragma unroll
    for (int i = 0; i < 4; ++i) {
        const int channel = i / 2 * 8 + 2 * lane.t + i % 2;
        up_bias[i] = plan.up_bias[channel];
        last_bias[i] = channel < plan.classes ? plan.last_bias[channel] : -INFINITY;
    }
    fetch_tail_in(plan, TailTile(plan, blockIdx.x), memory.in[0]);
    commit_copies();
    load_tail_weights(memory, plan);
    // One column beyond the map meets slopes of 0, and so has to be a number.
    for (int i = static_cast<int>(threadIdx.x); i < 20 * 16; i += tail_threads)
        memory.map[(i / 16 * tail_map_width + 34) * 16 + i % 16] = 0.0f;
    wait_for_copies<0>();
    __syncthreads();

    int turn = 0;
    for (unsigned index = blockIdx.x; index < plan.tiles; index += gridDim.x, turn ^= 1) {
        const TailTile tile(plan, index);
        const float* const in = memory.in[turn];
        const TailLabels labels(plan, tile);
        compute_tail_map(memory, plan, tile, in, up_bias);
        labels.keep(memory, plan);
        __syncthreads();

        if (index + gridDim.x < plan.tiles)
            fetch_tail_in(plan, TailTile(plan, index + gridDim.x), memory.in[turn ^ 1]);
        commit_copies();
        // 18 rows for six pairs of warps.
        const int warp = thread_of_tail() / 32;
        const int group = warp / 2;
        const int first_column = warp % 2 * 16;
        convolve_tail_rows<3, tail_map_width>(
            memory.map, group * 3, first_column, 3, memory.last, [&](int row, const float(&sums)[2][4]) {
                if constexpr (Train)
                    compute_tail_slope(memory, plan, total, group * 3 + row, first_column, sums, last_bias);
                else
                    predict_tail_row(memory, plan, tile, group * 3 + row, first_column, sums, last_bias);
            });
        if constexpr (Train) {
            __syncthreads();
            add_last_gradient(memory, total);
            // 16 rows: 3, 3, 3, 3, 2 and 2.
            const int first_row = group * 3 - max(group - 4, 0);
            convolve_tail_rows<3, tail_slope_width>(
                memory.slope, first_row, first_column, group < 4 ? 3 : 2, memory.last_turned,
                [&](int row, const float(&sums)[2][4]) {
                    store_tail_core(memory, total, first_row + row, first_column, sums);
                });
        }
        wait_for_copies<0>();
        __syncthreads();

        if constexpr (Train) {
            if (warp < 8)
                add_up_gradient(memory, total, in);
            else if (plan.in_gradient != nullptr)
                store_in_gradient(memory, plan, tile, in, (warp - 8) * 2);
        }
    }
    if constexpr (Train)
        store_tail_sums(memory, plan, total);
}

/// Adds up the blocks' sums: 8 threads for each, which take every eighth block, and are added up in their order.
static __global__ void __launch_bounds__(256)
    update_tail_kernel(const float* sums, unsigned blocks, int classes, const float* factors, float* up,
                       float* up_bias, float* last, float* last_bias, float* loss, double loss_scale) {
    __shared__ double parts[8][33];
    const unsigned sum_of_block = threadIdx.x % 32;
    const unsigned index = blockIdx.x * 32 + sum_of_block;
    double part = 0.0;
    if (index < tail_sums) {
#pragma unroll 8
        for (unsigned block = threadIdx.x / 32; block < blocks; block += 8)
            part += static_cast<double>(sums[static_cast<std::size_t>(block) * tail_sums_stride + index]);
    }
    parts[threadIdx.x / 32][sum_of_block] = part;
    __syncthreads();
    if (threadIdx.x >= 32 || index >= tail_sums)
        return;
    double sum = 0.0;
    for (int i = 0; i < 8; ++i)
        sum += parts[i][sum_of_block];
    const double rate = -static_cast<double>(factors[0]);
    const auto move = [&](float& value) {
        value = static_cast<float>(static_cast<double>(value) - rate * sum);
    };
    if (index < tail_up_sums) {
        const int column = static_cast<int>(index % 16);
        if (column < classes)
            move(last[index / 16 * static_cast<unsigned>(classes) + static_cast<unsigned>(column)]);
    } else if (index < tail_last_bias_sums) {
        move(up[index - tail_up_sums]);
    } else if (index < tail_up_bias_sums) {
        if (static_cast<int>(index) - tail_last_bias_sums < classes)
            move(last_bias[index - tail_last_bias_sums]);
    } else if (index < tail_loss_sum) {
        const unsigned channel = index - tail_up_bias_sums;
        // The copies are equal before, and equal after.
        move(up_bias[channel]);
        for (unsigned child = 1; child < 4; ++child)
            up_bias[child * 16 + channel] = up_bias[channel];
    } else {
        *loss = static_cast<float>(sum * loss_scale);
    }
}

} // namespace nn::detail
