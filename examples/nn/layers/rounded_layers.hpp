/// \file
/// Frozen layers one after another, with bfloat16 maps between them.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include <nn/layers/rounded_layer.hpp>

namespace nn {

/// RoundedLayers as an Encoder ends with them: a ReLU after each but the last, whose result is float32. The maps
/// between them alternate between two buffers.
template <sluice::Backend B>
class RoundedLayers {
public:
    /// Appends a layer, for an input of at most `elements` elements. Waits. Throws `sluice::Error`.
    void append(const LayerShape& shape, const sluice::RandomKey& key, std::size_t elements);

    bool empty() const noexcept { return layers_.empty(); }

    /// Where an input of the first layer is to be written.
    Matrix<Bfloat16, B> input(std::size_t elements) {
        const std::size_t columns = layers_[0].shape().rows();
        return {maps_[0].span().first(elements), elements / columns, columns};
    }
    /// From what has been written to `input(elements)`.
    void forward(sluice::BasicStreamRef<B> stream, Gemm<B>& gemm, std::size_t elements, Matrix<float, B> out);

    /// See Layer: the weights of layers `first`, `first + 2`, … of a sequence.
    void save(sluice::BasicStreamRef<B> stream, std::size_t first, std::vector<NamedTensor>& tensors) const;
    void load(sluice::BasicStreamRef<B> stream, std::size_t first, std::span<const NamedTensor> tensors);

private:
    std::vector<RoundedLayer<B>> layers_;
    sluice::DeviceBuffer<Bfloat16, B> maps_[2];
};

// ---------------------------------------------------------------------------------------------------------------

template <sluice::Backend B>
void RoundedLayers<B>::append(const LayerShape& shape, const sluice::RandomKey& key, std::size_t elements) {
    sluice::DeviceBuffer<Bfloat16, B>& map = maps_[layers_.size() % 2];
    if (map.size() < elements)
        map = sluice::DeviceBuffer<Bfloat16, B>(elements);
    layers_.emplace_back(shape, key);
}

template <sluice::Backend B>
void RoundedLayers<B>::forward(sluice::BasicStreamRef<B> stream, Gemm<B>& gemm, std::size_t elements,
                               Matrix<float, B> out) {
    for (std::size_t i = 0; i < layers_.size(); ++i) {
        const LayerShape& shape = layers_[i].shape();
        const std::size_t rows = elements / shape.rows();
        const Matrix<const Bfloat16, B> in{maps_[i % 2].span().first(elements), rows, shape.rows()};
        elements = rows * shape.columns();
        if (i + 1 == layers_.size()) {
            layers_[i].forward(stream, gemm, in, out, false);
        } else {
            const Matrix<Bfloat16, B> next{maps_[(i + 1) % 2].span().first(elements), rows, shape.columns()};
            layers_[i].forward(stream, gemm, in, next, true);
        }
    }
}

template <sluice::Backend B>
void RoundedLayers<B>::save(sluice::BasicStreamRef<B> stream, std::size_t first,
                            std::vector<NamedTensor>& tensors) const {
    for (std::size_t i = 0; i < layers_.size(); ++i)
        layers_[i].save(stream, std::to_string(first + 2 * i), tensors);
}

template <sluice::Backend B>
void RoundedLayers<B>::load(sluice::BasicStreamRef<B> stream, std::size_t first,
                            std::span<const NamedTensor> tensors) {
    for (std::size_t i = 0; i < layers_.size(); ++i)
        layers_[i].load(stream, std::to_string(first + 2 * i), tensors);
}

} // namespace nn
