/// \file
/// What the Cuda backend's products are made of: cuBLASLt's descriptors with an owner, and how a product is chosen to be
/// computed.
#pragma once

#include <cublasLt.h>

#include <algorithm>
#include <bit>
#include <compare>
#include <cstdint>
#include <optional>
#include <type_traits>
#include <utility>
#include <vector>

#include <nn/gemm/detail/gemm_tf32.hpp>
#include <nn/gemm/gemm.hpp>

namespace nn::detail {

inline void check_cublas(cublasStatus_t status, const char* call, int line) {
    if (status != CUBLAS_STATUS_SUCCESS) [[unlikely]] {
        throw sluice::Error(call, cublasLtGetStatusName(status), cublasLtGetStatusString(status), __FILE__,
                            line);
    }
}
#define NN_CUBLAS_CHECK(...) check_cublas((__VA_ARGS__), #__VA_ARGS__, __LINE__)

/// Owns one of cuBLASLt's descriptors.
template <class Native, cublasStatus_t (*Destroy)(Native)>
class Descriptor {
public:
    explicit Descriptor(Native native = nullptr) noexcept : native_(native) {}
    Descriptor(Descriptor&& other) noexcept : native_(std::exchange(other.native_, nullptr)) {}
    Descriptor& operator=(Descriptor&& other) noexcept {
        std::swap(native_, other.native_);
        return *this;
    }
    ~Descriptor() {
        if (native_ != nullptr)
            (void)Destroy(native_);
    }
    Native get() const noexcept { return native_; }

private:
    Native native_;
};
using Handle = Descriptor<cublasLtHandle_t, cublasLtDestroy>;
using Operation = Descriptor<cublasLtMatmulDesc_t, cublasLtMatmulDescDestroy>;
using Layout = Descriptor<cublasLtMatrixLayout_t, cublasLtMatrixLayoutDestroy>;
using Preference = Descriptor<cublasLtMatmulPreference_t, cublasLtMatmulPreferenceDestroy>;

inline Handle make_handle() {
    cublasLtHandle_t native = nullptr;
    NN_CUBLAS_CHECK(cublasLtCreate(&native));
    return Handle{native};
}

/// What cuBLASLt calls our elements.
template <class T>
inline constexpr cudaDataType_t type_of = std::is_same_v<T, Bfloat16> ? CUDA_R_16BF : CUDA_R_32F;

/// A row-major matrix [rows, columns] is, to cuBLASLt, a column-major one [columns, rows]. Several parts follow one
/// another.
inline Layout make_layout(cudaDataType_t type, std::size_t parts, std::size_t rows, std::size_t columns) {
    cublasLtMatrixLayout_t native = nullptr;
    NN_CUBLAS_CHECK(
        cublasLtMatrixLayoutCreate(&native, type, columns, rows, static_cast<std::int64_t>(columns)));
    Layout layout{native};
    if (parts > 1) {
        const auto count = static_cast<std::int32_t>(parts);
        const auto stride = static_cast<std::int64_t>(rows * columns);
        NN_CUBLAS_CHECK(cublasLtMatrixLayoutSetAttribute(native, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, &count,
                                                         sizeof(count)));
        NN_CUBLAS_CHECK(cublasLtMatrixLayoutSetAttribute(native, CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET,
                                                         &stride, sizeof(stride)));
    }
    return layout;
}

template <class T>
void set(const Operation& operation, cublasLtMatmulDescAttributes_t attribute, const T& value) {
    NN_CUBLAS_CHECK(cublasLtMatmulDescSetAttribute(operation.get(), attribute, &value, sizeof(value)));
}

template <class T>
void set(const Preference& preference, cublasLtMatmulPreferenceAttributes_t attribute, const T& value) {
    NN_CUBLAS_CHECK(cublasLtMatmulPreferenceSetAttribute(preference.get(), attribute, &value, sizeof(value)));
}

/// The greatest power of two up to 256 that divides an address: what an algorithm may assume of it.
inline std::uint32_t alignment_of(const void* address) {
    return std::uint32_t{1} << std::min(std::countr_zero(reinterpret_cast<std::uintptr_t>(address)), 8);
}

/// Everything that the choice of an algorithm depends on.
struct GemmKey {
    Precision precision;
    GemmShape shape;
    std::size_t parts;
    cudaDataType_t factors;
    cudaDataType_t result;
    bool transpose_a;
    bool transpose_b;
    bool accumulate;
    bool device_factors;
    cublasLtEpilogue_t epilogue;
    bool relu_output;
    std::size_t step_outputs;
    std::uint32_t alignment_a;
    std::uint32_t alignment_b;
    std::uint32_t alignment_out;
    bool aligned_auxiliaries; ///< Whether the bias and the ReLU's output begin at multiples of 16 bytes.

