// Bodies of elementwise.hpp, the same for both backends.
#pragma once

#include <nn/core/vectors.hpp>
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

template <class T, std::size_t Width>
struct ReluGradient {
    const T* output;
    T* gradient;

    SLUICE_HOST_DEVICE void operator()(std::size_t i) const {
        float outputs[Width];
        float gradients[Width];
        load(output + Width * i, outputs);
        load(gradient + Width * i, gradients);
        for (std::size_t j = 0; j < Width; ++j)
            gradients[j] = outputs[j] > 0.0f ? gradients[j] : 0.0f;
        store(gradient + Width * i, gradients);
    }
};

template <class B, class T>
void relu_gradient_of(sluice::BasicStreamRef<B> stream, SpanArgument<const T, B> output,
                      SpanArgument<T, B> gradient) {
    require_size("relu_gradient: elements of the gradient", gradient.size(), output.size());
    const auto address = [](const auto& span) { return reinterpret_cast<std::uintptr_t>(span.data()); };
    const bool aligned = (address(output) | address(gradient)) % 16 == 0;
    with_vector_width<B, T>(aligned ? gradient.size() : 1, [&](auto width) {
        for_each(stream, gradient.size() / width, ReluGradient<T, width()>{output.data(), gradient.data()});
    });
}

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

/// Takes the step of four elements.
struct TakeSteps {
    float* gradient;
    const StepPart* parts;
    std::size_t last; // part
    const float* factors;

    SLUICE_HOST_DEVICE void operator()(std::size_t four) const {
        const std::size_t i = 4 * four;
        std::size_t p = last; // from the end, where a network's largest layers are
        while (p > 0 && parts[p].begin > i)
            --p;
        const StepPart part = parts[p];
        const std::size_t first = i - part.begin;
        float moved[4];
        load(gradient + i, moved);
        if (first + 4 <= part.size) {
            float values[4];
            load(part.weights + first, values);
            for (std::size_t k = 0; k < 4; ++k)
                values[k] += factors[0] * moved[k];
            store(part.weights + first, values);
        } else {
            for (std::size_t k = 0; first + k < part.size; ++k)
                part.weights[first + k] += factors[0] * moved[k];
        }
        for (float& value : moved)
            value = 0.0f;
        store(gradient + i, moved);
    }
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
    detail::relu_gradient_of<B, float>(stream, output, gradient);
}

template <sluice::Backend B>
void relu_gradient(sluice::BasicStreamRef<B> stream, SpanArgument<const Bfloat16, B> output,
                   SpanArgument<Bfloat16, B> gradient) {
    detail::relu_gradient_of<B, Bfloat16>(stream, output, gradient);
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
void take_steps(sluice::BasicStreamRef<B> stream, SpanArgument<float, B> gradient,
                SpanArgument<const StepPart, B> parts, SpanArgument<const float, B> factors) {
    require_size("take_steps: factors", factors.size(), 2);
    if (parts.empty() || gradient.size() % 4 != 0) {
        throw sluice::Error("take_steps: " + std::to_string(parts.size()) + " parts of a gradient of " +
                            std::to_string(gradient.size()) +
                            " elements; expected at least one part, and a multiple of 4 elements");
    }
    for_each(stream, gradient.size() / 4,
             detail::TakeSteps{gradient.data(), parts.data(), parts.size() - 1, factors.data()});
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
