// Thrust and CUB in a stage, over ragged rows: CUB's temporary storage lies in the slot, so no step allocates.
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <span>
#include <vector>

#include <sluice/ragged.hpp>

#include "for_each.hpp"

struct Square {
    SLUICE_HOST_DEVICE float operator()(float x) const { return x * x; }
};

#if SLUICE_HAS_CUDA
#include <cub/device/device_segmented_reduce.cuh>
#include <thrust/execution_policy.h>
#include <thrust/transform.h>

void square(sluice::StreamRef stream, float* values, std::int64_t count) {
    thrust::transform(thrust::cuda::par_nosync.on(stream), values, values + count, values, Square{});
}
// Row r is a segment from offset r to offset r + 1. Without `storage`, CUB only tells how many bytes it needs.
void sum_rows(sluice::StreamRef stream, void* storage, std::size_t& bytes,
              sluice::RaggedView<const float> rows, std::int64_t count, float* sums) {
    SLUICE_CUDA_CHECK(cub::DeviceSegmentedReduce::Sum(storage, bytes, rows.values(), sums,
                                                      static_cast<int>(count), rows.offsets(),
                                                      rows.offsets() + 1, stream));
}
#else
#include <algorithm>
#include <numeric>

void square(sluice::StreamRef stream, float* values, std::int64_t count) {
    stream.enqueue([=] { std::transform(values, values + count, values, Square{}); });
}
void sum_rows(sluice::StreamRef stream, void* storage, std::size_t& bytes,
              sluice::RaggedView<const float> rows, std::int64_t count, float* sums) {
    bytes = 1; // there is nothing to store
    if (storage != nullptr)
        stream.enqueue([=] {
            for (std::int64_t r = 0; r < count; ++r)
                sums[r] = std::accumulate(rows.row(r).begin(), rows.row(r).end(), 0.0f);
        });
}
#endif

constexpr std::size_t most_rows = 100;
constexpr sluice::RaggedCapacity room{.rows = most_rows, .values = 1000};

using Batch = sluice::RaggedPacker<float>;
struct Rows {
    sluice::RaggedBatch<float> rows{room};
    std::int64_t row_count = 0, value_count = 0; // as the host knows them
};
struct Sums {
    sluice::DeviceBuffer<float> values{most_rows};
    sluice::DeviceBuffer<std::byte> storage;
};

Sums make_sums(int /*slot*/) {
    const sluice::Stream stream;
    std::size_t bytes = 0;
    sum_rows(stream, nullptr, bytes, {}, room.rows, nullptr);
    return Sums{.storage = sluice::DeviceBuffer<std::byte>{bytes}};
}

int main() {
    sluice::Stage load{"load", [](sluice::StreamRef stream, const Batch& in, Rows& out) {
                           in.copy_to(stream, out.rows);
                           out.row_count = in.rows();
                           out.value_count = in.size();
                       }};
    sluice::Stage reduce{"reduce", [](sluice::StreamRef stream, Rows& in, Sums& out) {
                             std::size_t bytes = out.storage.size();
                             square(stream, in.rows.values().data(), in.value_count);
                             sum_rows(stream, out.storage.data(), bytes, in.rows.view(), in.row_count,
                                      out.values.data());
                         }};
    float last = 0;
    sluice::Readback<float> results{most_rows,
                                    [&](std::size_t, std::span<const float> sums) { last = sums[2]; }};
    sluice::Stage fetch{"fetch",
                        [&](sluice::StreamRef stream, const Sums& in) { results.push(stream, in.values); }};
    sluice::Pipeline pipeline{sluice::Stages{load, reduce, fetch},
                              sluice::Slots{[](int /*slot*/) { return Rows{}; }, make_sums}};

    Batch batch{room};
    for (int i = 0; i < 20; ++i) {
        const float x = static_cast<float>(i);
        batch.pack(std::vector<std::vector<float>>{{1, 2, 3}, {}, {x, x, 1}});
        pipeline.submit(batch).wait();
    }
    pipeline.finish();
    results.finish();
    const bool right = last == 19 * 19 * 2 + 1;
    std::printf("squares of the last row add up to %.0f: %s\n", static_cast<double>(last),
                right ? "right" : "WRONG");
    return exit_code(right);
}
