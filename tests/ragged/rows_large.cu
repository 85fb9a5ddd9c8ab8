// Sums of rows with more than 2^31 values in all, and in one row.
#include <algorithm>
#include <cstdint>
#include <vector>

#include <sluice/ragged/ragged_batch.hpp>
#include <sluice/ragged/reductions.cuh>

#include "support/doctest.hpp"

namespace ragged_rows_large {

using namespace sluice;

namespace {

constexpr std::int64_t size = (std::int64_t{1} << 31) + (std::int64_t{1} << 28);
/// Rows: 1,000 of 1,000,003 values, then 7 empty ones, one of 1.2 billion, and one of the rest.
constexpr std::int64_t short_rows = 1000, short_length = 1000003, empty_rows = 7, long_length = 1200000000;
constexpr std::int64_t rows = short_rows + empty_rows + 2;

__host__ __device__ constexpr std::int64_t begin_of(std::int64_t row) {
    if (row <= short_rows)
        return row * short_length;
    if (row <= short_rows + empty_rows)
        return short_rows * short_length;
    return row == rows ? size : short_rows * short_length + long_length;
}
__host__ __device__ constexpr std::uint8_t value_at(std::int64_t i) {
    return static_cast<std::uint8_t>((static_cast<std::uint64_t>(i) * 0x9e3779b97f4a7c15u) >> 56);
}

__global__ void write_rows(RaggedTarget<std::uint8_t> target) {
    const std::int64_t first = static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
    const std::int64_t step = static_cast<std::int64_t>(gridDim.x) * blockDim.x;
    for (std::int64_t row = first; row <= rows; row += step)
        target.offsets[row] = begin_of(row);
    for (std::int64_t i = first; i < size; i += step)
        target.values[i] = value_at(i);
    if (first == 0)
        *target.counts = RaggedCounts{rows, size, long_length, 0};
}

/// Adds each value to its row's sum, one by one.
__global__ void add_up(const std::uint8_t* values, unsigned long long* sums) {
    const std::int64_t first = static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
    const std::int64_t threads = static_cast<std::int64_t>(gridDim.x) * blockDim.x;
    const std::int64_t share = (size + threads - 1) / threads;
    const std::int64_t end = (first + 1) * share < size ? (first + 1) * share : size;
    std::int64_t row = 0;
    unsigned long long sum = 0;
    for (std::int64_t i = first * share; i < end; ++i) {
        if (i >= begin_of(row + 1)) {
            if (sum != 0)
                atomicAdd(sums + row, sum);
            sum = 0;
            while (i >= begin_of(row + 1))
                ++row;
        }
        sum += values[i];
    }
    if (sum != 0)
        atomicAdd(sums + row, sum);
}

} // namespace

TEST_CASE("sums of more than 2^31 values") {
    std::size_t available = 0, total = 0;
    SLUICE_CUDA_CHECK(cudaMemGetInfo(&available, &total));
    if (available < static_cast<std::size_t>(2 * size) + (std::size_t{1} << 28)) {
        MESSAGE("skipped: the device has too little memory free, ", available, " bytes");
        return;
    }
    const CudaStream stream;
    RaggedBatch<std::uint8_t, Cuda> batch({rows, size}, stream);
    DeviceBuffer<std::int64_t, Cuda> sums(static_cast<std::size_t>(rows), stream);
    RaggedWorkspace<Cuda> workspace({rows, size}, stream, 1);
    DeviceBuffer<unsigned long long, Cuda> expected(static_cast<std::size_t>(rows), stream);
    fill_bytes(stream, sums, 0xee);
    fill_bytes(stream, expected, 0);
    write_rows<<<4096, 256, 0, stream.get()>>>(batch.target());
    SLUICE_CUDA_CHECK(cudaGetLastError());
    add_up<<<1024, 256, 0, stream.get()>>>(batch.values().data(), expected.data());
    SLUICE_CUDA_CHECK(cudaGetLastError());
    ragged::sum(stream, sums, batch);
    batch.require_valid_and_wait(stream);

    std::vector<std::int64_t> got(static_cast<std::size_t>(rows));
    std::vector<unsigned long long> wanted(got.size());
    copy_and_wait(stream, wanted, expected);
    const auto right = [&] {
        copy_and_wait(stream, got, sums);
        return std::equal(got.begin(), got.end(), wanted.begin(), [](std::int64_t a, unsigned long long b) {
            return a == static_cast<std::int64_t>(b);
        });
    };
    CHECK(right());
    fill_bytes(stream, sums, 0xee);
    ragged::sum(stream, sums, batch, &workspace);
    CHECK(right());
    CHECK(got[static_cast<std::size_t>(short_rows)] == 0);
    CHECK(got[static_cast<std::size_t>(rows - 1)] > 0);
}

} // namespace ragged_rows_large
