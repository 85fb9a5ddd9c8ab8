/// \file
/// What the launches of the kernels behind stem.hpp share.
#pragma once

#include <cstdint>
#include <limits>
#include <string>

#include <cuda_runtime.h>

#include <nn/stem/stem.hpp>

namespace nn::detail {

/// How many multiprocessors the current device has.
inline std::size_t multiprocessors() {
    int device = 0;
    int count = 0;
    SLUICE_CUDA_CHECK(cudaGetDevice(&device));
    SLUICE_CUDA_CHECK(cudaDeviceGetAttribute(&count, cudaDevAttrMultiProcessorCount, device));
    return static_cast<std::size_t>(count);
}

/// Throws `sluice::Error` unless the kernels take these images. Returns the number of their pixels.
template <class Pixel>
std::size_t checked_stem_pixels(const char* what, sluice::DeviceSpan<const Pixel, sluice::Cuda> images,
                                sluice::DeviceSpan<const std::int32_t, sluice::Cuda> raster_of_row,
                                std::size_t width) {
    const std::size_t size = raster_of_row.size();
    if (width == 0 || width % 4 != 0 || size == 0 || size % (4 * width) != 0 || images.empty() ||
        images.size() % (3 * size) != 0 || images.size() / 3 > std::numeric_limits<std::int32_t>::max()) {
        throw sluice::Error(std::string(what) + ": " + std::to_string(images.size()) +
                            " elements and a table of " + std::to_string(size) + " pixels, " +
                            std::to_string(width) +
                            " a line, are no images of 3 channels whose sides are multiples of 4");
    }
    return images.size() / 3;
}

/// Throws `sluice::Error` unless layer `index` has the channels that the kernels are written for.
inline void check_stem_layer(const char* what, std::size_t index, const StemLayer<sluice::Cuda>& layer) {
    const std::size_t inputs = stem_channels[index];
    const std::size_t outputs = stem_channels[index + 1];
    const std::size_t rows = index == 0 ? inputs : 4 * inputs;
    if (layer.weights.rows() != rows || layer.weights.columns() != outputs || layer.bias.size() != outputs) {
        throw sluice::Error(
            std::string(what) + ": layer " + std::to_string(index) + " has weights of [" +
            std::to_string(layer.weights.rows()) + ", " + std::to_string(layer.weights.columns()) +
            "] and a bias of " + std::to_string(layer.bias.size()) + " elements; expected [" +
            std::to_string(rows) + ", " + std::to_string(outputs) + "] and " + std::to_string(outputs));
    }
}

/// Throws `sluice::Error` unless a map, or its gradient, can be moved 16 bytes at a time.
inline void check_stem_map(const char* what, const void* map) {
    if (reinterpret_cast<std::uintptr_t>(map) % 16 != 0) [[unlikely]] {
        throw sluice::Error(std::string(what) +
                            ": a map begins at an address that is no multiple of 16 bytes");
    }
}

} // namespace nn::detail
