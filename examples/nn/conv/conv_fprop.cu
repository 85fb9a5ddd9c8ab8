#include <nn/conv/conv_fprop.hpp>

#include <nn/conv/detail/conv_fprop.cuh>
#include <nn/conv/detail/conv_fprop_bytes.cuh>
#include <nn/conv/detail/conv_launch.cuh>
#include <nn/conv/detail/conv_pack_weights.cuh>
#include <nn/elementwise/for_each.cuh>

namespace nn {
namespace {

using detail::bits_of;
using detail::checked_blocks;
using detail::fused_shape;
using detail::FusedShape;

std::size_t checked_images(const MapShape& shape, std::size_t elements, std::size_t outputs,
                           std::size_t pooled) {
    return detail::checked_images("convolve_and_pool", offers_fused_convolution(shape.channels, outputs),
                                  shape, elements, outputs, pooled);
}

/// What a kernel takes, and where it puts its results; without routes it is a kernel that knows nothing of them.
struct Convolved {
    const Bfloat16* maps;
    MapShape shape;
    std::size_t images;
    const std::uint32_t* packed;
    const float* bias;
    std::size_t outputs;
    Bfloat16* pooled;
    std::uint32_t* routes;
};

/// What keeps any device busy, and the last blocks short beside all others.
constexpr std::size_t many_blocks = 2048;

template <bool Routes>
void launch_narrow(sluice::CudaStreamRef stream, const Convolved& what) {
    const FusedShape tiled =
        fused_shape(what.shape, what.outputs, detail::narrow_tile_y, detail::narrow_tile_x);
    detail::convolve_four_kernel<Routes>
        <<<checked_blocks("convolve_and_pool", what.images * tiled.tiles * (what.outputs / 16)),
           detail::fused_threads, 0, stream.native()>>>(bits_of(what.maps), tiled, what.packed, what.bias,
                                                        bits_of(what.pooled), what.routes);
    SLUICE_CUDA_CHECK(cudaGetLastError());
}

template <int Inputs, bool Routes>
void launch_wide(sluice::CudaStreamRef stream, const Convolved& what) {
    using Tile = detail::WideTile<Inputs>;
    const FusedShape tiled = fused_shape(what.shape, what.outputs, Tile::side, Tile::side);
    // More than 48 KiB have to be asked for. It is no work of the stream's, and takes no time worth saving.
    SLUICE_CUDA_CHECK(cudaFuncSetAttribute(detail::convolve_wide_kernel<Inputs, Routes>,
                                           cudaFuncAttributeMaxDynamicSharedMemorySize, Tile::bytes));
    // A block that goes on to the next group of channels has its pixels already, which is worth it where they are
    // many; and there must be blocks enough.
    const std::size_t tiles = what.images * tiled.tiles;
    const int groups = Inputs == 64 && tiles >= many_blocks ? static_cast<int>(what.outputs / 64) : 1;
    const std::size_t blocks = groups == 1 ? tiles * (what.outputs / 64) : tiles;
    detail::convolve_wide_kernel<Inputs, Routes><<<checked_blocks("convolve_and_pool", blocks),
                                                   detail::fused_threads, Tile::bytes, stream.native()>>>(
        bits_of(what.maps), tiled, groups, what.packed, what.bias, bits_of(what.pooled), what.routes);
    SLUICE_CUDA_CHECK(cudaGetLastError());
}

template <bool Routes>
void launch_any(sluice::CudaStreamRef stream, const Convolved& what) {
    switch (what.shape.channels) {
    case 4:
        return launch_narrow<Routes>(stream, what);
    case 16:
        return launch_wide<16, Routes>(stream, what);
    case 64:
        return launch_wide<64, Routes>(stream, what);
    default:
        break;
    }
    if constexpr (!Routes) {
        if (what.shape.channels == 32)
            return launch_wide<32, false>(stream, what);
    }
    throw sluice::Error("convolve_and_pool: maps of " + std::to_string(what.shape.channels) +
                        (Routes ? " channels have no routes" : " channel are images of bytes"));
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
    const dim3 grid(
        checked_blocks("convolve_and_pool", (threads + detail::fused_threads - 1) / detail::fused_threads),
        static_cast<unsigned>(outputs / 4));
    detail::convolve_bytes_kernel<<<grid, detail::fused_threads, 0, stream.native()>>>(
        images.data(), fused_shape(shape, outputs, 1, 1), scale, weights.data(), bias.data(),
        bits_of(pooled.data()), aligned, threads);
    SLUICE_CUDA_CHECK(cudaGetLastError());
}

void convolve_and_pool(sluice::CudaStreamRef stream, sluice::DeviceSpan<const Bfloat16, sluice::Cuda> maps,
                       const MapShape& shape, sluice::DeviceSpan<const std::uint32_t, sluice::Cuda> packed,
                       sluice::DeviceSpan<const float, sluice::Cuda> bias,
                       sluice::DeviceSpan<Bfloat16, sluice::Cuda> pooled,
                       sluice::DeviceSpan<std::uint32_t, sluice::Cuda> routes) {
    const std::size_t outputs = bias.size();
    const std::size_t results = pooled.empty() ? 8 * routes.size() : pooled.size();
    const std::size_t images = checked_images(shape, maps.size(), outputs, results);
    require_size("convolve_and_pool: words of packed weights", packed.size(),
                 packed_weight_words(shape.channels, outputs));
    const Convolved what{maps.data(), shape,   images,        packed.data(),
                         bias.data(), outputs, pooled.data(), routes.data()};
    if (routes.empty())
        return launch_any<false>(stream, what);
    require_size("convolve_and_pool: words of routes", routes.size(), route_words(results));
    launch_any<true>(stream, what);
}

} // namespace nn
