/// \file
/// The kernel for images of three bytes a pixel that are rotated first, after which only values change: from shared memory.
///
/// A block makes a square of one image. What it is rotated from is in a window of the image that is brought to shared memory,
/// a pixel in one word. A pixel's last byte says that it exists: around the image the window has a border of those that do
/// not, so that the neighbours of a place within the image can be read without asking.
#pragma once

#include <augment/kernels/staged_crop.cuh>
#include <augment/kernels/tiles.cuh>

namespace augment::detail {

inline constexpr int rotated_size = 64; ///< of the square
inline constexpr int rotated_threads = 256;
/// A square's diagonal, a second neighbour, and where an end lies between two pixels.
inline constexpr int window_rows = 92;
/// As many, and what the first lies beyond a multiple of four; 8 more than a multiple of 32, so that the places of a
/// warp's 16x2 pixels are in nearly as many banks, however they are rotated.
inline constexpr int window_pitch = 104;

/// Whether images are rotated first, and nothing else moves pixels.
template <class C>
SLUICE_HOST_DEVICE constexpr bool only_rotates() {
    using Op = typename C::template Op<0>;
    bool result = std::is_same_v<Op, Rotate<Nearest>> || std::is_same_v<Op, Rotate<Bilinear>>;
    for (std::size_t i = 1; i < C::size; ++i)
        result = result && C::kinds[i] == OperatorKind::value;
    return result;
}

/// Part of an image: rows from `top` on, columns from `left` on, which is a multiple of four.
struct Window {
    int top;
    int left;
    int rows;
    int quads; ///< columns, in fours
};

/// What pixels from (y, x) to (last_y, last_x) are rotated from, as far as it is in the image or next to it.
template <class Prepared>
__device__ Window rotated_window(const Prepared& rotation, int y, int x, int last_y, int last_x) {
    // Each coordinate is rounded after every step of a sum whose parts never decrease, or never increase, with y and x:
    // the least and the most are at the corners.
    const SourcePoint a = rotate_back(rotation, y, x);
    const SourcePoint b = rotate_back(rotation, y, last_x);
    const SourcePoint c = rotate_back(rotation, last_y, x);
    const SourcePoint d = rotate_back(rotation, last_y, last_x);
    const auto within = [](float value, int size) { // a NaN, which turns all out of the image, becomes -1
        return round_down(fminf(fmaxf(value, -1.0f), static_cast<float>(size)));
    };
    const int top = within(fminf(fminf(a.y, b.y), fminf(c.y, d.y)), rotation.height);
    const int left = within(fminf(fminf(a.x, b.x), fminf(c.x, d.x)), rotation.width) & ~3;
    // With second neighbours, even of what is at the border.
    const int bottom = within(fmaxf(fmaxf(a.y, b.y), fmaxf(c.y, d.y)), rotation.height) + 1;
    const int right = within(fmaxf(fmaxf(a.x, b.x), fmaxf(c.x, d.x)), rotation.width) + 1;
    return {top, left, least(bottom + 1 - top, window_rows), least((right - left) / 4 + 1, window_pitch / 4)};
}

/// Brings a window to shared memory, a row by a warp. With `by_words`, widths are multiples of four, and all rows begin at
/// words.
__device__ inline void stage_window(unsigned* words, const Window& window, const std::uint8_t* image,
                                    const Strides& strides, ImageShape shape, bool by_words) {
    constexpr unsigned exists = 0x01000000u;
    constexpr int warps = rotated_threads / 32;
    const int warp = static_cast<int>(threadIdx.x) / 32;
    const int lane = static_cast<int>(threadIdx.x) % 32;
    // Calls `pixels(y, from)`, of which `from` is at row y and column x, for each row, and stores what it gives.
    const auto for_each_row = [&](int column, const auto& pixels) {
        const int x = window.left + column;
        const std::uint8_t* from =
            image + ((window.top + warp) * strides.row + x * strides.column); // perhaps outside
        auto* to = words + warp * window_pitch + column;
        const bool in = static_cast<unsigned>(x) < static_cast<unsigned>(shape.width);
#pragma unroll 4
        for (int row = warp; row < window.rows; row += warps) {
            const int y = window.top + row;
            decltype(pixels(from)) result{};
            if (in && static_cast<unsigned>(y) < static_cast<unsigned>(shape.height))
                result = pixels(from);
            *reinterpret_cast<decltype(result)*>(to) = result;
            from += warps * strides.row;
            to += warps * window_pitch;
        }
    };
    if (!by_words) {
        for (int column = lane; column < 4 * window.quads; column += 32) {
            for_each_row(column, [&](const std::uint8_t* from) {
                return from[0] | (static_cast<unsigned>(from[strides.channel]) << 8) |
                       (static_cast<unsigned>(from[2 * strides.channel]) << 16) | exists;
            });
        }
    } else if (lane < window.quads && strides.column == 1) {
        for_each_row(4 * lane, [&](const std::uint8_t* from) {
            const unsigned a = __ldg(reinterpret_cast<const unsigned*>(from));
            const unsigned b = __ldg(reinterpret_cast<const unsigned*>(from + strides.channel));
            const unsigned c = __ldg(reinterpret_cast<const unsigned*>(from + 2 * strides.channel));
            const unsigned ab = __byte_perm(a, b, 0x5140);
            const unsigned ab_high = __byte_perm(a, b, 0x7362);
            const unsigned third = __byte_perm(c, exists, 0x7170);
            const unsigned third_high = __byte_perm(c, exists, 0x7372);
            return uint4{__byte_perm(ab, third, 0x5410), __byte_perm(ab, third, 0x7632),
                         __byte_perm(ab_high, third_high, 0x5410), __byte_perm(ab_high, third_high, 0x7632)};
        });
    } else if (lane < window.quads) {
        for_each_row(4 * lane, [&](const std::uint8_t* from) {
            const unsigned a = __ldg(reinterpret_cast<const unsigned*>(from));
            const unsigned b = __ldg(reinterpret_cast<const unsigned*>(from) + 1);
            const unsigned c = __ldg(reinterpret_cast<const unsigned*>(from) + 2);
            const auto pixel = [](unsigned bytes) { return (bytes & 0x00FFFFFFu) | exists; };
            return uint4{pixel(a), pixel(__byte_perm(a, b, 0x0543)), pixel(__byte_perm(b, c, 0x0432)),
                         pixel(c >> 8)};
        });
    }
}

/// The rotated image, from a window. A functor of coordinates, as ImageAfter.
template <class Sampling>
class RotatedWindow {
public:
    using Prepared = typename Rotate<Sampling>::Prepared;

