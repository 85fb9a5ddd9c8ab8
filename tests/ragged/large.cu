// More than 2^31 values in device memory: offsets, places of values and byte counts all pass 32 bits.
#include <cstdint>
#include <string>
#include <vector>

#include <sluice/backend/detail/cuda/error.hpp>
#include <sluice/ragged/ragged_batch.hpp>

#include "support/doctest.hpp"

namespace ragged_large {

using namespace sluice;

namespace {

__host__ __device__ constexpr std::uint8_t value_at(std::int64_t index) {
    const auto bits = static_cast<std::uint64_t>(index) * 0x9e3779b97f4a7c15u;
    return static_cast<std::uint8_t>(bits >> 56);
}

/// Rows of 0, 1, 2 … values in turns up to 999, and then one row of all that is left.
__host__ __device__ constexpr std::int64_t begin_of(std::int64_t row) {
    const std::int64_t laps = row / 1000;
    const std::int64_t rest = row % 1000;
    return laps * (999 * 1000 / 2) + rest * (rest - 1) / 2;
}

__global__ void write_rows(RaggedTarget<std::uint8_t> target, std::int64_t rows, std::int64_t size) {
    const std::int64_t first = static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
    const std::int64_t step = static_cast<std::int64_t>(gridDim.x) * blockDim.x;
    for (std::int64_t row = first; row <= rows; row += step)
        target.offsets[row] = row == rows ? size : begin_of(row);
    for (std::int64_t i = first; i < size; i += step)
        target.values[i] = value_at(i);
    if (first == 0)
        *target.counts = RaggedCounts{rows, size, size - begin_of(rows - 1), 0};
}

/// Counts what is wrong: values that are not where they should be, rows that are not those of their values.
__global__ void look_at_rows(RaggedView<const std::uint8_t> view, unsigned long long* wrong) {
    const std::int64_t first = static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
    const std::int64_t step = static_cast<std::int64_t>(gridDim.x) * blockDim.x;
    unsigned long long mine = 0;
    for (std::int64_t row = first; row < view.rows() - 1; row += step) {
        const std::int64_t begin = begin_of(row);
        const RowSpan<const std::uint8_t> values = view.row(row);
        mine += values.size() == row % 1000 ? 0 : 1;
        for (std::int64_t i = 0; i < values.size(); ++i)
            mine += values[i] == value_at(begin + i) ? 0 : 1;
    }
    // The last row is for all threads, from its far end on.
    const RowSpan<const std::uint8_t> last = view.row(view.rows() - 1);
    const std::int64_t begin = view.offset(view.rows() - 1);
    for (std::int64_t i = first; i < last.size(); i += step)
        mine += last[i] == value_at(begin + i) && view[begin + i] == value_at(begin + i) ? 0 : 1;
    // Every 4,099th value's row.
    for (std::int64_t i = 4099 * first; i < view.size(); i += 4099 * step) {
        const std::int64_t row = view.row_of(i);
        mine += view.offset(row) <= i && i < view.offset(row + 1) ? 0 : 1;
    }
    if (mine != 0)
        atomicAdd(wrong, mine);
}

} // namespace

TEST_CASE("more than 2^31 values: rows made, walked and found on the device") {
    constexpr std::int64_t rows = 7000003; // 3,496,500,001 values, and a row with the rest
    constexpr std::int64_t size = (std::int64_t{1} << 32) + 12345;
    static_assert(begin_of(rows - 1) > (std::int64_t{1} << 31) && begin_of(rows - 1) < size);
    std::size_t free = 0;
    std::size_t total = 0;
    SLUICE_CUDA_CHECK(cudaMemGetInfo(&free, &total));
    const std::size_t needed = RaggedLayout::of({rows, size}, 1).bytes;
    if (free < needed + (std::size_t{1} << 29)) {
        MESSAGE("skipped: " << needed << " bytes of device memory are needed and " << free << " are free");
        return;
    }
    const CudaStream stream;
    RaggedBatch<std::uint8_t, Cuda> batch({rows, size});
    CHECK(batch.counts_and_wait(stream) == RaggedCounts{});
    DeviceBuffer<unsigned long long, Cuda> wrong(1, stream);
    fill_bytes(stream, batch.values(), 0xee); // of more than 2^32 bytes
    fill_bytes(stream, wrong, 0);
    write_rows<<<4096, 256, 0, stream.get()>>>(batch.target(), rows, size);
    SLUICE_CUDA_CHECK(cudaGetLastError());
    const RaggedBatch<std::uint8_t, Cuda>& seen = batch;
    look_at_rows<<<4096, 256, 0, stream.get()>>>(seen.view(), wrong.data());
    SLUICE_CUDA_CHECK(cudaGetLastError());
    std::vector<unsigned long long> count(1, 1);
    copy_and_wait(stream, count, wrong);
    CHECK(count[0] == 0);
    CHECK(batch.counts_and_wait(stream) == RaggedCounts{rows, size, size - begin_of(rows - 1), 0});
    batch.require_valid_and_wait(stream);

    // The last values of all, read by the host.
    std::vector<std::uint8_t> ends(1000);
    copy_and_wait(stream, ends, seen.values().last(ends.size()));
    std::vector<std::uint8_t> expected(ends.size());
    for (std::size_t i = 0; i < expected.size(); ++i)
        expected[i] = value_at(size - 1000 + static_cast<std::int64_t>(i));
    CHECK(ends == expected);
}

} // namespace ragged_large
