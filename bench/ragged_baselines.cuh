/// \file
/// The rows of the benchmarks of ragged operations, and what stands beside them.
#pragma once

#include <cuda_runtime.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <vector>

#include <sluice/ragged/ragged_batch.hpp>
#include <sluice/ragged/workspace.hpp>

#include "ragged.hpp"
#include "support/cuda_baselines.cuh"

namespace bench {

/// 24 bits that differ from index to index.
__host__ __device__ inline std::uint32_t mixed(std::uint64_t index) {
    index = (index ^ (index >> 31)) * 0x9e3779b97f4a7c15u;
    index = (index ^ (index >> 29)) * 0xbf58476d1ce4e5b9u;
    return static_cast<std::uint32_t>(index >> 40);
}

static __global__ void write_values(float* values, std::int64_t count) {
    const std::int64_t step = static_cast<std::int64_t>(gridDim.x) * blockDim.x;
    for (std::int64_t i = static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x; i < count;
         i += step)
        values[i] = static_cast<float>(mixed(static_cast<std::uint64_t>(i))) * (1.0f / 16777216.0f);
}
static __global__ void write_row_ids(int* ids, sluice::RaggedView<const float> rows) {
    const std::int64_t step = static_cast<std::int64_t>(gridDim.x) * blockDim.x;
    for (std::int64_t i = static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x; i < rows.size();
         i += step)
        ids[i] = static_cast<int>(rows.row_of(i));
}

/// Random values in rows of given lengths, and memory for results. Made once for all benchmarks.
struct Rows {
    explicit Rows(const std::vector<std::int64_t>& ends)
        : count(static_cast<std::int64_t>(ends.size())), batch({count, ends.back()}), of_rows(ends.size()),
          places(ends.size()), of_values(values()), row_ids(values()), workspace({count, ends.back()}, 8) {
        const sluice::RaggedTarget<float> target = batch.target();
        sluice::RaggedCounts counts{count, ends.back(), 0, 0};
        for (std::size_t r = 0; r < ends.size(); ++r)
            counts.longest = std::max(counts.longest, ends[r] - (r == 0 ? 0 : ends[r - 1]));
        CHECK(cudaMemcpy(target.counts, &counts, sizeof counts, cudaMemcpyHostToDevice));
        CHECK(cudaMemset(target.offsets, 0, sizeof(std::int64_t)));
        CHECK(cudaMemcpy(target.offsets + 1, ends.data(), ends.size() * sizeof(std::int64_t),
                         cudaMemcpyHostToDevice));
        CHECK(cudaDeviceSynchronize()); // `stream` does not wait for the default stream
        write_values<<<2048, 256, 0, stream.get()>>>(target.values, ends.back());
        write_row_ids<<<2048, 256, 0, stream.get()>>>(row_ids.data(), std::as_const(batch).view());
        CHECK(cudaGetLastError());
        sluice::fill_bytes(stream, of_rows, 0);
        batch.require_valid_and_wait(stream);
    }

    std::size_t rows() const { return static_cast<std::size_t>(count); }
    std::size_t values() const { return static_cast<std::size_t>(batch.capacity().values); }
    const float* in() const { return batch.values().data(); }
    const std::int64_t* offsets() const { return batch.offsets().data(); }

    std::int64_t count;
    sluice::CudaStream stream;
    sluice::RaggedBatch<float, sluice::Cuda> batch;
    sluice::DeviceBuffer<float, sluice::Cuda> of_rows;
    sluice::DeviceBuffer<std::int64_t, sluice::Cuda> places;
    sluice::DeviceBuffer<float, sluice::Cuda> of_values;
    sluice::DeviceBuffer<int, sluice::Cuda> row_ids;
    sluice::RaggedWorkspace<sluice::Cuda> workspace;
};

template <class Length>
Rows& rows_of(std::int64_t count, Length length) {
    static std::unique_ptr<Rows> rows; // one for each type of `length`
    if (rows == nullptr) {
        std::vector<std::int64_t> ends;
        ends.reserve(static_cast<std::size_t>(count));
        std::int64_t end = 0;
        for (std::int64_t r = 0; r < count; ++r)
            ends.push_back(end += length(static_cast<std::uint64_t>(r)));
        rows = std::make_unique<Rows>(ends);
    }
    return *rows;
}
/// Most lengths are below ten, one in 100,000 is near 200,000.
inline std::int64_t heavy_tail(double uniform) { return static_cast<std::int64_t>(2.0 / (uniform + 1e-5)); }

inline Rows& short_rows() {
    return rows_of(1 << 24, [](std::uint64_t r) { return static_cast<std::int64_t>(mixed(r) % 17); });
}
inline Rows& skewed_rows() {
    return rows_of(1 << 22, [](std::uint64_t r) { return heavy_tail(mixed(r) / 16777216.0); });
}
inline Rows& sorted_rows() {
    return rows_of(1 << 22, [](std::uint64_t r) { return heavy_tail(static_cast<double>(r) / (1 << 22)); });
}
inline Rows& one_row() {
    return rows_of(1, [](std::uint64_t) { return std::int64_t{1} << 27; });
}

/// A CUB call, with temporary memory that is allocated once.
template <class Call>
class CubBaseline {
public:
    CubBaseline(Rows& rows, Call call) : rows_(&rows), call_(call) {
        CHECK(call_(nullptr, bytes_, rows));
        CHECK(cudaMalloc(&temporary_, bytes_));
    }
    CubBaseline(const CubBaseline&) = delete;
    CubBaseline& operator=(const CubBaseline&) = delete;
    ~CubBaseline() { cudaFree(temporary_); }

