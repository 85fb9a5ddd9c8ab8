/// \file
/// Sizes that all kernels behind conv_fprop.hpp and conv_backward.hpp take.
#pragma once

namespace nn::detail {

inline constexpr int conv_threads = 128;

/// Sizes as the kernels take them.
struct ConvShape {
    int height; // of the convolution; the pooled map is half as high
    int width;
    int outputs;
    unsigned tiles_x; // tiles of a block that cover an image
    unsigned tiles;
};

} // namespace nn::detail
