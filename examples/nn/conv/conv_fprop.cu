#include <nn/conv/conv_fprop.hpp>

#include <nn/conv/detail/conv_fprop.cuh>
#include <nn/conv/detail/conv_fprop_bytes.cuh>
#include <nn/conv/detail/conv_launch.cuh>
#include <nn/conv/detail/conv_pack_weights.cuh>
#include <nn/core/ceil_div.hpp>
#include <nn/elementwise/for_each.cuh>

namespace nn {
namespace {

using detail::bits_of;
using detail::checked_blocks;
using detail::conv_shape;
using detail::ConvShape;

std::size_t checked_images(const MapShape& shape, std::size_t elements, std::size_t outputs,
                           std::size_t pooled) {
    return detail::checked_images("conv_fprop", supports_conv_fprop(shape.channels, outputs), shape, elements,
                                  outputs, pooled);
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

/// Enough blocks to keep any device busy, with a short tail.
constexpr std::size_t many_blocks = 2048;

template <bool Routes>
void launch_fprop_narrow(sluice::CudaStreamRef stream, const Convolved& what) {
    const ConvShape tiled =
        conv_shape(what.shape, what.outputs, detail::narrow_tile_y, detail::narrow_tile_x);
    detail::conv_fprop_narrow_kernel<Routes>
        <<<checked_blocks("conv_fprop", what.images * tiled.tiles * (what.outputs / 16)),
           detail::conv_threads, 0, stream.get()>>>(bits_of(what.maps), tiled, what.packed, what.bias,
                                                    bits_of(what.pooled), what.routes);
    SLUICE_CUDA_CHECK(cudaGetLastError());
}

template <int Inputs, bool Routes>
void launch_fprop(sluice::CudaStreamRef stream, const Convolved& what) {
    using Tile = detail::FpropTile<Inputs>;
    const ConvShape tiled = conv_shape(what.shape, what.outputs, Tile::side, Tile::side);
    // More than 48 KiB have to be asked for. It is no work of the stream's, and takes no time worth saving.
    SLUICE_CUDA_CHECK(cudaFuncSetAttribute(detail::conv_fprop_kernel<Inputs, Routes>,
                                           cudaFuncAttributeMaxDynamicSharedMemorySize, Tile::bytes));
    // A block that goes on to the next group of channels has its pixels already, which is worth it where they are
    // many; and there must be blocks enough.
    const std::size_t tiles = what.images * tiled.tiles;
    const int groups = Inputs == 64 && tiles >= many_blocks ? static_cast<int>(what.outputs / 64) : 1;
    const std::size_t blocks = groups == 1 ? tiles * (what.outputs / 64) : tiles;
    detail::conv_fprop_kernel<Inputs, Routes>
        <<<checked_blocks("conv_fprop", blocks), detail::conv_threads, Tile::bytes, stream.get()>>>(
            bits_of(what.maps), tiled, groups, what.packed, what.bias, bits_of(what.pooled), what.routes);
    SLUICE_CUDA_CHECK(cudaGetLastError());
}

template <bool Routes>
void launch_any(sluice::CudaStreamRef stream, const Convolved& what) {
    switch (what.shape.channels) {
    case 4:
        return launch_fprop_narrow<Routes>(stream, what);
    case 16:
        return launch_fprop<16, Routes>(stream, what);
    case 64:
        return launch_fprop<64, Routes>(stream, what);
    default:
        break;
    }
    if constexpr (!Routes) {
        if (what.shape.channels == 32)
            return launch_fprop<32, false>(stream, what);
    }
    throw sluice::Error("conv_fprop: maps of " + std::to_string(what.shape.channels) +
                        (Routes ? " channels have no routes" : " channel are images of bytes"));
}

} // namespace

void pack_weights(sluice::CudaStreamRef stream, Matrix<const float, sluice::Cuda> weights,
                  sluice::DeviceSpan<std::uint32_t, sluice::Cuda> packed) {
    const std::size_t inputs = weights.rows() / 9;
    const std::size_t outputs = weights.columns();
    if (weights.rows() % 9 != 0 || !supports_conv_fprop(inputs, outputs)) {
        throw sluice::Error("pack_weights: no kernel takes weights of " + std::to_string(weights.rows()) +
                            " rows and " + std::to_string(outputs) + " columns");
    }
    require_size("pack_weights: words", packed.size(), packed_weight_words(inputs, outputs));
    detail::for_each(stream, packed.size(),
                     detail::PackWeights{weights.data(), packed.data(), static_cast<int>(inputs),
                                         static_cast<int>(outputs)});
}

void conv_fprop(sluice::CudaStreamRef stream, sluice::DeviceSpan<const std::uint8_t, sluice::Cuda> images,
                const MapShape& shape, float scale, Matrix<const float, sluice::Cuda> weights,
                sluice::DeviceSpan<const float, sluice::Cuda> bias,
                sluice::DeviceSpan<Bfloat16, sluice::Cuda> pooled) {
    const std::size_t outputs = bias.size();
    const std::size_t count = checked_images(shape, images.size(), outputs, pooled.size());
    require_size("conv_fprop: channels of images", shape.channels, 1);
    require_size("conv_fprop: weights", weights.size(), 9 * outputs);
    const bool aligned = shape.width % 8 == 0 && reinterpret_cast<std::uintptr_t>(images.data()) % 8 == 0;
    const std::size_t threads = count * (shape.height / 2) * ((shape.width / 2 + 3) / 4);
    const dim3 grid(checked_blocks("conv_fprop", ceil_div(threads, detail::conv_threads)),
                    static_cast<unsigned>(outputs / 4));
    detail::conv_fprop_bytes_kernel<<<grid, detail::conv_threads, 0, stream.get()>>>(
        images.data(), conv_shape(shape, outputs, 1, 1), scale, weights.data(), bias.data(),
        bits_of(pooled.data()), aligned, threads);
    SLUICE_CUDA_CHECK(cudaGetLastError());
}

void conv_fprop(sluice::CudaStreamRef stream, sluice::DeviceSpan<const Bfloat16, sluice::Cuda> maps,
                const MapShape& shape, sluice::DeviceSpan<const std::uint32_t, sluice::Cuda> packed,
                sluice::DeviceSpan<const float, sluice::Cuda> bias,
                sluice::DeviceSpan<Bfloat16, sluice::Cuda> pooled,
                sluice::DeviceSpan<std::uint32_t, sluice::Cuda> routes) {
    const std::size_t outputs = bias.size();
    const std::size_t results = pooled.empty() ? 8 * routes.size() : pooled.size();
    const std::size_t images = checked_images(shape, maps.size(), outputs, results);
    require_size("conv_fprop: words of packed weights", packed.size(),
                 packed_weight_words(shape.channels, outputs));
    const Convolved what{maps.data(), shape,   images,        packed.data(),
                         bias.data(), outputs, pooled.data(), routes.data()};
    if (routes.empty())
        return launch_any<false>(stream, what);
    require_size("conv_fprop: words of routes", routes.size(), route_words(results));
    launch_any<true>(stream, what);
}

} // namespace nn
