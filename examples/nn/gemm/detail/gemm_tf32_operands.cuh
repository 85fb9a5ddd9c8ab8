/// \file
/// How a warp of gemm_tf32.cuh loads its operands and multiplies them.
///
/// The Tensor Cores multiply [16, 8] by [8, 8]. Their 16 rows are columns of `out` here (the side "p", of the
/// weights), their 8 columns are rows of `out` (the side "q"), so that 8 rows suffice to use them fully. A warp
/// computes 64 columns by some rows over its part of k, and brings what it reads to shared memory by copies of its own,
/// which no other warp waits for. The mapping of indices to the instruction's rows, columns and steps is chosen such that
/// every lane reads 16 bytes at a time, whether an operand is transposed or not, and ends with four neighbours of a row of
/// `out`.
#pragma once

#include <nn/core/tensor_cores.cuh>
#include <nn/gemm/detail/gemm_tf32.hpp>

namespace nn::detail::tf32 {

inline constexpr unsigned warps = 4;
inline constexpr unsigned threads = 32 * warps;
/// Columns of `out` that a warp computes.
inline constexpr unsigned columns = 64;

/// What the kernel is compiled for.
template <GemmForm form_, unsigned rows_, unsigned depth_, unsigned stages_, bool shared_sum_>
struct Variant {
    static constexpr GemmForm form = form_;
    static constexpr unsigned rows = rows_;     ///< of `out`, of a warp
    static constexpr unsigned depth = depth_;   ///< of k, of a stage: 16 or 32
    static constexpr unsigned stages = stages_; ///< that a warp has in shared memory
    static constexpr bool shared_sum = shared_sum_;

