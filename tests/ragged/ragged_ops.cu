// The kernels behind ragged_ops.hpp.
#include "ragged/ragged_ops.hpp"

#include <sluice/backend/detail/cuda/error.hpp>

namespace sluice::test::ops {

namespace {

constexpr unsigned threads = 128;

__global__ void sums_kernel(RaggedView<const Number> rows, Number* sums, std::int64_t* rows_of) {
    const std::int64_t first = static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
    const std::int64_t step = static_cast<std::int64_t>(gridDim.x) * blockDim.x;
    for (std::int64_t row = first; row < rows.rows(); row += step)
        sum_row(rows, sums, row);
    for (std::int64_t i = first; i < rows.size(); i += step)
        rows_of[i] = rows.row_of(i);
}

__global__ void make_kernel(RaggedTarget<Number> target, const std::int64_t* lengths, std::int64_t rows) {
    count_up(target, lengths, rows);
}

} // namespace

// Launches are left unchecked: a capture, or the wait at the end of a test, finds what fails.

void sums_and_rows(cudaStream_t stream, RaggedView<const Number> rows, Number* sums, std::int64_t* rows_of) {
    const std::int64_t most =
        rows.row_capacity() > rows.value_capacity() ? rows.row_capacity() : rows.value_capacity();
    const std::int64_t blocks = (most + threads - 1) / threads;
    const auto grid = static_cast<unsigned>(blocks < 1 ? 1 : (blocks > 4096 ? 4096 : blocks));
    sums_kernel<<<grid, threads, 0, stream>>>(rows, sums, rows_of);
}

void make_rows(cudaStream_t stream, RaggedTarget<Number> target, const std::int64_t* lengths,
               std::int64_t rows) {
    make_kernel<<<1, 1, 0, stream>>>(target, lengths, rows);
}

void load_ragged_kernels() {
    cudaFuncAttributes attributes{};
    SLUICE_CUDA_CHECK(cudaFuncGetAttributes(&attributes, sums_kernel));
    SLUICE_CUDA_CHECK(cudaFuncGetAttributes(&attributes, make_kernel));
}

} // namespace sluice::test::ops
