/// \file
/// The kernel of products_tf32.hpp.
///
/// The matrix units multiply [16, 8] by [8, 8]. Their 16 rows are columns of `out` here (the side "p", of the
/// weights), their 8 columns are rows of `out` (the side "q"), so that 8 rows suffice to use them fully. A warp
/// computes 64 columns by `Q` rows over its part of k, and brings what it reads to shared memory by copies of its own,
/// which no other warp waits for. Which index the units call a row, a column or a step of a sum is ours to choose, and
/// is chosen such that every lane reads 16 bytes at a time, whichever way a factor is stored, and ends with four
/// neighbours of a row of `out`.
#pragma once

#include <cooperative_groups.h>

#include <nn/operators/matrix_units.cuh>
#include <nn/products_tf32.hpp>

namespace nn::detail::tf32 {

inline constexpr unsigned warps = 4;
inline constexpr unsigned threads = 32 * warps;
/// Columns of `out` that a warp computes.
inline constexpr unsigned columns = 64;

/// What the kernel is compiled for.
template <ProductForm form_, unsigned rows_, unsigned depth_, unsigned stages_, bool shared_sum_>
struct Variant {
    static constexpr ProductForm form = form_;
    static constexpr unsigned rows = rows_;     ///< of `out`, of a warp
    static constexpr unsigned depth = depth_;   ///< of k, of a stage: 16 or 32
    static constexpr unsigned stages = stages_; ///< that a warp has in shared memory
    static constexpr bool shared_sum = shared_sum_;

