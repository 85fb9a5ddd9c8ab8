// The detector in float64, as its definition says: forward, and the gradient of every weight.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include <nn/layers/layer_shape.hpp>

#include "nn/naive.hpp"

namespace naive {

/// 2×2 max pool and ReLU, and where each result came from: the first of the greatest.
struct Pooled {
    Images maps;
    std::vector<std::size_t> source;
};

inline Pooled pool_relu(const Images& in) {
    Pooled out{Images(in.n, in.c, in.h / 2, in.w / 2), {}};
    for (std::size_t i = 0; i < out.maps.values.size(); ++i) {
        const std::size_t x = i % out.maps.w;
        const std::size_t y = i / out.maps.w % out.maps.h;
        const std::size_t plane = i / (out.maps.w * out.maps.h);
        std::size_t best = (plane * in.h + 2 * y) * in.w + 2 * x;
        for (const std::size_t other : {best + 1, best + in.w, best + in.w + 1})
            best = in.values[other] > in.values[best] ? other : best;
        out.maps.values[i] = std::max(in.values[best], 0.0);
        out.source.push_back(best);
    }
    return out;
}

/// The gradient of what was pooled.
inline Images unpool(const Pooled& pooled, const Images& in, const Doubles& gradient) {
    Images result(in.n, in.c, in.h, in.w);
    for (std::size_t i = 0; i < gradient.size(); ++i) {
        if (pooled.maps.values[i] > 0.0)
            result.values[pooled.source[i]] = gradient[i];
    }
    return result;
}

/// Linear with a weight [outputs, inputs], for rows of inputs.
inline Doubles linear(const Doubles& in, const Doubles& weight, const Doubles& bias) {
    const std::size_t inputs = weight.size() / bias.size();
    Doubles out;
    for (std::size_t row = 0; row < in.size() / inputs; ++row) {
        for (std::size_t o = 0; o < bias.size(); ++o) {
            double sum = bias[o];
            for (std::size_t i = 0; i < inputs; ++i)
                sum += in[row * inputs + i] * weight[o * inputs + i];
            out.push_back(sum);
        }
    }
    return out;
}

struct LinearGradients {
    Doubles input, weight, bias;
};

inline LinearGradients linear_gradients(const Doubles& in, const Doubles& weight, const Doubles& out_gradient,
                                        std::size_t outputs) {
    const std::size_t inputs = weight.size() / outputs;
    LinearGradients result{Doubles(in.size(), 0.0), Doubles(weight.size(), 0.0), Doubles(outputs, 0.0)};
    for (std::size_t row = 0; row < in.size() / inputs; ++row) {
        for (std::size_t o = 0; o < outputs; ++o) {
            const double gradient = out_gradient[row * outputs + o];
            result.bias[o] += gradient;
            for (std::size_t i = 0; i < inputs; ++i) {
                result.input[row * inputs + i] += gradient * weight[o * inputs + i];
                result.weight[o * inputs + i] += gradient * in[row * inputs + i];
            }
        }
    }
    return result;
}

/// Weights and biases in turns, as a detector gives them; the last two layers are linear.
class Detector {
public:
    Detector(const std::vector<nn::NamedTensor>& weights, double box_scale) : box_scale_(box_scale) {
        for (const nn::NamedTensor& tensor : weights)
            tensors_.push_back(doubles(tensor.values));
    }

    /// From images, scaled already, to boxes.
    Doubles forward(const Images& images) {
        maps_.assign(1, images);
        convolved_.clear();
        pooled_.clear();
        const std::size_t convolutions = tensors_.size() / 2 - 2;
        for (std::size_t level = 0; level < convolutions; ++level) {
            convolved_.push_back(
                convolution(maps_.back(), tensors_[2 * level], tensors_[2 * level + 1], 3, 1, 1));
            pooled_.push_back(pool_relu(convolved_.back()));
            maps_.push_back(pooled_.back().maps);
        }
        // Flatten goes by channel, row and column, which is how images lie here.
        hidden_ = linear(maps_.back().values, tensors_[2 * convolutions], tensors_[2 * convolutions + 1]);
        for (double& value : hidden_)
            value = std::max(value, 0.0);
        Doubles boxes = linear(hidden_, tensors_[2 * convolutions + 2], tensors_[2 * convolutions + 3]);
        for (double& value : boxes)
            value *= box_scale_;
        return boxes;
    }

    /// The gradients of all tensors, from that of the boxes.
    std::vector<Doubles> backward(Doubles gradient) const {
        for (double& value : gradient)
            value *= box_scale_;
        std::vector<Doubles> result(tensors_.size());
        const std::size_t last = tensors_.size() - 2;
        LinearGradients head = linear_gradients(hidden_, tensors_[last], gradient, tensors_[last + 1].size());
        result[last] = std::move(head.weight);
        result[last + 1] = std::move(head.bias);
        for (std::size_t i = 0; i < hidden_.size(); ++i)
            head.input[i] = hidden_[i] > 0.0 ? head.input[i] : 0.0;
        LinearGradients hidden =
            linear_gradients(maps_.back().values, tensors_[last - 2], head.input, tensors_[last - 1].size());
        result[last - 2] = std::move(hidden.weight);
        result[last - 1] = std::move(hidden.bias);
        Doubles below = std::move(hidden.input);
        for (std::size_t level = convolved_.size(); level-- > 0;) {
            Gradients gradients = convolution_gradients(
                maps_[level], tensors_[2 * level], unpool(pooled_[level], convolved_[level], below), 3, 1, 1);
            result[2 * level] = std::move(gradients.weight);
            result[2 * level + 1] = std::move(gradients.bias);
            below = std::move(gradients.input.values);
        }
        return result;
    }

private:
    double box_scale_;
    std::vector<Doubles> tensors_;
    std::vector<Images> maps_;
    std::vector<Images> convolved_;
    std::vector<Pooled> pooled_;
    Doubles hidden_;
};

} // namespace naive
