/// \file
/// A step of gradient descent and the next product with the updated weights, in one pass over the weights.
///
/// With few rows and many weights, both are bound by memory: a product reads the weights, a step reads and writes them.
/// Together they read and write them once. Everything is float32.
#pragma once

#include <cstddef>

#include <nn/gemm/matrix.hpp>
#include <sluice/backend/stream.hpp>

namespace nn {

/// The most rows that a backend has the kernel for; 0 where it has none.
template <sluice::Backend B>
inline constexpr std::size_t gemm_sgd_update_rows = 0;

/// The elements of scratch memory for weights [inputs, columns].
std::size_t gemm_sgd_update_scratch(std::size_t inputs, std::size_t columns);

/// A step that is still to be applied: `weights += factors[0] * in^T * gradient` (see `descent_factors`).
template <sluice::Backend B>
struct PendingStep {
    Matrix<const float, B> in;       ///< [rows, inputs]; all 0 for no step
    Matrix<const float, B> gradient; ///< [rows, columns]
    sluice::DeviceSpan<const float, B> factors;
};

#if SLUICE_HAS_CUDA
template <>
inline constexpr std::size_t gemm_sgd_update_rows<sluice::Cuda> = 16;

/// Applies the step, then computes `out = relu(in * weights + bias)`. `in` and the step have at most `gemm_sgd_update_rows`
/// rows each, `columns` is a multiple of 4. Throws `sluice::Error` when sizes do not fit, or weights, gradient or scratch
/// memory are not aligned to 16 bytes.
void gemm_sgd_update(sluice::CudaStreamRef stream, const PendingStep<sluice::Cuda>& step,
                     Matrix<float, sluice::Cuda> weights, Matrix<const float, sluice::Cuda> in,
                     sluice::DeviceSpan<const float, sluice::Cuda> bias, Matrix<float, sluice::Cuda> out,
                     sluice::DeviceSpan<float, sluice::Cuda> scratch);

/// Applies the step alone: the same bits.
void sgd_update(sluice::CudaStreamRef stream, const PendingStep<sluice::Cuda>& step,
                Matrix<float, sluice::Cuda> weights);
#endif

} // namespace nn
