/// \file
/// What batch normalisation's backward pass does with each element and each channel, on every backend.
#pragma once

#include <nn/norm/detail/batch_norm.hpp>

namespace nn::detail {

/// A base of sums and maps over rows, which reads of each row its elements and their gradients.
template <class T>
struct ReadsGradients {
    const T* in;
    const T* gradient;
    std::size_t columns;

    template <std::size_t Width>
    struct Row {
        Vector<T, Width> gradient, in;
    };

    template <std::size_t Width>
    SLUICE_HOST_DEVICE Row<Width> of_row(std::size_t row, std::size_t column) const {
        const std::size_t at = row * columns + column;
        return {load_vector<Width>(gradient + at), load_vector<Width>(in + at)};
    }
};

/// What normalises an element of the latest batch.
template <std::size_t Width>
struct Normalisation {
    float centre[Width];
    float inverse[Width];

    SLUICE_HOST_DEVICE Normalisation(const float* mean, const float* inverse_deviation, std::size_t column) {
        load(mean + column, centre);
        load(inverse_deviation + column, inverse);
    }
    SLUICE_HOST_DEVICE float operator()(float value, std::size_t i) const {
        return (value - centre[i]) * inverse[i];
    }
};

/// Sums the gradient before the ReLU, by itself and times the normalised element, and writes it where it is not the one given.
template <class T>
struct GradientMoments {
    const T* in;
    const T* relu_output;
    const T* other;
    T* gradient;
    const float* mean;
    const float* inverse_deviation;
    std::size_t columns;

    template <std::size_t Width>
    using Column = Normalisation<Width>;
    template <std::size_t Width>
    struct Row {
        Vector<T, Width> gradient, other, output, in;
    };

    template <std::size_t Width>
    SLUICE_HOST_DEVICE Column<Width> of_column(std::size_t column) const {
        return {mean, inverse_deviation, column};
    }
    template <std::size_t Width>
    SLUICE_HOST_DEVICE Row<Width> of_row(std::size_t row, std::size_t column) const {
        const std::size_t at = row * columns + column;
        Row<Width> loaded;
        loaded.gradient = load_vector<Width>(gradient + at);
        loaded.other = loaded.gradient;
        loaded.output = loaded.gradient;
        if (other != nullptr)
            loaded.other = load_vector<Width>(other + at);
        if (relu_output != nullptr)
            loaded.output = load_vector<Width>(relu_output + at);
        loaded.in = load_vector<Width>(in + at);
        return loaded;
    }
    template <std::size_t Width>
    SLUICE_HOST_DEVICE void at(std::size_t row, std::size_t column, const Column<Width>& normalised,
                               const Row<Width>& loaded, float (&first)[Width],
                               float (&second)[Width]) const {
        to_floats(loaded.gradient, first);
        if (other != nullptr) {
            for (std::size_t i = 0; i < Width; ++i)
                first[i] += static_cast<float>(loaded.other.values[i]);
        }
        if (relu_output != nullptr) {
            for (std::size_t i = 0; i < Width; ++i)
                first[i] = static_cast<float>(loaded.output.values[i]) > 0.0f ? first[i] : 0.0f;
        }
        // As rounded: the sums are those of what the next kernel reads.
        if (other != nullptr || relu_output != nullptr)
            to_floats(store(gradient + row * columns + column, first), first);
        for (std::size_t i = 0; i < Width; ++i) {
            const float x = static_cast<float>(loaded.in.values[i]);
            second[i] = first[i] * normalised(x, i);
        }
    }
};

/// The same sums where a ReLU follows the normalisation at once: which elements it let pass follows from the input, so that
/// neither its output is read nor a gradient written.
template <class T>
struct ReluGradientMoments : ReadsGradients<T> {
    const float* mean;
    const float* inverse_deviation;
    const float* scale;
    const float* bias;

    template <std::size_t Width>
    struct Column {
        ScaleBias<Width> relu;
        Normalisation<Width> normalised;
    };

