#include <nn/operators/fused_convolution.hpp>

#include <limits>

#include <nn/operators/for_each.cuh>
#include <nn/operators/fused_bytes.cuh>
#include <nn/operators/fused_kernels.cuh>

namespace nn {
namespace {

using detail::FusedShape;

/// What every call has to fit; returns the number of images.
std::size_t checked_images(const MapShape& shape, std::size_t elements, std::size_t outputs,
                           std::size_t pooled) {
    if (!offers_fused_convolution(shape.channels, outputs)) {
        throw sluice::Error("convolve_and_pool: no kernel convolves maps of " +
                            std::to_string(shape.channels) + " channels to " + std::to_string(outputs));
    }
    const std::size_t images = require_maps("convolve_and_pool", shape, elements);
    require_even_sides("convolve_and_pool", shape);
    require_size("convolve_and_pool: elements of the pooled maps", pooled,
                 images * shape.pixels() / 4 * outputs);
    if (shape.height > 1u << 20 || shape.width > 1u << 20 || outputs > 1u << 20) {
        throw sluice::Error("convolve_and_pool: a side of a map, or its channels, exceed 2^20");
    }
    return images;
}

/// The shape, cut into tiles of `tile_y` by `tile_x` pixels.
FusedShape fused_shape(const MapShape& shape, std::size_t outputs, std::size_t tile_y, std::size_t tile_x) {
    const std::size_t tiles_x = (shape.width + tile_x - 1) / tile_x;
    const std::size_t tiles = tiles_x * ((shape.height + tile_y - 1) / tile_y);
    return {static_cast<int>(shape.height), static_cast<int>(shape.width), static_cast<int>(outputs),
            static_cast<unsigned>(tiles_x), static_cast<unsigned>(tiles)};
}

unsigned checked_blocks(std::size_t blocks) {
    if (blocks > static_cast<std::size_t>(std::numeric_limits<int>::max())) {
        throw sluice::Error("convolve_and_pool: the maps need " + std::to_string(blocks) +
                            " blocks, more than one launch takes");
    }
    return static_cast<unsigned>(blocks);
}

const std::uint16_t* bits_of(const Bfloat16* values) {
    return reinterpret_cast<const std::uint16_t*>(values);
}
std::uint16_t* bits_of(Bfloat16* values) { return reinterpret_cast<std::uint16_t*>(values); }

template <int Inputs>
void launch_wide(sluice::CudaStreamRef stream, const Bfloat16* maps, const MapShape& shape,
                 std::size_t images, const std::uint32_t* packed, const float* bias, std::size_t outputs,
                 Bfloat16* pooled) {
    using Tile = detail::WideTile<Inputs>;
    const FusedShape tiled = fused_shape(shape, outputs, Tile::side, Tile::side);
    // More than 48 KiB have to be asked for. It is no work of the stream's, and takes no time worth saving.
    SLUICE_CUDA_CHECK(cudaFuncSetAttribute(detail::convolve_wide_kernel<Inputs>,
                                           cudaFuncAttributeMaxDynamicSharedMemorySize, Tile::bytes));
    detail::convolve_wide_kernel<Inputs>
        <<<checked_blocks(images * tiled.tiles * (outputs / 64)), detail::fused_threads, Tile::bytes,
           stream.native()>>>(bits_of(maps), tiled, packed, bias, bits_of(pooled));
    SLUICE_CUDA_CHECK(cudaGetLastError());
}

} // namespace

void pack_weights(sluice::CudaStreamRef stream, Matrix<const float, sluice::Cuda> weights,
                  sluice::DeviceSpan<std::uint32_t, sluice::Cuda> packed) {
    const std::size_t inputs = weights.rows() / 9;
    const std::size_t outputs = weights.columns();
    if (weights.rows() % 9 != 0 || !offers_fused_convolution(inputs, outputs)) {
        throw sluice::Error("pack_weights: no kernel takes weights of " + std::to_string(weights.rows()) +
                            " rows and " + std::to_string(outputs) + " columns");
    }
    require_size("pack_weights: words", packed.size(), packed_weight_words(inputs, outputs));
    detail::for_each(stream, packed.size(),
                     detail::PackWeights{weights.data(), packed.data(), static_cast<int>(inputs),
                                         static_cast<int>(outputs)});
}

void convolve_and_pool(sluice::CudaStreamRef stream,
                       sluice::DeviceSpan<const std::uint8_t, sluice::Cuda> images, const MapShape& shape,
                       float scale, Matrix<const float, sluice::Cuda> weights,
                       sluice::DeviceSpan<const float, sluice::Cuda> bias,
                       sluice::DeviceSpan<Bfloat16, sluice::Cuda> pooled) {
    const std::size_t outputs = bias.size();
    const std::size_t count = checked_images(shape, images.size(), outputs, pooled.size());
    require_size("convolve_and_pool: channels of images", shape.channels, 1);
    require_size("convolve_and_pool: weights", weights.size(), 9 * outputs);
    const bool aligned = shape.width % 8 == 0 && reinterpret_cast<std::uintptr_t>(images.data()) % 8 == 0;
    const std::size_t threads = count * (shape.height / 2) * ((shape.width / 2 + 3) / 4);
    const dim3 grid(checked_blocks((threads + detail::fused_threads - 1) / detail::fused_threads),
                    static_cast<unsigned>(outputs / 4));
    detail::convolve_bytes_kernel<<<grid, detail::fused_threads, 0, stream.native()>>>(
        images.data(), fused_shape(shape, outputs, 1, 1), scale, weights.data(), bias.data(),
        bits_of(pooled.data()), aligned, threads);
    SLUICE_CUDA_CHECK(cudaGetLastError());
}

void convolve_and_pool(sluice::CudaStreamRef stream, sluice::DeviceSpan<const Bfloat16, sluice::Cuda> maps,
                       const MapShape& shape, sluice::DeviceSpan<const std::uint32_t, sluice::Cuda> packed,
                       sluice::DeviceSpan<const float, sluice::Cuda> bias,
                       sluice::DeviceSpan<Bfloat16, sluice::Cuda> pooled) {
    const std::size_t outputs = bias.size();
    const std::size_t images = checked_images(shape, maps.size(), outputs, pooled.size());
    require_size("convolve_and_pool: words of packed weights", packed.size(),
                 packed_weight_words(shape.channels, outputs));
    switch (shape.channels) {
    case 4: {
        const FusedShape tiled = fused_shape(shape, outputs, detail::narrow_tile_y, detail::narrow_tile_x);
        detail::convolve_four_kernel<<<checked_blocks(images * tiled.tiles * (outputs / 16)),
                                       detail::fused_threads, 0, stream.native()>>>(
            bits_of(maps.data()), tiled, packed.data(), bias.data(), bits_of(pooled.data()));
        SLUICE_CUDA_CHECK(cudaGetLastError());
        break;
    }
    case 16:
        return launch_wide<16>(stream, maps.data(), shape, images, packed.data(), bias.data(), outputs,
                               pooled.data());
    case 32:
        return launch_wide<32>(stream, maps.data(), shape, images, packed.data(), bias.data(), outputs,
                               pooled.data());
    case 64:
        return launch_wide<64>(stream, maps.data(), shape, images, packed.data(), bias.data(), outputs,
                               pooled.data());
    default:
        throw sluice::Error("convolve_and_pool: maps of 1 channel are images of bytes");
    }
}

} // namespace nn
