/// \file
/// Defines `apply` on a device, for a chain that a .cu file composes: one kernel a call. See apply.hpp for the contract. Here
/// is which kernel of kernels/ it is, and how large.
#pragma once

#include <algorithm>

#include <augment/apply.hpp>
#include <augment/kernels/downscale.cuh>
#include <augment/kernels/per_pixel.cuh>
#include <augment/kernels/rotated_window.cuh>
#include <nn/core/ceil_div.hpp>

namespace augment {

namespace detail {

/// What a crop may take of a block's shared memory, so that the rest of a block still fits on a device with 227 KiB.
inline constexpr int most_staged_bytes = 184 * 1024;
/// Kept for what blocks share beside dynamic memory.
inline constexpr int static_bytes = 1024;
/// Blocks of 512 threads that a device with 132 multiprocessors runs at once.
inline constexpr int blocks_at_once = 264;

/// The most dynamic shared memory that a block may have on the current device.
inline int most_block_bytes() {
    int device = 0;
    int bytes = 0;
    SLUICE_CUDA_CHECK(cudaGetDevice(&device));
    SLUICE_CUDA_CHECK(cudaDeviceGetAttribute(&bytes, cudaDevAttrMaxSharedMemoryPerBlockOptin, device));
    return bytes - static_bytes;
}

template <class C>
constexpr bool begins_with_resized_crop() {
    if constexpr (C::size < 2) {
        return false;
    } else {
        return std::is_same_v<typename C::template Op<0>, Crop> &&
               std::is_same_v<typename C::template Op<1>, Resize>;
    }
}

/// Chooses the columns of a group and of its tile, and how many numbers are read and written at a time. The bytes of shared
/// memory that a group needs for its rows.
template <int Channels, class C, class In, class Out>
int choose_columns(TileArguments<C, In, Out>& arguments) {
    constexpr bool blurred = C::blur < C::size;
    const int width = arguments.out_shape.width;
    // Without a blur, a thread does four columns at once where nothing is rotated.
    const int columns_of_thread = blurred || has_rotation<C>() ? 1 : 4;
    arguments.columns = std::min(nn::ceil_div(nn::ceil_div(width, columns_of_thread), 32) * 32, most_columns);
    arguments.whole = width <= arguments.columns;
    arguments.tile = columns_of_thread * arguments.columns;
    int bytes_of_group = 0;
    if constexpr (blurred) {
        constexpr int margin = tile_margin<C>();
        static_assert(2 * margin < most_columns / 2, "augment::Blur: the size is too large for a tile");
        if (!arguments.whole)
            arguments.tile = arguments.columns - 2 * margin;
        bytes_of_group = 4 * RowsLayout<Channels>::words(arguments.columns + 2 * margin);
    }
    arguments.tiles = nn::ceil_div(width, arguments.tile);
    arguments.by_fours = arguments.out_strides.column == 1 && arguments.out_strides.row % 4 == 0 &&
                         arguments.out_strides.channel % 4 == 0 && arguments.tile % 4 == 0 &&
                         reinterpret_cast<std::uintptr_t>(arguments.out) % (4 * sizeof(Out)) == 0;
    if (!blurred)
        arguments.by_fours = arguments.by_fours && width % 4 == 0;
    arguments.in_by_fours = arguments.in_strides.column == 1 && arguments.in_strides.row % 4 == 0 &&
                            arguments.in_strides.channel % 4 == 0 &&
                            reinterpret_cast<std::uintptr_t>(arguments.in) % (4 * sizeof(In)) == 0;
    return bytes_of_group;
}

template <Staging staging, int Channels, class C, class In, class Out>
void launch_tiles(sluice::CudaStreamRef stream, TileArguments<C, In, Out>& arguments, int images) {
    static_assert(sizeof(SharedSample<C>) <= static_bytes,
                  "augment::Chain: too many operators for a block's memory");
    constexpr bool blurred = C::blur < C::size;
    const int height = arguments.out_shape.height;
    const int bytes_of_group = choose_columns<Channels>(arguments);
    int groups = block_threads / arguments.columns;
    // Long strips save the rows that neighbours evaluate both; short ones let all multiprocessors take part.
    const int beside = arguments.tiles * (arguments.in_shape.channels / Channels);
    const auto blocks = [&](int strip) {
        return static_cast<std::int64_t>(images) * beside * nn::ceil_div(height, strip * groups);
    };
    arguments.words_before_rows = 0;
    const bool halo = blurred || staging != Staging::none;
    const int least_strip = blurred ? 16 : 4;
    arguments.strip = std::min(nn::ceil_div(height, 4 * groups) * 4, halo ? 128 : 16);
    while (arguments.strip > least_strip && blocks(arguments.strip) < 256)
        arguments.strip /= 2;
    if (!blurred && staging == Staging::none) {
        while (groups / 2 * arguments.columns >= 32 * static_cast<int>(least_warps) &&
               blocks(arguments.strip) < 256)
            groups /= 2;
    }
    const auto bytes_with = [&](int count) {
        if constexpr (staging == Staging::none)
            return count * bytes_of_group;
        arguments.rotated_rows =
            rotates_to_nearest<C>() ? count * arguments.strip + 2 * rows_around<C>() + rows_at_once : 0;
        arguments.words_before_rows =
            nn::ceil_div(arguments.staged.bytes() + 8 * arguments.rotated_rows, 16) * 4;
        return 4 * arguments.words_before_rows + count * bytes_of_group;
    };
    const int most_bytes = most_block_bytes();
    int bytes = bytes_with(groups);
    if constexpr (staging != Staging::none) {
        if (bytes > most_bytes)
            return launch_tiles<Staging::none, Channels>(stream, arguments, images);
        if (blurred && 2 * groups <= most_groups && arguments.strip * groups < height &&
            blocks(arguments.strip) > blocks_at_once / 2 && blocks(arguments.strip) <= blocks_at_once) {
            // Of two blocks on one multiprocessor, both would stage.
            if (bytes_with(2 * groups) <= most_bytes)
                groups *= 2;
            bytes = bytes_with(groups);
        }
    }
    const dim3 grid(static_cast<unsigned>(images),
                    static_cast<unsigned>(nn::ceil_div(height, arguments.strip * groups)),
                    static_cast<unsigned>(beside));
    if (grid.y > most_blocks_beside || grid.z > most_blocks_beside) {
        throw sluice::Error("images of " + text_of(arguments.out_shape) +
                            " are larger than one launch takes on a device");
    }
    const auto kernel = [] {
        if constexpr (blurred) {
            return &blurred_kernel<staging, Channels, C, In, Out>;
        } else {
            return &pixels_kernel<staging, Channels, C, In, Out>;
        }
    }();
    if (bytes > 48 * 1024) {
        // Always the same, so that threads that launch it for other crops do not undo each other's.
        SLUICE_CUDA_CHECK(cudaFuncSetAttribute(reinterpret_cast<const void*>(kernel),
                                               cudaFuncAttributeMaxDynamicSharedMemorySize, most_bytes));
    }
    const dim3 threads(static_cast<unsigned>(arguments.columns), static_cast<unsigned>(groups));
    kernel<<<grid, threads, static_cast<std::size_t>(bytes), stream.get()>>>(arguments);
    SLUICE_CUDA_CHECK(cudaGetLastError());
}

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

/// Whether all weights of a plain resize from `in` to `out` are eighths: those of row i are (i + 1/2) in / out - 1/2.
inline bool weights_are_eighths(int in, int out) { return 4 * static_cast<std::int64_t>(in) % out == 0; }

template <class C, class In, class Out>
void launch(sluice::CudaStreamRef stream, TileArguments<C, In, Out>& arguments, int images) {
    const ImageShape in = arguments.in_shape;
    if (in.channels == 3 ? launch_downscale<3>(stream, arguments, images)
                         : launch_downscale<1>(stream, arguments, images))
        return;
    if (in.channels != 3)
        return launch_tiles<Staging::none, 1>(stream, arguments, images);
    if constexpr (begins_with_resized_crop<C>() && std::is_same_v<In, std::uint8_t>) {
        const ImageShape crop = arguments.chain.template shape_before<1>(in);
        const ImageShape resized = arguments.chain.template shape_before<2>(in);
        const bool plain = !arguments.chain.template op<1>().antialias ||
                           (crop.height <= resized.height && crop.width <= resized.width);
        const std::int64_t staged_bytes =
            4 * static_cast<std::int64_t>(crop.height) * staged_pitch(crop.width) +
            8 * (static_cast<std::int64_t>(resized.height) + resized.width);
        if (plain && crop.height > 1 && crop.width > 1 && staged_bytes <= most_staged_bytes) {
            const auto scales = arguments.chain.template op<1>().prepare({}, crop);
            arguments.staged = {crop.height,
                                crop.width,
                                staged_pitch(crop.width),
                                resized.height,
                                resized.width,
                                scales.scale_y,
                                scales.scale_x,
                                0,
                                0};
            if constexpr (rotates_to_nearest<C>()) {
                arguments.staged.around_y = reach_of_rotation(resized.height, resized.width);
                arguments.staged.around_x = reach_of_rotation(resized.width, resized.height);
            }
            const Strides& strides = arguments.in_strides;
            arguments.by_words = strides.column == 1 && strides.row % 4 == 0 && strides.channel % 4 == 0 &&
                                 reinterpret_cast<std::uintptr_t>(arguments.in) % 4 == 0;
            if (weights_are_eighths(crop.height, resized.height) &&
                weights_are_eighths(crop.width, resized.width))
                return launch_tiles<Staging::exact, 3>(stream, arguments, images);
            return launch_tiles<Staging::weighted, 3>(stream, arguments, images);
        }
    }
    if constexpr (only_rotates<C>() && std::is_same_v<In, std::uint8_t>) {
        if (launch_rotated_window(stream, arguments, images))
            return;
    }
    launch_tiles<Staging::none, 3>(stream, arguments, images);
}

} // namespace detail

template <class... Ops, class In, class Out>
void apply(sluice::CudaStreamRef stream, const Chain<Ops...>& chain, Images<In, sluice::Cuda> in,
           std::type_identity_t<ParameterSource<sluice::Cuda>> parameters, Images<Out, sluice::Cuda> out) {
    detail::require_fit(chain, in, parameters, out);
    detail::TileArguments<Chain<Ops...>, std::remove_const_t<In>, Out> arguments{
        chain,
        parameters,
        in.data(),
        out.data(),
        in.shape(),
        out.shape(),
        detail::strides(in.shape(), in.layout()),
        detail::strides(out.shape(), out.layout()),
        {},
        0,
        0,
        0,
        0,
        0,
        0,
        false,
        false,
        false,
        false};
    detail::launch(stream, arguments, in.count());
}

} // namespace augment