    __device__ RotatedWindow(const Prepared& rotation, const unsigned* words, const Window& window)
        : rotation_(rotation), words_(shared_address(words)),
          origin_(words_ - 4 * static_cast<unsigned>(window.top * window_pitch + window.left)) {}

    __device__ Pixel<3> operator()(int y, int x) const {
        const SourcePoint from = rotate_back(rotation_, y, x);
        if constexpr (std::is_same_v<Sampling, Nearest>) {
            const int row = round_even(from.y);
            const int column = round_even(from.x);
            const bool in = inside(row, column, rotation_.height, rotation_.width);
            const unsigned pixel = word(in ? address(row, column) : words_);
            return {in ? value<0x7440>(pixel) : rotation_.fill, in ? value<0x7441>(pixel) : rotation_.fill,
                    in ? value<0x7442>(pixel) : rotation_.fill};
        } else {
            // What is further away is fill, too, and so is a NaN, which becomes -1.
            const float from_y = fminf(fmaxf(from.y, -1.0f), static_cast<float>(rotation_.height));
            const float from_x = fminf(fmaxf(from.x, -1.0f), static_cast<float>(rotation_.width));
            // As round_even, but down.
            const float row = __fadd_rd(from_y, 12582912.0f);
            const float column = __fadd_rd(from_x, 12582912.0f);
            const float down = from_y - (row - 12582912.0f);
            const float right = from_x - (column - 12582912.0f);
            const unsigned at = address(bits_of(row) - 0x4B400000, bits_of(column) - 0x4B400000);
            const unsigned a = word(at);
            const unsigned b = word(at + 4);
            const unsigned c = word(at + 4 * window_pitch);
            const unsigned d = word(at + 4 * window_pitch + 4);
            Pixel<3> pixel{mixed<0x7440>(a, b, c, d, down, right), mixed<0x7441>(a, b, c, d, down, right),
                           mixed<0x7442>(a, b, c, d, down, right)};
            if ((a & b & c & d) == 0) { // the bytes that say that a pixel exists are among them
                const float covered = mixed<0x7443>(a, b, c, d, down, right);
#pragma unroll
                for (int k = 0; k < 3; ++k)
                    pixel.value[k] = covered * (pixel.value[k] - rotation_.fill) + rotation_.fill;
            }
            return pixel;
        }
    }

private:
    __device__ unsigned address(int row, int column) const {
        return static_cast<unsigned>(row) * (4 * window_pitch) +
               (static_cast<unsigned>(column) * 4 + origin_);
    }
    template <unsigned selector>
    static __device__ float value(unsigned pixel) {
        return shifted<selector>(pixel) - 8388608.0f;
    }

