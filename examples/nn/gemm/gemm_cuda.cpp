#include <nn/gemm/gemm.hpp>

#include <array>
#include <map>
#include <mutex>
#include <utility>

#include <nn/core/device.hpp>
#include <nn/elementwise/elementwise.hpp>
#include <nn/elementwise/sums.hpp>
#include <nn/gemm/detail/gemm_autotune.hpp>
#include <sluice/memory/buffer.hpp>

namespace nn {
namespace {

using namespace detail;
using Cuda = sluice::Cuda;
using StreamRef = sluice::CudaStreamRef;
template <class T>
using Buffer = sluice::DeviceBuffer<T, Cuda>;

/// A product as our kernels take it.
Tf32Gemm tf32_gemm_of(const Matrix<const float, Cuda>& a, const Matrix<const float, Cuda>& b,
                      const Matrix<float, Cuda>& out, const Epilogue<Cuda>& epilogue) {
    const auto length = [](std::size_t value) { return static_cast<unsigned>(value); };
    return {.form = epilogue.transpose_a   ? GemmForm::weight_gradient
                    : epilogue.transpose_b ? GemmForm::data_gradient
                                           : GemmForm::forward,
            .m = length(out.rows()),
            .n = length(out.columns()),
            .k = length(epilogue.transpose_a ? a.rows() : a.columns()),
            .a = a.data(),
            .b = b.data(),
            .out = out.data(),
            .bias = epilogue.bias.data(),
            .relu_output = epilogue.relu_output.data(),
            .alpha = epilogue.alpha,
            .beta = epilogue.beta,
            .device_factors = epilogue.device_factors.data(),
            .step_bias = epilogue.bias_step.bias.data(),
            .step_size = length(epilogue.bias_step.bias.size()),
            .step_outputs = length(epilogue.bias_step.outputs),
            .prefetch_b = epilogue.prefetch_b,
            .relu = epilogue.relu};
}

} // namespace

/// One handle, one workspace, and a plan for each shape seen.
class Gemm<sluice::Cuda>::Plans {
public:
    Plans(Precision precision, Algorithms algorithms)
        : precision_(precision), algorithms_(algorithms), handle_(make_handle()),
          workspace_(gemm_workspace_bytes), tickets_(Tf32Workspace::tickets_count) {
        SLUICE_CUDA_CHECK(cudaGetDevice(&device_));
        on_own_stream<Cuda>([&](StreamRef stream) { sluice::fill_bytes(stream, tickets_, 0); });
    }

    Precision precision() const { return precision_; }

    /// The plan for `key`, made when it is asked for first. `try_out(use)` calls `use(run)` with what runs a plan on
    /// memory of its own.
    template <class TryOut>
    GemmPlan& plan(const GemmKey& key, StreamRef stream, const TryOut& try_out) {
        const auto found = plans_.find(key);
        if (found != plans_.end())
            return found->second;
        const GemmChoice choice = algorithms_ == Algorithms::heuristic ? gemm_choices(handle_, key, 1).front()
                                                                       : measured(key, stream, try_out);
        return plans_.emplace(key, GemmPlan{choice, lt_plan(key, choice)}).first->second;
    }

    /// Enqueues a product as planned, with its epilogue.
    template <class T, class Out>
    void run(StreamRef stream, GemmPlan& plan, const Matrix<const T, Cuda>& a, const Matrix<const T, Cuda>& b,
             const Matrix<Out, Cuda>& out, const Epilogue<Cuda>& epilogue) {
        if constexpr (std::is_same_v<T, float> && std::is_same_v<Out, float>) {
            if (plan.choice.config) {
                multiply_tf32(stream, tf32_gemm_of(a, b, out, epilogue), *plan.choice.config, workspace());
                return;
            }
        }
        const bool on_device = !epilogue.device_factors.empty();
        const float* const alpha = on_device ? epilogue.device_factors.data() : &epilogue.alpha;
        const float* const beta = on_device ? epilogue.device_factors.data() + 1 : &epilogue.beta;
        if (plan.choice.fused)
            set(plan.lt.operation, CUBLASLT_MATMUL_DESC_BIAS_POINTER, fused_bias<Out>(epilogue));
        NN_CUBLAS_CHECK(cublasLtMatmul(
            handle_.get(), plan.lt.operation.get(), alpha, b.data(), plan.lt.b.get(), a.data(),
            plan.lt.a.get(), beta, out.data(), plan.lt.out.get(), out.data(), plan.lt.out.get(),
            &plan.choice.algorithm, workspace_.data(), gemm_workspace_bytes, stream.get()));
        if (!epilogue.bias.empty() && !plan.choice.fused)
            add_bias(stream, out, epilogue.bias, epilogue.relu);
        if constexpr (std::is_same_v<T, float> && std::is_same_v<Out, float>) {
            if (!epilogue.relu_output.empty())
                relu_gradient(stream, epilogue.relu_output, out.span());
            if (const auto& step = epilogue.bias_step; !step.bias.empty())
                update_bias(stream, b.with_columns(step.outputs), step.bias, epilogue.device_factors,
                            step.scratch);
        }
    }

