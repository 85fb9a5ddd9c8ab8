/// \file
/// A product with few rows and many weights, which takes the weights' latest step of gradient descent on the way.
///
/// Such a product, and such a step, take as long as the weights take through memory: once for the product, twice for
/// the step. Taking a step only when the weights are needed next makes it twice for both. Everything is float32.
#pragma once

#include <cstddef>

#include <nn/gemm/matrix.hpp>
#include <sluice/backend/stream.hpp>

namespace nn {

/// Where there is such a product, and for how many rows.
template <sluice::Backend B>
inline constexpr std::size_t gemm_sgd_update_rows = 0;

/// The elements of scratch memory for weights [inputs, columns].
std::size_t gemm_sgd_update_scratch(std::size_t inputs, std::size_t columns);

/// A step that weights have still to take: `weights += factors[0] * in^T * gradient` (see `descent_factors`).
template <sluice::Backend B>
struct PendingStep {
    Matrix<const float, B> in;       ///< [rows, inputs]; all 0 for no step
    Matrix<const float, B> gradient; ///< [rows, columns]
    sluice::DeviceSpan<const float, B> factors;
};

#if SLUICE_HAS_CUDA
template <>
inline constexpr std::size_t gemm_sgd_update_rows<sluice::Cuda> = 16;

/// Takes the step, and then `out = relu(in * weights + bias)`. `in` and the step have at most `gemm_sgd_update_rows`
/// rows each, `columns` is a multiple of 4. Throws `sluice::Error` when sizes do not fit, or weights, gradient or scratch
/// memory are not aligned to 16 bytes.
void gemm_sgd_update(sluice::CudaStreamRef stream, const PendingStep<sluice::Cuda>& step,
                     Matrix<float, sluice::Cuda> weights, Matrix<const float, sluice::Cuda> in,
                     sluice::DeviceSpan<const float, sluice::Cuda> bias, Matrix<float, sluice::Cuda> out,
                     sluice::DeviceSpan<float, sluice::Cuda> scratch);

/// Only takes the step: the same bits.
void sgd_update(sluice::CudaStreamRef stream, const PendingStep<sluice::Cuda>& step,
                Matrix<float, sluice::Cuda> weights);
#endif

} // namespace nn
