/// \file
/// What batch normalisation does with each element and each channel, on every backend.
#pragma once

#include <cmath>
#include <cstddef>

#include <nn/core/vectors.hpp>

namespace nn::detail {

/// Sums of x and x², both less the channel's first element: a mean far from 0 then costs no digits.
template <class T>
struct CentredMoments {
    const T* in;
    std::size_t columns;

    template <std::size_t Width>
    struct Column {
        float centre[Width];
    };
    template <std::size_t Width>
    using Row = Vector<T, Width>;

    template <std::size_t Width>
    SLUICE_HOST_DEVICE Column<Width> of_column(std::size_t column) const {
        Column<Width> loaded;
        load(in + column, loaded.centre);
        return loaded;
    }
    template <std::size_t Width>
    SLUICE_HOST_DEVICE Row<Width> of_row(std::size_t row, std::size_t column) const {
        return load_vector<Width>(in + row * columns + column);
    }
    template <std::size_t Width>
    SLUICE_HOST_DEVICE void at(std::size_t /*row*/, std::size_t /*column*/, const Column<Width>& constants,
                               const Row<Width>& loaded, float (&first)[Width],
                               float (&second)[Width]) const {
        to_floats(loaded, first);
        for (std::size_t i = 0; i < Width; ++i) {
            first[i] -= constants.centre[i];
            second[i] = first[i] * first[i];
        }
    }
};

template <class T>
struct FinishStatistics {
    const T* in; ///< or null, if the sums are of the elements as they are
    const float* weight;
    const float* bias;
    float* running_mean;
    float* running_variance;
    float* mean;
    float* inverse_deviation;
    float* fused_scale;
    float* fused_bias;
    double rows;
    float epsilon;
    float momentum;

    SLUICE_HOST_DEVICE void operator()(std::size_t c, double sum, double square_sum) const {
        const double shifted = sum / rows;
        const double centre = in == nullptr ? 0.0 : static_cast<double>(static_cast<float>(in[c]));
        const double squares = square_sum / rows - shifted * shifted;
        const double variance = squares > 0.0 ? squares : squares * 0.0; // not below 0; NaN stays NaN
        const double inverse = 1.0 / std::sqrt(variance + static_cast<double>(epsilon));
        mean[c] = static_cast<float>(centre + shifted);
        inverse_deviation[c] = static_cast<float>(inverse);
        const double scale = static_cast<double>(weight[c]) * inverse;
        fused_scale[c] = static_cast<float>(scale);
        fused_bias[c] = static_cast<float>(static_cast<double>(bias[c]) - scale * (centre + shifted));
        const auto unbiased = static_cast<float>(variance * rows / (rows - 1.0));
        running_mean[c] += momentum * (static_cast<float>(centre + shifted) - running_mean[c]);
        running_variance[c] += momentum * (unbiased - running_variance[c]);
    }
};

struct StatisticsFromSums {
    const float* sums;
    std::size_t channels;
    FinishStatistics<float> finish;

    SLUICE_HOST_DEVICE void operator()(std::size_t c) const {
        finish(c, static_cast<double>(sums[c]), static_cast<double>(sums[channels + c]));
    }
};

struct InferenceScale {
    const float* weight;
    const float* bias;
    const float* running_mean;
    const float* running_variance;
    float* fused_scale;
    float* fused_bias;
    float epsilon;

    SLUICE_HOST_DEVICE void operator()(std::size_t c) const {
        const double variance = static_cast<double>(running_variance[c]) + static_cast<double>(epsilon);
        const double scale = static_cast<double>(weight[c]) / std::sqrt(variance);
        fused_scale[c] = static_cast<float>(scale);
        fused_bias[c] =
            static_cast<float>(static_cast<double>(bias[c]) - scale * static_cast<double>(running_mean[c]));
    }
};

template <class T>
struct FoldWeights {
    const float* weights;
    const float* scale;
    T* folded;
    std::size_t columns;

    SLUICE_HOST_DEVICE void operator()(std::size_t row, std::size_t column) const {
        const std::size_t at = row * columns + column;
        folded[at] = static_cast<T>(scale != nullptr ? weights[at] * scale[row] : weights[at]);
    }
};

/// `scale * value + bias`, in one expression, which a device rounds once, in all kernels alike. A missing scale is 1, a bias 0.
template <std::size_t Width>
struct ScaleBias {
    float scale[Width];
    float bias[Width];