    Tf32Workspace workspace() {
        return {.partial_sums = reinterpret_cast<float*>(workspace_.data()),
                .partial_sums_count = gemm_workspace_bytes / sizeof(float),
                .tickets = tickets_.data()};
    }

    /// Whether an update is for our kernel, together with others.
    bool can_group(const WeightUpdate<Cuda>& update, sluice::DeviceSpan<const float, Cuda> factors) {
        const GemmKey key =
            key_of(precision_, update.in, update.gradient, update.weights, update.epilogue(factors));
        const auto found = groups_with_others_.find(key);
        return found != groups_with_others_.end()
                   ? found->second
                   : groups_with_others_.emplace(key, groups_updates(key)).first->second;
    }

private:
    /// The algorithm that the process has tuned, or tunes now. In a capture, where nothing can be timed, the choice by rule,
    /// which the process then keeps.
    template <class TryOut>
    GemmChoice measured(const GemmKey& key, StreamRef stream, const TryOut& try_out) {
        AutotunedChoices& shared = AutotunedChoices::instance();
        const std::lock_guard lock(shared.mutex);
        const std::pair<int, GemmKey> name{device_, key};
        if (const auto found = shared.choices.find(name); found != shared.choices.end())
            return found->second;
        const bool capturing = Cuda::is_capturing(stream.get());
        const std::vector<GemmChoice> choices = gemm_choices(handle_, key, capturing ? 1 : most_choices);
        GemmChoice choice = choices.front();
        if (choices.size() > 1) {
            const RelaxedCapture beside;
            // The workspace is this object's, and its stream may be at work in it.
            stream.sync();
            try_out([&](const auto& run) { choice = fastest(key, choices, run); });
        }
        shared.choices.emplace(name, choice);
        return choice;
    }

    static constexpr int most_choices = 32;

    Precision precision_;
    Algorithms algorithms_;
    int device_ = 0;
    Handle handle_;
    Buffer<unsigned char> workspace_;
    Buffer<unsigned> tickets_;
    std::map<GemmKey, GemmPlan> plans_;
    std::map<GemmKey, bool> groups_with_others_;
};

Gemm<sluice::Cuda>::Gemm(Precision precision, Algorithms algorithms)
    : plans_(std::make_unique<Plans>(precision, algorithms)) {}
Gemm<sluice::Cuda>::Gemm(Gemm&&) noexcept = default;
Gemm<sluice::Cuda>& Gemm<sluice::Cuda>::operator=(Gemm&&) noexcept = default;
Gemm<sluice::Cuda>::~Gemm() = default;

namespace {

/// Memory to try a product on.
template <class T, class Out>
class Scratch {
public:
    Scratch(const Matrix<const T, Cuda>& a, const Matrix<const T, Cuda>& b, const Matrix<Out, Cuda>& out,
            const Epilogue<Cuda>& like)
        : a_(a.size()), b_(b.size()), out_(out.size()), bias_(like.bias.size()),
          rounded_bias_(like.rounded_bias.size()), factors_(2), relu_output_(like.relu_output.size()),
          step_bias_(like.bias_step.bias.size()), step_scratch_(like.bias_step.scratch.size()),
          epilogue_(like) {
        on_own_stream<Cuda>([&](StreamRef stream) {
            const auto fill = [&](auto&... buffers) { (sluice::fill_bytes(stream, buffers, 0x3B), ...); };
            // Any numbers that are no NaN.
            fill(a_, b_, out_, bias_, rounded_bias_, factors_, relu_output_, step_bias_, step_scratch_);
        });
        epilogue_.bias = bias_;
        epilogue_.rounded_bias = rounded_bias_;
        if (!like.device_factors.empty())
            epilogue_.device_factors = factors_;
        epilogue_.relu_output = relu_output_;
        epilogue_.bias_step.bias = step_bias_;
        epilogue_.bias_step.scratch = step_scratch_;
    }