    void step() { CHECK(call_(temporary_, bytes_, *rows_)); }
    void sync() { rows_->stream.sync(); }

private:
    Rows* rows_;
    Call call_;
    void* temporary_ = nullptr;
    std::size_t bytes_ = 0;
};

/// A copy within device memory that reads and writes `moved` bytes together.
class CopyBaseline {
public:
    CopyBaseline(Rows& rows, std::size_t moved) : rows_(&rows), bytes_(moved / 2) {
        CHECK(cudaMalloc(&from_, bytes_));
        CHECK(cudaMalloc(&to_, bytes_));
        write_values<<<2048, 256, 0, rows.stream.get()>>>(static_cast<float*>(from_),
                                                          static_cast<std::int64_t>(bytes_ / 4));
        CHECK(cudaGetLastError());
        rows.stream.sync();
    }
    CopyBaseline(const CopyBaseline&) = delete;
    CopyBaseline& operator=(const CopyBaseline&) = delete;
    ~CopyBaseline() {
        cudaFree(from_);
        cudaFree(to_);
    }

    void step() { CHECK(cudaMemcpyAsync(to_, from_, bytes_, cudaMemcpyDeviceToDevice, rows_->stream.get())); }
    void sync() { rows_->stream.sync(); }

private:
    Rows* rows_;
    std::size_t bytes_;
    void* from_ = nullptr;
    void* to_ = nullptr;
};

/// Rows at places of their own in pinned memory, and a copy for each that is not empty.
class CopiesBaseline {
public:
    CopiesBaseline() : rows_(rows_of_boxes()) {
        CHECK(cudaHostAlloc(&host_, sizeof(Box) * pack_rows * pack_width, cudaHostAllocDefault));
        CHECK(cudaMalloc(&device_, sizeof(Box) * pack_rows * pack_width));
    }
    CopiesBaseline(const CopiesBaseline&) = delete;
    CopiesBaseline& operator=(const CopiesBaseline&) = delete;
    ~CopiesBaseline() {
        cudaFreeHost(host_);
        cudaFree(device_);
        cudaStreamDestroy(stream_);
    }

    void step() {
        for (std::size_t r = 0; r < rows_.size(); ++r) {
            if (rows_[r].empty())
                continue;
            Box* const from = host_ + r * pack_width;
            const std::size_t bytes = rows_[r].size() * sizeof(Box);
            std::memcpy(from, rows_[r].data(), bytes);
            CHECK(cudaMemcpyAsync(device_ + r * pack_width, from, bytes, cudaMemcpyHostToDevice, stream_));
        }
    }
    void sync() { CHECK(cudaStreamSynchronize(stream_)); }

private:
    std::vector<std::vector<Box>> rows_;
    cudaStream_t stream_ = make_stream();
    Box* host_ = nullptr;
    Box* device_ = nullptr;
};

/// Rows padded to one width, and their lengths, with one copy of all. Two blocks in turns, each with an event, so that
/// one is not written to while it is still being copied.
class PaddedBaseline {
public:
    PaddedBaseline() : rows_(rows_of_boxes()) {
        for (std::byte*& host : hosts_) {
            void* memory = nullptr;
            CHECK(cudaHostAlloc(&memory, bytes, cudaHostAllocDefault));
            host = static_cast<std::byte*>(memory);
        }
        CHECK(cudaMalloc(&device_, bytes));
    }
    PaddedBaseline(const PaddedBaseline&) = delete;
    PaddedBaseline& operator=(const PaddedBaseline&) = delete;
    ~PaddedBaseline() {
        for (int slot = 0; slot < 2; ++slot) {
            cudaFreeHost(hosts_[static_cast<std::size_t>(slot)]);
            cudaEventDestroy(copied_[static_cast<std::size_t>(slot)]);
        }
        cudaFree(device_);
        cudaStreamDestroy(stream_);
    }

    void step() {
        const std::size_t slot = step_++ % 2;
        CHECK(cudaEventSynchronize(copied_[slot]));
        std::byte* const host = hosts_[slot];
        std::memset(host, 0, padded_bytes);
        for (std::size_t r = 0; r < rows_.size(); ++r) {
            const std::vector<Box>& row = rows_[r];
            if (!row.empty())
                std::memcpy(host + r * pack_width * sizeof(Box), row.data(), row.size() * sizeof(Box));
            const auto length = static_cast<std::int32_t>(row.size());
            std::memcpy(host + padded_bytes + r * sizeof length, &length, sizeof length);
        }
        CHECK(cudaMemcpyAsync(device_, host, bytes, cudaMemcpyHostToDevice, stream_));
        CHECK(cudaEventRecord(copied_[slot], stream_));
    }
    void sync() { CHECK(cudaStreamSynchronize(stream_)); }

private:
    static constexpr std::size_t padded_bytes = sizeof(Box) * pack_rows * pack_width;
    static constexpr std::size_t bytes = padded_bytes + sizeof(std::int32_t) * pack_rows;

    std::vector<std::vector<Box>> rows_;
    cudaStream_t stream_ = make_stream();
    std::array<cudaEvent_t, 2> copied_{make_event(), make_event()};
    std::array<std::byte*, 2> hosts_{};
    std::byte* device_ = nullptr;
    std::size_t step_ = 0;
};

} // namespace bench
