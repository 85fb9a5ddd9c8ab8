// Bodies of elementwise.hpp, the same for both backends.
#pragma once

#include <nn/elementwise/elementwise.hpp>
#include <nn/elementwise/for_each.hpp>

namespace nn {
namespace detail {

template <class T>
struct AddBias {
    T* values;
    const float* bias;
    std::size_t columns;
    bool relu;

    SLUICE_HOST_DEVICE void operator()(std::size_t row, std::size_t column) const {
        const float sum = static_cast<float>(values[row * columns + column]) + bias[column];
        values[row * columns + column] = T(relu && sum < 0.0f ? 0.0f : sum);
    }
};

template <class T>
struct ReluGradient {
    const T* output;
    T* gradient;

    SLUICE_HOST_DEVICE void operator()(std::size_t i) const {
        gradient[i] = static_cast<float>(output[i]) > 0.0f ? gradient[i] : T(0.0f);
    }
};

/// Fills four elements, the numbers of one block of random bits.
struct FillUniform {
    float* values;
    std::size_t count;
    float bound;
    sluice::RandomKey key;

    SLUICE_HOST_DEVICE void operator()(std::size_t block) const {
        sluice::RandomKey mine = key;
        mine.sample += block;
        sluice::CountedRandom random{mine};
        for (std::size_t i = 4 * block; i < 4 * block + 4 && i < count; ++i) {
            // Exact but for the last product, so that contracting it changes nothing.
            values[i] = (2.0f * random.uniform() - 1.0f) * bound;
        }
    }
};

struct Repeat {
    float* values;
    std::size_t period;

    SLUICE_HOST_DEVICE void operator()(std::size_t i) const { values[period + i] = values[i % period]; }
};

struct DescentFactors {
    const float* rate;
    float* factors;

    SLUICE_HOST_DEVICE void operator()(std::size_t) const {
        factors[0] = -rate[0];
        factors[1] = 1.0f;
    }
};

struct AddScaled {
    const float* from;
    const float* factors;
    float* to;

    SLUICE_HOST_DEVICE void operator()(std::size_t i) const { to[i] += factors[0] * from[i]; }
};

struct FlipWeights {
    const float* weights;
    float* flipped;
    std::size_t inputs;
    std::size_t outputs;

    SLUICE_HOST_DEVICE void operator()(std::size_t row, std::size_t input) const {
        const std::size_t tap = quotient(row, outputs);
        const std::size_t output = row - tap * outputs;
        flipped[row * inputs + input] = weights[((8 - tap) * inputs + input) * outputs + output];
    }
};

} // namespace detail

template <sluice::Backend B>
void add_bias(sluice::BasicStreamRef<B> stream, MatrixArgument<B> values, SpanArgument<const float, B> bias,
              bool relu) {
    require_size("add_bias: elements of the bias", bias.size(), values.columns());
    for_each(stream, values.rows(), values.columns(),
             detail::AddBias<float>{values.data(), bias.data(), values.columns(), relu});
}

template <sluice::Backend B>
void add_bias(sluice::BasicStreamRef<B> stream, std::type_identity_t<Matrix<Bfloat16, B>> values,
              SpanArgument<const float, B> bias, bool relu) {
    require_size("add_bias: elements of the bias", bias.size(), values.columns());
    for_each(stream, values.rows(), values.columns(),
             detail::AddBias<Bfloat16>{values.data(), bias.data(), values.columns(), relu});
}

template <sluice::Backend B>
void relu_gradient(sluice::BasicStreamRef<B> stream, SpanArgument<const float, B> output,
                   SpanArgument<float, B> gradient) {
    require_size("relu_gradient: elements of the gradient", gradient.size(), output.size());
    for_each(stream, gradient.size(), detail::ReluGradient<float>{output.data(), gradient.data()});
}

template <sluice::Backend B>
void relu_gradient(sluice::BasicStreamRef<B> stream, SpanArgument<const Bfloat16, B> output,
                   SpanArgument<Bfloat16, B> gradient) {
    require_size("relu_gradient: elements of the gradient", gradient.size(), output.size());
    for_each(stream, gradient.size(), detail::ReluGradient<Bfloat16>{output.data(), gradient.data()});
}

template <sluice::Backend B>
void fill_uniform(sluice::BasicStreamRef<B> stream, SpanArgument<float, B> values, float bound,
                  const sluice::RandomKey& key) {
    for_each(stream, (values.size() + 3) / 4, detail::FillUniform{values.data(), values.size(), bound, key});
}

template <sluice::Backend B>
void repeat(sluice::BasicStreamRef<B> stream, SpanArgument<float, B> values, std::size_t period) {
    if (period == 0 || values.size() % period != 0 || values.empty()) {
        throw sluice::Error("repeat: " + std::to_string(values.size()) + " elements are no multiple of " +
                            std::to_string(period));
    }
    for_each(stream, values.size() - period, detail::Repeat{values.data(), period});
}

template <sluice::Backend B>
void descent_factors(sluice::BasicStreamRef<B> stream, SpanArgument<const float, B> rate,
                     SpanArgument<float, B> factors) {
    require_size("descent_factors: elements of the rate", rate.size(), 1);
    require_size("descent_factors: factors", factors.size(), 2);
    for_each(stream, 1, detail::DescentFactors{rate.data(), factors.data()});
}

template <sluice::Backend B>
void add_scaled(sluice::BasicStreamRef<B> stream, SpanArgument<const float, B> from,
                SpanArgument<const float, B> factors, SpanArgument<float, B> to) {
    require_size("add_scaled: factors", factors.size(), 2);
    require_size("add_scaled: elements of the result", to.size(), from.size());
    for_each(stream, to.size(), detail::AddScaled{from.data(), factors.data(), to.data()});
}

template <sluice::Backend B>
void flip_weights(sluice::BasicStreamRef<B> stream, ConstMatrixArgument<B> weights,
                  MatrixArgument<B> flipped) {
    require_size("flip_weights: rows of the weights", weights.rows(), 9 * flipped.columns());
    require_size("flip_weights: rows of the result", flipped.rows(), 9 * weights.columns());
    for_each(stream, flipped.rows(), flipped.columns(),
             detail::FlipWeights{weights.data(), flipped.data(), flipped.columns(), weights.columns()});
}

} // namespace nn
