/// \file
/// The usual beginning of a chain, a crop of 3-channel byte images that is then resized, from shared memory.
///
/// The crop is brought there once a block, a pixel's three bytes in one word; what a resized row or column lies between is
/// looked up in two tables. Where all weights are eighths, as when a size is doubled, a pixel's four neighbours and their
/// weights fit one word each, and a channel is one integer product of both, exactly what floats would give. What a rotation
/// takes from the staged crop is below.
#pragma once

#include <cmath>

#include <augment/chain.hpp>

namespace augment::detail {

/// How the first operators of a chain are evaluated.
enum class Staging {
    none,     ///< as all others
    weighted, ///< from shared memory
    exact,    ///< from shared memory, all weights being eighths
};

/// A row's or column's entry: where its first neighbour is, and the weights. Around the tables of what is rotated are
/// entries for what is outside the image: all weights 0 if exact, or else below 0.
struct alignas(8) StagedTap {
    unsigned offset; ///< in bytes; of a column, from the beginning of shared memory
    unsigned
        weight; ///< exact: eighths, the first in bits 0 … 7, the second in bits 8 … (columns) or 16 … (rows)
};

/// Extents of what a block keeps in shared memory: words of pixels, then a table for the rows and one for the columns.
struct StagedLayout {
    int height; ///< of the crop
    int width;
    int pitch; ///< words a row
    int out_height;
    int out_width;
    float scale_y; ///< rows of the crop for each row of the result
    float scale_x;
    int around_y; ///< entries for rows outside the image, on each side
    int around_x;

    __host__ __device__ int words() const { return height * pitch; }
    __host__ __device__ int row_taps() const { return out_height + 2 * around_y; }
    __host__ __device__ int column_taps() const { return out_width + 2 * around_x; }
    /// Of pixels and tables; those of rotated rows follow.
    __host__ __device__ int bytes() const {
        return 4 * words() + static_cast<int>(sizeof(StagedTap)) * (row_taps() + column_taps());
    }
};

/// 16 more than a multiple of 32, so that neighbouring rows, which a rotated line of pixels crosses, are in other banks.
inline int staged_pitch(int width) { return (width + 15) / 32 * 32 + 16; }

__device__ inline unsigned shared_address(const void* shared) {
    return static_cast<unsigned>(__cvta_generic_to_shared(shared));
}

/// The word at an address in shared memory, of which nothing is written any more. With an address of 32 bits, distances that are
/// constants cost nothing.
__device__ inline unsigned word(unsigned at) {
    unsigned result;
    asm("ld.shared.u32 %0, [%1];" : "=r"(result) : "r"(at));
    return result;
}

/// 2^23 and a byte of `pixel`.
template <unsigned selector>
__device__ float shifted(unsigned pixel) {
    return __uint_as_float(__byte_perm(pixel, 0x4B000000u, selector));
}

/// Between that byte of four pixels: `a` and `b` are above `c` and `d`.
template <unsigned selector>
__device__ float mixed(unsigned a, unsigned b, unsigned c, unsigned d, float down, float right) {
    const float first = shifted<selector>(a);
    const float third = shifted<selector>(c);
    const float above = fmaf(right, shifted<selector>(b) - first, first - 8388608.0f);
    const float below = fmaf(right, shifted<selector>(d) - third, third - 8388608.0f);
    return fmaf(down, below - above, above);
}

/// The resized crop. A functor of coordinates, as ImageAfter. Made after the block has met behind the staging.
template <Staging staging>
class StagedImage {
public:
    static constexpr int tap_bytes = static_cast<int>(sizeof(StagedTap));

    __device__ StagedImage(const char* staged, const StagedLayout& layout)
        : rows_(kept(shared_address(staged) +
                     static_cast<unsigned>(4 * layout.words() + tap_bytes * layout.around_y))),
          columns_(kept(
              shared_address(staged) +
              static_cast<unsigned>(4 * layout.words() + tap_bytes * (layout.row_taps() + layout.around_x)))),
          pitch_(kept(4 * static_cast<unsigned>(layout.pitch))) {}

    __device__ Pixel<3> operator()(int y, int x) const {
        return mixed_pixel(row(static_cast<unsigned>(y)), column(static_cast<unsigned>(x)));
    }

