#include <nn/dnn/cudnn_conv2d.hpp>

#include <nn/dnn/cudnn.hpp>
#include <nn/dnn/detail/conv_plan.hpp>

namespace nn {
namespace {

using detail::ConvGraph;

template <class T>
constexpr cudnn_frontend::DataType_t type_of = sizeof(T) == 2 ? cudnn_frontend::DataType_t::HALF
                                                              : cudnn_frontend::DataType_t::FLOAT;

/// cuDNN takes what it reads as addresses that may be written, too.
template <class U>
void* address(sluice::DeviceSpan<U, sluice::Cuda> span) {
    return const_cast<std::remove_const_t<U>*>(span.data());
}

detail::TensorAddresses addresses(const auto& in, const auto& weights, const auto& out) {
    detail::TensorAddresses given{};
    given[detail::in_tensor] = address(in);
    given[detail::weights_tensor] = address(weights);
    given[detail::out_tensor] = address(out);
    return given;
}

ConvGraph inference_graph(bool with_residual, bool relu) {
    if (with_residual)
        return relu ? ConvGraph::bias_residual_relu : ConvGraph::bias_residual;
    return relu ? ConvGraph::bias_relu : ConvGraph::bias;
}

} // namespace

std::string cudnn_version() {
    const std::size_t version = cudnnGetVersion();
    return std::to_string(version / 10000) + "." + std::to_string(version / 100 % 100) + "." +
           std::to_string(version % 100);
}

std::string missing_cudnn() {
    cudnnHandle_t handle = nullptr;
    const cudnnStatus_t status = cudnnCreate(&handle);
    if (status != CUDNN_STATUS_SUCCESS)
        return std::string("cuDNN ") + cudnn_version() +
               " cannot be used on this device: " + cudnnGetErrorString(status);
    cudnnDestroy(handle);
    return {};
}

template <class T>
class CudnnConv2d<T>::Plans : public detail::ConvPlans {
public:
    explicit Plans(const Conv2dOptions& options) : ConvPlans(options, type_of<T>, sizeof(T)) {}

    /// Throws `sluice::Error` where cuDNN has no plan.
    void run_required(sluice::CudaStreamRef stream, ConvGraph kind, const Conv2dShape& shape,
                      const detail::TensorAddresses& addresses) {
        const detail::ConvPlan& found = plan(stream, kind, shape);
        if (found.graph == nullptr) [[unlikely]] {
            std::string why;
            if (found.out_of_order > 0) {
                why = " that waits for the kernel before it, as the order of a stream asks; " +
                      std::to_string(found.out_of_order) + " of its plans do not";
            }
            throw sluice::Error("convolution of " + to_string(shape) + ": cuDNN " + cudnn_version() +
                                " has no plan for " + detail::name_of(kind) + " on this device" + why);
        }
        run(stream, kind, found, addresses);
    }

