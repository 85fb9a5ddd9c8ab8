/// \file
/// A layer that is one matrix product: its weights, and the three products it takes part in.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include <nn/core/device.hpp>
#include <nn/elementwise/elementwise.hpp>
#include <nn/elementwise/sums.hpp>
#include <nn/gemm/gemm.hpp>
#include <nn/layers/layer_shape.hpp>

namespace nn {

/// Weights and bias in device memory. Matrices may have any row length that fits: a layer splits and merges rows as its
/// shape requires (see LayerShape). Work goes to the stream; nothing waits unless it says so.
template <sluice::Backend B>
class Layer {
public:
    /// First weights as PyTorch draws them: uniform within ±1 / sqrt(fan_in), the bias too. `key` names the random
    /// numbers; a layer takes samples 0 … 2^40 - 1 from the key's on. Waits until they are there.
    Layer(const LayerShape& shape, const sluice::RandomKey& key);

    const LayerShape& shape() const noexcept { return shape_; }

    /// `out = in * W + bias`, then ReLU if `relu`. `prefetch_weights`, here and below: the previous kernel of the stream
    /// does not write this layer's weights, so a device may load them while it ends (see Epilogue::prefetch_b).
    void forward(sluice::BasicStreamRef<B> stream, Gemm<B>& gemm, Matrix<const float, B> in,
                 Matrix<float, B> out, bool relu, bool prefetch_weights = false) const;

    /// The gradient of `in` from that of `out`. `relu_output`: `in` itself, where it is the output of a ReLU; the result
    /// is then the gradient of the ReLU's input.
    void input_gradient(sluice::BasicStreamRef<B> stream, Gemm<B>& gemm, Matrix<const float, B> out_gradient,
                        Matrix<float, B> in_gradient, sluice::DeviceSpan<const float, B> relu_output = {},
                        bool prefetch_weights = false) const;

    /// One step of gradient descent: `W -= rate * in^T * out_gradient` as one product, and the same for the bias,
    /// with the rate of `factors` (see `descent_factors`). `scratch` holds at least
    /// `scratch_size(out_gradient.size())` elements.
    void update(sluice::BasicStreamRef<B> stream, Gemm<B>& gemm, Matrix<const float, B> in,
                Matrix<const float, B> out_gradient, sluice::DeviceSpan<const float, B> factors,
                sluice::DeviceSpan<double, B> scratch);

    /// The same step, to be computed with others (see Gemm::update).
    WeightUpdate<B> step(Matrix<const float, B> in, Matrix<const float, B> out_gradient,
                         sluice::DeviceSpan<double, B> scratch) {
        return {.in = in.with_columns(shape_.rows()),
                .gradient = out_gradient.with_columns(shape_.columns()),
                .weights = updated_weights(),
                .bias_step = {.bias = updated_bias(), .outputs = shape_.outputs(), .scratch = scratch}};
    }

    /// The scratch memory that an update over an output of `elements` elements needs.
    std::size_t scratch_size(std::size_t elements) const {
        return sum_scratch(elements / shape_.outputs(), shape_.outputs());
    }

    /// The weights and the bias themselves. A caller that writes them does so in the order of the layer's work.
    Matrix<const float, B> weights() const { return {weights_, shape_.rows(), shape_.columns()}; }
    Matrix<float, B> weights() { return {weights_, shape_.rows(), shape_.columns()}; }
    sluice::DeviceSpan<const float, B> bias() const { return bias_; }
    sluice::DeviceSpan<float, B> bias() { return bias_; }

    /// From now on steps are taken by other weights and another bias, of the same sizes, and these stay: of zeros, with the
    /// factors {1, 1}, they become the gradients. Both outlive the layer's work.
    void redirect_updates(sluice::DeviceSpan<float, B> weights, sluice::DeviceSpan<float, B> bias) {
        require_size("layer: redirected weights", weights.size(), weights_.size());
        require_size("layer: redirected bias", bias.size(), bias_.size());
        weights_target_ = weights;
        bias_target_ = bias;
    }
    /// What steps are taken by.
    Matrix<float, B> updated_weights() {
        return {weights_target_.empty() ? weights_.span() : weights_target_, shape_.rows(), shape_.columns()};
    }
    sluice::DeviceSpan<float, B> updated_bias() { return bias_target_.empty() ? bias_.span() : bias_target_; }

    /// Appends `name.weight` and `name.bias`, in PyTorch's layout, as they are once `stream` gets there. Waits.
    void save(sluice::BasicStreamRef<B> stream, const std::string& name,
              std::vector<NamedTensor>& tensors) const;

