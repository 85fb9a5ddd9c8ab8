/// \file
/// Products of float32 matrices in TF32 by a kernel of our own, where cuBLASLt is far from the bandwidth of memory: with
/// weights that are read, or updated, for a few rows, and in layers so small that they are bound by latency.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include <sluice/backend/stream.hpp>

namespace nn::detail {

/// Which factor is stored transposed: the three products of a layer.
enum class GemmForm {
    forward,         ///< out [m, n] = a [m, k] b [k, n]
    data_gradient,   ///< b is stored as [n, k]
    weight_gradient, ///< a is stored as [k, m]
};

/// `out = alpha * op(a) * op(b) + beta * out`, and what goes with it. See Epilogue for what each means; null
/// pointers leave a part out. Without padding, since it is part of kernels' arguments: bytes that are never written would
/// make two captures of the same work look different.
struct Tf32Gemm {
    GemmForm form = GemmForm::forward;
    unsigned m = 0;
    unsigned n = 0;
    unsigned k = 0;
    const float* a = nullptr;
    const float* b = nullptr;
    float* out = nullptr;
    const float* bias = nullptr;
    const float* relu_output = nullptr;
    float alpha = 1.0f;
    float beta = 0.0f;
    const float* device_factors = nullptr; ///< in place of `alpha` and `beta`
    float* step_bias = nullptr;
    unsigned step_size = 0;
    unsigned step_outputs = 0;
    bool prefetch_b = false;
    bool relu = false;
    bool unused[6] = {};
};
static_assert(sizeof(Tf32Gemm) == 4 * 4 + 7 * sizeof(void*) + 4 * 4 + 8);

/// How a product is divided among warps, blocks and clusters.
struct Tf32Config {
    /// Rows of `out` that a warp computes: 8, 16, 32 or 64, of a weight gradient 32 or 64. 64 columns go with them.
    unsigned rows = 64;
    /// Whether the four warps of a block share a sum, each with its part of k, or each have rows of their own.
    bool shared_sum = true;
    /// Blocks that share a sum over shared memory: 1, 2, 4 or 8. 1 unless `shared_sum`.
    unsigned cluster = 1;
    /// Clusters that share a sum over `partial_sums`. 1 unless `shared_sum`.
    unsigned splits = 1;

    bool operator==(const Tf32Config&) const = default;
};

/// Whether the current device has what the kernel is made of, which came with compute capability 9.0.
bool tf32_available();

/// Whether the kernel takes a product at all: lengths of rows that are multiples of 4 and below 2^27, addresses of
/// 16 bytes.
bool tf32_fits(const Tf32Gemm& gemm);

/// Configs worth trying for a product of such lengths, the best by rule first.
std::vector<Tf32Config> tf32_configs(GemmForm form, unsigned m, unsigned n, unsigned k);

/// Whether the first of them is faster, by rule, than the first that cuBLASLt offers.
bool tf32_is_faster(GemmForm form, unsigned m, unsigned n, unsigned k);

/// Memory that the kernel works in, shared by the products of one stream.
struct Tf32Workspace {
    static constexpr std::size_t tickets_count = 8192;
    float* partial_sums = nullptr;      ///< `tf32_partial_sums` elements at least
    std::size_t partial_sums_count = 0; ///< how many there are
    unsigned* tickets = nullptr;        ///< `tickets_count` zeros, which the kernel leaves as it finds them
};

/// The elements of `partial_sums` that a product needs.
std::size_t tf32_partial_sums(const Tf32Gemm& gemm, const Tf32Config& config);

/// Enqueues the product. It may begin before the previous kernel of the stream has ended, but until then writes nothing,
/// and reads nothing but a `b` that may be prefetched. The lengths and the config decide the order of sums. Throws
/// `sluice::Error` for a config without a kernel.
void multiply_tf32(sluice::CudaStreamRef stream, const Tf32Gemm& gemm, const Tf32Config& config,
                   const Tf32Workspace& workspace);

/// Most weight gradients that one launch computes.
inline constexpr std::size_t tf32_most_updates = 8;

/// Enqueues several weight gradients with `device_factors`, each as `tf32_fits` wants it, as at most two kernels: 1 to
/// `tf32_most_updates` of them, none of which needs what another one writes; best with the longest sums first. They
/// begin as `multiply_tf32` does, but read nothing before the previous kernel has ended; the lengths of all, and the size of
/// the workspace, decide the order of sums. Throws `sluice::Error` for another number, or a workspace too small for
/// their columns' sums.
void update_tf32(sluice::CudaStreamRef stream, std::span<const Tf32Gemm> gemms,
                 const Tf32Workspace& workspace);

} // namespace nn::detail