    void run_unfused(sluice::CudaStreamRef stream, ConvGraph kind, const Conv2dShape& shape,
                     const detail::TensorAddresses& addresses) override {
        const auto maps = [&](detail::Tensor tensor) {
            return sluice::DeviceSpan<T, sluice::Cuda>(static_cast<T*>(addresses[tensor]), shape.out_size());
        };
        const sluice::DeviceSpan<const float, sluice::Cuda> bias(
            static_cast<const float*>(addresses[detail::bias_tensor]), shape.out_channels);
        run_required(stream, ConvGraph::forward, shape, addresses);
        const Matrix<T, sluice::Cuda> map{maps(detail::out_tensor), shape.out_pixels(), shape.out_channels};
        Residual<T, sluice::Cuda> residual{};
        if (kind == ConvGraph::bias_residual || kind == ConvGraph::bias_residual_relu)
            residual.maps = maps(detail::residual_tensor);
        const bool relu = kind == ConvGraph::bias_relu || kind == ConvGraph::bias_residual_relu;
        scale_bias_relu<T, T>(stream, map, {}, bias, residual, relu, map);
    }
};

template <class T>
CudnnConv2d<T>::CudnnConv2d(const Conv2dOptions& options) : plans_(std::make_unique<Plans>(options)) {}
template <class T>
CudnnConv2d<T>::CudnnConv2d(CudnnConv2d&&) noexcept = default;
template <class T>
CudnnConv2d<T>& CudnnConv2d<T>::operator=(CudnnConv2d&&) noexcept = default;
template <class T>
CudnnConv2d<T>::~CudnnConv2d() = default;

template <class T>
void CudnnConv2d<T>::prepare(const Conv2dShape& shape) {
    const sluice::BasicStream<sluice::Cuda> stream;
    plans_->plan(stream.ref(), ConvGraph::forward, shape);
}

template <class T>
void CudnnConv2d<T>::forward(sluice::CudaStreamRef stream, const Conv2dShape& shape, Span<const T> in,
                             Span<const T> weights, Span<T> out) {
    require_conv2d_sizes(shape, in.size(), weights.size(), out.size());
    plans_->run_required(stream, ConvGraph::forward, shape, addresses(in, weights, out));
}

template <class T>
void CudnnConv2d<T>::forward_bias_relu(sluice::CudaStreamRef stream, const Conv2dShape& shape,
                                       Span<const T> in, Span<const T> weights, Span<const float> bias,
                                       Span<const T> residual, bool relu, Span<T> out) {
    require_conv2d_sizes(shape, in.size(), weights.size(), out.size());
    require_size("convolution: elements of the bias", bias.size(), shape.out_channels);
    if (!residual.empty())
        require_size("convolution: elements of the residual", residual.size(), shape.out_size());
    const ConvGraph kind = inference_graph(!residual.empty(), relu);
    detail::TensorAddresses given = addresses(in, weights, out);
    given[detail::bias_tensor] = address(bias);
    given[detail::residual_tensor] = address(residual);
    const detail::ConvPlan& plan = plans_->plan(stream, kind, shape);
    if (plan.graph == nullptr)
        plans_->run_unfused(stream, kind, shape, given);
    else
        plans_->run(stream, kind, plan, given);
}

template <class T>
void CudnnConv2d<T>::input_gradient(sluice::CudaStreamRef stream, const Conv2dShape& shape,
                                    Span<const T> out_gradient, Span<const T> weights, Span<T> in_gradient) {
    require_conv2d_sizes(shape, in_gradient.size(), weights.size(), out_gradient.size());
    plans_->run_required(stream, ConvGraph::input_gradient, shape,
                         addresses(in_gradient, weights, out_gradient));
}

template <class T>
void CudnnConv2d<T>::weight_gradient(sluice::CudaStreamRef stream, const Conv2dShape& shape, Span<const T> in,
                                     Span<const T> out_gradient, Span<T> weight_gradient) {
    require_conv2d_sizes(shape, in.size(), weight_gradient.size(), out_gradient.size());
    plans_->run_required(stream, ConvGraph::weight_gradient, shape,
                         addresses(in, weight_gradient, out_gradient));
}

template <class T>
bool CudnnConv2d<T>::forward_sums(sluice::CudaStreamRef stream, const Conv2dShape& shape, Span<const T> in,
                                  Span<const T> weights, Span<T> out, Span<float> sums) {
    require_conv2d_sizes(shape, in.size(), weights.size(), out.size());
    require_size("convolution: sums", sums.size(), 2 * shape.out_channels);
    const detail::ConvPlan& plan = plans_->plan(stream, ConvGraph::sums, shape);
    if (plan.graph == nullptr)
        return false;
    detail::TensorAddresses given = addresses(in, weights, out);
    given[detail::sum_tensor] = address(sums.first(shape.out_channels));
    given[detail::square_sum_tensor] = address(sums.last(shape.out_channels));
    plans_->run(stream, ConvGraph::sums, plan, given);
    return true;
}

template class CudnnConv2d<float>;
template class CudnnConv2d<Half>;

} // namespace nn
