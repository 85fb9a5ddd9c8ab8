/// \file
/// The shapes of a layer's weights, and how PyTorch lays them out.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

namespace nn {

/// Weights or biases with their name and shape, in PyTorch's layout, in host memory.
struct NamedTensor {
    std::string name;
    std::vector<std::size_t> shape;
    std::vector<float> values;
};

/// A layer that is one matrix product `out = in * W + bias`, over rows whose channels come last.
///
/// | layer | rows of `in` | W |
/// | --- | --- | --- |
/// | convolution, kernel k×k | the k×k pixels concatenated [R, k k C] | [(ky k + kx) C + c, o] |
/// | transposed convolution, kernel and stride k | a pixel [R, C] | [c, (ky k + kx) Co + o] |
/// | linear, over a map of h×w pixels | the map's pixels concatenated [N, h w C] | [(y w + x) C + c, o] |
///
/// A linear layer after PyTorch's flatten, which goes by channel, row, column, is thus a convolution whose kernel
/// covers the map.
class LayerShape {
public:
    /// PyTorch's Conv2d, ConvTranspose2d and Linear of `inputs` and `outputs` channels. Throw `sluice::Error` when a
    /// number is 0.
    static LayerShape convolution(std::size_t inputs, std::size_t outputs, std::size_t kernel);
    static LayerShape transposed_convolution(std::size_t inputs, std::size_t outputs, std::size_t kernel);
    static LayerShape linear(std::size_t inputs, std::size_t outputs, std::size_t pixels);

    std::size_t inputs() const noexcept { return inputs_; }
    std::size_t outputs() const noexcept { return outputs_; }

    /// The rows and columns of W.
    std::size_t rows() const noexcept { return transposed_ ? inputs_ : inputs_ * pixels_; }
    std::size_t columns() const noexcept { return transposed_ ? outputs_ * pixels_ : outputs_; }

    /// The number of terms after which PyTorch scales a layer's first weights: 1 / sqrt(fan_in) is their bound.
    std::size_t fan_in() const noexcept { return (transposed_ ? outputs_ : inputs_) * pixels_; }

    /// The shape of PyTorch's weight: [Co, Ci, k, k], transposed [Ci, Co, k, k], linear [O, C h w].
    const std::vector<std::size_t>& torch_shape() const noexcept { return torch_shape_; }

    /// W from PyTorch's weight, and back. Throw `sluice::Error` when the number of elements is another.
    std::vector<float> matrix_from_torch(std::span<const float> weight) const;
    std::vector<float> torch_from_matrix(std::span<const float> matrix) const;

private:
    LayerShape(bool transposed, std::size_t inputs, std::size_t outputs, std::size_t pixels,
               std::vector<std::size_t> torch_shape);

    template <class Visit>
    void visit_pairs(const Visit& visit) const;

    bool transposed_;
    std::size_t inputs_;
    std::size_t outputs_;
    std::size_t pixels_;
    std::vector<std::size_t> torch_shape_;
};

} // namespace nn
