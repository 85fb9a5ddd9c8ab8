#include <nn/products.hpp>

#include <cublasLt.h>

#include <algorithm>
#include <bit>
#include <compare>
#include <cstdint>
#include <map>
#include <type_traits>
#include <utility>

#include <nn/operators/elementwise.hpp>
#include <nn/operators/sums.hpp>
#include <sluice/memory/buffer.hpp>

namespace nn {
namespace {

void check_cublas(cublasStatus_t status, const char* call, int line) {
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

Handle make_handle() {
    cublasLtHandle_t native = nullptr;
    NN_CUBLAS_CHECK(cublasLtCreate(&native));
    return Handle{native};
}

/// What cuBLASLt calls our elements.
template <class T>
inline constexpr cudaDataType_t type_of = std::is_same_v<T, Bfloat16> ? CUDA_R_16BF : CUDA_R_32F;

/// A row-major matrix [rows, columns] is, to cuBLASLt, a column-major one [columns, rows]. Several parts follow one
/// another.
Layout make_layout(cudaDataType_t type, std::size_t parts, std::size_t rows, std::size_t columns) {
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
std::uint32_t alignment_of(const void* address) {
    return std::uint32_t{1} << std::min(std::countr_zero(reinterpret_cast<std::uintptr_t>(address)), 8);
}

/// Everything that the choice of an algorithm depends on.
struct Key {
    ProductShape shape;
    std::size_t parts;
    cudaDataType_t factors;
    cudaDataType_t result;
    bool transpose_a;
    bool transpose_b;
    bool accumulate;
    bool device_factors;
    cublasLtEpilogue_t epilogue;
    std::uint32_t alignment_a;
    std::uint32_t alignment_b;
    std::uint32_t alignment_out;

    auto operator<=>(const Key&) const = default;
};

struct Plan {
    Operation operation;
    Layout a;
    Layout b;
    Layout out;
    cublasLtMatmulAlgo_t algorithm{};
    /// Whether cuBLASLt adds the bias; otherwise our own kernel does, afterwards.
    bool fused = false;
};

} // namespace

/// One handle, one workspace, and a plan for each shape seen.
class MatrixProducts<sluice::Cuda>::Plans {
public:
    explicit Plans(Precision precision, Algorithms)
        : precision_(precision), handle_(make_handle()), workspace_(workspace_bytes) {}

    cublasLtHandle_t handle() const { return handle_.get(); }
    void* workspace() { return workspace_.data(); }

    /// The plan for `key`, made when it is asked for first. `bias` serves as an example.
    Plan& plan(const Key& key, const float* bias) {
        const auto found = plans_.find(key);
        if (found != plans_.end())
            return found->second;
        return plans_.emplace(key, make(key, bias)).first->second;
    }

    // What cuBLAS takes by default on Hopper.
    static constexpr std::size_t workspace_bytes = std::size_t{32} << 20;

private:
    /// The first that cuBLASLt offers of: as asked; with the bias apart; the same two in full float32.
    Plan make(const Key& key, const float* bias) const {
        Key apart = key;
        apart.epilogue = CUBLASLT_EPILOGUE_DEFAULT;
        const cublasComputeType_t asked = key.factors != CUDA_R_32F           ? CUBLAS_COMPUTE_32F
                                          : precision_ == Precision::tf32     ? CUBLAS_COMPUTE_32F_FAST_TF32
                                          : precision_ == Precision::bfloat16 ? CUBLAS_COMPUTE_32F_FAST_16BF
                                                                              : CUBLAS_COMPUTE_32F;
        for (const cublasComputeType_t compute : {asked, CUBLAS_COMPUTE_32F}) {
            for (const Key& choice : {key, apart}) {
                Plan plan = describe(choice, compute, bias);
                plan.fused = choice.epilogue != CUBLASLT_EPILOGUE_DEFAULT;
                if (choose_algorithm(choice, plan))
                    return plan;
            }
        }
        throw sluice::Error(
            "cuBLASLt offers no algorithm for a product of m = " + std::to_string(key.shape.m) +
            ", n = " + std::to_string(key.shape.n) + ", k = " + std::to_string(key.shape.k));
    }

    /// Row-major `out = a b` is column-major `out^T = b^T a^T`: the operands change places, nothing is moved, and
    /// cuBLASLt's bias, one element for each of its rows, is one for each of our columns.
    static Plan describe(const Key& key, cublasComputeType_t compute, const float* bias) {
        const auto [m, n, k] = key.shape;
        Plan plan;
        const auto layout = [&](cudaDataType_t type, std::size_t rows, std::size_t columns, bool transposed) {
            return make_layout(type, key.parts, transposed ? columns : rows, transposed ? rows : columns);
        };
        plan.a = layout(key.factors, m, k, key.transpose_a);
        plan.b = layout(key.factors, k, n, key.transpose_b);
        plan.out = layout(key.result, m, n, false);
        cublasLtMatmulDesc_t native = nullptr;
        NN_CUBLAS_CHECK(cublasLtMatmulDescCreate(&native, compute, CUDA_R_32F));
        plan.operation = Operation{native};
        set(plan.operation, CUBLASLT_MATMUL_DESC_TRANSA, key.transpose_b ? CUBLAS_OP_T : CUBLAS_OP_N);
        set(plan.operation, CUBLASLT_MATMUL_DESC_TRANSB, key.transpose_a ? CUBLAS_OP_T : CUBLAS_OP_N);
        set(plan.operation, CUBLASLT_MATMUL_DESC_EPILOGUE, key.epilogue);
        if (key.device_factors)
            set(plan.operation, CUBLASLT_MATMUL_DESC_POINTER_MODE, CUBLASLT_POINTER_MODE_DEVICE);
        if (key.epilogue != CUBLASLT_EPILOGUE_DEFAULT) {
            set(plan.operation, CUBLASLT_MATMUL_DESC_BIAS_POINTER, bias);
        }
        return plan;
    }

    bool choose_algorithm(const Key& key, Plan& plan) const {
        cublasLtMatmulPreference_t native = nullptr;
        NN_CUBLAS_CHECK(cublasLtMatmulPreferenceCreate(&native));
        const Preference preference{native};
        set(preference, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, workspace_bytes);
        set(preference, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, key.alignment_b);
        set(preference, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES, key.alignment_a);
        set(preference, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, key.alignment_out);
        set(preference, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES, key.alignment_out);
        // Parts of a sum that is split over k are added up from the workspace, in order, and in float32.
        const std::uint32_t reductions = key.result == CUDA_R_32F ? CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE |
                                                                        CUBLASLT_REDUCTION_SCHEME_OUTPUT_TYPE
                                                                  : CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE;
        set(preference, CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK, reductions);

        cublasLtMatmulHeuristicResult_t result{};
        int count = 0;
        const cublasStatus_t status = cublasLtMatmulAlgoGetHeuristic(
            handle_.get(), plan.operation.get(), plan.b.get(), plan.a.get(), plan.out.get(), plan.out.get(),
            preference.get(), 1, &result, &count);
        if (status == CUBLAS_STATUS_NOT_SUPPORTED)
            return false;
        NN_CUBLAS_CHECK(status);
        if (count == 0 || result.state != CUBLAS_STATUS_SUCCESS)
            return false;
        plan.algorithm = result.algo;
        return true;
    }

    Precision precision_;
    Handle handle_;
    sluice::DeviceBuffer<unsigned char, sluice::Cuda> workspace_;
    std::map<Key, Plan> plans_;
};

MatrixProducts<sluice::Cuda>::MatrixProducts(Precision precision, Algorithms algorithms)
    : plans_(std::make_unique<Plans>(precision, algorithms)) {}
MatrixProducts<sluice::Cuda>::MatrixProducts(MatrixProducts&&) noexcept = default;
MatrixProducts<sluice::Cuda>& MatrixProducts<sluice::Cuda>::operator=(MatrixProducts&&) noexcept = default;
MatrixProducts<sluice::Cuda>::~MatrixProducts() = default;

template <class T, class Out>
void MatrixProducts<sluice::Cuda>::multiply_any(sluice::CudaStreamRef stream,
                                                const Matrix<const T, sluice::Cuda>& a,
                                                const Matrix<const T, sluice::Cuda>& b,
                                                const Matrix<Out, sluice::Cuda>& out,
                                                const ProductOptions<sluice::Cuda>& options) {
    const ProductShape shape = checked_shape(a, b, out, options);
    const float* const bias = options.bias.data();
    // A bias of float32 goes with a result of float32 only.
    const bool fusible = bias != nullptr && std::is_same_v<Out, float>;
    const cublasLtEpilogue_t epilogue = !fusible       ? CUBLASLT_EPILOGUE_DEFAULT
                                        : options.relu ? CUBLASLT_EPILOGUE_RELU_BIAS
                                                       : CUBLASLT_EPILOGUE_BIAS;
    const bool on_device = !options.device_factors.empty();
    const float* const alpha = on_device ? options.device_factors.data() : &options.alpha;
    const float* const beta = on_device ? options.device_factors.data() + 1 : &options.beta;
    const Key key{.shape = shape,
                  .parts = options.parts,
                  .factors = type_of<T>,
                  .result = type_of<Out>,
                  .transpose_a = options.transpose_a,
                  .transpose_b = options.transpose_b,
                  .accumulate = on_device || options.beta != 0.0f,
                  .device_factors = on_device,
                  .epilogue = epilogue,
                  .alignment_a = alignment_of(a.data()),
                  .alignment_b = alignment_of(b.data()),
                  .alignment_out = alignment_of(out.data())};
    Plan& plan = plans_->plan(key, bias);
    if (plan.fused)
        set(plan.operation, CUBLASLT_MATMUL_DESC_BIAS_POINTER, bias);
    NN_CUBLAS_CHECK(cublasLtMatmul(plans_->handle(), plan.operation.get(), alpha, b.data(), plan.b.get(),
                                   a.data(), plan.a.get(), beta, out.data(), plan.out.get(), out.data(),
                                   plan.out.get(), &plan.algorithm, plans_->workspace(),
                                   Plans::workspace_bytes, stream.native()));
    if (bias != nullptr && !plan.fused)
        add_bias(stream, out, options.bias, options.relu);
    if constexpr (std::is_same_v<T, float> && std::is_same_v<Out, float>) {
        if (!options.relu_output.empty())
            relu_gradient(stream, options.relu_output, out.span());
        if (const auto& step = options.bias_step; !step.bias.empty())
            update_bias(stream, b.with_columns(step.outputs), step.bias, options.device_factors,
                        step.scratch);
    }
}

void MatrixProducts<sluice::Cuda>::multiply(sluice::CudaStreamRef stream, Matrix<const float, sluice::Cuda> a,
                                            Matrix<const float, sluice::Cuda> b,
                                            Matrix<float, sluice::Cuda> out,
                                            const ProductOptions<sluice::Cuda>& options) {
    multiply_any<float, float>(stream, a, b, out, options);
}
void MatrixProducts<sluice::Cuda>::multiply(sluice::CudaStreamRef stream,
                                            Matrix<const Bfloat16, sluice::Cuda> a,
                                            Matrix<const Bfloat16, sluice::Cuda> b,
                                            Matrix<float, sluice::Cuda> out,
                                            const ProductOptions<sluice::Cuda>& options) {
    multiply_any<Bfloat16, float>(stream, a, b, out, options);
}
void MatrixProducts<sluice::Cuda>::multiply(sluice::CudaStreamRef stream,
                                            Matrix<const Bfloat16, sluice::Cuda> a,
                                            Matrix<const Bfloat16, sluice::Cuda> b,
                                            Matrix<Bfloat16, sluice::Cuda> out,
                                            const ProductOptions<sluice::Cuda>& options) {
    multiply_any<Bfloat16, Bfloat16>(stream, a, b, out, options);
}

} // namespace nn
