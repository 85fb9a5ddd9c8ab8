// ResNet-18 and its layers in float64 on planar images, as their definitions say, with their gradients.
#pragma once

#include <cmath>
#include <map>
#include <memory>
#include <string>

#include <nn/models/resnet18_plan.hpp>

#include "nn/naive.hpp"

namespace naive {

/// Elements [N, H, W, C] as planar images, and the reverse.
template <class T>
Images from_maps(const std::vector<T>& maps, std::size_t c, std::size_t h, std::size_t w) {
    Images images(maps.size() / (c * h * w), c, h, w);
    for (std::size_t j = 0; j < maps.size(); ++j) {
        const std::size_t pixel = j / c;
        images.at(pixel / (h * w), j % c, pixel / w % h, pixel % w) =
            static_cast<double>(static_cast<float>(maps[j]));
    }
    return images;
}

inline Doubles to_maps(const Images& images) {
    Doubles maps(images.values.size());
    for (std::size_t j = 0; j < maps.size(); ++j) {
        const std::size_t pixel = j / images.c;
        maps[j] = images.at(pixel / (images.h * images.w), j % images.c, pixel / images.w % images.h,
                            pixel % images.w);
    }
    return maps;
}

/// A weight [Co, C, k, k] from one that is [Co, k, k, C], and the reverse.
template <class T>
Doubles torch_weight(const std::vector<T>& weight, std::size_t channels, std::size_t taps) {
    Doubles result(weight.size());
    for (std::size_t j = 0; j < weight.size(); ++j) {
        const std::size_t o = j / (channels * taps);
        result[(o * channels + j % channels) * taps + j / channels % taps] =
            static_cast<double>(static_cast<float>(weight[j]));
    }
    return result;
}

inline Doubles own_weight(const Doubles& weight, std::size_t channels, std::size_t taps) {
    Doubles result(weight.size());
    for (std::size_t j = 0; j < weight.size(); ++j) {
        const std::size_t o = j / (channels * taps);
        result[j] = weight[(o * channels + j % channels) * taps + j / channels % taps];
    }
    return result;
}

/// Batch normalisation in training.
struct Norm {
    Doubles mean, variance, inverse; ///< variance is the biased one
    Images normalised;
    Images out;

    Norm(const Images& in, const Doubles& weight, const Doubles& bias, double epsilon)
        : mean(in.c, 0.0), variance(in.c, 0.0), inverse(in.c), normalised(in), out(in) {
        const auto count = static_cast<double>(in.values.size() / in.c);
        for (std::size_t j = 0; j < in.values.size(); ++j)
            mean[channel(j)] += in.values[j] / count;
        for (std::size_t j = 0; j < in.values.size(); ++j) {
            const double centred = in.values[j] - mean[channel(j)];
            variance[channel(j)] += centred * centred / count;
        }
        for (std::size_t c = 0; c < in.c; ++c)
            inverse[c] = 1.0 / std::sqrt(variance[c] + epsilon);
        for (std::size_t j = 0; j < in.values.size(); ++j) {
            normalised.values[j] = (in.values[j] - mean[channel(j)]) * inverse[channel(j)];
            out.values[j] = normalised.values[j] * weight[channel(j)] + bias[channel(j)];
        }
    }

