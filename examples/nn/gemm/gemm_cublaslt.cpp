#include <nn/gemm/detail/gemm_cublaslt.hpp>

#include <string>

namespace nn::detail {
namespace {

Preference preference_for(const GemmKey& key) {
    cublasLtMatmulPreference_t native = nullptr;
    NN_CUBLAS_CHECK(cublasLtMatmulPreferenceCreate(&native));
    Preference preference{native};
    set(preference, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, gemm_workspace_bytes);
    set(preference, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, key.alignment_b);
    set(preference, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES, key.alignment_a);
    set(preference, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, key.alignment_out);
    set(preference, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES, key.alignment_out);
    // Parts of a sum that is split over k are added up from the workspace, in order, and in float32.
    const std::uint32_t reductions = key.result == CUDA_R_32F ? CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE |
                                                                    CUBLASLT_REDUCTION_SCHEME_OUTPUT_TYPE
                                                              : CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE;
    set(preference, CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK, reductions);
    return preference;
}

/// Appends what cuBLASLt offers of this kind, at most `count`.
void append_lt(std::vector<GemmChoice>& choices, const Handle& handle, const GemmKey& key, GemmChoice kind,
               int count) {
    const LtPlan plan = lt_plan(key, kind);
    const Preference preference = preference_for(key);
    const int looked_at = std::max(count, 8);
    std::vector<cublasLtMatmulHeuristicResult_t> results(static_cast<std::size_t>(looked_at));
    int found = 0;
    const cublasStatus_t status = cublasLtMatmulAlgoGetHeuristic(
        handle.get(), plan.operation.get(), plan.b.get(), plan.a.get(), plan.out.get(), plan.out.get(),
        preference.get(), looked_at, results.data(), &found);
    if (status == CUBLAS_STATUS_NOT_SUPPORTED)
        return;
    NN_CUBLAS_CHECK(status);
    results.resize(static_cast<std::size_t>(found));
    // Blocks that stay for several tiles load while they store. cuBLASLt ranks those of one tile, in several waves, too high.
    const auto stays = [](const auto& result) { return result.wavesCount <= 1.0f; };
    if (key.precision == Precision::tf32 && key.factors == CUDA_R_32F)
        std::stable_partition(results.begin(), results.end(), stays);
    for (const cublasLtMatmulHeuristicResult_t& result : results) {
        if (result.state != CUBLAS_STATUS_SUCCESS || count-- <= 0)
            continue;
        kind.algorithm = result.algo;
        choices.push_back(kind);
    }
}

/// The lengths, as far as the kernel's rules need them.
Tf32Gemm tf32_gemm_of(const GemmKey& key) {
    return {.form = key.transpose_a   ? GemmForm::weight_gradient
                    : key.transpose_b ? GemmForm::data_gradient
                                      : GemmForm::forward,
            .m = static_cast<unsigned>(key.shape.m),
            .n = static_cast<unsigned>(key.shape.n),
            .k = static_cast<unsigned>(key.shape.k)};
}

/// Whether our kernel computes such a product and its epilogue.
bool in_tf32(const GemmKey& key) {
    const bool update = key.transpose_a;
    const bool forward = !key.transpose_a && !key.transpose_b;
    if ((key.accumulate && !update) || (key.epilogue != CUBLASLT_EPILOGUE_DEFAULT && !forward) ||
        (key.relu_output && !key.transpose_b))
        return false;
    constexpr std::size_t greatest = std::size_t{1} << 30;
    const auto& [m, n, k] = key.shape;
    return key.precision == Precision::tf32 && key.factors == CUDA_R_32F && key.result == CUDA_R_32F &&
           key.parts == 1 && !(key.transpose_a && key.transpose_b) && m < greatest && n < greatest &&
           k < greatest && std::min({key.alignment_a, key.alignment_b, key.alignment_out}) >= 16 &&
           key.aligned_auxiliaries && tf32_fits(tf32_gemm_of(key)) && tf32_available();
}

} // namespace

bool groups_updates(const GemmKey& key) { return key.transpose_a && key.device_factors && in_tf32(key); }

LtPlan lt_plan(const GemmKey& key, const GemmChoice& choice) {
    // Row-major `out = a b` is column-major `out^T = b^T a^T`: the operands change places, nothing is moved, and
    // cuBLASLt's bias, one element for each of its rows, is one for each of our columns.
    const auto [m, n, k] = key.shape;
    LtPlan plan;
    const auto layout = [&](cudaDataType_t type, std::size_t rows, std::size_t columns, bool transposed) {
        return make_layout(type, key.parts, transposed ? columns : rows, transposed ? rows : columns);
    };
    plan.a = layout(key.factors, m, k, key.transpose_a);
    plan.b = layout(key.factors, k, n, key.transpose_b);
    plan.out = layout(key.result, m, n, false);
    cublasLtMatmulDesc_t native = nullptr;
    NN_CUBLAS_CHECK(cublasLtMatmulDescCreate(&native, choice.compute, CUDA_R_32F));
    plan.operation = Operation{native};
    set(plan.operation, CUBLASLT_MATMUL_DESC_TRANSA, key.transpose_b ? CUBLAS_OP_T : CUBLAS_OP_N);
    set(plan.operation, CUBLASLT_MATMUL_DESC_TRANSB, key.transpose_a ? CUBLAS_OP_T : CUBLAS_OP_N);
    if (key.device_factors)
        set(plan.operation, CUBLASLT_MATMUL_DESC_POINTER_MODE, CUBLASLT_POINTER_MODE_DEVICE);
    if (choice.fused) {
        set(plan.operation, CUBLASLT_MATMUL_DESC_EPILOGUE, key.epilogue);
        // Any address while an algorithm is looked for; the bias's own before each product.
        const void* const example = &plan;
        set(plan.operation, CUBLASLT_MATMUL_DESC_BIAS_POINTER, example);
    }
    return plan;
}

std::vector<GemmChoice> gemm_choices(const Handle& handle, const GemmKey& key, int count) {
    std::vector<GemmChoice> choices;
    std::vector<Tf32Config> configs;
    bool configs_first = false;
    if (in_tf32(key)) {
        const Tf32Gemm gemm = tf32_gemm_of(key);
        configs = tf32_configs(gemm.form, gemm.m, gemm.n, gemm.k);
        configs_first = tf32_is_faster(gemm.form, gemm.m, gemm.n, gemm.k);
    }
    const auto append_configs = [&] {
        for (const Tf32Config& config : configs) {
            if (static_cast<int>(choices.size()) < count)
                choices.push_back({.config = config});
        }
    };
    if (configs_first)
        append_configs();
    const cublasComputeType_t asked = key.factors != CUDA_R_32F              ? CUBLAS_COMPUTE_32F
                                      : key.precision == Precision::tf32     ? CUBLAS_COMPUTE_32F_FAST_TF32
                                      : key.precision == Precision::bfloat16 ? CUBLAS_COMPUTE_32F_FAST_16BF
                                                                             : CUBLAS_COMPUTE_32F;
    // What cuBLASLt offers first of: as asked; with the bias apart; the same two in full float32.
    const std::size_t others = choices.size();
    for (const cublasComputeType_t compute : {asked, CUBLAS_COMPUTE_32F}) {
        for (const bool fused : {true, false}) {
            const bool nothing_to_fuse = key.epilogue == CUBLASLT_EPILOGUE_DEFAULT;
            if (static_cast<int>(choices.size()) < count && choices.size() == others &&
                !(fused && nothing_to_fuse))
                append_lt(choices, handle, key, {.config = {}, .compute = compute, .fused = fused}, count);
        }
    }
    if (!configs_first)
        append_configs();
    if (choices.empty()) {
        throw sluice::Error(
            "cuBLASLt offers no algorithm for a product of m = " + std::to_string(key.shape.m) +
            ", n = " + std::to_string(key.shape.n) + ", k = " + std::to_string(key.shape.k));
    }
    return choices;
}

} // namespace nn::detail