    const Prepared& rotation_;
    unsigned words_; ///< addresses in shared memory: of the first word, and of (0, 0), where that would be
    unsigned origin_;
};

template <class C, class Out>
__global__ void __launch_bounds__(rotated_threads)
    rotated_window_kernel(const __grid_constant__ TileArguments<C, std::uint8_t, Out> arguments) {
    __shared__ __align__(16) unsigned words[window_rows * window_pitch];
    __shared__ __align__(alignof(SharedSample<C>)) char sample_bytes[sizeof(SharedSample<C>)];
    auto& sample = *reinterpret_cast<SharedSample<C>*>(sample_bytes);
    const ImageShape shape = arguments.out_shape;
    const int image = static_cast<int>(blockIdx.z);
    const int top = static_cast<int>(blockIdx.y) * rotated_size;
    const int left = static_cast<int>(blockIdx.x) * rotated_size;
    const int bottom = least(top + rotated_size, shape.height);
    const int right = least(left + rotated_size, shape.width);
    const int thread = static_cast<int>(threadIdx.x);

    prepare_operators<Staging::none>(arguments, image, 0, sample);
    __syncthreads();
    const typename C::Prepared prepared = sample.prepared;
    const auto& rotation = element<0>(prepared);
    const Window window = rotated_window(rotation, top, left, bottom - 1, right - 1);
    stage_window(words, window, arguments.in + image * arguments.in_strides.image, arguments.in_strides,
                 shape, arguments.by_words);
    __syncthreads();

    // A warp does two short rows of pixels at once, rather than a long one, which would come from fewer banks.
    constexpr int beside = 16;
    const int warp = thread / 32;
    const int x = left + warp * beside % rotated_size + thread % beside;
    const int first = top + warp * beside / rotated_size * (32 / beside) + thread % 32 / beside;
    if (x >= right)
        return;
    using Op = typename C::template Op<0>;
    using Sampling = std::conditional_t<std::is_same_v<Op, Rotate<Nearest>>, Nearest, Bilinear>;
    const RotatedWindow<Sampling> source(rotation, words, window);
    const ImageAfter<C, C::size, 3, RotatedWindow<Sampling>, 1> pixels{prepared, source, 0};
    const Strides& strides = arguments.out_strides;
    Out* const out = arguments.out + image * strides.image + x * strides.column;
#pragma unroll 4
    for (int y = first; y < bottom; y += rotated_threads / rotated_size) {
        const Pixel<3> pixel = pixels(y, x);
#pragma unroll
        for (int c = 0; c < 3; ++c)
            out[y * strides.row + c * strides.channel] = store_pixel<Out>(pixel.value[c]);
    }
}

} // namespace augment::detail