    /// Whether k is what runs along the rows in memory.
    static constexpr bool p_along_k = form == GemmForm::data_gradient;
    static constexpr bool q_along_k = form != GemmForm::weight_gradient;
    static constexpr unsigned stage_floats = (columns + rows) * depth;
    /// A warp's sums, and below them those of the columns of b.
    static constexpr unsigned sums_floats = (rows + 1) * columns;
    static constexpr unsigned warp_floats =
        stages * stage_floats > sums_floats ? stages* stage_floats : sums_floats;
    static constexpr std::size_t shared_bytes = sizeof(float) * warps * warp_floats;
    /// An update of few steps is all reading and writing of `out`, which is therefore read first of all.
    static constexpr bool reads_early = !shared_sum && form == GemmForm::weight_gradient;
    /// Rows that a block computes.
    static constexpr unsigned block_rows = shared_sum ? rows : warps * rows;
};

/// A factor as the Tensor Cores take it: they leave out the last 13 bits, so that a little more than it is given comes
/// within 3/4 of the last place that they keep, without a bias. Exact where the factor fits, and for NaN.
__device__ inline std::uint32_t rounded(float value) {
    constexpr float a_little_more = 1.0f + 0.75f / 2048.0f;
    return __float_as_uint(value * a_little_more);
}

/// Where 16 bytes of a factor lie in its stage, counted in 16 bytes. The eight lanes that read together always meet
/// eight different sets of banks.
template <bool along_k, unsigned width, unsigned depth>
__device__ constexpr unsigned swizzled_offset(unsigned row, unsigned k) {
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

/// Brings `width` rows, or columns, of a factor to shared memory, `depth` of k at a time. Lines of memory are shorter
/// than 2^27 numbers, so that all but addresses fits 32 bits.
template <bool along_k, unsigned width, unsigned depth>
class AsyncCopies {
public:
    /// Of a factor whose rows, or columns, end at `end`, those from `first` on.
    __device__ AsyncCopies(const float* from, unsigned lane, unsigned first, unsigned end, unsigned k_end)
        : line_(lane / per_line), within_(lane % per_line * 4), first_(first), end_(end), k_end_(k_end),
          offset_(16 * swizzled_offset<along_k, width, depth>(along_k ? line_ : within_,
                                                              along_k ? within_ : line_)),
          line_bytes_(4 * (along_k ? k_end : end)), complete_until_(first + width <= end ? k_end : 0) {
        source_ = reinterpret_cast<const char*>(from + (along_k ? within_ : first + within_)) +
                  static_cast<std::size_t>(along_k ? first + line_ : line_) * line_bytes_;
    }

    /// Begins to copy k from `k` on; zeros where there is nothing. `to` is a multiple of 128.
    __device__ void begin(std::uint32_t to, unsigned k) const {
        const char* const source = source_ + static_cast<std::size_t>(k) * (along_k ? 4 : line_bytes_);
        const std::uint32_t at = to + offset_;
        if (k + depth <= complete_until_) {
#pragma unroll
            for (unsigned i = 0; i < copies; ++i)
                copy_16_bytes((at ^ swizzle(i)) + 512 * i, source + i * step());
        } else {
            const unsigned line = (along_k ? first_ : k) + line_;
            const unsigned line_end = along_k ? end_ : k_end_;
            const bool inside = along_k ? k + within_ < k_end_ : first_ + within_ < end_;
#pragma unroll 1
            for (unsigned i = 0; i < copies; ++i) {
                const bool there = inside && line + i * lines_at_once < line_end;
                copy_16_bytes((at ^ swizzle(i)) + 512 * i, there ? source + i * step() : source_, there);
            }
        }
    }

private:
    static constexpr unsigned per_line = (along_k ? depth : width) / 4;
    static constexpr unsigned lines_at_once = 32 / per_line;
    static constexpr unsigned copies = width * depth / 4 / 32;
    static_assert(copies * 32 * 4 == width * depth && per_line <= 32);

    /// The bits of `swizzled_offset`, in bytes, that differ between the lines of one copy and of the `i`th after it.
    __device__ static constexpr unsigned swizzle(unsigned i) {
        if constexpr (along_k)
            return depth == 16 ? 0 : 64 * (i & 1);
        else
            return width == 64 ? 32 * ((i >> 1) & 3) : 32 * (i & 3);
    }
    /// Bytes from one copy to the next.
    __device__ std::size_t step() const { return lines_at_once * line_bytes_; }

    const char* source_;
    unsigned line_;
    unsigned within_;
    unsigned first_;
    unsigned end_;
    unsigned k_end_;
    unsigned offset_;
    unsigned line_bytes_;
    unsigned complete_until_; ///< as far as k goes where all rows, or columns, are there
};

/// Where a lane reads its fours of an operand. The rows and steps that it reads are restricted, so that all offsets are one
/// `swizzled_offset`, perhaps with one bit flipped, plus constants: only that one is computed.
template <bool along_k, unsigned width, unsigned depth>
class OperandReads {
public:
    /// `row` is the lane's of 8, or four times that, and `k` is four times the lane's of 4.
    __device__ OperandReads(unsigned row, unsigned k)
        : offset_(swizzled_offset<along_k, width, depth>(row, k)) {}

    /// The four at `row` and `k` from the lane's on. Along k, `k` is a multiple of 16, and `row` one of 8 or a multiple
    /// of 32 and up to 3 more. Otherwise `row` is a multiple of 32, and `k` one of 16 and up to 3 more.
    __device__ float4 operator()(const float* stage, unsigned row, unsigned k) const {
        const float4* const fours = reinterpret_cast<const float4*>(stage);
        if constexpr (!along_k)
            return fours[offset_ + k * (width / 4) + row / 4];
        else if constexpr (depth == 16)
            return fours[(offset_ ^ (row & 1 ? 4 : 0)) + row / 2 * 8];
        else
            return fours[(offset_ ^ ((row & 1) != (k / 16) ? 4 : 0)) + row * (depth / 4)];
    }

private:
    unsigned offset_;
};

/// Four steps of k for each of four rows of the units: `values[i][j]`, step i, row j.
template <bool along_k, unsigned width, unsigned depth>
__device__ void read_four(float (&values)[4][4], const OperandReads<along_k, width, depth>& reads,
                          const float* stage, unsigned row, unsigned k) {
#pragma unroll
    for (unsigned i = 0; i < 4; ++i) {
        const float4 read = along_k ? reads(stage, row + i, k) : reads(stage, row, k + i);
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
struct Accumulators {
    static constexpr unsigned groups = columns / 32;
    static constexpr unsigned q_tiles = V::rows / 8;
    float accumulators[2 * groups][q_tiles][4] = {};
    float of_columns[groups][4] = {};

    /// Columns 32 group + 4 (lane / 4) … + 3 of row `row_of(tile, 2 (lane % 4) + odd)`.
    __device__ float4 four(unsigned group, unsigned tile, unsigned odd) const {
        return {accumulators[2 * group][tile][odd], accumulators[2 * group][tile][odd + 2],
                accumulators[2 * group + 1][tile][odd], accumulators[2 * group + 1][tile][odd + 2]};
    }

    /// Adds one stage.
    __device__ void add(const float* p_stage, const float* q_stage, unsigned lane, bool with_column_sums) {
        const unsigned unit = lane / 4;
        const unsigned step = 4 * (lane % 4);
        const OperandReads<V::p_along_k, columns, V::depth> p_reads(4 * unit, step);
        const OperandReads<V::q_along_k, V::rows, V::depth> q_reads(V::q_along_k ? unit : 4 * unit, step);
#pragma unroll
        for (unsigned k = 0; k < V::depth; k += 16) {
            std::uint32_t q[q_tiles][4];
            if constexpr (V::q_along_k) {
#pragma unroll
                for (unsigned tile = 0; tile < q_tiles; ++tile) {
                    const float4 read = q_reads(q_stage, 8 * tile, k);
                    q[tile][0] = rounded(read.x);
                    q[tile][1] = rounded(read.y);
                    q[tile][2] = rounded(read.z);
                    q[tile][3] = rounded(read.w);
                }
            } else {
#pragma unroll
                for (unsigned group = 0; group < V::rows / 32; ++group) {
                    float read[4][4];
                    read_four(read, q_reads, q_stage, 32 * group, k);
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
                read_four(read, p_reads, p_stage, 32 * group, k);
                if (V::form == GemmForm::weight_gradient && with_column_sums) {
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
                            multiply_add_tf32(accumulators[2 * group + half][tile], p, q[tile][i],
                                              q[tile][i + 1]);
                    }
                }
            }
        }
    }

    /// Adds up over the lanes what each has of the columns' sums.
    __device__ void reduce_columns() {
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

} // namespace nn::detail::tf32