    /// Entries of the tables. What is added to an index may be added to it beforehand, and taken away again by `less`.
    __device__ StagedTap row(unsigned y, unsigned less = 0) const {
        return tap(y * tap_bytes + (rows_ - less * tap_bytes));
    }
    __device__ StagedTap column(unsigned x, unsigned less = 0) const {
        return tap(x * tap_bytes + (columns_ - less * tap_bytes));
    }
    static __device__ bool outside(const StagedTap& row, const StagedTap& column) {
        if constexpr (staging == Staging::exact) {
            return row.weight * column.weight == 0;
        } else {
            return static_cast<int>(row.weight | column.weight) < 0;
        }
    }

    __device__ Pixel<3> mixed_pixel(const StagedTap& row, const StagedTap& column) const {
        const unsigned above = row.offset + column.offset;
        const unsigned below = above + pitch_;
        const unsigned a = word(above);
        const unsigned b = word(above + 4);
        const unsigned c = word(below);
        const unsigned d = word(below + 4);
        if constexpr (staging == Staging::exact) {
            const unsigned weights = row.weight * column.weight; // no product is above 64
            const unsigned ab = __byte_perm(a, b, 0x5140);
            const unsigned cd = __byte_perm(c, d, 0x5140);
            const unsigned ab_third = __byte_perm(a, b, 0x0062);
            const unsigned cd_third = __byte_perm(c, d, 0x0062);
            return {exact(__byte_perm(ab, cd, 0x5410), weights), exact(__byte_perm(ab, cd, 0x7632), weights),
                    exact(__byte_perm(ab_third, cd_third, 0x5410), weights)};
        } else {
            const float down = __uint_as_float(row.weight);
            const float right = __uint_as_float(column.weight);
            return {mixed<0x7440>(a, b, c, d, down, right), mixed<0x7441>(a, b, c, d, down, right),
                    mixed<0x7442>(a, b, c, d, down, right)};
        }
    }

    /// Keeps a value in a register, where compilers would rather compute it anew for each pixel; and what follows from
    /// being read before.
    static __device__ unsigned kept(unsigned value) {
        asm volatile("" : "+r"(value)::"memory");
        return value;
    }

private:
    static __device__ StagedTap tap(unsigned at) {
        StagedTap result;
        asm("ld.shared.v2.u32 {%0, %1}, [%2];" : "=r"(result.offset), "=r"(result.weight) : "r"(at));
        return result;
    }

    /// Sums of bytes times eighths of eighths. 0x4B000000 is 2^23 as a float, whose last bits count ones.
    static __device__ float exact(unsigned bytes, unsigned weights) {
        const unsigned total = __dp4a(bytes, weights, 0x4B000000u);
        return fmaf(__uint_as_float(total), 1.0f / 64.0f, -131072.0f);
    }