    /// Takes `name.weight` and `name.bias` from among `tensors`, in the order of `stream`. Waits. Throws
    /// `sluice::Error`, and changes nothing, when one is missing or has another shape.
    void load(sluice::BasicStreamRef<B> stream, const std::string& name,
              std::span<const NamedTensor> tensors);

private:
    LayerShape shape_;
    sluice::DeviceBuffer<float, B> weights_;
    // As long as a row of the product: a transposed convolution's is repeated for each pixel of its kernel.
    sluice::DeviceBuffer<float, B> bias_;
    sluice::DeviceSpan<float, B> weights_target_; // of steps, where it is not the layer's own
    sluice::DeviceSpan<float, B> bias_target_;
};

/// The key of layer `index` of a network: its numbers never meet those of another layer.
inline sluice::RandomKey layer_key(std::uint64_t seed, std::uint16_t network, std::size_t index) {
    return {
        .seed = seed, .epoch = 0, .sample = static_cast<std::uint64_t>(index) << 40, .operation = network};
}

/// Throws `sluice::Error` unless `elements` are whole images of `image_size` elements, at least one and at most
/// `batch`. Returns their number.
inline std::size_t images_in(const char* what, std::size_t elements, std::size_t image_size,
                             std::size_t batch) {
    if (elements == 0 || elements % image_size != 0 || elements / image_size > batch) [[unlikely]] {
        throw sluice::Error(std::string(what) + ": " + std::to_string(elements) +
                            " elements were given, expected " + std::to_string(image_size) +
                            " for each of 1 to " + std::to_string(batch) + " images");
    }
    return elements / image_size;
}

/// A layer's weights and bias in host memory, as long and in the order as the product takes them.
struct LayerTensors {
    std::vector<float> matrix;
    std::vector<float> bias;
};

/// Appends them as `name.weight` and `name.bias`, in PyTorch's layout.
inline void append_tensors(const LayerShape& shape, const std::string& name, LayerTensors layer,
                           std::vector<NamedTensor>& tensors) {
    layer.bias.resize(shape.outputs());
    tensors.push_back({name + ".weight", shape.torch_shape(), shape.torch_from_matrix(layer.matrix)});
    tensors.push_back({name + ".bias", {shape.outputs()}, std::move(layer.bias)});
}

/// Finds a tensor by name; never null. Throws `sluice::Error` when it is missing or its shape is not the one expected.
inline const NamedTensor* find_tensor(std::span<const NamedTensor> tensors, const std::string& name,
                                      const std::vector<std::size_t>& shape) {
    const auto found = std::find_if(tensors.begin(), tensors.end(),
                                    [&](const NamedTensor& tensor) { return tensor.name == name; });
    if (found == tensors.end())
        throw sluice::Error("weights: there is no tensor named " + name);
    const auto text = [](const std::vector<std::size_t>& sides) {
        std::string result;
        for (const std::size_t side : sides)
            result += (result.empty() ? "[" : ", ") + std::to_string(side);
        return result + "]";
    };
    if (found->shape != shape) {
        throw sluice::Error("weights: " + name + " has the shape " + text(found->shape) + ", expected " +
                            text(shape));
    }
    return &*found;
}

/// Takes `name.weight` and `name.bias` from among `tensors`. Throws `sluice::Error` when one is missing or has another
/// shape.
inline LayerTensors layer_tensors(const LayerShape& shape, const std::string& name,
                                  std::span<const NamedTensor> tensors) {
    const NamedTensor* weight = find_tensor(tensors, name + ".weight", shape.torch_shape());
    const NamedTensor* bias = find_tensor(tensors, name + ".bias", {shape.outputs()});
    LayerTensors layer{shape.matrix_from_torch(weight->values), std::vector<float>(shape.columns())};
    for (std::size_t i = 0; i < layer.bias.size(); ++i)
        layer.bias[i] = bias->values[i % shape.outputs()];
    return layer;
}

// ---------------------------------------------------------------------------------------------------------------

template <sluice::Backend B>
Layer<B>::Layer(const LayerShape& shape, const sluice::RandomKey& key)
    : shape_(shape), weights_(shape.rows() * shape.columns()), bias_(shape.columns()) {
    const float bound = 1.0f / std::sqrt(static_cast<float>(shape.fan_in()));
    sluice::RandomKey bias_key = key;
    bias_key.sample += std::uint64_t{1} << 39;
    on_own_stream<B>([&](sluice::BasicStreamRef<B> stream) {
        fill_uniform(stream, weights_, bound, key);
        fill_uniform(stream, bias_.span().first(shape_.outputs()), bound, bias_key);
        repeat(stream, bias_, shape_.outputs());
    });
}

template <sluice::Backend B>
void Layer<B>::forward(sluice::BasicStreamRef<B> stream, Gemm<B>& gemm, Matrix<const float, B> in,
                       Matrix<float, B> out, bool relu, bool prefetch_weights) const {
    gemm.multiply(stream, in.with_columns(shape_.rows()), weights(), out.with_columns(shape_.columns()),
                  {.bias = bias_, .relu = relu, .prefetch_b = prefetch_weights});
}

template <sluice::Backend B>
void Layer<B>::input_gradient(sluice::BasicStreamRef<B> stream, Gemm<B>& gemm,
                              Matrix<const float, B> out_gradient, Matrix<float, B> in_gradient,
                              sluice::DeviceSpan<const float, B> relu_output, bool prefetch_weights) const {
    gemm.multiply(stream, out_gradient.with_columns(shape_.columns()), weights(),
                  in_gradient.with_columns(shape_.rows()),
                  {.transpose_b = true, .relu_output = relu_output, .prefetch_b = prefetch_weights});
}

template <sluice::Backend B>
void Layer<B>::update(sluice::BasicStreamRef<B> stream, Gemm<B>& gemm, Matrix<const float, B> in,
                      Matrix<const float, B> out_gradient, sluice::DeviceSpan<const float, B> factors,
                      sluice::DeviceSpan<double, B> scratch) {
    const WeightUpdate<B> one = step(in, out_gradient, scratch);
    gemm.multiply(stream, one.in, one.gradient, one.weights, one.epilogue(factors));
}

template <sluice::Backend B>
void Layer<B>::save(sluice::BasicStreamRef<B> stream, const std::string& name,
                    std::vector<NamedTensor>& tensors) const {
    append_tensors(shape_, name, {to_host(stream, weights_), to_host(stream, bias_)}, tensors);
}

template <sluice::Backend B>
void Layer<B>::load(sluice::BasicStreamRef<B> stream, const std::string& name,
                    std::span<const NamedTensor> tensors) {
    const LayerTensors layer = layer_tensors(shape_, name, tensors);
    sluice::copy_and_wait(stream, weights_, layer.matrix);
    sluice::copy_and_wait(stream, bias_, layer.bias);
}

} // namespace nn
