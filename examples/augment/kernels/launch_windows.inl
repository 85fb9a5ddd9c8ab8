// Which images are made smaller or rotated from windows of them, and by how large blocks.
#pragma once

#include <algorithm>

#include <augment/kernels/downscale.cuh>
#include <augment/kernels/rotated_window.cuh>
#include <nn/core/ceil_div.hpp>

namespace augment::detail {

/// Launches the kernel of downscale.cuh, if the chain is one for it, its resize filters, and a tile fits in shared memory.
/// Whether it did.
template <int Channels, class C, class In, class Out>
bool launch_downscale([[maybe_unused]] sluice::CudaStreamRef stream,
                      [[maybe_unused]] const TileArguments<C, In, Out>& tiles, [[maybe_unused]] int images) {
    constexpr std::size_t place = place_of_resize<C>();
    if constexpr (place < C::size) {
        const ImageShape out = tiles.out_shape;
        const Strides& strides = tiles.in_strides;
        const auto resize = tiles.chain.template op<place>().prepare(
            {}, tiles.chain.template shape_before<place>(tiles.in_shape));
        DownscaleArguments<C, In, Out> arguments{tiles, resize, 0, 0};
        if (!resize.filtered || (strides.column != 1 && tiles.in_shape.channels != Channels))
            return false;
        // What `count` rows or columns of the result are made of, at most: rounding, too, is within one on each side.
        const auto reach = [](int count, float scale) {
            return static_cast<std::int64_t>(static_cast<float>(count - 1) * scale +
                                             2.0f * std::max(scale, 1.0f)) +
                   3;
        };
        int columns = std::min(nn::ceil_div(out.width, 32) * 32, downscale_columns);
        const auto pitch = [&] { return (reach(columns, resize.scale_x) + 6) / 4 * 4; };
        while (pitch() > plane_words && columns > 32)
            columns = columns / 64 * 32;
        const std::int64_t taps = reach(1, resize.scale_y);
        const int strip = static_cast<int>(
            std::min({plane_words / pitch(), weight_words / taps, std::int64_t{1024 / columns}}));
        if (strip == 0)
            return false;
        arguments.pitch = static_cast<int>(pitch());
        arguments.taps = static_cast<int>(taps);
        arguments.columns = columns;
        arguments.strip = strip > 4 ? strip / 4 * 4 : strip;
        arguments.tiles = nn::ceil_div(out.width, columns);
        arguments.in_by_fours = strides.row % 4 == 0 && (strides.column != 1 || strides.channel % 4 == 0) &&
                                reinterpret_cast<std::uintptr_t>(tiles.in) % (4 * sizeof(In)) == 0;
        const dim3 grid(static_cast<unsigned>(nn::ceil_div(out.height, arguments.strip)),
                        static_cast<unsigned>(arguments.tiles * (out.channels / Channels)),
                        static_cast<unsigned>(images));
        if (grid.y > most_blocks_beside || grid.z > most_blocks_beside)
            return false;
        // Two rounds of the first step, where that is possible.
        const int units = arguments.strip * arguments.pitch / 4;
        const int threads = std::clamp(nn::ceil_div(units, 64) * 32, 256, most_downscale_threads);
        downscale_kernel<Channels><<<grid, static_cast<unsigned>(threads), 0, stream.get()>>>(arguments);
        SLUICE_CUDA_CHECK(cudaGetLastError());
        return true;
    }
    return false;
}

/// Launches the kernel of rotated_window.cuh, if a grid has room for the images. Whether it did.
template <class C, class Out>
bool launch_rotated_window(sluice::CudaStreamRef stream, TileArguments<C, std::uint8_t, Out>& arguments,
                           int images) {
    if (static_cast<unsigned>(images) > most_blocks_beside)
        return false;
    const Strides& strides = arguments.in_strides;
    arguments.by_words = strides.row % 4 == 0 && (strides.column != 1 || strides.channel % 4 == 0) &&
                         reinterpret_cast<std::uintptr_t>(arguments.in) % 4 == 0;
    const dim3 grid(static_cast<unsigned>(nn::ceil_div(arguments.out_shape.width, rotated_size)),
                    static_cast<unsigned>(nn::ceil_div(arguments.out_shape.height, rotated_size)),
                    static_cast<unsigned>(images));
    rotated_window_kernel<<<grid, rotated_threads, 0, stream.get()>>>(arguments);
    SLUICE_CUDA_CHECK(cudaGetLastError());
    return true;
}

} // namespace augment::detail
