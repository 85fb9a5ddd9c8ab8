/// \file
/// A layer with float32 weights whose products may take a narrower type.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <type_traits>
#include <vector>

#include <nn/elementwise/maps.hpp>
#include <nn/layers/layer.hpp>

namespace nn {

/// A Layer whose inputs, outputs and gradients are elements `T`, float or Bfloat16. The weights are float32, since a
/// step is often smaller than the spacing of Bfloat16; where `T` is Bfloat16, products read a rounded copy.
template <class T, sluice::Backend B>
class MixedLayer {
public:
    /// As Layer's.
    MixedLayer(const LayerShape& shape, const sluice::RandomKey& key);

    const LayerShape& shape() const noexcept { return layer_.shape(); }
    Matrix<const float, B> weights() const { return layer_.weights(); }
    sluice::DeviceSpan<const float, B> bias() const { return layer_.bias(); }

    /// The weights as products take them.
    Matrix<const T, B> factors() const;

    /// As Layer's; the output may be float, too.
    template <class Out>
    void forward(sluice::BasicStreamRef<B> stream, Gemm<B>& gemm, Matrix<const T, B> in, Matrix<Out, B> out,
                 bool relu) const;
    void input_gradient(sluice::BasicStreamRef<B> stream, Gemm<B>& gemm, Matrix<const T, B> out_gradient,
                        Matrix<T, B> in_gradient) const;
    void update(sluice::BasicStreamRef<B> stream, Gemm<B>& gemm, Matrix<const T, B> in,
                Matrix<const T, B> out_gradient, sluice::DeviceSpan<const float, B> factors,
                sluice::DeviceSpan<double, B> scratch);

    /// The two halves of an update: the weights, by the sum of partial gradients [parts, rows * columns], and the
    /// bias, by the sum of gradients [rows, outputs] of `T` or float. `scratch` holds at least `sum_scratch` of either's
    /// rows and columns.
    void update_weights(sluice::BasicStreamRef<B> stream, Matrix<const float, B> gradients,
                        sluice::DeviceSpan<const float, B> factors, sluice::DeviceSpan<double, B> scratch);
    template <class U>
    void update_bias(sluice::BasicStreamRef<B> stream, const Matrix<U, B>& out_gradient,
                     sluice::DeviceSpan<const float, B> factors, sluice::DeviceSpan<double, B> scratch);

    std::size_t scratch_size(std::size_t elements) const { return layer_.scratch_size(elements); }

    /// As Layer's.
    void save(sluice::BasicStreamRef<B> stream, const std::string& name,
              std::vector<NamedTensor>& tensors) const {
        layer_.save(stream, name, tensors);
    }
    void load(sluice::BasicStreamRef<B> stream, const std::string& name,
              std::span<const NamedTensor> tensors);

private:
    static constexpr bool rounds = !std::is_same_v<T, float>;

    void round(sluice::BasicStreamRef<B> stream);

    Layer<B> layer_;
    sluice::DeviceBuffer<T, B> rounded_; // empty where `T` is float
};

// ---------------------------------------------------------------------------------------------------------------

template <class T, sluice::Backend B>
MixedLayer<T, B>::MixedLayer(const LayerShape& shape, const sluice::RandomKey& key)
    : layer_(shape, key), rounded_(rounds ? shape.rows() * shape.columns() : 0) {
    on_own_stream<B>([&](sluice::BasicStreamRef<B> stream) { round(stream); });
}

template <class T, sluice::Backend B>
void MixedLayer<T, B>::round(sluice::BasicStreamRef<B> stream) {
    if constexpr (rounds)
        scaled_copy<T, float>(stream, layer_.weights().span(), 1.0f, rounded_);
}

template <class T, sluice::Backend B>
Matrix<const T, B> MixedLayer<T, B>::factors() const {
    if constexpr (rounds) {
        return {rounded_, shape().rows(), shape().columns()};
    } else {
        return layer_.weights();
    }
}

template <class T, sluice::Backend B>
template <class Out>
void MixedLayer<T, B>::forward(sluice::BasicStreamRef<B> stream, Gemm<B>& gemm, Matrix<const T, B> in,
                               Matrix<Out, B> out, bool relu) const {
    gemm.multiply(stream, in.with_columns(shape().rows()), factors(), out.with_columns(shape().columns()),
                  {.bias = layer_.bias(), .relu = relu});
}

template <class T, sluice::Backend B>
void MixedLayer<T, B>::input_gradient(sluice::BasicStreamRef<B> stream, Gemm<B>& gemm,
                                      Matrix<const T, B> out_gradient, Matrix<T, B> in_gradient) const {
    gemm.multiply(stream, out_gradient.with_columns(shape().columns()), factors(),
                  in_gradient.with_columns(shape().rows()), {.transpose_b = true});
}

template <class T, sluice::Backend B>
void MixedLayer<T, B>::update(sluice::BasicStreamRef<B> stream, Gemm<B>& gemm, Matrix<const T, B> in,
                              Matrix<const T, B> out_gradient, sluice::DeviceSpan<const float, B> factors,
                              sluice::DeviceSpan<double, B> scratch) {
    gemm.multiply(stream, in.with_columns(shape().rows()), out_gradient.with_columns(shape().columns()),
                  layer_.weights(), {.transpose_a = true, .device_factors = factors});
    round(stream);
    update_bias(stream, out_gradient, factors, scratch);
}

template <class T, sluice::Backend B>
void MixedLayer<T, B>::update_weights(sluice::BasicStreamRef<B> stream, Matrix<const float, B> gradients,
                                      sluice::DeviceSpan<const float, B> factors,
                                      sluice::DeviceSpan<double, B> scratch) {
    // `update_bias` sums rows of gradients; here a row is a partial gradient of all weights.
    nn::update_bias(stream, gradients, layer_.weights().span(), factors, scratch);
    round(stream);
}

template <class T, sluice::Backend B>
template <class U>
void MixedLayer<T, B>::update_bias(sluice::BasicStreamRef<B> stream, const Matrix<U, B>& out_gradient,
                                   sluice::DeviceSpan<const float, B> factors,
                                   sluice::DeviceSpan<double, B> scratch) {
    nn::update_bias(stream, out_gradient.with_columns(shape().outputs()), layer_.bias(), factors, scratch);
}

template <class T, sluice::Backend B>
void MixedLayer<T, B>::load(sluice::BasicStreamRef<B> stream, const std::string& name,
                            std::span<const NamedTensor> tensors) {
    layer_.load(stream, name, tensors);
    round(stream);
    stream.sync();
}

} // namespace nn
