/// \file
/// Matrix products on both backends.
#pragma once

#include <cstddef>
#include <memory>
#include <span>

#include <nn/core/float16.hpp>
#include <nn/gemm/matrix.hpp>
#include <sluice/backend/stream.hpp>

namespace nn {

/// How a device multiplies matrices of float32. Storage and sums are float32 either way; the Host backend always
/// multiplies in float32.
enum class Precision {
    float32,
    /// Factors rounded to TF32 (10 bits of mantissa) where the device has Tensor Cores for it.
    tf32,
    /// Factors rounded to bfloat16 (7 bits of mantissa) likewise. A network that says so stores them in it, too.
    bfloat16,
};

/// Whether a device's algorithm for a product is chosen by rule or by trial. The CPU has one algorithm.
enum class Algorithms {
    /// By its lengths alone: the same bits in any run on the same kind of machine.
    heuristic,
    /// The fastest of several, timed when a shape comes first, once for all objects of a process and device. All objects
    /// of the process give the same bits; another run may choose another algorithm, and so give other bits.
    autotune,
};

/// A bias that takes the same step of gradient descent as the weights that a product updates: with `b` the gradient of
/// a layer's output, `bias[i] += alpha * (sum of b[r, c] over all r, and all c that are i modulo outputs)`.
template <sluice::Backend B>
struct BiasStep {
    /// A multiple of `outputs` elements, of which those that are equal modulo `outputs` are equal before and after.
    sluice::DeviceSpan<float, B> bias = {};
    /// Divides the columns of `b`.
    std::size_t outputs = 0;
    /// At least `sum_scratch` elements of `b`'s size in rows of `outputs`.
    sluice::DeviceSpan<double, B> scratch = {};
};

/// What a product does with its sums: `out = alpha * op(a) * op(b) + beta * out`, then `bias`, then ReLU.
template <sluice::Backend B>
struct Epilogue {
    bool transpose_a = false;
    bool transpose_b = false;
    float alpha = 1.0f;
    float beta = 0.0f;
    /// Two elements, `alpha` and `beta`, that the product reads when it runs, in place of the numbers above. They may
    /// change between the replays of a graph. Empty for none.
    sluice::DeviceSpan<const float, B> device_factors = {};
    /// Added to every row of the result; as long as a row, or empty for none. Needs `beta` 0, known beforehand.
    sluice::DeviceSpan<const float, B> bias = {};
    /// The bias rounded to Bfloat16, for a result of Bfloat16; empty for none. A device whose products cannot add one
    /// of float32 then adds this one, within the same kernel.
    sluice::DeviceSpan<const Bfloat16, B> rounded_bias = {};
    /// Replaces negative results by 0. Needs a bias.
    bool relu = false;
    /// The output of a ReLU, as long as `out`, or empty for none: where it is not positive, the result is 0. This makes
    /// the product the gradient of the ReLU's input. Needs `beta` 0, known beforehand, and no bias.
    sluice::DeviceSpan<const float, B> relu_output = {};
    /// An update of the bias together with that of the weights; without elements for none. Needs `device_factors` and
    /// `transpose_a`, and `b` not transposed.
    BiasStep<B> bias_step = {};
    /// Whether `b` may be read before the previous kernel of the stream has ended (programmatic dependent launch). True
    /// only if that kernel does not write `b`, and starts after the work before it has ended: every ordinary launch and
    /// every product of this library does.
    bool prefetch_b = false;
    /// A batch: `a`, `b` and `out` are each this many matrices of equal size, one below the other, which are multiplied
    /// pair by pair. Above 1 there is no bias, no ReLU and no update of a bias.
    std::size_t parts = 1;
};

/// A step of gradient descent: `weights = factors[0] * in^T * gradient + factors[1] * weights`, with factors that it may
/// share with others.
template <sluice::Backend B>
struct WeightUpdate {
    Matrix<const float, B> in;       ///< [rows, inputs]
    Matrix<const float, B> gradient; ///< [rows, columns]
    Matrix<float, B> weights;        ///< [inputs, columns]
    BiasStep<B> bias_step = {};

    /// The epilogue of `in^T` times `gradient`.
    Epilogue<B> epilogue(sluice::DeviceSpan<const float, B> factors) const {
        return {.transpose_a = true, .device_factors = factors, .bias_step = bias_step};
    }
};

/// Multiplies matrices in stream order. The same shapes and values give the same bits, on any stream and, unless
/// they are autotuned (see Algorithms), in any run on the same kind of machine.
///
/// Matrices of Bfloat16 are multiplied too, into float32 or, rounded once the sum is complete (and a second time with
/// a bias, unless there is a rounded one), into Bfloat16.
///
/// An object is driven by one thread, and by one stream at a time: it may hold workspace that its products share.
/// Objects are independent of each other. What it needs for a shape is made when the shape comes first; after
/// that nothing is allocated and nothing waits. Work that forks to a second stream needs a second object there.
template <sluice::Backend B>
class Gemm;

/// On the CPU: OpenBLAS on the stream's own thread, or plain loops where the build has none.
template <>
class Gemm<sluice::Host> {
public:
    explicit Gemm(Precision precision = Precision::float32, Algorithms algorithms = Algorithms::heuristic);

