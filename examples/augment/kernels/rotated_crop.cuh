/// \file
/// What a rotation takes from a staged crop.
#pragma once

#include <cmath>

#include <augment/kernels/staged_crop.cuh>

namespace augment::detail {

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
