// Bodies of maps.hpp, the same for both backends.
#pragma once

#include <nn/core/vectors.hpp>
#include <nn/elementwise/for_each.hpp>
#include <nn/elementwise/maps.hpp>

namespace nn {
namespace detail {

/// A pixel's image, row and column.
struct PixelPlace {
    std::size_t image;
    std::size_t y;
    std::size_t x;

    SLUICE_HOST_DEVICE PixelPlace(std::size_t row, std::size_t height, std::size_t width) {
        const std::size_t line = quotient(row, width);
        x = row - line * width;
        image = quotient(line, height);
        y = line - image * height;
    }
};

/// One element of one tap: `tap_row` counts taps within pixels within images.
template <class T, class From>
struct GatherPatches {
    const From* maps;
    T* patches;
    MapShape shape;
    float scale;
    float unused = 0; // in place of padding, which captures would take for changes

    SLUICE_HOST_DEVICE void operator()(std::size_t tap_row, std::size_t channel) const {
        const std::size_t row = quotient(tap_row, 9);
        const std::size_t tap = tap_row - 9 * row;
        const PixelPlace place(row, shape.height, shape.width);
        // Shifted by one, since they have no sign.
        const std::size_t y = place.y + tap / 3;
        const std::size_t x = place.x + tap % 3;
        float value = 0.0f;
        if (y > 0 && y <= shape.height && x > 0 && x <= shape.width) {
            const std::size_t pixel = (place.image * shape.height + y - 1) * shape.width + x - 1;
            value = scale * static_cast<float>(maps[pixel * shape.channels + channel]);
        }
        patches[tap_row * shape.channels + channel] = T(value);
    }
};

template <class T>
struct SumPatches {
    const T* patches;
    T* gradients;
    MapShape shape;

    SLUICE_HOST_DEVICE void operator()(std::size_t row, std::size_t channel) const {
        const PixelPlace place(row, shape.height, shape.width);
        float sum = 0.0f;
        for (std::size_t tap = 0; tap < 9; ++tap) {
            // The pixel whose tap this one was; shifted by one.
            const std::size_t y = place.y + 2 - tap / 3;
            const std::size_t x = place.x + 2 - tap % 3;
            if (y == 0 || y > shape.height || x == 0 || x > shape.width)
                continue;
            const std::size_t pixel = (place.image * shape.height + y - 1) * shape.width + x - 1;
            sum += static_cast<float>(patches[(pixel * 9 + tap) * shape.channels + channel]);
        }
        gradients[row * shape.channels + channel] = T(sum);
    }
};

/// Where the four elements of a pool are.
struct PoolPlace {
    std::size_t element[4];

    SLUICE_HOST_DEVICE PoolPlace(std::size_t pooled_row, std::size_t channel, const MapShape& shape) {
        const PixelPlace place(pooled_row, shape.height / 2, shape.width / 2);
        const std::size_t row = (place.image * shape.height + 2 * place.y) * shape.width + 2 * place.x;
        for (std::size_t i = 0; i < 4; ++i)
            element[i] = (row + i / 2 * shape.width + i % 2) * shape.channels + channel;
    }
};

template <class T>
struct PoolRelu {
    const T* convolved;
    const float* bias;
    T* pooled;
    MapShape shape;

    SLUICE_HOST_DEVICE void operator()(std::size_t row, std::size_t channel) const {
        const PoolPlace place(row, channel, shape);
        float greatest = static_cast<float>(convolved[place.element[0]]);
        for (std::size_t i = 1; i < 4; ++i) {
            const float value = static_cast<float>(convolved[place.element[i]]);
            greatest = value > greatest || value != value ? value : greatest;
        }
        greatest += bias[channel];
        pooled[row * shape.channels + channel] = T(greatest < 0.0f ? 0.0f : greatest);
    }
};

template <class T>
struct UnpoolGradient {
    const T* pooled_gradient;
    T* convolved;
    MapShape shape;

