// Convolutions in float64 on planar images and PyTorch's weights, as their definitions say.
#pragma once

#include <cstddef>
#include <vector>

#include <nn/layers/morton_order.hpp>

namespace naive {

using Doubles = std::vector<double>;

/// Images [n, c, h, w].
struct Images {
    std::size_t n, c, h, w;
    Doubles values;

    Images(std::size_t n_, std::size_t c_, std::size_t h_, std::size_t w_)
        : n(n_), c(c_), h(h_), w(w_), values(n_ * c_ * h_ * w_, 0.0) {}
    double& at(std::size_t i, std::size_t channel, std::size_t y, std::size_t x) {
        return values[((i * c + channel) * h + y) * w + x];
    }
    double at(std::size_t i, std::size_t channel, std::size_t y, std::size_t x) const {
        return values[((i * c + channel) * h + y) * w + x];
    }
};

/// What a layer's inputs, weight and bias contribute to a loss.
struct Gradients {
    Images input;
    Doubles weight;
    Doubles bias;
};

/// Rows in the order of `order`, as planar images.
template <class T>
Images from_rows(const std::vector<T>& rows, const nn::MortonOrder& order, std::size_t channels) {
    Images images(rows.size() / channels / order.pixels(), channels, order.height(), order.width());
    for (std::size_t row = 0; row < rows.size() / channels; ++row) {
        const std::size_t raster = static_cast<std::size_t>(order.raster_of_row()[row % order.pixels()]);
        for (std::size_t c = 0; c < channels; ++c) {
            images.at(row / order.pixels(), c, raster / order.width(), raster % order.width()) =
                static_cast<double>(rows[row * channels + c]);
        }
    }
    return images;
}

/// The same the other way.
inline Doubles to_rows(const Images& images, const nn::MortonOrder& order) {
    Doubles rows(images.values.size());
    for (std::size_t row = 0; row < images.n * order.pixels(); ++row) {
        const std::size_t raster = static_cast<std::size_t>(order.raster_of_row()[row % order.pixels()]);
        for (std::size_t c = 0; c < images.c; ++c) {
            rows[row * images.c + c] =
                images.at(row / order.pixels(), c, raster / order.width(), raster % order.width());
        }
    }
    return rows;
}

/// Calls `visit(i, ci, co, y_in, x_in, y_out, x_out, tap)` for every product of a convolution.
template <class Visit>
void visit_convolution(const Images& in, const Images& out, std::size_t kernel, std::size_t stride,
                       std::size_t padding, const Visit& visit) {
    for (std::size_t i = 0; i < in.n; ++i)
        for (std::size_t co = 0; co < out.c; ++co)
            for (std::size_t ci = 0; ci < in.c; ++ci)
                for (std::size_t y = 0; y < out.h; ++y)
                    for (std::size_t x = 0; x < out.w; ++x)
                        for (std::size_t tap = 0; tap < kernel * kernel; ++tap) {
                            const std::size_t yi = y * stride + tap / kernel;
                            const std::size_t xi = x * stride + tap % kernel;
                            if (yi < padding || xi < padding || yi >= in.h + padding || xi >= in.w + padding)
                                continue;
                            visit(i, ci, co, yi - padding, xi - padding, y, x, tap);
                        }
}

/// Conv2d with a weight [co, ci, kernel, kernel].
inline Images convolution(const Images& in, const Doubles& weight, const Doubles& bias, std::size_t kernel,
                          std::size_t stride, std::size_t padding) {
    Images out(in.n, bias.size(), (in.h + 2 * padding - kernel) / stride + 1,
               (in.w + 2 * padding - kernel) / stride + 1);
    for (std::size_t j = 0; j < out.values.size(); ++j)
        out.values[j] = bias[j / (out.h * out.w) % out.c];
    visit_convolution(in, out, kernel, stride, padding,
                      [&](auto i, auto ci, auto co, auto yi, auto xi, auto y, auto x, auto tap) {
                          out.at(i, co, y, x) +=
                              in.at(i, ci, yi, xi) * weight[(co * in.c + ci) * kernel * kernel + tap];
                      });
    return out;
}

/// The sums over each channel.
inline Doubles channel_sums(const Images& images) {
    Doubles sums(images.c, 0.0);
    for (std::size_t j = 0; j < images.values.size(); ++j)
        sums[j / (images.h * images.w) % images.c] += images.values[j];
    return sums;
}

inline Gradients convolution_gradients(const Images& in, const Doubles& weight, const Images& out_gradient,
                                       std::size_t kernel, std::size_t stride, std::size_t padding) {
    Gradients result{Images(in.n, in.c, in.h, in.w), Doubles(weight.size(), 0.0), channel_sums(out_gradient)};
    visit_convolution(in, out_gradient, kernel, stride, padding,
                      [&](auto i, auto ci, auto co, auto yi, auto xi, auto y, auto x, auto tap) {
                          const std::size_t place = (co * in.c + ci) * kernel * kernel + tap;
                          result.input.at(i, ci, yi, xi) += out_gradient.at(i, co, y, x) * weight[place];
                          result.weight[place] += out_gradient.at(i, co, y, x) * in.at(i, ci, yi, xi);
                      });
    return result;
}

/// ConvTranspose2d, stride equal to the kernel, with a weight [ci, co, kernel, kernel]: what a convolution would be
/// if its output were the input.
inline Images transposed_convolution(const Images& in, const Doubles& weight, const Doubles& bias,
                                     std::size_t kernel) {
    Images out(in.n, bias.size(), in.h * kernel, in.w * kernel);
    for (std::size_t j = 0; j < out.values.size(); ++j)
        out.values[j] = bias[j / (out.h * out.w) % out.c];
    visit_convolution(out, in, kernel, kernel, 0,
                      [&](auto i, auto co, auto ci, auto yo, auto xo, auto y, auto x, auto tap) {
                          out.at(i, co, yo, xo) +=
                              in.at(i, ci, y, x) * weight[(ci * out.c + co) * kernel * kernel + tap];
                      });
    return out;
}

inline Gradients transposed_convolution_gradients(const Images& in, const Doubles& weight,
                                                  const Images& out_gradient, std::size_t kernel) {
    Gradients result{Images(in.n, in.c, in.h, in.w), Doubles(weight.size(), 0.0), channel_sums(out_gradient)};
    visit_convolution(out_gradient, in, kernel, kernel, 0,
                      [&](auto i, auto co, auto ci, auto yo, auto xo, auto y, auto x, auto tap) {
                          const std::size_t place = (ci * out_gradient.c + co) * kernel * kernel + tap;
                          result.input.at(i, ci, y, x) += out_gradient.at(i, co, yo, xo) * weight[place];
                          result.weight[place] += out_gradient.at(i, co, yo, xo) * in.at(i, ci, y, x);
                      });
    return result;
}

inline Doubles doubles(const std::vector<float>& values) { return {values.begin(), values.end()}; }

} // namespace naive
