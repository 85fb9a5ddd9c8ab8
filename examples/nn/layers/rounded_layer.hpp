/// \file
/// A frozen layer whose weights lie in device memory as bfloat16.
#pragma once

#include <span>
#include <string>
#include <vector>

#include <nn/elementwise/maps.hpp>
#include <nn/layers/layer.hpp>

namespace nn {

/// For weights that are never updated: half the memory of a Layer, and half the time to read it. Sums are float32, and so
/// is the bias of a float32 result; a Bfloat16 result may get a rounded bias.
template <sluice::Backend B>
class RoundedLayer {
public:
    /// The first weights are those of a Layer, rounded. Waits until they are there.
    RoundedLayer(const LayerShape& shape, const sluice::RandomKey& key);

    const LayerShape& shape() const noexcept { return shape_; }

    /// `out = in * W + bias`, then ReLU if asked for; to float, or to Bfloat16.
    template <class Out>
    void forward(sluice::BasicStreamRef<B> stream, Gemm<B>& gemm, Matrix<const Bfloat16, B> in,
                 Matrix<Out, B> out, bool relu) const;

    /// As Layer's. What is saved are the rounded weights, which round to themselves.
    void save(sluice::BasicStreamRef<B> stream, const std::string& name,
              std::vector<NamedTensor>& tensors) const;
    void load(sluice::BasicStreamRef<B> stream, const std::string& name,
              std::span<const NamedTensor> tensors);

private:
    LayerShape shape_;
    sluice::DeviceBuffer<Bfloat16, B> weights_;
    // As long as a row of the product.
    sluice::DeviceBuffer<float, B> bias_;
    sluice::DeviceBuffer<Bfloat16, B> rounded_bias_;
};

// ---------------------------------------------------------------------------------------------------------------

template <sluice::Backend B>
RoundedLayer<B>::RoundedLayer(const LayerShape& shape, const sluice::RandomKey& key)
    : shape_(shape), weights_(shape.rows() * shape.columns()), bias_(shape.columns()),
      rounded_bias_(shape.columns()) {
    const Layer<B> whole(shape, key);
    on_own_stream<B>([&](sluice::BasicStreamRef<B> stream) {
        scaled_copy<Bfloat16, float>(stream, whole.weights().span(), 1.0f, weights_);
        scaled_copy<Bfloat16, float>(stream, whole.bias(), 1.0f, rounded_bias_);
        sluice::copy(stream, bias_, whole.bias());
    });
}

template <sluice::Backend B>
template <class Out>
void RoundedLayer<B>::forward(sluice::BasicStreamRef<B> stream, Gemm<B>& gemm, Matrix<const Bfloat16, B> in,
                              Matrix<Out, B> out, bool relu) const {
    Epilogue<B> epilogue{.bias = bias_, .relu = relu};
    if constexpr (std::is_same_v<Out, Bfloat16>)
        epilogue.rounded_bias = rounded_bias_;
    gemm.multiply(stream, in.with_columns(shape_.rows()),
                  Matrix<const Bfloat16, B>{weights_, shape_.rows(), shape_.columns()},
                  out.with_columns(shape_.columns()), epilogue);
}

template <sluice::Backend B>
void RoundedLayer<B>::save(sluice::BasicStreamRef<B> stream, const std::string& name,
                           std::vector<NamedTensor>& tensors) const {
    const std::vector<Bfloat16> rounded = to_host(stream, weights_);
    append_tensors(shape_, name, {{rounded.begin(), rounded.end()}, to_host(stream, bias_)}, tensors);
}

template <sluice::Backend B>
void RoundedLayer<B>::load(sluice::BasicStreamRef<B> stream, const std::string& name,
                           std::span<const NamedTensor> tensors) {
    const LayerTensors layer = layer_tensors(shape_, name, tensors);
    const std::vector<Bfloat16> weights(layer.matrix.begin(), layer.matrix.end());
    const std::vector<Bfloat16> bias(layer.bias.begin(), layer.bias.end());
    sluice::copy_and_wait(stream, weights_, weights);
    sluice::copy_and_wait(stream, bias_, layer.bias);
    sluice::copy_and_wait(stream, rounded_bias_, bias);
}

} // namespace nn