    SLUICE_HOST_DEVICE void operator()(std::size_t row, std::size_t channel) const {
        const PoolPlace place(row, channel, shape);
        std::size_t best = 0;
        float greatest = static_cast<float>(convolved[place.element[0]]);
        for (std::size_t i = 1; i < 4; ++i) {
            const float value = static_cast<float>(convolved[place.element[i]]);
            if (value > greatest) {
                greatest = value;
                best = i;
            }
        }
        for (std::size_t i = 0; i < 4; ++i)
            convolved[place.element[i]] =
                i == best ? pooled_gradient[row * shape.channels + channel] : T(0.0f);
    }
};

/// Eight elements, so far from one another that eight neighbours read, and write, neighbouring ones each time: one read
/// at a time keeps too little of a device's memory busy.
template <class To, class From>
struct ScaledCopy {
    const From* from;
    To* to;
    float factor;
    std::size_t size;

    static constexpr std::size_t count = 8;
    static constexpr std::size_t distance = 256;
    static constexpr std::size_t calls(std::size_t elements) {
        return (elements + count * distance - 1) / (count * distance) * distance;
    }

    SLUICE_HOST_DEVICE void operator()(std::size_t call) const {
        const std::size_t first = call / distance * (count * distance) + call % distance;
        if (first + (count - 1) * distance < size) {
            From values[count];
            for (std::size_t i = 0; i < count; ++i)
                values[i] = from[first + i * distance];
            for (std::size_t i = 0; i < count; ++i)
                to[first + i * distance] = To(factor * static_cast<float>(values[i]));
            return;
        }
        for (std::size_t i = first; i < size; i += distance)
            to[i] = To(factor * static_cast<float>(from[i]));
    }
};

/// One pixel, stored at once. `Channels` is 0 where their number is known at run time only.
template <class To, class From, std::size_t Channels>
struct PadChannels {
    const From* pixels;
    To* padded;
    std::size_t from_channels;
    std::size_t to_channels;

