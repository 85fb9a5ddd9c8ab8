/// \file
/// What the pools do with the channels of a pixel, on every backend.
#pragma once

#include <cstddef>
#include <cstdint>

#include <nn/core/vectors.hpp>
#include <nn/pool/pool.hpp>

namespace nn::detail {

template <class T, std::size_t Width>
struct MaxPoolRelu {
    const T* in;
    const float* scale;
    const float* bias;
    T* out;
    std::uint8_t* taps;
    std::uint32_t height, width, channels, out_height, out_width;

    SLUICE_HOST_DEVICE void operator()(std::size_t row, std::size_t vector) const {
        const std::size_t column = vector * Width;
        const std::size_t image = quotient(row, out_height * out_width);
        const auto pixel = static_cast<std::uint32_t>(row - image * out_height * out_width);
        const std::uint32_t top = pixel / out_width * 2 - 1; // -1 wraps around
        const std::uint32_t left = pixel % out_width * 2 - 1;
        float best[Width];
        std::uint8_t tap[Width];
        for (std::size_t i = 0; i < Width; ++i) {
            best[i] = 0.0f;
            tap[i] = no_tap;
        }
        for (std::uint32_t t = 0; t < 9; ++t) {
            const std::uint32_t y = top + t / 3;
            const std::uint32_t x = left + t % 3;
            if (y < height && x < width)
                consider(((image * height + y) * width + x) * channels + column, column,
                         static_cast<std::uint8_t>(t), best, tap);
        }
        store(out + row * channels + column, best);
        if (taps != nullptr)
            *reinterpret_cast<Vector<std::uint8_t, Width>*>(taps + row * channels + column) = as_vector(tap);
    }

private:
    SLUICE_HOST_DEVICE void consider(std::size_t at, std::size_t column, std::uint8_t t, float (&best)[Width],
                                     std::uint8_t (&tap)[Width]) const {
        float values[Width];
        float terms[Width];
        load(in + at, values);
        if (scale != nullptr) {
            load(scale + column, terms);
            for (std::size_t i = 0; i < Width; ++i)
                values[i] *= terms[i];
        }
        load(bias + column, terms);
        for (std::size_t i = 0; i < Width; ++i) {
            const float value = values[i] + terms[i];
            // A NaN is taken once, since nothing is greater than it.
            if (value > best[i] || (value != value && best[i] == best[i])) {
                best[i] = value;
                tap[i] = t;
            }
        }
    }

    SLUICE_HOST_DEVICE static Vector<std::uint8_t, Width> as_vector(const std::uint8_t (&values)[Width]) {
        Vector<std::uint8_t, Width> result;
        for (std::size_t i = 0; i < Width; ++i)
            result.values[i] = values[i];
        return result;
    }
};

/// Each pixel looks at the up to four pools that it is in.
template <class T, std::size_t Width>
struct MaxPoolReluGradient {
    const T* gradient;
    const T* other;
    const std::uint8_t* taps;
    T* in_gradient;
    std::uint32_t height, width, channels, out_height, out_width;

    SLUICE_HOST_DEVICE void operator()(std::size_t row, std::size_t vector) const {
        const std::size_t column = vector * Width;
        const std::size_t image = quotient(row, height * width);
        const auto pixel = static_cast<std::uint32_t>(row - image * height * width);
        const std::uint32_t y = pixel / width;
        const std::uint32_t x = pixel % width;
        float sums[Width];
        for (std::size_t i = 0; i < Width; ++i)
            sums[i] = 0.0f;
        // Pool p covers the pixels 2p - 1 to 2p + 1.
        for (std::uint32_t py = y / 2; py <= (y + 1) / 2 && py < out_height; ++py) {
            for (std::uint32_t px = x / 2; px <= (x + 1) / 2 && px < out_width; ++px) {
                const std::uint32_t tap = (y + 1 - 2 * py) * 3 + (x + 1 - 2 * px);
                add(((image * out_height + py) * out_width + px) * channels + column, tap, sums);
            }
        }
        store(in_gradient + row * channels + column, sums);
    }

private:
    SLUICE_HOST_DEVICE void add(std::size_t at, std::uint32_t tap, float (&sums)[Width]) const {
        const auto chosen = *reinterpret_cast<const Vector<std::uint8_t, Width>*>(taps + at);
        float values[Width];
        load(gradient + at, values);
        if (other != nullptr) {
            float more[Width];
            load(other + at, more);
            for (std::size_t i = 0; i < Width; ++i)
                values[i] += more[i];
        }
        for (std::size_t i = 0; i < Width; ++i)
            sums[i] += chosen.values[i] == tap ? values[i] : 0.0f;
    }
};

template <class T, std::size_t Width>
struct AveragePool {
    const T* in;
    T* out;
    std::size_t pixels;
    std::size_t channels;

    SLUICE_HOST_DEVICE void operator()(std::size_t image, std::size_t vector) const {
        float sums[Width];
        for (std::size_t i = 0; i < Width; ++i)
            sums[i] = 0.0f;
        for (std::size_t pixel = 0; pixel < pixels; ++pixel) {
            float values[Width];
            load(in + (image * pixels + pixel) * channels + vector * Width, values);
            for (std::size_t i = 0; i < Width; ++i)
                sums[i] += values[i];
        }
        for (std::size_t i = 0; i < Width; ++i)
            sums[i] /= static_cast<float>(pixels);
        store(out + image * channels + vector * Width, sums);
    }
};

template <class T, std::size_t Width>
struct AveragePoolGradient {
    const T* gradient;
    T* in_gradient;
    std::size_t pixels;
    std::size_t channels;

    SLUICE_HOST_DEVICE void operator()(std::size_t row, std::size_t vector) const {
        float values[Width];
        load(gradient + quotient(row, pixels) * channels + vector * Width, values);
        for (std::size_t i = 0; i < Width; ++i)
            values[i] /= static_cast<float>(pixels);
        store(in_gradient + row * channels + vector * Width, values);
    }
};

} // namespace nn::detail