    /// `out [m, n] = alpha * op(a) [m, k] * op(b) [k, n] + beta * out`, where `op` transposes or not. With `beta` 0,
    /// `out` is written without being read. Throws `sluice::Error` when the shapes do not fit or a matrix is empty.
    void multiply(sluice::HostStreamRef stream, Matrix<const float, sluice::Host> a,
                  Matrix<const float, sluice::Host> b, Matrix<float, sluice::Host> out,
                  const Epilogue<sluice::Host>& epilogue = {});
    void multiply(sluice::HostStreamRef stream, Matrix<const Bfloat16, sluice::Host> a,
                  Matrix<const Bfloat16, sluice::Host> b, Matrix<float, sluice::Host> out,
                  const Epilogue<sluice::Host>& epilogue = {});
    void multiply(sluice::HostStreamRef stream, Matrix<const Bfloat16, sluice::Host> a,
                  Matrix<const Bfloat16, sluice::Host> b, Matrix<Bfloat16, sluice::Host> out,
                  const Epilogue<sluice::Host>& epilogue = {});

    /// Takes several steps, none of which needs what another one writes. Throws like `multiply`, and unless there are
    /// two factors.
    void update(sluice::HostStreamRef stream, std::span<const WeightUpdate<sluice::Host>> updates,
                sluice::DeviceSpan<const float, sluice::Host> factors);
    /// Whether `update` computes this step in one launch with others, so that it is worth collecting several.
    bool can_group(const WeightUpdate<sluice::Host>&, sluice::DeviceSpan<const float, sluice::Host>) const {
        return false;
    }
};

#if SLUICE_HAS_CUDA
/// On a device: cuBLASLt or, for products in TF32 of few rows or little work and for updates that are taken together, kernels
/// of our own (gemm_tf32.hpp), with a handle, a workspace and plans. Belongs to the device that was current when it was made.
///
/// Algorithms::autotune allocates a second set of operands and waits while it times a shape; it does not touch the
/// caller's. A shape that comes first inside a capture cannot be timed: the process then keeps the choice by rule. Tune
/// while the device is otherwise idle.
template <>
class Gemm<sluice::Cuda> {
public:
    /// Throws `sluice::Error`.
    explicit Gemm(Precision precision = Precision::float32, Algorithms algorithms = Algorithms::heuristic);
    Gemm(Gemm&&) noexcept;
    Gemm& operator=(Gemm&&) noexcept;
    ~Gemm();

    /// As on the CPU. The epilogue is part of the same kernel where possible.
    void multiply(sluice::CudaStreamRef stream, Matrix<const float, sluice::Cuda> a,
                  Matrix<const float, sluice::Cuda> b, Matrix<float, sluice::Cuda> out,
                  const Epilogue<sluice::Cuda>& epilogue = {});
    void multiply(sluice::CudaStreamRef stream, Matrix<const Bfloat16, sluice::Cuda> a,
                  Matrix<const Bfloat16, sluice::Cuda> b, Matrix<float, sluice::Cuda> out,
                  const Epilogue<sluice::Cuda>& epilogue = {});
    void multiply(sluice::CudaStreamRef stream, Matrix<const Bfloat16, sluice::Cuda> a,
                  Matrix<const Bfloat16, sluice::Cuda> b, Matrix<Bfloat16, sluice::Cuda> out,
                  const Epilogue<sluice::Cuda>& epilogue = {});

    /// As on the CPU. Steps in TF32 of not too many rows take two launches together, by rule even with
    /// Algorithms::autotune; they are fastest in the order of their rows, most first.
    void update(sluice::CudaStreamRef stream, std::span<const WeightUpdate<sluice::Cuda>> updates,
                sluice::DeviceSpan<const float, sluice::Cuda> factors);
    bool can_group(const WeightUpdate<sluice::Cuda>& update,
                   sluice::DeviceSpan<const float, sluice::Cuda> factors) const;

private:
    template <class T, class Out>
    void multiply_any(sluice::CudaStreamRef stream, const Matrix<const T, sluice::Cuda>& a,
                      const Matrix<const T, sluice::Cuda>& b, const Matrix<Out, sluice::Cuda>& out,
                      const Epilogue<sluice::Cuda>& epilogue);

    class Plans;
    std::unique_ptr<Plans> plans_;
};
#endif

/// The three lengths of a product, of each part where there are several.
struct GemmShape {
    std::size_t m = 0;
    std::size_t n = 0;
    std::size_t k = 0;

