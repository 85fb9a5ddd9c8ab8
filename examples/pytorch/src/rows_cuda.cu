// Row operations on a GPU. Sums and maxima of few values are one kernel, which looks at each row's offsets itself. Others are
// sluice's kernels, before which a first one looks at the offsets and writes the counts that those read.
#include <limits>

#include <sluice/ragged/rows.cuh>

#include "rows_kernels.hpp"

namespace sluice_torch {
namespace {

namespace kernels = sluice::ragged::detail;

constexpr int threads = 256;
constexpr int looking_threads = 1024;

/// What the results of a row that makes no sense become.
template <class T>
inline constexpr T invalid_of = std::numeric_limits<T>::has_quiet_NaN ? std::numeric_limits<T>::quiet_NaN()
                                                                      : T(0);

/// Results of an operation, one a row or one a value.
template <class T>
struct Results {
    T* values;
    std::int64_t* positions; ///< may be null
    std::int64_t count;
    bool by_row;
    T invalid; ///< what all become where the offsets make no sense
};

/// Counts, and those results that the operation does not write.
template <class T>
__global__ void __launch_bounds__(looking_threads)
    prepare_kernel(const RowsIn<T> rows, sluice::RaggedCounts* counts, const Results<T> results) {
    bool wrong = false;
    for (std::int64_t row = threadIdx.x; row < rows.rows; row += looking_threads)
        wrong = wrong || !rows.range(row).valid;
    wrong = __syncthreads_or(wrong) != 0;
    const std::int64_t end = wrong || rows.rows == 0 ? 0 : rows.offsets[rows.rows];
    if (threadIdx.x == 0)
        *counts = wrong ? sluice::RaggedCounts{0, 0, 0, 0} : sluice::RaggedCounts{rows.rows, end, end, 0};
    const std::int64_t written = wrong ? 0 : (results.by_row ? results.count : end);
    for (std::int64_t i = written + threadIdx.x; i < results.count; i += looking_threads) {
        results.values[i] = wrong ? results.invalid : T(0);
        if (results.positions != nullptr)
            results.positions[i] = wrong && results.by_row ? -1 : 0;
    }
}

template <class T>
void prepare(sluice::CudaStreamRef stream, const RowsIn<T>& rows, sluice::RaggedCounts* counts, T* values,
             std::int64_t* positions, bool by_row) {
    prepare_kernel<T><<<1, looking_threads, 0, stream.get()>>>(
        rows, counts, Results<T>{values, positions, by_row ? rows.rows : rows.size, by_row, invalid_of<T>});
    SLUICE_CUDA_CHECK(cudaGetLastError());
}

template <class T>
sluice::DeviceSpan<T, sluice::Cuda> span_of(T* data, std::int64_t size) {
    return {data, static_cast<std::size_t>(size)};
}

/// Rows of more values than this are a whole block's.
constexpr std::int64_t longest_of_lanes = 2048;

/// What thread `lane` of `lanes` makes of a row's values.
template <class Op, class T>
__device__ typename Op::Accumulator reduce_part(const Op& op, const T* values, std::int64_t length, int lane,
                                                int lanes) {
    constexpr int batch = 8; // loads that are on their way at once
    typename Op::Accumulator accumulator = op.init();
    for (std::int64_t base = lane; base < length; base += std::int64_t{batch} * lanes) {
        T held[batch];
#pragma unroll
        for (int k = 0; k < batch; ++k) {
            if (base + k * lanes < length)
                held[k] = values[base + k * lanes];
        }
#pragma unroll
        for (int k = 0; k < batch; ++k) {
            if (base + k * lanes < length)
                accumulator = op.take(accumulator, held[k], base + k * lanes);
        }
    }
    return accumulator;
}

/// `Lanes` lanes take a row, and hand what they make of it to `put`. Long rows are left to the block, one after the other.
template <int Lanes, class Op, class T, class Put>
__global__ void __launch_bounds__(threads) reduce_kernel(const Op op, const RowsIn<T> rows, const Put put) {
    static_assert(threads == kernels::block_threads);
    constexpr int groups = threads / Lanes;
    __shared__ typename Op::Accumulator partials[kernels::block_warps];
    const std::int64_t first = std::int64_t{blockIdx.x} * groups;
    const std::int64_t row = first + threadIdx.x / Lanes;
    const int lane = static_cast<int>(threadIdx.x % Lanes);
    RowRange range;
    if (row < rows.rows)
        range = rows.range(row);
    const bool is_long = range.length > longest_of_lanes;
    const auto of_row = kernels::merge_lanes<Lanes>(
        op, reduce_part(op, rows.values + range.begin, is_long ? 0 : range.length, lane, Lanes));
    if (lane == 0 && row < rows.rows && !is_long)
        put(row, range.valid, of_row);
    if (__syncthreads_or(is_long) == 0)
        return;
    for (std::int64_t next = first; next < first + groups && next < rows.rows;
         ++next) { // the same for all threads
        const RowRange of_next = rows.range(next);
        if (of_next.length <= longest_of_lanes)
            continue;
        const auto of_block =
            kernels::merge_block(op,
                                 reduce_part(op, rows.values + of_next.begin, of_next.length,
                                             static_cast<int>(threadIdx.x), threads),
                                 partials);
        if (threadIdx.x == 0)
            put(next, true, of_block);
        __syncthreads(); // all threads have read the partial results
    }
}

template <class T>
struct PutSum {
    T* out;

