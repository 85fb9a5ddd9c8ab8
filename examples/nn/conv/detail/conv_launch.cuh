/// \file
/// What the launches of conv_fprop.hpp's and conv_backward.hpp's kernels share.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>

#include <nn/conv/detail/conv_shape.hpp>
#include <nn/core/ceil_div.hpp>
#include <nn/core/float16.hpp>
#include <nn/elementwise/maps.hpp>

namespace nn::detail {

/// The shape, cut into tiles of `tile_y` by `tile_x` pixels.
inline ConvShape conv_shape(const MapShape& shape, std::size_t outputs, std::size_t tile_y,
                            std::size_t tile_x) {
    const std::size_t tiles_x = ceil_div(shape.width, tile_x);
    const std::size_t tiles = tiles_x * ceil_div(shape.height, tile_y);
    return {static_cast<int>(shape.height), static_cast<int>(shape.width), static_cast<int>(outputs),
            static_cast<unsigned>(tiles_x), static_cast<unsigned>(tiles)};
}

/// The number of images in `elements` of maps of `shape`, which are convolved to `outputs` channels and pooled to `pooled`
/// elements. Throws `sluice::Error` where they do not fit each other, or what kernels can count, or where there is no
/// kernel for them (`offered` is not true).
inline std::size_t checked_images(const char* what, bool offered, const MapShape& shape, std::size_t elements,
                                  std::size_t outputs, std::size_t pooled) {
    if (!offered) {
        throw sluice::Error(std::string(what) + ": no kernel takes maps of " +
                            std::to_string(shape.channels) + " channels convolved to " +
                            std::to_string(outputs));
    }
    const std::size_t images = require_maps(what, shape, elements);
    require_even_sides(what, shape);
    const std::size_t expected = images * shape.pixels() / 4 * outputs;
    if (pooled != expected) {
        throw sluice::Error(std::string(what) + ": elements of the pooled maps: " + std::to_string(pooled) +
                            " were given, expected " + std::to_string(expected));
    }
    if (shape.height > 1u << 20 || shape.width > 1u << 20 || outputs > 1u << 20) {
        throw sluice::Error(std::string(what) + ": a side of a map, or its channels, exceed 2^20");
    }
    return images;
}

inline unsigned checked_blocks(const char* what, std::size_t blocks) {
    if (blocks > static_cast<std::size_t>(std::numeric_limits<int>::max())) {
        throw sluice::Error(std::string(what) + ": the maps need " + std::to_string(blocks) +
                            " blocks, more than one launch takes");
    }
    return static_cast<unsigned>(blocks);
}

inline const std::uint16_t* bits_of(const Bfloat16* values) {
    return reinterpret_cast<const std::uint16_t*>(values);
}
inline std::uint16_t* bits_of(Bfloat16* values) { return reinterpret_cast<std::uint16_t*>(values); }

} // namespace nn::detail
