/// \file
/// A 3×3 convolution, padding 1, as a gather and one matrix product.
#pragma once

#include <algorithm>
#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include <nn/elementwise/pixels.hpp>
#include <nn/layers/layer.hpp>
#include <nn/layers/morton_order.hpp>

namespace nn {

/// Maps rows [N H W, C] to rows [N H W, Co], in the order of pixels that it was made for.
///
/// The data gradient of a 3×3 convolution is a 3×3 convolution of the output's gradient with flipped weights, so it
/// is gathered and multiplied in the same way, without a scatter. Both passes share one buffer, since the input's
/// neighbourhoods are not needed after the weights are updated.
template <sluice::Backend B>
class Convolution3x3 {
public:
    /// For at most `images` images in `order`; with 0 it only keeps the weights. Throws `sluice::Error`.
    Convolution3x3(const MortonOrder& order, std::size_t inputs, std::size_t outputs, std::size_t images,
                   const sluice::RandomKey& key)
        : layer_(LayerShape::convolution(inputs, outputs, 3), key),
          neighbours_(to_device<B>(order.neighbours())),
          gathered_(9 * std::max(inputs, outputs) * images * order.pixels()), flipped_(9 * inputs * outputs) {
    }

    void forward(sluice::BasicStreamRef<B> stream, Gemm<B>& gemm, Matrix<const float, B> in,
                 Matrix<float, B> out);

    /// The gradient of the latest `forward`'s input, and then one step of gradient descent (see Layer::update).
    void backward(sluice::BasicStreamRef<B> stream, Gemm<B>& gemm, Matrix<const float, B> out_gradient,
                  Matrix<float, B> in_gradient, sluice::DeviceSpan<const float, B> factors,
                  sluice::DeviceSpan<double, B> scratch);

    /// See Layer.
    Matrix<const float, B> weights() const { return layer_.weights(); }
    Matrix<float, B> weights() { return layer_.weights(); }
    sluice::DeviceSpan<const float, B> bias() const { return layer_.bias(); }
    sluice::DeviceSpan<float, B> bias() { return layer_.bias(); }

    void redirect_updates(sluice::DeviceSpan<float, B> weights, sluice::DeviceSpan<float, B> bias) {
        layer_.redirect_updates(weights, bias);
    }
    Matrix<float, B> updated_weights() { return layer_.updated_weights(); }
    sluice::DeviceSpan<float, B> updated_bias() { return layer_.updated_bias(); }

    std::size_t scratch_size(std::size_t elements) const { return layer_.scratch_size(elements); }

    /// See Layer.
    void save(sluice::BasicStreamRef<B> stream, const std::string& name,
              std::vector<NamedTensor>& tensors) const {
        layer_.save(stream, name, tensors);
    }
    void load(sluice::BasicStreamRef<B> stream, const std::string& name,
              std::span<const NamedTensor> tensors) {
        layer_.load(stream, name, tensors);
    }

private:
    Matrix<float, B> gathered(std::size_t rows, std::size_t channels) {
        return {gathered_.span().first(rows * 9 * channels), rows, 9 * channels};
    }

    Layer<B> layer_;
    sluice::DeviceBuffer<std::int32_t, B> neighbours_;
    sluice::DeviceBuffer<float, B> gathered_;
    sluice::DeviceBuffer<float, B> flipped_;
};

// ---------------------------------------------------------------------------------------------------------------

template <sluice::Backend B>
void Convolution3x3<B>::forward(sluice::BasicStreamRef<B> stream, Gemm<B>& gemm, Matrix<const float, B> in,
                                Matrix<float, B> out) {
    const Matrix<float, B> patches = gathered(in.rows(), layer_.shape().inputs());
    gather_neighbours(stream, in, neighbours_, patches);
    layer_.forward(stream, gemm, patches, out, false);
}

template <sluice::Backend B>
void Convolution3x3<B>::backward(sluice::BasicStreamRef<B> stream, Gemm<B>& gemm,
                                 Matrix<const float, B> out_gradient, Matrix<float, B> in_gradient,
                                 sluice::DeviceSpan<const float, B> factors,
                                 sluice::DeviceSpan<double, B> scratch) {
    const std::size_t inputs = layer_.shape().inputs();
    const std::size_t outputs = layer_.shape().outputs();
    const std::size_t rows = out_gradient.rows();
    const Matrix<float, B> flipped{flipped_, 9 * outputs, inputs};
    flip_weights(stream, layer_.weights(), flipped);
    layer_.update(stream, gemm, gathered(rows, inputs), out_gradient, factors, scratch);
    gather_neighbours(stream, out_gradient, neighbours_, gathered(rows, outputs));
    gemm.multiply(stream, gathered(rows, outputs), flipped, in_gradient);
}

} // namespace nn
