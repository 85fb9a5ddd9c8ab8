/// \file
/// What the pools do with the channels of a pixel, on every backend.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>

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
        Vector<std::uint8_t, Width> tap;
        float scales[Width];
        float biases[Width];
        for (std::size_t i = 0; i < Width; ++i) {
            best[i] = 0.0f;
            tap.values[i] = no_tap;
            scales[i] = 1.0f;
        }
        if (scale != nullptr)
            load(scale + column, scales);
        load(bias + column, biases);
        // All loads are under way before the first is waited for. Written out, so that no compiler makes loops of it.
        [&]<std::uint8_t... Taps>(std::integer_sequence<std::uint8_t, Taps...>) {
            const auto is_inside = [&](std::uint8_t t) {
                return top + t / 3 < height && left + t % 3 < width;
            };
            const auto at = [&](std::uint8_t t) {
                const std::size_t first = image * height * width;
                return is_inside(t) ? first + std::size_t{top + t / 3} * width + (left + t % 3) : first;
            };
            const Vector<T, Width> loaded[9] = {load_vector<Width>(in + at(Taps) * channels + column)...};
            (consider(loaded[Taps], is_inside(Taps), scales, biases, Taps, best, tap), ...);
        }
        (std::make_integer_sequence<std::uint8_t, 9>{});
        store(out + row * channels + column, best);
        if (taps != nullptr)
            *reinterpret_cast<Vector<std::uint8_t, Width>*>(taps + row * channels + column) = tap;
    }

private:
    SLUICE_HOST_DEVICE void consider(const Vector<T, Width>& loaded, bool is_inside,
                                     const float (&scales)[Width], const float (&biases)[Width],
                                     std::uint8_t t, float (&best)[Width],
                                     Vector<std::uint8_t, Width>& tap) const {
        if (!is_inside)
            return;
        for (std::size_t i = 0; i < Width; ++i) {
            const float value = static_cast<float>(loaded.values[i]) * scales[i] + biases[i];
            if (exceeds(value, best[i])) {
                best[i] = value;
                tap.values[i] = t;
            }
        }
    }

    /// Whether `value` takes the place of `best`, which is at least 0 or NaN: where it is greater, or the first NaN.
    SLUICE_HOST_DEVICE static bool exceeds(float value, float best) {
#if defined(__CUDA_ARCH__)
        // A sum on a device is NaN in one way, which as an integer lies above infinity.
        return __float_as_int(value) > __float_as_int(best);
#else
        return value > best || (value != value && best == best);
#endif
    }
};

/// Pools below each other that a thread takes: each is loaded for itself and for the one above.
inline constexpr std::uint32_t pool_strip = 7;

/// For each pool the two by two pixels at its centre, right and below of it, which lie in this pool and in those to the right
/// and below.
template <class T, std::size_t Width>
struct MaxPoolReluGradient {
    const T* gradient;
    const T* other;
    const std::uint8_t* taps;
    T* in_gradient;
    std::uint32_t height, width, channels, out_height, out_width;

    SLUICE_HOST_DEVICE void operator()(std::size_t strip, std::size_t vector) const {
        const std::size_t column = vector * Width;
        const std::uint32_t strips = (out_height + pool_strip - 1) / pool_strip;
        const std::size_t image = quotient(strip, strips * out_width);
        const auto of_image = static_cast<std::uint32_t>(strip - image * strips * out_width);
        const std::uint32_t first = of_image / out_width * pool_strip;
        const std::uint32_t px = of_image % out_width;
        const std::uint32_t last = first + pool_strip < out_height ? first + pool_strip : out_height;
        const bool is_right = px + 1 < out_width;
        const std::size_t line = std::size_t{out_width} * channels;
        std::size_t at = ((image * out_height + first) * out_width + px) * channels + column;
        T* to = in_gradient + ((image * height + 2 * first) * width + 2 * px) * channels + column;
        const bool has_right_pixel = 2 * px + 1 < width;
        Pool here = load_pool(at, true);
        Pool right = load_pool(at + channels, is_right);
        for (std::uint32_t py = first; py < last; ++py) {
            at += line;
            const bool is_below = py + 1 < out_height;
            const Pool below = load_pool(at, is_below);
            const Pool corner = load_pool(at + channels, is_below && is_right);
            float sums[4][Width];
            for (std::size_t i = 0; i < Width; ++i) {
                sums[0][i] = here.of_tap(4, i);
                sums[1][i] = here.of_tap(5, i) + right.of_tap(3, i);
                sums[2][i] = here.of_tap(7, i) + below.of_tap(1, i);
                sums[3][i] =
                    here.of_tap(8, i) + right.of_tap(6, i) + below.of_tap(2, i) + corner.of_tap(0, i);
            }
            store_pair(to, sums[0], sums[1], has_right_pixel);
            if (2 * py + 1 < height)
                store_pair(to + std::size_t{width} * channels, sums[2], sums[3], has_right_pixel);
            to += 2 * std::size_t{width} * channels;
            here = below;
            right = corner;
        }
    }

private:
    struct Pool {
        float values[Width];
        std::uint8_t chosen[Width];
        SLUICE_HOST_DEVICE float of_tap(std::uint8_t tap, std::size_t i) const {
            return chosen[i] == tap ? values[i] : 0.0f;
        }
    };

    SLUICE_HOST_DEVICE void store_pair(T* to, const float (&left)[Width], const float (&right)[Width],
                                       bool has_right) const {
        store(to, left);
        if (has_right)
            store(to + channels, right);
    }

    /// One that is not there has no tap.
    SLUICE_HOST_DEVICE Pool load_pool(std::size_t at, bool is_there) const {
        Pool pool;
        for (std::size_t i = 0; i < Width; ++i) {
            pool.values[i] = 0.0f;
            pool.chosen[i] = no_tap;
        }
        if (!is_there)
            return pool;
        const auto chosen = load_vector<Width>(taps + at);
        load(gradient + at, pool.values);
        if (other != nullptr) {
            float more[Width];
            load(other + at, more);
            for (std::size_t i = 0; i < Width; ++i)
                pool.values[i] += more[i];
        }
        for (std::size_t i = 0; i < Width; ++i)
            pool.chosen[i] = chosen.values[i];
        return pool;
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