    __device__ void operator()(std::int64_t row, bool valid, T sum) const {
        constexpr T invalid = invalid_of<T>;
        out[row] = valid ? sum : invalid;
    }
};

template <class T>
struct PutMax {
    T* out;
    std::int64_t* positions;

    __device__ void operator()(std::int64_t row, bool valid, const kernels::IndexedValue<T>& best) const {
        constexpr T invalid = invalid_of<T>;
        const T found = best.position < 0 ? kernels::least<T>() : best.value;
        out[row] = valid ? found : invalid;
        positions[row] = valid ? best.position : -1;
    }
};

template <class Op, class T, class Put>
void reduce(sluice::CudaStreamRef stream, const Op& op, const RowsIn<T>& rows, const Put& put) {
    if (rows.rows == 0)
        return;
    const bool few = rows.size < 16 * rows.rows;
    const std::int64_t groups = threads / (few ? 8 : 32);
    const auto blocks = static_cast<unsigned>((rows.rows + groups - 1) / groups);
    if (few) {
        reduce_kernel<8><<<blocks, threads, 0, stream.get()>>>(op, rows, put);
    } else {
        reduce_kernel<32><<<blocks, threads, 0, stream.get()>>>(op, rows, put);
    }
    SLUICE_CUDA_CHECK(cudaGetLastError());
}

template <int Lanes, class Body, class T>
__global__ void __launch_bounds__(threads) map_kernel(const Body body, const RowsIn<T> rows) {
    const std::int64_t thread = static_cast<std::int64_t>(blockIdx.x) * threads + threadIdx.x;
    const std::int64_t row = thread / Lanes;
    if (row <= rows.rows)
        map_row(body, rows, row, static_cast<int>(thread % Lanes), Lanes);
}

template <class T, bool Positions>
void sort_rows(sluice::CudaStreamRef stream, const kernels::SortArguments<T>& sort, std::byte* memory,
               std::size_t bytes) {
    const std::int64_t values = sort.rows.value_capacity();
    constexpr std::int64_t chunk = kernels::sort_capacity<T>;
    kernels::LongRows<T> more;
    if (values > chunk) {
        sluice::RaggedScratch<sluice::Cuda> scratch(memory, bytes);
        more.list = kernels::long_parts<T>(stream, scratch, values, chunk, values);
        if constexpr (Positions)
            more.positions = scratch.template take<std::int64_t>(values);
    }
    const unsigned blocks = kernels::blocks_for_rows(sort.rows);
    kernels::launch(kernels::sort_tiles_kernel<Positions, T>, blocks, kernels::block_threads, stream.get(),
                    sort, more);
    if (values <= chunk)
        return;
    const auto long_blocks =
        static_cast<unsigned>(kernels::smaller(blocks, kernels::most_long_parts(values, chunk)));
    kernels::launch(kernels::sort_chunks_kernel<Positions, T>, long_blocks, kernels::block_threads,
                    stream.get(), sort, more);
    for (int pass = 0; pass < kernels::merge_passes<T>(values); ++pass) {
        kernels::launch(kernels::merge_chunks_kernel<Positions, T>, long_blocks, kernels::block_threads,
                        stream.get(), sort, more, pass);
    }
}

} // namespace

template <class T>
void launch_row_sum(sluice::CudaStreamRef stream, const RowsIn<T>& rows, sluice::RaggedCounts* counts,
                    T* out) {
    if (counts == nullptr)
        return reduce(stream, kernels::SumOf<T, T>{}, rows, PutSum<T>{out});
    prepare<T>(stream, rows, counts, out, nullptr, true);
    sluice::ragged::sum(stream, span_of(out, rows.rows), rows.view(counts));
}

template <class T>
void launch_row_max(sluice::CudaStreamRef stream, const RowsIn<T>& rows, sluice::RaggedCounts* counts, T* out,
                    std::int64_t* positions) {
    if (counts == nullptr)
        return reduce(stream, kernels::ArgmaxOf<T>{}, rows, PutMax<T>{out, positions});
    prepare(stream, rows, counts, out, positions, true);
    (sluice::ragged::max)(stream, span_of(out, rows.rows), rows.view(counts));
    sluice::ragged::argmax(stream, span_of(positions, rows.rows), rows.view(counts));
}

template <class T>
void launch_row_softmax(sluice::CudaStreamRef stream, const RowsIn<T>& rows, sluice::RaggedCounts* counts,
                        T* out) {
    prepare<T>(stream, rows, counts, out, nullptr, false);
    sluice::ragged::softmax(stream, span_of(out, rows.size), rows.view(counts));
}

template <class T>
std::size_t row_sort_bytes(const RowsIn<T>& rows) {
    if (rows.size <= kernels::sort_capacity<T>)
        return 0;
    const sluice::RaggedCapacity capacity{rows.rows, rows.size};
    return sluice::RaggedWorkspace<sluice::Cuda>::bytes_for(capacity, sizeof(T) + 9);
}

template <class T>
void launch_row_sort(sluice::CudaStreamRef stream, const RowsIn<T>& rows, sluice::RaggedCounts* counts,
                     T* out, std::int64_t* positions, bool descending, std::byte* memory, std::size_t bytes) {
    prepare(stream, rows, counts, out, positions, false);
    if (rows.rows > 0 && rows.size > 0) {
        const kernels::SortArguments<T> sort{out, positions, rows.view(counts),
                                             kernels::SortKey<T>{descending}};
        sort_rows<T, true>(stream, sort, memory, bytes);
    }
}

template <class Body, class T>
void launch_row_map(sluice::CudaStreamRef stream, const RowsIn<T>& rows, const Body& body) {
    const bool few = rows.size < 16 * rows.rows;
    const std::int64_t lanes = few ? 8 : 32;
    const auto blocks = static_cast<unsigned>(((rows.rows + 1) * lanes + threads - 1) / threads);
    if (few) {
        map_kernel<8><<<blocks, threads, 0, stream.get()>>>(body, rows);
    } else {
        map_kernel<32><<<blocks, threads, 0, stream.get()>>>(body, rows);
    }
    SLUICE_CUDA_CHECK(cudaGetLastError());
}

#define SLUICE_TORCH_MAPS(T)                                                                                 \
    template void launch_row_map(sluice::CudaStreamRef, const RowsIn<T>&, const ExpandRows<T>&);             \
    template void launch_row_map(sluice::CudaStreamRef, const RowsIn<T>&, const UnsortRows<T>&);             \
    template void launch_row_map(sluice::CudaStreamRef, const RowsIn<T>&, const PlaceInRows<T>&);
#define SLUICE_TORCH_ROWS(T)                                                                                 \
    template void launch_row_sum(sluice::CudaStreamRef, const RowsIn<T>&, sluice::RaggedCounts*, T*);        \
    template void launch_row_max(sluice::CudaStreamRef, const RowsIn<T>&, sluice::RaggedCounts*, T*,         \
                                 std::int64_t*);                                                             \
    template std::size_t row_sort_bytes(const RowsIn<T>&);                                                   \
    template void launch_row_sort(sluice::CudaStreamRef, const RowsIn<T>&, sluice::RaggedCounts*, T*,        \
                                  std::int64_t*, bool, std::byte*, std::size_t);                             \
    SLUICE_TORCH_MAPS(T)
SLUICE_TORCH_ROWS(float)
SLUICE_TORCH_ROWS(double)
SLUICE_TORCH_ROWS(std::int32_t)
SLUICE_TORCH_ROWS(std::int64_t)
template void launch_row_softmax(sluice::CudaStreamRef, const RowsIn<float>&, sluice::RaggedCounts*, float*);
template void launch_row_softmax(sluice::CudaStreamRef, const RowsIn<double>&, sluice::RaggedCounts*,
                                 double*);

} // namespace sluice_torch