    SLUICE_HOST_DEVICE ScaleBias(const float* scales, const float* biases, std::size_t column) {
        for (std::size_t i = 0; i < Width; ++i) {
            scale[i] = 1.0f;
            bias[i] = 0.0f;
        }
        if (scales != nullptr)
            load(scales + column, scale);
        if (biases != nullptr)
            load(biases + column, bias);
    }
    SLUICE_HOST_DEVICE float operator()(float value, std::size_t i) const {
        return value * scale[i] + bias[i];
    }
    /// Whether the ReLU after it lets `value` pass, as stored in `T`.
    template <class T>
    SLUICE_HOST_DEVICE bool passes(float value, std::size_t i) const {
        return static_cast<float>(static_cast<T>((*this)(value, i))) > 0.0f;
    }
};

template <class T, class Out, std::size_t Width>
struct ScaleBiasRelu {
    const T* in;
    const float* scale;
    const float* bias;
    const T* residual;
    const float* residual_scale;
    const float* residual_bias;
    Out* out;
    std::size_t columns;
    bool relu;

    SLUICE_HOST_DEVICE void operator()(std::size_t row, std::size_t vector) const {
        const std::size_t column = vector * Width;
        const std::size_t at = row * columns + column;
        float values[Width];
        load(in + at, values);
        const ScaleBias<Width> own(scale, bias, column);
        for (std::size_t i = 0; i < Width; ++i)
            values[i] = own(values[i], i);
        if (residual != nullptr) {
            float added[Width];
            load(residual + at, added);
            const ScaleBias<Width> of_residual(residual_scale, residual_bias, column);
            for (std::size_t i = 0; i < Width; ++i)
                values[i] += of_residual(added[i], i);
        }
        if (relu) {
            for (std::size_t i = 0; i < Width; ++i)
                values[i] = values[i] < 0.0f ? 0.0f : values[i];
        }
        store(out + at, values);
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
struct ReluGradientMoments {
    const T* in;
    const T* gradient;
    const float* mean;
    const float* inverse_deviation;
    const float* scale;
    const float* bias;
    std::size_t columns;

    template <std::size_t Width>
    struct Column {
        ScaleBias<Width> relu;
        Normalisation<Width> normalised;
    };
    template <std::size_t Width>
    struct Row {
        Vector<T, Width> gradient, in;
    };

    template <std::size_t Width>
    SLUICE_HOST_DEVICE Column<Width> of_column(std::size_t column) const {
        return {{scale, bias, column}, {mean, inverse_deviation, column}};
    }
    template <std::size_t Width>
    SLUICE_HOST_DEVICE Row<Width> of_row(std::size_t row, std::size_t column) const {
        const std::size_t at = row * columns + column;
        return {load_vector<Width>(gradient + at), load_vector<Width>(in + at)};
    }
    template <std::size_t Width>
    SLUICE_HOST_DEVICE void at(std::size_t /*row*/, std::size_t /*column*/, const Column<Width>& constants,
                               const Row<Width>& loaded, float (&first)[Width],
                               float (&second)[Width]) const {
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
template <class T, std::size_t Width>
struct InputGradient {
    const T* in;
    const T* gradient;
    const float* scale;
    const float* bias;
    const float* weight;
    const float* mean;
    const float* inverse_deviation;
    const float* weight_gradient;
    const float* bias_gradient;
    T* in_gradient;
    std::size_t columns;
    float inverse_rows;

    SLUICE_HOST_DEVICE void operator()(std::size_t row, std::size_t vector) const {
        const std::size_t column = vector * Width;
        const std::size_t at = row * columns + column;
        float g[Width], x[Width], w[Width], dw[Width], db[Width];
        load(gradient + at, g);
        load(in + at, x);
        load(weight + column, w);
        const Normalisation<Width> normalised(mean, inverse_deviation, column);
        load(weight_gradient + column, dw);
        load(bias_gradient + column, db);
        if (scale != nullptr) {
            const ScaleBias<Width> relu(scale, bias, column);
            for (std::size_t i = 0; i < Width; ++i)
                g[i] = relu.template passes<T>(x[i], i) ? g[i] : 0.0f;
        }
        for (std::size_t i = 0; i < Width; ++i)
            g[i] =
                w[i] * normalised.inverse[i] * (g[i] - inverse_rows * (db[i] + normalised(x[i], i) * dw[i]));
        store(in_gradient + at, g);
    }
};

template <class T>
struct ColumnSums {
    const T* values;
    std::size_t columns;

    template <std::size_t Width>
    struct Column {};
    template <std::size_t Width>
    using Row = Vector<T, Width>;

    template <std::size_t Width>
    SLUICE_HOST_DEVICE Column<Width> of_column(std::size_t /*column*/) const {
        return {};
    }
    template <std::size_t Width>
    SLUICE_HOST_DEVICE Row<Width> of_row(std::size_t row, std::size_t column) const {
        return load_vector<Width>(values + row * columns + column);
    }
    template <std::size_t Width>
    SLUICE_HOST_DEVICE void at(std::size_t /*row*/, std::size_t /*column*/,
                               const Column<Width>& /*constants*/, const Row<Width>& loaded,
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
