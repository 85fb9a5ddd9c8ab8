/// \file
/// Convolutions by cuDNN's graphs, with what can be fused into them. Only in builds that found cuDNN (`NN_HAS_CUDNN`).
#pragma once

#include <cstddef>
#include <memory>
#include <string>

#include <nn/conv/conv2d.hpp>
#include <nn/core/float16.hpp>

namespace nn {

/// Convolutions of maps and weights of `T`, float or Half, with sums in float32. As PatchConv2d, which says what the functions
/// do, with float biases.
///
/// The first call of a function with a shape makes its plan, which allocates and waits; it throws `sluice::Error` while
/// the stream is being captured. Later calls allocate no device memory and wait for nothing. Plans are cuDNN's first choice, or with
/// Algorithms::autotune the fastest of the first dozen that it offers, timed on operands of their own and kept in `plan_file`, by GPU,
/// versions and shape. Where kernels of a stream may overlap (compute capability 9.0 and later), a plan that does not wait for the
/// kernel before it is not chosen. With `deterministic` (see Conv2dOptions) the same plan gives the same bits. Precision::float32
/// keeps Tensor Cores from rounding float to TF32; cuDNN may then have no plan.
///
/// Belongs to the device that was current when it was made. Tensor Cores take channels of Half by eights, of float by
/// fours; a shape that cuDNN has no plan for throws `sluice::Error`.
template <class T>
class CudnnConv2d {
public:
    using value_type = T;
    template <class U>
    using Span = sluice::DeviceSpan<U, sluice::Cuda>;

    /// Throws `sluice::Error` when there is no device, or cuDNN cannot be initialised.
    explicit CudnnConv2d(const Conv2dOptions& options = {});
    CudnnConv2d(CudnnConv2d&&) noexcept;
    CudnnConv2d& operator=(CudnnConv2d&&) noexcept;
    ~CudnnConv2d();

    /// Makes the plan of the forward pass.
    void prepare(const Conv2dShape& shape);

    void forward(sluice::CudaStreamRef stream, const Conv2dShape& shape, Span<const T> in,
                 Span<const T> weights, Span<T> out);
    void forward_bias_relu(sluice::CudaStreamRef stream, const Conv2dShape& shape, Span<const T> in,
                           Span<const T> weights, Span<const float> bias, Span<const T> residual, bool relu,
                           Span<T> out);
    void input_gradient(sluice::CudaStreamRef stream, const Conv2dShape& shape, Span<const T> out_gradient,
                        Span<const T> weights, Span<T> in_gradient);
    void weight_gradient(sluice::CudaStreamRef stream, const Conv2dShape& shape, Span<const T> in,
                         Span<const T> out_gradient, Span<T> weight_gradient);

    /// The forward pass, and for each channel of `out` its sum and the sum of its squares: `sums` [2, Co]. Returns false, and
    /// has done nothing, where cuDNN does not fuse this.
    bool forward_sums(sluice::CudaStreamRef stream, const Conv2dShape& shape, Span<const T> in,
                      Span<const T> weights, Span<T> out, Span<float> sums);

private:
    class Plans;
    std::unique_ptr<Plans> plans_;
};

} // namespace nn