    unsigned rows_; // addresses in shared memory, of the entries for row and column 0
    unsigned columns_;
    unsigned pitch_;
};

/// Where row or column `i` of the result lies between two of the crop, which has at least two.
template <Staging staging>
__device__ StagedTap staged_tap(int i, float scale, int size, int step, unsigned begin, unsigned shift) {
    const Taps taps = resize_taps(i, scale, size);
    const int first = least(taps.first, size - 2);
    const float weight = taps.first == first ? taps.weight : 1.0f;
    StagedTap result;
    result.offset = begin + static_cast<unsigned>(first * step * 4);
    if constexpr (staging == Staging::exact) {
        const auto second = static_cast<unsigned>(weight * 8.0f);
        result.weight = (8u - second) | (second << shift);
    } else {
        result.weight = __float_as_uint(weight);
    }
    return result;
}

/// The place of the calling thread in its block, whose threads form groups along y.
__device__ inline int thread_of_block() { return static_cast<int>(threadIdx.y * blockDim.x + threadIdx.x); }
__device__ inline int threads_of_block() { return static_cast<int>(blockDim.y * blockDim.x); }

/// Writes both tables.
template <Staging staging>
__device__ void write_taps(char* staged, const StagedLayout& layout) {
    auto* taps = reinterpret_cast<StagedTap*>(staged + 4 * layout.words());
    const StagedTap outside{shared_address(staged), staging == Staging::exact ? 0u : __float_as_uint(-1.0f)};
    const int both = layout.row_taps() + layout.column_taps();
    for (int i = thread_of_block(); i < both; i += threads_of_block()) {
        const bool down = i < layout.row_taps();
        const int at = down ? i - layout.around_y : i - layout.row_taps() - layout.around_x;
        if (!inside(at, 0, down ? layout.out_height : layout.out_width, 1)) {
            taps[i] = outside;
            taps[i].offset = down ? 0 : outside.offset;
        } else if (down) {
            taps[i] = staged_tap<staging>(at, layout.scale_y, layout.height, layout.pitch, 0, 16);
        } else {
            taps[i] = staged_tap<staging>(at, layout.scale_x, layout.width, 1, shared_address(staged), 8);
        }
    }
}

/// `begin` to before `end`.
struct Rows {
    int begin;
    int end;
};

/// Brings rows of a crop to shared memory; `first` is the crop's first pixel. Rows are shared out among warps. With
/// `by_words`, rows and channels are multiples of four bytes apart, and so is the end of what may be read.
__device__ inline void stage_pixels(unsigned* words, const StagedLayout& layout, Rows rows,
                                    const std::uint8_t* first, const Strides& strides, bool by_words) {
    const int warp = thread_of_block() / 32;
    const int lane = thread_of_block() % 32;
    const int warps = threads_of_block() / 32;
    if (!by_words) {
        for (int y = rows.begin + warp; y < rows.end; y += warps) {
            for (int x = lane; x < layout.width; x += 32) {
                const std::uint8_t* pixel = first + y * strides.row + x * strides.column;
                words[y * layout.pitch + x] = pixel[0] |
                                              (static_cast<unsigned>(pixel[strides.channel]) << 8) |
                                              (static_cast<unsigned>(pixel[2 * strides.channel]) << 16);
            }
        }
        return;
    }
    // The crop may begin within a word: four pixels are in two neighbouring ones, of which the second is read only where
    // it holds some of the crop.
    const unsigned begin = static_cast<unsigned>(reinterpret_cast<std::uintptr_t>(first) % 4);
    for (int quad = lane; 4 * quad < layout.width; quad += 32) {
        const bool both = static_cast<int>(begin) + least(3, layout.width - 1 - 4 * quad) >= 4;
        const unsigned* from[3];
#pragma unroll
        for (int c = 0; c < 3; ++c) {
            from[c] = reinterpret_cast<const unsigned*>(first - begin + 4 * quad + c * strides.channel +
                                                        (rows.begin + warp) * strides.row);
        }
        unsigned* to = words + (rows.begin + warp) * layout.pitch + 4 * quad;
#pragma unroll 4
        for (int y = rows.begin + warp; y < rows.end; y += warps) {
            unsigned channel[3];
#pragma unroll
            for (int c = 0; c < 3; ++c) {
                const unsigned low = __ldg(from[c]);
                const unsigned high = both ? __ldg(from[c] + 1) : 0;
                channel[c] = __funnelshift_r(low, high, 8 * begin);
                from[c] += warps * strides.row / 4;
            }
            const unsigned low = __byte_perm(channel[0], channel[1], 0x5140);
            const unsigned high = __byte_perm(channel[0], channel[1], 0x7362);
            *reinterpret_cast<uint4*>(to) =
                uint4{__byte_perm(low, channel[2], 0x4410), __byte_perm(low, channel[2], 0x4532),
                      __byte_perm(high, channel[2], 0x4610), __byte_perm(high, channel[2], 0x4732)};
            to += warps * layout.pitch;
        }
    }
}

// Rotating what is staged. ---------------------------------------------------------------------------------------

/// Whether what follows the resized crop, as far as it moves pixels, is one rotation.
template <class C>
SLUICE_HOST_DEVICE constexpr bool rotates_resized_crop() {
    if constexpr (C::size < 3) {
        return false;
    } else {
        using Op = typename C::template Op<2>;
        bool result = std::is_same_v<Op, Rotate<Nearest>> || std::is_same_v<Op, Rotate<Bilinear>>;
        for (std::size_t i = 3; i < C::size; ++i)
            result = result && C::kinds[i] != OperatorKind::geometry;
        return result;
    }
}

/// Whether that rotation takes the nearest pixel: then the part of a rotation that depends on a row alone is in a table too, and
/// tables hold entries for what is outside, so that nothing is compared.
template <class C>
SLUICE_HOST_DEVICE constexpr bool rotates_to_nearest() {
    if constexpr (rotates_resized_crop<C>() && C::blur < C::size) {
        return std::is_same_v<typename C::template Op<2>, Rotate<Nearest>>;
    } else {
        return false;
    }
}

/// How far a rotated image reaches beyond each side of `size` pixels; `across` is the other extent.
inline int reach_of_rotation(int size, int across) {
    const double y = 0.5 * (size - 1);
    const double x = 0.5 * (across - 1);
    return static_cast<int>(std::sqrt(y * y + x * x) - y) + 3; // rounded up, and one for rounding on the way
}

/// What of `rotate_back` depends on a row alone.
struct alignas(8) RotatedRow {
    float down;
    float across;
};

/// Writes the table of the rows from `begin` on, reflected at the edges.
template <class Prepared>
__device__ void write_rotated_rows(char* table, const Prepared& rotation, int begin, int count, int around) {
    auto* rows = reinterpret_cast<RotatedRow*>(table);
    for (int i = thread_of_block(); i < count; i += threads_of_block()) {
        // Beyond what a blur needs a row is only one that exists.
        const int y = reflected(least(begin + i, rotation.height - 1 + around), rotation.height);
        const float from_y = sum(static_cast<float>(y), -rotation.centre_y);
        // An angle that is NaN shows nothing of the image.
        const bool number = rotation.cosine == rotation.cosine;
        rows[i] = {number ? product(rotation.cosine, from_y) : 0.0f,
                   number ? product(rotation.sine, from_y) : 0.0f};
    }
}

/// A column of the resized and rotated crop. A functor of coordinates as they are before reflection; the column is that
/// which it was made for.
template <Staging staging>
class RotatedColumn {
public:
    /// `table` has the rows from `begin` on.
    template <class Prepared>
    __device__ RotatedColumn(const StagedImage<staging>& image, const Prepared& rotation, const char* table,
                             int begin, int x)
        : image_(image),
          table_(StagedImage<staging>::kept(shared_address(table) - static_cast<unsigned>(begin) * 8)),
          fill_(rotation.fill) {
        const float from_x = sum(static_cast<float>(x), -rotation.centre_x);
        const bool number = rotation.cosine == rotation.cosine;
        down_ = number ? sum(product(rotation.sine, from_x), rotation.centre_y) : -1.0f;
        across_ = number ? sum(product(rotation.cosine, from_x), rotation.centre_x) : -1.0f;
    }

