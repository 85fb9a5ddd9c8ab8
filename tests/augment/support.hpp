// What the tests of examples/augment share: images in float64 on the host, operators on them in plain loops, and a way to
// run chains on the backend under test.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include <augment/apply.hpp>
#include <augment/published.hpp>
#include <sluice/sluice.hpp>

#include "augment/chains.hpp"
#include "nn/support.hpp"
#include "support/doctest.hpp"

namespace augment_test {

using augment::ImageShape;
using augment::Layout;
using augment::SampleParameters;
using nn_test::Buffer;
using nn_test::Random;
using nn_test::Stream;

/// One image, planar, in float64.
struct Image {
    ImageShape shape;
    std::vector<double> values;

    Image() = default;
    explicit Image(ImageShape s)
        : shape(s), values(static_cast<std::size_t>(s.channels) * static_cast<std::size_t>(s.height) *
                           static_cast<std::size_t>(s.width)) {}
    std::size_t index(int c, int y, int x) const {
        return (static_cast<std::size_t>(c) * static_cast<std::size_t>(shape.height) +
                static_cast<std::size_t>(y)) *
                   static_cast<std::size_t>(shape.width) +
               static_cast<std::size_t>(x);
    }
    double& at(int c, int y, int x) { return values[index(c, y, x)]; }
    double at(int c, int y, int x) const { return values[index(c, y, x)]; }