    Gradients gradients(const Images& slope, const Doubles& weight) const {
        Gradients result{slope, Doubles(slope.c, 0.0), Doubles(slope.c, 0.0)};
        const auto count = static_cast<double>(slope.values.size() / slope.c);
        for (std::size_t j = 0; j < slope.values.size(); ++j) {
            result.bias[channel(j)] += slope.values[j];
            result.weight[channel(j)] += slope.values[j] * normalised.values[j];
        }
        for (std::size_t j = 0; j < slope.values.size(); ++j) {
            const std::size_t c = channel(j);
            result.input.values[j] =
                weight[c] * inverse[c] *
                (slope.values[j] - (result.bias[c] + normalised.values[j] * result.weight[c]) / count);
        }
        return result;
    }

private:
    std::size_t channel(std::size_t j) const { return j / (out.h * out.w) % out.c; }
};

inline void relu(Images& images) {
    for (double& value : images.values)
        value = value > 0.0 ? value : 0.0;
}

/// The gradient before a ReLU, whose output is `output`.
inline void relu_slope(const Images& output, Images& slope) {
    for (std::size_t j = 0; j < slope.values.size(); ++j)
        slope.values[j] = output.values[j] > 0.0 ? slope.values[j] : 0.0;
}

inline void add(Images& to, const Images& from) {
    for (std::size_t j = 0; j < to.values.size(); ++j)
        to.values[j] += from.values[j];
}

/// 3×3, stride 2, padding 1; `from` receives the index of each maximum.
inline Images max_pool(const Images& in, std::vector<std::size_t>& from) {
    Images out(in.n, in.c, (in.h + 1) / 2, (in.w + 1) / 2);
    from.assign(out.values.size(), 0);
    for (std::size_t plane = 0; plane < in.n * in.c; ++plane)
        for (std::size_t y = 0; y < out.h; ++y)
            for (std::size_t x = 0; x < out.w; ++x) {
                const std::size_t to = (plane * out.h + y) * out.w + x;
                out.values[to] = -1e300;
                for (std::size_t t = 0; t < 9; ++t) {
                    const std::size_t yi = 2 * y + t / 3 - 1; // -1 wraps around
                    const std::size_t xi = 2 * x + t % 3 - 1;
                    const std::size_t at = (plane * in.h + yi) * in.w + xi;
                    if (yi < in.h && xi < in.w && in.values[at] > out.values[to]) {
                        out.values[to] = in.values[at];
                        from[to] = at;
                    }
                }
            }
    return out;
}

/// The network: loss, and gradients by torchvision's names. Tensors are in torchvision's layout.
class ResNet {
public:
    using Tensors = std::map<std::string, Doubles>;

    ResNet(const nn::ResNet18Plan& plan, Tensors weights, double epsilon)
        : plan_(plan), weights_(std::move(weights)), epsilon_(epsilon) {}

    Tensors& weights() { return weights_; }

    /// The mean loss; `with_gradients` leaves them in `gradients`.
    double loss(const Images& images, const std::vector<std::int32_t>& labels, bool with_gradients) {
        Layer& stem = convolve(0, images);
        Images activated = stem.norm->out;
        relu(activated);
        std::vector<std::size_t> from;
        const Images pooled = max_pool(activated, from);
        std::vector<Images> ins{pooled};
        std::vector<Images> inners;
        for (const nn::ResNetBlock& block : plan_.blocks()) {
            inners.push_back(convolve(block.first, ins.back()).norm->out);
            relu(inners.back());
            Images out = convolve(block.second, inners.back()).norm->out;
            const bool is_identity = block.downsample == nn::ResNetBlock::none;
            add(out, is_identity ? ins.back() : convolve(block.downsample, ins.back()).norm->out);
            relu(out);
            ins.push_back(out);
        }
        Images slope = ins.back();
        const double result = head(labels, slope);
        if (!with_gradients)
            return result;
        for (std::size_t i = plan_.blocks().size(); i-- > 0;)
            slope = block_slope(plan_.blocks()[i], ins[i], inners[i], ins[i + 1], slope);
        Images unpooled(activated.n, activated.c, activated.h, activated.w);
        for (std::size_t j = 0; j < from.size(); ++j)
            unpooled.values[from[j]] += slope.values[j];
        relu_slope(activated, unpooled);
        convolution_slope(0, images, unpooled);
        return result;
    }

    Tensors gradients;
    /// Of each convolution's output, after `loss`.
    const Norm& norm(std::size_t conv) const { return *layers_.at(conv).norm; }
    Doubles logits; ///< [N, classes], of `loss`

private:
    struct Layer {
        std::shared_ptr<Norm> norm;
    };

