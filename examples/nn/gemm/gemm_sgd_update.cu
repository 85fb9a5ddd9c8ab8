#include <nn/gemm/gemm_sgd_update.hpp>

#include <algorithm>
#include <cstdint>

#include <nn/core/ceil_div.hpp>
#include <nn/core/tensor_cores.cuh>
#include <nn/elementwise/for_each.cuh>

namespace nn {
namespace {

constexpr int threads = 256;
constexpr int block_columns = 4 * threads;
constexpr int block_inputs = 128;         // rows of the weights, at most, that a block walks down
constexpr int ring_rows = 16;             // of the weights, that a block has room for
constexpr int rows_ahead = ring_rows - 1; // of these, that a thread has asked for

struct SgdUpdatePlan {
    const float* step_in;
    const float* gradient;
    const float* factors;
    float* weights;
    const float* in;
    float* partial;
    int step_rows;
    int rows;
    int inputs;
    int columns;
};

__device__ inline void add_scaled(float4& sum, float factor, const float4& value) {
    sum.x = fmaf(factor, value.x, sum.x);
    sum.y = fmaf(factor, value.y, sum.y);
    sum.z = fmaf(factor, value.z, sum.z);
    sum.w = fmaf(factor, value.w, sum.w);
}

/// Loads a block's columns of both inputs: for each row of weights those of the step, then those of `in`.
template <int Rows, bool Multiply>
__device__ __forceinline__ void load_inputs(float* shared, const SgdUpdatePlan& plan, int first, int count) {
    constexpr int width = Multiply ? 2 * Rows : Rows;
    for (int i = static_cast<int>(threadIdx.x); i < width * block_inputs; i += threads) {
        const int row = i / block_inputs;
        const int input = i % block_inputs;
        float value = 0.0f;
        if (input < count) {
            if (row < Rows) {
                if (row < plan.step_rows)
                    value = plan.step_in[static_cast<std::size_t>(row) * plan.inputs + first + input];
            } else if (row - Rows < plan.rows) {
                value = plan.in[static_cast<std::size_t>(row - Rows) * plan.inputs + first + input];
            }
        }
        shared[input * width + row] = value;
    }
}

/// A block's columns and rows of the weights are `blockIdx.x` and `blockIdx.y`. Both inputs wait in shared memory, one
/// row of weights after another; each thread keeps its columns' gradients, and sums.
template <int Rows, bool Multiply>
__global__ void __launch_bounds__(threads, Rows > 8 ? 1 : 2) gemm_sgd_update_kernel(SgdUpdatePlan plan) {
    extern __shared__ float4 sgd_memory[];
    constexpr int width = Multiply ? 2 * Rows : Rows; // for a row of weights: of the step, then of `in`
    const int first = static_cast<int>(blockIdx.y) * block_inputs;
    const int count = min(block_inputs, plan.inputs - first);
    const int column = static_cast<int>(blockIdx.x) * block_columns + static_cast<int>(threadIdx.x) * 4;
    const bool inside = column < plan.columns;
    float* const weights = plan.weights + static_cast<std::size_t>(first) * plan.columns + column;

    // A ring of weights, in which each thread has places of its own.
    float4* const ring = sgd_memory + threadIdx.x;
    const auto fetch = [&](int input) {
        if (inside && input < count) {
            detail::copy_16_bytes(detail::shared_address(ring + input % ring_rows * threads),
                                  weights + static_cast<std::size_t>(input) * plan.columns, true);
        }
        detail::commit_copies();
    };
#pragma unroll
    for (int input = 0; input < rows_ahead; ++input)
        fetch(input);

    float4* const inputs = sgd_memory + ring_rows * threads;
    float* const shared = reinterpret_cast<float*>(inputs);
    load_inputs<Rows, Multiply>(shared, plan, first, count);

    float4 gradient[Rows];
    float4 sums[Rows];
#pragma unroll
    for (int row = 0; row < Rows; ++row) {
        gradient[row] = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
        sums[row] = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
        if (inside && row < plan.step_rows)
            gradient[row] = *reinterpret_cast<const float4*>(
                plan.gradient + static_cast<std::size_t>(row) * plan.columns + column);
    }
    const float factor = plan.factors[0];
    __syncthreads();

    for (int input = 0; input < count; ++input) {
        detail::wait_for_copies<rows_ahead - 1>();
        // Goes where the row before was read, of which the barrier says that it has been.
        __syncwarp();
        fetch(input + rows_ahead);
        float4 weight = ring[input % ring_rows * threads];
        const float4* const values = inputs + input * (width / 4);
        float4 moved = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
#pragma unroll
        for (int four = 0; four < Rows / 4; ++four) {
            const float4 of_step = values[four];
            add_scaled(moved, of_step.x, gradient[4 * four]);
            add_scaled(moved, of_step.y, gradient[4 * four + 1]);
            add_scaled(moved, of_step.z, gradient[4 * four + 2]);
            add_scaled(moved, of_step.w, gradient[4 * four + 3]);
        }
        add_scaled(weight, factor, moved);
        if (inside)
            *reinterpret_cast<float4*>(weights + static_cast<std::size_t>(input) * plan.columns) = weight;
        if constexpr (Multiply) {
#pragma unroll
            for (int four = 0; four < Rows / 4; ++four) {
                const float4 of_in = values[Rows / 4 + four];
                add_scaled(sums[4 * four], of_in.x, weight);
                add_scaled(sums[4 * four + 1], of_in.y, weight);
                add_scaled(sums[4 * four + 2], of_in.z, weight);
                add_scaled(sums[4 * four + 3], of_in.w, weight);
            }
        }
    }
    detail::wait_for_copies<0>();
    if constexpr (Multiply) {
#pragma unroll
        for (int row = 0; row < Rows; ++row) {
            const std::size_t place = static_cast<std::size_t>(blockIdx.y) * plan.rows + row;
            if (inside && row < plan.rows)
                *reinterpret_cast<float4*>(plan.partial + place * plan.columns + column) = sums[row];
        }
    }
}

/// Adds up what the blocks of one column found.
struct AddPartialSums {
    const float* partial;
    const float* bias;
    float* out;
    std::size_t parts;
    std::size_t size;    // of the result
    std::size_t columns; // of the result

