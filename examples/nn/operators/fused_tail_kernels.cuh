/// \file
/// The steps of fused_tail.cuh put together: loss and gradients of a tile, and the kernels.
#pragma once

#include <cmath>

#include <nn/operators/fused_tail.cuh>

namespace nn::detail {

/// What a thread adds up over all tiles of its block: its share of the gradients of weights, as the matrix units give
/// them, and of the biases' and the loss.
struct TailSums {
    float last[3][2][4] = {}; // for each ky
    float up[2][4] = {};
    float last_bias[2] = {}; // of class g and g + 8
    float up_bias[4] = {};
    float loss = 0.0f;
};

/// Adds up over the lanes of equal `t`.
__device__ inline float sum_over_rows(float value) {
    for (int distance = 4; distance < 32; distance *= 2)
        value += __shfl_xor_sync(0xFFFFFFFFu, value, distance);
    return value;
}

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

// Gradients -----------------------------------------------------------------------------------------------------

/// The gradient of the 3×3 convolution's weights: a warp takes 8 columns of the core, and one column of taps. A row of
/// the map's pixels is loaded once, and meets the three rows of slopes that it is a neighbour of.
__device__ inline void add_last_gradient(const TailMemory& memory, TailSums& total) {
    const Lane lane;
    const int column = lane.warp % 4 * 8;
    const int kx = lane.warp / 4;
    // An offset by four pixels, or by two chunks, only flips a bit of the place of the chunk.
    const auto word = [&](int x) { return x * 16 + ((lane.g / 4) ^ chunk_turn(x)) * 4 + lane.g % 4; };
    const int map_word = tail_map_width * 16 + word(column + 1 + kx + lane.t);
    const int slope_word = tail_slope_width * 16 + word(column + 1 + lane.t);
    // Columns beyond the core belong to other tiles.
    const bool far = column + lane.t + 4 < tail_core_x;
    const auto map = reinterpret_cast<const std::uint32_t*>(memory.map);
    const auto slope = reinterpret_cast<const std::uint32_t*>(memory.slope);

    std::uint32_t factors[tail_core_y][4];
#pragma unroll
    for (int line = 0; line < tail_core_y + 2; ++line) {
        if (line < tail_core_y) {
            const int from = line * tail_slope_width * 16;
            factors[line][0] = slope[from + slope_word];
            factors[line][1] = far ? slope[from + 64 + (slope_word ^ 4)] : 0;
            factors[line][2] = slope[from + (slope_word ^ 8)];
            factors[line][3] = far ? slope[from + 64 + (slope_word ^ 12)] : 0;
            total.last_bias[0] += __uint_as_float(factors[line][0]) + __uint_as_float(factors[line][1]);
            total.last_bias[1] += __uint_as_float(factors[line][2]) + __uint_as_float(factors[line][3]);
        }
        const int from = line * tail_map_width * 16;
        const std::uint32_t fragment[4] = {map[from + map_word], map[from + (map_word ^ 8)],
                                           map[from + 64 + (map_word ^ 4)], map[from + 64 + (map_word ^ 12)]};
#pragma unroll
        for (int ky = 0; ky < 3; ++ky) {
            const int r = line - ky;
            if (r < 0 || r >= tail_core_y)
                continue;
            multiply_add_tf32(total.last[ky][0], fragment, factors[r][0], factors[r][1]);
            multiply_add_tf32(total.last[ky][1], fragment, factors[r][2], factors[r][3]);
        }
    }
}

/// A row of the gradient of the map, masked by its ReLU.
__device__ inline void store_tail_core(TailMemory& memory, TailSums& total, int row, int first_column,
                                       const float (&sums)[2][4]) {
    const Lane lane;
#pragma unroll
    for (int part = 0; part < 2; ++part) {
        const int column = first_column + lane.g + 8 * part;
        // Even columns first, so that those of one child in each block are neighbours.
        const int place = row * tail_core_width + column % 2 * 16 + column / 2;
        const int x = column + 2;
#pragma unroll
        for (int n = 0; n < 2; ++n) {
            const int chunk = 2 * n + lane.t / 2;
            const float2 out =
                *reinterpret_cast<const float2*>(memory.map + ((row + 2) * tail_map_width + x) * 16 +
                                                 (chunk ^ chunk_turn(x)) * 4 + lane.t % 2 * 2);
            const bool core = column < tail_core_x;
            const float low = out.x > 0.0f && core ? sums[n][2 * part] * tail_centre : 0.0f;
            const float high = out.y > 0.0f && core ? sums[n][2 * part + 1] * tail_centre : 0.0f;
            total.up_bias[2 * n] += low;
            total.up_bias[2 * n + 1] += high;
            *reinterpret_cast<float2*>(memory.core + place * 16 + (chunk ^ chunk_turn(place)) * 4 +
                                       lane.t % 2 * 2) = make_float2(low, high);
        }
    }
}

/// The gradient of `in`, masked by its ReLU: each of four warps writes two rows of 15 pixels.
__device__ inline void store_in_gradient(const TailMemory& memory, const TailPlan& plan, const TailTile& tile,
                                         const float* in, int first_row) {
    const Lane lane;
    const std::uint32_t address = shared_address(memory.core) +
                                  (2 * first_row * tail_core_width + lane.row) * 64 +
                                  (lane.half ^ chunk_turn(lane.row)) * 16;
    float sums[2][4][4] = {};
#pragma unroll
    for (int step = 0; step < 8; ++step) {
        const int child = step / 2;
        std::uint32_t fragments[2][4];
#pragma unroll
        for (int r = 0; r < 2; ++r) {
            load_matrices(fragments[r], (address ^ (step % 2 * 32)) +
                                            ((child / 2 + 2 * r) * tail_core_width + child % 2 * 16) * 64);
        }
#pragma unroll
        for (int pair = 0; pair < 2; ++pair) {
            const uint4 factors = memory.up_turned[(step * 2 + pair) * 32 + lane.index];
#pragma unroll
            for (int r = 0; r < 2; ++r) {
                multiply_add_tf32(sums[r][2 * pair], fragments[r], factors.x, factors.y);
                multiply_add_tf32(sums[r][2 * pair + 1], fragments[r], factors.z, factors.w);
            }
        }
    }
#pragma unroll
    for (int i = 0; i < 4; ++i) {
        const int row = first_row + i / 2;
        const int part = i % 2;
        const int column = lane.g + 8 * part;
        const int y = tile.y / 2 + row;
        const int x = tile.x / 2 + column;
        if (column >= tail_core_x / 2 || y >= plan.height / 2 || x >= plan.width / 2)
            continue;
        float* const to = plan.in_gradient + tile.in_row(plan, y, x) * 32 + 2 * lane.t;
        const float* const values = in + ((row + 1) * tail_in_width + column + 1) * 32 + lane.t % 2 * 2;
#pragma unroll
        for (int n = 0; n < 4; ++n) {
            const float2 out =
                *reinterpret_cast<const float2*>(values + ((2 * n + lane.t / 2) ^ wide_turn(column + 1)) * 4);
            *reinterpret_cast<float2*>(to + 8 * n) =
                make_float2(out.x > 0.0f ? sums[i / 2][n][2 * part] : 0.0f,
                            out.y > 0.0f ? sums[i / 2][n][2 * part + 1] : 0.0f);
        }
    }
}

/// The gradient of the transposed convolution's weights: each of eight warps computes 16 inputs
/// by the 16 channels of one child.
__device__ inline void add_up_gradient(const TailMemory& memory, TailSums& total, const float* in) {
    const Lane lane;
    const int child = lane.warp / 2;
    const int x = lane.t + 1;
    const int in_word =
        tail_in_width * 32 + x * 32 + ((lane.warp % 2 * 4 + lane.g / 4) ^ wide_turn(x)) * 4 + lane.g % 4;
    const int core_word = (child / 2 * tail_core_width + child % 2 * 16 + lane.t) * 16 +
                          ((lane.g / 4) ^ chunk_turn(lane.t)) * 4 + lane.g % 4;
    const auto core = reinterpret_cast<const std::uint32_t*>(memory.core);
#pragma unroll
    for (int i = 0; i < 16; ++i) {
        const float* const pixels = in + i / 2 * tail_in_width * 32 + i % 2 * 8 * 32;
        const std::uint32_t* const slopes = core + i / 2 * 2 * tail_core_width * 16 + i % 2 * 8 * 16;
        const std::uint32_t fragment[4] = {
            __float_as_uint(pixels[in_word]), __float_as_uint(pixels[in_word ^ 8]),
            __float_as_uint(pixels[128 + (in_word ^ 4)]), __float_as_uint(pixels[128 + (in_word ^ 12)])};
        multiply_add_tf32(total.up[0], fragment, slopes[core_word], slopes[64 + (core_word ^ 4)]);
        multiply_add_tf32(total.up[1], fragment, slopes[core_word ^ 8], slopes[64 + (core_word ^ 12)]);
    }
}

/// Adds up over the block's warps, in their order, and writes the block's sums.
__device__ inline void store_tail_sums(TailMemory& memory, const TailPlan& plan, const TailSums& total) {
    const Lane lane;
    float* const out = plan.sums + static_cast<std::size_t>(blockIdx.x) * tail_sums_stride;
    const int column = 2 * lane.t;
    if (lane.warp < 8) {
#pragma unroll
        for (int n = 0; n < 2; ++n) {
            const int row = lane.warp % 2 * 16 + lane.g;
            float* const to = out + tail_up_sums + row * 64 + lane.warp / 2 * 16 + n * 8 + column;
            *reinterpret_cast<float2*>(to) =
                make_float2(total.up[n][0] * tail_centre, total.up[n][1] * tail_centre);
            *reinterpret_cast<float2*>(to + 8 * 64) =
                make_float2(total.up[n][2] * tail_centre, total.up[n][3] * tail_centre);
        }
    }
    __syncthreads(); // the grids are done with: they make room for what four warps have of the same weights
    float* const mine = memory.map + lane.warp % 4 * tail_last_words;
    static_assert(4 * tail_last_words <= tail_map_words);
#pragma unroll
    for (int ky = 0; ky < 3; ++ky) {
#pragma unroll
        for (int n = 0; n < 2; ++n) {
            float* const to = mine + ((ky * 3 + lane.warp / 4) * 16 + lane.g) * 16 + n * 8 + column;
            *reinterpret_cast<float2*>(to) = make_float2(total.last[ky][n][0], total.last[ky][n][1]);
            *reinterpret_cast<float2*>(to + 8 * 16) = make_float2(total.last[ky][n][2], total.last[ky][n][3]);
        }
    }
    float* const biases = memory.bias_sums[lane.warp];
#pragma unroll
    for (int i = 0; i < 4; ++i) {
        const float up_bias = sum_over_rows(total.up_bias[i]);
        if (lane.g == 0) {
            biases[16 + i / 2 * 8 + column + i % 2] = up_bias / tail_centre;
        }
    }
#pragma unroll
    for (int n = 0; n < 2; ++n) {
        float sum = total.last_bias[n];
        sum += __shfl_xor_sync(0xFFFFFFFFu, sum, 1);
        sum += __shfl_xor_sync(0xFFFFFFFFu, sum, 2);
        if (lane.t == 0)
            biases[8 * n + lane.g] = lane.warp < 4 ? sum / tail_centre : 0.0f; // other taps add up the same
    }
    const float loss = sum_over_rows(total.loss);
    if (lane.g == 0)
        biases[32 + lane.t] = loss;
    __syncthreads();
    for (int i = static_cast<int>(threadIdx.x); i < tail_last_words; i += tail_threads) {
        float sum = 0.0f;
#pragma unroll
        for (int warp = 0; warp < 4; ++warp)
            sum += memory.map[warp * tail_last_words + i];
        out[i] = sum;
    }
    if (threadIdx.x < 36) {
        float sum = 0.0f;
#pragma unroll
        for (int warp = 0; warp < tail_threads / 32; ++warp)
            sum += memory.bias_sums[warp][threadIdx.x];
        if (threadIdx.x < 32) {
            out[tail_last_bias_sums + threadIdx.x] = sum;
        } else {
            // Four lanes have a part of the loss each; the first adds them up.
            const unsigned lanes = 0xFu;
            float loss_sum = sum;
            loss_sum += __shfl_down_sync(lanes, loss_sum, 1);
            loss_sum += __shfl_down_sync(lanes, loss_sum, 2);
            if (threadIdx.x == 32)
                out[tail_loss_sum] = loss_sum;
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
