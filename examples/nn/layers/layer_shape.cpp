#include <nn/layers/layer_shape.hpp>

#include <utility>

#include <nn/gemm/matrix.hpp>

namespace nn {

LayerShape::LayerShape(bool transposed, std::size_t inputs, std::size_t outputs, std::size_t pixels,
                       std::vector<std::size_t> torch_shape)
    : transposed_(transposed), inputs_(inputs), outputs_(outputs), pixels_(pixels),
      torch_shape_(std::move(torch_shape)) {
    if (inputs == 0 || outputs == 0 || pixels == 0) {
        throw sluice::Error("a layer of " + std::to_string(inputs) + " input and " + std::to_string(outputs) +
                            " output channels over " + std::to_string(pixels) +
                            " pixels; none of these may be 0");
    }
}

LayerShape LayerShape::convolution(std::size_t inputs, std::size_t outputs, std::size_t kernel) {
    return {false, inputs, outputs, kernel * kernel, {outputs, inputs, kernel, kernel}};
}

LayerShape LayerShape::transposed_convolution(std::size_t inputs, std::size_t outputs, std::size_t kernel) {
    return {true, inputs, outputs, kernel * kernel, {inputs, outputs, kernel, kernel}};
}

LayerShape LayerShape::linear(std::size_t inputs, std::size_t outputs, std::size_t pixels) {
    return {false, inputs, outputs, pixels, {outputs, inputs * pixels}};
}

/// Calls `visit(matrix_index, torch_index)` for each weight.
template <class Visit>
void LayerShape::visit_pairs(const Visit& visit) const {
    for (std::size_t input = 0; input < inputs_; ++input) {
        for (std::size_t output = 0; output < outputs_; ++output) {
            const std::size_t first = transposed_ ? input * outputs_ + output : output * inputs_ + input;
            for (std::size_t pixel = 0; pixel < pixels_; ++pixel) {
                const std::size_t row = transposed_ ? input : pixel * inputs_ + input;
                const std::size_t column = transposed_ ? pixel * outputs_ + output : output;
                visit(row * columns() + column, first * pixels_ + pixel);
            }
        }
    }
}

std::vector<float> LayerShape::matrix_from_torch(std::span<const float> weight) const {
    require_size("elements of a layer's weight", weight.size(), rows() * columns());
    std::vector<float> matrix(weight.size());
    visit_pairs([&](std::size_t in_matrix, std::size_t in_torch) { matrix[in_matrix] = weight[in_torch]; });
    return matrix;
}

std::vector<float> LayerShape::torch_from_matrix(std::span<const float> matrix) const {
    require_size("elements of a layer's matrix", matrix.size(), rows() * columns());
    std::vector<float> weight(matrix.size());
    visit_pairs([&](std::size_t in_matrix, std::size_t in_torch) { weight[in_torch] = matrix[in_matrix]; });
    return weight;
}

} // namespace nn
