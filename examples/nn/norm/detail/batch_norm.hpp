/// \file
/// What batch normalisation does with each element and each channel, on every backend.
#pragma once

#include <cmath>
#include <cstddef>

#include <nn/core/vectors.hpp>

namespace nn::detail {

/// A base of sums and maps over rows, which reads of each row its elements.
template <class T>
struct ReadsElements {
    const T* in;
    std::size_t columns;

    template <std::size_t Width>
    using Row = Vector<T, Width>;

    template <std::size_t Width>
    SLUICE_HOST_DEVICE Row<Width> of_row(std::size_t row, std::size_t column) const {
        return load_vector<Width>(in + row * columns + column);
    }
};

/// Sums of x and x², both less the channel's first element: a mean far from 0 then costs no digits.
template <class T>
struct CentredMoments : ReadsElements<T> {
    template <std::size_t Width>
    struct Column {
        float centre[Width];
    };

    template <std::size_t Width>
    SLUICE_HOST_DEVICE Column<Width> of_column(std::size_t column) const {
        Column<Width> loaded;
        load(this->in + column, loaded.centre);
        return loaded;
    }
    template <std::size_t Width>
    SLUICE_HOST_DEVICE void at(std::size_t /*row*/, std::size_t /*column*/, const Column<Width>& constants,
                               const Vector<T, Width>& loaded, float (&first)[Width],
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

template <class T, class Out>
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

    template <std::size_t Width>
    struct Column {
        ScaleBias<Width> own, of_residual;
    };
    template <std::size_t Width>
    struct Row {
        Vector<T, Width> in, residual;
    };

    template <std::size_t Width>
    SLUICE_HOST_DEVICE Column<Width> of_column(std::size_t column) const {
        return {{scale, bias, column}, {residual_scale, residual_bias, column}};
    }
    template <std::size_t Width>
    SLUICE_HOST_DEVICE Row<Width> of_row(std::size_t row, std::size_t column) const {
        const std::size_t at = row * columns + column;
        Row<Width> loaded;
        loaded.in = load_vector<Width>(in + at);
        loaded.residual = loaded.in;
        if (residual != nullptr)
            loaded.residual = load_vector<Width>(residual + at);
        return loaded;
    }
    template <std::size_t Width>
    SLUICE_HOST_DEVICE void at(std::size_t row, std::size_t column, const Column<Width>& constants,
                               const Row<Width>& loaded) const {
        float values[Width];
        to_floats(loaded.in, values);
        for (std::size_t i = 0; i < Width; ++i)
            values[i] = constants.own(values[i], i);
        if (residual != nullptr) {
            for (std::size_t i = 0; i < Width; ++i)
                values[i] += constants.of_residual(static_cast<float>(loaded.residual.values[i]), i);
        }
        if (relu) {
            for (std::size_t i = 0; i < Width; ++i)
                values[i] = values[i] < 0.0f ? 0.0f : values[i];
        }
        store(out + row * columns + column, values);
    }
};

} // namespace nn::detail