    template <std::size_t Width>
    SLUICE_HOST_DEVICE Column<Width> of_column(std::size_t column) const {
        return {{scale, bias, column}, {mean, inverse_deviation, column}};
    }
    template <std::size_t Width>
    SLUICE_HOST_DEVICE void at(std::size_t /*row*/, std::size_t /*column*/, const Column<Width>& constants,
                               const typename ReadsGradients<T>::template Row<Width>& loaded,
                               float (&first)[Width], float (&second)[Width]) const {
        for (std::size_t i = 0; i < Width; ++i) {
            const float x = static_cast<float>(loaded.in.values[i]);
            const float g = static_cast<float>(loaded.gradient.values[i]);
            first[i] = constants.relu.template passes<T>(x, i) ? g : 0.0f;
            second[i] = first[i] * constants.normalised(x, i);
        }
    }
};

struct FinishGradients {
    float* weight_gradient;
    float* bias_gradient;

    SLUICE_HOST_DEVICE void operator()(std::size_t c, double sum, double normalised_sum) const {
        bias_gradient[c] = static_cast<float>(sum);
        weight_gradient[c] = static_cast<float>(normalised_sum);
    }
};

/// dx = weight / deviation * (g - mean(g) - normalised * mean(g * normalised)). With `scale` and `bias`, g is 0 where the ReLU
/// after them was.
template <class T>
struct InputGradient : ReadsGradients<T> {
    const float* scale;
    const float* bias;
    const float* weight;
    const float* mean;
    const float* inverse_deviation;
    const float* weight_gradient;
    const float* bias_gradient;
    T* in_gradient;
    float inverse_rows;

    template <std::size_t Width>
    struct Column {
        ScaleBias<Width> relu;
        float centre[Width], of_gradient[Width], of_input[Width], offset[Width];
    };

    template <std::size_t Width>
    SLUICE_HOST_DEVICE Column<Width> of_column(std::size_t column) const {
        Column<Width> loaded{{scale, bias, column}, {}, {}, {}, {}};
        const Normalisation<Width> normalised(mean, inverse_deviation, column);
        load(weight + column, loaded.of_gradient);
        load(weight_gradient + column, loaded.of_input);
        load(bias_gradient + column, loaded.offset);
        for (std::size_t i = 0; i < Width; ++i) {
            loaded.centre[i] = normalised.centre[i];
            loaded.of_gradient[i] *= normalised.inverse[i];
            const float of_mean = -inverse_rows * loaded.of_gradient[i];
            loaded.of_input[i] *= of_mean * normalised.inverse[i];
            loaded.offset[i] *= of_mean;
        }
        return loaded;
    }
    template <std::size_t Width>
    SLUICE_HOST_DEVICE void at(std::size_t row, std::size_t column, const Column<Width>& constants,
                               const typename ReadsGradients<T>::template Row<Width>& loaded) const {
        float g[Width];
        to_floats(loaded.gradient, g);
        for (std::size_t i = 0; i < Width; ++i) {
            const float x = static_cast<float>(loaded.in.values[i]);
            if (scale != nullptr && !constants.relu.template passes<T>(x, i))
                g[i] = 0.0f;
            g[i] = constants.of_gradient[i] * g[i] +
                   (constants.of_input[i] * (x - constants.centre[i]) + constants.offset[i]);
        }
        store(in_gradient + row * this->columns + column, g);
    }
};

template <class T>
struct ColumnSums : ReadsElements<T> {
    template <std::size_t Width>
    struct Column {};

    template <std::size_t Width>
    SLUICE_HOST_DEVICE Column<Width> of_column(std::size_t /*column*/) const {
        return {};
    }
    template <std::size_t Width>
    SLUICE_HOST_DEVICE void at(std::size_t /*row*/, std::size_t /*column*/,
                               const Column<Width>& /*constants*/, const Vector<T, Width>& loaded,
                               float (&first)[Width], float (&second)[Width]) const {
        to_floats(loaded, first);
        for (std::size_t i = 0; i < Width; ++i)
            second[i] = 0.0f;
    }
};

struct KeepFirst {
    float* sums;

    SLUICE_HOST_DEVICE void operator()(std::size_t column, double first, double /*second*/) const {
        sums[column] = static_cast<float>(first);
    }
};

} // namespace nn::detail