    Matrix<const T, Cuda> like_a(const Matrix<const T, Cuda>& a) const { return {a_, a.rows(), a.columns()}; }
    Matrix<const T, Cuda> like_b(const Matrix<const T, Cuda>& b) const { return {b_, b.rows(), b.columns()}; }
    Matrix<Out, Cuda> like_out(const Matrix<Out, Cuda>& out) { return {out_, out.rows(), out.columns()}; }
    const Epilogue<Cuda>& epilogue() const { return epilogue_; }

private:
    Buffer<T> a_;
    Buffer<T> b_;
    Buffer<Out> out_;
    Buffer<float> bias_;
    Buffer<Bfloat16> rounded_bias_;
    Buffer<float> factors_;
    Buffer<float> relu_output_;
    Buffer<float> step_bias_;
    Buffer<double> step_scratch_;
    Epilogue<Cuda> epilogue_;
};

} // namespace

template <class T, class Out>
void Gemm<sluice::Cuda>::multiply_any(StreamRef stream, const Matrix<const T, Cuda>& a,
                                      const Matrix<const T, Cuda>& b, const Matrix<Out, Cuda>& out,
                                      const Epilogue<Cuda>& epilogue) {
    const GemmKey key = key_of(plans_->precision(), a, b, out, epilogue);
    GemmPlan& plan = plans_->plan(key, stream, [&](const auto& use) {
        Scratch<T, Out> scratch(a, b, out, epilogue);
        use([&](StreamRef on, GemmPlan& tried) {
            plans_->run(on, tried, scratch.like_a(a), scratch.like_b(b), scratch.like_out(out),
                        scratch.epilogue());
        });
    });
    plans_->run(stream, plan, a, b, out, epilogue);
}

void Gemm<sluice::Cuda>::multiply(StreamRef stream, Matrix<const float, Cuda> a, Matrix<const float, Cuda> b,
                                  Matrix<float, Cuda> out, const Epilogue<Cuda>& epilogue) {
    multiply_any<float, float>(stream, a, b, out, epilogue);
}
void Gemm<sluice::Cuda>::multiply(StreamRef stream, Matrix<const Bfloat16, Cuda> a,
                                  Matrix<const Bfloat16, Cuda> b, Matrix<float, Cuda> out,
                                  const Epilogue<Cuda>& epilogue) {
    multiply_any<Bfloat16, float>(stream, a, b, out, epilogue);
}
void Gemm<sluice::Cuda>::multiply(StreamRef stream, Matrix<const Bfloat16, Cuda> a,
                                  Matrix<const Bfloat16, Cuda> b, Matrix<Bfloat16, Cuda> out,
                                  const Epilogue<Cuda>& epilogue) {
    multiply_any<Bfloat16, Bfloat16>(stream, a, b, out, epilogue);
}

bool Gemm<sluice::Cuda>::can_group(const WeightUpdate<Cuda>& update,
                                   sluice::DeviceSpan<const float, Cuda> factors) const {
    return plans_->can_group(update, factors);
}

void Gemm<sluice::Cuda>::update(StreamRef stream, std::span<const WeightUpdate<Cuda>> updates,
                                sluice::DeviceSpan<const float, Cuda> factors) {
    require_size("weight update: factors", factors.size(), 2);
    std::array<Tf32Gemm, tf32_most_updates> grouped;
    std::size_t count = 0;
    const auto flush = [&] {
        if (count > 0)
            update_tf32(stream, {grouped.data(), std::exchange(count, 0)}, plans_->workspace());
    };
    for (const WeightUpdate<Cuda>& update : updates) {
        const Epilogue<Cuda> epilogue = update.epilogue(factors);
        if (!can_group(update, factors)) {
            multiply(stream, update.in, update.gradient, update.weights, epilogue);
            continue;
        }
        grouped[count++] = tf32_gemm_of(update.in, update.gradient, update.weights, epilogue);
        if (count == grouped.size())
            flush();
    }
    flush();
}

} // namespace nn
