/// \file
/// Operations on ragged batches on CUDA, beside CUB and beside copies. See ragged.hpp.
#include "ragged.hpp"

#include <cub/device/device_scan.cuh>
#include <cub/device/device_segmented_reduce.cuh>
#include <cub/device/device_segmented_sort.cuh>
#if __has_include(<cub/device/device_transform.cuh>) // not in CUDA 12.4, for one
#include <cub/device/device_transform.cuh>
#define SLUICE_BENCH_CUB_TRANSFORMS 1
#else
#define SLUICE_BENCH_CUB_TRANSFORMS 0
#endif
#include <thrust/iterator/transform_iterator.h>

#include <memory>

#include <sluice/ragged/rows.cuh>

#include "ragged_baselines.cuh"
#include "support/cuda_baselines.cuh"

namespace {

using namespace bench;
using sluice::Cuda;
namespace ragged = sluice::ragged;

// CUDA 12's CUB counts in `int`; later ones in what they are given.
#if CUDART_VERSION >= 13000
using CubCount = std::int64_t;
using CubScanCount = std::uint32_t;
#else
using CubCount = int;
using CubScanCount = int;
#endif
template <class T>
CubCount cub_count(T number) {
    return static_cast<CubCount>(number);
}

/// Something to be done to a case's rows.
template <class Enqueue>
class RowsSubject {
public:
    RowsSubject(Rows& rows, Enqueue enqueue) : rows_(&rows), enqueue_(std::move(enqueue)) {}
    void step() { enqueue_(*rows_); }
    void sync() { rows_->stream.sync(); }

private:
    Rows* rows_;
    Enqueue enqueue_;
};

/// The name of a case, and what it can bear.
struct Case {
    const char* name;
    Rows& (*rows)();
    Effort effort;
};

template <class Enqueue>
auto subject(const Case& on, Enqueue enqueue) {
    return [=] { return RowsSubject<Enqueue>(on.rows(), enqueue); };
}

/// `enqueue(rows)`, beside `cub(temporary, bytes, rows)`, which asks for the bytes first, and beside a copy of what it
/// moves: `bytes(rows)` in all, read and written.
template <class Enqueue, class Cub>
void add_beside_cub(const Case& on, const char* operation, Enqueue enqueue, Cub cub) {
    add_timed(std::string("cuda/") + on.name + "/" + operation + "/beside_cub", on.effort, Cuda::counts(),
              subject(on, enqueue), [=] { return CubBaseline<Cub>(on.rows(), cub); });
}
template <class Enqueue, class Bytes>
void add_beside_copy(const Case& on, const char* operation, Enqueue enqueue, Bytes bytes) {
    add_timed(std::string("cuda/") + on.name + "/" + operation + "/beside_copy",
              Effort{8, 5, on.effort.repetitions}, Cuda::counts(), subject(on, enqueue),
              [=] { return CopyBaseline(on.rows(), bytes(on.rows())); });
}

constexpr std::size_t offset_bytes = sizeof(std::int64_t);

void add_sums(const Case& on) {
    const auto enqueue = [](Rows& rows) {
        ragged::sum(rows.stream, rows.of_rows, rows.batch, &rows.workspace);
    };
    add_beside_cub(on, "sum", enqueue, [](void* temporary, std::size_t& bytes, Rows& rows) {
        return cub::DeviceSegmentedReduce::Sum(temporary, bytes, rows.in(), rows.of_rows.data(),
                                               cub_count(rows.count), rows.offsets(), rows.offsets() + 1,
                                               rows.stream.get());
    });
    add_beside_copy(on, "sum", enqueue, [](Rows& rows) {
        return rows.values() * sizeof(float) + rows.rows() * (offset_bytes + sizeof(float));
    });
}

void add_scans(const Case& on) {
    const auto moved = [](Rows& rows) {
        return 2 * rows.values() * sizeof(float) + rows.rows() * offset_bytes;
    };
    const auto sums = [](Rows& rows) {
        ragged::exclusive_sum(rows.stream, rows.of_values, rows.batch, &rows.workspace);
    };
    add_beside_cub(on, "exclusive_sum", sums, [](void* temporary, std::size_t& bytes, Rows& rows) {
        return cub::DeviceScan::ExclusiveSumByKey(
            temporary, bytes, rows.row_ids.data(), rows.in(), rows.of_values.data(),
            static_cast<CubScanCount>(rows.values()), ::cuda::std::equal_to<>{}, rows.stream.get());
    });
    add_beside_copy(on, "exclusive_sum", sums, moved);
    add_beside_copy(
        on, "softmax",
        [](Rows& rows) { ragged::softmax(rows.stream, rows.of_values, rows.batch, &rows.workspace); }, moved);
}

void add_sort(const Case& on) {
    add_beside_cub(
        on, "sort", [](Rows& rows) { ragged::sort(rows.stream, rows.of_values, rows.batch, rows.workspace); },
        [](void* temporary, std::size_t& bytes, Rows& rows) {
            return cub::DeviceSegmentedSort::SortKeys(temporary, bytes, rows.in(), rows.of_values.data(),
                                                      cub_count(rows.values()), cub_count(rows.count),
                                                      rows.offsets(), rows.offsets() + 1, rows.stream.get());
        });
}

using ExponentialSum = ragged::detail::ExponentialSum<float>;
struct ToExponentialSum {
    __host__ __device__ ExponentialSum operator()(float value) const { return {value, 1.0f}; }
};
struct MergeExponentialSums {
    __host__ __device__ ExponentialSum operator()(ExponentialSum a, ExponentialSum b) const {
        return ragged::detail::ExponentialSumOf<float>{}.merge(a, b);
    }
};

void add_other_reductions(const Case& on) {
    add_beside_cub(
        on, "max", [](Rows& rows) { ragged::max(rows.stream, rows.of_rows, rows.batch, &rows.workspace); },
        [](void* temporary, std::size_t& bytes, Rows& rows) {
            return cub::DeviceSegmentedReduce::Max(temporary, bytes, rows.in(), rows.of_rows.data(),
                                                   cub_count(rows.count), rows.offsets(), rows.offsets() + 1,
                                                   rows.stream.get());
        });
    add_beside_cub(
        on, "argmax",
        [](Rows& rows) { ragged::argmax(rows.stream, rows.places, rows.batch, &rows.workspace); },
        [](void* temporary, std::size_t& bytes, Rows& rows) {
            auto* const out = reinterpret_cast<cub::KeyValuePair<int, float>*>(rows.places.data());
            return cub::DeviceSegmentedReduce::ArgMax(temporary, bytes, rows.in(), out, cub_count(rows.count),
                                                      rows.offsets(), rows.offsets() + 1, rows.stream.get());
        });
    // CUB leaves the last step, the logarithm, to another kernel, which is not counted.
    add_beside_cub(
        on, "logsumexp",
        [](Rows& rows) { ragged::logsumexp(rows.stream, rows.of_rows, rows.batch, &rows.workspace); },
        [](void* temporary, std::size_t& bytes, Rows& rows) {
            const auto in = thrust::make_transform_iterator(rows.in(), ToExponentialSum{});
            auto* const out = reinterpret_cast<ExponentialSum*>(rows.places.data());
            return cub::DeviceSegmentedReduce::Reduce(
                temporary, bytes, in, out, cub_count(rows.count), rows.offsets(), rows.offsets() + 1,
                MergeExponentialSums{}, ExponentialSum{-INFINITY, 0.0f}, rows.stream.get());
        });
}

struct Scale {
    __host__ __device__ float operator()(float value) const { return 1.5f * value; }
};
struct Add {
    __host__ __device__ float operator()(float a, float b) const { return a + b; }
};

void add_functions(const Case& on) {
    const auto apply = [](Rows& rows) { ragged::apply(rows.stream, Scale{}, rows.of_values, rows.batch); };
    const auto moved = [](Rows& rows) { return 2 * rows.values() * sizeof(float); };
#if SLUICE_BENCH_CUB_TRANSFORMS
    add_beside_cub(on, "apply", apply, [](void* temporary, std::size_t& bytes, Rows& rows) {
        if (temporary == nullptr) {
            bytes = 1; // it needs none
            return cudaSuccess;
        }
        return cub::DeviceTransform::Transform(rows.in(), rows.of_values.data(), cub_count(rows.values()),
                                               Scale{}, rows.stream.get());
    });
#endif
    add_beside_copy(on, "apply", apply, moved);
    add_beside_copy(
        on, "apply_by_row",
        [](Rows& rows) {
            ragged::apply_by_row(rows.stream, Add{}, rows.of_values, rows.batch, rows.of_rows);
        },
        [moved](Rows& rows) { return moved(rows) + rows.rows() * (offset_bytes + sizeof(float)); });
}

} // namespace

void bench::add_cuda_benchmarks() {
    if (!describe_device())
        return;
    const Case cases[] = {{"short", short_rows, {2, 3, 5}},
                          {"skewed", skewed_rows, {2, 3, 5}},
                          {"sorted", sorted_rows, {2, 3, 5}},
                          {"one", one_row, {1, 2, 3}}};
    for (const Case& on : cases) {
        add_sums(on);
        add_scans(on);
        add_sort(on);
    }
    add_other_reductions(cases[0]);
    add_functions(cases[0]);

    const auto packed = [] { return PackSubject<Cuda>{}; };
    add_timed("cuda/pack:1024/beside_copies", {4, 10, 7}, Cuda::counts(), packed,
              [] { return CopiesBaseline{}; });
    add_timed("cuda/pack:1024/beside_padded", {20, 10, 7}, Cuda::counts(), packed,
              [] { return PaddedBaseline{}; });
}