    SLUICE_HOST_DEVICE void operator()(std::size_t pixel) const {
        const From* const from = pixels + pixel * from_channels;
        if constexpr (Channels > 0) {
            float values[Channels];
            for (std::size_t c = 0; c < Channels; ++c)
                values[c] = c < from_channels ? static_cast<float>(from[c]) : 0.0f;
            store<Channels>(padded + pixel * Channels, values);
        } else {
            To* const to = padded + pixel * to_channels;
            for (std::size_t c = 0; c < to_channels; ++c)
                to[c] = c < from_channels ? To(static_cast<float>(from[c])) : To(0.0f);
        }
    }
};

/// Checks patches against the maps that they are of; returns the maps' pixels.
inline std::size_t require_patches(const char* what, const MapShape& shape, std::size_t elements,
                                   std::size_t rows, std::size_t columns) {
    const std::size_t pixels = require_maps(what, shape, elements) * shape.pixels();
    if (rows != pixels || columns != 9 * shape.channels) {
        throw sluice::Error(std::string(what) + ": patches of " + std::to_string(rows) + " rows and " +
                            std::to_string(columns) + " columns; expected " + std::to_string(pixels) +
                            " and " + std::to_string(9 * shape.channels));
    }
    return pixels;
}

/// Checks pooled maps against those that they come from; returns the pooled maps' pixels.
inline std::size_t require_pooled(const char* what, const MapShape& shape, std::size_t elements,
                                  std::size_t pooled) {
    const std::size_t maps = require_maps(what, shape, elements);
    require_even_sides(what, shape);
    if (pooled != elements / 4) {
        throw sluice::Error(std::string(what) + ": " + std::to_string(pooled) +
                            " elements of pooled maps were given, expected " + std::to_string(elements / 4));
    }
    return maps * shape.pixels() / 4;
}

} // namespace detail

template <class T, sluice::Backend B>
void gather_patches(sluice::BasicStreamRef<B> stream, SpanArgument<const T, B> maps, const MapShape& shape,
                    std::type_identity_t<Matrix<T, B>> patches) {
    const std::size_t pixels =
        detail::require_patches("gather_patches", shape, maps.size(), patches.rows(), patches.columns());
    detail::for_each(stream, 9 * pixels, shape.channels,
                     detail::GatherPatches<T, T>{maps.data(), patches.data(), shape, 1.0f});
}

template <class T, sluice::Backend B>
void gather_patches(sluice::BasicStreamRef<B> stream, SpanArgument<const std::uint8_t, B> images,
                    const MapShape& shape, float scale, std::type_identity_t<Matrix<T, B>> patches) {
    require_size("gather_patches: channels of an image", shape.channels, 1);
    const std::size_t pixels =
        detail::require_patches("gather_patches", shape, images.size(), patches.rows(), patches.columns());
    detail::for_each(stream, 9 * pixels, shape.channels,
                     detail::GatherPatches<T, std::uint8_t>{images.data(), patches.data(), shape, scale});
}

template <class T, sluice::Backend B>
void sum_patches(sluice::BasicStreamRef<B> stream, std::type_identity_t<Matrix<const T, B>> patch_gradients,
                 const MapShape& shape, SpanArgument<T, B> gradients) {
    const std::size_t pixels = detail::require_patches("sum_patches", shape, gradients.size(),
                                                       patch_gradients.rows(), patch_gradients.columns());
    detail::for_each(stream, pixels, shape.channels,
                     detail::SumPatches<T>{patch_gradients.data(), gradients.data(), shape});
}

template <class T, sluice::Backend B>
void pool_relu(sluice::BasicStreamRef<B> stream, SpanArgument<const T, B> convolved, const MapShape& shape,
               SpanArgument<const float, B> bias, SpanArgument<T, B> pooled) {
    const std::size_t rows = detail::require_pooled("pool_relu", shape, convolved.size(), pooled.size());
    require_size("pool_relu: elements of the bias", bias.size(), shape.channels);
    detail::for_each(stream, rows, shape.channels,
                     detail::PoolRelu<T>{convolved.data(), bias.data(), pooled.data(), shape});
}

template <class T, sluice::Backend B>
void unpool_gradient(sluice::BasicStreamRef<B> stream, SpanArgument<const T, B> pooled_gradient,
                     const MapShape& shape, SpanArgument<T, B> convolved) {
    const std::size_t rows =
        detail::require_pooled("unpool_gradient", shape, convolved.size(), pooled_gradient.size());
    detail::for_each(stream, rows, shape.channels,
                     detail::UnpoolGradient<T>{pooled_gradient.data(), convolved.data(), shape});
}

template <class To, class From, sluice::Backend B>
void scaled_copy(sluice::BasicStreamRef<B> stream, SpanArgument<const From, B> from, float factor,
                 SpanArgument<To, B> to) {
    require_size("scaled_copy: elements of the result", to.size(), from.size());
    using Copy = detail::ScaledCopy<To, From>;
    detail::for_each(stream, Copy::calls(to.size()), Copy{from.data(), to.data(), factor, to.size()});
}

template <class To, class From, sluice::Backend B>
void pad_channels(sluice::BasicStreamRef<B> stream, std::type_identity_t<Matrix<const From, B>> pixels,
                  std::type_identity_t<Matrix<To, B>> padded) {
    if (pixels.rows() != padded.rows() || pixels.columns() > padded.columns()) [[unlikely]] {
        throw sluice::Error("pad_channels: " + std::to_string(pixels.rows()) + " pixels of " +
                            std::to_string(pixels.columns()) + " channels are to become " +
                            std::to_string(padded.rows()) + " of " + std::to_string(padded.columns()) +
                            "; expected as many pixels, and as many channels or more");
    }
    const auto pad = [&]<std::size_t Channels>(std::integral_constant<std::size_t, Channels>) {
        detail::for_each(stream, pixels.rows(),
                         detail::PadChannels<To, From, Channels>{pixels.data(), padded.data(),
                                                                 pixels.columns(), padded.columns()});
    };
    if (padded.columns() == 4) {
        pad(std::integral_constant<std::size_t, 4>{});
    } else if (padded.columns() == 8) {
        pad(std::integral_constant<std::size_t, 8>{});
    } else {
        pad(std::integral_constant<std::size_t, 0>{});
    }
}

} // namespace nn