    /// A new image of `s`, each value from `f(c, y, x)`.
    template <class F>
    static Image make(ImageShape s, const F& f) {
        Image result(s);
        for (int c = 0; c < s.channels; ++c) {
            for (int y = 0; y < s.height; ++y) {
                for (int x = 0; x < s.width; ++x)
                    result.at(c, y, x) = f(c, y, x);
            }
        }
        return result;
    }
};

inline Image crop(const Image& in, int top, int left, int height, int width) {
    return Image::make({in.shape.channels, height, width},
                       [&](int c, int y, int x) { return in.at(c, y + top, x + left); });
}

inline Image roi_align_crop(const Image& in, int top, int left, int height, int width) {
    return Image::make({in.shape.channels, height, width}, [&](int c, int y, int x) {
        const int y1 = std::min(y + top + 1, in.shape.height - 1);
        const int x1 = std::min(x + left + 1, in.shape.width - 1);
        return 0.25 * (in.at(c, y + top, x + left) + in.at(c, y + top, x1) + in.at(c, y1, x + left) +
                       in.at(c, y1, x1));
    });
}

/// The weights of input 0 … in - 1 for output `i` of `out`.
inline std::vector<double> resize_weights(int i, int in, int out, bool antialias) {
    const double scale = static_cast<double>(in) / out;
    const double support = antialias ? std::max(scale, 1.0) : 1.0;
    std::vector<double> weights(static_cast<std::size_t>(in));
    double total = 0.0;
    // Pixels beyond the edges repeat the edge without antialiasing, and are left out with it.
    const double centre = scale * (i + 0.5) - 0.5;
    for (int j = 0; j < in; ++j) {
        double weight = std::max(0.0, 1.0 - std::abs(j - centre) / support);
        if (support == 1.0 && ((j == 0 && centre < 0.0) || (j == in - 1 && centre > in - 1)))
            weight = 1.0;
        weights[static_cast<std::size_t>(j)] = weight;
        total += weight;
    }
    for (double& weight : weights)
        weight /= total;
    return weights;
}

inline Image resize(const Image& in, int height, int width, bool antialias) {
    const bool filtered = antialias && (in.shape.height > height || in.shape.width > width);
    Image wide({in.shape.channels, in.shape.height, width});
    for (int x = 0; x < width; ++x) {
        const auto weights = resize_weights(x, in.shape.width, width, filtered);
        for (int j = 0; j < in.shape.width; ++j) {
            const double weight = weights[static_cast<std::size_t>(j)];
            if (weight == 0.0)
                continue; // nearly all are
            for (int c = 0; c < in.shape.channels; ++c) {
                for (int y = 0; y < in.shape.height; ++y)
                    wide.at(c, y, x) += weight * in.at(c, y, j);
            }
        }
    }
    Image result({in.shape.channels, height, width});
    for (int y = 0; y < height; ++y) {
        const auto weights = resize_weights(y, in.shape.height, height, filtered);
        for (int j = 0; j < in.shape.height; ++j) {
            const double weight = weights[static_cast<std::size_t>(j)];
            if (weight == 0.0)
                continue;
            for (int c = 0; c < in.shape.channels; ++c) {
                for (int x = 0; x < width; ++x)
                    result.at(c, y, x) += weight * wide.at(c, j, x);
            }
        }
    }
    return result;
}

struct From {
    double y;
    double x;
};

inline From rotate_back(ImageShape shape, double degrees, int y, int x) {
    const double angle = degrees * 3.14159265358979323846 / 180.0;
    const double v = y - 0.5 * (shape.height - 1);
    const double u = x - 0.5 * (shape.width - 1);
    return {std::sin(angle) * u + std::cos(angle) * v + 0.5 * (shape.height - 1),
            std::cos(angle) * u - std::sin(angle) * v + 0.5 * (shape.width - 1)};
}

inline double at_or(const Image& in, int c, int y, int x, double outside) {
    return y >= 0 && x >= 0 && y < in.shape.height && x < in.shape.width ? in.at(c, y, x) : outside;
}

inline Image rotate_nearest(const Image& in, double degrees, double fill) {
    return Image::make(in.shape, [&](int c, int y, int x) {
        const From from = rotate_back(in.shape, degrees, y, x);
        return at_or(in, c, static_cast<int>(std::nearbyint(from.y)),
                     static_cast<int>(std::nearbyint(from.x)), fill);
    });
}

/// Whether a nearest pixel is in doubt: its coordinates are close to a tie.
inline bool near_tie(ImageShape shape, double degrees, int y, int x) {
    const From from = rotate_back(shape, degrees, y, x);
    const auto close = [](double v) { return std::abs(v - std::floor(v) - 0.5) < 1e-4; };
    return close(from.y) || close(from.x);
}

inline Image rotate_bilinear(const Image& in, double degrees, double fill) {
    return Image::make(in.shape, [&](int c, int y, int x) {
        const From from = rotate_back(in.shape, degrees, y, x);
        const int y0 = static_cast<int>(std::floor(from.y));
        const int x0 = static_cast<int>(std::floor(from.x));
        double value = 0.0;
        double inside = 0.0;
        for (int dy = 0; dy < 2; ++dy) {
            for (int dx = 0; dx < 2; ++dx) {
                const double weight =
                    (dy == 0 ? y0 + 1 - from.y : from.y - y0) * (dx == 0 ? x0 + 1 - from.x : from.x - x0);
                const bool there =
                    y0 + dy >= 0 && x0 + dx >= 0 && y0 + dy < in.shape.height && x0 + dx < in.shape.width;
                value += there ? weight * in.at(c, y0 + dy, x0 + dx) : 0.0;
                inside += there ? weight : 0.0;
            }
        }
        return inside * (value - fill) + fill;
    });
}

inline Image flip(const Image& in) {
    return Image::make(in.shape, [&](int c, int y, int x) { return in.at(c, y, in.shape.width - 1 - x); });
}

inline Image blur(const Image& in, int size, double sigma) {
    std::vector<double> weight(static_cast<std::size_t>(size));
    double total = 0.0;
    for (int k = 0; k < size; ++k) {
        const double d = k - size / 2;
        weight[static_cast<std::size_t>(k)] = std::exp(-d * d / (2.0 * sigma * sigma));
        total += weight[static_cast<std::size_t>(k)];
    }
    const auto mirror = [](int i, int n) { return i < 0 ? -i : (i >= n ? 2 * n - 2 - i : i); };
    return Image::make(in.shape, [&](int c, int y, int x) {
        double sum = 0.0;
        for (int j = 0; j < size; ++j) {
            for (int k = 0; k < size; ++k) {
                sum += weight[static_cast<std::size_t>(j)] * weight[static_cast<std::size_t>(k)] *
                       in.at(c, mirror(y + j - size / 2, in.shape.height),
                             mirror(x + k - size / 2, in.shape.width));
            }
        }
        return sum / (total * total);
    });
}

/// `images` one after another in a layout, in the type under test.
template <class T>
std::vector<T> packed(const std::vector<Image>& images, Layout layout) {
    std::vector<T> result;
    for (const Image& image : images) {
        const ImageShape s = image.shape;
        const std::size_t begin = result.size();
        result.resize(begin + image.values.size());
        for (int c = 0; c < s.channels; ++c) {
            for (int y = 0; y < s.height; ++y) {
                for (int x = 0; x < s.width; ++x) {
                    const std::size_t at = layout == Layout::planar
                                               ? image.index(c, y, x)
                                               : static_cast<std::size_t>((y * s.width + x) * s.channels + c);
                    result[begin + at] = static_cast<T>(static_cast<float>(image.at(c, y, x)));
                }
            }
        }
    }
    return result;
}

template <class T>
std::vector<Image> unpacked(const std::vector<T>& values, ImageShape s, Layout layout) {
    const Image like(s);
    std::vector<Image> result;
    for (std::size_t begin = 0; begin < values.size(); begin += like.values.size()) {
        result.push_back(Image::make(s, [&](int c, int y, int x) {
            const std::size_t at = layout == Layout::planar
                                       ? like.index(c, y, x)
                                       : static_cast<std::size_t>((y * s.width + x) * s.channels + c);
            return static_cast<double>(static_cast<float>(values[begin + at]));
        }));
    }
    return result;
}

/// Images of random whole numbers 0 … 255, which all types hold.
inline std::vector<Image> random_images(Random& random, int count, ImageShape shape) {
    std::vector<Image> result;
    for (int i = 0; i < count; ++i) {
        result.push_back(
            Image::make(shape, [&](int, int, int) { return static_cast<double>(random.between(0, 255)); }));
    }
    return result;
}

struct Layouts {
    Layout in = Layout::planar;
    Layout out = Layout::planar;
};

/// What a chain makes of `images` on the backend under test, which runs it into poisoned memory.
template <class In, class Out, class C>
std::vector<Out> run_packed(const C& chain, const std::vector<Image>& images,
                            const std::vector<SampleParameters>& parameters, Layouts layouts = {}) {
    const Stream stream;
    const ImageShape shape = images.at(0).shape;
    const ImageShape out_shape = chain.output_shape(shape);
    const auto in = nn_test::device(packed<In>(images, layouts.in));
    const auto table = nn_test::device(parameters);
    Buffer<Out> out = nn_test::poisoned<Out>(stream, images.size() * Image(out_shape).values.size());
    run_chain<B>(stream, chain, augment::Images<const In, B>(in.span(), shape, layouts.in),
                 augment::ParameterSource<B>(table.span()),
                 augment::Images<Out, B>(out.span(), out_shape, layouts.out));
    return nn_test::host(stream, out);
}

template <class In, class Out, class C>
std::vector<Image> run(const C& chain, const std::vector<Image>& images,
                       const std::vector<SampleParameters>& parameters, Layouts layouts = {}) {
    return unpacked(run_packed<In, Out>(chain, images, parameters, layouts),
                    chain.output_shape(images.at(0).shape), layouts.out);
}

/// The largest difference; infinite for a NaN or another shape.
inline double difference(const Image& actual, const Image& expected) {
    if (!(actual.shape == expected.shape))
        return INFINITY;
    double result = 0.0;
    for (std::size_t i = 0; i < actual.values.size(); ++i) {
        const double error = std::abs(actual.values[i] - expected.values[i]);
        result = error <= result ? result : (error > result ? error : INFINITY);
    }
    return result;
}

/// 1e-5 of the range 0 … 255.
inline constexpr double byte_tolerance = 255e-5;

} // namespace augment_test