    auto operator<=>(const GemmKey&) const = default;
};

/// The bias that a product's own kernel may add, which has the type of the result: null where there is none.
template <class Out>
const void* fused_bias(const Epilogue<sluice::Cuda>& epilogue) {
    if constexpr (std::is_same_v<Out, float>)
        return epilogue.bias.data();
    else
        return epilogue.rounded_bias.data();
}

/// What the choice of an algorithm depends on. Throws `sluice::Error` when the shapes do not fit.
template <class T, class Out>
GemmKey key_of(Precision precision, const Matrix<const T, sluice::Cuda>& a,
               const Matrix<const T, sluice::Cuda>& b, const Matrix<Out, sluice::Cuda>& out,
               const Epilogue<sluice::Cuda>& epilogue) {
    const GemmShape shape = checked_shape(a, b, out, epilogue);
    const bool fusible = fused_bias<Out>(epilogue) != nullptr;
    return {.precision = precision,
            .shape = shape,
            .parts = epilogue.parts,
            .factors = type_of<T>,
            .result = type_of<Out>,
            .transpose_a = epilogue.transpose_a,
            .transpose_b = epilogue.transpose_b,
            .accumulate = !epilogue.device_factors.empty() || epilogue.beta != 0.0f,
            .device_factors = !epilogue.device_factors.empty(),
            .epilogue = !fusible        ? CUBLASLT_EPILOGUE_DEFAULT
                        : epilogue.relu ? CUBLASLT_EPILOGUE_RELU_BIAS
                                        : CUBLASLT_EPILOGUE_BIAS,
            .relu_output = !epilogue.relu_output.empty(),
            .step_outputs = epilogue.bias_step.bias.empty() ? 0 : epilogue.bias_step.outputs,
            .alignment_a = alignment_of(a.data()),
            .alignment_b = alignment_of(b.data()),
            .alignment_out = alignment_of(out.data()),
            .aligned_auxiliaries =
                alignment_of(epilogue.bias.data()) >= 16 && alignment_of(epilogue.relu_output.data()) >= 16};
}

/// How a product is computed.
struct GemmChoice {
    /// By our own kernel, cut up like this; otherwise by cuBLASLt:
    std::optional<Tf32Config> config;
    cublasComputeType_t compute = CUBLAS_COMPUTE_32F;
    cublasLtMatmulAlgo_t algorithm{};
    /// Whether the epilogue that the key names is part of that; otherwise a kernel of ours follows.
    bool fused = false;
};

/// The ways to compute a product, as far as `handle`'s device has them, the best by rule first; at most about `count`.
/// The sums of each are in the same order in every run. Throws `sluice::Error` when there is none.
std::vector<GemmChoice> gemm_choices(const Handle& handle, const GemmKey& key, int count);

/// Whether a product is an update that our kernel for several together takes, by rule.
bool groups_updates(const GemmKey& key);

/// A product ready for cuBLASLt.
struct LtPlan {
    Operation operation;
    Layout a;
    Layout b;
    Layout out;
};
LtPlan lt_plan(const GemmKey& key, const GemmChoice& choice);

inline constexpr std::size_t gemm_workspace_bytes = std::size_t{32} << 20; // cuBLAS's own default on Hopper

} // namespace nn::detail