    Layer& convolve(std::size_t index, const Images& in) {
        const nn::ResNetConv& conv = plan_.convs()[index];
        const nn::Conv2dShape& shape = conv.shape;
        const Images out =
            convolution(in, weights_.at(conv.name + ".weight"), Doubles(shape.out_channels, 0.0),
                        shape.kernel, shape.stride, shape.padding);
        layers_[index].norm = std::make_shared<Norm>(out, weights_.at(conv.norm_name + ".weight"),
                                                     weights_.at(conv.norm_name + ".bias"), epsilon_);
        return layers_[index];
    }

    /// The gradient of a convolution's input from that of its normalised output.
    Images convolution_slope(std::size_t index, const Images& in, const Images& slope) {
        const nn::ResNetConv& conv = plan_.convs()[index];
        const nn::Conv2dShape& shape = conv.shape;
        const Gradients norm =
            layers_.at(index).norm->gradients(slope, weights_.at(conv.norm_name + ".weight"));
        gradients[conv.norm_name + ".weight"] = norm.weight;
        gradients[conv.norm_name + ".bias"] = norm.bias;
        const Gradients result = convolution_gradients(in, weights_.at(conv.name + ".weight"), norm.input,
                                                       shape.kernel, shape.stride, shape.padding);
        gradients[conv.name + ".weight"] = result.weight;
        return result.input;
    }

    Images block_slope(const nn::ResNetBlock& block, const Images& in, const Images& inner, const Images& out,
                       Images slope) {
        relu_slope(out, slope);
        Images middle = convolution_slope(block.second, inner, slope);
        relu_slope(inner, middle);
        Images result = convolution_slope(block.first, in, middle);
        add(result, block.downsample == nn::ResNetBlock::none
                        ? slope
                        : convolution_slope(block.downsample, in, slope));
        return result;
    }

    /// Mean, linear layer and cross-entropy of `maps`, which becomes their gradient.
    double head(const std::vector<std::int32_t>& labels, Images& maps) {
        const Doubles& weight = weights_.at("fc.weight");
        const Doubles& bias = weights_.at("fc.bias");
        const std::size_t classes = bias.size();
        const std::size_t pixels = maps.h * maps.w;
        Doubles& weight_slope = gradients["fc.weight"] = Doubles(weight.size(), 0.0);
        Doubles& bias_slope = gradients["fc.bias"] = Doubles(classes, 0.0);
        logits.assign(maps.n * classes, 0.0);
        double loss = 0.0;
        for (std::size_t i = 0; i < maps.n; ++i) {
            Doubles features(maps.c, 0.0);
            for (std::size_t j = 0; j < maps.c * pixels; ++j)
                features[j / pixels] += maps.values[i * maps.c * pixels + j] / static_cast<double>(pixels);
            double* const row = &logits[i * classes];
            double sum = 0.0;
            for (std::size_t o = 0; o < classes; ++o) {
                row[o] = bias[o];
                for (std::size_t c = 0; c < maps.c; ++c)
                    row[o] += weight[o * maps.c + c] * features[c];
                sum += std::exp(row[o]);
            }
            const auto label = static_cast<std::size_t>(labels[i]);
            loss += (std::log(sum) - row[label]) / static_cast<double>(maps.n);
            Doubles feature_slope(maps.c, 0.0);
            for (std::size_t o = 0; o < classes; ++o) {
                const double slope =
                    (std::exp(row[o]) / sum - (o == label ? 1.0 : 0.0)) / static_cast<double>(maps.n);
                bias_slope[o] += slope;
                for (std::size_t c = 0; c < maps.c; ++c) {
                    weight_slope[o * maps.c + c] += slope * features[c];
                    feature_slope[c] += slope * weight[o * maps.c + c];
                }
            }
            for (std::size_t j = 0; j < maps.c * pixels; ++j)
                maps.values[i * maps.c * pixels + j] =
                    feature_slope[j / pixels] / static_cast<double>(pixels);
        }
        return loss;
    }

    const nn::ResNet18Plan& plan_;
    Tensors weights_;
    double epsilon_;
    std::map<std::size_t, Layer> layers_;
};

} // namespace naive