    __device__ void operator()(std::size_t index) const {
        float sum = 0.0f;
#pragma unroll 8
        for (std::size_t part = 0; part < parts; ++part)
            sum += partial[part * size + index];
        out[index] = detail::greater_of(sum + bias[column_of(index)], 0.0f);
    }
    __device__ std::size_t column_of(std::size_t index) const {
        return index - detail::quotient(index, columns) * columns;
    }
};

bool aligned(const float* address) { return reinterpret_cast<std::uintptr_t>(address) % 16 == 0; }

SgdUpdatePlan checked_plan(const char* what, const PendingStep<sluice::Cuda>& step,
                           const Matrix<float, sluice::Cuda>& weights) {
    const auto name = [what](const char* rest) { return std::string(what) + ": " + rest; };
    const std::size_t rows = step.in.rows();
    if (rows > gemm_sgd_update_rows<sluice::Cuda> || weights.columns() % 4 != 0 ||
        weights.rows() > 1u << 22 || weights.columns() > 1u << 22) [[unlikely]] {
        throw sluice::Error(
            name("") + std::to_string(rows) + " rows and weights of " + std::to_string(weights.rows()) +
            " rows and " + std::to_string(weights.columns()) +
            " columns; expected at most 16 rows, and sides up to 2^22, the columns a multiple of 4");
    }
    if (!aligned(weights.data()) || !aligned(step.gradient.data())) [[unlikely]] {
        throw sluice::Error(
            name("the weights or the gradient begin at an address that is no multiple of 16 bytes"));
    }
    const auto require = [&](const char* rest, std::size_t actual, std::size_t expected) {
        if (actual != expected) [[unlikely]]
            require_size(name(rest).c_str(), actual, expected);
    };
    require("columns of the step", step.in.columns(), weights.rows());
    require("rows of the gradient", step.gradient.rows(), rows);
    require("columns of the gradient", step.gradient.columns(), weights.columns());
    require("factors", step.factors.size(), 2);
    return {step.in.data(),
            step.gradient.data(),
            step.factors.data(),
            weights.data(),
            nullptr,
            nullptr,
            static_cast<int>(rows),
            0,
            static_cast<int>(weights.rows()),
            static_cast<int>(weights.columns())};
}

std::size_t blocks_down(std::size_t inputs) { return ceil_div(inputs, block_inputs); }

template <int Rows, bool Multiply>
void launch(sluice::CudaStreamRef stream, const SgdUpdatePlan& plan) {
    constexpr int bytes = (Multiply ? 2 : 1) * Rows * block_inputs * static_cast<int>(sizeof(float)) +
                          ring_rows * threads * static_cast<int>(sizeof(float4));
    // More than 48 KiB have to be asked for. It is no work of the stream's, and takes no time worth saving.
    SLUICE_CUDA_CHECK(cudaFuncSetAttribute(gemm_sgd_update_kernel<Rows, Multiply>,
                                           cudaFuncAttributeMaxDynamicSharedMemorySize, bytes));
    const dim3 grid(static_cast<unsigned>(ceil_div(plan.columns, block_columns)),
                    static_cast<unsigned>(blocks_down(static_cast<std::size_t>(plan.inputs))));
    gemm_sgd_update_kernel<Rows, Multiply><<<grid, threads, bytes, stream.get()>>>(plan);
    SLUICE_CUDA_CHECK(cudaGetLastError());
}

} // namespace

std::size_t gemm_sgd_update_scratch(std::size_t inputs, std::size_t columns) {
    return blocks_down(inputs) * gemm_sgd_update_rows<sluice::Cuda> * columns;
}

void gemm_sgd_update(sluice::CudaStreamRef stream, const PendingStep<sluice::Cuda>& step,
                     Matrix<float, sluice::Cuda> weights, Matrix<const float, sluice::Cuda> in,
                     sluice::DeviceSpan<const float, sluice::Cuda> bias, Matrix<float, sluice::Cuda> out,
                     sluice::DeviceSpan<float, sluice::Cuda> scratch) {
    SgdUpdatePlan plan = checked_plan("gemm_sgd_update", step, weights);
    if (in.rows() > gemm_sgd_update_rows<sluice::Cuda>) {
        throw sluice::Error("gemm_sgd_update: " + std::to_string(in.rows()) +
                            " rows were given, expected at most 16");
    }
    require_size("gemm_sgd_update: columns of the input", in.columns(), weights.rows());
    require_size("gemm_sgd_update: rows of the result", out.rows(), in.rows());
    require_size("gemm_sgd_update: columns of the result", out.columns(), weights.columns());
    require_size("gemm_sgd_update: elements of the bias", bias.size(), weights.columns());
    require_size("gemm_sgd_update: elements of scratch memory", scratch.size(),
                 gemm_sgd_update_scratch(weights.rows(), weights.columns()));
    if (!aligned(scratch.data())) [[unlikely]]
        throw sluice::Error(
            "gemm_sgd_update: scratch memory begins at an address that is no multiple of 16 bytes");
    plan.in = in.data();
    plan.rows = static_cast<int>(in.rows());
    plan.partial = scratch.data();
    if (std::max(plan.rows, plan.step_rows) <= 8)
        launch<8, true>(stream, plan);
    else
        launch<16, true>(stream, plan);
    detail::for_each(stream, out.size(),
                     AddPartialSums{scratch.data(), bias.data(), out.data(), blocks_down(weights.rows()),
                                    out.size(), out.columns()});
}

void sgd_update(sluice::CudaStreamRef stream, const PendingStep<sluice::Cuda>& step,
                Matrix<float, sluice::Cuda> weights) {
    const SgdUpdatePlan plan = checked_plan("sgd_update", step, weights);
    if (plan.step_rows <= 8)
        launch<8, false>(stream, plan);
    else
        launch<16, false>(stream, plan);
}

} // namespace nn