    __device__ Pixel<3> operator()(int y, int /*x*/) const {
        RotatedRow rotated;
        asm("ld.shared.v2.f32 {%0, %1}, [%2];"
            : "=f"(rotated.down), "=f"(rotated.across)
            : "r"(table_ + static_cast<unsigned>(y) * 8));
        // round_even, of which the last step is left to the tables.
        const StagedTap row = image_.row(rounded(sum(down_, rotated.down)), rounded_zero);
        const StagedTap column = image_.column(rounded(sum(across_, -rotated.across)), rounded_zero);
        Pixel<3> pixel = image_.mixed_pixel(row, column);
        const bool outside = StagedImage<staging>::outside(row, column);
#pragma unroll
        for (int c = 0; c < 3; ++c)
            pixel.value[c] = outside ? fill_ : pixel.value[c];
        return pixel;
    }

private:
    static constexpr unsigned rounded_zero = 0x4B400000;
    static __device__ unsigned rounded(float value) { return __float_as_uint(sum(value, 12582912.0f)); }

    StagedImage<staging> image_;
    unsigned table_;
    float fill_;
    float down_;
    float across_;
};

/// The rows of the crop that rows `begin` to before `end` of the rotated image, and some around them for a blur, may come
/// from; all of them if what turns is no rotation.
template <bool rotated, class Prepared>
__device__ Rows staged_rows(const Prepared& rotation, const StagedLayout& layout, int begin, int end,
                            int around) {
    if constexpr (rotated) {
        // Both coordinates' parts are linear: the least and the most are at the corners. One row more for rounding, and one
        // for a second neighbour.
        const float above = static_cast<float>(most(begin - around, 0)) - rotation.centre_y;
        const float below = static_cast<float>(least(end + around, rotation.height) - 1) - rotation.centre_y;
        const float sideways = fabsf(rotation.sine) * rotation.centre_x;
        const float first =
            fminf(rotation.cosine * above, rotation.cosine * below) - sideways + rotation.centre_y - 2.0f;
        const float last =
            fmaxf(rotation.cosine * above, rotation.cosine * below) + sideways + rotation.centre_y + 2.0f;
        // A NaN, which turns everything out of the image, becomes the other operand.
        const int first_row =
            static_cast<int>(fminf(fmaxf(first, 0.0f), static_cast<float>(rotation.height - 1)));
        const int last_row =
            static_cast<int>(fminf(fmaxf(last, 0.0f), static_cast<float>(rotation.height - 1)));
        return {least(resize_taps(first_row, layout.scale_y, layout.height).first, layout.height - 2),
                least(resize_taps(last_row, layout.scale_y, layout.height).first + 2, layout.height)};
    } else {
        return {0, layout.height};
    }
}

} // namespace augment::detail