    auto operator<=>(const GemmShape&) const = default;
};

/// The product's lengths, if its parts fit together. Throws `sluice::Error` otherwise.
template <class T, class Out, sluice::Backend B>
GemmShape checked_shape(const Matrix<const T, B>& a, const Matrix<const T, B>& b, const Matrix<Out, B>& out,
                        const Epilogue<B>& epilogue);

/// A product in plain loops, for builds without OpenBLAS: `out = alpha * op(a) * op(b) + beta * out`.
void multiply_loops(const GemmShape& shape, const float* a, bool transpose_a, const float* b,
                    bool transpose_b, float* out, float alpha, float beta);

// ---------------------------------------------------------------------------------------------------------------

template <class T, class Out, sluice::Backend B>
GemmShape checked_shape(const Matrix<const T, B>& a, const Matrix<const T, B>& b, const Matrix<Out, B>& out,
                        const Epilogue<B>& epilogue) {
    const auto text = [](std::size_t rows, std::size_t columns) {
        return "[" + std::to_string(rows) + ", " + std::to_string(columns) + "]";
    };
    const std::size_t parts = epilogue.parts;
    if (parts == 0 || a.rows() % parts != 0 || b.rows() % parts != 0 || out.rows() % parts != 0 ||
        (parts > 1 && !epilogue.bias.empty())) [[unlikely]] {
        throw sluice::Error("matrix product: " + std::to_string(parts) + " parts of " +
                            std::to_string(a.rows()) + ", " + std::to_string(b.rows()) + " and " +
                            std::to_string(out.rows()) + " rows and a bias of " +
                            std::to_string(epilogue.bias.size()) +
                            " elements; expected rows that can be parted, and no bias with several parts");
    }
    const std::size_t a_rows = a.rows() / parts;
    const std::size_t b_rows = b.rows() / parts;
    const std::size_t m = epilogue.transpose_a ? a.columns() : a_rows;
    const std::size_t k = epilogue.transpose_a ? a_rows : a.columns();
    const std::size_t k_of_b = epilogue.transpose_b ? b.columns() : b_rows;
    const std::size_t n = epilogue.transpose_b ? b_rows : b.columns();
    if (k != k_of_b || out.rows() / parts != m || out.columns() != n || m == 0 || n == 0 || k == 0)
        [[unlikely]] {
        throw sluice::Error("matrix product: " + text(m, k) + " times " + text(k_of_b, n) + " into " +
                            text(out.rows() / parts, out.columns()) +
                            "; expected [m, k] times [k, n] into [m, n], none 0");
    }
    if (!epilogue.bias.empty() && (epilogue.bias.size() != n || epilogue.beta != 0.0f)) [[unlikely]] {
        throw sluice::Error("matrix product: a bias of " + std::to_string(epilogue.bias.size()) +
                            " elements and beta = " + std::to_string(epilogue.beta) + "; expected " +
                            std::to_string(n) + " elements and beta = 0");
    }
    if (!epilogue.device_factors.empty() && (epilogue.device_factors.size() != 2 || !epilogue.bias.empty()))
        [[unlikely]] {
        throw sluice::Error("matrix product: " + std::to_string(epilogue.device_factors.size()) +
                            " factors in device memory and a bias of " +
                            std::to_string(epilogue.bias.size()) +
                            " elements; expected alpha, beta and no bias");
    }
    if (!epilogue.rounded_bias.empty() &&
        (!std::is_same_v<Out, Bfloat16> || epilogue.rounded_bias.size() != epilogue.bias.size()))
        [[unlikely]] {
        throw sluice::Error("matrix product: a rounded bias of " +
                            std::to_string(epilogue.rounded_bias.size()) +
                            " elements; expected a result of Bfloat16, and " +
                            std::to_string(epilogue.bias.size()) + " elements, as the bias has");
    }
    if (epilogue.relu && epilogue.bias.empty()) [[unlikely]] {
        throw sluice::Error(
            "matrix product: ReLU was asked for without a bias; it is offered together with one");
    }
    constexpr bool float32 = std::is_same_v<T, float> && std::is_same_v<Out, float>;
    if (!epilogue.relu_output.empty() &&
        (!float32 || parts != 1 || epilogue.relu_output.size() != out.size() || epilogue.beta != 0.0f ||
         !epilogue.device_factors.empty() || !epilogue.bias.empty())) [[unlikely]] {
        throw sluice::Error("matrix product: the gradient of a ReLU of " +
                            std::to_string(epilogue.relu_output.size()) + " elements, in " +
                            std::to_string(parts) + " parts and with beta = " +
                            std::to_string(epilogue.beta) + "; expected " + std::to_string(out.size()) +
                            " elements of float32, one part, beta = 0 known beforehand and no bias");
    }
    const BiasStep<B>& step = epilogue.bias_step;
    if (!step.bias.empty() && (!float32 || parts != 1 || epilogue.device_factors.empty() ||
                               !epilogue.transpose_a || epilogue.transpose_b || step.outputs == 0 ||
                               n % step.outputs != 0 || step.bias.size() % step.outputs != 0)) [[unlikely]] {
        throw sluice::Error(
            "matrix product: a step for a bias of " + std::to_string(step.bias.size()) + " elements, " +
            std::to_string(step.outputs) + " of them different, beside " + std::to_string(n) +
            " columns; expected whole multiples, matrices of float32 in one part of which the "
            "first is transposed, and factors in device memory");
    }
    return {m, n, k};
}

} // namespace nn