    /// Whether k is what runs along the rows in memory.
    static constexpr bool p_along_k = form == ProductForm::data_gradient;
    static constexpr bool q_along_k = form != ProductForm::weight_gradient;
    static constexpr unsigned stage_floats = (columns + rows) * depth;
    /// A warp's sums, and below them those of the columns of b.
    static constexpr unsigned sums_floats = (rows + 1) * columns;
    static constexpr unsigned warp_floats =
        stages * stage_floats > sums_floats ? stages* stage_floats : sums_floats;
    static constexpr std::size_t shared_bytes = sizeof(float) * warps * warp_floats;
    /// An update of few steps is all reading and writing of `out`, which is therefore read first of all.
    static constexpr bool reads_early = !shared_sum && form == ProductForm::weight_gradient;
    static constexpr unsigned blocks_at_once = reads_early ? 3 : 1;
    /// Rows that a block computes.
    static constexpr unsigned block_rows = shared_sum ? rows : warps * rows;
};

struct Arguments {
    Tf32Product product;
    unsigned column_tiles;
    unsigned tiles;
    float* partial_sums;
    float* column_sums;
    unsigned* tickets;
};

/// A factor as the matrix units take it: they leave out the last 13 bits, so that a little more than it is given comes
/// within 3/4 of the last place that they keep, without a bias. Exact where the factor fits, and for what is no number.
__device__ inline std::uint32_t rounded(float value) {
    constexpr float a_little_more = 1.0f + 0.75f / 2048.0f;
    return __float_as_uint(value * a_little_more);
}

__device__ inline void multiply_add(float (&sums)[4], const std::uint32_t (&a)[4], std::uint32_t b0,
                                    std::uint32_t b1) {
    asm("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, "
        "{%8, %9}, {%0, %1, %2, %3};"
        : "+f"(sums[0]), "+f"(sums[1]), "+f"(sums[2]), "+f"(sums[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

/// Where 16 bytes of a factor lie in its stage, counted in 16 bytes. The eight lanes that read together always meet
/// eight different sets of banks.
template <bool along_k, unsigned width, unsigned depth>
__device__ constexpr unsigned place(unsigned row, unsigned k) {
    if constexpr (along_k) {
        const unsigned half = (row ^ (row >> 2)) & 1;
        if constexpr (depth == 16)
            return (row >> 1) * 8 + (half * 4 | k / 4);
        else
            return row * (depth / 4) + ((k / 4) ^ (half * 4));
    } else {
        return k * (width / 4) + ((row / 4) ^ (2 * ((k >> 2) & 3)));
    }
}

/// Brings `width` rows, or columns, of a factor to shared memory, `depth` of k at a time.
template <bool along_k, unsigned width, unsigned depth>
class Copies {
public:
    /// Of a factor whose rows, or columns, end at `end`, those from `first` on.
    __device__ Copies(const float* from, unsigned lane, unsigned first, unsigned end, unsigned k_end)
        : line_(lane / per_line), within_(lane % per_line * 4), first_(first), end_(end), k_end_(k_end),
          place_(16 * place<along_k, width, depth>(along_k ? line_ : within_, along_k ? within_ : line_)) {
        const std::size_t stride = along_k ? k_end : end;
        step_ = lines_at_once * stride;
        source_ = from + (along_k ? (first + line_) * stride + within_ : line_ * stride + first + within_);
    }

    /// Begins to copy k from `k` on; zeros where there is nothing.
    __device__ void begin(std::uint32_t to, unsigned k) const {
        const float* source = source_ + (along_k ? k : k * static_cast<std::size_t>(end_));
        if (first_ + width <= end_ && k + depth <= k_end_) {
#pragma unroll
            for (unsigned i = 0; i < copies; ++i) {
                copy_16_bytes(to + (place_ ^ turned(i)) + 512 * i, source);
                source += step_;
            }
        } else {
            const unsigned line = (along_k ? first_ : k) + line_;
            const unsigned line_end = along_k ? end_ : k_end_;
            const bool inside = along_k ? k + within_ < k_end_ : first_ + within_ < end_;
#pragma unroll 1
            for (unsigned i = 0; i < copies; ++i) {
                const bool there = inside && line + i * lines_at_once < line_end;
                copy_16_bytes(to + (place_ ^ turned(i)) + 512 * i, there ? source : source_, there);
                source += step_;
            }
        }
    }

private:
    static constexpr unsigned per_line = (along_k ? depth : width) / 4;
    static constexpr unsigned lines_at_once = 32 / per_line;
    static constexpr unsigned copies = width * depth / 4 / 32;
    static_assert(copies * 32 * 4 == width * depth && per_line <= 32);

    /// What `place` turns round between the lines of one copy and of the one that is `i` later, in bytes.
    __device__ static constexpr unsigned turned(unsigned i) {
        if constexpr (along_k)
            return depth == 16 ? 0 : 64 * (i & 1);
        else
            return width == 64 ? 32 * ((i >> 1) & 3) : 32 * (i & 3);
    }

    const float* source_;
    std::size_t step_;
    unsigned line_;
    unsigned within_;
    unsigned first_;
    unsigned end_;
    unsigned k_end_;
    unsigned place_;
};

/// Four steps of k for each of four rows of the units: `values[i][j]`, step i, row j.
template <bool along_k, unsigned width, unsigned depth>
__device__ void read_four(float (&values)[4][4], const float* from, unsigned row, unsigned k) {
    const float4* const places = reinterpret_cast<const float4*>(from);
#pragma unroll
    for (unsigned i = 0; i < 4; ++i) {
        const float4 read = along_k ? places[place<along_k, width, depth>(row + i, k)]
                                    : places[place<along_k, width, depth>(row, k + i)];
        const float four[4] = {read.x, read.y, read.z, read.w};
#pragma unroll
        for (unsigned j = 0; j < 4; ++j)
            (along_k ? values[j][i] : values[i][j]) = four[j];
    }
}

/// The row of `out`, within the warp's, of column `unit` of tile `tile` of the units.
template <class V>
__device__ constexpr unsigned row_of(unsigned tile, unsigned unit) {
    return V::q_along_k ? 8 * tile + unit : 32 * (tile / 4) + 4 * unit + tile % 4;
}

template <class V>
struct Sums {
    static constexpr unsigned groups = columns / 32;
    static constexpr unsigned q_tiles = V::rows / 8;
    float products[2 * groups][q_tiles][4] = {};
    float of_columns[groups][4] = {};

    /// Columns 32 group + 4 (lane / 4) … + 3 of row `row_of(tile, 2 (lane % 4) + odd)`.
    __device__ float4 four(unsigned group, unsigned tile, unsigned odd) const {
        return {products[2 * group][tile][odd], products[2 * group][tile][odd + 2],
                products[2 * group + 1][tile][odd], products[2 * group + 1][tile][odd + 2]};
    }

    /// Adds one stage.
    __device__ void add(const float* p_stage, const float* q_stage, unsigned lane, bool with_columns) {
        const unsigned unit = lane / 4;
        const unsigned step = 4 * (lane % 4);
#pragma unroll
        for (unsigned k = 0; k < V::depth; k += 16) {
            std::uint32_t q[q_tiles][4];
            if constexpr (V::q_along_k) {
#pragma unroll
                for (unsigned tile = 0; tile < q_tiles; ++tile) {
                    const float4 read = reinterpret_cast<const float4*>(
                        q_stage)[place<true, V::rows, V::depth>(8 * tile + unit, k + step)];
                    q[tile][0] = rounded(read.x);
                    q[tile][1] = rounded(read.y);
                    q[tile][2] = rounded(read.z);
                    q[tile][3] = rounded(read.w);
                }
            } else {
#pragma unroll
                for (unsigned group = 0; group < V::rows / 32; ++group) {
                    float read[4][4];
                    read_four<false, V::rows, V::depth>(read, q_stage, 32 * group + 4 * unit, k + step);
#pragma unroll
                    for (unsigned i = 0; i < 4; ++i)
#pragma unroll
                        for (unsigned j = 0; j < 4; ++j)
                            q[4 * group + j][i] = rounded(read[i][j]);
                }
            }
#pragma unroll
            for (unsigned group = 0; group < groups; ++group) {
                float read[4][4];
                read_four<V::p_along_k, columns, V::depth>(read, p_stage, 32 * group + 4 * unit, k + step);
                if (V::form == ProductForm::weight_gradient && with_columns) {
#pragma unroll
                    for (unsigned j = 0; j < 4; ++j)
                        of_columns[group][j] += (read[0][j] + read[1][j]) + (read[2][j] + read[3][j]);
                }
#pragma unroll
                for (unsigned half = 0; half < 2; ++half) {
#pragma unroll
                    for (unsigned i = 0; i < 4; i += 2) {
                        const std::uint32_t p[4] = {
                            rounded(read[i][2 * half]), rounded(read[i][2 * half + 1]),
                            rounded(read[i + 1][2 * half]), rounded(read[i + 1][2 * half + 1])};
#pragma unroll
                        for (unsigned tile = 0; tile < q_tiles; ++tile)
                            multiply_add(products[2 * group + half][tile], p, q[tile][i], q[tile][i + 1]);
                    }
                }
            }
        }
    }

    /// Adds up over the lanes what each has of the columns' sums.
    __device__ void join_columns() {
#pragma unroll
        for (unsigned group = 0; group < groups; ++group) {
#pragma unroll
            for (unsigned j = 0; j < 4; ++j) {
                of_columns[group][j] += __shfl_xor_sync(0xffffffffu, of_columns[group][j], 1);
                of_columns[group][j] += __shfl_xor_sync(0xffffffffu, of_columns[group][j], 2);
            }
        }
    }
};

__device__ inline float4 operator+(float4 a, float4 b) {
    return {a.x + b.x, a.y + b.y, a.z + b.z, a.w + b.w};
}

__device__ inline float4 load_four(const float* from) { return *reinterpret_cast<const float4*>(from); }
__device__ inline void store_four(float* to, float4 value) { *reinterpret_cast<float4*>(to) = value; }

/// Where four sums of a row, or of `out`, lie in a warp's memory, counted in floats.
__device__ inline unsigned sums_place(unsigned row, unsigned column) {
    const unsigned turn = 2 * (((row >> 1) ^ (row >> 3)) & 3);
    return row * columns + 4 * ((column / 4) ^ turn);
}

/// What becomes of four sums.
template <ProductForm form>
struct Finish {
    const Tf32Product& product;
    float alpha;
    float beta;

    __device__ explicit Finish(const Tf32Product& of)
        : product(of), alpha(of.device_factors != nullptr ? of.device_factors[0] : of.alpha),
          beta(of.device_factors != nullptr ? of.device_factors[1] : of.beta) {}

    __device__ bool inside(unsigned row, unsigned column) const {
        return row < product.m && column < product.n;
    }
    __device__ std::size_t index(unsigned row, unsigned column) const {
        return static_cast<std::size_t>(row) * product.n + column;
    }
    /// What `out` held, if that may matter. Does not wait for factors in device memory.
    __device__ float4 before(unsigned row, unsigned column) const {
        const bool may_matter = product.device_factors != nullptr || product.beta != 0.0f;
        return may_matter && inside(row, column) ? load_four(product.out + index(row, column))
                                                 : float4{0.0f, 0.0f, 0.0f, 0.0f};
    }
    __device__ void store(unsigned row, unsigned column, float4 sum, float4 before) const {
        if (!inside(row, column))
            return;
        const std::size_t at = index(row, column);
        if constexpr (form == ProductForm::forward) {
            sum = {alpha * sum.x, alpha * sum.y, alpha * sum.z, alpha * sum.w};
            if (product.bias != nullptr)
                sum = sum + load_four(product.bias + column);
            if (product.relu)
                sum = {positive(sum.x), positive(sum.y), positive(sum.z), positive(sum.w)};
        } else if constexpr (form == ProductForm::data_gradient) {
            sum = {alpha * sum.x, alpha * sum.y, alpha * sum.z, alpha * sum.w};
            if (product.relu_output != nullptr) {
                const float4 output = load_four(product.relu_output + at);
                sum = {output.x > 0.0f ? sum.x : 0.0f, output.y > 0.0f ? sum.y : 0.0f,
                       output.z > 0.0f ? sum.z : 0.0f, output.w > 0.0f ? sum.w : 0.0f};
            }
        } else {
            if (beta == 0.0f)
                before = {0.0f, 0.0f, 0.0f, 0.0f};
            sum = {alpha * sum.x + beta * before.x, alpha * sum.y + beta * before.y,
                   alpha * sum.z + beta * before.z, alpha * sum.w + beta * before.w};
        }
        store_four(product.out + at, sum);
    }

    __device__ static float positive(float value) { return value < 0.0f ? 0.0f : value; }
};

/// Counts one of `count` parties; true, for all threads of the block, for the last of them, which then sees what the
/// others wrote before.
__device__ inline bool last_of(unsigned* ticket, unsigned count) {
    __shared__ unsigned last;
    __threadfence();
    __syncthreads();
    if (threadIdx.x == 0) {
        last = atomicAdd(ticket, 1u) + 1 == count ? 1u : 0u;
        if (last != 0)
            *ticket = 0;
    }
    __syncthreads();
    __threadfence();
    return last != 0;
}

/// The step of the bias, once the sums of all columns are there.
__device__ inline void step_bias(const Arguments& arguments) {
    const Tf32Product& product = arguments.product;
    const double alpha = static_cast<double>(product.device_factors[0]);
    for (unsigned i = threadIdx.x; i < product.step_outputs; i += threads) {
        double sum = 0.0;
        for (unsigned column = i; column < product.n; column += product.step_outputs)
            sum += static_cast<double>(__ldcg(arguments.column_sums + column));
        const float moved = static_cast<float>(static_cast<double>(product.step_bias[i]) + alpha * sum);
        for (unsigned copy = i; copy < product.step_size; copy += product.step_outputs)
            product.step_bias[copy] = moved;
    }
}

template <class V>
__global__ void __launch_bounds__(threads, V::blocks_at_once)
    product_kernel(const __grid_constant__ Arguments arguments) {
#if __CUDA_ARCH__ >= 900
    namespace cg = cooperative_groups;
    extern __shared__ __align__(128) float shared[];
    const Tf32Product& product = arguments.product;
    const cg::cluster_group cluster = cg::this_cluster();
    const unsigned cluster_size = V::shared_sum ? cluster.num_blocks() : 1;
    const unsigned rank = V::shared_sum ? cluster.block_rank() : 0;
    const unsigned warp = threadIdx.x / 32;
    const unsigned lane = threadIdx.x % 32;
    const unsigned tile = blockIdx.x / cluster_size;
    const unsigned column0 = tile % arguments.column_tiles * columns;
    const unsigned tile_row0 = tile / arguments.column_tiles * V::block_rows;
    const unsigned row0 = tile_row0 + (V::shared_sum ? 0 : warp * V::rows);
    const bool with_columns = product.step_bias != nullptr && tile_row0 == 0;
    float* const mine = shared + warp * V::warp_floats;

    // Which stages are this warp's.
    const unsigned sharers = V::shared_sum ? warps * cluster_size * gridDim.y : 1;
    const unsigned first = V::shared_sum ? (blockIdx.y * cluster_size + rank) * warps + warp : 0;
    const unsigned k_stages = (product.k + V::depth - 1) / V::depth;
    const unsigned count = first < k_stages ? (k_stages - first + sharers - 1) / sharers : 0;
    const Copies<V::p_along_k, columns, V::depth> p_copies(product.b, lane, column0, product.n, product.k);
    const Copies<V::q_along_k, V::rows, V::depth> q_copies(product.a, lane, row0, product.m, product.k);
    const std::uint32_t mine_address = shared_address(mine);
    const bool any = row0 < product.m;
    const auto begin_p = [&](unsigned i) {
        if (i < count && any)
            p_copies.begin(mine_address + i % V::stages * (4 * V::stage_floats),
                           (first + i * sharers) * V::depth);
    };
    const auto begin_q = [&](unsigned i) {
        if (i < count && any) {
            q_copies.begin(mine_address + i % V::stages * (4 * V::stage_floats) + 4 * columns * V::depth,
                           (first + i * sharers) * V::depth);
        }
        commit_copies();
    };
    constexpr unsigned ahead = V::stages - 1;

    if (product.b_settled) {
#pragma unroll
        for (unsigned i = 0; i < ahead; ++i)
            begin_p(i);
    }
    cudaGridDependencySynchronize();
    const unsigned unit = lane / 4;
    const unsigned pair = 2 * (lane % 4);
    const Finish<V::form> finish(product);
#pragma unroll
    for (unsigned i = 0; i < ahead; ++i) {
        if (!product.b_settled)
            begin_p(i);
        begin_q(i);
    }
    cudaTriggerProgrammaticLaunchCompletion();
    float4 early[V::reads_early ? V::rows / 8 : 1][2][columns / 32] = {};
    if constexpr (V::reads_early) {
#pragma unroll
        for (unsigned q = 0; q < V::rows / 8; ++q)
#pragma unroll
            for (unsigned odd = 0; odd < 2; ++odd)
#pragma unroll
                for (unsigned group = 0; group < columns / 32; ++group)
                    early[q][odd][group] =
                        finish.before(row0 + row_of<V>(q, pair + odd), column0 + 32 * group + 4 * unit);
    }
    Sums<V> sums;

    for (unsigned i = 0; i < count; ++i) {
        wait_for_copies<static_cast<int>(V::stages) - 2>();
        __syncwarp();
        begin_p(i + ahead);
        begin_q(i + ahead);
        const float* const stage = mine + i % V::stages * V::stage_floats;
        if (any)
            sums.add(stage, stage + columns * V::depth, lane, with_columns);
    }
    wait_for_copies<0>();
    __syncwarp();
    if (with_columns)
        sums.join_columns();

    if constexpr (!V::shared_sum) {
#pragma unroll
        for (unsigned q = 0; q < V::rows / 8; ++q) {
#pragma unroll
            for (unsigned odd = 0; odd < 2; ++odd) {
#pragma unroll
                for (unsigned group = 0; group < Sums<V>::groups; ++group) {
                    const unsigned row = row_of<V>(q, pair + odd);
                    const unsigned column = 32 * group + 4 * unit;
                    finish.store(row0 + row, column0 + column, sums.four(group, q, odd),
                                 early[V::reads_early ? q : 0][odd][group]);
                }
            }
        }
        if (with_columns) {
#pragma unroll
            for (unsigned group = 0; group < columns / 32; ++group) {
                const float* const four = sums.of_columns[group];
                const unsigned column = column0 + 32 * group + 4 * unit;
                if (warp == 0 && pair == 0 && column < product.n)
                    store_four(arguments.column_sums + column, {four[0], four[1], four[2], four[3]});
            }
            if (last_of(arguments.tickets, arguments.column_tiles))
                step_bias(arguments);
        }
    } else {
#pragma unroll
        for (unsigned q = 0; q < V::rows / 8; ++q)
#pragma unroll
            for (unsigned odd = 0; odd < 2; ++odd)
#pragma unroll
                for (unsigned group = 0; group < Sums<V>::groups; ++group)
                    store_four(mine + sums_place(row_of<V>(q, pair + odd), 32 * group + 4 * unit),
                               sums.four(group, q, odd));
        if (with_columns && pair == 0) {
#pragma unroll
            for (unsigned group = 0; group < Sums<V>::groups; ++group) {
                const float* const four = sums.of_columns[group];
                store_four(mine + sums_place(V::rows, 32 * group + 4 * unit),
                           {four[0], four[1], four[2], four[3]});
            }
        }
        __syncthreads();

        // Each thread adds up some fours of the block, then some of the cluster, then some of all splits.
        constexpr unsigned fours = V::rows * columns / 4;
        constexpr unsigned column_fours = columns / 4;
        const unsigned all = fours + (with_columns ? column_fours : 0);
        const auto of_block = [&](unsigned at) {
            float4 sum = load_four(shared + at);
#pragma unroll
            for (unsigned w = 1; w < warps; ++w)
                sum = sum + load_four(shared + w * V::warp_floats + at);
            return sum;
        };
        const auto place_of = [](unsigned four) {
            return sums_place(four / column_fours, four % column_fours * 4);
        };
        if (cluster_size > 1) {
            for (unsigned four = threadIdx.x; four < all; four += threads)
                store_four(shared + place_of(four), of_block(place_of(four)));
            cluster.sync();
        }
        const auto of_cluster = [&](unsigned at) {
            if (cluster_size == 1)
                return of_block(at);
            float4 sum = load_four(cluster.map_shared_rank(shared, 0) + at);
            for (unsigned r = 1; r < cluster_size; ++r)
                sum = sum + load_four(cluster.map_shared_rank(shared, r) + at);
            return sum;
        };
        const auto use = [&](unsigned four, float4 sum, float4 before_it) {
            const unsigned row = four / column_fours;
            const unsigned column = column0 + four % column_fours * 4;
            if (row < V::rows)
                finish.store(row0 + row, column, sum, before_it);
            else if (column < product.n)
                store_four(arguments.column_sums + column, sum);
        };
        const auto before_of = [&](unsigned four) {
            const unsigned row = four / column_fours;
            if (V::form != ProductForm::weight_gradient || row >= V::rows)
                return float4{0.0f, 0.0f, 0.0f, 0.0f};
            return finish.before(row0 + row, column0 + four % column_fours * 4);
        };
        const unsigned begin = rank * threads + threadIdx.x;
        const unsigned stride = cluster_size * threads;
        if (gridDim.y == 1) {
#pragma unroll 4
            for (unsigned four = begin; four < all; four += stride)
                use(four, of_cluster(place_of(four)), before_of(four));
        } else {
            constexpr unsigned tile_fours = fours + column_fours;
            const auto partial = [&](unsigned split, unsigned four) {
                return arguments.partial_sums +
                       4 * ((static_cast<std::size_t>(split) * arguments.tiles + tile) * tile_fours + four);
            };
            for (unsigned four = begin; four < all; four += stride)
                store_four(partial(blockIdx.y, four), of_cluster(place_of(four)));
            if (last_of(arguments.tickets + 1 + blockIdx.x, gridDim.y)) {
                for (unsigned four = begin; four < all; four += stride) {
                    const float4 before_it = before_of(four);
                    float4 sum = __ldcg(reinterpret_cast<const float4*>(partial(0, four)));
#pragma unroll 8
                    for (unsigned split = 1; split < gridDim.y; ++split)
                        sum = sum + __ldcg(reinterpret_cast<const float4*>(partial(split, four)));
                    use(four, sum, before_it);
                }
                if (with_columns && last_of(arguments.tickets, arguments.column_tiles * cluster_size))
                    step_bias(arguments);
            }
        }
        // Nobody leaves while others read what it holds.
        if (cluster_size > 1)
            cluster.sync();
        if (with_columns && gridDim.y == 1 &&
            last_of(arguments.tickets, arguments.column_tiles * cluster_size))
            step_bias(arguments);
    }
#endif
}

} // namespace nn::detail::tf32
