// A layer's maps, weights and gradient, on the host and on a device, and what its products are to be.
#pragma once

#include <string>
#include <vector>

#include <nn/elementwise/sums.hpp>
#include <nn/gemm/gemm.hpp>

#include "nn/support.hpp"

namespace nn_test {

using StreamRef = sluice::BasicStreamRef<B>;

/// A layer's weights [inputs, columns], whose columns are `copies` times as many outputs, and maps of `rows` rows.
struct LayerCase {
    std::size_t rows, inputs, columns, copies;
    std::vector<float> in, weights, bias, gradient;

    std::size_t outputs() const { return columns / copies; }
};

inline LayerCase make_case(Random& random, std::size_t rows, std::size_t inputs, std::size_t columns) {
    LayerCase c{rows, inputs, columns, columns % 4 == 0 && random.between(0, 1) == 1 ? std::size_t{4} : 1,
                {},   {},     {},      {}};
    c.in = random.numbers(rows * inputs);
    c.weights = random.numbers(inputs * columns);
    c.gradient = random.numbers(rows * columns);
    c.bias = random.numbers(c.outputs());
    c.bias.resize(columns);
    for (std::size_t i = c.outputs(); i < columns; ++i)
        c.bias[i] = c.bias[i - c.outputs()];
    return c;
}

/// Lengths below, at and above what a block takes; a long sum over few elements; a few rows of many.
inline std::vector<LayerCase> draw_cases(Random& random) {
    const auto four = [&](std::size_t most) { return 4 * random.between(1, most / 4); };
    std::vector<LayerCase> cases;
    cases.push_back(make_case(random, random.between(1, 8), four(400), four(300)));
    cases.push_back(make_case(random, random.between(9, 32), four(400), four(300)));
    cases.push_back(make_case(random, four(200), four(200), four(200)));
    cases.push_back(make_case(random, 64, 128, 192));
    cases.push_back(make_case(random, four(5000), four(64), four(64)));
    cases.push_back(make_case(random, four(32), four(3000), four(64)));
    cases.push_back(make_case(random, four(32), four(64), four(3000)));
    cases.push_back(
        make_case(random, random.between(1, 100), random.between(1, 100), random.between(1, 100)));
    return cases;
}

/// What a layer does with one batch, in device memory.
class LayerOnDevice {
public:
    LayerOnDevice(const Stream& stream, const LayerCase& c)
        : case_(c), in_(device(c.in)), weights_(device(c.weights)), bias_(device(c.bias)),
          gradient_(device(c.gradient)), factors_(device(std::vector<float>{-0.125f, 1.0f})),
          out_(poisoned<float>(stream, c.rows * c.columns)),
          in_gradient_(poisoned<float>(stream, c.rows * c.inputs)),
          scratch_(poisoned<double>(stream, nn::sum_scratch(c.rows * c.copies, c.outputs()))) {}

    void forward(StreamRef stream, nn::Gemm<B>& gemm, bool relu, bool settled) {
        gemm.multiply(stream, in(), weights(), {out_, case_.rows, case_.columns},
                      {.bias = bias_, .relu = relu, .prefetch_b = settled});
    }
    void input_gradient(StreamRef stream, nn::Gemm<B>& gemm, bool masked, bool settled) {
        nn::Epilogue<B> options{.transpose_b = true, .prefetch_b = settled};
        if (masked)
            options.relu_output = in_;
        gemm.multiply(stream, gradient(), weights(), {in_gradient_, case_.rows, case_.inputs}, options);
    }
    void update(StreamRef stream, nn::Gemm<B>& gemm) {
        gemm.multiply(stream, in(), gradient(), {weights_, case_.inputs, case_.columns},
                      {.transpose_a = true,
                       .device_factors = factors_,
                       .bias_step = {.bias = bias_, .outputs = case_.outputs(), .scratch = scratch_.span()}});
    }
    nn::WeightUpdate<B> step() {
        return {.in = in(),
                .gradient = gradient(),
                .weights = {weights_, case_.inputs, case_.columns},
                .bias_step = {.bias = bias_, .outputs = case_.outputs(), .scratch = scratch_.span()}};
    }
    sluice::DeviceSpan<const float, B> factors() const { return factors_; }
    void all(StreamRef stream, nn::Gemm<B>& gemm) {
        forward(stream, gemm, true, false);
        input_gradient(stream, gemm, true, true);
        update(stream, gemm);
    }

    /// Everything that `all` writes.
    std::vector<std::vector<float>> results(const Stream& stream) const {
        return {host(stream, out_), host(stream, in_gradient_), host(stream, weights_), host(stream, bias_)};
    }

private:
    nn::Matrix<const float, B> in() const { return {in_, case_.rows, case_.inputs}; }
    nn::Matrix<const float, B> weights() const { return {weights_, case_.inputs, case_.columns}; }
    nn::Matrix<const float, B> gradient() const { return {gradient_, case_.rows, case_.columns}; }

    const LayerCase& case_;
    Buffer<float> in_, weights_, bias_, gradient_, factors_, out_, in_gradient_;
    Buffer<double> scratch_;
};

inline std::vector<double> expected_forward(const LayerCase& c, bool relu) {
    std::vector<double> out(c.rows * c.columns);
    for (std::size_t r = 0; r < c.rows; ++r) {
        for (std::size_t i = 0; i < c.inputs; ++i)
            for (std::size_t o = 0; o < c.columns; ++o)
                out[r * c.columns + o] += static_cast<double>(c.in[r * c.inputs + i]) *
                                          static_cast<double>(c.weights[i * c.columns + o]);
        for (std::size_t o = 0; o < c.columns; ++o) {
            double& value = out[r * c.columns + o];
            value += static_cast<double>(c.bias[o]);
            if (relu && value < 0.0)
                value = 0.0;
        }
    }
    return out;
}

inline std::vector<double> expected_input_gradient(const LayerCase& c, bool masked) {
    std::vector<double> out(c.rows * c.inputs);
    for (std::size_t r = 0; r < c.rows; ++r)
        for (std::size_t i = 0; i < c.inputs; ++i)
            for (std::size_t o = 0; o < c.columns && !(masked && c.in[r * c.inputs + i] <= 0.0f); ++o)
                out[r * c.inputs + i] += static_cast<double>(c.gradient[r * c.columns + o]) *
                                         static_cast<double>(c.weights[i * c.columns + o]);
    return out;
}

/// How far the weights and the bias move.
struct Moved {
    std::vector<double> weights, bias;
};

inline Moved expected_moves(const LayerCase& c) {
    Moved moved{std::vector<double>(c.inputs * c.columns), std::vector<double>(c.columns)};
    for (std::size_t r = 0; r < c.rows; ++r) {
        for (std::size_t o = 0; o < c.columns; ++o) {
            const double gradient = -0.125 * static_cast<double>(c.gradient[r * c.columns + o]);
            for (std::size_t i = 0; i < c.inputs; ++i)
                moved.weights[i * c.columns + o] += gradient * static_cast<double>(c.in[r * c.inputs + i]);
            for (std::size_t copy = o % c.outputs(); copy < c.columns; copy += c.outputs())
                moved.bias[copy] += gradient;
        }
    }
    return moved;
}

inline std::vector<double> difference(const std::vector<float>& after, const std::vector<float>& before) {
    std::vector<double> result(after.size());
    for (std::size_t i = 0; i < after.size(); ++i)
        result[i] = static_cast<double>(after[i]) - static_cast<double>(before[i]);
    return result;
}

} // namespace nn_test
